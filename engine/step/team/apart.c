#include "engine/step/team/apart.h"

#include <sched.h>

int drps_leave_processors(const int *others, size_t n)
{
    cpu_set_t allowed, rest;
    if (sched_getaffinity(0, sizeof(allowed), &allowed)) return 0;
    rest = allowed;
    for (size_t i = 0; i < n; i++)
        if (others[i] >= 0 && others[i] < CPU_SETSIZE) CPU_CLR((size_t)others[i], &rest);
    if (!CPU_COUNT(&rest) || sched_setaffinity(0, sizeof(rest), &rest)) return 0;
    (void)sched_setaffinity(0, sizeof(allowed), &allowed); /* it was allowed before */
    return 1;
}
