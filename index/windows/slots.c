/*
 * The slots of a step's rows: their ranks among the rows of its window.
 *
 * The rows that a window's steps touch are marked in a bitmap of all ids; the window has these, and
 * those that both of its neighbours touch. With the number of marks before each 64-bit word, a
 * row's rank is one addition and one count of bits. Each window is read twice, to mark and to
 * translate, by two readers that both go forwards, marking a window ahead. Where every window has
 * all rows, nothing is to be marked: a slot is its row's number, and lists are copied.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "index/windows/slots.h"

#include "base/drps_alloc.h"
#include "index/plan/drps_batch.h"
#include "index/windows/bits.h"

enum { UNIT_WORDS = 65536 / 64 }; /* the bitmap is a multiple of it */

struct slots {
    const struct drps_window_options *options;
    const struct cut *cut;
    struct steps *mark;      /* borrowed */
    struct steps *translate; /* own */
    struct drps_recwriter *out;
    int all; /* 1: every window has all rows */
    size_t words;
    uint64_t *bits;                 /* [words] the window's rows */
    uint64_t *before, *now, *after; /* [words] touched by the window before, it, the next */
    uint32_t *rank;                 /* [words] bits set before the word */
    uint32_t *list;                 /* [list_cap] slots of one step */
    size_t list_cap;
    unsigned char *packed;
    size_t packed_cap;
};

int drps_slots_open(const struct drps_io *io, const char *dir, const char *out_dir,
                    const struct drps_window_options *options, const struct cut *cut,
                    struct steps *lists, struct slots **slots_out, struct drps_err *err)
{
    *slots_out = NULL;
    struct slots *s = calloc(1, sizeof(*s));
    char *path = drps_path_join(out_dir, DRPS_FILE_SLOTS);
    int rc = s && path
                 ? 0
                 : drps_err_set(err, -ENOMEM, "no memory to write %s/" DRPS_FILE_SLOTS, out_dir);
    if (rc < 0) goto out;
    s->options = options;
    s->cut = cut;
    s->mark = lists;
    s->all = cut->result.rows_touched == cut->n * options->rows;
    s->words = ((size_t)(options->rows + 63) / 64 + UNIT_WORDS - 1) / UNIT_WORDS * UNIT_WORDS;
    s->bits = drps_array_new(s->words, sizeof(*s->bits));
    s->before = drps_array_new(s->words, sizeof(*s->before));
    s->now = drps_array_new(s->words, sizeof(*s->now));
    s->after = drps_array_new(s->words, sizeof(*s->after));
    s->rank = drps_array_new(s->words, sizeof(*s->rank));
    if (!s->bits || !s->before || !s->now || !s->after || !s->rank) {
        rc = drps_err_set(err, -ENOMEM, "no memory for the slots of %" PRIu64 " rows",
                          options->rows);
        goto out;
    }
    rc = drps_steps_open(io, dir, DRPS_FILE_ROWS, DRPS_KIND_ROWS, options->steps,
                         options->memory_bytes / 8, &s->translate, err);
    if (rc == 0) rc = drps_recwriter_open(io, path, DRPS_KIND_SLOTS, &s->out, err);
    if (rc < 0) goto out;
    *slots_out = s; /* moved */
    s = NULL;
out:
    free(path);
    drps_slots_close(s);
    return rc;
}

void drps_slots_close(struct slots *s)
{
    if (!s) return;
    drps_recwriter_close(s->out);
    drps_steps_close(s->translate);
    free(s->bits);
    free(s->before);
    free(s->now);
    free(s->after);
    free(s->rank);
    free(s->list);
    free(s->packed);
    free(s);
}

/* The rows that the steps of window w touch. */
static int mark(struct slots *s, size_t w, uint64_t *bits, struct drps_err *err)
{
    const uint64_t end = cut_end(s->cut, w, s->options->steps);
    const uint32_t *rows;
    size_t n;

    memset(bits, 0, s->words * sizeof(*bits));
    for (uint64_t step = s->cut->starts[w]; step < end; step++) {
        int rc = drps_steps_rows(s->mark, step, s->options->rows, &rows, &n, err);
        if (rc < 0) return rc;
        for (size_t i = 0; i < n; i++)
            bits[rows[i] / 64] |= UINT64_C(1) << rows[i] % 64;
    }
    return 0;
}

static void mark_all(struct slots *s)
{
    const size_t full = (size_t)(s->options->rows / 64);
    memset(s->bits, 0xff, full * sizeof(*s->bits));
    memset(s->bits + full, 0, (s->words - full) * sizeof(*s->bits));
    if (s->options->rows % 64) s->bits[full] = (UINT64_C(1) << s->options->rows % 64) - 1;
}

static int mark_window(struct slots *s, size_t w, struct drps_err *err)
{
    int rc = 0;
    if (s->all) {
        mark_all(s);
        return 0;
    }
    if (w == 0) {
        rc = mark(s, s->cut->n - 1, s->before, err);
        if (rc == 0) rc = mark(s, 0, s->now, err);
    } else {
        uint64_t *oldest = s->before;
        s->before = s->now;
        s->now = s->after;
        s->after = oldest;
    }
    if (rc == 0) rc = mark(s, (w + 1) % s->cut->n, s->after, err);
    for (size_t i = 0; i < s->words; i++)
        s->bits[i] = s->now[i] | (s->before[i] & s->after[i]);
    return rc;
}

/* Copy the list of a step, if it is packed as slots are; else *copied_out is 0. Lists were decoded
 * when windows were cut. */
static int copy_step(struct slots *s, uint64_t step, int *copied_out, struct drps_err *err)
{
    const void *list;
    size_t bytes;
    int rc = drps_steps_record(s->translate, step, &list, &bytes, err);
    if (rc < 0) return rc;
    *copied_out = bytes >= 4 && drps_get_u32(list) & DRPS_LIST_DENSE;
    const struct drps_piece piece = {list, bytes};
    return *copied_out ? drps_recwriter_add(s->out, &piece, 1, err) : 0;
}

static int write_step(struct slots *s, uint64_t step, struct drps_err *err)
{
    const uint32_t *rows;
    size_t n;
    int copied = 0;
    int rc = s->all ? copy_step(s, step, &copied, err) : 0;
    if (rc < 0 || copied) return rc;
    rc = drps_steps_rows(s->translate, step, s->options->rows, &rows, &n, err);
    if (rc < 0) return rc;
    if (drps_array_reserve(&s->list, &s->list_cap, n, sizeof(*s->list)) ||
        drps_array_reserve(&s->packed, &s->packed_cap, drps_list_encode_bound(n), 1))
        return drps_err_set(err, -ENOMEM, "no memory for the slots of a step");
    drps_bits_ranks(s->bits, s->rank, rows, n, s->list);
    struct drps_piece piece = {s->packed, drps_list_encode_dense(s->list, n, s->packed)};
    return drps_recwriter_add(s->out, &piece, 1, err);
}

int drps_slots_window(struct slots *s, size_t w, const uint64_t **marked_out, struct drps_err *err)
{
    const uint64_t end = cut_end(s->cut, w, s->options->steps);
    int rc = mark_window(s, w, err);
    if (rc == 0) drps_bits_before(s->bits, s->words, s->rank);
    for (uint64_t step = s->cut->starts[w]; step < end && rc == 0; step++)
        rc = write_step(s, step, err);
    *marked_out = s->bits;
    return rc;
}

int drps_slots_finish(struct slots *s, struct drps_err *err)
{
    return drps_recwriter_finish(s->out, err);
}
