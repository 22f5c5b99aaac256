/*
 * Each worker tells the servers which of their rows its batches use (drps_together.h).
 *
 * A rank then has data.rec and rows.rec with a record for each batch of all workers, in the order
 * of rounds, as one machine has them. Records of its own worker's batches are whole. Of another
 * worker's batch it has only the rows that its own server holds, and no data. That is all that the
 * folder of a rank is made of, so that the same code makes it here and on one machine.
 */
#include "index/together/drps_together.h"

#include <errno.h>
#include <stdlib.h>

#include "base/drps_alloc.h"
#include "base/drps_find.h"
#include "base/record/drps_recfile.h"
#include "index/plan/codec/drps_list.h"
#include "index/plan/drps_plan_files.h"
#include "index/plan/drps_steps.h"

struct sharing {
    struct swap_ranks *ranks;
    const struct together_lists *lists;
    struct steps *rows, *data;                  /* own: this rank's batches */
    struct swap *swap;                          /* own */
    struct drps_recwriter *rows_out, *data_out; /* own */
    unsigned char *packed;                      /* own */
    size_t packed_cap;
    uint32_t *ids; /* own: a list that came */
    size_t ids_cap;
};

static int no_memory(struct drps_err *err)
{
    return drps_err_set(err, -ENOMEM, "no memory for the rows of a batch");
}

static uint32_t all_rows(const struct sharing *s)
{
    return s->lists->first[s->ranks->count];
}

/* Returns how many of so many batches are this rank's: they are dealt to the ranks in turn. */
static uint64_t own_of(const struct sharing *s, uint64_t batches)
{
    const uint32_t rank = s->ranks->rank, count = s->ranks->count;
    return batches > rank ? (batches - rank + count - 1) / count : 0;
}

/* ---- Going ---- */

/* Sends a list of rows to a rank, as bytes: u32 bytes of the list | the list. */
static int send_list(struct sharing *s, uint32_t to, const uint32_t *rows, size_t n,
                     struct drps_err *err)
{
    if (drps_array_reserve(&s->packed, &s->packed_cap, drps_list_encode_bound(n), 1))
        return no_memory(err);
    const uint32_t bytes = (uint32_t)drps_list_encode(rows, n, s->packed);
    int rc = drps_swap_put(s->swap, to, &bytes, sizeof(bytes), err);
    return rc == 0 ? drps_swap_put(s->swap, to, s->packed, bytes, err) : rc;
}

static int send_batch(struct sharing *s, uint64_t i, struct drps_err *err)
{
    const uint32_t *rows;
    size_t n, at = 0;
    int rc = drps_steps_rows(s->rows, i, all_rows(s), &rows, &n, err);
    for (uint32_t to = 0; to < s->ranks->count && rc == 0; to++) {
        const size_t end = drps_count_below(rows, n, s->lists->first[to + 1]);
        if (to != s->ranks->rank) rc = send_list(s, to, rows + at, end - at, err);
        at = end;
    }
    return rc;
}

static int send_all(struct sharing *s, struct drps_err *err)
{
    const uint64_t own = own_of(s, s->lists->batches) + own_of(s, s->lists->eval_batches);
    int rc = 0;
    for (uint64_t i = 0; i < own && rc == 0; i++)
        rc = send_batch(s, i, err);
    return rc == 0 ? drps_swap_end(s->swap, err) : rc;
}

/* ---- What came ---- */

static int add(struct drps_recwriter *w, const void *record, size_t bytes, struct drps_err *err)
{
    const struct drps_piece piece = {record, bytes};
    return drps_recwriter_add(w, &piece, 1, err);
}

static int add_own(struct sharing *s, uint64_t i, struct drps_err *err)
{
    const void *record;
    size_t bytes;
    int rc = drps_steps_record(s->rows, i, &record, &bytes, err);
    if (rc == 0) rc = add(s->rows_out, record, bytes, err);
    if (rc == 0) rc = drps_steps_record(s->data, i, &record, &bytes, err);
    return rc == 0 ? add(s->data_out, record, bytes, err) : rc;
}

/* Checks that the rows of a list that came are rows that this rank holds. */
static int check_list(struct sharing *s, uint32_t from, size_t bytes, struct drps_err *err)
{
    const uint32_t first = s->lists->first[s->ranks->rank];
    const uint32_t end = s->lists->first[s->ranks->rank + 1];
    const size_t n = bytes < sizeof(uint32_t) ? SIZE_MAX : drps_list_count(s->packed);
    size_t used = 0;
    if (n > end - first) return drps_swap_fault(from, "a list of too many rows", err);
    if (drps_array_reserve(&s->ids, &s->ids_cap, n, sizeof(*s->ids))) return no_memory(err);
    if (drps_list_decode(s->packed, bytes, s->ids, &used, NULL) < 0 || used != bytes ||
        (n && (s->ids[0] < first || s->ids[n - 1] >= end)))
        return drps_swap_fault(from, "a list of rows that are not this rank's", err);
    return 0;
}

static int add_others(struct sharing *s, uint32_t from, struct drps_err *err)
{
    uint32_t bytes = 0;
    int rc = drps_swap_take(s->swap, from, &bytes, sizeof(bytes), err);
    if (rc < 0) return rc;
    if (bytes > drps_swap_left(s->swap, from))
        return drps_swap_fault(from, "a list that has no end", err);
    if (drps_array_reserve(&s->packed, &s->packed_cap, bytes, 1)) return no_memory(err);
    rc = drps_swap_take(s->swap, from, s->packed, bytes, err);
    if (rc == 0) rc = check_list(s, from, bytes, err);
    if (rc == 0) rc = add(s->rows_out, s->packed, bytes, err);
    return rc == 0 ? add(s->data_out, NULL, 0, err) : rc;
}

/* Takes the lists of so many batches, of training or of evaluation. This rank's own begin at its
 * record `first`. */
static int take_batches(struct sharing *s, uint64_t batches, uint64_t first, struct drps_err *err)
{
    int rc = 0;
    for (uint64_t k = 0; k < batches && rc == 0; k++) {
        const uint32_t from = (uint32_t)(k % s->ranks->count);
        rc = from == s->ranks->rank ? add_own(s, first + k / s->ranks->count, err)
                                    : add_others(s, from, err);
    }
    return rc;
}

static int take_all(struct sharing *s, struct drps_err *err)
{
    const uint64_t batches = s->lists->batches;
    int rc = take_batches(s, batches, 0, err);
    if (rc == 0) rc = take_batches(s, s->lists->eval_batches, own_of(s, batches), err);
    return rc == 0 ? drps_swap_all_taken(s->swap, err) : rc;
}

/* ---- Files ---- */

static int open_out(const struct sharing *s, const char *name, uint32_t kind,
                    struct drps_recwriter **out, struct drps_err *err)
{
    char *path = drps_path_join(s->lists->to, name);
    const int rc = path ? drps_recwriter_open(s->lists->io, path, kind, out, err) : no_memory(err);
    free(path);
    return rc;
}

static int open_all(struct sharing *s, struct drps_err *err)
{
    const struct together_lists *l = s->lists;
    const uint64_t own = own_of(s, l->batches) + own_of(s, l->eval_batches);
    int rc = drps_steps_open(l->io, l->from, DRPS_FILE_ROWS, DRPS_KIND_ROWS, own,
                             l->memory_bytes / 8, &s->rows, err);
    if (rc == 0)
        rc = drps_steps_open(l->io, l->from, DRPS_FILE_DATA, DRPS_KIND_DATA, own,
                             l->memory_bytes / 8, &s->data, err);
    if (rc == 0) rc = drps_swap_open(s->ranks, &s->swap, err);
    if (rc == 0) rc = open_out(s, DRPS_FILE_ROWS, DRPS_KIND_ROWS, &s->rows_out, err);
    return rc == 0 ? open_out(s, DRPS_FILE_DATA, DRPS_KIND_DATA, &s->data_out, err) : rc;
}

int drps_together_share_lists(struct swap_ranks *ranks, const struct together_lists *lists,
                              struct drps_err *err)
{
    struct sharing s = {.ranks = ranks, .lists = lists};
    int rc = open_all(&s, err);
    if (rc == 0) rc = send_all(&s, err);
    if (rc == 0) rc = take_all(&s, err);
    if (rc == 0) rc = drps_recwriter_finish(s.rows_out, err);
    if (rc == 0) rc = drps_recwriter_finish(s.data_out, err);
    drps_recwriter_close(s.rows_out);
    drps_recwriter_close(s.data_out);
    drps_steps_close(s.rows);
    drps_steps_close(s.data);
    drps_swap_close(s.swap);
    free(s.packed);
    free(s.ids);
    return rc;
}
