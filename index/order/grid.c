/*
 * The choice of a grid: what an epoch in it moves is estimated for each number of groups, and
 * the least is taken (drps_grid.h has the formula).
 */
#include "index/order/drps_grid.h"

#include <math.h>

enum {
    ROOM_SHARE = 12,
    ROOM_PERCENT = 95,  /* the rest: windows are cut unevenly, and two of them are open */
    GROUPS_A_ROOM = 32, /* of the inner table */
    WINDOW_BATCHES = 2,
};

/* A walk through the cells, passes of the inner table beside a group of the outer one. */
struct walk {
    double outer, inner; /* rows */
    double groups;       /* of the outer table */
    double room, batch;
    double samples;
};

/* How many of n rows so many samples touch. */
static double touched(double n, double samples)
{
    return n > 0 ? n * -expm1(-samples / n) : 0;
}

static uint32_t inner_groups(const struct walk *w)
{
    const double batches = w->samples / (w->groups * w->batch); /* a cell has a batch or more */
    const double wanted = fmin(ceil(w->inner * GROUPS_A_ROOM / w->room), batches);
    return (uint32_t)fmin(fmax(wanted, w->groups + 1), DRPS_GRID_GROUPS_MAX);
}

/* Inner rows of a window: of the part of a pass that it makes, which is a cell's at least. */
static double passing_rows(const struct walk *w, uint32_t groups)
{
    const double samples = WINDOW_BATCHES * w->batch;
    const double part = fmin(1, samples * w->groups / w->samples);
    return touched(w->inner * fmax(part, 1.0 / groups), samples);
}

/* Outer rows that wait for another use in the pass, on average. A single group is never done. */
static double waiting_rows(const struct walk *w)
{
    const double uses = w->samples / w->outer;
    const double share = 1 + 2 * expm1(-uses) / uses + exp(-uses);
    return w->groups > 1 ? w->outer / w->groups * fmax(share, 0) : w->outer;
}

/* exp(-s), where (1 + s) exp(-s) is `share`: it falls with s. */
static double leaving_share(double share)
{
    enum { HALVINGS = 40 };
    double low = 0, high = 64;
    for (int i = 0; i < HALVINGS && share < 1; i++) {
        const double s = (low + high) / 2;
        if ((1 + s) * exp(-s) > share)
            low = s;
        else
            high = s;
    }
    return exp(-low); /* 1.6e-28 for a share of 0 */
}

/* Outer rows that leave although the pass is not done with them. */
static double rows_returning(const struct walk *w, uint32_t groups)
{
    const double waiting = waiting_rows(w);
    const double lacking = waiting + 2 * passing_rows(w, groups) - w->room;
    const double samples = WINDOW_BATCHES * w->batch;
    const double uses = w->samples / samples * touched(w->outer / w->groups, samples);
    const double share = waiting > 0 ? fmin(fmax(lacking / waiting, 0), 1) : 0;
    return uses * leaving_share(share) * (1 + share);
}

static double rows_moved(const struct walk *w, uint32_t groups)
{
    if (w->samples < 1) return 0;
    const double swept = w->groups * touched(w->inner, w->samples / w->groups);
    return (w->groups > 1 ? w->outer : 0) + swept + rows_returning(w, groups);
}

struct grid drps_grid_choose(const struct grid_input *in)
{
    const double rows = (double)in->users + (double)in->items;
    const double room = (double)in->room_rows < rows ? (double)in->room_rows : rows / ROOM_SHARE;
    const double least_room = 4 * (double)in->batch_size; /* two batches, a user and an item each */
    struct grid best = {1, 1};
    double least = INFINITY;

    for (int side = 0; side < 2; side++) { /* of two that move as many, the larger table outside */
        const int users_outside = (in->users >= in->items) != side;
        struct walk w = {.outer = (double)(users_outside ? in->users : in->items),
                         .inner = (double)(users_outside ? in->items : in->users),
                         .room = fmax(room, least_room) * ROOM_PERCENT / 100,
                         .batch = (double)in->batch_size,
                         .samples = (double)in->samples};
        struct walk test = w;
        test.samples = (double)in->test_samples;
        for (uint32_t p = 1; p < DRPS_GRID_GROUPS_MAX && p <= w.outer; p++) {
            w.groups = test.groups = p;
            const uint32_t inner = inner_groups(&w);
            const double moved = rows_moved(&w, inner) + rows_moved(&test, inner);
            if (!(moved < least)) continue;
            least = moved;
            best = users_outside ? (struct grid){p, inner} : (struct grid){inner, p};
        }
    }
    return best;
}
