#include "base/drps_recstream.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"
#include "base/drps_clock.h"

enum { DEFAULT_BUFFER_BYTES = 1 << 20, DEFAULT_DEPTH = 3, MAX_DEPTH = 16, MAX_READERS = 4 };

struct run {
    void *mem; /* own: room for a run of `cap` bytes */
    uint64_t cap;
    const void *data;  /* in it: where the records begin */
    size_t *plain;     /* own: [plain_most] bytes of each record, unpacked */
    uint64_t first, n; /* records */
    enum { READING, READY, FAILED } state;
};

struct drps_recstream {
    struct drps_recfile *file;
    struct drps_recstream_options options;
    uint64_t run_cap; /* bytes of the longest run */
    struct run *runs; /* own: [options.depth] */
    pthread_t threads[MAX_READERS];
    unsigned started;

    pthread_mutex_t lock;
    pthread_cond_t changed;
    uint64_t passes_left;  /* this one included */
    uint64_t next;         /* record that the next run begins with */
    uint64_t begun, taken; /* runs given to a reader (or kept) and given back by the consumer, ever;
                              the difference is at most depth */
    int stopping;
    struct drps_err err; /* of the first reader that failed */
    struct drps_recstream_stats stats;

    uint64_t at; /* consumer: records taken from the current run */
};

/*
 * Unpacked, records lie at equal distances from the begin of a buffer on. They are read to its end
 * and unpacked from there one by one: with room for one more record than there are, a record's
 * plain form never reaches the bytes that are still to be unpacked.
 *
 *     | plain 0 | plain 1 | ...                  | packed j | packed j + 1 | ... | packed n - 1 |
 */
static uint64_t stride(const struct drps_recstream_options *o)
{
    return o->plain_bytes ? (o->plain_bytes + 7) / 8 * 8 : 8;
}

/* Records of a run, unpacked. */
static uint64_t plain_most(const struct drps_recstream_options *o)
{
    const uint64_t bytes = o->buffer_bytes ? o->buffer_bytes : DEFAULT_BUFFER_BYTES;
    const uint64_t most = bytes / stride(o);
    return most ? most : 1;
}

/* Room for n records, unpacked: what is read begins at a multiple of DRPS_RECFILE_ALIGN. */
static uint64_t plain_cap(const struct drps_recstream_options *o, uint64_t n)
{
    return (n + 1) * stride(o) + DRPS_RECFILE_ALIGN;
}

/* The largest run that any position can yield under buffer_bytes: one large record may exceed it.
 */
static uint64_t run_cap(const struct drps_recfile *file, const struct drps_recstream_options *o)
{
    if (o->unpack) return plain_cap(o, plain_most(o));
    uint64_t cap = o->buffer_bytes ? o->buffer_bytes : DEFAULT_BUFFER_BYTES;
    for (uint64_t i = o->first; i < o->first + o->count; i++) {
        uint64_t one = drps_recfile_run_bytes(file, i, 1);
        if (one > cap) cap = one;
    }
    return cap;
}

/* Records of the run that begins with record `first`. */
static uint64_t run_length(const struct drps_recfile *file, const struct drps_recstream_options *o,
                           uint64_t first, uint64_t cap)
{
    const uint64_t left = o->first + o->count - first;
    const uint64_t n = o->unpack ? plain_most(o) : drps_recfile_run_length(file, first, cap);
    return n < left ? n : left;
}

static uint64_t run_bytes(const struct drps_recfile *file, const struct drps_recstream_options *o,
                          uint64_t first, uint64_t n)
{
    return o->unpack ? plain_cap(o, n) : drps_recfile_run_bytes(file, first, n);
}

/*
 * The buffers: where all is kept, one for each run of a pass, of its length; else some that fit any
 * run. Returns how many, at least 1; runs_out [that many], or NULL to count.
 */
static unsigned lay_out(const struct drps_recfile *file, const struct drps_recstream_options *o,
                        struct run *runs_out)
{
    const uint64_t cap = run_cap(file, o), end = o->first + o->count;
    unsigned depth = o->depth ? o->depth : DEFAULT_DEPTH;
    if (depth > MAX_DEPTH) depth = MAX_DEPTH;
    if (!o->keep) {
        for (unsigned i = 0; runs_out && i < depth; i++)
            runs_out[i].cap = cap;
        return depth;
    }
    depth = 0;
    for (uint64_t first = o->first, n; first < end; first += n, depth++) {
        n = run_length(file, o, first, cap);
        if (runs_out) runs_out[depth].cap = run_bytes(file, o, first, n);
    }
    return depth ? depth : 1;
}

uint64_t drps_recstream_memory(const struct drps_recfile *file,
                               const struct drps_recstream_options *o)
{
    const uint64_t buffers = lay_out(file, o, NULL);
    const uint64_t sizes = o->unpack ? plain_most(o) * sizeof(size_t) * buffers : 0;
    if (!o->keep) return drps_recfile_room(run_cap(file, o)) * buffers + sizes;
    if (o->unpack) return o->count * stride(o) + drps_recfile_room(plain_cap(o, 0)) * buffers + sizes;
    return drps_recfile_run_bytes(file, o->first, o->count) + drps_recfile_room(0) * buffers;
}

/* Kept runs are read in the first pass only. */
static int more_to_read(const struct drps_recstream *s)
{
    return !s->stopping && s->passes_left && !(s->options.keep && s->begun >= s->options.depth);
}

/* The next run to read, in order, when there is room for it; NULL: there is none, or no need. */
static struct run *begin_run(struct drps_recstream *s)
{
    struct run *run = NULL;
    const uint64_t end = s->options.first + s->options.count;
    pthread_mutex_lock(&s->lock);
    while (more_to_read(s) && s->begun - s->taken == s->options.depth)
        pthread_cond_wait(&s->changed, &s->lock);
    if (more_to_read(s)) {
        run = &s->runs[s->begun++ % s->options.depth];
        run->state = READING;
        run->first = s->next;
        run->n = run_length(s->file, &s->options, s->next, s->run_cap);
        s->next += run->n;
        if (s->next == end) {
            s->next = s->options.first;
            s->passes_left--;
        }
    }
    pthread_mutex_unlock(&s->lock);
    return run;
}

/* After a failure no run is begun; those before it are still handed out. */
static void end_run(struct drps_recstream *s, struct run *run, const struct drps_err *err)
{
    pthread_mutex_lock(&s->lock);
    run->state = err->code ? FAILED : READY;
    if (err->code) {
        s->passes_left = 0;
        if (!s->err.code) s->err = *err;
    } else {
        s->stats.read_bytes += drps_recfile_run_bytes(s->file, run->first, run->n);
        s->stats.read_calls++;
    }
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
}

static int check_sizes(const struct drps_recstream *s, const struct run *run, struct drps_err *err)
{
    for (uint64_t j = run->first; j < run->first + run->n; j++)
        if (drps_recfile_run_bytes(s->file, j, 1) > stride(&s->options))
            return drps_err_set(
                err, DRPS_E_CORRUPT, "record %llu takes %llu bytes, the largest %llu when unpacked",
                (unsigned long long)j, (unsigned long long)drps_recfile_bytes(s->file, j),
                (unsigned long long)s->options.plain_bytes);
    return 0;
}

/* Into the end of the buffer, and from there to its begin. */
static int read_packed(struct drps_recstream *s, struct run *run, struct drps_err *err)
{
    const uint64_t room = drps_recfile_room(drps_recfile_run_bytes(s->file, run->first, run->n));
    const uint64_t at =
        (drps_recfile_room(run->cap) - room) / DRPS_RECFILE_ALIGN * DRPS_RECFILE_ALIGN;
    const uint64_t each = stride(&s->options);
    const void *packed;
    char *out = run->mem;
    int rc = check_sizes(s, run, err);
    if (rc == 0) rc = drps_recfile_read_in(s->file, run->first, run->n, out + at, &packed, err);
    for (uint64_t i = 0; i < run->n && rc == 0; i++, out += each) {
        const uint64_t j = run->first + i;
        rc = s->options.unpack(
            (const char *)packed + drps_recfile_offset_in_run(s->file, run->first, j),
            (size_t)drps_recfile_bytes(s->file, j), out, (size_t)each, &run->plain[i], err);
        if (rc < 0) (void)drps_err_context(err, "record %llu", (unsigned long long)j);
    }
    run->data = run->mem;
    return rc;
}

static int read_run(struct drps_recstream *s, struct run *run, struct drps_err *err)
{
    if (s->options.unpack) return read_packed(s, run, err);
    return drps_recfile_read_in(s->file, run->first, run->n, run->mem, &run->data, err);
}

static void *reader(void *arg)
{
    struct drps_recstream *s = arg;
    struct drps_err err = DRPS_ERR_INIT;
    struct run *run;
    int rc = 0;
    while (rc == 0 && (run = begin_run(s))) {
        rc = read_run(s, run, &err);
        end_run(s, run, &err);
    }
    return NULL;
}

static unsigned readers_of(const struct drps_recstream_options *o)
{
    const unsigned n = o->readers ? o->readers : 1;
    return n < MAX_READERS ? n : MAX_READERS;
}

static int new_runs(struct drps_recstream *s)
{
    s->runs = calloc(s->options.depth, sizeof(*s->runs));
    if (!s->runs) return -ENOMEM;
    (void)lay_out(s->file, &s->options, s->runs);
    for (unsigned i = 0; i < s->options.depth; i++) {
        s->runs[i].mem = drps_pages_new(drps_recfile_room(s->runs[i].cap));
        if (!s->runs[i].mem) return -ENOMEM;
        if (!s->options.unpack) continue;
        s->runs[i].plain = drps_array_new((size_t)plain_most(&s->options), sizeof(size_t));
        if (!s->runs[i].plain) return -ENOMEM;
    }
    return 0;
}

int drps_recstream_open(struct drps_recfile *file, const struct drps_recstream_options *options,
                        struct drps_recstream **s_out, struct drps_err *err)
{
    *s_out = NULL;
    struct drps_recstream *s = calloc(1, sizeof(*s));
    if (!s) return drps_err_set(err, -ENOMEM, "no memory for a read-ahead stream");
    s->file = file;
    s->options = *options;
    s->options.depth = lay_out(file, options, NULL);
    s->run_cap = run_cap(file, options);
    s->next = options->first;
    s->passes_left = options->count ? options->passes : 0; /* of nothing: they would never end */
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->changed, NULL);
    if (new_runs(s) < 0) {
        drps_recstream_close(s);
        return drps_err_set(err, -ENOMEM, "no memory for a read-ahead stream");
    }
    while (s->started < readers_of(options)) {
        const int rc = pthread_create(&s->threads[s->started], NULL, reader, s);
        if (rc && !s->started) {
            drps_recstream_close(s);
            return drps_err_set(err, -rc, "cannot start a reading thread: %s", strerror(rc));
        }
        if (rc) break; /* fewer do */
        s->started++;
    }
    *s_out = s;
    return 0;
}

void drps_recstream_close(struct drps_recstream *s)
{
    if (!s) return;
    if (s->started) {
        pthread_mutex_lock(&s->lock);
        s->stopping = 1;
        pthread_cond_broadcast(&s->changed);
        pthread_mutex_unlock(&s->lock);
        while (s->started)
            pthread_join(s->threads[--s->started], NULL);
    }
    for (unsigned i = 0; s->runs && i < s->options.depth; i++) {
        drps_pages_free(s->runs[i].mem, drps_recfile_room(s->runs[i].cap));
        free(s->runs[i].plain);
    }
    free(s->runs);
    pthread_cond_destroy(&s->changed);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

/* 1: what comes next is not known yet. */
static int must_wait(const struct drps_recstream *s)
{
    if (s->begun == s->taken) return s->passes_left > 0;
    return s->runs[s->taken % s->options.depth].state == READING;
}

/* After a pass: all runs of the next one are here. */
static void begin_kept_pass(struct drps_recstream *s)
{
    if (s->taken != s->begun || s->taken % s->options.depth || !s->passes_left) return;
    s->begun += s->options.depth;
    s->passes_left--;
}

/* Give the finished run back and wait for the next; NULL when there is none. */
static const struct run *next_run(struct drps_recstream *s)
{
    const struct run *run = NULL;
    pthread_mutex_lock(&s->lock);
    if (s->at) {
        s->taken++;
        s->at = 0;
        if (s->options.keep)
            begin_kept_pass(s);
        else
            pthread_cond_broadcast(&s->changed);
    }
    if (must_wait(s)) {
        uint64_t start = drps_clock_ns();
        while (must_wait(s))
            pthread_cond_wait(&s->changed, &s->lock);
        s->stats.wait_ns += drps_clock_ns() - start;
    }
    if (s->begun != s->taken) run = &s->runs[s->taken % s->options.depth];
    pthread_mutex_unlock(&s->lock);
    return run;
}

int drps_recstream_next(struct drps_recstream *s, const void **record_out, size_t *bytes_out,
                        struct drps_err *err)
{
    *record_out = NULL;
    *bytes_out = 0;
    const struct run *run =
        &s->runs[s->taken % s->options.depth]; /* only this thread changes `taken` */
    if (s->at == 0 || s->at == run->n) {
        run = next_run(s);
        if (!run) return 0;
        if (run->state == FAILED) return drps_err_set(err, s->err.code, "%s", s->err.text);
    }
    const uint64_t at = s->at++;
    if (s->options.unpack) {
        *record_out = (const char *)run->data + at * stride(&s->options);
        *bytes_out = run->plain[at];
        return 1;
    }
    const uint64_t i = run->first + at;
    *record_out = (const char *)run->data + drps_recfile_offset_in_run(s->file, run->first, i);
    *bytes_out = drps_recfile_bytes(s->file, i);
    return 1;
}

void drps_recstream_stats(struct drps_recstream *s, struct drps_recstream_stats *out)
{
    pthread_mutex_lock(&s->lock);
    *out = s->stats;
    pthread_mutex_unlock(&s->lock);
}
