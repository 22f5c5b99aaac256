/* Held-out ratings are sorted as the users' rows are, so that both are walked once
 * (drps_evaluation.h). */
#include "engine/recommend/evaluate/drps_evaluate.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/drps_alloc.h"
#include "base/drps_extsort.h"
#include "base/drps_find.h"
#include "index/plan/drps_names.h"

struct drps_evaluate {
    struct drps_extsort *sort;         /* own: hi a user's row, lo an item's, or DRPS_NO_ROW */
    const struct drps_sort_record *at; /* the next one; NULL: there is none */
    struct drps_rowset users;          /* own: who have held-out items */
    int has_least;
    double least;
    uint32_t *items; /* own: [items_n] of the user at hand, increasing, without those not known */
    size_t items_n, missing;
    uint64_t users_n, items_sum, missing_sum;
    double precision, recall, ndcg, map; /* sums over users */
};

int drps_evaluate_open(const struct drps_io *io, const char *dir, uint64_t sort_bytes,
                       uint64_t rows, const double *least, struct drps_evaluate **e_out,
                       struct drps_err *err)
{
    struct drps_evaluate *e = *e_out = calloc(1, sizeof(*e));
    if (!e || !drps_rowset_init(&e->users, rows))
        return drps_err_set(err, -ENOMEM, "no memory for held-out ratings");
    e->has_least = least != NULL;
    e->least = least ? *least : 0;
    e->items = drps_array_new(DRPS_EVALUATE_ITEMS, sizeof(*e->items));
    if (!e->items) return drps_err_set(err, -ENOMEM, "no memory for held-out ratings");
    return drps_extsort_open(io, dir, "8", sort_bytes, &e->sort, err);
}

void drps_evaluate_close(struct drps_evaluate *e)
{
    if (!e) return;
    drps_extsort_close(e->sort);
    drps_rowset_destroy(&e->users);
    free(e->items);
    free(e);
}

static int take(void *ctx, const struct drps_rating *rating, struct drps_err *err)
{
    struct drps_evaluate *e = ctx;
    const struct drps_sort_record record = {.hi = rating->user, .lo = rating->item};
    if (rating->user == DRPS_NO_ROW || (e->has_least && !((double)rating->value >= e->least)))
        return 0;
    drps_rowset_add(&e->users, rating->user);
    return drps_extsort_add(e->sort, &record, err);
}

struct drps_rating_sink drps_evaluate_sink(struct drps_evaluate *e)
{
    return (struct drps_rating_sink){.ctx = e, .take = take};
}

static int step(struct drps_evaluate *e, struct drps_err *err)
{
    const int rc = drps_extsort_next(e->sort, &e->at, err);
    if (rc == 0) e->at = NULL;
    return rc < 0 ? rc : 0;
}

int drps_evaluate_begin(struct drps_evaluate *e, struct drps_rowset *users, struct drps_err *err)
{
    for (uint64_t r = drps_rowset_next(users, 0); r < users->rows;
         r = drps_rowset_next(users, r + 1))
        if (!drps_rowset_has(&e->users, r)) drps_rowset_remove(users, r);
    const int rc = drps_extsort_finish(e->sort, err);
    return rc < 0 ? rc : step(e, err);
}

/* Reads the user's held-out items, without those that the user has seen. */
static int read_user(struct drps_evaluate *e, uint64_t user, const uint32_t *seen, size_t seen_n,
                     struct drps_err *err)
{
    int rc = 0;
    e->items_n = e->missing = 0;
    for (; rc == 0 && e->at && e->at->hi <= user; rc = step(e, err)) {
        const uint32_t item = (uint32_t)e->at->lo;
        if (e->at->hi < user) continue; /* of a user who is not wanted */
        if (item == DRPS_NO_ROW) {
            e->missing++;
            continue;
        }
        if ((e->items_n && e->items[e->items_n - 1] == item) || drps_has_number(seen, seen_n, item))
            continue;
        if (e->items_n == DRPS_EVALUATE_ITEMS)
            return drps_err_set(err, DRPS_E_MEMORY_BUDGET, "a user has more than %d held-out items",
                                DRPS_EVALUATE_ITEMS);
        e->items[e->items_n++] = item;
    }
    return rc;
}

int drps_evaluate_user(struct drps_evaluate *e, uint64_t user, const uint32_t *found,
                       size_t found_n, size_t n, const uint32_t *seen, size_t seen_n,
                       struct drps_err *err)
{
    int rc = read_user(e, user, seen, seen_n, err);
    const size_t held = e->items_n + e->missing, most = held < n ? held : n;
    double gain = 0, best = 0, precisions = 0;
    size_t hits = 0;
    if (rc < 0 || !held) return rc;
    for (size_t i = 0; i < found_n; i++) {
        if (!drps_has_number(e->items, e->items_n, found[i])) continue;
        hits++;
        gain += 1 / log2((double)i + 2);
        precisions += (double)hits / (double)(i + 1);
    }
    for (size_t i = 0; i < most; i++)
        best += 1 / log2((double)i + 2);
    e->users_n++;
    e->items_sum += held;
    e->missing_sum += e->missing;
    e->precision += (double)hits / (double)n;
    e->recall += (double)hits / (double)held;
    e->ndcg += gain / best;
    e->map += precisions / (double)most;
    return 0;
}

void drps_evaluate_result(const struct drps_evaluate *e, struct drps_evaluation *out)
{
    const double n = e->users_n ? (double)e->users_n : (double)NAN;
    *out = (struct drps_evaluation){.users = e->users_n,
                                    .items = e->items_sum,
                                    .missing = e->missing_sum,
                                    .precision = e->precision / n,
                                    .recall = e->recall / n,
                                    .ndcg = e->ndcg / n,
                                    .map = e->map / n};
}
