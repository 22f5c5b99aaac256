/* What the network asks of an epoch, beside what one machine would take. Private to tools/index/.
 */
#ifndef DRPS_TOOLS_INDEX_NETWORK_H
#define DRPS_TOOLS_INDEX_NETWORK_H

#include "index/plan/drps_plan.h"
#include "tools/drps_link.h"

/* What it depends on. */
struct index_network {
    const struct drps_plan_info *info; /* of the whole */
    struct link_load busiest;          /* the link that takes longest */
    uint64_t link_bits;                /* of each machine's link, a second */
    uint64_t row_uses; /* sum over an epoch's steps of their rows, on all machines */
    uint64_t rounds;   /* of an epoch; 0: rows circulate */
};

/* Returns about the seconds in which one thread computes an epoch whose rows are all in memory. It
 * is an estimate: processors differ by a factor of two. */
double index_thread_seconds(const struct index_network *network);

/* Returns about the seconds in which the ranks of an epoch's rounds wait for messages to go there
 * and back, beside what their bytes take. */
double index_messages_seconds(const struct index_network *network);

/* Prints the least time of the busiest link, and whether several machines can be faster than one;
 * nothing for one worker. */
void index_network_print(const struct index_network *network, int details);

#endif
