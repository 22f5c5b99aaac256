/* The whole dictionary: owners send their keys that have rows, with their names, in the order of
 * keys to rank 0, which merges them into names.rec. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "index/dictionary/dealt/dealt.h"
#include "index/plan/drps_names.h"
#include "index/plan/drps_names_writer.h"

static int put_names(const struct dealt *d, struct swap *keys, struct ranges *ranges,
                     struct swap *names, struct drps_err *err)
{
    struct owned o;
    int rc = drps_owned_open(&o, d, keys, err);
    drps_swap_rewind(ranges->numbers);
    while (rc == 0 && (rc = drps_owned_next(&o, err)) > 0) {
        struct dealt_record r = {.k = o.at};
        rc = drps_ranges_row(ranges, &o.at, &r.row, err);
        if (rc == 0 && r.row != DRPS_NO_ROW) rc = drps_dealt_put(names, 0, DEALT_NAMES, &r, err);
    }
    drps_owned_close(&o);
    return rc;
}

static int check_row(const struct dealt *d, uint32_t from, uint32_t row, struct drps_err *err)
{
    const uint64_t end = d->first_row + d->rows[0] + d->rows[1];
    if (row >= d->first_row && row < end) return 0;
    return drps_swap_fault(from, "a name with a row that is not there", err);
}

/* came_out [count]: names of each rank. */
static int merge_names(const struct dealt *d, struct swap *names, struct names_writer *w,
                       uint64_t *came_out, struct drps_err *err)
{
    const struct dealt_record *r;
    struct key_merge m;
    int rc = drps_key_merge_open(&m, d, names, DEALT_NAMES, err);
    while (rc == 0 && (r = drps_key_merge_top(&m))) {
        const uint32_t from = drps_key_merge_pop(&m);
        rc = check_row(d, from, r->row, err);
        if (rc == 0)
            rc = drps_names_writer_add(w, r->k.key, r->row, r->k.field, r->k.text, r->k.bytes, err);
        if (rc == 0) rc = drps_key_merge_go_on(&m, from, err);
        came_out[from]++;
    }
    drps_key_merge_close(&m);
    return rc;
}

static int check_numbers(const struct splits *s, const uint64_t *came, struct drps_err *err)
{
    for (uint32_t from = 0; from < s->count; from++)
        if (came[from] != s->rows[from])
            return drps_err_set(err, DRPS_E_PROTO,
                                "rank %" PRIu32 " sent names of %" PRIu64
                                " rows in place of %" PRIu64,
                                from, came[from], s->rows[from]);
    return 0;
}

static int write_names(const struct dealt *d, struct swap *names, const struct splits *splits,
                       const char *plan_dir, struct drps_err *err)
{
    struct names_writer *w = NULL;
    uint64_t *came = calloc(splits->count, sizeof(*came));
    int rc = came ? drps_names_writer_open(d->ranks->io, plan_dir, d->options->strings, &w, err)
                  : drps_err_set(err, -ENOMEM, "no memory for merging names");
    if (rc == 0) rc = merge_names(d, names, w, came, err);
    if (rc == 0) rc = check_numbers(splits, came, err);
    if (rc == 0) rc = drps_names_writer_finish(w, err);
    drps_names_writer_close(w);
    free(came);
    return rc;
}

int drps_whole_names(const struct dealt *d, struct swap *keys, struct ranges *ranges,
                     const char *plan_dir, struct dict_dealt_sent *sent, struct drps_err *err)
{
    struct swap_ranks *ranks = d->ranks;
    struct swap *names = NULL;
    int rc = drps_swap_open(ranks, &names, err);
    if (rc == 0) rc = put_names(d, keys, ranges, names, err);
    if (rc == 0) rc = drps_dealt_end(names, ranks, &sent->names, err);
    if (rc == 0 && ranks->rank == 0) rc = write_names(d, names, &ranges->splits, plan_dir, err);
    drps_swap_close(names);
    return rc;
}
