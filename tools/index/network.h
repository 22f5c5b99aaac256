/* What the network asks of an epoch, beside what one machine would take. Private to tools/index/.
 */
#ifndef DRPS_TOOLS_INDEX_NETWORK_H
#define DRPS_TOOLS_INDEX_NETWORK_H

#include "index/plan/drps_plan.h"
#include "tools/drps_link.h"

/* Returns about the seconds in which one thread computes an epoch whose rows are all in memory. It
 * is an estimate: processors differ by a factor of two. */
double index_thread_seconds(const struct drps_plan_info *info);

/* Prints the least time of the busiest link, and whether several machines can be faster than one;
 * nothing for one worker. */
void index_network_print(const struct drps_plan_info *info, const struct link_load *busiest,
                         uint64_t link_bits, int details);

#endif
