/*
 * Rows are numbered by range. An owner sends the places of its keys, in the order of keys, to the
 * ranks of their ranges. These sort them, and send the numbers back in the order in which the
 * places came: so an owner that walks its keys again takes each key's number from the stream of its
 * range.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/drps_alloc.h"
#include "base/drps_extsort.h"
#include "index/dictionary/dealt/dealt.h"
#include "index/dictionary/drps_scatter.h"
#include "index/plan/drps_names.h"

static uint64_t all_rows(const struct dealt *d)
{
    return d->rows[0] + d->rows[1];
}

/* ---- Places to their ranges ---- */

static int put_places(const struct ranges *r, struct swap *keys, struct swap *places,
                      struct drps_err *err)
{
    struct owned o;
    int rc = drps_owned_open(&o, r->d, keys, err);
    while (rc == 0 && (rc = drps_owned_next(&o, err)) > 0) {
        rc = 0;
        if (!o.at.count) continue;
        const struct place at = {drps_dict_order(r->d->options, &o.at), o.at.key};
        rc = drps_swap_put(places, drps_splits_range(&r->splits, &at), &at, sizeof(at), err);
    }
    drps_owned_close(&o);
    return rc;
}
_Static_assert(sizeof(struct place) == DEALT_PLACE_BYTES, "a place is sent as it is in memory");

/* ---- In the range of this rank ---- */

/* The rows of this rank's range. */
struct numbering {
    const struct ranges *r;
    struct drps_extsort *by_place; /* own: place -> number in the order of coming */
    struct scatter by_coming;      /* own: number in the order of coming -> row */
    uint64_t *came;                /* own: [count] from each rank */
    uint64_t n;                    /* of all */
};

static int take_places_of(struct numbering *t, struct swap *places, uint32_t from,
                          struct drps_err *err)
{
    const struct swap_ranks *ranks = t->r->d->ranks;
    struct place at, last = {0, 0};
    for (uint64_t i = 0; drps_swap_left(places, from); i++, last = at) {
        int rc = drps_swap_take(places, from, &at, sizeof(at), err);
        if (rc < 0) return rc;
        if ((i && at.key <= last.key) || drps_dict_owner(at.key, ranks->count) != from ||
            drps_splits_range(&t->r->splits, &at) != ranks->rank)
            return drps_swap_fault(from, "a row that is not in its place", err);
        if (t->came[from] == t->r->splits.rows[from])
            return drps_swap_fault(from, "more rows than it has", err);
        const struct drps_sort_record record = {
            .hi = at.order, .lo = at.key, .a = (uint32_t)t->n++};
        rc = drps_extsort_add(t->by_place, &record, err);
        if (rc < 0) return rc;
        t->came[from]++;
    }
    return 0;
}

/* Find how many rows come before each range. */
static int count_ranges(struct ranges *r, uint64_t mine, struct drps_err *err)
{
    const uint32_t count = r->d->ranks->count;
    uint64_t *rows;
    int rc = drps_swap_gather(r->d->ranks, &mine, 1, &rows, err);
    r->starts[0] = 0;
    for (uint32_t range = 0; range < count && rc == 0; range++) {
        if (rows[range] > all_rows(r->d) - r->starts[range])
            rc = drps_swap_fault(range, "a number of rows that is too large", err);
        else
            r->starts[range + 1] = r->starts[range] + rows[range];
    }
    free(rows);
    if (rc == 0 && r->starts[count] != all_rows(r->d))
        return drps_err_set(err, DRPS_E_PROTO,
                            "the ranks have numbered %" PRIu64 " rows of %" PRIu64,
                            r->starts[count], all_rows(r->d));
    return rc;
}

static int number_rows(struct numbering *t, struct drps_err *err)
{
    const struct dealt *d = t->r->d;
    const struct drps_sort_record *record;
    uint64_t row = d->first_row + t->r->starts[d->ranks->rank];
    int rc = drps_extsort_finish(t->by_place, err);
    while (rc == 0 && (rc = drps_extsort_next(t->by_place, &record, err)) > 0)
        rc = drps_scatter_put(&t->by_coming, record->a, (uint32_t)row++, err);
    return rc == 0 ? drps_scatter_finish(&t->by_coming, err) : rc;
}

static int put_numbers(struct numbering *t, struct swap *numbers, struct drps_err *err)
{
    uint32_t row;
    int rc = 0;
    for (uint32_t to = 0; to < t->r->d->ranks->count; to++)
        for (uint64_t i = 0; i < t->came[to] && rc == 0; i++) {
            rc = drps_scatter_next(&t->by_coming, &row, err);
            if (rc == 0) rc = drps_swap_put(numbers, to, &row, sizeof(row), err);
        }
    return rc;
}

/* Sort what has come, and send its rows. */
static int number_range(struct ranges *r, struct swap *places, struct drps_err *err)
{
    const struct swap_ranks *ranks = r->d->ranks;
    const uint64_t share = r->d->options->memory_bytes / 3;
    struct numbering t = {.r = r, .came = calloc(ranks->count, sizeof(*t.came))};
    int rc = t.came ? drps_extsort_open(ranks->io, ranks->dir, "places", share, &t.by_place, err)
                    : drps_err_set(err, -ENOMEM, "no memory for placing");
    for (uint32_t from = 0; from < ranks->count && rc == 0; from++)
        rc = take_places_of(&t, places, from, err);
    if (rc == 0) rc = count_ranges(r, t.n, err);
    if (rc == 0)
        rc = drps_scatter_open(ranks->io, ranks->dir, "coming", t.n, share, &t.by_coming, err);
    if (rc == 0) rc = number_rows(&t, err);
    if (rc == 0) rc = put_numbers(&t, r->numbers, err);
    drps_extsort_close(t.by_place);
    drps_scatter_close(&t.by_coming);
    free(t.came);
    return rc;
}

/* ---- All of it ---- */

static int send_places(struct ranges *r, struct swap *keys, struct swap **places_out,
                       uint64_t *sent_out, struct drps_err *err)
{
    struct swap_ranks *ranks = r->d->ranks;
    int rc = drps_swap_open(ranks, places_out, err);
    if (rc == 0) rc = put_places(r, keys, *places_out, err);
    return rc == 0 ? drps_dealt_end(*places_out, ranks, sent_out, err) : rc;
}

int drps_ranges_open(struct ranges *r, struct dealt *d, struct swap *keys,
                     struct dict_dealt_sent *sent, struct drps_err *err)
{
    struct swap *places = NULL;
    *r = (struct ranges){.d = d};
    r->starts = drps_array_new((size_t)d->ranks->count + 1, sizeof(*r->starts));
    int rc = r->starts ? drps_splits_find(&r->splits, d, keys, err)
                       : drps_err_set(err, -ENOMEM, "no memory for placing");
    if (rc == 0) rc = send_places(r, keys, &places, &sent->places, err);
    if (rc == 0) rc = drps_swap_open(d->ranks, &r->numbers, err);
    if (rc == 0) rc = number_range(r, places, err);
    if (rc == 0) rc = drps_dealt_end(r->numbers, d->ranks, &sent->numbers, err);
    drps_swap_close(places);
    return rc;
}

void drps_ranges_close(struct ranges *r)
{
    drps_swap_close(r->numbers);
    drps_splits_free(&r->splits);
    free(r->starts);
    *r = (struct ranges){0};
}

int drps_ranges_row(struct ranges *r, const struct dict_key *k, uint32_t *row_out,
                    struct drps_err *err)
{
    *row_out = DRPS_NO_ROW;
    if (!k->count) return 0;
    const struct place at = {drps_dict_order(r->d->options, k), k->key};
    const uint32_t range = drps_splits_range(&r->splits, &at);
    int rc = drps_swap_take(r->numbers, range, row_out, sizeof(*row_out), err);
    if (rc < 0) return rc;
    if (*row_out >= r->d->first_row + r->starts[range] &&
        *row_out < r->d->first_row + r->starts[range + 1])
        return 0;
    return drps_swap_fault(range, "a row of another range", err);
}
