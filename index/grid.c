#include "index/grid.h"

#include <math.h>

enum { CELLS_A_WINDOW = 4, ROOM_SHARE = 12 };
#define NO_ROOM 1e18 /* more than any number of rows */

/* A walk through the cells: groups of the outer table times windows of the inner one. */
struct walk {
    double outer, inner; /* rows */
    double groups;       /* of the outer table */
    double room, batch;
    double samples;
};

/* Of n rows, those that so many samples touch. */
static double touched(double n, double samples)
{
    return n > 0 ? n * -expm1(-samples / n) : 0;
}

/* Rows of a batch: of its group, and of the part of a pass that it makes. */
static double batch_rows(const struct walk *w)
{
    const double part = fmin(1, w->batch * w->groups / w->samples);
    return touched(w->outer / w->groups, w->batch) + touched(w->inner * part, w->batch);
}

/* Inner rows that a window brings; <= 0: there is no room for any. */
static double fresh_rows(const struct walk *w)
{
    const double group = w->outer / w->groups;
    return fmin((w->room - group) / 2, w->room - group - batch_rows(w));
}

static double windows_a_pass(const struct walk *w)
{
    return fmax(1, w->inner / fresh_rows(w));
}

static double rows_moved(const struct walk *w)
{
    if (w->samples < 1) return 0;
    if (fresh_rows(w) < 1) return NO_ROOM - fresh_rows(w) * 1e9; /* the less lacks, the better */
    const double windows = windows_a_pass(w);
    const double missed = exp(-w->samples / (w->outer * windows)); /* 1 - t */
    const double leaving = (w->groups > 1) + windows * (1 - missed) * missed * missed;
    const double swept = windows > 1 ? w->groups * touched(w->inner, w->samples / w->groups) : 0;
    return w->outer * leaving + swept;
}

static uint32_t inner_groups(const struct walk *w)
{
    const double batches = w->samples / (w->groups * w->batch); /* a cell has a batch or more */
    const double wanted = fmin(CELLS_A_WINDOW * windows_a_pass(w), batches);
    return (uint32_t)fmin(fmax(ceil(wanted), w->groups + 1), GRID_GROUPS_MAX);
}

struct grid grid_choose(const struct grid_input *in)
{
    const double rows = (double)in->users + (double)in->items;
    const double room = (double)in->room_rows < rows ? (double)in->room_rows : rows / ROOM_SHARE;
    const double least_room = 4 * (double)in->batch_size; /* two batches, a user and an item each */
    struct grid best = {1, 1};
    double least = INFINITY;

    for (int users_outside = 1; users_outside >= 0; users_outside--) {
        struct walk w = {.outer = (double)(users_outside ? in->users : in->items),
                         .inner = (double)(users_outside ? in->items : in->users),
                         .room = fmax(room, least_room),
                         .batch = (double)in->batch_size,
                         .samples = (double)in->samples};
        struct walk test = w;
        test.samples = (double)in->test_samples;
        for (uint32_t p = 1; p < GRID_GROUPS_MAX && p <= w.outer; p++) {
            w.groups = test.groups = p;
            const double moved = rows_moved(&w) + rows_moved(&test);
            if (!(moved < least)) continue;
            const uint32_t inner = inner_groups(&w);
            least = moved;
            best = users_outside ? (struct grid){p, inner} : (struct grid){inner, p};
        }
    }
    return best;
}
