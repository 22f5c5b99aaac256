/* Radix sorts in memory, and runs of sorted records that are spilled to a file and merged by a
 * heap. */
#include "base/drps_extsort.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"

enum { RADIX = 256, KEY_BYTES = 16, MIN_RECORDS = 1 << 12, MAX_RUNS = 4096 };

static unsigned key_byte(const struct drps_sort_record *r, unsigned byte)
{
    return (unsigned)((byte < 8 ? r->lo >> (8 * byte) : r->hi >> (8 * (byte - 8))) & 0xff);
}

/* The bytes in which records differ, least significant first; returns how many. */
static unsigned varying_bytes(const struct drps_sort_record *records, size_t n, unsigned *bytes_out)
{
    struct drps_sort_record differ = {0};
    unsigned found = 0;
    for (size_t i = 1; i < n; i++) {
        differ.hi |= records[i].hi ^ records[0].hi;
        differ.lo |= records[i].lo ^ records[0].lo;
    }
    for (unsigned b = 0; b < KEY_BYTES; b++)
        if (key_byte(&differ, b)) bytes_out[found++] = b;
    return found;
}

void drps_sort_records(struct drps_sort_record *records, struct drps_sort_record *aux, size_t n)
{
    unsigned bytes[KEY_BYTES];
    size_t count[KEY_BYTES][RADIX];
    const unsigned passes = varying_bytes(records, n, bytes);
    memset(count, 0, passes * sizeof(*count));
    for (size_t i = 0; i < n; i++)
        for (unsigned p = 0; p < passes; p++)
            count[p][key_byte(&records[i], bytes[p])]++;
    struct drps_sort_record *from = records;
    struct drps_sort_record *to = aux;
    for (unsigned p = 0; p < passes; p++) {
        size_t at = 0;
        for (unsigned v = 0; v < RADIX; v++) {
            size_t c = count[p][v];
            count[p][v] = at;
            at += c;
        }
        for (size_t i = 0; i < n; i++)
            to[count[p][key_byte(&from[i], bytes[p])]++] = from[i];
        struct drps_sort_record *swap = from;
        from = to;
        to = swap;
    }
    if (from != records) memcpy(records, from, n * sizeof(*records));
}

/* A stable radix sort of `type`, by the 32 bits above `shift`. */
#define RADIX_SORT(name, type, shift)                                                              \
    void name(type *numbers, type *aux, size_t n)                                                  \
    {                                                                                              \
        enum { BITS = 11, SIZE = 1 << BITS };                                                      \
        size_t count[3][SIZE];                                                                     \
        memset(count, 0, sizeof(count));                                                           \
        for (size_t i = 0; i < n; i++)                                                             \
            for (unsigned p = 0; p < 3; p++)                                                       \
                count[p][numbers[i] >> ((shift) + p * BITS) & (SIZE - 1)]++;                       \
        type *from = numbers;                                                                      \
        type *to = aux;                                                                            \
        for (unsigned p = 0; n && p < 3; p++) {                                                    \
            if (count[p][from[0] >> ((shift) + p * BITS) & (SIZE - 1)] == n) continue;             \
            size_t at = 0;                                                                         \
            for (unsigned v = 0; v < SIZE; v++) {                                                  \
                size_t c = count[p][v];                                                            \
                count[p][v] = at;                                                                  \
                at += c;                                                                           \
            }                                                                                      \
            for (size_t i = 0; i < n; i++)                                                         \
                to[count[p][from[i] >> ((shift) + p * BITS) & (SIZE - 1)]++] = from[i];            \
            type *swap = from;                                                                     \
            from = to;                                                                             \
            to = swap;                                                                             \
        }                                                                                          \
        if (from != numbers) memcpy(numbers, from, n * sizeof(*numbers));                          \
    }
RADIX_SORT(drps_sort_u32, uint32_t, 0)
RADIX_SORT(drps_sort_keyed, uint64_t, 32)
#undef RADIX_SORT

struct run {
    uint64_t at, end; /* records in the file still to read */
    struct drps_sort_record *buf;
    size_t n, used;
};

struct drps_extsort {
    const struct drps_io *io;
    char *path;
    int fd;
    uint64_t spilled; /* records in the file */
    struct drps_sort_record *records, *aux;
    size_t n, cap, limit;
    struct run *runs;
    size_t runs_n, runs_cap;
    size_t buffer_records; /* of a run while merging */
    size_t taken;          /* in-memory delivery */
    size_t *heap;          /* runs by their next record */
    size_t heap_n;
};

int drps_extsort_open(const struct drps_io *io, const char *dir, const char *name,
                      uint64_t memory_bytes, struct drps_extsort **s_out, struct drps_err *err)
{
    *s_out = NULL;
    struct drps_extsort *s = calloc(1, sizeof(*s));
    if (!s || asprintf(&s->path, "%s/%s.run", dir, name) < 0) {
        free(s);
        return drps_err_set(err, -ENOMEM, "no memory for sorting");
    }
    s->io = io;
    s->fd = -1;
    s->limit = (size_t)(memory_bytes / (2 * sizeof(*s->records)));
    if (s->limit < MIN_RECORDS) s->limit = MIN_RECORDS;
    *s_out = s;
    return 0;
}

void drps_extsort_close(struct drps_extsort *s)
{
    if (!s) return;
    drps_io_close(s->io, s->fd);
    if (s->fd >= 0)
        (void)s->io->ops->unlink(s->io->ctx, s->path); /* scratch; the folder goes anyway */
    for (size_t i = 0; i < s->runs_n; i++)
        free(s->runs[i].buf);
    free(s->runs);
    free(s->heap);
    free(s->records);
    free(s->aux);
    free(s->path);
    free(s);
}

static int sort_buffer(struct drps_extsort *s, struct drps_err *err)
{
    s->aux = drps_array_new(s->n, sizeof(*s->aux));
    if (!s->aux) return drps_err_set(err, -ENOMEM, "no memory to sort %zu records", s->n);
    drps_sort_records(s->records, s->aux, s->n);
    free(s->aux);
    s->aux = NULL;
    return 0;
}

static int spill(struct drps_extsort *s, struct drps_err *err)
{
    int rc = sort_buffer(s, err);
    if (rc < 0) return rc;
    if (s->fd < 0) rc = drps_io_open(s->io, s->path, O_RDWR | O_CREAT | O_TRUNC, &s->fd, err);
    if (rc < 0) return rc;
    if (s->runs_n == MAX_RUNS)
        return drps_err_set(err, DRPS_E_MEMORY_BUDGET,
                            "sorting needs more memory: raise the memory limit");
    if (drps_array_reserve(&s->runs, &s->runs_cap, s->runs_n + 1, sizeof(*s->runs)))
        return drps_err_set(err, -ENOMEM, "no memory for sorting");
    rc = drps_io_write_at(s->io, s->fd, s->records, s->n * sizeof(*s->records),
                          s->spilled * sizeof(*s->records), s->path, err);
    if (rc < 0) return rc;
    s->runs[s->runs_n++] = (struct run){.at = s->spilled, .end = s->spilled + s->n};
    s->spilled += s->n;
    s->n = 0;
    return 0;
}

int drps_extsort_add(struct drps_extsort *s, const struct drps_sort_record *record,
                     struct drps_err *err)
{
    if (s->n == s->limit) {
        int rc = spill(s, err);
        if (rc < 0) return rc;
    }
    if (drps_array_reserve(&s->records, &s->cap, s->n + 1, sizeof(*s->records)))
        return drps_err_set(err, -ENOMEM, "no memory to sort %zu records", s->n);
    s->records[s->n++] = *record;
    return 0;
}

/* Fill a run's buffer; used == n afterwards means that the run is at its end. */
static int refill(struct drps_extsort *s, struct run *run, struct drps_err *err)
{
    run->used = 0;
    run->n =
        (size_t)(run->end - run->at < s->buffer_records ? run->end - run->at : s->buffer_records);
    int rc = drps_io_read_at(s->io, s->fd, run->buf, run->n * sizeof(*run->buf),
                             run->at * sizeof(*run->buf), s->path, err);
    run->at += run->n;
    return rc;
}

static int run_before(const struct drps_extsort *s, size_t x, size_t y)
{
    const struct drps_sort_record *a = &s->runs[x].buf[s->runs[x].used];
    const struct drps_sort_record *b = &s->runs[y].buf[s->runs[y].used];
    if (a->hi != b->hi) return a->hi < b->hi;
    if (a->lo != b->lo) return a->lo < b->lo;
    return x < y; /* earlier runs hold earlier arrivals */
}

static void sift_down(struct drps_extsort *s, size_t i)
{
    for (;;) {
        size_t least = i;
        for (size_t child = 2 * i + 1; child <= 2 * i + 2 && child < s->heap_n; child++)
            if (run_before(s, s->heap[child], s->heap[least])) least = child;
        if (least == i) return;
        size_t swap = s->heap[i];
        s->heap[i] = s->heap[least];
        s->heap[least] = swap;
        i = least;
    }
}

static int start_merge(struct drps_extsort *s, struct drps_err *err)
{
    int rc = s->n ? spill(s, err) : 0;
    if (rc < 0) return rc;
    free(s->records);
    s->records = NULL;
    s->buffer_records = 2 * s->limit / s->runs_n + 1;
    s->heap = drps_array_new(s->runs_n, sizeof(*s->heap));
    if (!s->heap) return drps_err_set(err, -ENOMEM, "no memory for merging");
    for (size_t i = 0; i < s->runs_n; i++) {
        s->runs[i].buf = drps_array_new(s->buffer_records, sizeof(*s->runs[i].buf));
        if (!s->runs[i].buf) return drps_err_set(err, -ENOMEM, "no memory for merging");
        rc = refill(s, &s->runs[i], err);
        if (rc < 0) return rc;
        s->heap[s->heap_n++] = i;
    }
    for (size_t i = s->heap_n; i-- > 0;)
        sift_down(s, i);
    return 0;
}

int drps_extsort_finish(struct drps_extsort *s, struct drps_err *err)
{
    return s->runs_n ? start_merge(s, err) : sort_buffer(s, err);
}

/* Step past the record that was delivered last. */
static int advance(struct drps_extsort *s, struct drps_err *err)
{
    struct run *run = &s->runs[s->heap[0]];
    run->used++;
    if (run->used == run->n) {
        int rc = refill(s, run, err);
        if (rc < 0) return rc;
    }
    if (run->used == run->n) s->heap[0] = s->heap[--s->heap_n];
    if (s->heap_n) sift_down(s, 0);
    return 0;
}

int drps_extsort_next(struct drps_extsort *s, const struct drps_sort_record **record_out,
                      struct drps_err *err)
{
    *record_out = NULL;
    if (!s->runs_n) {
        if (s->taken == s->n) return 0;
        *record_out = &s->records[s->taken++];
        return 1;
    }
    if (s->taken++) {
        int rc = advance(s, err);
        if (rc < 0) return rc;
    }
    if (!s->heap_n) return 0;
    const struct run *run = &s->runs[s->heap[0]];
    *record_out = &run->buf[run->used];
    return 1;
}
