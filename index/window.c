/*
 * Where each row of a window is needed next, and a window as stored.
 *
 * Per row a table holds the window that touches it next and the slot there. One pass backwards over
 * the windows fills it with each row's first window of the epoch, a second one reads and replaces
 * it window by window. The table covers a slice of the row ids when memory is short. A window's
 * record is made of sections of 65536 ids, and slices are whole sections: so records are put
 * together from pieces, whatever the slices were.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "index/drps_window.h"

#include "base/drps_alloc.h"
#include "base/drps_endian.h"
#include "index/cut.h"
#include "index/drps_batch.h"
#include "index/steps.h"

enum { SECTION_BITS = 16, SECTION_ROWS = 1 << SECTION_BITS, SECTION_WORDS = SECTION_ROWS / 64 };
enum { HEAD_BYTES = 40, FLAG_EVALUATION = 1 };

/* ---- Transits ---- */

struct place {
    uint32_t window, slot;
};

struct transits {
    const struct drps_window_options *options;
    struct steps *lists;
    const struct cut *cut;
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
    struct steps_scratch scratch; /* record slice * windows + (windows - 1 - w) */
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
    steps_scratch_end(&t->scratch);
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
                         const struct drps_window_options *o, struct steps *lists,
                         const struct cut *cut, struct drps_err *err)
{
    *t = (struct transits){.options = o, .lists = lists, .cut = cut};
    t->slice_rows = slice_rows(o->rows, o->memory_bytes);
    t->slices = (size_t)((o->rows + t->slice_rows - 1) / t->slice_rows);
    t->table = drps_pages_new((size_t)t->slice_rows * sizeof(*t->table));
    t->bits = calloc((size_t)t->slice_rows / 64, sizeof(*t->bits));
    t->base = calloc(cut->n + 1, sizeof(*t->base));
    t->sections = calloc(cut->n + 1, sizeof(*t->sections));
    int lacking = !t->table || !t->bits || !t->base || !t->sections;
    for (int i = 0; i < 3; i++) {
        t->section[i] = drps_array_new(SECTION_ROWS, sizeof(uint32_t));
        lacking |= !t->section[i];
    }
    if (lacking)
        return drps_err_set(err, -ENOMEM, "no memory for the next uses of %" PRIu64 " rows",
                            t->slice_rows);
    return steps_scratch_begin(&t->scratch, io, dir, "windows.tmp", err);
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
        int rc = steps_rows(t->lists, s, t->options->rows, &rows, &n, err);
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
        rc = steps_scratch_read(&t->scratch, t->cut->n - 1 - w, t->cut->n, t->slices, pieces + 1,
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
                            const struct drps_window_options *o, struct steps *lists,
                            const struct cut *cut, struct drps_err *err)
{
    struct transits t;
    int rc = transits_init(&t, io, dir, o, lists, cut, err);
    if (rc == 0) rc = compile_slices(&t, err);
    if (rc == 0) rc = steps_scratch_turn(&t.scratch, err);
    if (rc == 0) rc = write_windows(&t, io, dir, err);
    transits_destroy(&t);
    return rc;
}

/* ---- Compiling ---- */

static int compile(const struct drps_io *io, const char *dir, const struct drps_window_options *o,
                   struct steps *lists, struct drps_window_result *result, struct drps_err *err)
{
    struct cut cut;
    int rc = cut_steps(lists, o, &cut, err);

    if (rc == 0) {
        drps_log(o->log, DRPS_LOG_DEBUG, "%zu windows, at most %" PRIu64 " rows in two of them",
                 cut.n, cut.result.working_set_rows);
        rc = compile_transits(io, dir, o, lists, &cut, err);
    }
    if (rc == 0) *result = cut.result;
    cut_free(&cut);
    return rc;
}

int drps_windows_compile(const struct drps_io *io, const char *dir,
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
    rc = compile(io, dir, options, lists, result_out, err);
    steps_close(lists);
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
