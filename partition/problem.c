/* What the algorithms that place rows share (problem.h). */
#include "partition/problem.h"

uint32_t drps_touch_count(const struct drps_units *units, size_t u, uint32_t machine)
{
    size_t low = units->starts[u], high = units->starts[u + 1];
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (units->touches[middle].machine < machine)
            low = middle + 1;
        else
            high = middle;
    }
    return low < units->starts[u + 1] && units->touches[low].machine == machine
               ? units->touches[low].count
               : 0;
}
