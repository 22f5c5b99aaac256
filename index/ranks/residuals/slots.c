/*
 * Two passes over the batches of one worker: which rows are used more than once, and when last;
 * then the records. Where there are fewer slots than such rows, keep.c decides between
 * the two.
 */
#include "index/ranks/residuals/slots.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"
#include "base/drps_size.h"
#include "index/plan/drps_batch.h"
#include "index/plan/drps_plan.h"
#include "index/plan/drps_residuals.h"

#define NEVER UINT32_MAX

static int no_memory(struct drps_err *err)
{
    return drps_err_set(err, -ENOMEM, "no memory for residual slots");
}

/* ---- Which rows need a slot ---- */

/* A row that was used before gets a slot, whichever; where slots are their own any row. */
static int count_uses(struct slotting *s, int own, struct drps_err *err)
{
    memset(s->last, 0xff, s->all * sizeof(*s->last));
    memset(s->slot, 0xff, s->all * sizeof(*s->slot));
    for (uint64_t t = 0; t < s->rounds; t++) {
        int rc = residual_rows(s, t, err);
        if (rc < 0) return rc;
        for (size_t i = 0; i < s->n; i++) {
            const uint32_t row = s->remote[i];
            if (own || s->last[row] != NEVER) s->slot[row] = 0;
            s->last[row] = (uint32_t)t;
        }
        s->uses += s->n;
    }
    return 0;
}

/* Returns how many rows were numbered. */
static uint64_t number_rows(struct slotting *s)
{
    uint32_t n = 0;
    for (uint32_t row = 0; row < s->all; row++)
        if (s->slot[row] != DRPS_NO_SLOT) s->slot[row] = n++;
    return n;
}

static int check_memory(const struct slotting *s, uint64_t bytes, struct drps_err *err)
{
    char need[32];
    if (bytes <= s->job->memory_bytes / 2) return 0;
    return drps_err_set(err, DRPS_E_MEMORY_BUDGET,
                        "residual slots for batches of %" PRIu32
                        " rows need a memory limit of %s: raise it, or make the plan without",
                        s->all, drps_size_format(2 * bytes, need, sizeof(need)));
}

/* ---- Writing ---- */

struct writing {
    struct slotting *s;
    struct drps_recwriter *out;
    struct drps_recwriter *all; /* gets the records of training, too; or NULL */
    struct drps_residual_rows rows;
    size_t slot_cap, whole_cap, room_cap, packed_cap;
    unsigned char *packed; /* own */
    uint32_t *free;        /* own: [slots] where slots are reassigned; those of no row */
    uint64_t free_n;
    uint64_t used; /* slots that had a row so far */
    uint64_t use;  /* of the round's first row */
};

static int reserve(struct writing *w, size_t n, struct drps_err *err)
{
    struct drps_residual_rows *r = &w->rows;
    if (drps_array_reserve(&r->slot, &w->slot_cap, n, sizeof(*r->slot)) ||
        drps_array_reserve(&r->whole, &w->whole_cap, n, sizeof(*r->whole)) ||
        drps_array_reserve(&r->room, &w->room_cap, 2 * n, sizeof(*r->room)) ||
        drps_array_reserve(&w->packed, &w->packed_cap, drps_residuals_encode_bound(n), 1))
        return no_memory(err);
    return 0;
}

/* Whether the row of use i of the round keeps its slot after it. */
static int keeps(const struct writing *w, size_t i, uint64_t round)
{
    const struct slotting *s = w->s;
    const uint64_t use = w->use + i;
    if (s->keeps) return (int)(s->keeps[use / 64] >> use % 64 & 1);
    return s->last[s->remote[i]] != round;
}

/* Rows that are sent whole give up their slots, if slots are reassigned. */
static void give_up(struct writing *w, uint64_t round)
{
    const struct slotting *s = w->s;
    for (size_t i = 0; i < s->n; i++) {
        uint32_t *slot = &s->slot[s->remote[i]];
        w->rows.whole[i] = !keeps(w, i, round);
        w->rows.slot[i] = *slot;
        if (!w->free || !w->rows.whole[i] || *slot == DRPS_NO_SLOT) continue;
        w->free[w->free_n++] = *slot;
        *slot = DRPS_NO_SLOT;
    }
}

/* Rows that keep a slot from now on get one that is free. */
static void assign(struct writing *w)
{
    const struct slotting *s = w->s;
    for (size_t i = 0; w->free && i < s->n; i++) {
        uint32_t *slot = &s->slot[s->remote[i]];
        if (w->rows.whole[i] || *slot != DRPS_NO_SLOT) continue;
        *slot = w->rows.slot[i] = w->free[--w->free_n];
        if (*slot >= w->used) w->used = *slot + UINT64_C(1);
    }
}

static int write_round(struct writing *w, uint64_t round, struct drps_err *err)
{
    struct slotting *s = w->s;
    int rc = residual_rows(s, round, err);
    if (rc == 0) rc = reserve(w, s->n, err);
    if (rc < 0) return rc;
    give_up(w, round);
    assign(w);
    w->use += s->n;
    w->rows.n = (uint32_t)s->n;
    const struct drps_piece piece = {w->packed, drps_residuals_encode(&w->rows, w->packed)};
    if (w->all) rc = drps_recwriter_add(w->all, &piece, 1, err);
    return rc == 0 ? drps_recwriter_add(w->out, &piece, 1, err) : rc;
}

/* Evaluation pushes nothing: its rounds have records of no rows. */
static int write_rounds(struct writing *w, struct drps_err *err)
{
    const struct split_job *job = w->s->job;
    const uint64_t evals = split_rounds(job->eval_batches, job->ranks->workers);
    int rc = reserve(w, 0, err);
    for (uint64_t t = 0; t < w->s->rounds && rc == 0; t++)
        rc = write_round(w, t, err);
    w->rows.n = 0;
    for (uint64_t t = 0; t < evals && rc == 0; t++) {
        const struct drps_piece piece = {w->packed, drps_residuals_encode(&w->rows, w->packed)};
        rc = drps_recwriter_add(w->out, &piece, 1, err);
    }
    return rc == 0 ? drps_recwriter_finish(w->out, err) : rc;
}

static int begin_free(struct writing *w, struct drps_err *err)
{
    struct slotting *s = w->s;
    if (!s->keeps) return 0;
    w->free = drps_array_new(s->slots, sizeof(*w->free));
    if (!w->free) return no_memory(err);
    for (uint64_t i = 0; i < s->slots; i++)
        w->free[i] = (uint32_t)(s->slots - 1 - i);
    w->free_n = s->slots;
    memset(s->slot, 0xff, s->all * sizeof(*s->slot));
    return 0;
}

static int write_all(struct slotting *s, const char *to, struct drps_recwriter *all,
                     struct drps_err *err)
{
    struct writing w = {.s = s, .all = all};
    char *path = drps_path_join(to, DRPS_FILE_RESIDUALS);
    int rc = path ? begin_free(&w, err) : no_memory(err);
    if (rc == 0) rc = drps_recwriter_open(s->job->io, path, DRPS_KIND_RESIDUALS, &w.out, err);
    if (rc == 0) rc = write_rounds(&w, err);
    if (w.free) s->slots = w.used; /* there may have been more than rows at a time */
    drps_recwriter_close(w.out);
    free(path);
    free(w.rows.slot);
    free(w.rows.whole);
    free(w.rows.room);
    free(w.packed);
    free(w.free);
    return rc;
}

/* ---- All of it ---- */

static int open_all(struct slotting *s, struct drps_err *err)
{
    const struct split_job *job = s->job;
    int rc = check_memory(s, (uint64_t)s->all * 2 * sizeof(uint32_t), err);
    if (rc < 0) return rc;
    s->last = drps_array_new(s->all, sizeof(*s->last));
    s->slot = drps_array_new(s->all, sizeof(*s->slot));
    if (!s->last || !s->slot) return no_memory(err);
    return drps_steps_open(job->io, job->from, DRPS_FILE_ROWS, DRPS_KIND_ROWS,
                           job->batches + job->eval_batches, job->memory_bytes / 8, &s->lists, err);
}

static int make(struct slotting *s, const struct drps_residual_wish *wish, const char *to,
                struct drps_recwriter *all, struct drps_err *err)
{
    int rc = open_all(s, err);
    if (rc == 0) rc = count_uses(s, wish->own, err);
    if (rc < 0) return rc;
    s->slots = number_rows(s);
    if (s->slots > wish->most) {
        s->slots = wish->most;
        rc = check_memory(
            s, (uint64_t)s->all * 2 * sizeof(uint32_t) + residual_keep_bytes(s) + s->slots * 4,
            err);
        if (rc == 0) rc = residual_keep(s, to, err);
    }
    return rc == 0 ? write_all(s, to, all, err) : rc;
}

int drps_residual_slots_make(const struct split_job *job, uint32_t rank,
                             const struct drps_residual_wish *wish, const char *to,
                             struct drps_recwriter *all, uint64_t *slots_out, struct drps_err *err)
{
    struct slotting s = {.job = job,
                         .rank = rank,
                         .all = job->owners->first[job->owners->servers],
                         .rounds = split_rounds(job->batches, job->ranks->workers)};
    int rc = make(&s, wish, to, all, err);
    *slots_out = s.slots ? s.slots : 1;
    drps_steps_close(s.lists);
    free(s.remote);
    free(s.last);
    free(s.slot);
    free(s.keeps);
    return rc;
}
