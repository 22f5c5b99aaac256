/* Uses of rows by workers, through a scratch file of slices (row_uses.h). */
#include "index/ranks/row_uses.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"
#include "index/plan/codec/drps_list.h"
#include "index/plan/drps_plan_files.h"

enum { SLICE_MOST = 1 << 16, SLICE_LEAST = 1 << 8, SLICE_TOUCH_BYTES = 32 };

struct row_uses {
    const struct row_uses_job *job;
    uint32_t slice;  /* rows of one, but for the last */
    uint64_t slices; /* record w * slices + s has worker w's uses of slice s */
    struct steps_scratch scratch;

    /* Of the slice at hand: */
    struct drps_piece *records; /* own [workers] */
    uint32_t *rows, *counts;    /* own [cap each]: of one worker after another */
    size_t rows_cap, counts_cap;
    size_t *part;               /* own [workers + 1]: where a worker's begin */
    struct drps_touch *touches; /* own: the same by rows */
    size_t touches_cap;
    size_t *starts;        /* own [slice + 1] where a row's end, and then begin */
    unsigned char *packed; /* own: a record in the making */
};

static uint32_t slice_end(const struct row_uses *u, uint64_t s)
{
    const uint64_t end = (s + 1) * u->slice;
    return end < u->job->rows ? (uint32_t)end : u->job->rows;
}

/* ---- Records ---- */

/* Pack a slice's counts, which return to 0. */
static struct drps_piece pack_slice(struct row_uses *u, uint64_t s, uint32_t *count)
{
    const uint32_t first = (uint32_t)(s * u->slice), end = slice_end(u, s);
    size_t n = 0;
    for (uint32_t r = first; r < end; r++) {
        if (!count[r]) continue;
        u->rows[n] = r - first;
        u->counts[n++] = count[r];
        count[r] = 0;
    }
    size_t bytes = drps_list_encode(u->rows, n, u->packed);
    bytes += drps_numbers_encode(u->counts, n, u->packed + bytes);
    return (struct drps_piece){u->packed, bytes};
}

/* Take a record of slice s apart, behind `at` uses: *n_out more. DRPS_E_CORRUPT: it is not one. */
static int unpack_slice(struct row_uses *u, uint64_t s, const struct drps_piece *record, size_t at,
                        size_t *n_out, struct drps_err *err)
{
    const uint32_t most = slice_end(u, s) - (uint32_t)(s * u->slice);
    const uint32_t n = record->bytes >= 4 ? drps_list_count(record->data) : 0;
    size_t used = 0, more = 0;
    if (n > most) /* bounds what is reserved */
        return drps_err_set(err, DRPS_E_CORRUPT, "%s: %" PRIu32 " rows in a slice of %" PRIu32,
                            u->scratch.path, n, most);
    if (drps_array_reserve(&u->rows, &u->rows_cap, at + n, sizeof(*u->rows)) ||
        drps_array_reserve(&u->counts, &u->counts_cap, at + n, sizeof(*u->counts)))
        return drps_err_set(err, -ENOMEM, "no memory for the uses of rows");
    int rc = drps_list_decode(record->data, record->bytes, u->rows + at, &used, err);
    const unsigned char *counts = (const unsigned char *)record->data + used;
    if (rc == 0 && (record->bytes - used < 4 || drps_list_count(counts) != n))
        rc = drps_err_set(err, DRPS_E_CORRUPT, "%s: rows without counts", u->scratch.path);
    if (rc == 0) rc = drps_numbers_decode(counts, record->bytes - used, u->counts + at, &more, err);
    if (rc == 0 && used + more != record->bytes)
        rc = drps_err_set(err, DRPS_E_CORRUPT, "%s: more than uses of rows", u->scratch.path);
    if (rc == 0 && n && u->rows[at + n - 1] >= most)
        rc = drps_err_set(err, DRPS_E_CORRUPT, "%s: row %" PRIu32 " in a slice of %" PRIu32,
                          u->scratch.path, u->rows[at + n - 1], most);
    for (size_t i = at; i < at + n && rc == 0; i++)
        if (!u->counts[i])
            rc = drps_err_set(err, DRPS_E_CORRUPT, "%s: a row without uses", u->scratch.path);
    *n_out = n;
    return rc;
}

/* ---- Counting ---- */

/* Count batches first, first + step ... */
static int count_batches(const struct row_uses *u, struct steps *lists, uint32_t first,
                         uint32_t step, uint32_t *count, struct drps_err *err)
{
    const struct row_uses_job *job = u->job;
    const uint32_t *rows;
    size_t n;
    int rc = 0;
    for (uint64_t k = first; k < job->batches && rc == 0; k += step) {
        rc = drps_steps_rows(lists, k, job->rows, &rows, &n, err);
        for (size_t i = 0; i < n && rc == 0; i++)
            count[rows[i]]++;
    }
    return rc;
}

static int count_all(struct row_uses *u, struct steps *lists, uint32_t *count, struct drps_err *err)
{
    int rc = 0;
    for (uint32_t w = 0; w < u->job->workers && rc == 0; w++) {
        rc = count_batches(u, lists, w, u->job->workers, count, err);
        for (uint64_t s = 0; s < u->slices && rc == 0; s++) {
            const struct drps_piece piece = pack_slice(u, s, count);
            rc = drps_recwriter_add(u->scratch.writer, &piece, 1, err);
        }
    }
    return rc;
}

/* ---- Counting on several machines ---- */

/* All ranks are sent, of each slice: u32 bytes | the record */
static int tell_uses(struct row_uses *u, struct swap *swap, uint32_t *count, struct drps_err *err)
{
    int rc = 0;
    for (uint64_t s = 0; s < u->slices && rc == 0; s++) {
        const struct drps_piece piece = pack_slice(u, s, count);
        const uint32_t bytes = (uint32_t)piece.bytes;
        for (uint32_t to = 0; to < u->job->ranks->count && rc == 0; to++) {
            rc = drps_swap_put(swap, to, &bytes, sizeof(bytes), err);
            if (rc == 0) rc = drps_swap_put(swap, to, piece.data, bytes, err);
        }
    }
    return rc == 0 ? drps_swap_end(swap, err) : rc;
}

static int check_told(struct row_uses *u, uint64_t s, const struct drps_piece *record,
                      uint32_t from, struct drps_err *err)
{
    struct drps_err why = DRPS_ERR_INIT;
    size_t n;
    const int rc = unpack_slice(u, s, record, 0, &n, &why);
    if (rc == DRPS_E_CORRUPT) return drps_swap_fault(from, "uses of rows that make no sense", err);
    return rc < 0 ? drps_err_set(err, rc, "%s", why.text) : 0;
}

/* Write what a rank has told. */
static int take_uses(struct row_uses *u, struct swap *swap, uint32_t from, struct drps_err *err)
{
    int rc = 0;
    for (uint64_t s = 0; s < u->slices && rc == 0; s++) {
        uint32_t bytes = 0;
        rc = drps_swap_take(swap, from, &bytes, sizeof(bytes), err);
        if (rc == 0 && bytes > 2 * drps_list_encode_bound(u->slice))
            rc = drps_swap_fault(from, "more uses of rows than there can be", err);
        if (rc == 0) rc = drps_swap_take(swap, from, u->packed, bytes, err);
        const struct drps_piece record = {u->packed, bytes};
        if (rc == 0) rc = check_told(u, s, &record, from, err);
        if (rc == 0) rc = drps_recwriter_add(u->scratch.writer, &record, 1, err);
    }
    return rc;
}

static int count_together(struct row_uses *u, struct steps *lists, uint32_t *count,
                          struct drps_err *err)
{
    struct swap *swap = NULL;
    int rc = count_batches(u, lists, 0, 1, count, err);
    if (rc == 0) rc = drps_swap_open(u->job->ranks, &swap, err);
    if (rc == 0) rc = tell_uses(u, swap, count, err);
    for (uint32_t from = 0; from < u->job->ranks->count && rc == 0; from++)
        rc = take_uses(u, swap, from, err);
    if (rc == 0) rc = drps_swap_all_taken(swap, err);
    drps_swap_close(swap);
    return rc;
}

static int write_uses(struct row_uses *u, struct drps_err *err)
{
    const struct row_uses_job *job = u->job;
    struct steps *lists = NULL;
    uint32_t *count = calloc((size_t)job->rows + 1, sizeof(*count));
    int rc =
        count ? 0
              : drps_err_set(err, -ENOMEM, "no memory for the uses of %" PRIu32 " rows", job->rows);
    if (rc == 0)
        rc = drps_steps_open(job->io, job->dir, DRPS_FILE_ROWS, DRPS_KIND_ROWS, job->records,
                             job->memory_bytes, &lists, err);
    if (rc == 0)
        rc = drps_steps_scratch_begin(&u->scratch, job->io, job->dir, DRPS_FILE_ROW_USES_TMP, err);
    if (rc == 0)
        rc = job->ranks ? count_together(u, lists, count, err) : count_all(u, lists, count, err);
    if (rc == 0) rc = drps_steps_scratch_turn(&u->scratch, err);
    drps_steps_close(lists);
    free(count);
    return rc;
}

/* ---- Walking ---- */

/* The workers' uses become those of one row after another, each by rising worker. */
static int group_by_row(struct row_uses *u, struct drps_err *err)
{
    const size_t n = u->part[u->job->workers];
    if (drps_array_reserve(&u->touches, &u->touches_cap, n, sizeof(*u->touches)))
        return drps_err_set(err, -ENOMEM, "no memory for the uses of rows");
    memset(u->starts, 0, ((size_t)u->slice + 1) * sizeof(*u->starts));
    for (size_t i = 0; i < n; i++)
        u->starts[u->rows[i]]++;
    for (uint32_t r = 1; r <= u->slice; r++)
        u->starts[r] += u->starts[r - 1];
    for (uint32_t w = u->job->workers; w-- > 0;)
        for (size_t i = u->part[w + 1]; i-- > u->part[w];)
            u->touches[--u->starts[u->rows[i]]] =
                (struct drps_touch){u->job->first_machine + w, u->counts[i]};
    return 0;
}

int drps_row_uses_walk(void *ctx, drps_row_visit visit, void *visit_ctx, struct drps_err *err)
{
    struct row_uses *u = ctx;
    int rc = 0;
    for (uint64_t s = 0; s < u->slices && rc == 0; s++) {
        const uint32_t first = (uint32_t)(s * u->slice);
        rc = drps_io_stopped(u->job->io, err);
        if (rc == 0)
            rc = drps_steps_scratch_read(&u->scratch, s, u->slices, u->job->workers, u->records,
                                         err);
        for (uint32_t w = 0; w < u->job->workers && rc == 0; w++) {
            size_t n = 0;
            rc = unpack_slice(u, s, &u->records[w], u->part[w], &n, err);
            u->part[w + 1] = u->part[w] + n;
        }
        if (rc == 0) rc = group_by_row(u, err);
        for (uint32_t r = 0; r < u->slice && rc == 0; r++) {
            const size_t n = u->starts[r + 1] - u->starts[r];
            if (n) rc = visit(visit_ctx, first + r, u->touches + u->starts[r], n, err);
        }
    }
    return rc;
}

/* ---- Beginning and end ---- */

void drps_row_uses_close(struct row_uses *u)
{
    if (!u) return;
    if (u->scratch.io) drps_steps_scratch_end(&u->scratch);
    free(u->records);
    free(u->rows);
    free(u->counts);
    free(u->part);
    free(u->touches);
    free(u->starts);
    free(u->packed);
    free(u);
}

/* So many rows that the uses of all workers fit. */
static uint32_t slice_rows(const struct row_uses_job *job)
{
    const uint64_t fit = job->memory_bytes / SLICE_TOUCH_BYTES / job->workers;
    return fit > SLICE_MOST ? SLICE_MOST : fit < SLICE_LEAST ? SLICE_LEAST : (uint32_t)fit;
}

/* Several machines use slices of the size that fits the memory of each. */
static int agree_on_slice(const struct swap_ranks *ranks, uint32_t *slice, struct drps_err *err)
{
    const uint64_t mine = *slice;
    uint64_t *all;
    int rc = drps_swap_gather(ranks, &mine, 1, &all, err);
    for (uint32_t r = 0; r < ranks->count && rc == 0; r++) {
        if (all[r] < SLICE_LEAST || all[r] > SLICE_MOST)
            rc = drps_swap_fault(r, "slices of rows that make no sense", err);
        else if (all[r] < *slice)
            *slice = (uint32_t)all[r];
    }
    free(all);
    return rc;
}

int drps_row_uses_open(const struct row_uses_job *job, struct row_uses **out, struct drps_err *err)
{
    struct row_uses *u = *out = calloc(1, sizeof(*u));
    if (!u) return drps_err_set(err, -ENOMEM, "no memory for the uses of rows");
    u->job = job;
    u->slice = slice_rows(job);
    if (job->ranks) {
        int rc = agree_on_slice(job->ranks, &u->slice, err);
        if (rc < 0) return rc;
    }
    u->slices = ((uint64_t)job->rows + u->slice - 1) / u->slice;
    u->records = calloc(job->workers, sizeof(*u->records));
    u->part = calloc((size_t)job->workers + 1, sizeof(*u->part));
    u->starts = calloc((size_t)u->slice + 1, sizeof(*u->starts));
    u->packed = drps_array_new(2 * drps_list_encode_bound(u->slice), 1);
    if (!u->records || !u->part || !u->starts || !u->packed ||
        drps_array_reserve(&u->rows, &u->rows_cap, u->slice, sizeof(*u->rows)) ||
        drps_array_reserve(&u->counts, &u->counts_cap, u->slice, sizeof(*u->counts)))
        return drps_err_set(err, -ENOMEM, "no memory for the uses of rows");
    return write_uses(u, err);
}
