#include "base/drps_recstream.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"
#include "base/drps_clock.h"

enum { DEFAULT_BUFFER_BYTES = 1 << 20, DEFAULT_DEPTH = 3, MAX_DEPTH = 16 };

struct run {
    char *data;
    uint64_t first, n; /* records */
};

struct drps_recstream {
    struct drps_recfile *file;
    struct drps_recstream_options options;
    uint64_t run_cap; /* bytes of each run's buffer */
    struct run runs[MAX_DEPTH];
    pthread_t thread;
    int started;

    pthread_mutex_t lock;
    pthread_cond_t changed;
    uint64_t filled, taken; /* runs made and given back, ever; the difference is at most depth */
    int finished, stopping;
    struct drps_err err; /* of the thread, valid once `finished` */
    struct drps_recstream_stats stats;

    uint64_t at; /* consumer: records taken from the current run */
};

/* The largest run that any position can yield under buffer_bytes: one large record may exceed it.
 */
static uint64_t run_cap(const struct drps_recfile *file, const struct drps_recstream_options *o)
{
    uint64_t cap = o->buffer_bytes ? o->buffer_bytes : DEFAULT_BUFFER_BYTES;
    for (uint64_t i = o->first; i < o->first + o->count; i++) {
        uint64_t one = drps_recfile_run_bytes(file, i, 1);
        if (one > cap) cap = one;
    }
    return cap;
}

static unsigned depth_of(const struct drps_recstream_options *o)
{
    unsigned depth = o->depth ? o->depth : DEFAULT_DEPTH;
    return depth < MAX_DEPTH ? depth : MAX_DEPTH;
}

uint64_t drps_recstream_memory(const struct drps_recfile *file,
                               const struct drps_recstream_options *o)
{
    return run_cap(file, o) * depth_of(o);
}

/* Wait for a free run; 0 when the stream is being closed. */
static int wait_for_room(struct drps_recstream *s)
{
    pthread_mutex_lock(&s->lock);
    while (!s->stopping && s->filled - s->taken == s->options.depth)
        pthread_cond_wait(&s->changed, &s->lock);
    int go = !s->stopping;
    pthread_mutex_unlock(&s->lock);
    return go;
}

static void publish_run(struct drps_recstream *s, uint64_t bytes)
{
    pthread_mutex_lock(&s->lock);
    s->filled++;
    s->stats.read_bytes += bytes;
    s->stats.read_calls++;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
}

static int read_pass(struct drps_recstream *s, struct drps_err *err)
{
    uint64_t end = s->options.first + s->options.count;
    for (uint64_t i = s->options.first; i < end;) {
        if (!wait_for_room(s)) return -ECANCELED;
        struct run *run = &s->runs[s->filled % s->options.depth];
        uint64_t n = drps_recfile_run_length(s->file, i, s->run_cap);
        if (n > end - i) n = end - i;
        int rc = drps_recfile_read(s->file, i, n, run->data, err);
        if (rc < 0) return rc;
        run->first = i;
        run->n = n;
        publish_run(s, drps_recfile_run_bytes(s->file, i, n));
        i += n;
    }
    return 0;
}

static void *reader(void *arg)
{
    struct drps_recstream *s = arg;
    struct drps_err err = DRPS_ERR_INIT;
    int rc = 0;
    uint64_t passes =
        s->options.count ? s->options.passes : 0; /* passes over nothing would never end */
    for (uint64_t pass = 0; rc == 0 && pass < passes; pass++)
        rc = read_pass(s, &err);
    pthread_mutex_lock(&s->lock);
    s->err = err;
    s->finished = 1;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

int drps_recstream_open(struct drps_recfile *file, const struct drps_recstream_options *options,
                        struct drps_recstream **s_out, struct drps_err *err)
{
    *s_out = NULL;
    struct drps_recstream *s = calloc(1, sizeof(*s));
    if (!s) return drps_err_set(err, -ENOMEM, "no memory for a read-ahead stream");
    s->file = file;
    s->options = *options;
    s->options.depth = depth_of(options);
    s->run_cap = run_cap(file, options);
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->changed, NULL);
    for (unsigned i = 0; i < s->options.depth; i++) {
        s->runs[i].data = drps_array_new(s->run_cap, 1);
        if (!s->runs[i].data) {
            drps_recstream_close(s);
            return drps_err_set(err, -ENOMEM, "no memory for a read-ahead stream");
        }
    }
    int rc = pthread_create(&s->thread, NULL, reader, s);
    if (rc) {
        drps_recstream_close(s);
        return drps_err_set(err, -rc, "cannot start a reading thread: %s", strerror(rc));
    }
    s->started = 1;
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
        pthread_join(s->thread, NULL);
    }
    for (unsigned i = 0; i < MAX_DEPTH; i++)
        free(s->runs[i].data);
    pthread_cond_destroy(&s->changed);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

/* Give the finished run back and wait for the next; 0 when there is none. */
static int next_run(struct drps_recstream *s)
{
    pthread_mutex_lock(&s->lock);
    if (s->at) {
        s->taken++;
        s->at = 0;
        pthread_cond_broadcast(&s->changed);
    }
    if (s->filled == s->taken && !s->finished) {
        uint64_t start = drps_clock_ns();
        while (s->filled == s->taken && !s->finished)
            pthread_cond_wait(&s->changed, &s->lock);
        s->stats.wait_ns += drps_clock_ns() - start;
    }
    int more = s->filled != s->taken;
    pthread_mutex_unlock(&s->lock);
    return more;
}

int drps_recstream_next(struct drps_recstream *s, const void **record_out, size_t *bytes_out,
                        struct drps_err *err)
{
    *record_out = NULL;
    *bytes_out = 0;
    const struct run *run =
        &s->runs[s->taken % s->options.depth]; /* only this thread changes `taken` */
    if (s->at == 0 || s->at == run->n) {
        if (!next_run(s)) {
            if (s->err.code) return drps_err_set(err, s->err.code, "%s", s->err.text);
            return 0;
        }
        run = &s->runs[s->taken % s->options.depth];
    }
    uint64_t i = run->first + s->at++;
    *record_out = run->data + drps_recfile_offset_in_run(s->file, run->first, i);
    *bytes_out = drps_recfile_bytes(s->file, i);
    return 1;
}

void drps_recstream_stats(struct drps_recstream *s, struct drps_recstream_stats *out)
{
    pthread_mutex_lock(&s->lock);
    *out = s->stats;
    pthread_mutex_unlock(&s->lock);
}
