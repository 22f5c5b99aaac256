/*
 * Where workers have few slots: a walk forwards lets them keep rows as the walk backwards says. A
 * worker that gets more than it may keep gives up the row that is used again latest; that row's
 * last use before has not led on to its next one then.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"
#include "index/ranks/drps_farthest.h"
#include "index/ranks/handed/handing.h"

struct limiting {
    struct handing *h;
    struct drps_farthest rows; /* a set for each rank: those that it gets or keeps */
    uint64_t *use;             /* own: [all] the row's latest use, of rows in a set */
    uint64_t *kept;            /* own: [ranks] rows in its set */
    uint8_t *has;              /* own: [all] 1: a worker has the row */
};

uint64_t handing_limit_bytes(const struct handing *h)
{
    return drps_farthest_bytes(h->all, h->split->ranks->count, h->rounds) +
           (uint64_t)h->all * (sizeof(uint64_t) + 1) + h->uses / 8;
}

static void leave(struct limiting *l, uint32_t rank, uint32_t row)
{
    drps_farthest_take(&l->rows, rank, row);
    l->kept[rank]--;
}

/* Rows of the round that a worker has are in use; others are lent. */
static void begin(struct limiting *l, const struct handing_next *next, uint32_t rank, size_t i)
{
    const uint32_t row = l->h->row[i];
    if (!(next[i].bits & HANDING_ALONE)) return;
    if (l->has[row])
        leave(l, rank, row);
    else
        l->has[row] = (next[i].bits & HANDING_TAKE) != 0;
}

/* The worker of the row's next use has a row too many. */
static void give_up(struct limiting *l, uint32_t rank)
{
    const uint32_t row = drps_farthest_row(&l->rows, rank);
    const uint64_t use = l->use[row];
    leave(l, rank, row);
    l->has[row] = 0;
    l->h->links[use / 64] &= ~(UINT64_C(1) << use % 64);
}

static void go_on(struct limiting *l, const struct handing_next *next, uint64_t first_use, size_t i)
{
    const uint32_t row = l->h->row[i];
    const uint64_t use = first_use + i;
    if (!(next[i].bits & HANDING_ALONE) || !l->has[row]) return;
    l->has[row] = (next[i].bits & HANDING_KEEP) != 0;
    if (!l->has[row]) return;
    l->use[row] = use;
    l->h->links[use / 64] |= UINT64_C(1) << use % 64;
    drps_farthest_put(&l->rows, next[i].rank, row, next[i].round);
    if (++l->kept[next[i].rank] > l->h->job->most) give_up(l, next[i].rank);
}

static int limit_round(struct limiting *l, uint64_t round, uint64_t first_use, struct drps_err *err)
{
    struct handing *h = l->h;
    struct drps_piece piece;
    int rc = handing_read(h, round, err);
    if (rc == 0) rc = drps_steps_scratch_read(&h->next, h->rounds - 1 - round, 1, 1, &piece, err);
    if (rc < 0) return rc;
    for (uint32_t r = 0; r < h->split->ranks->count; r++)
        for (size_t i = h->part[r]; i < h->part[r + 1]; i++)
            begin(l, piece.data, r, i);
    for (size_t i = 0; i < h->n; i++)
        go_on(l, piece.data, first_use, i);
    return 0;
}

static int limit_all(struct limiting *l, struct drps_err *err)
{
    struct handing *h = l->h;
    uint64_t use = 0;
    int rc = drps_farthest_init(&l->rows, h->all, h->split->ranks->count, h->rounds, err);
    for (uint64_t t = 0; t < h->rounds && rc == 0; t++) {
        rc = limit_round(l, t, use, err);
        use += h->n;
    }
    return rc;
}

int handing_limit(struct handing *h, struct drps_err *err)
{
    struct limiting l = {.h = h};
    l.use = drps_array_new(h->all, sizeof(*l.use));
    l.kept = calloc(h->split->ranks->count, sizeof(*l.kept));
    l.has = calloc(h->all, sizeof(*l.has));
    h->links = calloc(h->uses / 64 + 1, sizeof(*h->links));
    int rc = l.use && l.kept && l.has && h->links
                 ? limit_all(&l, err)
                 : drps_err_set(err, -ENOMEM, "no memory for rows that workers keep");
    drps_farthest_destroy(&l.rows);
    free(l.use);
    free(l.kept);
    free(l.has);
    return rc;
}
