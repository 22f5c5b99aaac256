/*
 * How far away each row of a window is used next and was used last.
 *
 * One pass over the steps lists each window's rows (and the slots of its steps: slots.c). Distances
 * follow from these lists alone, through a table of one window number a row. For `next` a pass
 * backwards over the windows fills it with each row's first window of the epoch, which is what
 * follows its last one; a second pass backwards reads and replaces it. For `prev` both passes run
 * forwards. The table covers a slice of the row ids when memory is short. The parts of a record are
 * made of sections of 65536 ids, and slices are whole sections: so parts are put together from
 * pieces, whatever the slices were.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "index/plan/drps_window.h"

#include "base/drps_alloc.h"
#include "index/plan/codec/drps_distances.h"
#include "index/plan/drps_batch.h"
#include "index/plan/drps_steps.h"
#include "index/plan/drps_window_record.h"
#include "index/windows/drps_cut.h"
#include "index/windows/slots.h"

enum { SECTION_WORDS = SECTION_ROWS / 64 };

/* ---- Distances ---- */

struct window_counts {
    uint32_t rows, sections, arriving, leaving;
};

struct distances {
    const struct drps_window_options *options;
    const struct cut *cut;
    uint64_t slice_rows; /* whole sections */
    size_t slices;
    uint64_t first;               /* row of the slice */
    uint32_t *table;              /* [slice_rows] a window */
    struct window_counts *counts; /* [windows] */
    uint32_t *list, *numbers;     /* [SECTION_ROWS] rows of a section, and their distances */
    unsigned char *packed;        /* sections of one window and slice */
    size_t packed_cap;
    struct steps_scratch scratch[PARTS]; /* see piece_of() */
};

static void distances_destroy(struct distances *d)
{
    drps_pages_free(d->table, (size_t)d->slice_rows * sizeof(*d->table));
    free(d->counts);
    free(d->list);
    free(d->numbers);
    free(d->packed);
    for (int i = 0; i < PARTS; i++)
        drps_steps_scratch_end(&d->scratch[i]);
}

/* A quarter of the memory is left to buffers and pieces. */
static uint64_t slice_rows(uint64_t rows, uint64_t memory_bytes)
{
    uint64_t all = (rows + SECTION_ROWS - 1) / SECTION_ROWS;
    uint64_t fit = memory_bytes / 4 * 3 / (SECTION_ROWS * sizeof(uint32_t));
    if (fit > all) fit = all;
    return (fit ? fit : 1) * SECTION_ROWS;
}

/* The table comes later: see compile_distances(). */
static int distances_init(struct distances *d, const struct drps_io *io, const char *dir,
                          const struct drps_window_options *o, const struct cut *cut,
                          struct drps_err *err)
{
    static const char *const names[PARTS] = {DRPS_FILE_WINDOW_ROWS_TMP, DRPS_FILE_WINDOW_NEXT_TMP,
                                             DRPS_FILE_WINDOW_PREV_TMP};
    int rc = 0;

    *d = (struct distances){.options = o, .cut = cut};
    d->slice_rows = slice_rows(o->rows, o->memory_bytes);
    d->slices = (size_t)((o->rows + d->slice_rows - 1) / d->slice_rows);
    d->counts = calloc(cut->n + 1, sizeof(*d->counts));
    d->list = drps_array_new(SECTION_ROWS, sizeof(*d->list));
    d->numbers = drps_array_new(SECTION_ROWS, sizeof(*d->numbers));
    if (!d->counts || !d->list || !d->numbers)
        return drps_err_set(err, -ENOMEM, "no memory for %zu windows", cut->n);
    for (int i = 0; i < PARTS && rc == 0; i++)
        rc = drps_steps_scratch_begin(&d->scratch[i], io, dir, names[i], err);
    return rc;
}

/* The scratch record of a window's rows, or distances, in one slice: in the order of writing. */
static uint64_t piece_of(const struct distances *d, enum window_part part, size_t w, size_t slice)
{
    if (part == ROWS) return (uint64_t)w * d->slices + slice;
    return (uint64_t)slice * d->cut->n + (part == NEXT ? d->cut->n - 1 - w : w);
}

/* Append n of d->list, or of d->numbers, to the `used` bytes of the piece. */
static int pack(struct distances *d, enum window_part part, size_t n, size_t *used,
                struct drps_err *err)
{
    if (drps_array_reserve(&d->packed, &d->packed_cap, *used + drps_distances_encode_bound(n), 1))
        return drps_err_set(err, -ENOMEM, "no memory for the rows of a window");
    unsigned char *at = d->packed + *used;
    *used += part == ROWS ? drps_list_encode(d->list, n, at)
                          : drps_distances_encode(d->numbers, n, (uint32_t)d->cut->n, at);
    return 0;
}

static int add_piece(struct distances *d, enum window_part part, size_t used, struct drps_err *err)
{
    struct drps_piece piece = {d->packed, used};
    return drps_recwriter_add(d->scratch[part].writer, &piece, 1, err);
}

/* The rows marked in one section, in order. */
static size_t list_section(const uint64_t *marked, uint64_t section, uint32_t *rows_out)
{
    size_t n = 0;
    for (uint64_t i = section * SECTION_WORDS; i < (section + 1) * SECTION_WORDS; i++)
        for (uint64_t word = marked[i]; word; word &= word - 1)
            rows_out[n++] = (uint32_t)(i * 64) + (uint32_t)__builtin_ctzll(word);
    return n;
}

/* Write down the rows of window w, slice by slice. */
static int list_window(struct distances *d, size_t w, const uint64_t *marked, struct drps_err *err)
{
    uint64_t all = (d->options->rows + SECTION_ROWS - 1) / SECTION_ROWS;
    uint64_t each = d->slice_rows / SECTION_ROWS;
    int rc = 0;

    for (uint64_t slice = 0; slice < d->slices && rc == 0; slice++) {
        size_t used = 0;
        uint64_t end = (slice + 1) * each < all ? (slice + 1) * each : all;
        for (uint64_t i = slice * each; i < end && rc == 0; i++) {
            size_t n = list_section(marked, i, d->list);
            if (!n) continue;
            d->counts[w].rows += (uint32_t)n;
            d->counts[w].sections++;
            rc = pack(d, ROWS, n, &used, err);
        }
        if (rc == 0) rc = add_piece(d, ROWS, used, err);
    }
    return rc;
}

/* Write slots.rec, and list the rows of all windows. */
static int list_windows(struct distances *d, const struct drps_io *io, const char *dir,
                        const char *out_dir, struct steps *lists, struct drps_err *err)
{
    struct slots *slots;
    int rc = drps_slots_open(io, dir, out_dir, d->options, d->cut, lists, &slots, err);
    for (size_t w = 0; w < d->cut->n && rc == 0; w++) {
        const uint64_t *marked;
        rc = drps_slots_window(slots, w, &marked, err);
        if (rc == 0) rc = list_window(d, w, marked, err);
    }
    if (rc == 0) rc = drps_slots_finish(slots, err);
    drps_slots_close(slots);
    if (rc == 0) rc = drps_steps_scratch_turn(&d->scratch[ROWS], err);
    return rc;
}

/* The next section of a piece of rows, to d->list; *at advances. */
static int read_section(struct distances *d, const struct drps_piece *piece, size_t *at,
                        size_t *n_out, struct drps_err *err)
{
    const unsigned char *packed = (const unsigned char *)piece->data + *at;
    size_t left = piece->bytes - *at, used = 0;
    uint32_t n = left >= 4 ? drps_list_count(packed) : 0;
    int rc = 0;

    if (n && n <= SECTION_ROWS) rc = drps_list_decode(packed, left, d->list, &used, err);
    if (rc < 0) return rc;
    if (!used || d->list[0] < d->first || d->list[n - 1] - d->first >= d->slice_rows)
        return drps_err_set(err, DRPS_E_CORRUPT, "%s has changed", d->scratch[ROWS].path);
    *at += used;
    *n_out = n;
    return 0;
}

static int read_rows(struct distances *d, size_t w, size_t slice, struct drps_piece *piece_out,
                     struct drps_err *err)
{
    return drps_steps_scratch_read(&d->scratch[ROWS], piece_of(d, ROWS, w, slice), 1, 1, piece_out,
                                   err);
}

/* The first pass: the window that comes last for a row stays in the table. */
static int enter_window(struct distances *d, size_t w, size_t slice, struct drps_err *err)
{
    struct drps_piece piece;
    size_t n;
    int rc = read_rows(d, w, slice, &piece, err);

    for (size_t at = 0; rc == 0 && at < piece.bytes;) {
        rc = read_section(d, &piece, &at, &n, err);
        for (size_t i = 0; rc == 0 && i < n; i++)
            d->table[d->list[i] - d->first] = (uint32_t)w;
    }
    return rc;
}

/* Distances of n rows of window w to what the table holds, which w replaces; returns how many
 * exceed 1. */
static uint32_t take_distances(struct distances *d, enum window_part part, uint32_t w, size_t n)
{
    uint32_t *restrict table = d->table;
    uint32_t *restrict out = d->numbers;
    const uint32_t *restrict rows = d->list;
    uint32_t first = (uint32_t)d->first, windows = (uint32_t)d->cut->n, far = 0;

    for (size_t i = 0; i < n; i++) {
        uint32_t other = table[rows[i] - first];
        uint32_t ahead = part == NEXT ? other - w : w - other; /* modulo 2^32 */
        int wraps = part == NEXT ? other <= w : w <= other;
        table[rows[i] - first] = w;
        out[i] = wraps ? ahead + windows : ahead;
        far += out[i] > 1;
    }
    return far;
}

/* The second pass: distances are taken, and packed. */
static int leave_window(struct distances *d, enum window_part part, size_t w, size_t slice,
                        struct drps_err *err)
{
    struct drps_piece piece;
    uint32_t far = 0;
    size_t n, used = 0;
    int rc = read_rows(d, w, slice, &piece, err);

    for (size_t at = 0; rc == 0 && at < piece.bytes;) {
        rc = read_section(d, &piece, &at, &n, err);
        if (rc < 0) return rc;
        far += take_distances(d, part, (uint32_t)w, n);
        rc = pack(d, part, n, &used, err);
    }
    if (part == NEXT)
        d->counts[w].leaving += far;
    else
        d->counts[w].arriving += far;
    return rc < 0 ? rc : add_piece(d, part, used, err);
}

static int compile_part(struct distances *d, enum window_part part, size_t slice,
                        struct drps_err *err)
{
    size_t n = d->cut->n;
    int rc = 0;
    for (size_t i = 0; i < n && rc == 0; i++)
        rc = enter_window(d, part == NEXT ? n - 1 - i : i, slice, err);
    for (size_t i = 0; i < n && rc == 0; i++)
        rc = leave_window(d, part, part == NEXT ? n - 1 - i : i, slice, err);
    return rc;
}

static int compile_slices(struct distances *d, struct drps_err *err)
{
    int rc = 0;
    d->table = drps_pages_new((size_t)d->slice_rows * sizeof(*d->table));
    if (!d->table)
        return drps_err_set(err, -ENOMEM, "no memory for the next uses of %" PRIu64 " rows",
                            d->slice_rows);
    for (size_t i = 0; i < d->slices && rc == 0; i++) {
        d->first = i * d->slice_rows;
        rc = compile_part(d, NEXT, i, err);
        if (rc == 0) rc = compile_part(d, PREV, i, err);
    }
    if (rc == 0) rc = drps_steps_scratch_turn(&d->scratch[NEXT], err);
    if (rc == 0) rc = drps_steps_scratch_turn(&d->scratch[PREV], err);
    return rc;
}

/* ---- Writing ---- */

static void encode_head(const struct distances *d, size_t w, struct drps_piece *pieces,
                        unsigned char *head)
{
    const struct window_counts *t = &d->counts[w];
    const uint64_t start = d->cut->starts[w];
    const struct drps_window window = {
        .first_step = start,
        .steps = cut_end(d->cut, w, d->options->steps) - start,
        .evaluation = start >= d->options->train_steps,
        .windows = (uint32_t)d->cut->n,
        .max_rows = (uint32_t)d->cut->result.max_window_rows,
        .n = t->rows,
        .arriving = t->arriving,
        .leaving = t->leaving,
    };
    drps_window_head_encode(&window, t->sections, pieces, d->slices, head);
}

static int join_window(struct distances *d, size_t w, struct drps_piece *pieces,
                       struct drps_recwriter *out, struct drps_err *err)
{
    static const enum window_part order[PARTS] = {NEXT, PREV, ROWS};
    unsigned char head[WINDOW_HEAD_BYTES];
    struct drps_piece *part = pieces + 1;
    int rc = 0;

    for (unsigned i = 0; i < PARTS && rc == 0; i++, part += d->slices)
        rc = drps_steps_scratch_read(&d->scratch[order[i]], piece_of(d, order[i], w, 0),
                                     order[i] == ROWS ? 1 : d->cut->n, d->slices, part, err);
    if (rc < 0) return rc;
    encode_head(d, w, pieces, head);
    return drps_recwriter_add(out, pieces, 1 + PARTS * d->slices, err);
}

static int write_windows(struct distances *d, const struct drps_io *io, const char *dir,
                         struct drps_err *err)
{
    struct drps_recwriter *out = NULL;
    char *path = drps_path_join(dir, DRPS_FILE_WINDOWS);
    struct drps_piece *pieces = drps_array_new(1 + PARTS * d->slices, sizeof(*pieces));
    int rc = path && pieces
                 ? 0
                 : drps_err_set(err, -ENOMEM, "no memory to write %s/" DRPS_FILE_WINDOWS, dir);

    if (rc == 0) rc = drps_recwriter_open(io, path, DRPS_KIND_WINDOWS, &out, err);
    for (size_t w = 0; w < d->cut->n && rc == 0; w++)
        rc = join_window(d, w, pieces, out, err);
    if (rc == 0) rc = drps_recwriter_finish(out, err);
    drps_recwriter_close(out);
    free(pieces);
    free(path);
    return rc;
}

static int compile_distances(const struct drps_io *io, const char *dir, const char *out_dir,
                             const struct drps_window_options *o, struct steps *lists,
                             const struct cut *cut, struct drps_err *err)
{
    struct distances d;
    int rc = distances_init(&d, io, out_dir, o, cut, err);
    if (rc == 0) rc = list_windows(&d, io, dir, out_dir, lists, err);
    if (rc == 0) rc = compile_slices(&d, err);
    if (rc == 0) rc = write_windows(&d, io, out_dir, err);
    distances_destroy(&d);
    return rc;
}

/* ---- Compiling ---- */

static int compile(const struct drps_io *io, const char *dir, const char *out_dir,
                   const struct drps_window_options *o, struct steps *lists,
                   struct drps_window_result *result, struct drps_err *err)
{
    struct cut cut;
    int rc = drps_cut_steps(lists, o, &cut, err);

    if (rc == 0) {
        drps_log(o->log, DRPS_LOG_DEBUG, "%zu windows, at most %" PRIu64 " rows in two of them",
                 cut.n, cut.result.working_set_rows);
        rc = compile_distances(io, dir, out_dir, o, lists, &cut, err);
    }
    if (rc == 0) *result = cut.result;
    drps_cut_free(&cut);
    return rc;
}

int drps_windows_compile(const struct drps_io *io, const char *dir, const char *out_dir,
                         const struct drps_window_options *options,
                         struct drps_window_result *result_out, struct drps_err *err)
{
    struct steps *lists;

    *result_out = (struct drps_window_result){0};
    int rc = drps_cut_check(options, err);
    if (rc < 0) return rc;
    rc = drps_steps_open(io, dir, DRPS_FILE_ROWS, DRPS_KIND_ROWS, options->steps,
                         options->memory_bytes / 8, &lists, err);
    if (rc < 0) return rc;
    rc = compile(io, dir, out_dir, options, lists, result_out, err);
    drps_steps_close(lists);
    return rc;
}
