/*
 * Samples of several machines, and the worker that trains on each (drps_together.h).
 *
 * Dealt in turn, sample i of all is in batch i / batch_size. i is known where orders are sorted:
 * each rank sorts a range of them, and answers with workers. Then samples go straight there.
 */
#include "index/together/drps_together.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"
#include "index/plan/drps_names.h"

/* ---- Batches of all ranks ---- */

static uint64_t ceil_div(uint64_t a, uint64_t b)
{
    return (a + b - 1) / b;
}

uint64_t drps_together_batches(const struct assignment *a)
{
    uint64_t samples = 0;
    for (uint32_t w = 0; w < a->workers; w++)
        samples += a->samples[w];
    return a->whole_rounds ? ceil_div(samples, a->full[0]) : a->rounds * a->workers;
}

uint64_t drps_together_own_batches(const struct assignment *a, uint32_t rank)
{
    const uint64_t batches = drps_together_batches(a);
    return batches > rank ? ceil_div(batches - rank, a->workers) : 0;
}

void drps_together_keep(const struct swap_ranks *ranks, const uint64_t *samples_of,
                        uint64_t batch_size, struct assignment *out)
{
    uint64_t most = 0;
    *out = (struct assignment){.workers = ranks->count};
    for (uint32_t r = 0; r < ranks->count; r++) {
        out->samples[r] = samples_of[r];
        if (samples_of[r] > most) most = samples_of[r];
    }
    out->rounds = ceil_div(most, batch_size);
}

/* All batches but the last are full. */
static void deal_batches(const struct swap_ranks *ranks, uint64_t samples, uint64_t batch_size,
                         struct assignment *out)
{
    const uint64_t batches = ceil_div(samples, batch_size);
    *out = (struct assignment){.workers = ranks->count, .whole_rounds = 1};
    for (uint32_t w = 0; w < ranks->count; w++)
        out->full[w] = batch_size;
    for (uint32_t w = 0; w < ranks->count && batches > w; w++)
        out->samples[w] = ceil_div(batches - w, ranks->count) * batch_size;
    if (batches) out->samples[(batches - 1) % ranks->count] -= batches * batch_size - samples;
    out->rounds = ceil_div(batches, ranks->count);
}

/* ---- From any order to a file in it, with placed ids ---- */

struct dealing {
    struct swap_ranks *ranks;
    const struct together_move *move;
    struct spool *line;   /* own: this rank's samples in their order */
    struct swap *orders;  /* own: of samples, to those who sort them; NULL: order of arrival */
    struct swap *workers; /* own: of each of them, back */
    struct swap *samples; /* own: to the workers */
    uint64_t next;        /* order of arrival: the number of the next sample, of all ranks' */
};

static uint32_t sorter_of(const struct dealing *d, uint64_t order)
{
    return (uint32_t)((__uint128_t)order * d->ranks->count >> 64);
}

static int add_to_line(void *ctx, struct spool_sample *s, struct drps_err *err)
{
    struct dealing *d = ctx;
    for (uint32_t i = 0; d->move->map && i < s->n; i++)
        s->ids[i] = d->move->map[s->ids[i]];
    if (d->move->label_of) s->label = d->move->label_of[(uint32_t)s->label];
    int rc = 0;
    if (d->orders)
        rc = drps_swap_put(d->orders, sorter_of(d, s->order), &s->order, sizeof(s->order), err);
    return rc == 0 ? drps_spool_add(d->line, s, err) : rc;
}

static int line_up(struct dealing *d, const char *name, struct spool **spool, struct drps_err *err)
{
    const struct spool_visitor visitor = {.visit = add_to_line, .ctx = d};
    char line[64];
    (void)snprintf(line, sizeof(line), "%s-line", name);
    int rc = drps_spool_open(d->ranks->io, d->move->dir, line, 1, 0, &d->line, err);
    if (rc == 0) rc = drps_spool_drain(*spool, d->move->memory_bytes, &visitor, err);
    if (rc == 0) rc = drps_spool_finish(d->line, err);
    drps_spool_close(*spool);
    *spool = NULL;
    return rc;
}

/* ---- Whose each sample is ---- */

/* The orders of one rank that this one sorts. */
struct sorted {
    uint64_t order;
    int there; /* 1: it is the next of the stream */
};

static int next_order(struct dealing *d, uint32_t from, struct sorted *at, struct drps_err *err)
{
    const uint64_t before = at->order;
    const int first = !at->there;
    at->there = drps_swap_left(d->orders, from) > 0;
    if (!at->there) return 0;
    int rc = drps_swap_take(d->orders, from, &at->order, sizeof(at->order), err);
    if (rc == 0 && ((!first && at->order < before) || sorter_of(d, at->order) != d->ranks->rank))
        rc = drps_swap_fault(from, "samples out of order", err);
    return rc;
}

/* Merge the orders, and answer each with the worker whose batch its sample is in: `index` is the
 * number of the first. Equal orders are those of the ranks in turn. */
static int merge_orders(struct dealing *d, struct sorted *at, uint64_t index, struct drps_err *err)
{
    const uint32_t count = d->ranks->count;
    int rc = 0;
    for (uint32_t r = 0; r < count && rc == 0; r++)
        rc = next_order(d, r, &at[r], err);
    while (rc == 0) {
        uint32_t least = count;
        for (uint32_t r = 0; r < count; r++)
            if (at[r].there && (least == count || at[r].order < at[least].order)) least = r;
        if (least == count) break;
        const uint32_t worker = (uint32_t)(index++ / d->move->batch_size % count);
        rc = drps_swap_put(d->workers, least, &worker, sizeof(worker), err);
        if (rc == 0) rc = next_order(d, least, &at[least], err);
    }
    return rc;
}

static int answer_orders(struct dealing *d, struct drps_err *err)
{
    const uint32_t count = d->ranks->count, rank = d->ranks->rank;
    struct sorted *at = calloc(count, sizeof(*at));
    uint64_t *counts = NULL, mine = 0, before = 0;
    int rc = at ? 0 : drps_err_set(err, -ENOMEM, "no memory to deal samples");
    for (uint32_t r = 0; r < count && rc == 0; r++)
        mine += drps_swap_left(d->orders, r) / sizeof(uint64_t);
    if (rc == 0) rc = drps_swap_gather(d->ranks, &mine, 1, &counts, err);
    for (uint32_t r = 0; r < rank && rc == 0; r++)
        before += counts[r];
    if (rc == 0) rc = drps_swap_open(d->ranks, &d->workers, err);
    if (rc == 0) rc = merge_orders(d, at, before, err);
    if (rc == 0) rc = drps_swap_end(d->workers, err);
    free(at);
    free(counts);
    return rc;
}

static int worker_of(struct dealing *d, const struct spool_sample *s, uint32_t *worker_out,
                     struct drps_err *err)
{
    const uint32_t count = d->ranks->count;
    if (!d->workers) {
        *worker_out = (uint32_t)(d->next++ / d->move->batch_size % count);
        return 0;
    }
    const uint32_t sorter = sorter_of(d, s->order);
    int rc = drps_swap_take(d->workers, sorter, worker_out, sizeof(*worker_out), err);
    return rc == 0 && *worker_out >= count ? drps_swap_fault(sorter, "no worker", err) : rc;
}

/* ---- To the workers ---- */

/* A sample on its way; then ids u32[n], values f32[n] and fields u16[n] where it has them. */
struct head {
    uint64_t order;
    float label, weight;
    uint32_t n, has; /* HAS_VALUES, HAS_FIELDS */
};
enum { HAS_VALUES = 1, HAS_FIELDS = 2 };

static int send_sample(void *ctx, struct spool_sample *s, struct drps_err *err)
{
    struct dealing *d = ctx;
    const struct head head = {s->order, s->label, s->weight, s->n,
                              (s->values ? HAS_VALUES : 0u) | (s->fields ? HAS_FIELDS : 0u)};
    uint32_t to = 0;
    int rc = worker_of(d, s, &to, err);
    if (rc == 0) rc = drps_swap_put(d->samples, to, &head, sizeof(head), err);
    if (rc == 0) rc = drps_swap_put(d->samples, to, s->ids, s->n * sizeof(*s->ids), err);
    if (rc == 0 && s->values)
        rc = drps_swap_put(d->samples, to, s->values, s->n * sizeof(*s->values), err);
    if (rc == 0 && s->fields)
        rc = drps_swap_put(d->samples, to, s->fields, s->n * sizeof(*s->fields), err);
    return rc;
}

static int send_samples(struct dealing *d, struct drps_err *err)
{
    const struct spool_visitor visitor = {.visit = send_sample, .ctx = d};
    int rc = drps_swap_open(d->ranks, &d->samples, err);
    if (rc == 0) rc = drps_spool_walk(d->line, &visitor, err);
    if (rc == 0) rc = drps_swap_end(d->samples, err);
    drps_spool_close(d->line);
    d->line = NULL;
    return rc;
}

/* A sample that has come, in memory that is used again for the next. */
struct arrived {
    uint32_t *ids;
    float *values;
    uint16_t *fields;
    size_t ids_cap, values_cap, fields_cap;
};

static int is_label(const struct dealing *d, float label)
{
    if (!d->move->classes) return isfinite(label);
    return label >= 0 && label < (float)d->move->classes && label == floorf(label);
}

static int check_sample(const struct dealing *d, uint32_t from, const struct head *h,
                        struct drps_err *err)
{
    const uint64_t entry = sizeof(uint32_t) + (h->has & HAS_VALUES ? sizeof(float) : 0) +
                           (h->has & HAS_FIELDS ? sizeof(uint16_t) : 0);
    const int has_fields = (h->has & HAS_FIELDS) != 0;
    if (h->n < SPOOL_ENTRIES_MOST && (!h->n || has_fields == (d->move->fields > 0)) &&
        h->has <= (HAS_VALUES | HAS_FIELDS) && h->n * entry <= drps_swap_left(d->samples, from) &&
        is_label(d, h->label) && h->weight > 0 && isfinite(h->weight))
        return 0;
    return drps_swap_fault(from, "a sample that makes no sense", err);
}

static int check_ids(const struct dealing *d, uint32_t from, const uint32_t *ids, uint32_t n,
                     struct drps_err *err)
{
    for (uint32_t i = 0; i < n; i++)
        if (ids[i] >= d->move->rows && ids[i] != DRPS_NO_ROW)
            return drps_swap_fault(from, "a sample with a row that there is not", err);
    return 0;
}

static int check_fields(const struct dealing *d, uint32_t from, const uint16_t *fields, uint32_t n,
                        struct drps_err *err)
{
    for (uint32_t i = 0; !d->move->test && i < n; i++)
        if (fields[i] >= d->move->fields)
            return drps_swap_fault(from, "a sample with a field that there is not", err);
    return 0;
}

static int take_sample(struct dealing *d, uint32_t from, struct arrived *a, struct spool *to,
                       struct drps_err *err)
{
    struct head h;
    int rc = drps_swap_take(d->samples, from, &h, sizeof(h), err);
    if (rc == 0) rc = check_sample(d, from, &h, err);
    if (rc < 0) return rc;
    if (drps_array_reserve(&a->ids, &a->ids_cap, h.n, sizeof(*a->ids)) ||
        drps_array_reserve(&a->values, &a->values_cap, h.n, sizeof(*a->values)) ||
        drps_array_reserve(&a->fields, &a->fields_cap, h.n, sizeof(*a->fields)))
        return drps_err_set(err, -ENOMEM, "no memory for a sample with %" PRIu32 " features", h.n);
    rc = drps_swap_take(d->samples, from, a->ids, h.n * sizeof(*a->ids), err);
    if (rc == 0) rc = check_ids(d, from, a->ids, h.n, err);
    if (rc == 0 && h.has & HAS_VALUES)
        rc = drps_swap_take(d->samples, from, a->values, h.n * sizeof(*a->values), err);
    if (rc == 0 && h.has & HAS_FIELDS)
        rc = drps_swap_take(d->samples, from, a->fields, h.n * sizeof(*a->fields), err);
    if (rc == 0 && h.has & HAS_FIELDS) rc = check_fields(d, from, a->fields, h.n, err);
    if (rc < 0) return rc;
    const struct spool_sample s = {.order = h.order,
                                   .label = h.label,
                                   .weight = h.weight,
                                   .n = h.n,
                                   .ids = a->ids,
                                   .values = h.has & HAS_VALUES ? a->values : NULL,
                                   .fields = h.has & HAS_FIELDS ? a->fields : NULL};
    return drps_spool_add(to, &s, err);
}

static int take_samples(struct dealing *d, const char *name, struct spool **out,
                        struct drps_err *err)
{
    struct arrived a = {0};
    char dealt[64];
    (void)snprintf(dealt, sizeof(dealt), "%s-dealt", name);
    int rc = drps_spool_open(d->ranks->io, d->move->dir, dealt,
                             d->move->by_order ? SPOOL_BUCKETS : 1, 0, out, err);
    for (uint32_t from = 0; from < d->ranks->count && rc == 0; from++)
        while (rc == 0 && drps_swap_left(d->samples, from))
            rc = take_sample(d, from, &a, *out, err);
    if (rc == 0) rc = drps_spool_finish(*out, err);
    free(a.ids);
    free(a.values);
    free(a.fields);
    return rc;
}

/* ---- The whole ---- */

static int deal(struct dealing *d, const char *name, struct spool **spool, struct drps_err *err)
{
    int rc = 0;
    for (uint32_t r = 0; r < d->ranks->rank; r++)
        d->next += d->move->samples_of[r];
    if (d->move->by_order) rc = drps_swap_open(d->ranks, &d->orders, err);
    if (rc == 0) rc = line_up(d, name, spool, err);
    if (rc == 0 && d->orders) rc = drps_swap_end(d->orders, err);
    if (rc == 0 && d->orders) rc = answer_orders(d, err);
    if (rc == 0) rc = send_samples(d, err);
    return rc == 0 ? take_samples(d, name, spool, err) : rc;
}

int drps_together_deal(struct swap_ranks *ranks, const struct together_move *move, const char *name,
                       struct spool **spool, struct assignment *out, struct drps_err *err)
{
    struct dealing d = {.ranks = ranks, .move = move};
    uint64_t samples = 0;
    for (uint32_t r = 0; r < ranks->count; r++)
        samples += move->samples_of[r];
    deal_batches(ranks, samples, move->batch_size, out);
    int rc = deal(&d, name, spool, err);
    drps_spool_close(d.line);
    drps_swap_close(d.orders);
    drps_swap_close(d.workers);
    drps_swap_close(d.samples);
    return rc;
}
