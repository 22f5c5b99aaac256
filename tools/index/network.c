/*
 * Whether a cluster pays. What is known is the least time of its network: an epoch takes as long as
 * the busiest link does. What one machine would take is estimated from the entries of the samples
 * and the rows of the batches. Several machines compute their shares at a time, and at best while
 * messages travel; but the ranks of a round wait for each other's messages.
 */
#include "tools/index/network.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/drps_size.h"

/* `wait`: of all rounds. */
static const char *verdict(double link, double wait, double thread, uint32_t workers)
{
    if (link + wait >= thread) return "will be slower than one";
    return link + wait + thread / workers > thread ? "may be slower than one"
                                                   : "can be faster than one";
}

static void print_details(const struct drps_index_network *network)
{
    char sent[32], received[32];
    const struct drps_link_load *busiest = &network->busiest;
    printf("           rank %" PRIu32 "'s link sends %s and receives %s; %" PRIu64
           " rounds of %g ms; a thread takes %g ns an entry, %g ns each of its %" PRIu32
           " floats, and %g ns each of those that a step changes\n",
           busiest->rank, drps_size_format(busiest->sent_bytes, sent, sizeof(sent)),
           drps_size_format(busiest->received_bytes, received, sizeof(received)), network->rounds,
           DRPS_INDEX_ROUND_NS * 1e-6, DRPS_INDEX_ENTRY_NS, DRPS_INDEX_FLOAT_NS, network->info->dim,
           DRPS_INDEX_STEP_NS);
}

void index_network_print(const struct drps_index_network *network, int details)
{
    const uint32_t workers = network->info->ranks.workers;
    const double link = drps_link_seconds(&network->busiest, network->link_bits),
                 thread = drps_index_thread_seconds(network),
                 wait = drps_index_messages_seconds(network);
    char speed[DRPS_LINK_TEXT];
    if (network->info->ranks.count < 2) return;
    printf(
        "  network  at %s (--link) an epoch takes %.3g s at least, its messages %.3g s more, and "
        "one thread with all rows in memory about %.3g s: %" PRIu32 " machines %s\n",
        drps_link_speed_text(network->link_bits, speed), link, wait, thread, workers,
        verdict(link, wait, thread, workers));
    if (details) print_details(network);
}
