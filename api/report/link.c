/* Bytes of the plan's forecast, and seconds from bytes. */
#include "api/report/drps_link.h"

#include <stdio.h>

#include "engine/cluster/drps_circulation.h"
#include "engine/cluster/drps_rounds.h"

struct drps_link_load drps_link_of_part(const struct drps_plan_info *part)
{
    struct drps_link_load load = {.rank = part->ranks.rank};
    if (drps_plan_circulates(part)) {
        struct drps_circulation_stats ranges;
        drps_circulation_forecast(part, part->row_bytes, 1, &ranges);
        load.sent_bytes = ranges.sent_bytes;
        load.received_bytes = ranges.received_bytes;
    } else {
        static const struct drps_train_options usual;
        const struct drps_plan_handed *handed = &part->ranks.handed;
        struct drps_rounds_bytes rounds;
        drps_rounds_forecast(part, 0, 1, &rounds);
        if (handed->slots)
            drps_rounds_forecast_handed(part, 0, part->dim * sizeof(float) * (1 + handed->states),
                                        1, &rounds);
        if (drps_rounds_sums_common(part, &usual)) {
            struct drps_outer_choice vectors;
            drps_rounds_vectors(part, &usual, &vectors);
            drps_rounds_forecast_common(part, 0, part->row_bytes, 1, &vectors, NULL, &rounds);
        }
        load.sent_bytes = rounds.sent;
        load.received_bytes = rounds.received;
    }
    return load;
}

static uint64_t larger_way(const struct drps_link_load *load)
{
    return load->sent_bytes > load->received_bytes ? load->sent_bytes : load->received_bytes;
}

void drps_link_raise(struct drps_link_load *most, const struct drps_link_load *load)
{
    if (larger_way(load) > larger_way(most)) *most = *load;
}

double drps_link_seconds(const struct drps_link_load *load, uint64_t bits_per_s)
{
    return 8 * (double)larger_way(load) / (double)bits_per_s;
}

const char *drps_link_speed_text(uint64_t bits_per_s, char buf[DRPS_LINK_TEXT])
{
    static const char *const units[] = {"", "K", "M", "G", "T"};
    double speed = (double)bits_per_s;
    size_t u = 0;
    for (; speed >= 1000 && u + 1 < sizeof(units) / sizeof(*units); u++)
        speed /= 1000;
    (void)snprintf(buf, DRPS_LINK_TEXT, "%.4g %sbit/s", speed, units[u]);
    return buf;
}
