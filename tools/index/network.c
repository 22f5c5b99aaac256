/*
 * Whether a cluster pays. What is known is the least time of its network: an epoch takes as long as
 * the busiest link does. What one machine would take is estimated from the entries of the samples.
 * Several machines compute their shares at a time, and at best while messages travel.
 */
#include "tools/index/network.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/drps_size.h"

/* Of one thread, on processors as bench/RESULTS.md has them: of reading an entry and its row, and
 * of each of its floats. */
#define ENTRY_NS 2
#define FLOAT_NS 1

double index_thread_seconds(const struct drps_plan_info *info)
{
    const double entries = (double)info->nnz + (double)info->test_nnz;
    return 1e-9 * entries * (ENTRY_NS + FLOAT_NS * (double)info->dim);
}

static const char *verdict(double link, double thread, uint32_t workers)
{
    if (link >= thread) return "will be slower than one";
    return link + thread / workers > thread ? "may be slower than one" : "can be faster than one";
}

void index_network_print(const struct drps_plan_info *info, const struct link_load *busiest,
                         uint64_t link_bits, int details)
{
    const uint32_t workers = info->ranks.workers;
    const double link = link_seconds(busiest, link_bits), thread = index_thread_seconds(info);
    char speed[LINK_TEXT], sent[32], received[32];
    if (info->ranks.count < 2) return;
    printf("  network  at %s (--link) an epoch takes %.3g s at least, and one thread with all rows "
           "in memory about %.3g s: %" PRIu32 " machines %s\n",
           link_speed_text(link_bits, speed), link, thread, workers,
           verdict(link, thread, workers));
    if (!details) return;
    printf("           rank %" PRIu32 "'s link sends %s and receives %s; a thread takes %d ns an "
           "entry and %d ns each of its %" PRIu32 " floats\n",
           busiest->rank, drps_size_format(busiest->sent_bytes, sent, sizeof(sent)),
           drps_size_format(busiest->received_bytes, received, sizeof(received)), ENTRY_NS,
           FLOAT_NS, info->dim);
}
