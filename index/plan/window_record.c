/*
 * A window as it is stored (drps_window.h has the bytes): its head encoded and decoded, and its
 * parts decoded, section by section.
 */
#include "index/plan/drps_window_record.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/drps_alloc.h"
#include "base/drps_endian.h"
#include "index/plan/codec/drps_distances.h"
#include "index/plan/drps_batch.h"

enum { SUMMED_BYTES = WINDOW_HEAD_BYTES - 8, FLAG_EVALUATION = 1 };

/* ---- Encoding ---- */

static uint64_t sum_bytes(const struct drps_piece *pieces, size_t n)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += pieces[i].bytes;
    return sum;
}

void drps_window_head_encode(const struct drps_window *w, uint32_t sections,
                             struct drps_piece *pieces, size_t n, unsigned char *head)
{
    drps_put_u32(head, w->evaluation ? FLAG_EVALUATION : 0);
    drps_put_u32(head + 4, (uint32_t)w->n);
    drps_put_u64(head + 8, w->first_step);
    drps_put_u64(head + 16, w->steps);
    drps_put_u32(head + 24, w->windows);
    drps_put_u32(head + 28, w->max_rows);
    drps_put_u32(head + 32, (uint32_t)w->arriving);
    drps_put_u32(head + 36, (uint32_t)w->leaving);
    drps_put_u32(head + 40, sections);
    drps_put_u32(head + 44, 0);
    drps_put_u64(head + 48, sum_bytes(pieces + 1, n));
    drps_put_u64(head + 56, sum_bytes(pieces + 1 + n, n));
    pieces[0] = (struct drps_piece){head, SUMMED_BYTES};
    drps_put_u64(head + SUMMED_BYTES, drps_checksum_pieces(pieces, 1 + 2 * n));
    pieces[0].bytes = WINDOW_HEAD_BYTES;
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

/* Check the head of a record, or of its front alone. */
static int head_fits(const unsigned char *head, size_t bytes)
{
    if (bytes < WINDOW_HEAD_BYTES) return 0;
    uint32_t n = drps_get_u32(head + 4), sections = drps_get_u32(head + 40);
    uint64_t steps = drps_get_u64(head + 16), parts = bytes - WINDOW_HEAD_BYTES;
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
    w->front_bytes = WINDOW_HEAD_BYTES + drps_get_u64(head + 48) + drps_get_u64(head + 56);
    return 0;
}

int drps_window_check_front(const void *record, size_t bytes, struct drps_err *err)
{
    const unsigned char *head = record;
    if (bytes >= WINDOW_HEAD_BYTES) {
        const struct drps_piece pieces[] = {{head, SUMMED_BYTES},
                                            {head + WINDOW_HEAD_BYTES, bytes - WINDOW_HEAD_BYTES}};
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
struct part_bytes {
    const unsigned char *at;
    size_t bytes;
    uint32_t sections;
    size_t n; /* numbers so far, of the window's w->n */
};

static struct part_bytes find_part(const unsigned char *head, size_t bytes, enum window_part part)
{
    const size_t next_bytes = (size_t)drps_get_u64(head + 48);
    const size_t prev_bytes = (size_t)drps_get_u64(head + 56);
    const size_t rows_bytes = bytes - WINDOW_HEAD_BYTES - next_bytes - prev_bytes;
    struct part_bytes r = {.at = head + WINDOW_HEAD_BYTES, .sections = drps_get_u32(head + 40)};
    if (part != NEXT) r.at += next_bytes;
    if (part == ROWS) r.at += prev_bytes;
    r.bytes = part == ROWS ? rows_bytes : part == NEXT ? next_bytes : prev_bytes;
    return r;
}

/* The count of the next section, not more than what is left; 0 if it is malformed. */
static uint32_t section_count(const struct part_bytes *r, const struct drps_window *w)
{
    uint32_t n = r->bytes >= 4 ? drps_list_count(r->at) : 0;
    return n > w->n - r->n || n > SECTION_ROWS ? 0 : n;
}

static void part_advance(struct part_bytes *r, uint32_t n, size_t used)
{
    r->at += used;
    r->bytes -= used;
    r->n += n;
}

static int part_finish(const struct part_bytes *r, const struct drps_window *w,
                       struct drps_err *err)
{
    if (r->n == w->n && r->bytes == 0) return 0;
    return drps_err_set(err, DRPS_E_CORRUPT,
                        "a window of %zu rows has sections of %zu, and %zu bytes behind them", w->n,
                        r->n, r->bytes);
}

static int bad_section(const struct part_bytes *r, const struct drps_window *w,
                       struct drps_err *err)
{
    return drps_err_set(err, DRPS_E_CORRUPT,
                        "the section behind %zu of %zu rows of a window is malformed", r->n, w->n);
}

static int decode_rows(struct part_bytes r, struct drps_window *w, struct drps_err *err)
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
        part_advance(&r, n, used);
    }
    return part_finish(&r, w, err);
}

/* Rows [from, from + n) of the window are all that it has in one section. */
static int is_section(const struct drps_window *w, size_t from, size_t n)
{
    const uint32_t *rows = w->rows;
    uint32_t section = rows[from] >> SECTION_BITS;
    return rows[from + n - 1] >> SECTION_BITS == section &&
           (from + n == w->n || rows[from + n] >> SECTION_BITS != section);
}

/* The distances of one part go to an array of all rows, or to use distances. */
struct target {
    uint32_t *plain;
    struct drps_use_distances *distances;
};

static int decode_section(const struct part_bytes *r, const struct distances_table *table,
                          const struct target *to, size_t *far_out, size_t *used_out,
                          struct drps_err *err)
{
    if (to->plain)
        return drps_distances_decode(r->at, r->bytes, table, to->plain + r->n, far_out, used_out,
                                     err);
    struct drps_use_distances *distances = to->distances;
    int rc = drps_distances_decode_far(r->at, r->bytes, table, distances->marks, r->n,
                                       distances->far + distances->n_far, far_out, used_out, err);
    distances->n_far += *far_out;
    return rc;
}

/* rows_known: the counts are compared with those of the rows. */
static int decode_distances(struct part_bytes r, const struct drps_window *w,
                            const struct distances_table *table, const struct target *to,
                            size_t want_far, int rows_known, struct drps_err *err)
{
    size_t used, far = 0;
    if (to->distances) to->distances->n_far = to->distances->marks[0] = 0;
    for (uint32_t i = 0; i < r.sections; i++) {
        size_t section_far;
        uint32_t n = section_count(&r, w);
        if (!n || (rows_known && !is_section(w, r.n, n))) return bad_section(&r, w, err);
        int rc = decode_section(&r, table, to, &section_far, &used, err);
        if (rc < 0) return rc;
        far += section_far;
        part_advance(&r, n, used);
    }
    if (far != want_far)
        return drps_err_set(err, DRPS_E_CORRUPT,
                            "%zu rows of a window come or go, its head says %zu", far, want_far);
    return part_finish(&r, w, err);
}

/* The parts whose targets are there, behind the head. */
static int decode_parts(const void *record, size_t bytes, int with_rows, struct drps_window *w,
                        const struct target *next, const struct target *prev, struct drps_err *err)
{
    struct distances_table table;
    int rc = with_rows ? decode_rows(find_part(record, bytes, ROWS), w, err) : 0;
    drps_distances_table_init(&table, w->windows);
    if (rc == 0 && (next->plain || next->distances))
        rc = decode_distances(find_part(record, bytes, NEXT), w, &table, next, w->leaving,
                              with_rows, err);
    if (rc == 0 && (prev->plain || prev->distances))
        rc = decode_distances(find_part(record, bytes, PREV), w, &table, prev, w->arriving,
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

int drps_window_decode_use_distances(const void *record, size_t bytes, int with_rows,
                                     struct drps_window *w, struct drps_use_distances *next,
                                     struct drps_use_distances *prev, struct drps_err *err)
{
    int rc = drps_window_head(record, bytes, w, err);
    if (rc == 0 && with_rows) rc = window_reserve(w, DRPS_WINDOW_ROWS, err);
    if (rc < 0) {
        w->n = 0;
        return rc;
    }
    return decode_parts(record, bytes, with_rows, w, &(struct target){.distances = next},
                        &(struct target){.distances = prev}, err);
}
