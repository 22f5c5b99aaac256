/* Tables of members: documents and scripts rely on these names. */
#include "engine/cluster/traffic/drps_ranks_json.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#include "base/folder/drps_manifest.h"

static json_t *count(uint64_t v)
{
    return json_integer(v > INT64_MAX ? INT64_MAX : (json_int_t)v);
}

static json_t *number(double v)
{
    return isfinite(v) ? json_real(v) : json_null();
}

/* ---- What a rank has sent ---- */

static const char *const kinds[DRPS_TRAFFIC_KINDS] = {
    [DRPS_TRAFFIC_PULLED] = "pulled",       [DRPS_TRAFFIC_AHEAD] = "ahead",
    [DRPS_TRAFFIC_PUSHED] = "pushed",       [DRPS_TRAFFIC_HANDED] = "handed_on",
    [DRPS_TRAFFIC_MARKS] = "marks",         [DRPS_TRAFFIC_BATCHES] = "batches",
    [DRPS_TRAFFIC_FRESH] = "fresh",         [DRPS_TRAFFIC_UNCHANGED] = "unchanged",
    [DRPS_TRAFFIC_BELOW] = "below",         [DRPS_TRAFFIC_CACHED] = "cached",
    [DRPS_TRAFFIC_EXCHANGED] = "exchanged", [DRPS_TRAFFIC_SUMS] = "sums",
    [DRPS_TRAFFIC_VECTORS] = "vectors",
};

static json_t *sent_to_json(const struct drps_traffic_sum *sent)
{
    json_t *j = json_object();
    for (int k = 0; k < DRPS_TRAFFIC_KINDS; k++) {
        json_t *sum = json_object();
        drps_manifest_put(&sum, "rows", count(sent[k].rows));
        drps_manifest_put(&sum, "bytes", count(sent[k].bytes));
        drps_manifest_put(&j, kinds[k], sum);
    }
    return j;
}

/* ---- What of gradients was filtered ---- */

static json_t *push_to_json(const struct drps_push_counts *c)
{
    json_t *j = json_object();
    drps_manifest_put(&j, "plain_bytes", count(c->plain_bytes));
    drps_manifest_put(&j, "sent_bytes", count(c->sent_bytes));
    drps_manifest_put(&j, "whole_bytes", count(c->whole_bytes));
    drps_manifest_put(&j, "value_bytes", count(c->kept_bytes));
    drps_manifest_put(&j, "rows", count(c->rows));
    drps_manifest_put(&j, "whole_rows", count(c->whole_rows));
    drps_manifest_put(&j, "values", count(c->values));
    drps_manifest_put(&j, "zero", count(c->zero));
    drps_manifest_put(&j, "below", count(c->below));
    drps_manifest_put(&j, "beyond", count(c->beyond));
    drps_manifest_put(&j, "left_rows", count(c->left_rows));
    drps_manifest_put(&j, "left_sum", json_real(isfinite(c->left_sum) ? c->left_sum : 0));
    return j;
}

/* ---- What of parameters was filtered ---- */

static json_t *pull_to_json(const struct drps_pull_counts *c)
{
    json_t *j = json_object();
    drps_manifest_put(&j, "plain_bytes", count(c->plain_bytes));
    drps_manifest_put(&j, "sent_bytes", count(c->sent_bytes));
    drps_manifest_put(&j, "rows", count(c->rows));
    drps_manifest_put(&j, "unchanged", count(c->unchanged));
    drps_manifest_put(&j, "below", count(c->below));
    return j;
}

/* ---- A rank ---- */

static const struct {
    const char *key;
    size_t at;   /* in struct drps_train_rank */
    int is_real; /* 1: a double; 0: a count of 64 bits */
} members[] = {
#define COUNT(field)                                                                               \
    {                                                                                              \
#field, offsetof(struct drps_train_rank, field), 0                                         \
    }
#define REAL(field)                                                                                \
    {                                                                                              \
#field, offsetof(struct drps_train_rank, field), 1                                         \
    }
    COUNT(sent_bytes),
    COUNT(received_bytes),
    COUNT(forecast_sent_bytes),
    COUNT(forecast_received_bytes),
    COUNT(other_sent_bytes),
    COUNT(read_bytes),
    COUNT(written_bytes),
    REAL(waiting_seconds),
    REAL(waiting_share),
    REAL(network_seconds),
    REAL(store_seconds),
    REAL(compute_seconds),
    REAL(reduce_seconds),
    REAL(broadcast_seconds),
    COUNT(peak_rss_bytes),
    COUNT(iterations),
    COUNT(claimed),
    COUNT(ahead_asked),
    COUNT(ahead_used),
    COUNT(ahead_there),
    COUNT(ahead_bytes),
    REAL(held_seconds),
    REAL(lag_mean),
    COUNT(lag_max),
    REAL(stale_mean),
    COUNT(stale_max),
#undef COUNT
#undef REAL
};

/* The bins up to the last that is not empty. */
static json_t *bins_to_json(const uint64_t *bin, size_t n)
{
    json_t *list = json_array();
    while (n && !bin[n - 1])
        n--;
    for (size_t i = 0; i < n; i++)
        drps_manifest_append(&list, count(bin[i]));
    return list;
}

static json_t *member_to_json(const struct drps_train_rank *rank, size_t m)
{
    uint64_t n;
    double real;
    const char *at = (const char *)rank + members[m].at;
    memcpy(&n, at, sizeof(n));
    memcpy(&real, at, sizeof(real));
    return members[m].is_real ? number(real) : count(n);
}

static json_t *rank_to_json(const struct drps_train_rank *rank, size_t i)
{
    json_t *j = json_object();
    drps_manifest_put(&j, "rank", count(i));
    for (size_t m = 0; m < sizeof(members) / sizeof(*members); m++)
        drps_manifest_put(&j, members[m].key, member_to_json(rank, m));
    drps_manifest_put(&j, "stale", bins_to_json(rank->stale, DRPS_SCHED_STALE_BINS));
    drps_manifest_put(&j, "sent", sent_to_json(rank->sent));
    if (rank->push.plain_bytes) drps_manifest_put(&j, "push", push_to_json(&rank->push));
    if (rank->pull.plain_bytes) drps_manifest_put(&j, "pull", pull_to_json(&rank->pull));
    return j;
}

json_t *drps_ranks_to_json(const struct drps_train_rank *ranks, size_t n)
{
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++)
        drps_manifest_append(&list, rank_to_json(&ranks[i], i));
    return list;
}

/* ---- Links ---- */

static json_t *table_to_json(const uint64_t *bytes, size_t ranks)
{
    json_t *list = json_array();
    for (size_t i = 0; i < ranks; i++) {
        json_t *row = json_array();
        for (size_t k = 0; k < ranks; k++)
            drps_manifest_append(&row, count(bytes[i * ranks + k]));
        drps_manifest_append(&list, row);
    }
    return list;
}

json_t *drps_links_to_json(const struct drps_train_links *links, size_t ranks)
{
    if (!links->sent || !links->forecast) return json_null();
    json_t *j = json_object();
    drps_manifest_put(&j, "sent", table_to_json(links->sent, ranks));
    drps_manifest_put(&j, "forecast", table_to_json(links->forecast, ranks));
    return j;
}
