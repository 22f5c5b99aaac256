/*
 * Which rows keep a residual slot until their next use, where there are fewer slots than rows. A
 * pass backwards finds the next uses; a pass forwards gives each row that is used again a slot, and
 * where none is free, takes that of the row whose next use is farthest, unless its own is farther.
 * That row has lost its slot since its last use: the bit of that use is cleared.
 */
#include "index/ranks/residuals/slots.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"
#include "index/plan/drps_plan.h"
#include "index/ranks/drps_farthest.h"

#define NONE DRPS_FARTHEST_NONE

/* s->slot of rows that have a slot is 1, of others 0. */
struct keeping {
    struct slotting *s;
    struct steps_scratch next_uses; /* a record a round, the last round first: the round of a row's
                                       next use; NONE: there is none */
    struct drps_farthest rows; /* that have a slot, and while next uses are found that of each */
    uint64_t *use;             /* own: [all] the row's latest use, while it has a slot */
    uint64_t free;             /* slots of no row */
};

uint64_t residual_keep_bytes(const struct slotting *s)
{
    return drps_farthest_bytes(s->all, 1, s->rounds) + (uint64_t)s->all * sizeof(uint64_t) +
           s->uses / 8;
}

/* ---- Next uses ---- */

/* The next use of each row of a round, which lies before the rounds that were walked. */
static int find_next(struct keeping *k, uint64_t round, uint32_t **list, size_t *cap,
                     struct drps_err *err)
{
    struct slotting *s = k->s;
    int rc = residual_rows(s, round, err);
    if (rc < 0) return rc;
    if (drps_array_reserve(list, cap, s->n, sizeof(**list)))
        return drps_err_set(err, -ENOMEM, "no memory for the rows of a batch");
    for (size_t i = 0; i < s->n; i++) {
        (*list)[i] = k->rows.next[s->remote[i]];
        k->rows.next[s->remote[i]] = (uint32_t)round;
    }
    const struct drps_piece piece = {*list, s->n * sizeof(**list)};
    return drps_recwriter_add(k->next_uses.writer, &piece, 1, err);
}

static int find_all_next(struct keeping *k, const char *to, struct drps_err *err)
{
    uint32_t *list = NULL;
    size_t cap = 0;
    int rc =
        drps_steps_scratch_begin(&k->next_uses, k->s->job->io, to, DRPS_FILE_RESIDUALS_TMP, err);
    memset(k->rows.next, 0xff, k->s->all * sizeof(*k->rows.next));
    for (uint64_t t = k->s->rounds; t-- > 0 && rc == 0;)
        rc = find_next(k, t, &list, &cap, err);
    free(list);
    return rc == 0 ? drps_steps_scratch_turn(&k->next_uses, err) : rc;
}

/* ---- Rows that have a slot ---- */

static void put(struct keeping *k, uint32_t row, uint32_t next)
{
    drps_farthest_put(&k->rows, 0, row, next);
    k->s->slot[row] = 1;
}

static void take(struct keeping *k, uint32_t row)
{
    drps_farthest_take(&k->rows, 0, row);
    k->s->slot[row] = 0;
}

static void mark(struct keeping *k, uint64_t use, int keeps)
{
    const uint64_t bit = UINT64_C(1) << use % 64;
    uint64_t *word = &k->s->keeps[use / 64];
    *word = keeps ? *word | bit : *word & ~bit;
}

/* Take the slot of the row that is used again latest, if that is after `next`. Returns 1 if so. */
static int take_farthest(struct keeping *k, uint32_t next)
{
    const uint32_t row = drps_farthest_row(&k->rows, 0);
    if (row == NONE || k->rows.next[row] <= next) return 0;
    mark(k, k->use[row], 0);
    take(k, row);
    return 1;
}

/* ---- Rounds ---- */

/* A row of the round has a slot that it keeps until its next use, unless
 * another row takes it. */
static void keep(struct keeping *k, uint32_t row, uint64_t use, uint32_t next)
{
    mark(k, use, 1);
    k->use[row] = use;
    put(k, row, next);
}

/* Rows of the round that have a slot: they keep it, or give it up. */
static void go_on(struct keeping *k, const uint32_t *next, uint64_t first_use)
{
    const struct slotting *s = k->s;
    for (size_t i = 0; i < s->n; i++) {
        const uint32_t row = s->remote[i];
        if (!s->slot[row]) continue;
        take(k, row);
        if (next[i] == NONE)
            k->free++;
        else
            keep(k, row, first_use + i, next[i]);
    }
}

/* Rows of the round that have none, and are used again. */
static void begin(struct keeping *k, const uint32_t *next, uint64_t first_use)
{
    const struct slotting *s = k->s;
    for (size_t i = 0; i < s->n; i++) {
        const uint32_t row = s->remote[i];
        if (s->slot[row] || next[i] == NONE) continue;
        if (k->free)
            k->free--;
        else if (!take_farthest(k, next[i]))
            continue;
        keep(k, row, first_use + i, next[i]);
    }
}

static int keep_round(struct keeping *k, uint64_t round, uint64_t first_use, struct drps_err *err)
{
    const struct slotting *s = k->s;
    struct drps_piece piece;
    int rc = residual_rows(k->s, round, err);
    if (rc == 0)
        rc = drps_steps_scratch_read(&k->next_uses, s->rounds - 1 - round, 1, 1, &piece, err);
    if (rc < 0) return rc;
    go_on(k, piece.data, first_use);
    begin(k, piece.data, first_use);
    return 0;
}

static int keep_all(struct keeping *k, struct drps_err *err)
{
    uint64_t use = 0;
    int rc = 0;
    k->free = k->s->slots;
    memset(k->s->slot, 0, k->s->all * sizeof(*k->s->slot));
    for (uint64_t t = 0; t < k->s->rounds && rc == 0; t++) {
        rc = keep_round(k, t, use, err);
        use += k->s->n;
    }
    return rc;
}

static int allocate(struct keeping *k, struct drps_err *err)
{
    struct slotting *s = k->s;
    k->use = drps_array_new(s->all, sizeof(*k->use));
    s->keeps = calloc(s->uses / 64 + 1, sizeof(*s->keeps));
    if (k->use && s->keeps) return drps_farthest_init(&k->rows, s->all, 1, s->rounds, err);
    return drps_err_set(err, -ENOMEM, "no memory for residual slots");
}

int residual_keep(struct slotting *s, const char *to, struct drps_err *err)
{
    struct keeping k = {.s = s};
    int rc = allocate(&k, err);
    if (rc == 0) rc = find_all_next(&k, to, err);
    if (rc == 0) rc = keep_all(&k, err);
    drps_steps_scratch_end(&k.next_uses);
    drps_farthest_destroy(&k.rows);
    free(k.use);
    return rc;
}
