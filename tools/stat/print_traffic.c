/*
 * What ranks sent to each other, and where the time of each went: a table a question. Members that
 * are not what they should be count as 0.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/drps_size.h"
#include "base/folder/drps_manifest.h"
#include "api/report/drps_link.h"
#include "tools/stat/print.h"
#include "tools/drps_json_text.h"

enum { TABLE_RANKS = 12 /* that fit a line */, MOST_RANKS = DRPS_PLAN_WORKERS_MAX };

/* ---- What was sent ---- */

static const struct {
    const char *key, *name, *meaning;
} kinds[] = {
    {"pulled", "pulled", "parameters that a worker waits for"},
    {"ahead", "ahead", "parameters sent before it does"},
    {"pushed", "pushed", "gradients"},
    {"handed_on", "handed on", "rows with their state: they circulate, or workers have them"},
    {"sums", "sums", "of all documents, of topics; of gradients of a net's own parameters"},
    {"vectors", "vectors", "that gradients of a net's layers are made of"},
    {"marks", "marks", "which rows a message has"},
    {"fresh", "fresh", "parameters that nobody had trained: made by the worker"},
    {"unchanged", "unchanged", "parameters that the worker had as they were: not sent"},
    {"below", "below", "the same, but changed by too little: not sent"},
    {"cached", "cached", "parameters of which the worker had copies"},
    {"exchanged", "exchanged", "vectors, gradients and rows between ranks that have all rows"},
    {"batches", "batches", "samples, for a worker that took a batch over"},
};

/* A kind that this program does not know is shown under its own name. */
static size_t kind_of(const char *key)
{
    size_t k = 0;
    while (k < sizeof(kinds) / sizeof(*kinds) && strcmp(kinds[k].key, key) != 0)
        k++;
    return k;
}

/* The sum of a number of a kind over all ranks; `key` NULL: over all kinds. */
static uint64_t sum_kind(const json_t *ranks, const char *key, const char *number)
{
    uint64_t sum = 0;
    size_t i;
    json_t *r, *kind;
    const char *name;
    json_array_foreach(ranks, i, r)
    {
        json_object_foreach(json_object_get(r, "sent"), name, kind)
        {
            if (!key || strcmp(name, key) == 0) sum = drps_sum(sum, number_at(kind, number));
        }
    }
    return sum;
}

static uint64_t sum_of(const json_t *ranks, const char *key)
{
    uint64_t sum = 0;
    size_t i;
    json_t *r;
    json_array_foreach(ranks, i, r) sum = drps_sum(sum, number_at(r, key));
    return sum;
}

static void print_kind(const json_t *ranks, const char *key, uint64_t all)
{
    const uint64_t rows = sum_kind(ranks, key, "rows"), bytes = sum_kind(ranks, key, "bytes");
    const size_t k = kind_of(key);
    const int known = k < sizeof(kinds) / sizeof(*kinds);
    char text[DRPS_COUNT_BYTES];
    if (!rows && !bytes) return;
    printf("  %-10s %15s %10s %6.1f %%  %s\n", known ? kinds[k].name : key,
           rows ? drps_count_format(rows, text) : "-", size_text((double)bytes),
           all ? 100 * (double)bytes / (double)all : 0.0, known ? kinds[k].meaning : "");
}

static void print_kinds(const json_t *training, const json_t *ranks)
{
    const uint64_t all = sum_kind(ranks, NULL, "bytes");
    const json_t *kind;
    const char *key;
    printf("\ntraffic between ranks, of all epochs (%zu)\n  %-10s %15s %10s %8s\n",
           json_array_size(json_object_get(training, "epochs")), "", "rows", "bytes", "share");
    json_t *sent = json_object_get(json_array_get(ranks, 0), "sent");
    json_object_foreach(sent, key, kind) print_kind(ranks, key, all);
    const uint64_t planned = sum_of(ranks, "forecast_sent_bytes");
    printf("  %-10s %15s %10s", "in all", "", size_text((double)all));
    if (planned) printf("           the plan says %s", size_text((double)planned));
    printf("\n");
}

/* ---- From rank to rank ---- */

static uint64_t link_at(const json_t *table, size_t from, size_t to)
{
    const json_int_t v = json_integer_value(json_array_get(json_array_get(table, from), to));
    return v > 0 ? (uint64_t)v : 0;
}

/* What the rank's link carried in all epochs. */
static struct drps_link_load load_of(const json_t *sent, size_t ranks, size_t rank)
{
    struct drps_link_load load = {.rank = (uint32_t)rank};
    for (size_t k = 0; k < ranks; k++) {
        load.sent_bytes = drps_sum(load.sent_bytes, link_at(sent, rank, k));
        load.received_bytes = drps_sum(load.received_bytes, link_at(sent, k, rank));
    }
    return load;
}

static void print_table(const json_t *sent, size_t n)
{
    printf("\nbytes from rank to rank\n  %7s", "from");
    for (size_t k = 0; k < n; k++)
        printf("   to %5zu", k);
    printf(" %10s %10s\n", "sent", "received");
    for (size_t i = 0; i < n; i++) {
        const struct drps_link_load load = load_of(sent, n, i);
        printf("  %7zu", i);
        for (size_t k = 0; k < n; k++)
            printf(" %10s", i == k ? "-" : size_text((double)link_at(sent, i, k)));
        printf(" %10s %10s\n", size_text((double)load.sent_bytes),
               size_text((double)load.received_bytes));
    }
}

/* How far links are from what the plan says: the least and the most of it. */
static void print_against_forecast(const json_t *sent, const json_t *forecast, size_t n)
{
    double least = INFINITY, most = 0;
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < n; k++) {
            const uint64_t planned = link_at(forecast, i, k);
            const double part = (double)link_at(sent, i, k) / (double)planned;
            if (!planned) continue;
            if (part < least) least = part;
            if (part > most) most = part;
        }
    if (most > 0)
        printf("  from rank to rank %.1f to %.1f %% of what the plan says\n", 100 * least,
               100 * most);
}

/* Sent and received, to the mean of all. */
static void print_busiest(const json_t *sent, size_t n)
{
    double most = -1, all = 0;
    uint32_t busiest = 0;
    for (size_t i = 0; i < n; i++) {
        const struct drps_link_load load = load_of(sent, n, i);
        const double bytes = (double)load.sent_bytes + (double)load.received_bytes;
        if (bytes > most) busiest = load.rank;
        if (bytes > most) most = bytes;
        all += bytes;
    }
    if (all > 0)
        printf("  the busiest link is that of rank %" PRIu32 ": it carries %.2f of the average\n",
               busiest, most * (double)n / all);
}

static void print_links(const json_t *links, size_t n)
{
    const json_t *sent = json_object_get(links, "sent");
    if (json_array_size(sent) != n) return; /* too many ranks, or an older drps */
    if (n <= TABLE_RANKS) print_table(sent, n);
    print_against_forecast(sent, json_object_get(links, "forecast"), n);
    print_busiest(sent, n);
}

/* ---- The least time ---- */

static double mean_seconds(const json_t *epochs)
{
    double sum = 0;
    size_t i;
    json_t *e;
    json_array_foreach(epochs, i, e) sum += json_number_value(json_object_get(e, "seconds"));
    return sum / (double)i;
}

static void print_least(const json_t *training, const json_t *ranks, uint64_t link_bits)
{
    const json_t *epochs = json_object_get(training, "epochs");
    const uint64_t n = json_array_size(epochs);
    struct drps_link_load most = {0};
    char speed[DRPS_LINK_TEXT];
    size_t i;
    json_t *r;
    if (!n) return;
    json_array_foreach(ranks, i, r)
    {
        const struct drps_link_load load = {.rank = (uint32_t)i,
                                            .sent_bytes = number_at(r, "sent_bytes") / n,
                                            .received_bytes = number_at(r, "received_bytes") / n};
        drps_link_raise(&most, &load);
    }
    printf("  with links of %s (--link) an epoch takes %.4g s at least: rank %" PRIu32
           "'s sends %s and receives %s;\n  it took %.4g s\n",
           drps_link_speed_text(link_bits, speed), drps_link_seconds(&most, link_bits), most.rank,
           size_text((double)most.sent_bytes), size_text((double)most.received_bytes),
           mean_seconds(epochs));
}

/* ---- Where the time went ---- */

/* A column: the seconds of a rank, an epoch. */
static void print_seconds(const json_t *rank, const char *key, uint64_t epochs)
{
    const json_t *v = json_object_get(rank, key);
    if (json_is_number(v))
        printf(" %11.4f", json_number_value(v) / (double)epochs);
    else
        printf(" %11s", "-");
}

static int any_seconds(const json_t *ranks, const char *key)
{
    size_t i;
    json_t *r;
    json_array_foreach(ranks, i, r) if (json_number_value(json_object_get(r, key)) > 0) return 1;
    return 0;
}

static void print_times(const char *title, const char *const *heads, const char *const *keys,
                        const json_t *ranks, uint64_t epochs)
{
    size_t i;
    json_t *r;
    printf("\n%s\n  %4s", title, "rank");
    for (size_t k = 0; heads[k]; k++)
        printf(" %11s", heads[k]);
    printf("\n");
    json_array_foreach(ranks, i, r)
    {
        printf("  %4zu", i);
        for (size_t k = 0; keys[k]; k++)
            print_seconds(r, keys[k], epochs);
        printf("\n");
    }
}

static void print_all_times(const json_t *training, const json_t *ranks)
{
    static const char *const parts[] = {"compute", "reduce", "broadcast", NULL};
    static const char *const part_keys[] = {"compute_seconds", "reduce_seconds",
                                            "broadcast_seconds", NULL};
    static const char *const waits[] = {"network", "store", "scheduler", NULL};
    static const char *const wait_keys[] = {"network_seconds", "store_seconds", "held_seconds",
                                            NULL};
    const uint64_t epochs = json_array_size(json_object_get(training, "epochs"));
    if (!epochs || !json_object_get(json_array_get(ranks, 0), "network_seconds")) return;
    if (any_seconds(ranks, "broadcast_seconds"))
        print_times("training rounds, seconds an epoch: gradients; then until those of all have "
                    "stepped the rank's rows;\nthen until its worker has the next parameters",
                    parts, part_keys, ranks, epochs);
    print_times("waiting, seconds an epoch: for other ranks and the network; for rows from disk; "
                "for the scheduler",
                waits, wait_keys, ranks, epochs);
}

void stat_print_traffic(const json_t *training, uint64_t link_bits)
{
    const json_t *ranks = json_object_get(training, "ranks");
    const size_t n = json_array_size(ranks);
    if (n < 2 || n > MOST_RANKS) return;
    if (json_object_get(json_array_get(ranks, 0), "sent")) print_kinds(training, ranks);
    print_links(json_object_get(training, "links"), n);
    print_least(training, ranks, link_bits);
    print_all_times(training, ranks);
}
