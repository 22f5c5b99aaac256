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

/* Of one thread, on processors as bench/RESULTS.md has them: an entry of a sample and each of its
 * floats, and each float of a row that a step changes. Measured on click logs and ratings with 1 to
 * 65 floats a row, these give .9 to 1.5 of what an epoch takes. */
#define ENTRY_NS 1.2
#define FLOAT_NS 0.23
#define STEP_NS 0.85
/* Of a round, beside bytes and computing: until messages have gone there and back. */
#define ROUND_NS 300000

double index_thread_seconds(const struct index_network *network)
{
    const struct drps_plan_info *info = network->info;
    const double entries = (double)info->nnz + (double)info->test_nnz, floats = (double)info->dim;
    return 1e-9 * (entries * (ENTRY_NS + FLOAT_NS * floats) +
                   STEP_NS * floats * (double)network->row_uses);
}

double index_messages_seconds(const struct index_network *network)
{
    return 1e-9 * ROUND_NS * (double)network->rounds;
}

/* `wait`: of all rounds. */
static const char *verdict(double link, double wait, double thread, uint32_t workers)
{
    if (link + wait >= thread) return "will be slower than one";
    return link + wait + thread / workers > thread ? "may be slower than one"
                                                   : "can be faster than one";
}

static void print_details(const struct index_network *network)
{
    char sent[32], received[32];
    const struct link_load *busiest = &network->busiest;
    printf("           rank %" PRIu32 "'s link sends %s and receives %s; %" PRIu64
           " rounds of %g ms; a thread takes %g ns an entry, %g ns each of its %" PRIu32
           " floats, and %g ns each of those that a step changes\n",
           busiest->rank, drps_size_format(busiest->sent_bytes, sent, sizeof(sent)),
           drps_size_format(busiest->received_bytes, received, sizeof(received)), network->rounds,
           ROUND_NS * 1e-6, ENTRY_NS, FLOAT_NS, network->info->dim, STEP_NS);
}

void index_network_print(const struct index_network *network, int details)
{
    const uint32_t workers = network->info->ranks.workers;
    const double link = link_seconds(&network->busiest, network->link_bits),
                 thread = index_thread_seconds(network), wait = index_messages_seconds(network);
    char speed[LINK_TEXT];
    if (network->info->ranks.count < 2) return;
    printf(
        "  network  at %s (--link) an epoch takes %.3g s at least, its messages %.3g s more, and "
        "one thread with all rows in memory about %.3g s: %" PRIu32 " machines %s\n",
        link_speed_text(network->link_bits, speed), link, wait, thread, workers,
        verdict(link, wait, thread, workers));
    if (details) print_details(network);
}
