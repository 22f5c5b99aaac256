/* How the ranks of a training fared. */
#include <inttypes.h>
#include <stdio.h>

#include "tools/stat/print.h"
#include "tools/drps_json_text.h"

/* Prints how stale the gradients of asynchronous rounds were, of all ranks together. Bin 0 counts
 * those of staleness 0, bin b those from 2^(b - 1) on. */
static void print_staleness(const json_t *ranks)
{
    double bins[65] = {0}, all = 0;
    size_t used = 0, i, b;
    json_t *r, *n;
    json_array_foreach(ranks, i, r)
    {
        json_array_foreach(json_object_get(r, "stale"), b, n)
        {
            if (b >= sizeof(bins) / sizeof(bins[0])) break;
            bins[b] += json_number_value(n);
            all += json_number_value(n);
            if (b >= used) used = b + 1;
        }
    }
    if (!(all > 0)) return;
    printf("\nbatches, by how many of other ranks were done meanwhile\n");
    for (b = 0; b < used; b++)
        printf("  %s%-6" PRIu64 " %7.1f %%\n", b > 1 ? "from " : "     ",
               b ? UINT64_C(1) << (b - 1) : 0, 100 * bins[b] / all);
}

void stat_print_workers(const json_t *training)
{
    const json_t *ranks = json_object_get(training, "ranks");
    const int claims = json_integer_value(json_object_get(training, "claim_window_steps")) > 0;
    size_t i;
    json_t *r;
    if (!json_array_size(ranks)) return;
    printf("\nranks, --sync %s", text_of(training, "sync"));
    if (claims)
        printf(", batches of %s steps at a time may be taken over",
               count_of(training, "claim_window_steps"));
    printf("\n  %4s %10s %10s %9s", "rank", "sent", "received", "waited");
    if (claims)
        printf(" %10s %9s %9s %9s %9s %10s %9s %10s %9s", "batches", "taken", "asked", "in time",
               "held s", "mean ahead", "at most", "mean stale", "at most");
    printf("\n");
    json_array_foreach(ranks, i, r)
    {
        printf("  %4zu %10s %10s %9s", i, size_of(r, "sent_bytes"), size_of(r, "received_bytes"),
               percent_of(r, "waiting_share"));
        if (claims)
            printf(" %10s %9s %9s %9s %9s %10s %9s %10s %9s", count_of(r, "iterations"),
                   count_of(r, "claimed"), count_of(r, "ahead_used"), count_of(r, "ahead_there"),
                   number_of(r, "held_seconds", "%.2f"), number_of(r, "lag_mean", "%.2f"),
                   count_of(r, "lag_max"), number_of(r, "stale_mean", "%.2f"),
                   count_of(r, "stale_max"));
        printf("\n");
    }
    if (claims) print_staleness(ranks);
}

void stat_print_loads(const json_t *ranks)
{
    size_t i;
    json_t *r;
    if (!json_array_size(ranks)) return;
    printf("\n  %4s %10s %10s %10s %10s %10s %10s %10s %8s %10s\n", "rank", "sent", "forecast",
           "received", "forecast", "disk read", "written", "waited, s", "share", "memory");
    json_array_foreach(ranks, i, r)
    {
        printf("  %4s %10s %10s %10s %10s %10s %10s %10s %8s %10s\n", count_of(r, "rank"),
               size_of(r, "sent_bytes"), forecast_size_of(r, "forecast_sent_bytes"),
               size_of(r, "received_bytes"), forecast_size_of(r, "forecast_received_bytes"),
               size_of(r, "read_bytes"), size_of(r, "written_bytes"),
               number_of(r, "waiting_seconds", "%.2f"), percent_of(r, "waiting_share"),
               size_of(r, "peak_rss_bytes"));
    }
}
