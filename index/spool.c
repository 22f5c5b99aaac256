#include "index/spool.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"
#include "base/drps_endian.h"
#include "index/extsort.h"

/* A sample: order u64 | label f32 | n u32 (top bit: values follow) | ids u32[n] | values f32[n]. */
enum { HEAD_BYTES = 16, BUCKET_BITS = 5, BUFFER_BYTES = 256 * 1024, CHUNK_BYTES = 4 << 20 };
#define HAS_VALUES 0x80000000u
_Static_assert(1 << BUCKET_BITS == SPOOL_BUCKETS, "buckets are numbered by bits of the order");

struct bucket {
    int fd;
    char *path;
    char *buf;
    size_t buffered;
    uint64_t written;
    uint64_t *marks; /* [marks_n] offsets where generations begin, after the first */
    size_t marks_n, marks_cap;
    uint64_t samples;
};

struct spool {
    const struct drps_io *io;
    unsigned n;     /* buckets */
    unsigned shift; /* of the order that gives the bucket */
    struct bucket buckets[SPOOL_BUCKETS];
};

static int bucket_open(const struct drps_io *io, const char *dir, const char *name, unsigned number,
                       struct bucket *b, struct drps_err *err)
{
    if (asprintf(&b->path, "%s/%s-%u", dir, name, number) < 0) b->path = NULL;
    b->buf = malloc(BUFFER_BYTES);
    if (!b->path || !b->buf) return drps_err_set(err, -ENOMEM, "no memory for the spool");
    return drps_io_open(io, b->path, O_RDWR | O_CREAT | O_TRUNC, &b->fd, err);
}

static void bucket_close(const struct drps_io *io, struct bucket *b)
{
    if (b->fd >= 0) (void)io->ops->unlink(io->ctx, b->path); /* scratch; the folder goes anyway */
    drps_io_close(io, b->fd);
    free(b->path);
    free(b->buf);
    free(b->marks);
    *b = (struct bucket){.fd = -1};
}

static int open_level(const struct drps_io *io, const char *dir, const char *name, unsigned buckets,
                      unsigned shift, struct spool **s_out, struct drps_err *err)
{
    *s_out = NULL;
    struct spool *s = calloc(1, sizeof(*s));
    if (!s) return drps_err_set(err, -ENOMEM, "no memory for the spool");
    s->io = io;
    s->n = buckets;
    s->shift = shift;
    for (unsigned i = 0; i < SPOOL_BUCKETS; i++)
        s->buckets[i].fd = -1;
    int rc = 0;
    for (unsigned i = 0; rc == 0 && i < buckets; i++)
        rc = bucket_open(io, dir, name, i, &s->buckets[i], err);
    if (rc < 0) {
        spool_close(s);
        return rc;
    }
    *s_out = s;
    return 0;
}

int spool_open(const struct drps_io *io, const char *dir, const char *name, unsigned buckets,
               struct spool **s_out, struct drps_err *err)
{
    return open_level(io, dir, name, buckets, 64 - BUCKET_BITS, s_out, err);
}

void spool_close(struct spool *s)
{
    if (!s) return;
    for (unsigned i = 0; i < s->n; i++)
        bucket_close(s->io, &s->buckets[i]);
    free(s);
}

static int bucket_flush(const struct drps_io *io, struct bucket *b, struct drps_err *err)
{
    int rc = drps_io_write_at(io, b->fd, b->buf, b->buffered, b->written, b->path, err);
    if (rc < 0) return rc;
    b->written += b->buffered;
    b->buffered = 0;
    return 0;
}

static int bucket_put(const struct drps_io *io, struct bucket *b, const void *data, size_t n,
                      struct drps_err *err)
{
    const char *at = data;
    while (n) {
        if (b->buffered == BUFFER_BYTES) {
            int rc = bucket_flush(io, b, err);
            if (rc < 0) return rc;
        }
        size_t room = BUFFER_BYTES - b->buffered;
        size_t part = n < room ? n : room;
        memcpy(b->buf + b->buffered, at, part);
        b->buffered += part;
        at += part;
        n -= part;
    }
    return 0;
}

int spool_add(struct spool *s, const struct spool_sample *sample, struct drps_err *err)
{
    unsigned char head[HEAD_BYTES];
    uint32_t label;
    unsigned number = s->n == 1 ? 0 : (unsigned)(sample->order >> s->shift) & (SPOOL_BUCKETS - 1);
    struct bucket *b = &s->buckets[number];

    memcpy(&label, &sample->label, sizeof(label));
    drps_put_u64(head, sample->order);
    drps_put_u32(head + 8, label);
    drps_put_u32(head + 12, sample->n | (sample->values ? HAS_VALUES : 0));
    b->samples++;
    int rc = bucket_put(s->io, b, head, sizeof(head), err);
    if (rc == 0) rc = bucket_put(s->io, b, sample->ids, sample->n * sizeof(*sample->ids), err);
    if (rc == 0 && sample->values)
        rc = bucket_put(s->io, b, sample->values, sample->n * sizeof(*sample->values), err);
    return rc;
}

int spool_mark(struct spool *s, struct drps_err *err)
{
    for (unsigned i = 0; i < s->n; i++) {
        struct bucket *b = &s->buckets[i];
        if (drps_array_reserve(&b->marks, &b->marks_cap, b->marks_n + 1, sizeof(*b->marks)))
            return drps_err_set(err, -ENOMEM, "no memory for the spool");
        b->marks[b->marks_n++] = b->written + b->buffered;
    }
    return 0;
}

int spool_finish(struct spool *s, struct drps_err *err)
{
    int rc = 0;
    for (unsigned i = 0; rc == 0 && i < s->n; i++) {
        rc = bucket_flush(s->io, &s->buckets[i], err);
        free(s->buckets[i].buf);
        s->buckets[i].buf = NULL;
    }
    return rc;
}

uint64_t spool_bytes(const struct spool *s)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < s->n; i++)
        sum += s->buckets[i].written + s->buckets[i].buffered;
    return sum;
}

/* Point sample into `data` (room bytes left). Returns its size, or 0 when it is not whole. */
static size_t sample_decode(char *data, size_t room, struct spool_sample *sample)
{
    if (room < HEAD_BYTES) return 0;
    uint32_t n = drps_get_u32(data + 12);
    uint32_t label = drps_get_u32(data + 8);
    sample->order = drps_get_u64(data);
    memcpy(&sample->label, &label, sizeof(label));
    sample->n = n & ~HAS_VALUES;
    size_t bytes = HEAD_BYTES + (size_t)sample->n * (n & HAS_VALUES ? 8 : 4);
    if (bytes > room) return 0;
    sample->ids = (uint32_t *)(void *)(data + HEAD_BYTES);
    sample->values = n & HAS_VALUES ? (const float *)(const void *)(sample->ids + sample->n) : NULL;
    return bytes;
}

static size_t sample_bytes(const char *head)
{
    uint32_t n = drps_get_u32(head + 12);
    return HEAD_BYTES + (size_t)(n & ~HAS_VALUES) * (n & HAS_VALUES ? 8 : 4);
}

/* A window over a bucket file that always starts at a sample. */
struct walker {
    struct spool *s;
    struct bucket *b;
    uint64_t at, end; /* file offsets: of data[0], and where to stop */
    char *data;
    size_t n, cap;
};

/* Load the next whole samples. 1, 0 at the end. */
static int walker_load(struct walker *w, struct drps_err *err)
{
    uint64_t left = w->end - w->at;
    w->n = (size_t)(left < w->cap ? left : w->cap);
    if (!w->n) return 0;
    int rc = drps_io_read_at(w->s->io, w->b->fd, w->data, w->n, w->at, w->b->path, err);
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

static int walk(struct spool *s, struct bucket *b, uint64_t from, uint64_t to, int write_back,
                spool_visit visit, void *ctx, struct drps_err *err)
{
    struct walker w = {.s = s, .b = b, .at = from, .end = to, .cap = CHUNK_BYTES};
    struct spool_sample sample;
    w.data = malloc(w.cap);
    if (!w.data) return drps_err_set(err, -ENOMEM, "no memory for the spool");
    int rc;
    while ((rc = walker_load(&w, err)) > 0) {
        size_t used = 0;
        size_t bytes;
        while (rc >= 0 && (bytes = sample_decode(w.data + used, w.n - used, &sample))) {
            rc = visit(ctx, &sample, err);
            used += bytes;
        }
        if (rc >= 0 && write_back)
            rc = drps_io_write_at(s->io, b->fd, w.data, used, w.at, b->path, err);
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

int spool_relabel(struct spool *s, size_t generation, uint32_t base, const uint32_t *map,
                  struct drps_err *err)
{
    struct relabel r = {base, map};
    int rc = 0;
    for (unsigned i = 0; rc >= 0 && i < s->n; i++) {
        struct bucket *b = &s->buckets[i];
        uint64_t from = generation ? b->marks[generation - 1] : 0;
        uint64_t to = generation < b->marks_n ? b->marks[generation] : b->written;
        rc = walk(s, b, from, to, 1, relabel_sample, &r, err);
    }
    return rc < 0 ? rc : 0;
}

/* Read a whole bucket, sort its samples by order and visit them. */
static int drain_sorted(struct spool *s, struct bucket *b, spool_visit visit, void *ctx,
                        struct drps_err *err)
{
    char *data = drps_array_new((size_t)b->written, 1);
    struct sort_record *places = drps_array_new(b->samples, sizeof(*places));
    struct sort_record *aux = drps_array_new(b->samples, sizeof(*aux));
    struct spool_sample sample;
    size_t at = 0;
    int rc = 0;

    if (!data || !places || !aux)
        rc = drps_err_set(err, -ENOMEM, "no memory to sort %" PRIu64 " samples", b->samples);
    if (rc == 0) rc = drps_io_read_at(s->io, b->fd, data, (size_t)b->written, 0, b->path, err);
    for (uint64_t i = 0; rc == 0 && i < b->samples; i++) {
        places[i] = (struct sort_record){.hi = drps_get_u64(data + at), .lo = at};
        at += sample_bytes(data + at);
    }
    if (rc == 0) sort_records(places, aux, b->samples);
    free(aux);
    for (uint64_t i = 0; rc >= 0 && i < b->samples; i++) {
        if (i + 4 < b->samples) __builtin_prefetch(data + places[i + 4].lo);
        (void)sample_decode(data + places[i].lo, (size_t)b->written - places[i].lo,
                            &sample); /* whole by construction */
        rc = visit(ctx, &sample, err);
    }
    free(places);
    free(data);
    return rc < 0 ? rc : 0;
}

static int deal_sample(void *ctx, struct spool_sample *sample, struct drps_err *err)
{
    return spool_add(ctx, sample, err);
}

static int drain_bucket(struct spool *s, struct bucket *b, unsigned shift, uint64_t memory_bytes,
                        spool_visit visit, void *ctx, struct drps_err *err);

/* Too large for memory: deal it by the next bits of the order, then drain the parts. */
static int drain_dealt(struct spool *s, struct bucket *b, unsigned shift, uint64_t memory_bytes,
                       spool_visit visit, void *ctx, struct drps_err *err)
{
    struct spool *parts;
    const char *slash = strrchr(b->path, '/');
    char *dir = strndup(b->path, (size_t)(slash - b->path));
    if (!dir) return drps_err_set(err, -ENOMEM, "no memory for the spool");
    int rc = open_level(s->io, dir, slash + 1, SPOOL_BUCKETS, shift - BUCKET_BITS, &parts, err);
    free(dir);
    if (rc < 0) return rc;
    rc = walk(s, b, 0, b->written, 0, deal_sample, parts, err);
    if (rc >= 0) rc = spool_finish(parts, err);
    for (unsigned i = 0; rc >= 0 && i < parts->n; i++)
        rc = drain_bucket(parts, &parts->buckets[i], parts->shift, memory_bytes, visit, ctx, err);
    spool_close(parts);
    return rc;
}

static int drain_bucket(struct spool *s, struct bucket *b, unsigned shift, uint64_t memory_bytes,
                        spool_visit visit, void *ctx, struct drps_err *err)
{
    uint64_t need = b->written + 2 * b->samples * sizeof(struct sort_record);
    int rc;
    if (s->n == 1)
        rc = walk(s, b, 0, b->written, 0, visit, ctx, err);
    else if (need <= memory_bytes || b->samples < 2 || shift < BUCKET_BITS)
        rc = drain_sorted(s, b, visit, ctx, err);
    else
        rc = drain_dealt(s, b, shift, memory_bytes, visit, ctx, err);
    bucket_close(s->io, b);
    return rc < 0 ? rc : 0;
}

int spool_drain(struct spool *s, uint64_t memory_bytes, spool_visit visit, void *ctx,
                struct drps_err *err)
{
    int rc = 0;
    for (unsigned i = 0; rc == 0 && i < s->n; i++)
        rc = drain_bucket(s, &s->buckets[i], s->shift, memory_bytes, visit, ctx, err);
    return rc;
}

int spool_walk(struct spool *s, spool_visit visit, void *ctx, struct drps_err *err)
{
    int rc = walk(s, &s->buckets[0], 0, s->buckets[0].written, 0, visit, ctx, err);
    return rc < 0 ? rc : 0;
}
