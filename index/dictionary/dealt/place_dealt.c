/* The steps of a dealt dictionary in order (drps_dict_dealt.h), and this rank as one that asks. */
#include "index/dictionary/dealt/dealt.h"
#include "index/plan/drps_names.h"

/* ---- Asking ---- */

static int put_keys(struct dict *d, const struct swap_ranks *ranks, struct swap *keys,
                    struct drps_err *err)
{
    struct dict_walk *w;
    struct dealt_record r = {.row = 0};
    int rc = drps_dict_walk_open(d, 0, &w, err);
    while (rc == 0 && (rc = drps_dict_walk_next(w, &r.k, err)) > 0)
        rc = drps_dealt_put(keys, drps_dict_owner(r.k.key, ranks->count), DEALT_KEYS, &r, err);
    drps_dict_walk_close(w);
    return rc;
}

static int take_row(const struct dealt *p, struct swap *rows, uint64_t key, uint32_t *row_out,
                    struct drps_err *err)
{
    const uint64_t end = p->first_row + p->rows[0] + p->rows[1];
    const uint32_t owner = drps_dict_owner(key, p->ranks->count);
    int rc = drps_swap_take(rows, owner, row_out, sizeof(*row_out), err);
    if (rc < 0 || *row_out == DRPS_NO_ROW || (*row_out >= p->first_row && *row_out < end))
        return rc;
    return drps_swap_fault(owner, "a row that is not there", err);
}

static int take_rows(struct dict *d, const struct dealt *p, struct swap *rows, struct drps_err *err)
{
    struct dict_walk *w;
    struct dict_key k;
    uint32_t row;
    int rc = drps_dict_walk_open(d, p->options->memory_bytes / 3 + 1, &w, err);
    while (rc == 0 && (rc = drps_dict_walk_next(w, &k, err)) > 0) {
        rc = take_row(p, rows, k.key, &row, err);
        if (rc == 0) rc = drps_dict_walk_put(w, row, err);
    }
    if (rc == 0) rc = drps_swap_all_taken(rows, err);
    if (rc == 0) rc = drps_dict_walk_finish(w, err);
    drps_dict_walk_close(w);
    return rc;
}

/* ---- Answering ---- */

static int put_rows(const struct dealt *p, struct swap *keys, struct ranges *ranges,
                    struct swap *rows, struct drps_err *err)
{
    struct owned o;
    uint32_t row;
    int rc = drps_owned_open(&o, p, keys, err);
    while (rc == 0 && (rc = drps_owned_next(&o, err)) > 0) {
        rc = drps_ranges_row(ranges, &o.at, &row, err);
        for (uint32_t i = 0; i < o.asked_n && rc == 0; i++)
            rc = drps_swap_put(rows, o.asked[i], &row, sizeof(row), err);
    }
    drps_owned_close(&o);
    return rc == 0 ? drps_swap_all_taken(ranges->numbers, err) : rc;
}

/* ---- The steps ---- */

static int deal_keys(struct dict *d, struct swap_ranks *ranks, struct swap **keys_out,
                     uint64_t *sent_out, struct drps_err *err)
{
    int rc = drps_swap_open(ranks, keys_out, err);
    if (rc == 0) rc = put_keys(d, ranks, *keys_out, err);
    if (rc == 0) rc = drps_dealt_end(*keys_out, ranks, sent_out, err);
    drps_dict_keep_keys(d);
    return rc;
}

static int deal_rows(struct dict *d, const struct dealt *p, struct swap *keys,
                     struct ranges *ranges, uint64_t *sent_out, struct drps_err *err)
{
    struct swap *rows = NULL;
    int rc = drps_swap_open(p->ranks, &rows, err);
    if (rc == 0) rc = put_rows(p, keys, ranges, rows, err);
    if (rc == 0) rc = drps_dealt_end(rows, p->ranks, sent_out, err);
    if (rc == 0) rc = take_rows(d, p, rows, err);
    drps_swap_close(rows);
    drps_dict_free_table(d);
    return rc;
}

int drps_dict_place_dealt(struct dict *d, struct swap_ranks *ranks, const char *plan_dir,
                          uint32_t first_row, uint64_t rows_out[2],
                          struct dict_dealt_sent *sent_out, struct drps_err *err)
{
    struct dealt p = {.ranks = ranks, .options = drps_dict_options(d), .first_row = first_row};
    struct dict_dealt_sent sent = {0};
    struct ranges ranges = {0};
    struct swap *keys = NULL;
    rows_out[0] = rows_out[1] = 0;
    if (p.options->base_dir)
        return drps_err_set(err, DRPS_E_CONFIG,
                            "names of an earlier plan keep their rows on one machine alone");
    int rc = drps_dict_seal(d, err);
    if (rc == 0) rc = deal_keys(d, ranks, &keys, &sent.keys, err);
    if (rc == 0) rc = drps_ranges_open(&ranges, &p, keys, &sent, err);
    if (rc == 0) rc = deal_rows(d, &p, keys, &ranges, &sent.rows, err);
    if (rc == 0) rc = drps_whole_names(&p, keys, &ranges, plan_dir, &sent, err);
    drps_ranges_close(&ranges);
    drps_swap_close(keys);
    rows_out[0] = p.rows[0];
    rows_out[1] = p.rows[1];
    if (sent_out) *sent_out = sent;
    return rc;
}
