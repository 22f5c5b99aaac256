/* The setting of DPPA, a list of NAME=VALUE. */
#include <string.h>

#include "api/settings/dppa.h"
#include "partition/dppa/drps_dppa.h"

static void take(struct drps_values *v, struct drps_dppa_wish *o, const char *name,
                 const char *value)
{
    static const char *const firsts[] = {"samples", "rows", NULL};
    static const char *const traffics[] = {"batches", "sets", NULL};
    if (strcmp(name, "alpha") == 0) {
        const int adapts = strcmp(value, "auto") == 0;
        o->alpha = adapts ? DRPS_DPPA_ADAPTIVE : (uint32_t)drps_value_count(v, value, 1, 16);
    } else if (strcmp(name, "beta") == 0) {
        o->beta = drps_value_real(v, value, 1e-9, 1e9);
    } else if (strcmp(name, "sample") == 0) {
        const int printed = strcmp(value, "n/k") == 0;
        o->sample =
            printed ? DRPS_DPPA_PRINTED : (uint32_t)drps_value_count(v, value, 1, UINT32_MAX - 1);
    } else if (strcmp(name, "bins") == 0) {
        o->bins = (uint32_t)drps_value_count(v, value, 1, UINT32_MAX);
    } else if (strcmp(name, "first") == 0) {
        o->rows_first = drps_value_choice(v, value, firsts) == 1;
    } else if (strcmp(name, "traffic") == 0) {
        o->single_rows = 1;
        o->by_sets = drps_value_choice(v, value, traffics) == 1;
    } else {
        drps_value_bad(v,
                       "'%s' is not one of alpha=N|auto, beta=B, sample=N|n/k, bins=N, "
                       "first=samples|rows, traffic=batches|sets",
                       name);
    }
}

void drps_dppa_setting(struct drps_values *v, struct drps_dppa_wish *o, const char *text)
{
    char part[DRPS_VALUE_PART_BYTES];
    *o = (struct drps_dppa_wish){.given = 1};
    while (drps_value_part(v, &text, part)) {
        char *value = strchr(part, '=');
        if (value) *value++ = '\0';
        take(v, o, part, value ? value : "");
    }
}
