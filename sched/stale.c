/* What a stale gradient's rate is divided by: names of the rules, and their numbers. */
#include "sched/drps_stale.h"

#include <string.h>

static const char *const names[] = {
#define NAME(rule, name) [rule] = (name),
    DRPS_STALES(NAME)
#undef NAME
};

const char *drps_stale_name(enum drps_stale rule)
{
    return names[rule];
}

int drps_stale_find(const char *name, enum drps_stale *out)
{
    for (unsigned i = 0; i < sizeof(names) / sizeof(*names); i++)
        if (strcmp(name, names[i]) == 0) {
            *out = (enum drps_stale)i;
            return 1;
        }
    return 0;
}

float drps_stale_divisor(enum drps_stale rule, uint64_t batches, uint32_t others)
{
    const float of = rule == DRPS_STALE_ROUNDS && others ? (float)others : 1;
    const float divisor = rule == DRPS_STALE_SAME ? 1 : (float)batches / of;
    return divisor > 1 ? divisor : 1;
}
