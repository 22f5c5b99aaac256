/*
 * Cutting an epoch into windows.
 *
 * C is the budget in rows, m the most rows of one step, and C >= 2m. Steps join the open window w
 * as long as |rows(w)| <= bound  and  |rows(w-1) u rows(w)| <= C,      C/2 <= bound <= C - m. The
 * first step of a window always fits, because |rows(w-1)| <= C - m leaves room for m more: so the
 * invariant holds for every pair but the last and the first window, which meet when the epoch
 * begins again. If those two exceed C, the last window is cut once more: its second part is the
 * longest run of final steps whose rows fit together with window 0 (one step does: |rows(0)| <= C -
 * m), and the two parts lie in what was one window of at most C rows. The bound follows the overlap
 * of neighbours: two windows of (C + overlap)/2 rows fill the budget exactly; equal windows lose
 * less than a large one beside a small one. When the rows of all steps fit, there is no cutting but
 * at the border between training and evaluation.
 *
 * A row that the steps of w - 1 and of w + 1 touch, but not those of w, stays through w: the
 * windows beside w have it, so that no two windows get more rows than the budget. Cutting looks at
 * touched rows alone.
 *
 * Several sizes are cut for in one pass over the steps, each by a cutter of its own.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "index/windows/drps_cut.h"

#include "base/drps_alloc.h"
#include "index/windows/bits.h"

enum { BITMAPS = 6 }; /* of a cutter */

/* ---- What is needed before cutting ---- */

static size_t bitmap_words(uint64_t rows)
{
    return (size_t)(rows / 64 + 1);
}

int drps_cut_check(const struct drps_window_options *o, struct drps_err *err)
{
    if (o->train_steps > o->steps || o->steps > UINT32_MAX || o->rows > (uint64_t)UINT32_MAX + 1 ||
        !o->row_bytes)
        return drps_err_set(err, -EINVAL,
                            "windows of %" PRIu64 " steps (%" PRIu64 " training), %" PRIu64
                            " rows of %" PRIu64 " bytes",
                            o->steps, o->train_steps, o->rows, o->row_bytes);
    return 0;
}

int drps_cut_survey(struct steps *lists, const struct drps_window_options *o, struct cut_extent *x,
                    struct drps_err *err)
{
    const uint32_t *rows;
    size_t n;
    int rc = 0;
    uint64_t *seen = calloc(bitmap_words(o->rows), sizeof(*seen));

    *x = (struct cut_extent){0};
    if (!seen) return drps_err_set(err, -ENOMEM, "no memory for a bit a row");
    for (uint64_t s = 0; s < o->steps && rc == 0; s++) {
        rc = drps_steps_rows(lists, s, o->rows, &rows, &n, err);
        if (n > x->step_rows) x->step_rows = n;
        x->uses += n;
        for (size_t i = 0; i < n; i++)
            seen[rows[i] / 64] |= UINT64_C(1) << rows[i] % 64;
    }
    x->touched = drps_bits_count(seen, bitmap_words(o->rows));
    free(seen);
    return rc;
}

/* Rows that a budget must have room for. */
static uint64_t rows_needed(const struct cut_extent *x)
{
    return 2 * x->step_rows < x->touched ? 2 * x->step_rows : x->touched;
}

/* ---- Cutting ---- */

/* The rows of one step as words of a bitmap, made once for all cutters: frequent rows are
 * neighbours, many to a word. */
struct marks {
    uint32_t *at; /* [n] increasing */
    uint64_t *bits;
    size_t n, at_cap, bits_cap;
};

static int marks_make(struct marks *m, const uint32_t *rows, size_t rows_n, struct drps_err *err)
{
    if (drps_array_reserve(&m->at, &m->at_cap, rows_n + 1, sizeof(*m->at)) ||
        drps_array_reserve(&m->bits, &m->bits_cap, rows_n + 1, sizeof(*m->bits)))
        return drps_err_set(err, -ENOMEM, "no memory for %zu rows of a step", rows_n);
    size_t last = 0;
    m->n = rows_n > 0;
    m->at[0] = rows_n ? rows[0] / 64 : 0;
    m->bits[0] = 0;
    for (size_t i = 0; i < rows_n; i++) {
        const uint32_t at = rows[i] / 64;
        last += at != m->at[last];
        if (last == m->n) m->bits[m->n++] = 0;
        m->at[last] = at;
        m->bits[last] |= UINT64_C(1) << rows[i] % 64;
    }
    return 0;
}

static int read_marks(struct marks *m, struct steps *lists, uint64_t s, uint64_t all_rows,
                      struct drps_err *err)
{
    const uint32_t *rows;
    size_t n;
    int rc = drps_steps_rows(lists, s, all_rows, &rows, &n, err);
    return rc < 0 ? rc : marks_make(m, rows, n, err);
}

static void marks_free(struct marks *m)
{
    free(m->at);
    free(m->bits);
    *m = (struct marks){0};
}

struct cutter {
    const struct drps_window_options *options;
    struct cut_extent extent;
    uint64_t cap;                    /* C */
    uint64_t bound;                  /* of the open window */
    size_t words;                    /* of each bitmap */
    uint64_t *cur, *prev, *before;   /* rows touched by the open window, and the two before it */
    uint64_t *first, *second, *tail; /* by windows 0 and 1; scratch */
    uint64_t cur_rows, prev_rows, first_rows;
    uint64_t common;          /* rows of both cur and prev */
    const struct marks *last; /* borrowed: the last step's, and */
    uint64_t *fresh;          /* [last->n] what of each word it added to cur */
    uint64_t fresh_rows, fresh_common;
    uint64_t start; /* first step of the open window */
    struct cut cut; /* the windows closed */
};

static void cutter_destroy(struct cutter *c)
{
    free(c->cur);
    free(c->prev);
    free(c->before);
    free(c->first);
    free(c->second);
    free(c->tail);
    free(c->fresh);
    drps_cut_free(&c->cut);
}

/* Begin with room for `cap` rows, for which needs_cutter(). Destroy also after a failure. */
static int cutter_init(struct cutter *c, const struct drps_window_options *o, uint64_t cap,
                       const struct cut_extent *x, struct drps_err *err)
{
    *c = (struct cutter){.options = o, .extent = *x, .cap = cap, .words = bitmap_words(o->rows)};
    c->bound = c->cap / 2;
    c->cur = calloc(c->words, sizeof(*c->cur));
    c->prev = calloc(c->words, sizeof(*c->prev));
    c->before = calloc(c->words, sizeof(*c->before));
    c->first = calloc(c->words, sizeof(*c->first));
    c->second = calloc(c->words, sizeof(*c->second));
    c->tail = calloc(c->words, sizeof(*c->tail));
    c->fresh = drps_array_new((size_t)x->step_rows + 1, sizeof(*c->fresh));
    if (!c->cur || !c->prev || !c->before || !c->first || !c->second || !c->tail || !c->fresh)
        return drps_err_set(err, -ENOMEM, "no memory for %d bits a row", BITMAPS);
    return 0;
}

static void add(struct cutter *c, const struct marks *m)
{
    uint64_t common = 0;
    const uint64_t rows = drps_bits_add(m->at, m->bits, m->n, c->cur, c->prev, c->fresh, &common);
    c->last = m;
    c->fresh_rows = rows;
    c->fresh_common = common;
    c->cur_rows += rows;
    c->common += common;
}

static void undo_add(struct cutter *c)
{
    for (size_t i = 0; i < c->last->n; i++)
        c->cur[c->last->at[i]] &= ~c->fresh[i];
    c->cur_rows -= c->fresh_rows;
    c->common -= c->fresh_common;
}

static uint64_t pair_rows(const struct cutter *c)
{
    return c->prev_rows + c->cur_rows - c->common;
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

/* A window of so many touched rows between two others: count those that stay through it. */
static void add_staying(struct cutter *c, const uint64_t *before, const uint64_t *now,
                        const uint64_t *after, uint64_t touched)
{
    struct drps_window_result *r = &c->cut.result;
    const uint64_t n = drps_bits_staying(before, now, after, c->words);
    r->rows_touched += touched + n;
    r->rows_kept += 2 * n;
    keep_most(&r->max_window_rows, touched + n);
}

/* Half of the budget and half of what neighbours share, but leaving room for any next step. */
static void set_bound(struct cutter *c)
{
    uint64_t most = c->cap - c->extent.step_rows;
    c->bound = (c->cap + c->common) / 2;
    if (c->bound > most) c->bound = most;
}

/* The open window ends before step `end`, where the next one begins. */
static int close_window(struct cutter *c, uint64_t end, struct drps_err *err)
{
    struct drps_window_result *r = &c->cut.result;

    if (drps_array_reserve(&c->cut.starts, &c->cut.starts_cap, c->cut.n + 1,
                           sizeof(*c->cut.starts)) ||
        drps_array_reserve(&c->cut.pairs, &c->cut.pairs_cap, c->cut.n + 1, sizeof(*c->cut.pairs)))
        return drps_err_set(err, -ENOMEM, "no memory for %zu windows", c->cut.n + 1);
    if (c->cut.n == 0) {
        memcpy(c->first, c->cur, c->words * sizeof(*c->cur));
        c->first_rows = c->cur_rows;
    }
    if (c->cut.n == 1) memcpy(c->second, c->cur, c->words * sizeof(*c->cur));
    if (c->cut.n > 1) add_staying(c, c->before, c->prev, c->cur, c->prev_rows);
    if (c->cut.n > 0) c->cut.pairs[c->cut.n - 1] = pair_rows(c);
    c->cut.starts[c->cut.n++] = c->start;
    r->rows_kept += c->common;
    keep_most(&r->working_set_rows, pair_rows(c));
    set_bound(c);
    uint64_t *swap = c->before;
    c->before = c->prev;
    c->prev = c->cur;
    c->prev_rows = c->cur_rows;
    c->cur = swap;
    clear_open(c);
    c->start = end;
    return 0;
}

static int cutter_step(struct cutter *c, uint64_t s, const struct marks *m, struct drps_err *err)
{
    int rc = 0;
    if (s == c->options->train_steps && s > c->start) rc = close_window(c, s, err);
    if (rc < 0) return rc;
    add(c, m);
    if (s == c->start || (c->cur_rows <= c->bound && pair_rows(c) <= c->cap)) return 0;
    undo_add(c);
    rc = close_window(c, s, err);
    if (rc == 0) add(c, m);
    return rc;
}

static int add_steps(struct cutter *c, struct steps *lists, uint64_t from, uint64_t to,
                     struct drps_err *err)
{
    struct marks m = {0};
    int rc = 0;
    for (uint64_t s = from; s < to && rc == 0; s++) {
        rc = read_marks(&m, lists, s, c->options->rows, err);
        if (rc == 0) add(c, &m);
    }
    marks_free(&m);
    return rc;
}

/* The first step of the longest end of the open window that fits beside window 0. */
static int find_tail(struct cutter *c, struct steps *lists, uint64_t *at_out, struct drps_err *err)
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
static int split_last(struct cutter *c, struct steps *lists, struct drps_err *err)
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

static int cutter_finish(struct cutter *c, struct steps *lists, struct drps_err *err)
{
    struct drps_window_result *r = &c->cut.result;
    uint64_t steps = c->options->steps;
    int rc = 0;

    if (steps == 0) return 0;
    if (c->cut.n > 0 &&
        c->first_rows + c->cur_rows - drps_bits_common(c->first, c->cur, c->words) > c->cap)
        rc = split_last(c, lists, err);
    if (rc == 0) rc = close_window(c, steps, err);
    if (rc < 0) return rc;
    uint64_t wrap = drps_bits_common(
        c->first, c->prev, c->words); /* close_window() has moved the last window to prev */
    r->windows = c->cut.n;
    r->rows_kept += wrap;
    add_staying(c, c->prev, c->first, c->cut.n > 1 ? c->second : c->first, c->first_rows);
    if (c->cut.n > 1) add_staying(c, c->before, c->prev, c->first, c->prev_rows);
    c->cut.pairs[c->cut.n - 1] = c->first_rows + c->prev_rows - wrap;
    keep_most(&r->working_set_rows, c->cut.pairs[c->cut.n - 1]);
    r->rows_moved = r->rows_touched - r->rows_kept;
    return 0;
}

/* One pass over the lists for all cutters. */
static int run_cutters(struct cutter *c, size_t n_cutters, struct steps *lists,
                       struct drps_err *err)
{
    struct marks m = {0};
    int rc = 0;

    for (uint64_t s = 0; n_cutters && s < c->options->steps && rc == 0; s++) {
        rc = read_marks(&m, lists, s, c->options->rows, err);
        for (size_t i = 0; i < n_cutters && rc == 0; i++)
            rc = cutter_step(&c[i], s, &m, err);
    }
    marks_free(&m);
    for (size_t i = 0; i < n_cutters && rc == 0; i++)
        rc = cutter_finish(&c[i], lists, err);
    return rc;
}

/* ---- The windows themselves ---- */

void drps_cut_free(struct cut *cut)
{
    if (!cut) return;
    free(cut->starts);
    free(cut->pairs);
    *cut = (struct cut){0};
}

static int check_budget(const struct drps_window_options *o, const struct cut_extent *x,
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

/* All rows that any step touches fit: then training is a window, and so is evaluation. Each of them
 * has all of these rows, as what only one touches stays through the other. */
static int cut_whole(const struct drps_window_options *o, const struct cut_extent *x,
                     struct cut *cut_out, struct drps_err *err)
{
    const int two = o->train_steps > 0 && o->train_steps < o->steps;
    const uint64_t n = !o->steps ? 0 : two ? 2 : 1;
    *cut_out = (struct cut){.n = (size_t)n,
                            .result = {.windows = n,
                                       .working_set_rows = n ? x->touched : 0,
                                       .max_window_rows = n ? x->touched : 0,
                                       .rows_touched = n * x->touched,
                                       .rows_kept = n * x->touched}};
    if (drps_array_reserve(&cut_out->starts, &cut_out->starts_cap, (size_t)n,
                           sizeof(*cut_out->starts)) ||
        drps_array_reserve(&cut_out->pairs, &cut_out->pairs_cap, (size_t)n,
                           sizeof(*cut_out->pairs)))
        return drps_err_set(err, -ENOMEM, "no memory for two windows");
    for (size_t w = 0; w < n; w++) {
        cut_out->starts[w] = w ? o->train_steps : 0;
        cut_out->pairs[w] = x->touched;
    }
    return 0;
}

/* Whether windows of so many rows need a cutter: two steps fit, and not all of them. */
static int needs_cutter(const struct cut_extent *x, uint64_t size)
{
    return size >= rows_needed(x) && size < x->touched;
}

/* Cut for those of `sizes` that have room for two steps, in one pass. */
static int cut_group(struct steps *lists, const struct drps_window_options *o,
                     const struct cut_extent *x, const uint64_t *sizes, size_t n,
                     struct cut *cuts_out, struct drps_err *err)
{
    int rc = 0;
    size_t used = 0;
    struct cutter *c = calloc(n, sizeof(*c));

    if (!c) return drps_err_set(err, -ENOMEM, "no memory to cut windows");
    for (size_t i = 0; i < n && rc == 0; i++) {
        if (sizes[i] >= x->touched)
            rc = cut_whole(o, x, &cuts_out[i], err);
        else if (needs_cutter(x, sizes[i]))
            rc = cutter_init(&c[used++], o, sizes[i], x, err);
    }
    if (rc == 0) rc = run_cutters(c, used, lists, err);
    for (size_t i = 0, k = 0; i < n && rc == 0; i++) {
        if (!needs_cutter(x, sizes[i])) continue;
        cuts_out[i] = c[k].cut; /* moved */
        c[k++].cut = (struct cut){0};
    }
    for (size_t i = 0; i < used; i++)
        cutter_destroy(&c[i]);
    free(c);
    return rc;
}

int drps_cut_steps(struct steps *lists, const struct drps_window_options *options,
                   struct cut *cut_out, struct drps_err *err)
{
    struct cut_extent x;
    const uint64_t size = options->budget_bytes / options->row_bytes;

    *cut_out = (struct cut){0};
    int rc = drps_cut_survey(lists, options, &x, err);
    if (rc == 0) rc = check_budget(options, &x, err);
    return rc < 0 ? rc : cut_group(lists, options, &x, &size, 1, cut_out, err);
}

int drps_cut_sizes(struct steps *lists, const struct drps_window_options *options,
                   const struct cut_extent *extent, const uint64_t *sizes, size_t n,
                   struct cut *cuts_out, struct drps_err *err)
{
    const uint64_t each = bitmap_words(options->rows) * sizeof(uint64_t) * BITMAPS;
    size_t group = options->memory_bytes / each < n ? (size_t)(options->memory_bytes / each) : n;
    int rc = 0;

    memset(cuts_out, 0, n * sizeof(*cuts_out));
    if (group == 0) group = 1;
    for (size_t i = 0; i < n && rc == 0; i += group)
        rc = cut_group(lists, options, extent, sizes + i, n - i < group ? n - i : group,
                       cuts_out + i, err);
    return rc;
}
