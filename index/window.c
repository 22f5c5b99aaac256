/*
 * Cutting an epoch into windows, and where each row of a window is needed next.
 *
 * Cutting. C is the budget in rows, m the most rows of one step, and C >= 2m. Steps join the open
 * window w as long as |rows(w)| <= bound  and  |rows(w-1) u rows(w)| <= C,      C/2 <= bound <= C -
 * m. The first step of a window always fits, because |rows(w-1)| <= C - m leaves room for m more:
 * so the invariant holds for every pair but the last and the first window, which meet when the
 * epoch begins again. If those two exceed C, the last window is cut once more: its second part is
 * the longest run of final steps whose rows fit together with window 0 (one step does: |rows(0)| <=
 * C - m), and the two parts lie in what was one window of at most C rows. The bound follows the
 * overlap of neighbours: two windows of (C + overlap)/2 rows fill the budget exactly; equal windows
 * lose less than a large one beside a small one. When the rows of all steps fit, nothing bounds a
 * window but the border between training and evaluation.
 *
 * Transits. Per row a table holds the window that touches it next and the slot there. One pass
 * backwards over the windows fills it with each row's first window of the epoch, a second one reads
 * and replaces it window by window. The table covers a slice of the row ids when memory is short. A
 * window's record is made of sections of 65536 ids, and slices are whole sections: so records are
 * put together from pieces, whatever the slices were.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "index/drps_window.h"

#include "base/drps_alloc.h"
#include "base/drps_endian.h"
#include "index/drps_batch.h"

enum { BUFFER_LEAST = 64 * 1024, BUFFER_MOST = 4 * 1024 * 1024 };
enum { SECTION_BITS = 16, SECTION_ROWS = 1 << SECTION_BITS, SECTION_WORDS = SECTION_ROWS / 64 };
enum { HEAD_BYTES = 40, FLAG_EVALUATION = 1 };
enum { BITMAPS = 4 }; /* of a cutter */

/* ---- Records of steps ---- */

struct drps_steps {
    char *path;
    struct drps_recfile *file;
    uint64_t count;
    uint64_t first, n; /* records in buf */
    uint64_t target;   /* bytes of a run */
    char *buf;
    size_t cap;
    uint32_t *list;
    size_t list_cap;
};

int drps_steps_open(const struct drps_io *io, const char *dir, const char *name, uint32_t kind,
                    uint64_t steps, uint64_t buffer_bytes, struct drps_steps **st_out,
                    struct drps_err *err)
{
    *st_out = NULL;
    struct drps_steps *st = calloc(1, sizeof(*st));
    if (!st) return drps_err_set(err, -ENOMEM, "no memory to read %s/%s", dir, name);
    st->target = buffer_bytes < BUFFER_LEAST  ? BUFFER_LEAST
                 : buffer_bytes > BUFFER_MOST ? BUFFER_MOST
                                              : buffer_bytes;
    st->path = drps_path_join(dir, name);
    int rc = st->path ? 0 : drps_err_set(err, -ENOMEM, "no memory to read %s/%s", dir, name);
    if (rc == 0) rc = drps_recfile_open(io, st->path, kind, &st->file, err);
    if (rc == 0) st->count = drps_recfile_count(st->file);
    if (rc == 0 && st->count != steps)
        rc = drps_err_set(err, DRPS_E_CORRUPT, "%s holds %" PRIu64 " records, expected %" PRIu64,
                          st->path, st->count, steps);
    if (rc < 0) {
        drps_steps_close(st);
        return rc;
    }
    *st_out = st;
    return 0;
}

void drps_steps_close(struct drps_steps *st)
{
    if (!st) return;
    drps_recfile_close(st->file);
    free(st->path);
    free(st->buf);
    free(st->list);
    free(st);
}

int drps_steps_fault(const struct drps_steps *st, uint64_t s, struct drps_err *err)
{
    return drps_err_context(err, "%s: record %" PRIu64, st->path, s);
}

/* The run that holds s: the one that ends with it when reading backwards, else the one that begins
 * with it. */
static int load_run(struct drps_steps *st, uint64_t s, struct drps_err *err)
{
    uint64_t first = s;
    uint64_t n = 1;

    if (st->n && s < st->first) {
        while (first > 0 &&
               drps_recfile_run_bytes(st->file, first - 1, s - first + 2) <= st->target)
            first--;
        n = s - first + 1;
    } else {
        n = drps_recfile_run_length(st->file, s, st->target);
    }
    st->n = 0; /* until the bytes are there */
    size_t bytes = (size_t)drps_recfile_run_bytes(st->file, first, n);
    if (drps_array_reserve(&st->buf, &st->cap, bytes, 1))
        return drps_err_set(err, -ENOMEM, "no memory for %zu bytes of %s", bytes, st->path);
    int rc = drps_recfile_read(st->file, first, n, st->buf, err);
    if (rc < 0) return rc;
    st->first = first;
    st->n = n;
    return 0;
}

int drps_steps_record(struct drps_steps *st, uint64_t s, const void **record_out, size_t *bytes_out,
                      struct drps_err *err)
{
    if (!st->n || s < st->first || s >= st->first + st->n) {
        int rc = load_run(st, s, err);
        if (rc < 0) return rc;
    }
    *record_out = st->buf + drps_recfile_offset_in_run(st->file, st->first, s);
    *bytes_out = (size_t)drps_recfile_bytes(st->file, s);
    return 0;
}

static int decode_rows(struct drps_steps *st, const void *record, size_t bytes, uint64_t rows,
                       size_t *n_out, struct drps_err *err)
{
    size_t used;
    uint32_t n = bytes >= 4 ? drps_list_count(record) : 0;

    if (n > bytes) /* a number takes a byte or more: bounds the allocation */
        return drps_err_set(err, DRPS_E_CORRUPT, "a list of %" PRIu32 " rows in %zu bytes", n,
                            bytes);
    if (drps_array_reserve(&st->list, &st->list_cap, n, sizeof(*st->list)))
        return drps_err_set(err, -ENOMEM, "no memory for %" PRIu32 " rows", n);
    int rc = drps_list_decode(record, bytes, st->list, &used, err);
    if (rc < 0) return rc;
    if (used != bytes)
        return drps_err_set(err, DRPS_E_CORRUPT, "the list ends after %zu bytes of %zu", used,
                            bytes);
    if (n && st->list[n - 1] >= rows)
        return drps_err_set(err, DRPS_E_CORRUPT, "row %" PRIu32 " of %" PRIu64, st->list[n - 1],
                            rows);
    *n_out = n;
    return 0;
}

int drps_steps_rows(struct drps_steps *st, uint64_t s, uint64_t rows, const uint32_t **list_out,
                    size_t *n_out, struct drps_err *err)
{
    const void *record;
    size_t bytes;

    *n_out = 0;
    int rc = drps_steps_record(st, s, &record, &bytes, err);
    if (rc < 0) return rc;
    rc = decode_rows(st, record, bytes, rows, n_out, err);
    *list_out = st->list;
    if (rc < 0) (void)drps_steps_fault(st, s, err);
    return rc;
}

/* ---- Scratch files ---- */

enum { KIND_SCRATCH = DRPS_REC_KIND('S', 'C', 'R', 'A') };

int drps_scratch_begin(struct drps_scratch *s, const struct drps_io *io, const char *dir,
                       const char *name, struct drps_err *err)
{
    *s = (struct drps_scratch){.io = io, .path = drps_path_join(dir, name)};
    if (!s->path) return drps_err_set(err, -ENOMEM, "no memory to write %s/%s", dir, name);
    return drps_recwriter_open(io, s->path, KIND_SCRATCH, &s->writer, err);
}

int drps_scratch_turn(struct drps_scratch *s, struct drps_err *err)
{
    int rc = drps_recwriter_finish(s->writer, err);
    drps_recwriter_close(s->writer);
    s->writer = NULL;
    if (rc == 0) rc = drps_recfile_open(s->io, s->path, KIND_SCRATCH, &s->file, err);
    return rc;
}

int drps_scratch_read(struct drps_scratch *s, uint64_t first, uint64_t stride, size_t n,
                      struct drps_piece *pieces, struct drps_err *err)
{
    size_t bytes = 0;
    for (size_t i = 0; i < n; i++)
        bytes += (size_t)drps_recfile_run_bytes(s->file, first + i * stride, 1);
    if (drps_array_reserve(&s->buf, &s->cap, bytes, 1))
        return drps_err_set(err, -ENOMEM, "no memory for %zu bytes of %s", bytes, s->path);
    char *at = s->buf;
    for (size_t i = 0; i < n; i++) {
        uint64_t r = first + i * stride;
        int rc = drps_recfile_read(s->file, r, 1, at, err);
        if (rc < 0) return rc;
        pieces[i] = (struct drps_piece){at, (size_t)drps_recfile_bytes(s->file, r)};
        at += drps_recfile_run_bytes(s->file, r, 1);
    }
    return 0;
}

void drps_scratch_end(struct drps_scratch *s)
{
    drps_recwriter_close(s->writer);
    drps_recfile_close(s->file);
    if (s->path)
        (void)s->io->ops->unlink(s->io->ctx,
                                 s->path); /* its folder is a stage, which is removed on failure */
    free(s->path);
    free(s->buf);
    *s = (struct drps_scratch){0};
}

/* ---- What is needed before cutting ---- */

struct extent {
    uint64_t step_rows; /* most rows of a step */
    uint64_t touched;   /* rows that any step touches */
};

static size_t bitmap_words(uint64_t rows)
{
    return (size_t)(rows / 64 + 1);
}

static int check_options(const struct drps_window_options *o, struct drps_err *err)
{
    if (o->train_steps > o->steps || o->steps > UINT32_MAX || o->rows > (uint64_t)UINT32_MAX + 1 ||
        !o->row_bytes)
        return drps_err_set(err, -EINVAL,
                            "windows of %" PRIu64 " steps (%" PRIu64 " training), %" PRIu64
                            " rows of %" PRIu64 " bytes",
                            o->steps, o->train_steps, o->rows, o->row_bytes);
    return 0;
}

static int find_extent(struct drps_steps *lists, const struct drps_window_options *o,
                       struct extent *x, struct drps_err *err)
{
    const uint32_t *rows;
    size_t n;
    int rc = 0;
    uint64_t *seen = calloc(bitmap_words(o->rows), sizeof(*seen));

    *x = (struct extent){0, 0};
    if (!seen) return drps_err_set(err, -ENOMEM, "no memory for a bit a row");
    for (uint64_t s = 0; s < o->steps && rc == 0; s++) {
        rc = drps_steps_rows(lists, s, o->rows, &rows, &n, err);
        if (n > x->step_rows) x->step_rows = n;
        for (size_t i = 0; i < n; i++)
            seen[rows[i] / 64] |= UINT64_C(1) << rows[i] % 64;
    }
    for (size_t i = 0; i < bitmap_words(o->rows); i++)
        x->touched += (uint64_t)__builtin_popcountll(seen[i]);
    free(seen);
    return rc;
}

/* Rows that a budget must have room for. */
static uint64_t rows_needed(const struct extent *x)
{
    return 2 * x->step_rows < x->touched ? 2 * x->step_rows : x->touched;
}

/* ---- Cutting ---- */

struct cutter {
    const struct drps_window_options *options;
    struct extent extent;
    uint64_t cap;   /* C */
    uint64_t bound; /* of the open window */
    size_t words;   /* of each bitmap */
    uint64_t *cur, *prev, *first,
        *tail; /* rows of: the open window, the one before, window 0; scratch */
    uint64_t cur_rows, prev_rows, first_rows;
    uint64_t common; /* rows of both cur and prev */
    uint32_t *fresh; /* rows that the last step added to cur */
    size_t fresh_n;
    uint64_t fresh_common;
    uint64_t start;   /* first step of the open window */
    uint64_t *starts; /* of the windows closed */
    size_t n, starts_cap;
    struct drps_window_result result;
};

static void cutter_destroy(struct cutter *c)
{
    free(c->cur);
    free(c->prev);
    free(c->first);
    free(c->tail);
    free(c->fresh);
    free(c->starts);
}

/* The caller has checked that the budget has room for rows_needed(). Destroy also after a failure.
 */
static int cutter_init(struct cutter *c, const struct drps_window_options *o, uint64_t budget,
                       const struct extent *x, struct drps_err *err)
{
    *c = (struct cutter){
        .options = o, .extent = *x, .cap = budget / o->row_bytes, .words = bitmap_words(o->rows)};
    c->bound = x->touched <= c->cap ? UINT64_MAX : c->cap / 2;
    c->cur = calloc(c->words, sizeof(*c->cur));
    c->prev = calloc(c->words, sizeof(*c->prev));
    c->first = calloc(c->words, sizeof(*c->first));
    c->tail = calloc(c->words, sizeof(*c->tail));
    c->fresh = drps_array_new((size_t)x->step_rows + 1,
                              sizeof(*c->fresh)); /* one is written and not kept */
    if (!c->cur || !c->prev || !c->first || !c->tail || !c->fresh)
        return drps_err_set(err, -ENOMEM, "no memory for %d bits a row", BITMAPS);
    return 0;
}

static void add(struct cutter *c, const uint32_t *rows, size_t n)
{
    uint64_t *restrict cur = c->cur;
    const uint64_t *restrict prev = c->prev;
    uint32_t *restrict fresh = c->fresh;
    size_t k = 0;
    uint64_t common = 0;

    for (size_t i = 0; i < n; i++) {
        uint32_t row = rows[i];
        uint64_t word = cur[row / 64];
        uint64_t is_new = ~word >> row % 64 & 1;
        fresh[k] = row;
        k += is_new;
        common += is_new & prev[row / 64] >> row % 64;
        cur[row / 64] = word | UINT64_C(1) << row % 64;
    }
    c->fresh_n = k;
    c->fresh_common = common;
    c->cur_rows += k;
    c->common += common;
}

static void undo_add(struct cutter *c)
{
    for (size_t i = 0; i < c->fresh_n; i++)
        c->cur[c->fresh[i] / 64] &= ~(UINT64_C(1) << c->fresh[i] % 64);
    c->cur_rows -= c->fresh_n;
    c->common -= c->fresh_common;
}

static uint64_t pair_rows(const struct cutter *c)
{
    return c->prev_rows + c->cur_rows - c->common;
}

static uint64_t in_both(const uint64_t *a, const uint64_t *b, size_t words)
{
    uint64_t n = 0;
    for (size_t i = 0; i < words; i++)
        n += (uint64_t)__builtin_popcountll(a[i] & b[i]);
    return n;
}

static void keep_most(uint64_t *most, uint64_t value)
{
    if (value > *most) *most = value;
}

static void clear_open(struct cutter *c)
{
    memset(c->cur, 0, c->words * sizeof(*c->cur));
    c->cur_rows = 0;
    c->common = 0;
}

/* Half of the budget and half of what neighbours share, but leaving room for any next step. */
static void set_bound(struct cutter *c)
{
    if (c->bound == UINT64_MAX) return;
    uint64_t most = c->cap - c->extent.step_rows;
    c->bound = (c->cap + c->common) / 2;
    if (c->bound > most) c->bound = most;
}

/* The open window ends before step `end`, where the next one begins. */
static int close_window(struct cutter *c, uint64_t end, struct drps_err *err)
{
    struct drps_window_result *r = &c->result;

    if (drps_array_reserve(&c->starts, &c->starts_cap, c->n + 1, sizeof(*c->starts)))
        return drps_err_set(err, -ENOMEM, "no memory for %zu windows", c->n + 1);
    if (c->n == 0) {
        memcpy(c->first, c->cur, c->words * sizeof(*c->cur));
        c->first_rows = c->cur_rows;
    }
    c->starts[c->n++] = c->start;
    r->rows_touched += c->cur_rows;
    r->rows_kept += c->common;
    keep_most(&r->max_window_rows, c->cur_rows);
    keep_most(&r->working_set_rows, pair_rows(c));
    set_bound(c);
    uint64_t *swap = c->prev;
    c->prev = c->cur;
    c->prev_rows = c->cur_rows;
    c->cur = swap;
    clear_open(c);
    c->start = end;
    return 0;
}

static int cutter_step(struct cutter *c, uint64_t s, const uint32_t *rows, size_t n,
                       struct drps_err *err)
{
    int rc = 0;
    if (s == c->options->train_steps && s > c->start) rc = close_window(c, s, err);
    if (rc < 0) return rc;
    add(c, rows, n);
    if (s == c->start || (c->cur_rows <= c->bound && pair_rows(c) <= c->cap)) return 0;
    undo_add(c);
    rc = close_window(c, s, err);
    if (rc == 0) add(c, rows, n);
    return rc;
}

static int add_steps(struct cutter *c, struct drps_steps *lists, uint64_t from, uint64_t to,
                     struct drps_err *err)
{
    const uint32_t *rows;
    size_t n;
    for (uint64_t s = from; s < to; s++) {
        int rc = drps_steps_rows(lists, s, c->options->rows, &rows, &n, err);
        if (rc < 0) return rc;
        add(c, rows, n);
    }
    return 0;
}

/* The first step of the longest end of the open window that fits beside window 0. */
static int find_tail(struct cutter *c, struct drps_steps *lists, uint64_t *at_out,
                     struct drps_err *err)
{
    const uint32_t *rows;
    size_t n;
    uint64_t s = c->options->steps;

    memcpy(c->tail, c->first, c->words * sizeof(*c->tail));
    for (uint64_t used = c->first_rows; s > c->start; s--) {
        int rc = drps_steps_rows(lists, s - 1, c->options->rows, &rows, &n, err);
        if (rc < 0) return rc;
        for (size_t i = 0; i < n; i++) {
            used += ~c->tail[rows[i] / 64] >> rows[i] % 64 & 1;
            c->tail[rows[i] / 64] |= UINT64_C(1) << rows[i] % 64;
        }
        if (used > c->cap) break;
    }
    *at_out = s;
    return 0;
}

/* The open window is the last one, and too large beside window 0: make it two. */
static int split_last(struct cutter *c, struct drps_steps *lists, struct drps_err *err)
{
    uint64_t at;
    int rc = find_tail(c, lists, &at, err);
    if (rc < 0) return rc;
    clear_open(c);
    rc = add_steps(c, lists, c->start, at, err);
    if (rc == 0) rc = close_window(c, at, err);
    if (rc == 0) rc = add_steps(c, lists, at, c->options->steps, err);
    return rc;
}

static int cutter_finish(struct cutter *c, struct drps_steps *lists, struct drps_err *err)
{
    struct drps_window_result *r = &c->result;
    uint64_t steps = c->options->steps;
    int rc = 0;

    if (steps == 0) return 0;
    if (c->n > 0 && c->first_rows + c->cur_rows - in_both(c->first, c->cur, c->words) > c->cap)
        rc = split_last(c, lists, err);
    if (rc == 0) rc = close_window(c, steps, err);
    if (rc < 0) return rc;
    uint64_t wrap =
        in_both(c->first, c->prev, c->words); /* close_window() has moved the last window to prev */
    r->windows = c->n;
    r->rows_kept += wrap;
    keep_most(&r->working_set_rows, c->first_rows + c->prev_rows - wrap);
    if (c->n <= 2) r->rows_kept = r->rows_touched;
    r->rows_moved = r->rows_touched - r->rows_kept;
    return 0;
}

/* One pass over the lists for all cutters. */
static int cut(struct cutter *c, size_t n_cutters, struct drps_steps *lists, struct drps_err *err)
{
    const uint32_t *rows;
    size_t n;
    int rc = 0;

    for (uint64_t s = 0; n_cutters && s < c->options->steps && rc == 0; s++) {
        rc = drps_steps_rows(lists, s, c->options->rows, &rows, &n, err);
        for (size_t i = 0; i < n_cutters && rc == 0; i++)
            rc = cutter_step(&c[i], s, rows, n, err);
    }
    for (size_t i = 0; i < n_cutters && rc == 0; i++)
        rc = cutter_finish(&c[i], lists, err);
    return rc;
}

/* ---- Measuring ---- */

static int measure_group(const struct drps_window_options *o, const struct extent *x,
                         struct drps_steps *lists, const uint64_t *budgets, size_t n,
                         struct drps_window_result *results, struct drps_err *err)
{
    int rc = 0;
    size_t used = 0;
    struct cutter *c = calloc(n, sizeof(*c));

    if (!c) return drps_err_set(err, -ENOMEM, "no memory to cut windows");
    for (size_t i = 0; i < n && rc == 0; i++)
        if (budgets[i] / o->row_bytes >= rows_needed(x))
            rc = cutter_init(&c[used++], o, budgets[i], x, err);
    if (rc == 0) rc = cut(c, used, lists, err);
    for (size_t i = 0, k = 0; i < n && rc == 0; i++)
        if (budgets[i] / o->row_bytes >= rows_needed(x)) results[i] = c[k++].result;
    for (size_t i = 0; i < used; i++)
        cutter_destroy(&c[i]);
    free(c);
    return rc;
}

int drps_windows_measure(const struct drps_io *io, const char *dir,
                         const struct drps_window_options *options, const uint64_t *budgets,
                         size_t n, struct drps_window_result *results_out, struct drps_err *err)
{
    struct extent x;
    struct drps_steps *lists;
    uint64_t each = bitmap_words(options->rows) * sizeof(uint64_t) * BITMAPS;
    size_t group = options->memory_bytes / each < n ? (size_t)(options->memory_bytes / each) : n;

    memset(results_out, 0, n * sizeof(*results_out));
    int rc = check_options(options, err);
    if (rc < 0) return rc;
    rc = drps_steps_open(io, dir, "rows.rec", DRPS_KIND_ROWS, options->steps,
                         options->memory_bytes / 8, &lists, err);
    if (rc < 0) return rc;
    rc = find_extent(lists, options, &x, err);
    if (group == 0) group = 1;
    for (size_t i = 0; i < n && rc == 0; i += group)
        rc = measure_group(options, &x, lists, budgets + i, n - i < group ? n - i : group,
                           results_out + i, err);
    drps_steps_close(lists);
    return rc;
}

/* ---- Transits ---- */

struct place {
    uint32_t window, slot;
};

struct transits {
    const struct drps_window_options *options;
    struct drps_steps *lists;
    const struct cutter *cut;
    uint64_t first, rows; /* the slice */
    uint64_t slice_rows;  /* whole sections */
    size_t slices;
    struct place *table;   /* [slice_rows] */
    uint64_t *bits;        /* [slice_rows / 64] rows of one window; all zero between windows */
    uint32_t *base;        /* [windows] rows in the slices before */
    uint32_t *sections;    /* [windows] with rows, in the slices so far */
    uint32_t *section[3];  /* [SECTION_ROWS] each: rows, next windows, next slots of a section */
    unsigned char *packed; /* sections of one window and slice */
    size_t packed_cap;
    struct drps_scratch scratch; /* record slice * windows + (windows - 1 - w) */
};

static void transits_destroy(struct transits *t)
{
    drps_pages_free(t->table, (size_t)t->slice_rows * sizeof(*t->table));
    free(t->bits);
    free(t->base);
    free(t->sections);
    for (int i = 0; i < 3; i++)
        free(t->section[i]);
    free(t->packed);
    drps_scratch_end(&t->scratch);
}

/* A quarter of the memory is left to buffers and pieces. */
static uint64_t slice_rows(uint64_t rows, uint64_t memory_bytes)
{
    uint64_t all = (rows + SECTION_ROWS - 1) / SECTION_ROWS;
    uint64_t fit = memory_bytes / 4 * 3 / (SECTION_ROWS * sizeof(struct place));
    if (fit > all) fit = all;
    return (fit ? fit : 1) * SECTION_ROWS;
}

static int transits_init(struct transits *t, const struct drps_io *io, const char *dir,
                         const struct drps_window_options *o, struct drps_steps *lists,
                         const struct cutter *c, struct drps_err *err)
{
    *t = (struct transits){.options = o, .lists = lists, .cut = c};
    t->slice_rows = slice_rows(o->rows, o->memory_bytes);
    t->slices = (size_t)((o->rows + t->slice_rows - 1) / t->slice_rows);
    t->table = drps_pages_new((size_t)t->slice_rows * sizeof(*t->table));
    t->bits = calloc((size_t)t->slice_rows / 64, sizeof(*t->bits));
    t->base = calloc(c->n + 1, sizeof(*t->base));
    t->sections = calloc(c->n + 1, sizeof(*t->sections));
    int lacking = !t->table || !t->bits || !t->base || !t->sections;
    for (int i = 0; i < 3; i++) {
        t->section[i] = drps_array_new(SECTION_ROWS, sizeof(uint32_t));
        lacking |= !t->section[i];
    }
    if (lacking)
        return drps_err_set(err, -ENOMEM, "no memory for the next uses of %" PRIu64 " rows",
                            t->slice_rows);
    return drps_scratch_begin(&t->scratch, io, dir, "windows.tmp", err);
}

/* The first of n increasing numbers that is not below `least`. */
static size_t lower_bound(const uint32_t *list, size_t n, uint64_t least)
{
    size_t low = 0;
    while (low < n) {
        size_t mid = low + (n - low) / 2;
        if (list[mid] < least)
            low = mid + 1;
        else
            n = mid;
    }
    return low;
}

static uint64_t window_end(const struct transits *t, size_t w)
{
    return w + 1 < t->cut->n ? t->cut->starts[w + 1] : t->options->steps;
}

/* Set the bits of window w's rows that lie in the slice. */
static int mark_window(struct transits *t, size_t w, struct drps_err *err)
{
    const uint32_t *rows;
    size_t n;

    for (uint64_t s = window_end(t, w); s-- > t->cut->starts[w];) {
        int rc = drps_steps_rows(t->lists, s, t->options->rows, &rows, &n, err);
        if (rc < 0) return rc;
        size_t i = t->slices == 1 ? 0 : lower_bound(rows, n, t->first);
        size_t end = t->slices == 1 ? n : lower_bound(rows, n, t->first + t->rows);
        for (; i < end; i++) {
            uint64_t at = rows[i] - t->first;
            t->bits[at / 64] |= UINT64_C(1) << at % 64;
        }
    }
    return 0;
}

/* The rows marked in one section, in order, relative to the slice; their bits are cleared. */
static size_t take_section(struct transits *t, size_t section, uint32_t *rows_out)
{
    size_t n = 0;
    for (size_t i = section * SECTION_WORDS; i < (section + 1) * SECTION_WORDS; i++) {
        for (uint64_t word = t->bits[i]; word; word &= word - 1)
            rows_out[n++] = (uint32_t)(i * 64) + (uint32_t)__builtin_ctzll(word);
        t->bits[i] = 0;
    }
    return n;
}

/* First pass: each row's first window of the epoch is what follows its last one. */
static int enter_window(struct transits *t, size_t w, struct drps_err *err)
{
    uint32_t *rows = t->section[0];
    uint32_t slot = t->base[w];
    int rc = mark_window(t, w, err);

    for (size_t i = 0; rc == 0 && i < t->slice_rows / SECTION_ROWS; i++) {
        size_t n = take_section(t, i, rows);
        for (size_t j = 0; j < n; j++)
            t->table[rows[j]] = (struct place){(uint32_t)w, slot++};
    }
    return rc;
}

/* Append a section's three lists to `packed`, of which `used` bytes are taken. */
static int pack_section(struct transits *t, size_t n, size_t *used, struct drps_err *err)
{
    if (drps_array_reserve(&t->packed, &t->packed_cap, *used + 3 * drps_list_encode_bound(n), 1))
        return drps_err_set(err, -ENOMEM, "no memory for the rows of a window");
    *used += drps_list_encode(t->section[0], n, t->packed + *used);
    *used += drps_numbers_encode(t->section[1], n, t->packed + *used);
    *used += drps_numbers_encode(t->section[2], n, t->packed + *used);
    return 0;
}

/* Second pass: note where each row goes, and that whoever comes before finds it here. */
static int leave_window(struct transits *t, size_t w, struct drps_err *err)
{
    uint32_t *rows = t->section[0], *windows = t->section[1], *slots = t->section[2];
    size_t used = 0;
    int rc = mark_window(t, w, err);

    for (size_t i = 0; rc == 0 && i < t->slice_rows / SECTION_ROWS; i++) {
        size_t n = take_section(t, i, rows);
        if (!n) continue;
        for (size_t j = 0; j < n; j++) {
            struct place *p = &t->table[rows[j]];
            windows[j] = p->window;
            slots[j] = p->slot;
            *p = (struct place){(uint32_t)w, t->base[w]++};
            rows[j] += (uint32_t)t->first;
        }
        t->sections[w]++;
        rc = pack_section(t, n, &used, err);
    }
    struct drps_piece piece = {t->packed, used};
    return rc < 0 ? rc : drps_recwriter_add(t->scratch.writer, &piece, 1, err);
}

static int compile_slices(struct transits *t, struct drps_err *err)
{
    int rc = 0;
    for (size_t i = 0; i < t->slices && rc == 0; i++) {
        t->first = i * t->slice_rows;
        t->rows = t->slice_rows;
        for (size_t w = t->cut->n; w-- > 0 && rc == 0;)
            rc = enter_window(t, w, err);
        for (size_t w = t->cut->n; w-- > 0 && rc == 0;)
            rc = leave_window(t, w, err);
    }
    return rc;
}

static void encode_head(const struct transits *t, size_t w, unsigned char *head)
{
    uint64_t start = t->cut->starts[w];
    drps_put_u32(head, start >= t->options->train_steps ? FLAG_EVALUATION : 0);
    drps_put_u32(head + 4, t->base[w]);
    drps_put_u64(head + 8, start);
    drps_put_u64(head + 16, window_end(t, w) - start);
    drps_put_u32(head + 24, (uint32_t)t->cut->n);
    drps_put_u32(head + 28, (uint32_t)t->cut->result.max_window_rows);
    drps_put_u32(head + 32, t->sections[w]);
    drps_put_u32(head + 36, 0);
}

static int join_pieces(struct transits *t, struct drps_recwriter *out, struct drps_err *err)
{
    unsigned char head[HEAD_BYTES];
    int rc = 0;
    struct drps_piece *pieces = drps_array_new(t->slices + 1, sizeof(*pieces));

    if (!pieces)
        return drps_err_set(err, -ENOMEM, "no memory for %zu pieces of a window", t->slices);
    for (size_t w = 0; w < t->cut->n && rc == 0; w++) {
        encode_head(t, w, head);
        pieces[0] = (struct drps_piece){head, sizeof(head)};
        rc = drps_scratch_read(&t->scratch, t->cut->n - 1 - w, t->cut->n, t->slices, pieces + 1,
                               err);
        if (rc == 0) rc = drps_recwriter_add(out, pieces, t->slices + 1, err);
    }
    free(pieces);
    return rc;
}

static int write_windows(struct transits *t, const struct drps_io *io, const char *dir,
                         struct drps_err *err)
{
    struct drps_recwriter *out;
    char *path = drps_path_join(dir, "windows.rec");

    if (!path) return drps_err_set(err, -ENOMEM, "no memory to write %s/windows.rec", dir);
    int rc = drps_recwriter_open(io, path, DRPS_KIND_WINDOWS, &out, err);
    free(path);
    if (rc < 0) return rc;
    rc = join_pieces(t, out, err);
    if (rc == 0) rc = drps_recwriter_finish(out, err);
    drps_recwriter_close(out);
    return rc;
}

static int compile_transits(const struct drps_io *io, const char *dir,
                            const struct drps_window_options *o, struct drps_steps *lists,
                            const struct cutter *c, struct drps_err *err)
{
    struct transits t;
    int rc = transits_init(&t, io, dir, o, lists, c, err);
    if (rc == 0) rc = compile_slices(&t, err);
    if (rc == 0) rc = drps_scratch_turn(&t.scratch, err);
    if (rc == 0) rc = write_windows(&t, io, dir, err);
    transits_destroy(&t);
    return rc;
}

/* ---- Compiling ---- */

static int check_budget(const struct drps_window_options *o, const struct extent *x,
                        struct drps_err *err)
{
    uint64_t need = rows_needed(x) * o->row_bytes;
    if (o->budget_bytes / o->row_bytes >= rows_needed(x)) return 0;
    return drps_err_set(err, DRPS_E_MEMORY_BUDGET,
                        "a batch touches %" PRIu64 " rows of %" PRIu64
                        " bytes, and two batches must fit the %" PRIu64 " bytes for rows: %" PRIu64
                        " bytes would do, or smaller batches",
                        x->step_rows, o->row_bytes, o->budget_bytes, need);
}

static int compile(const struct drps_io *io, const char *dir, const struct drps_window_options *o,
                   struct drps_steps *lists, struct drps_window_result *result,
                   struct drps_err *err)
{
    struct extent x;
    struct cutter c;
    int rc = find_extent(lists, o, &x, err);

    if (rc == 0) rc = check_budget(o, &x, err);
    if (rc < 0) return rc;
    rc = cutter_init(&c, o, o->budget_bytes, &x, err);
    if (rc == 0) rc = cut(&c, 1, lists, err);
    if (rc == 0) {
        drps_log(o->log, DRPS_LOG_DEBUG, "%zu windows, at most %" PRIu64 " rows in two of them",
                 c.n, c.result.working_set_rows);
        rc = compile_transits(io, dir, o, lists, &c, err);
    }
    if (rc == 0) *result = c.result;
    cutter_destroy(&c);
    return rc;
}

int drps_windows_compile(const struct drps_io *io, const char *dir,
                         const struct drps_window_options *options,
                         struct drps_window_result *result_out, struct drps_err *err)
{
    struct drps_steps *lists;

    *result_out = (struct drps_window_result){0};
    int rc = check_options(options, err);
    if (rc < 0) return rc;
    rc = drps_steps_open(io, dir, "rows.rec", DRPS_KIND_ROWS, options->steps,
                         options->memory_bytes / 8, &lists, err);
    if (rc < 0) return rc;
    rc = compile(io, dir, options, lists, result_out, err);
    drps_steps_close(lists);
    return rc;
}

/* ---- Decoding ---- */

void drps_window_free(struct drps_window *w)
{
    if (!w) return;
    free(w->rows);
    free(w->next_window);
    free(w->next_slot);
    *w = (struct drps_window){0};
}

static int window_reserve(struct drps_window *w, size_t n, struct drps_err *err)
{
    if (w->rows && n <= w->cap) return 0;
    drps_window_free(w);
    w->rows = drps_array_new(n, sizeof(*w->rows));
    w->next_window = drps_array_new(n, sizeof(*w->next_window));
    w->next_slot = drps_array_new(n, sizeof(*w->next_slot));
    if (!w->rows || !w->next_window || !w->next_slot) {
        drps_window_free(w);
        return drps_err_set(err, -ENOMEM, "no memory for a window of %zu rows", n);
    }
    w->cap = n;
    return 0;
}

/* Numbers that must be as many as the section's rows and below `limit`. */
static int decode_numbers(const unsigned char *at, size_t bytes, uint32_t n, uint32_t limit,
                          uint32_t *out, size_t *used, struct drps_err *err)
{
    uint32_t most = 0;
    if (bytes < 4 || drps_list_count(at) != n)
        return drps_err_set(err, DRPS_E_CORRUPT,
                            "a section of a window has %" PRIu32 " rows but other counts", n);
    int rc = drps_numbers_decode(at, bytes, out, used, err);
    if (rc < 0) return rc;
    for (uint32_t i = 0; i < n; i++)
        most = out[i] > most ? out[i] : most;
    if (n && most >= limit)
        return drps_err_set(err, DRPS_E_CORRUPT,
                            "a window or slot is %" PRIu32 ", must be below %" PRIu32, most, limit);
    return 0;
}

/* One section, to be appended to the w->n rows so far, of `rows` at the end. */
static int decode_section(const unsigned char *at, size_t bytes, const unsigned char *head,
                          uint32_t rows, struct drps_window *w, size_t *used_out,
                          struct drps_err *err)
{
    size_t a, b, c;
    uint32_t *list = w->rows + w->n;
    uint32_t n = bytes >= 4 ? drps_list_count(at) : 0;

    if (n == 0 || n > rows - w->n)
        return drps_err_set(err, DRPS_E_CORRUPT,
                            "a section of %" PRIu32 " rows in a window of %" PRIu32, n, rows);
    int rc = drps_list_decode(at, bytes, list, &a, err);
    if (rc < 0) return rc;
    if (list[0] >> SECTION_BITS != list[n - 1] >> SECTION_BITS ||
        (w->n && list[0] >> SECTION_BITS <= list[-1] >> SECTION_BITS))
        return drps_err_set(err, DRPS_E_CORRUPT,
                            "rows %" PRIu32 " to %" PRIu32 " of a window are no section", list[0],
                            list[n - 1]);
    rc = decode_numbers(at + a, bytes - a, n, drps_get_u32(head + 24), w->next_window + w->n, &b,
                        err);
    if (rc < 0) return rc;
    rc = decode_numbers(at + a + b, bytes - a - b, n, drps_get_u32(head + 28), w->next_slot + w->n,
                        &c, err);
    if (rc < 0) return rc;
    w->n += n;
    *used_out = a + b + c;
    return 0;
}

static int decode_head(const unsigned char *head, size_t bytes, struct drps_window *w,
                       struct drps_err *err)
{
    uint32_t n = bytes >= HEAD_BYTES ? drps_get_u32(head + 4) : 0;

    w->n = 0;
    if (bytes < HEAD_BYTES || drps_get_u32(head) > FLAG_EVALUATION || drps_get_u32(head + 36) ||
        n > bytes || n > drps_get_u32(head + 28) ||
        drps_get_u64(head + 16) > UINT64_MAX - drps_get_u64(head + 8))
        return drps_err_set(err, DRPS_E_CORRUPT,
                            "the head of a window does not fit its record of %zu bytes", bytes);
    int rc = window_reserve(w, n, err);
    if (rc < 0) return rc;
    w->evaluation = drps_get_u32(head) == FLAG_EVALUATION;
    w->first_step = drps_get_u64(head + 8);
    w->steps = drps_get_u64(head + 16);
    return 0;
}

int drps_window_decode(const void *record, size_t bytes, struct drps_window *w,
                       struct drps_err *err)
{
    const unsigned char *head = record;
    size_t at = HEAD_BYTES, used = 0;
    int rc = decode_head(head, bytes, w, err);

    if (rc < 0) return rc;
    for (uint32_t left = drps_get_u32(head + 32); left && rc == 0; left--, at += used)
        rc = decode_section(head + at, bytes - at, head, drps_get_u32(head + 4), w, &used, err);
    if (rc == 0 && (at != bytes || w->n != drps_get_u32(head + 4)))
        rc = drps_err_set(err, DRPS_E_CORRUPT,
                          "a window has %zu rows in %zu bytes, its head says %" PRIu32 " in %zu",
                          w->n, at, drps_get_u32(head + 4), bytes);
    if (rc < 0) w->n = 0;
    return rc;
}
