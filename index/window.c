/*
 * How far away each row of a window is used next and was used last, and a window as stored.
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

#include "index/drps_window.h"

#include "base/drps_alloc.h"
#include "base/drps_endian.h"
#include "index/cut.h"
#include "index/distances.h"
#include "index/drps_batch.h"
#include "index/slots.h"
#include "index/steps.h"

enum { SECTION_BITS = 16, SECTION_ROWS = 1 << SECTION_BITS, SECTION_WORDS = SECTION_ROWS / 64 };
enum { SUMMED_BYTES = 64, HEAD_BYTES = SUMMED_BYTES + 8, FLAG_EVALUATION = 1 };

/* ---- Distances ---- */

enum part { ROWS, NEXT, PREV, PARTS };

struct tally { /* of a window */
    uint32_t rows, sections, arriving, leaving;
};

struct distances {
    const struct drps_window_options *options;
    const struct cut *cut;
    uint64_t slice_rows; /* whole sections */
    size_t slices;
    uint64_t first;           /* row of the slice */
    uint32_t *table;          /* [slice_rows] a window */
    struct tally *tally;      /* [windows] */
    uint32_t *list, *numbers; /* [SECTION_ROWS] rows of a section, and their distances */
    unsigned char *packed;    /* sections of one window and slice */
    size_t packed_cap;
    struct steps_scratch scratch[PARTS]; /* see piece_of() */
};

static void distances_destroy(struct distances *d)
{
    drps_pages_free(d->table, (size_t)d->slice_rows * sizeof(*d->table));
    free(d->tally);
    free(d->list);
    free(d->numbers);
    free(d->packed);
    for (int i = 0; i < PARTS; i++)
        steps_scratch_end(&d->scratch[i]);
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
    static const char *const names[PARTS] = {"windows.rows.tmp", "windows.next.tmp",
                                             "windows.prev.tmp"};
    int rc = 0;

    *d = (struct distances){.options = o, .cut = cut};
    d->slice_rows = slice_rows(o->rows, o->memory_bytes);
    d->slices = (size_t)((o->rows + d->slice_rows - 1) / d->slice_rows);
    d->tally = calloc(cut->n + 1, sizeof(*d->tally));
    d->list = drps_array_new(SECTION_ROWS, sizeof(*d->list));
    d->numbers = drps_array_new(SECTION_ROWS, sizeof(*d->numbers));
    if (!d->tally || !d->list || !d->numbers)
        return drps_err_set(err, -ENOMEM, "no memory for %zu windows", cut->n);
    for (int i = 0; i < PARTS && rc == 0; i++)
        rc = steps_scratch_begin(&d->scratch[i], io, dir, names[i], err);
    return rc;
}

/* The scratch record of a window's rows, or distances, in one slice: in the order of writing. */
static uint64_t piece_of(const struct distances *d, enum part part, size_t w, size_t slice)
{
    if (part == ROWS) return (uint64_t)w * d->slices + slice;
    return (uint64_t)slice * d->cut->n + (part == NEXT ? d->cut->n - 1 - w : w);
}

/* Append n of d->list, or of d->numbers, to the `used` bytes of the piece. */
static int pack(struct distances *d, enum part part, size_t n, size_t *used, struct drps_err *err)
{
    if (drps_array_reserve(&d->packed, &d->packed_cap, *used + distances_encode_bound(n), 1))
        return drps_err_set(err, -ENOMEM, "no memory for the rows of a window");
    unsigned char *at = d->packed + *used;
    *used += part == ROWS ? drps_list_encode(d->list, n, at)
                          : distances_encode(d->numbers, n, (uint32_t)d->cut->n, at);
    return 0;
}

static int add_piece(struct distances *d, enum part part, size_t used, struct drps_err *err)
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
            d->tally[w].rows += (uint32_t)n;
            d->tally[w].sections++;
            rc = pack(d, ROWS, n, &used, err);
        }
        if (rc == 0) rc = add_piece(d, ROWS, used, err);
    }
    return rc;
}

/* slots.rec, and the rows of all windows. */
static int list_windows(struct distances *d, const struct drps_io *io, const char *dir,
                        const char *out_dir, struct steps *lists, struct drps_err *err)
{
    struct slots *slots;
    int rc = slots_open(io, dir, out_dir, d->options, d->cut, lists, &slots, err);
    for (size_t w = 0; w < d->cut->n && rc == 0; w++) {
        const uint64_t *marked;
        rc = slots_window(slots, w, &marked, err);
        if (rc == 0) rc = list_window(d, w, marked, err);
    }
    if (rc == 0) rc = slots_finish(slots, err);
    slots_close(slots);
    if (rc == 0) rc = steps_scratch_turn(&d->scratch[ROWS], err);
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
    return steps_scratch_read(&d->scratch[ROWS], piece_of(d, ROWS, w, slice), 1, 1, piece_out, err);
}

/* First pass: whoever comes last in it stays in the table. */
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
static uint32_t take_distances(struct distances *d, enum part part, uint32_t w, size_t n)
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

/* Second pass. */
static int leave_window(struct distances *d, enum part part, size_t w, size_t slice,
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
        d->tally[w].leaving += far;
    else
        d->tally[w].arriving += far;
    return rc < 0 ? rc : add_piece(d, part, used, err);
}

static int compile_part(struct distances *d, enum part part, size_t slice, struct drps_err *err)
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
    if (rc == 0) rc = steps_scratch_turn(&d->scratch[NEXT], err);
    if (rc == 0) rc = steps_scratch_turn(&d->scratch[PREV], err);
    return rc;
}

/* ---- Writing ---- */

static uint64_t sum_bytes(const struct drps_piece *pieces, size_t n)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += pieces[i].bytes;
    return sum;
}

/* pieces: the head, then the nexts, the prevs and the rows, a piece a slice each. */
static void encode_head(const struct distances *d, size_t w, struct drps_piece *pieces,
                        unsigned char *head)
{
    const struct tally *t = &d->tally[w];
    uint64_t start = d->cut->starts[w];
    drps_put_u32(head, start >= d->options->train_steps ? FLAG_EVALUATION : 0);
    drps_put_u32(head + 4, t->rows);
    drps_put_u64(head + 8, start);
    drps_put_u64(head + 16, cut_end(d->cut, w, d->options->steps) - start);
    drps_put_u32(head + 24, (uint32_t)d->cut->n);
    drps_put_u32(head + 28, (uint32_t)d->cut->result.max_window_rows);
    drps_put_u32(head + 32, t->arriving);
    drps_put_u32(head + 36, t->leaving);
    drps_put_u32(head + 40, t->sections);
    drps_put_u32(head + 44, 0);
    drps_put_u64(head + 48, sum_bytes(pieces + 1, d->slices));
    drps_put_u64(head + 56, sum_bytes(pieces + 1 + d->slices, d->slices));
    pieces[0] = (struct drps_piece){head, SUMMED_BYTES};
    drps_put_u64(head + SUMMED_BYTES, drps_checksum_pieces(pieces, 1 + 2 * d->slices));
    pieces[0].bytes = HEAD_BYTES;
}

static int join_window(struct distances *d, size_t w, struct drps_piece *pieces,
                       struct drps_recwriter *out, struct drps_err *err)
{
    static const enum part order[PARTS] = {NEXT, PREV, ROWS};
    unsigned char head[HEAD_BYTES];
    struct drps_piece *part = pieces + 1;
    int rc = 0;

    for (unsigned i = 0; i < PARTS && rc == 0; i++, part += d->slices)
        rc = steps_scratch_read(&d->scratch[order[i]], piece_of(d, order[i], w, 0),
                                order[i] == ROWS ? 1 : d->cut->n, d->slices, part, err);
    if (rc < 0) return rc;
    encode_head(d, w, pieces, head);
    return drps_recwriter_add(out, pieces, 1 + PARTS * d->slices, err);
}

static int write_windows(struct distances *d, const struct drps_io *io, const char *dir,
                         struct drps_err *err)
{
    struct drps_recwriter *out = NULL;
    char *path = drps_path_join(dir, "windows.rec");
    struct drps_piece *pieces = drps_array_new(1 + PARTS * d->slices, sizeof(*pieces));
    int rc =
        path && pieces ? 0 : drps_err_set(err, -ENOMEM, "no memory to write %s/windows.rec", dir);

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
    int rc = cut_steps(lists, o, &cut, err);

    if (rc == 0) {
        drps_log(o->log, DRPS_LOG_DEBUG, "%zu windows, at most %" PRIu64 " rows in two of them",
                 cut.n, cut.result.working_set_rows);
        rc = compile_distances(io, dir, out_dir, o, lists, &cut, err);
    }
    if (rc == 0) *result = cut.result;
    cut_free(&cut);
    return rc;
}

int drps_windows_compile(const struct drps_io *io, const char *dir, const char *out_dir,
                         const struct drps_window_options *options,
                         struct drps_window_result *result_out, struct drps_err *err)
{
    struct steps *lists;

    *result_out = (struct drps_window_result){0};
    int rc = cut_check(options, err);
    if (rc < 0) return rc;
    rc = steps_open(io, dir, "rows.rec", DRPS_KIND_ROWS, options->steps, options->memory_bytes / 8,
                    &lists, err);
    if (rc < 0) return rc;
    rc = compile(io, dir, out_dir, options, lists, result_out, err);
    steps_close(lists);
    return rc;
}

/* ---- Decoding ---- */

void drps_window_free(struct drps_window *w)
{
    if (!w) return;
    free(w->rows);
    free(w->next);
    free(w->prev);
    *w = (struct drps_window){0};
}

/* Of a record, or of its front alone. */
static int head_fits(const unsigned char *head, size_t bytes)
{
    if (bytes < HEAD_BYTES) return 0;
    uint32_t n = drps_get_u32(head + 4), sections = drps_get_u32(head + 40);
    uint64_t steps = drps_get_u64(head + 16), parts = bytes - HEAD_BYTES;
    uint64_t next_bytes = drps_get_u64(head + 48), prev_bytes = drps_get_u64(head + 56);
    if (drps_get_u32(head) > FLAG_EVALUATION || drps_get_u32(head + 44)) return 0;
    if (!steps || steps > UINT64_MAX - drps_get_u64(head + 8)) return 0;
    if (!drps_get_u32(head + 24) || n > drps_get_u32(head + 28)) return 0;
    if (drps_get_u32(head + 32) > n || drps_get_u32(head + 36) > n) return 0;
    if (sections > n || !sections != !n) return 0;
    if (next_bytes > parts || prev_bytes > parts - next_bytes) return 0;
    return n / 8 <= next_bytes && n / 8 <= prev_bytes; /* a distance takes a bit or more */
}

int drps_window_head(const void *record, size_t bytes, struct drps_window *w, struct drps_err *err)
{
    const unsigned char *head = record;

    w->n = 0;
    if (!head_fits(head, bytes))
        return drps_err_set(err, DRPS_E_CORRUPT,
                            "the head of a window does not fit its record of %zu bytes", bytes);
    w->evaluation = drps_get_u32(head) == FLAG_EVALUATION;
    w->n = drps_get_u32(head + 4);
    w->first_step = drps_get_u64(head + 8);
    w->steps = drps_get_u64(head + 16);
    w->windows = drps_get_u32(head + 24);
    w->max_rows = drps_get_u32(head + 28);
    w->arriving = drps_get_u32(head + 32);
    w->leaving = drps_get_u32(head + 36);
    w->front_bytes = HEAD_BYTES + drps_get_u64(head + 48) + drps_get_u64(head + 56);
    return 0;
}

int drps_window_check_front(const void *record, size_t bytes, struct drps_err *err)
{
    const unsigned char *head = record;
    if (bytes >= HEAD_BYTES) {
        const struct drps_piece pieces[] = {{head, SUMMED_BYTES},
                                            {head + HEAD_BYTES, bytes - HEAD_BYTES}};
        if (drps_checksum_pieces(pieces, 2) == drps_get_u64(head + SUMMED_BYTES)) return 0;
    }
    return drps_err_set(err, DRPS_E_CORRUPT,
                        "its head and distances, %zu bytes, fail their checksum", bytes);
}

static int window_reserve(struct drps_window *w, unsigned parts, struct drps_err *err)
{
    uint32_t **const arrays[] = {&w->rows, &w->next, &w->prev};
    int lacking = 0;

    for (int i = 0; i < PARTS; i++) {
        if (w->n > w->cap) {
            free(*arrays[i]);
            *arrays[i] = NULL;
        }
    }
    if (w->n > w->cap) w->cap = w->n;
    for (int i = 0; i < PARTS; i++) {
        if (parts >> i & 1 && !*arrays[i]) *arrays[i] = drps_array_new(w->cap, sizeof(uint32_t));
        lacking |= parts >> i & 1 && !*arrays[i];
    }
    return lacking ? drps_err_set(err, -ENOMEM, "no memory for a window of %zu rows", w->n) : 0;
}

/* One part of a record: the sections' packed lists, which must fill it. */
struct run {
    const unsigned char *at;
    size_t bytes;
    uint32_t sections;
    size_t n; /* numbers so far, of the window's w->n */
};

static struct run find_run(const unsigned char *head, size_t bytes, enum part part)
{
    const size_t next_bytes = (size_t)drps_get_u64(head + 48);
    const size_t prev_bytes = (size_t)drps_get_u64(head + 56);
    const size_t rows_bytes = bytes - HEAD_BYTES - next_bytes - prev_bytes;
    struct run r = {.at = head + HEAD_BYTES, .sections = drps_get_u32(head + 40)};
    if (part != NEXT) r.at += next_bytes;
    if (part == ROWS) r.at += prev_bytes;
    r.bytes = part == ROWS ? rows_bytes : part == NEXT ? next_bytes : prev_bytes;
    return r;
}

/* Count of the next section, not more than what is left; 0: malformed. */
static uint32_t section_count(const struct run *r, const struct drps_window *w)
{
    uint32_t n = r->bytes >= 4 ? drps_list_count(r->at) : 0;
    return n > w->n - r->n || n > SECTION_ROWS ? 0 : n;
}

static void run_advance(struct run *r, uint32_t n, size_t used)
{
    r->at += used;
    r->bytes -= used;
    r->n += n;
}

static int run_finish(const struct run *r, const struct drps_window *w, struct drps_err *err)
{
    if (r->n == w->n && r->bytes == 0) return 0;
    return drps_err_set(err, DRPS_E_CORRUPT,
                        "a window of %zu rows has sections of %zu, and %zu bytes behind them", w->n,
                        r->n, r->bytes);
}

static int bad_section(const struct run *r, const struct drps_window *w, struct drps_err *err)
{
    return drps_err_set(err, DRPS_E_CORRUPT,
                        "the section behind %zu of %zu rows of a window is malformed", r->n, w->n);
}

static int decode_rows(struct run r, struct drps_window *w, struct drps_err *err)
{
    size_t used;
    for (uint32_t i = 0; i < r.sections; i++) {
        uint32_t n = section_count(&r, w), *list = w->rows + r.n;
        if (!n) return bad_section(&r, w, err);
        int rc = drps_list_decode(r.at, r.bytes, list, &used, err);
        if (rc < 0) return rc;
        if (list[0] >> SECTION_BITS != list[n - 1] >> SECTION_BITS ||
            (r.n && list[0] >> SECTION_BITS <= list[-1] >> SECTION_BITS))
            return drps_err_set(err, DRPS_E_CORRUPT,
                                "rows %" PRIu32 " to %" PRIu32 " of a window are no section",
                                list[0], list[n - 1]);
        run_advance(&r, n, used);
    }
    return run_finish(&r, w, err);
}

/* Rows [from, from + n) of the window are all that it has in one section. */
static int is_section(const struct drps_window *w, size_t from, size_t n)
{
    const uint32_t *rows = w->rows;
    uint32_t section = rows[from] >> SECTION_BITS;
    return rows[from + n - 1] >> SECTION_BITS == section &&
           (from + n == w->n || rows[from + n] >> SECTION_BITS != section);
}

/* Where the distances of one part go: to an array of all rows, or to ways. */
struct target {
    uint32_t *plain;
    struct drps_ways *ways;
};

static int decode_section(const struct run *r, const struct distances_table *table,
                          const struct target *to, size_t *far_out, size_t *used_out,
                          struct drps_err *err)
{
    if (to->plain)
        return distances_decode(r->at, r->bytes, table, to->plain + r->n, far_out, used_out, err);
    struct drps_ways *ways = to->ways;
    int rc = distances_decode_far(r->at, r->bytes, table, ways->marks, r->n,
                                  ways->far + ways->n_far, far_out, used_out, err);
    ways->n_far += *far_out;
    return rc;
}

/* rows_known: the counts are compared with those of the rows. */
static int decode_distances(struct run r, const struct drps_window *w,
                            const struct distances_table *table, const struct target *to,
                            size_t want_far, int rows_known, struct drps_err *err)
{
    size_t used, far = 0;
    if (to->ways) to->ways->n_far = to->ways->marks[0] = 0;
    for (uint32_t i = 0; i < r.sections; i++) {
        size_t section_far;
        uint32_t n = section_count(&r, w);
        if (!n || (rows_known && !is_section(w, r.n, n))) return bad_section(&r, w, err);
        int rc = decode_section(&r, table, to, &section_far, &used, err);
        if (rc < 0) return rc;
        far += section_far;
        run_advance(&r, n, used);
    }
    if (far != want_far)
        return drps_err_set(err, DRPS_E_CORRUPT,
                            "%zu rows of a window come or go, its head says %zu", far, want_far);
    return run_finish(&r, w, err);
}

/* The parts whose targets are there, behind the head. */
static int decode_parts(const void *record, size_t bytes, int with_rows, struct drps_window *w,
                        const struct target *next, const struct target *prev, struct drps_err *err)
{
    struct distances_table table;
    int rc = with_rows ? decode_rows(find_run(record, bytes, ROWS), w, err) : 0;
    distances_table_init(&table, w->windows);
    if (rc == 0 && (next->plain || next->ways))
        rc = decode_distances(find_run(record, bytes, NEXT), w, &table, next, w->leaving, with_rows,
                              err);
    if (rc == 0 && (prev->plain || prev->ways))
        rc = decode_distances(find_run(record, bytes, PREV), w, &table, prev, w->arriving,
                              with_rows, err);
    if (rc < 0) w->n = 0;
    return rc;
}

int drps_window_decode(const void *record, size_t bytes, unsigned parts, struct drps_window *w,
                       struct drps_err *err)
{
    int rc = parts & ~(unsigned)(DRPS_WINDOW_ROWS | DRPS_WINDOW_NEXT | DRPS_WINDOW_PREV)
                 ? drps_err_set(err, -EINVAL, "a window has no parts %#x", parts)
                 : drps_window_head(record, bytes, w, err);

    if (rc == 0) rc = window_reserve(w, parts, err);
    if (rc < 0) {
        w->n = 0;
        return rc;
    }
    const struct target next = {.plain = parts & DRPS_WINDOW_NEXT ? w->next : NULL};
    const struct target prev = {.plain = parts & DRPS_WINDOW_PREV ? w->prev : NULL};
    return decode_parts(record, bytes, (parts & DRPS_WINDOW_ROWS) != 0, w, &next, &prev, err);
}

int drps_window_decode_ways(const void *record, size_t bytes, int with_rows, struct drps_window *w,
                            struct drps_ways *next, struct drps_ways *prev, struct drps_err *err)
{
    int rc = drps_window_head(record, bytes, w, err);
    if (rc == 0 && with_rows) rc = window_reserve(w, DRPS_WINDOW_ROWS, err);
    if (rc < 0) {
        w->n = 0;
        return rc;
    }
    return decode_parts(record, bytes, with_rows, w, &(struct target){.ways = next},
                        &(struct target){.ways = prev}, err);
}
