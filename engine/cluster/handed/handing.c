/* The worker's side: slots, what a round does with them, and the step of what they hold. */
#include "engine/cluster/handed/drps_handing.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"
#include "engine/cluster/handed/records.h"
#include "index/plan/drps_handed.h"

struct drps_handing {
    struct drps_handing_job job;
    const struct drps_plan_ranks *ranks; /* of the plan */
    struct handed_records records;
    struct drps_handed_most most;
    struct drps_handed_rows rows; /* own: of the round */
    size_t row_bytes, dim;
    unsigned char *slots; /* own: [slots][row_bytes] */
    uint8_t *away;        /* own: [max_batch_rows] */
    uint32_t *server;     /* own: [max_batch_rows] of each row that is here */
    float *sums;          /* own: [max_batch_rows][dim] */
    uint32_t *touches;    /* own: [max_batch_rows] */
    const uint32_t *shares;
    struct drps_handing_counts *counts; /* own: [ranks] */
};

/* ---- Opening ---- */

int drps_handing_applies(const struct drps_plan_info *info, const struct drps_train_options *train,
                         const struct drps_optim *optim)
{
    return info->ranks.handed.slots && train->sync == DRPS_SCHED_BSP && !train->no_hand_on &&
           drps_optim_row_floats(optim, info->dim) <= info->dim * (1 + info->ranks.handed.states);
}

static struct drps_handed_most most_of(const struct drps_plan_info *info)
{
    return (struct drps_handed_most){.rows = info->max_batch_rows,
                                     .slots = info->ranks.handed.slots,
                                     .ranks = info->ranks.count,
                                     .rank = info->ranks.rank};
}

/* A worker has, of a batch's rows, some on their way out, and as many come in; so does a server of
 * each worker. */
uint64_t drps_handing_memory(const struct drps_plan_info *info, size_t row_bytes)
{
    const struct drps_handed_most most = most_of(info);
    const uint64_t rows = info->max_batch_rows, uses = info->ranks.max_round_uses;
    const uint64_t arrays = rows * (info->dim * sizeof(float) + 2 * sizeof(uint32_t) + 1);
    const uint64_t lent = uses * 2 * (sizeof(uint32_t) + 1) + info->ranks.max_round_rows * 2;
    return most.slots * row_bytes + drps_handed_memory(&most) + arrays + lent +
           (3 * rows + 2 * uses) * row_bytes + 2 * HANDED_RECORDS_MEMORY;
}

uint64_t drps_handing_message_bytes(const struct drps_plan_info *info)
{
    const struct drps_plan_handed *handed = &info->ranks.handed;
    if (!handed->slots) return 0;
    return info->max_batch_rows * info->dim * sizeof(float) * (1 + handed->states);
}

static int allocate(struct drps_handing *h, struct drps_err *err)
{
    const size_t rows = h->most.rows;
    h->slots = drps_array_new(h->most.slots, h->row_bytes);
    h->away = drps_array_new(rows, sizeof(*h->away));
    h->server = drps_array_new(rows, sizeof(*h->server));
    h->sums = drps_array_new(rows, h->dim * sizeof(*h->sums));
    h->touches = drps_array_new(rows, sizeof(*h->touches));
    h->counts = calloc(h->most.ranks, sizeof(*h->counts));
    if (h->slots && h->away && h->server && h->sums && h->touches && h->counts)
        return drps_handed_allocate(&h->rows, &h->most, err);
    return drps_err_set(err, -ENOMEM, "no memory for rows that are handed on");
}

int drps_handing_open(const struct drps_handing_job *job, struct drps_handing **handing_out,
                      struct drps_err *err)
{
    *handing_out = NULL;
    struct drps_handing *h = calloc(1, sizeof(*h));
    if (!h) return drps_err_set(err, -ENOMEM, "no memory for rows that are handed on");
    h->job = *job;
    h->ranks = &job->plan->info.ranks;
    h->most = most_of(&job->plan->info);
    h->row_bytes = job->server->row_bytes;
    h->dim = job->plan->info.dim;
    int rc = allocate(h, err);
    if (rc == 0)
        rc = handed_records_open(&h->records, job->plan, DRPS_FILE_HANDED, DRPS_KIND_HANDED,
                                 job->epochs, job->is_over, err);
    if (rc < 0) {
        drps_handing_close(h);
        return rc;
    }
    *handing_out = h;
    return 0;
}

void drps_handing_close(struct drps_handing *h)
{
    if (!h) return;
    handed_records_close(&h->records);
    drps_handed_free(&h->rows);
    free(h->slots);
    free(h->away);
    free(h->server);
    free(h->sums);
    free(h->touches);
    free(h->counts);
    free(h);
}

/* ---- What the record says ---- */

static int no_worker(uint32_t rank, struct drps_err *err)
{
    return drps_err_set(err, DRPS_E_CORRUPT, "rank %u, without samples, has rows handed on", rank);
}

/* Find the server of each row that is here. Rows of the rank's own server never are. */
static int find_servers(struct drps_handing *h, struct drps_err *err)
{
    uint32_t server = 0, first = 0;
    for (uint32_t i = 0; i < h->rows.used_n; i++) {
        while (h->rows.place[i] - first >= h->shares[server])
            first += h->shares[server++];
        if (server == h->ranks->rank)
            return drps_err_set(err, DRPS_E_CORRUPT, "a row of the rank's own server is away");
        h->server[i] = server;
        h->away[h->rows.place[i]] = 1;
        h->counts[server].used++;
        h->counts[server].taken += h->rows.taken[i];
        h->counts[server].returned += h->rows.to[i] == DRPS_HANDED_RETURNED;
    }
    return 0;
}

static int count_workers(struct drps_handing *h, struct drps_err *err)
{
    for (uint32_t i = 0; i < h->rows.arrive_n; i++) {
        const uint32_t from = h->rows.arrive_from[i];
        if (!drps_rank_trains(h->ranks, from)) return no_worker(from, err);
        h->counts[from].arrived++;
    }
    for (uint32_t i = 0; i < h->rows.used_n; i++) {
        const uint32_t to = h->rows.to[i];
        if (to >= DRPS_HANDED_RETURNED) continue;
        if (!drps_rank_trains(h->ranks, to)) return no_worker(to, err);
        h->counts[to].handed++;
    }
    return 0;
}

/* No rank sends more rows to another than a batch has: messages are no larger. */
static int check_counts(const struct drps_handing *h, struct drps_err *err)
{
    for (uint32_t r = 0; r < h->most.ranks; r++)
        if (h->counts[r].arrived > h->job.plan->info.max_batch_rows)
            return drps_err_set(err, DRPS_E_CORRUPT, "%u rows of rank %u arrive, a batch has %llu",
                                h->counts[r].arrived, r,
                                (unsigned long long)h->job.plan->info.max_batch_rows);
    return 0;
}

int drps_handing_begin(struct drps_handing *h, int training, size_t rows, const uint32_t *shares,
                       struct drps_err *err)
{
    const void *record;
    size_t bytes;
    memset(h->counts, 0, h->most.ranks * sizeof(*h->counts));
    memset(h->away, 0, rows);
    h->rows.used_n = h->rows.arrive_n = 0;
    h->shares = shares;
    h->most.rows = rows;
    if (!training) return 0;
    int rc = handed_records_next(&h->records, &record, &bytes, err);
    if (rc == 0) rc = drps_handed_decode(record, bytes, &h->most, &h->rows, err);
    if (rc == 0) rc = find_servers(h, err);
    if (rc == 0) rc = count_workers(h, err);
    return rc == 0 ? check_counts(h, err) : rc;
}

const struct drps_handing_counts *drps_handing_counts(const struct drps_handing *h, uint32_t rank)
{
    return &h->counts[rank];
}

const uint8_t *drps_handing_away(const struct drps_handing *h)
{
    return h->rows.used_n ? h->away : NULL;
}

/* ---- Rows that come ---- */

static void *slot_at(const struct drps_handing *h, uint32_t slot)
{
    return h->slots + (size_t)slot * h->row_bytes;
}

void drps_handing_take(struct drps_handing *h, uint32_t server, const void *data)
{
    const unsigned char *from = data;
    for (uint32_t i = 0; i < h->rows.used_n; i++) {
        if (h->server[i] != server || !h->rows.taken[i]) continue;
        memcpy(slot_at(h, h->rows.slot[i]), from, h->row_bytes);
        from += h->row_bytes;
    }
}

void drps_handing_arrive(struct drps_handing *h, uint32_t from, const void *data)
{
    const unsigned char *at = data;
    for (uint32_t i = 0; i < h->rows.arrive_n; i++) {
        if (h->rows.arrive_from[i] != from) continue;
        memcpy(slot_at(h, h->rows.arrive_slot[i]), at, h->row_bytes);
        at += h->row_bytes;
    }
}

void drps_handing_fill(const struct drps_handing *h, float *params)
{
    for (uint32_t i = 0; i < h->rows.used_n; i++)
        memcpy(params + h->rows.place[i] * h->dim, slot_at(h, h->rows.slot[i]),
               h->dim * sizeof(*params));
}

/* ---- The step ---- */

/* As a server adds the gradients of a row, to zeros: so the bytes are the same. */
static void add_up(struct drps_handing *h, const float *grads, const uint32_t *touches)
{
    for (uint32_t i = 0; i < h->rows.used_n; i++) {
        const float *g = grads + h->rows.place[i] * h->dim;
        float *sum = h->sums + i * h->dim;
        for (size_t k = 0; k < h->dim; k++)
            sum[k] = 0.0F + g[k];
        if (touches) h->touches[i] = touches[h->rows.place[i]];
    }
}

static void close_gaps(const struct drps_handing *h, float *grads, uint32_t *touches)
{
    size_t first = 0;
    for (uint32_t s = 0; s < h->most.ranks; s++) {
        size_t to = first;
        for (size_t i = first; i < first + h->shares[s]; i++) {
            if (h->away[i]) continue;
            if (to < i) memcpy(grads + to * h->dim, grads + i * h->dim, h->dim * sizeof(*grads));
            if (touches) touches[to] = touches[i];
            to++;
        }
        first += h->shares[s];
    }
}

void drps_handing_step(struct drps_handing *h, float *grads, uint32_t *touches)
{
    const struct drps_rows rows = {.base = (char *)h->slots,
                                   .stride = h->row_bytes,
                                   .index = h->rows.slot,
                                   .n = h->rows.used_n};
    if (!h->rows.used_n) return;
    add_up(h, grads, touches);
    drps_optim_step(&h->job.server->optim, (uint32_t)h->dim, &rows, 0, rows.n, h->sums,
                    touches ? h->touches : NULL, 0);
    close_gaps(h, grads, touches);
}

/* ---- Rows that go ---- */

size_t drps_handing_return(const struct drps_handing *h, uint32_t server, void *out)
{
    unsigned char *at = out;
    for (uint32_t i = 0; i < h->rows.used_n; i++) {
        if (h->server[i] != server || h->rows.to[i] != DRPS_HANDED_RETURNED) continue;
        memcpy(at, slot_at(h, h->rows.slot[i]), h->row_bytes);
        at += h->row_bytes;
    }
    return (size_t)(at - (unsigned char *)out);
}

size_t drps_handing_hand_on(const struct drps_handing *h, uint32_t to, void *out)
{
    unsigned char *at = out;
    for (uint32_t i = 0; i < h->rows.used_n; i++) {
        if (h->rows.to[i] != to) continue;
        memcpy(at, slot_at(h, h->rows.slot[i]), h->row_bytes);
        at += h->row_bytes;
    }
    return (size_t)(at - (unsigned char *)out);
}
