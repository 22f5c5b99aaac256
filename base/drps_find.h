/* Binary search in increasing numbers. Pure arithmetic. */
#ifndef DRPS_BASE_FIND_H
#define DRPS_BASE_FIND_H

#include <stddef.h>
#include <stdint.h>

/* Returns how many of list [n], which increases, are below v. */
static inline size_t drps_count_below(const uint32_t *list, size_t n, uint32_t v)
{
    size_t low = 0;
    while (low < n) {
        const size_t middle = low + (n - low) / 2;
        if (list[middle] < v)
            low = middle + 1;
        else
            n = middle;
    }
    return low;
}

/* Returns 1 if v is in list [n], which increases. */
static inline int drps_has_number(const uint32_t *list, size_t n, uint32_t v)
{
    const size_t at = drps_count_below(list, n, v);
    return at < n && list[at] == v;
}

#endif
