/*
 * A walk backwards decides what is cheapest from each use on. With the row's server before it, the
 * rest of the epoch costs S; with the worker of the use, if it alone has the row, H. Of the next
 * use of the row the costs are S' and H', and W' is its worker. In units of a row's parameters,
 * with c = 1 + states:
 *
 *     H = min(c + S', H', plus c if W' is another worker)      return it, or go on
 *     S = min(2 + S', c + H)                                   pull and push, or lend
 *
 * S' and H' differ by c at most, so that their difference is all that is kept of a row.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"
#include "index/plan/drps_plan.h"
#include "index/ranks/handed/handing.h"

enum { PLAIN = 2, NOBODY = UINT16_MAX };

/* The walk backwards, which knows the next use of each row. */
struct walk {
    struct handing *h;
    int cost;                  /* c */
    uint32_t *round;           /* own: [all] */
    uint16_t *rank;            /* own: [all] its worker, if it may have the row; NOBODY: none may */
    int8_t *more;              /* own: [all] H' - S' */
    struct handing_next *list; /* own: [n] */
    size_t cap;
};

/* Decide use `use`, by a worker that alone has the row. */
static struct handing_next decide(struct walk *w, uint32_t row, uint32_t rank, uint64_t use)
{
    struct handing_next next = {w->round[row], w->rank[row], HANDING_ALONE};
    int has = w->cost, pays = PLAIN; /* H - S', S - S' */
    if (next.rank != NOBODY && handing_may_go_on(w->h, use)) {
        const int on = w->more[row] + (next.rank == rank ? 0 : w->cost);
        if (on < has) next.bits |= HANDING_KEEP;
        if (on < has) has = on;
    }
    if (w->cost + has < pays) next.bits |= HANDING_TAKE;
    if (w->cost + has < pays) pays = w->cost + has;
    w->more[row] = (int8_t)(has - pays);
    return next;
}

static int walk_round(struct walk *w, uint64_t round, uint64_t first_use, struct drps_err *err)
{
    struct handing *h = w->h;
    if (drps_array_reserve(&w->list, &w->cap, h->n, sizeof(*w->list)))
        return drps_err_set(err, -ENOMEM, "no memory for the rows of a round");
    for (uint32_t r = 0; r < h->split->ranks->count; r++)
        for (size_t i = h->part[r]; i < h->part[r + 1]; i++) {
            const uint32_t row = h->row[i];
            const int alone = handing_is_alone(h, r, i);
            w->list[i] =
                alone ? decide(w, row, r, first_use + i) : (struct handing_next){.bits = 0};
            w->rank[row] = alone ? (uint16_t)r : NOBODY;
            w->round[row] = (uint32_t)round;
        }
    const struct drps_piece piece = {w->list, h->n * sizeof(*w->list)};
    return drps_recwriter_add(h->next.writer, &piece, 1, err);
}

static int walk_all(struct walk *w, struct drps_err *err)
{
    struct handing *h = w->h;
    uint64_t use = h->uses;
    int rc = drps_steps_scratch_begin(&h->next, h->split->io, h->job->scratch,
                                      DRPS_FILE_HANDED_NEXT_TMP, err);
    memset(w->rank, 0xff, h->all * sizeof(*w->rank));
    for (uint64_t t = h->rounds; t-- > 0 && rc == 0;) {
        rc = handing_read(h, t, err);
        use -= rc == 0 ? h->n : 0;
        if (rc == 0) rc = walk_round(w, t, use, err);
    }
    return rc == 0 ? drps_steps_scratch_turn(&h->next, err) : rc;
}

int handing_find_next(struct handing *h, struct drps_err *err)
{
    struct walk w = {.h = h, .cost = 1 + (int)h->job->states};
    drps_steps_scratch_end(&h->next);
    w.round = drps_array_new(h->all, sizeof(*w.round));
    w.rank = drps_array_new(h->all, sizeof(*w.rank));
    w.more = drps_array_new(h->all, sizeof(*w.more));
    int rc = w.round && w.rank && w.more
                 ? walk_all(&w, err)
                 : drps_err_set(err, -ENOMEM, "no memory for next uses of rows");
    free(w.round);
    free(w.rank);
    free(w.more);
    free(w.list);
    return rc;
}
