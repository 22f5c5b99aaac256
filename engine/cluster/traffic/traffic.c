/* Sums of what was sent. */
#include "engine/cluster/traffic/drps_traffic.h"

uint64_t drps_traffic_values(const struct drps_traffic *t)
{
    return t->kinds[DRPS_TRAFFIC_PULLED].bytes + t->kinds[DRPS_TRAFFIC_AHEAD].bytes +
           t->kinds[DRPS_TRAFFIC_PUSHED].bytes + t->kinds[DRPS_TRAFFIC_HANDED].bytes +
           t->kinds[DRPS_TRAFFIC_SUMS].bytes + t->kinds[DRPS_TRAFFIC_VECTORS].bytes;
}

void drps_traffic_merge(struct drps_traffic *sum, const struct drps_traffic *more)
{
    for (int k = 0; k < DRPS_TRAFFIC_KINDS; k++) {
        sum->kinds[k].rows += more->kinds[k].rows;
        sum->kinds[k].bytes += more->kinds[k].bytes;
    }
    for (uint32_t r = 0; r < DRPS_PLAN_WORKERS_MAX; r++)
        sum->to[r] += more->to[r];
}
