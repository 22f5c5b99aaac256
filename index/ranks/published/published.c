/*
 * A pass over the rounds of a server: who keeps copies of its rows, by the residual slots of the
 * workers. A row whose first copy is made gets a slot, and gives it up with the last copy; a slot
 * that was given up is free after the next round, of which some rows are opened before this one is
 * over.
 */
#include "index/ranks/published/drps_published_slots.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"
#include "base/drps_size.h"
#include "index/plan/drps_batch.h"
#include "index/plan/drps_plan.h"
#include "index/plan/codec/drps_published.h"
#include "index/plan/drps_residuals.h"

struct slot_list {
    uint32_t *slot; /* own */
    size_t n, cap;
};

struct publishing {
    const struct published_job *job;
    const struct drps_plan_ranks *ranks;
    uint32_t rank, first, end; /* the server's rows */
    uint64_t rounds, slots;
    struct steps *batches, *unions;
    struct drps_residual_rows batch; /* own: a worker's rows of other servers */
    size_t batch_slot_cap, batch_whole_cap, batch_room_cap;
    struct drps_published_rows round; /* own */
    size_t slot_cap, keeps_cap, room_cap;
    uint64_t *base;   /* own: [ranks] where a worker's bits begin in `has` */
    uint64_t *has;    /* own: a bit for each residual slot: a copy is in it */
    uint16_t *copies; /* own: [rows] workers that have one */
    uint32_t *slot;   /* own: [rows] or DRPS_NOT_PUBLISHED */
    struct slot_list free, given_up, before; /* in this round, in the one before */
    struct drps_recwriter *out;
    unsigned char *packed; /* own */
    size_t packed_cap;
};

static int no_memory(struct drps_err *err)
{
    return drps_err_set(err, -ENOMEM, "no memory for published slots");
}

/* ---- A worker's batch ---- */

static int has_copy(const struct publishing *p, uint64_t bit)
{
    return (int)(p->has[bit / 64] >> bit % 64 & 1);
}

/* Every batch moves these rows, and every score depends on them: no copy of them counts. */
static int is_sent_always(const struct publishing *p, uint32_t row)
{
    return p->first + row < p->job->always;
}

/* The server's row of the i-th of a batch; UINT32_MAX: another server has it. */
static uint32_t row_of(const struct publishing *p, const uint32_t *rows, size_t i)
{
    return rows[i] >= p->first && rows[i] < p->end ? rows[i] - p->first : UINT32_MAX;
}

/* Copies that are given up, of any server: another row of the batch may have the slot. */
static void give_up(struct publishing *p, uint64_t base, const uint32_t *rows)
{
    for (uint32_t i = 0; i < p->batch.n; i++) {
        if (!p->batch.whole[i] || p->batch.slot[i] == DRPS_NO_SLOT) continue;
        const uint64_t bit = base + p->batch.slot[i];
        const uint32_t row = row_of(p, rows, i);
        if (row != UINT32_MAX && has_copy(p, bit) && !is_sent_always(p, row)) p->copies[row]--;
        p->has[bit / 64] &= ~(UINT64_C(1) << bit % 64);
    }
}

static void keep(struct publishing *p, uint64_t base, const uint32_t *rows)
{
    for (uint32_t i = 0; i < p->batch.n; i++) {
        const uint32_t row = row_of(p, rows, i);
        const int keeps = !p->batch.whole[i], counts = row != UINT32_MAX && !is_sent_always(p, row);
        if (row != UINT32_MAX) p->round.keeps[p->round.uses++] = (uint8_t)(keeps && counts);
        if (!keeps) continue;
        const uint64_t bit = base + p->batch.slot[i];
        if (counts && !has_copy(p, bit)) p->copies[row]++;
        p->has[bit / 64] |= UINT64_C(1) << bit % 64;
    }
}

static int reserve_batch(struct publishing *p, size_t n, struct drps_err *err)
{
    struct drps_residual_rows *b = &p->batch;
    struct drps_published_rows *r = &p->round;
    if (drps_array_reserve(&b->slot, &p->batch_slot_cap, n, sizeof(*b->slot)) ||
        drps_array_reserve(&b->whole, &p->batch_whole_cap, n, sizeof(*b->whole)) ||
        drps_array_reserve(&b->room, &p->batch_room_cap, 3 * n, sizeof(*b->room)) ||
        drps_array_reserve(&r->keeps, &p->keeps_cap, r->uses + n, sizeof(*r->keeps)))
        return no_memory(err);
    return 0;
}

/* Its rows of other servers, put behind the room that decoding needs. */
static uint32_t *list_remote(struct publishing *p, uint32_t worker, const uint32_t *rows, size_t n)
{
    const uint32_t *first = p->job->split->owners->first;
    uint32_t *out = p->batch.room + 2 * n;
    p->batch.n = 0;
    for (size_t i = 0; i < n; i++)
        if (rows[i] < first[worker] || rows[i] >= first[worker + 1]) out[p->batch.n++] = rows[i];
    return out;
}

/* The worker of the same rank has no copies: its uses keep nothing. */
static void add_own(struct publishing *p, const uint32_t *rows, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (row_of(p, rows, i) != UINT32_MAX) p->round.keeps[p->round.uses++] = 0;
}

static int add_batch(struct publishing *p, uint32_t worker, uint64_t round,
                     const struct drps_piece *record, struct drps_err *err)
{
    const struct split_job *job = p->job->split;
    const uint64_t batch = round * p->ranks->workers + worker - p->ranks->first_worker;
    const uint32_t all = job->owners->first[job->owners->servers], *rows = NULL;
    size_t n = 0;
    if (batch >= job->batches) return 0; /* the last round may leave a worker without */
    int rc = drps_steps_rows(p->batches, batch, all, &rows, &n, err);
    if (rc == 0) rc = reserve_batch(p, n, err);
    if (rc < 0) return rc;
    if (worker == p->rank) {
        add_own(p, rows, n);
        return 0;
    }
    const uint32_t *remote = list_remote(p, worker, rows, n);
    rc = drps_residuals_decode(record->data, record->bytes, p->job->slots[worker], &p->batch, err);
    if (rc < 0) return rc;
    give_up(p, p->base[worker], remote);
    keep(p, p->base[worker], remote);
    return 0;
}

/* ---- Slots ---- */

static int push_slot(struct slot_list *list, uint32_t slot, struct drps_err *err)
{
    if (drps_array_reserve(&list->slot, &list->cap, list->n + 1, sizeof(*list->slot)))
        return no_memory(err);
    list->slot[list->n++] = slot;
    return 0;
}

static uint32_t new_slot(struct publishing *p)
{
    return p->free.n ? p->free.slot[--p->free.n] : (uint32_t)p->slots++;
}

static int assign(struct publishing *p, const uint32_t *ids, struct drps_err *err)
{
    int rc = 0;
    for (uint32_t i = 0; i < p->round.n && rc == 0; i++) {
        uint32_t *slot = &p->slot[ids[i]];
        if (p->copies[ids[i]] && *slot == DRPS_NOT_PUBLISHED) *slot = new_slot(p);
        p->round.slot[i] = *slot;
        if (p->copies[ids[i]] || *slot == DRPS_NOT_PUBLISHED) continue;
        rc = push_slot(&p->given_up, *slot, err);
        *slot = DRPS_NOT_PUBLISHED;
    }
    for (size_t i = 0; i < p->before.n && rc == 0; i++)
        rc = push_slot(&p->free, p->before.slot[i], err);
    const struct slot_list emptied = p->before;
    p->before = p->given_up;
    p->given_up = emptied;
    p->given_up.n = 0;
    return rc;
}

/* ---- Rounds ---- */

static int write_record(struct publishing *p, struct drps_err *err)
{
    struct drps_published_rows *r = &p->round;
    const size_t list = r->n > r->uses ? r->n : r->uses;
    if (drps_array_reserve(&r->room, &p->room_cap, r->n + list, sizeof(*r->room)) ||
        drps_array_reserve(&p->packed, &p->packed_cap, drps_published_encode_bound(r->n, r->uses),
                           1))
        return no_memory(err);
    const struct drps_piece piece = {p->packed, drps_published_encode(r, p->packed)};
    return drps_recwriter_add(p->out, &piece, 1, err);
}

static int write_round(struct publishing *p, uint64_t round, struct drps_err *err)
{
    struct drps_piece records[DRPS_PLAN_WORKERS_MAX];
    const uint32_t *ids = NULL;
    size_t n = 0;
    int rc =
        drps_steps_scratch_read(p->job->records, round, p->rounds, p->ranks->workers, records, err);
    p->round.uses = 0;
    for (uint32_t w = 0; w < p->ranks->workers && rc == 0; w++)
        rc = add_batch(p, p->ranks->first_worker + w, round, &records[w], err);
    if (rc == 0) rc = drps_steps_rows(p->unions, round, p->end - p->first, &ids, &n, err);
    if (rc < 0) return rc;
    if (drps_array_reserve(&p->round.slot, &p->slot_cap, n, sizeof(*p->round.slot)))
        return no_memory(err);
    p->round.n = (uint32_t)n;
    rc = assign(p, ids, err);
    return rc == 0 ? write_record(p, err) : rc;
}

/* In evaluation nobody has copies: its rounds have records of no rows. */
static int write_rounds(struct publishing *p, struct drps_err *err)
{
    const uint64_t evals = split_rounds(p->job->split->eval_batches, p->ranks->workers);
    int rc = 0;
    for (uint64_t t = 0; t < p->rounds && rc == 0; t++)
        rc = write_round(p, t, err);
    p->round.n = p->round.uses = 0;
    for (uint64_t t = 0; t < evals && rc == 0; t++)
        rc = write_record(p, err);
    return rc == 0 ? drps_recwriter_finish(p->out, err) : rc;
}

/* ---- All of it ---- */

static int check_memory(const struct publishing *p, uint64_t bits, struct drps_err *err)
{
    const uint64_t memory = p->job->split->memory_bytes;
    const uint64_t bytes =
        (uint64_t)(p->end - p->first) * (sizeof(*p->copies) + sizeof(*p->slot)) + bits / 8;
    char need[32];
    if (bytes <= memory / 2) return 0;
    return drps_err_set(
        err, DRPS_E_MEMORY_BUDGET,
        "residual slots of all workers need a memory limit of %s: raise it, or make "
        "the plan without",
        drps_size_format(2 * bytes, need, sizeof(need)));
}

static int allocate(struct publishing *p, struct drps_err *err)
{
    const size_t rows = p->end - p->first;
    uint64_t bits = 0;
    p->base = drps_array_new(p->ranks->count, sizeof(*p->base));
    if (!p->base) return no_memory(err);
    for (uint32_t w = 0; w < p->ranks->count; w++) {
        p->base[w] = bits;
        bits += p->job->slots[w];
    }
    int rc = check_memory(p, bits, err);
    if (rc < 0) return rc;
    p->has = calloc((size_t)(bits / 64 + 1), sizeof(*p->has));
    p->copies = calloc(rows + 1, sizeof(*p->copies));
    p->slot = drps_array_new(rows + 1, sizeof(*p->slot));
    if (!p->has || !p->copies || !p->slot) return no_memory(err);
    memset(p->slot, 0xff, rows * sizeof(*p->slot));
    return 0;
}

static int open_files(struct publishing *p, const char *to, struct drps_err *err)
{
    const struct split_job *job = p->job->split;
    const uint64_t evals = split_rounds(job->eval_batches, p->ranks->workers);
    char *path = drps_path_join(to, DRPS_FILE_PUBLISHED);
    int rc = path ? drps_steps_open(job->io, job->from, DRPS_FILE_ROWS, DRPS_KIND_ROWS,
                                    job->batches + job->eval_batches, job->memory_bytes / 8,
                                    &p->batches, err)
                  : no_memory(err);
    if (rc == 0)
        rc = drps_steps_open(job->io, to, DRPS_FILE_ROWS, DRPS_KIND_ROWS, p->rounds + evals,
                             job->memory_bytes / 8, &p->unions, err);
    if (rc == 0) rc = drps_recwriter_open(job->io, path, DRPS_KIND_PUBLISHED, &p->out, err);
    free(path);
    return rc;
}

int drps_published_slots_make(const struct published_job *job, uint32_t rank, const char *to,
                              uint64_t *slots_out, struct drps_err *err)
{
    const struct split_job *split = job->split;
    struct publishing p = {.job = job,
                           .ranks = split->ranks,
                           .rank = rank,
                           .first = split->owners->first[rank],
                           .end = split->owners->first[rank + 1],
                           .rounds = split_rounds(split->batches, split->ranks->workers)};
    int rc = allocate(&p, err);
    if (rc == 0) rc = open_files(&p, to, err);
    if (rc == 0) rc = write_rounds(&p, err);
    *slots_out = p.slots ? p.slots : 1;
    drps_recwriter_close(p.out);
    drps_steps_close(p.batches);
    drps_steps_close(p.unions);
    free(p.batch.slot);
    free(p.batch.whole);
    free(p.batch.room);
    free(p.round.slot);
    free(p.round.keeps);
    free(p.round.room);
    free(p.base);
    free(p.has);
    free(p.copies);
    free(p.slot);
    free(p.free.slot);
    free(p.given_up.slot);
    free(p.before.slot);
    free(p.packed);
    return rc;
}
