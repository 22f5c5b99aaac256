/*
 * The records of a rank's worker. With slots for all rows, a row's slot is its number among those
 * that the worker ever has. Else slots are reassigned: those of rows that leave are free in the
 * next round.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"
#include "index/plan/drps_handed.h"
#include "index/ranks/handed/handing.h"

/* A row that comes from another worker, or goes. */
struct coming {
    uint32_t row, from;
};

struct handing_worker {
    struct handing_side *side;
    int reassigns;
    uint32_t *slot; /* own: [all] of rows that the worker has */
    uint32_t *free; /* own: [free_n] slots of no row, if they are reassigned */
    size_t free_n, free_cap;
    struct coming *coming; /* own: [coming_n] in the next round, in the order of rows */
    size_t coming_n, coming_cap;
    struct drps_handed_rows rows; /* own: room for the largest round so far */
    size_t arrive_cap, used_cap;
};

static int no_memory(struct drps_err *err)
{
    return drps_err_set(err, -ENOMEM, "no memory for rows that are handed on");
}

/* ---- Slots ---- */

/* Number the rows that the worker ever has, in their order. */
static int number_rows(struct handing_worker *w, struct drps_err *err)
{
    struct handing *h = w->side->h;
    const uint32_t rank = w->side->rank;
    const struct handing_fate *fates;
    int rc = 0;
    for (uint64_t t = 0; t < h->rounds && rc == 0; t++) {
        rc = handing_read(h, t, err);
        if (rc == 0) rc = handing_fates(h, t, &fates, err);
        for (size_t i = h->part[rank]; rc == 0 && i < h->part[rank + 1]; i++)
            if (fates[i].bits & HANDING_HAS) w->slot[h->row[i]] = 1;
    }
    for (uint32_t row = 0; row < h->all; row++)
        if (w->slot[row]) w->slot[row] = (uint32_t)w->side->counts->slots++;
    return rc;
}

/* A slot that is free, or one more. */
static uint32_t next_slot(struct handing_worker *w)
{
    return w->free_n ? w->free[--w->free_n] : (uint32_t)w->side->counts->slots++;
}

static int free_slot(struct handing_worker *w, uint32_t slot, struct drps_err *err)
{
    if (!w->reassigns) return 0;
    if (drps_array_reserve(&w->free, &w->free_cap, w->free_n + 1, sizeof(*w->free)))
        return no_memory(err);
    w->free[w->free_n++] = slot;
    return 0;
}

/* ---- Rows that arrive ---- */

static int by_number(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

static int by_row(const void *a, const void *b)
{
    return by_number(&((const struct coming *)a)->row, &((const struct coming *)b)->row);
}

/* Rows that came after the round before; their slots are in the order of rows. */
static void arrive(struct handing_worker *w)
{
    struct drps_handed_rows *rows = &w->rows;
    rows->arrive_n = (uint32_t)w->coming_n;
    for (size_t i = 0; i < w->coming_n; i++)
        rows->arrive_slot[i] = w->reassigns ? next_slot(w) : w->slot[w->coming[i].row];
    if (w->coming_n) qsort(rows->arrive_slot, w->coming_n, sizeof(*rows->arrive_slot), by_number);
    for (size_t i = 0; i < w->coming_n; i++) {
        rows->arrive_from[i] = w->coming[i].from;
        w->slot[w->coming[i].row] = rows->arrive_slot[i];
    }
    w->side->counts->arrived += w->coming_n;
}

/* Rows that other workers hand on to this one after the round. */
static int expect(struct handing_worker *w, struct drps_err *err)
{
    const struct handing *h = w->side->h;
    w->coming_n = 0;
    for (uint32_t r = 0; r < h->split->ranks->count; r++)
        for (size_t i = h->part[r]; i < h->part[r + 1]; i++) {
            const struct handing_fate *fate = &w->side->fates[i];
            if (!(fate->bits & HANDING_HAS) || fate->to != w->side->rank) continue;
            if (drps_array_reserve(&w->coming, &w->coming_cap, w->coming_n + 1, sizeof(*w->coming)))
                return no_memory(err);
            w->coming[w->coming_n++] = (struct coming){h->row[i], r};
        }
    if (w->coming_n) qsort(w->coming, w->coming_n, sizeof(*w->coming), by_row);
    return 0;
}

/* ---- Rows of the batch ---- */

static void use(struct handing_worker *w, size_t first, size_t i)
{
    struct drps_handed_rows *rows = &w->rows;
    struct drps_plan_handed *counts = w->side->counts;
    const struct handing_fate *fate = &w->side->fates[i];
    uint32_t *slot = &w->slot[w->side->h->row[i]];
    const uint32_t n = rows->used_n++;
    const int taken = (fate->bits & HANDING_TAKEN) != 0;
    if (taken && w->reassigns) *slot = next_slot(w);
    rows->place[n] = (uint32_t)(i - first);
    rows->slot[n] = *slot;
    rows->taken[n] = (uint8_t)taken;
    rows->to[n] = fate->to;
    counts->used++;
    counts->taken += (uint64_t)taken;
    counts->returned += fate->to == DRPS_HANDED_RETURNED;
    counts->handed += fate->to < DRPS_HANDED_RETURNED;
}

/* Slots of rows that leave are free in the next round. */
static int leave(struct handing_worker *w, struct drps_err *err)
{
    int rc = 0;
    for (uint32_t n = 0; n < w->rows.used_n && rc == 0; n++)
        if (w->rows.to[n] != DRPS_HANDED_KEPT) rc = free_slot(w, w->rows.slot[n], err);
    return rc;
}

static int reserve(struct handing_worker *w, size_t used, struct drps_err *err)
{
    struct drps_handed_rows *rows = &w->rows;
    if (w->coming_n > w->arrive_cap || used > w->used_cap || !rows->place) {
        if (w->coming_n > w->arrive_cap) w->arrive_cap = 2 * w->coming_n;
        if (used > w->used_cap) w->used_cap = 2 * used;
        const struct drps_handed_most most = {.rows = w->used_cap, .slots = w->arrive_cap};
        drps_handed_free(rows);
        int rc = drps_handed_allocate(rows, &most, err);
        if (rc < 0) return rc;
    }
    rows->arrive_n = (uint32_t)w->coming_n;
    rows->used_n = (uint32_t)used;
    if (drps_array_reserve(&w->side->packed, &w->side->packed_cap, drps_handed_encode_bound(rows),
                           1))
        return no_memory(err);
    return 0;
}

int handing_worker_round(struct handing_worker *w, struct drps_err *err)
{
    const struct handing *h = w->side->h;
    const size_t first = h->part[w->side->rank], end = h->part[w->side->rank + 1];
    int rc = reserve(w, end - first, err);
    if (rc < 0) return rc;
    arrive(w);
    w->rows.used_n = 0;
    for (size_t i = first; i < end; i++)
        if (w->side->fates[i].bits & HANDING_HAS) use(w, first, i);
    rc = handing_add_record(w->side, drps_handed_encode(&w->rows, w->side->packed), err);
    if (rc == 0) rc = leave(w, err);
    return rc == 0 ? expect(w, err) : rc;
}

int handing_worker_new(struct handing_side *side, struct handing_worker **out, struct drps_err *err)
{
    *out = calloc(1, sizeof(**out));
    if (!*out) return no_memory(err);
    (*out)->side = side;
    (*out)->reassigns = side->h->job->most != UINT64_MAX;
    (*out)->slot = calloc(side->h->all, sizeof(*(*out)->slot));
    if (!(*out)->slot) return no_memory(err);
    return (*out)->reassigns ? 0 : number_rows(*out, err);
}

void handing_worker_free(struct handing_worker *w)
{
    if (!w) return;
    free(w->slot);
    free(w->free);
    free(w->coming);
    drps_handed_free(&w->rows);
    free(w);
}
