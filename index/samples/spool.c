/*
 * Samples on disk on their way to batches (drps_spool.h): how they lie in buckets (bucket.h), walks
 * over them in the order of arrival, and draining bucket after bucket, sorted.
 */
#include "index/samples/drps_spool.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"
#include "base/drps_thread.h"
#include "index/plan/codec/drps_dense.h"
#include "index/samples/bucket.h"
#include "index/samples/sample.h"
#include "index/samples/sorting.h"

enum { BUCKET_BITS = 5, CHUNK_BYTES = 4 << 20 };
/* What samples have is expected so many bytes of them ahead; they themselves, so many samples
 * before.
 */
enum { SOON_BYTES = 704, SOON_LEAST = 3, SOON_MOST = 16, AHEAD = 6, REQUESTED_MOST = 256 };
_Static_assert(1 << BUCKET_BITS == SPOOL_BUCKETS, "buckets are numbered by bits of the order");

/* A thread that sorts a bucket before it is its turn. */
struct ahead {
    struct spool *s; /* borrowed */
    unsigned number; /* of the bucket */
    pthread_t thread;
    int started;
    int rc; /* of the thread */
    struct drps_err err;
};

struct spool {
    struct bucket_store store;
    struct sorting sorting[2]; /* of the buckets with even numbers, and of the others */
    struct ahead ahead;
    unsigned n;     /* buckets */
    unsigned shift; /* of the order that gives the bucket */
    struct bucket buckets[SPOOL_BUCKETS];
};

static int open_level(const struct drps_io *io, const char *dir, const char *name, unsigned buckets,
                      unsigned shift, uint64_t memory_bytes, struct spool **s_out,
                      struct drps_err *err)
{
    *s_out = NULL;
    struct spool *s = calloc(1, sizeof(*s));
    if (!s) return drps_err_set(err, -ENOMEM, "no memory for the spool");
    s->store.io = io;
    s->n = buckets;
    s->shift = shift;
    for (unsigned i = 0; i < SPOOL_BUCKETS; i++)
        s->buckets[i].fd = -1;
    s->store.chunks_max = (size_t)(memory_bytes / BUCKET_BUFFER_BYTES);
    int rc = 0;
    for (unsigned i = 0; rc == 0 && i < buckets; i++)
        rc = drps_bucket_open(&s->store, dir, name, i, &s->buckets[i], err);
    if (rc < 0) {
        drps_spool_close(s);
        return rc;
    }
    *s_out = s;
    return 0;
}

int drps_spool_open(const struct drps_io *io, const char *dir, const char *name, unsigned buckets,
                    uint64_t memory_bytes, struct spool **s_out, struct drps_err *err)
{
    return open_level(io, dir, name, buckets, 64 - BUCKET_BITS, memory_bytes, s_out, err);
}

static void free_sorting(struct spool *s)
{
    drps_sorting_free(&s->sorting[0]);
    drps_sorting_free(&s->sorting[1]);
}

void drps_spool_close(struct spool *s)
{
    if (!s) return;
    for (unsigned i = 0; i < s->n; i++)
        drps_bucket_close(s->store.io, &s->buckets[i]);
    free_sorting(s);
    free(s);
}

int drps_spool_numbers(const struct spool_sample *sample, uint32_t each, float *out)
{
    return sample->numbers &&
           drps_dense_unpack_floats(sample->numbers, sample->numbers_bytes, each, out);
}

static int has_weight(const struct spool_sample *sample)
{
    return sample->weight != 1;
}

static void encode_head(const struct spool_sample *sample, void *head)
{
    char *at = head;
    uint32_t label;
    memcpy(&label, &sample->label, sizeof(label));
    drps_put_u64(at, sample->order);
    drps_put_u32(at + 8, label);
    drps_put_u32(at + 12, (sample->numbers ? sample->numbers_bytes | HAS_NUMBERS : sample->n) |
                              (sample->values ? HAS_VALUES : 0) |
                              (has_weight(sample) ? HAS_WEIGHT : 0) |
                              (sample->fields ? HAS_FIELDS : 0) | (sample->owner ? HAS_OWNER : 0));
}

static const char no_field[sizeof(uint16_t)]; /* fills the last four bytes */

/* Adds a sample for all of which the buffer has no room. */
static int add_in_parts(struct spool *s, struct bucket *b, const struct spool_sample *sample,
                        struct drps_err *err)
{
    char head[HEAD_BYTES];
    encode_head(sample, head);
    int rc = drps_bucket_put(&s->store, b, head, sizeof(head), err);
    if (rc == 0)
        rc = drps_bucket_put(&s->store, b, sample->ids, sample->n * sizeof(*sample->ids), err);
    if (rc == 0 && sample->values)
        rc =
            drps_bucket_put(&s->store, b, sample->values, sample->n * sizeof(*sample->values), err);
    if (rc == 0 && sample->numbers)
        rc = drps_bucket_put(&s->store, b, sample->numbers, sample->numbers_bytes, err);
    if (rc == 0 && sample->fields)
        rc =
            drps_bucket_put(&s->store, b, sample->fields, sample->n * sizeof(*sample->fields), err);
    if (rc == 0 && sample->fields && sample->n % 2)
        rc = drps_bucket_put(&s->store, b, no_field, sizeof(no_field), err);
    if (rc == 0 && has_weight(sample))
        rc = drps_bucket_put(&s->store, b, &sample->weight, sizeof(sample->weight), err);
    if (rc == 0 && sample->owner)
        rc = drps_bucket_put(&s->store, b, &sample->owner, sizeof(sample->owner), err);
    return rc;
}

/* Writes the fields of a sample, for which there is room. Returns how many bytes they take. */
static size_t put_fields(const struct spool_sample *sample, char *to)
{
    const size_t used = sample->n * sizeof(*sample->fields), bytes = fields_bytes(sample->n);
    if (used) memcpy(to, sample->fields, used);
    memset(to + used, 0, bytes - used);
    return bytes;
}

int drps_spool_add(struct spool *s, const struct spool_sample *sample, struct drps_err *err)
{
    const unsigned number =
        s->n == 1 ? 0 : (unsigned)(sample->order >> s->shift) & (SPOOL_BUCKETS - 1);
    const size_t each = sample->n * sizeof(*sample->ids);
    struct bucket *b = &s->buckets[number];

    b->samples++;
    if (HEAD_BYTES + 3 * each + sample->numbers_bytes + sizeof(float) + sizeof(uint32_t) >
        BUCKET_BUFFER_BYTES - b->buffered)
        return add_in_parts(s, b, sample, err);
    char *to = bucket_tail(b);
    encode_head(sample, to);
    to += HEAD_BYTES;
    if (each) memcpy(to, sample->ids, each);
    to += each;
    if (each && sample->values) memcpy(to, sample->values, each);
    if (sample->values) to += each;
    if (sample->numbers) memcpy(to, sample->numbers, sample->numbers_bytes);
    if (sample->numbers) to += sample->numbers_bytes;
    if (sample->fields) to += put_fields(sample, to);
    if (has_weight(sample)) {
        memcpy(to, &sample->weight, sizeof(sample->weight));
        to += sizeof(sample->weight);
    }
    if (sample->owner) {
        memcpy(to, &sample->owner, sizeof(sample->owner));
        to += sizeof(sample->owner);
    }
    b->buffered += (size_t)(to - bucket_tail(b));
    return 0;
}

int drps_spool_mark(struct spool *s, struct drps_err *err)
{
    for (unsigned i = 0; i < s->n; i++) {
        struct bucket *b = &s->buckets[i];
        if (drps_array_reserve(&b->marks, &b->marks_cap, b->marks_n + 1, sizeof(*b->marks)))
            return drps_err_set(err, -ENOMEM, "no memory for the spool");
        b->marks[b->marks_n++] = b->written + b->buffered;
    }
    return 0;
}

int drps_spool_finish(struct spool *s, struct drps_err *err)
{
    int rc = 0;
    for (unsigned i = 0; rc == 0 && i < s->n; i++) {
        rc = drps_bucket_flush(&s->store, &s->buckets[i], err);
        free(s->buckets[i].own);
        s->buckets[i].own = NULL;
    }
    return rc;
}

/* Point sample into `data` (room bytes left). Returns its size, or 0 when it is not whole. */
static size_t sample_decode(char *data, size_t room, struct spool_sample *sample)
{
    if (room < HEAD_BYTES) return 0;
    const size_t bytes = sample_bytes(data);
    uint32_t n = drps_get_u32(data + 12);
    uint32_t label = drps_get_u32(data + 8);
    if (bytes > room) return 0;
    sample->order = drps_get_u64(data);
    memcpy(&sample->label, &label, sizeof(label));
    const uint32_t low = n & (SPOOL_ENTRIES_MOST - 1);
    sample->n = entries_of(n);
    sample->ids = ids_of(data);
    const uint32_t *end = sample->ids + sample->n;
    sample->values = n & HAS_VALUES ? (const float *)(const void *)end : NULL;
    if (n & HAS_VALUES) end += sample->n;
    sample->numbers = n & HAS_NUMBERS ? end : NULL;
    sample->numbers_bytes = n & HAS_NUMBERS ? low : 0;
    end += sample->numbers_bytes / sizeof(*end);
    sample->fields = n & HAS_FIELDS ? (const uint16_t *)(const void *)end : NULL;
    sample->weight = 1;
    sample->owner = 0;
    const char *at = data + bytes;
    if (n & HAS_OWNER) memcpy(&sample->owner, at -= sizeof(uint32_t), sizeof(uint32_t));
    if (n & HAS_WEIGHT) memcpy(&sample->weight, at - sizeof(float), sizeof(float));
    return bytes;
}

/* A window over a bucket file that always starts at a sample. */
struct walker {
    struct spool *s;
    struct bucket *b;
    uint64_t at, end; /* file offsets: of data[0], and where to stop */
    char *data;
    size_t n, cap;
};

/* Load the next whole samples. Returns 1, or 0 at the end. */
static int walker_load(struct walker *w, struct drps_err *err)
{
    uint64_t left = w->end - w->at;
    w->n = (size_t)(left < w->cap ? left : w->cap);
    if (!w->n) return 0;
    int rc = drps_bucket_read(&w->s->store, w->b, w->data, w->n, w->at, err);
    if (rc < 0) return rc;
    size_t need = w->n < HEAD_BYTES ? HEAD_BYTES : sample_bytes(w->data);
    if (need > left)
        return drps_err_set(err, DRPS_E_CORRUPT, "%s: a sample at byte %" PRIu64 " is cut off",
                            w->b->path, w->at);
    if (need > w->n) { /* one huge sample */
        char *grown = realloc(w->data, need);
        if (!grown) return drps_err_set(err, -ENOMEM, "no memory for a sample of %zu bytes", need);
        w->data = grown;
        w->cap = need;
        return walker_load(w, err);
    }
    return 1;
}

/* Have the samples that come soon behind the first `used` bytes expected, as far as the window has
 * them. Returns where the next one is. */
static size_t expect_soon(const struct walker *w, const struct spool_visitor *v, size_t used,
                          size_t at)
{
    while (v->expect && at < used + SOON_BYTES && w->n - at >= HEAD_BYTES) {
        char *sample = w->data + at;
        const size_t bytes = sample_bytes(sample);
        if (bytes > w->n - at) break;
        v->expect(v->ctx, ids_of(sample), entries_of(drps_get_u32(sample + 12)));
        at += bytes;
    }
    return at;
}

static int walk(struct spool *s, struct bucket *b, uint64_t from, uint64_t to, int write_back,
                const struct spool_visitor *v, struct drps_err *err)
{
    struct walker w = {.s = s, .b = b, .at = from, .end = to, .cap = CHUNK_BYTES};
    struct spool_sample sample;
    w.data = malloc(w.cap);
    if (!w.data) return drps_err_set(err, -ENOMEM, "no memory for the spool");
    int rc;
    while ((rc = walker_load(&w, err)) > 0) {
        size_t used = 0, soon = 0;
        size_t bytes;
        while (rc >= 0 && (bytes = sample_decode(w.data + used, w.n - used, &sample))) {
            soon = expect_soon(&w, v, used, soon);
            rc = v->visit(v->ctx, &sample, err);
            used += bytes;
        }
        if (rc >= 0 && write_back) rc = drps_bucket_write(&s->store, b, w.data, used, w.at, err);
        if (rc < 0) break;
        w.at += used;
    }
    free(w.data);
    return rc;
}

struct relabel {
    uint32_t base;
    const uint32_t *map;
};

static int relabel_sample(void *ctx, struct spool_sample *sample, struct drps_err *err)
{
    const struct relabel *r = ctx;
    (void)err;
    for (uint32_t i = 0; i < sample->n; i++)
        sample->ids[i] = r->map[sample->ids[i] - r->base];
    return 0;
}

int drps_spool_relabel(struct spool *s, size_t generation, uint32_t base, const uint32_t *map,
                       struct drps_err *err)
{
    struct relabel r = {base, map};
    const struct spool_visitor v = {.visit = relabel_sample, .ctx = &r};
    int rc = 0;
    for (unsigned i = 0; rc >= 0 && i < s->n; i++) {
        struct bucket *b = &s->buckets[i];
        uint64_t from = generation ? b->marks[generation - 1] : 0;
        uint64_t to = generation < b->marks_n ? b->marks[generation] : b->written;
        rc = walk(s, b, from, to, 1, &v, err);
    }
    return rc < 0 ? rc : 0;
}

/* Request the first bytes of a sample, and the last of these, which may lie in one line more. */
static void prefetch_sample(const char *at, size_t bytes)
{
    for (size_t i = 0; i < bytes; i += 64)
        __builtin_prefetch(at + i);
    __builtin_prefetch(at + bytes - 1);
}

static size_t clamp(size_t v, size_t least, size_t most)
{
    return v < least ? least : v > most ? most : v;
}

/* Visit the samples of a bucket, sorted. */
static int visit_sorted(const struct sorting *w, const struct spool_visitor *v,
                        struct drps_err *err)
{
    struct spool_sample sample;
    const struct ordered *sorted = w->sorted;
    const size_t mean = w->samples ? w->bytes / w->samples : 0;
    const size_t requested = mean < REQUESTED_MOST ? mean : REQUESTED_MOST;
    const size_t soon = clamp(SOON_BYTES / (mean + 1), SOON_LEAST, SOON_MOST), ahead = soon + AHEAD;
    int rc = 0;
    for (size_t i = 0; rc >= 0 && i < w->samples; i++) {
        if (i + ahead < w->samples) prefetch_sample(w->data + sorted[i + ahead].at, requested);
        if (v->expect && i + soon < w->samples) {
            char *next = w->data + sorted[i + soon].at;
            v->expect(v->ctx, ids_of(next), entries_of(drps_get_u32(next + 12)));
        }
        const size_t at = (size_t)sorted[i].at;
        (void)sample_decode(w->data + at, w->bytes - at, &sample); /* whole by construction */
        rc = v->visit(v->ctx, &sample, err);
    }
    return rc < 0 ? rc : 0;
}

static int sort_bucket(struct spool *s, unsigned number, struct drps_err *err)
{
    return drps_sorting_fill(&s->sorting[number % 2], &s->store, &s->buckets[number], s->shift,
                             err);
}

/* ---- The next bucket ---- */

static void *sort_ahead(void *arg)
{
    struct ahead *a = arg;
    drps_thread_serves();
    a->rc = sort_bucket(a->s, a->number, &a->err);
    return NULL;
}

/* Returns how much memory the spool has while this bucket is sorted in it, too. */
static uint64_t bytes_with(const struct spool *s, unsigned number)
{
    return drps_sorting_bytes_in(&s->sorting[number % 2], &s->buckets[number]) +
           drps_sorting_held(&s->sorting[(number + 1) % 2]);
}

/* Have a thread sort a bucket, if memory has room for it beside the one before. Where no thread can
 * be started the caller sorts it later. */
static void begin_ahead(struct spool *s, unsigned number, uint64_t memory_bytes)
{
    if (number == s->n || bytes_with(s, number) > memory_bytes) return;
    s->ahead = (struct ahead){.s = s, .number = number, .err = DRPS_ERR_INIT};
    s->ahead.started = pthread_create(&s->ahead.thread, NULL, sort_ahead, &s->ahead) == 0;
}

/* Wait for the thread, if there is one. */
static int end_ahead(struct spool *s, struct drps_err *err)
{
    if (!s->ahead.started) return 0;
    (void)pthread_join(s->ahead.thread, NULL); /* cannot fail for a thread of ours */
    s->ahead.started = 0;
    return s->ahead.rc < 0 ? drps_err_set(err, s->ahead.rc, "%s", s->ahead.err.text) : 0;
}

/* 1: a bucket is sorted in one piece, or is being so: the thread's bucket is not looked at. */
static int is_sorted_whole(const struct spool *s, unsigned number, uint64_t memory_bytes)
{
    const struct bucket *b = &s->buckets[number];
    return s->ahead.started || drps_sorting_bytes(b) <= memory_bytes || b->samples < 2 ||
           s->shift < BUCKET_BITS;
}

/* Visit a bucket that memory has room for. */
static int drain_sorted(struct spool *s, unsigned number, uint64_t memory_bytes,
                        const struct spool_visitor *v, struct drps_err *err)
{
    int rc;
    if (s->ahead.started) {
        rc = end_ahead(s, err);
    } else {
        if (bytes_with(s, number) > memory_bytes) free_sorting(s);
        rc = sort_bucket(s, number, err);
    }
    if (rc < 0) return rc;
    if (v->ahead) begin_ahead(s, number + 1, memory_bytes);
    return visit_sorted(&s->sorting[number % 2], v, err);
}

/* ---- Bucket after bucket ---- */

static int split_sample(void *ctx, struct spool_sample *sample, struct drps_err *err)
{
    return drps_spool_add(ctx, sample, err);
}

/* Split a bucket that is too large for memory by the next bits of the order, then drain the parts.
 */
static int drain_split(struct spool *s, struct bucket *b, uint64_t memory_bytes,
                       const struct spool_visitor *v, struct drps_err *err)
{
    struct spool *parts;
    const char *slash = strrchr(b->path, '/');
    char *dir = strndup(b->path, (size_t)(slash - b->path));
    if (!dir) return drps_err_set(err, -ENOMEM, "no memory for the spool");
    free_sorting(s); /* the parts are sorted in memory of their own */
    int rc = open_level(s->store.io, dir, slash + 1, SPOOL_BUCKETS, s->shift - BUCKET_BITS, 0,
                        &parts, err);
    free(dir);
    if (rc < 0) return rc;
    const struct spool_visitor splitter = {.visit = split_sample, .ctx = parts};
    rc = walk(s, b, 0, b->written, 0, &splitter, err);
    if (rc >= 0) rc = drps_spool_finish(parts, err);
    if (rc >= 0) rc = drps_spool_drain(parts, memory_bytes, v, err);
    drps_spool_close(parts);
    return rc;
}

static int drain_bucket(struct spool *s, unsigned number, uint64_t memory_bytes,
                        const struct spool_visitor *v, struct drps_err *err)
{
    struct bucket *b = &s->buckets[number];
    int rc;
    if (s->n == 1)
        rc = walk(s, b, 0, b->written, 0, v, err);
    else if (is_sorted_whole(s, number, memory_bytes))
        rc = drain_sorted(s, number, memory_bytes, v, err);
    else
        rc = drain_split(s, b, memory_bytes, v, err);
    drps_bucket_close(s->store.io, b);
    return rc < 0 ? rc : 0;
}

int drps_spool_drain(struct spool *s, uint64_t memory_bytes, const struct spool_visitor *v,
                     struct drps_err *err)
{
    int rc = 0;
    for (unsigned i = 0; rc == 0 && i < s->n; i++)
        rc = drain_bucket(s, i, memory_bytes, v, err);
    (void)end_ahead(s, NULL); /* after an error, which is the first one */
    free_sorting(s);
    return rc;
}

int drps_spool_walk(struct spool *s, const struct spool_visitor *v, struct drps_err *err)
{
    int rc = walk(s, &s->buckets[0], 0, s->buckets[0].written, 0, v, err);
    return rc < 0 ? rc : 0;
}
