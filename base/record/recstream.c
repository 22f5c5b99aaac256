/*
 * A stream has two stages. Threads read runs of records, each another one, into a ring of buffers
 * (with `keep` and no unpacking: into one buffer for each run of a pass). With `unpack`, records
 * then go one by one from the run that is next in turn to a ring of plain records (with `keep`: one
 * for each). So what is read ahead is held as it is stored, and what is about to be used is plain:
 *
 *     runs    | being unpacked | read | read | being read | being read |
 *     plain   | consumer's | plain | plain | being unpacked |
 *
 * Whoever comes by unpacks: a reading thread between two runs, or the consumer that would have to
 * wait, but one of them at a time.
 */
#include "base/record/drps_recstream.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"
#include "base/drps_clock.h"
#include "base/drps_thread.h"

enum {
    DEFAULT_BUFFER_BYTES = 1 << 20,
    DEFAULT_DEPTH = 3,
    MAX_DEPTH = 16,
    MAX_READERS = 4,
    DEFAULT_PLAIN_RECORDS = 4
};

struct run {
    void *mem; /* own: room for a run of `cap` bytes */
    uint64_t cap;
    const void *data;  /* in it: where the records begin */
    uint64_t first, n; /* records */
    enum { READING, READY, FAILED } state;
};

struct drps_recstream {
    struct drps_recfile *file;
    struct drps_recstream_options options;
    uint64_t run_cap; /* bytes of the longest run */
    struct run *runs; /* own: [options.depth] */
    char *plain;      /* own: [plain_records] records, unpacked, each in stride() bytes */
    size_t *bytes;    /* own: [plain_records] of these */
    uint64_t plain_records;
    uint64_t to_read, to_give; /* where reading ends, and what the consumer gets: counts as below */
    pthread_t threads[MAX_READERS];
    unsigned started;

    pthread_mutex_t lock;
    pthread_cond_t work; /* there may be something for a reader to do */
    pthread_cond_t news; /* there may be something for the consumer */
    /* Counts, from the begin of the first pass on; what it leaves out counts as done. */
    uint64_t begun_records; /* in runs given to a reader */
    uint64_t begun, done;   /* runs given to a reader, and used up: at most depth more were begun */
    uint64_t unpacked;      /* records */
    uint64_t taken;         /* records given back by the consumer */
    uint64_t at;            /* records used of run `done` */
    int unpacking;          /* someone is */
    int stopping;
    struct drps_err err; /* of the first that failed */
    struct drps_recstream_stats stats;

    int holds; /* consumer: it has a record */
};

/* Plain records lie at equal distances. */
static uint64_t stride(const struct drps_recstream_options *o)
{
    return o->plain_bytes ? (o->plain_bytes + 7) / 8 * 8 : 8;
}

static uint64_t buffer_bytes(const struct drps_recstream_options *o)
{
    return o->buffer_bytes ? o->buffer_bytes : DEFAULT_BUFFER_BYTES;
}

/* 1: runs stay in memory as they are read. */
static int keeps_runs(const struct drps_recstream_options *o)
{
    return o->keep && !o->unpack;
}

/* A packed record is never larger than its plain form; a file where one is, is damaged. */
static uint64_t largest(const struct drps_recfile *file, const struct drps_recstream_options *o)
{
    uint64_t most = 8;
    for (uint64_t i = o->first; i < o->first + o->count; i++) {
        const uint64_t one = drps_recfile_run_bytes(file, i, 1);
        if (one > most) most = one;
    }
    return o->unpack && most > stride(o) ? stride(o) : most;
}

/* The largest run that any position can yield under buffer_bytes: one large record may exceed it.
 * Where runs are unpacked, no more than the records that surely fit: records are of much the same
 * size, and what the last of them leaves would be lost in every buffer. */
static uint64_t run_cap(const struct drps_recfile *file, const struct drps_recstream_options *o)
{
    const uint64_t cap = buffer_bytes(o), most = largest(file, o);
    if (most > cap) return most;
    return o->unpack ? cap / most * most : cap;
}

/* Records of the run that begins with record `first`. */
static uint64_t run_length(const struct drps_recfile *file, const struct drps_recstream_options *o,
                           uint64_t first, uint64_t cap)
{
    const uint64_t left = o->first + o->count - first;
    const uint64_t n = drps_recfile_run_length(file, first, cap);
    return n < left ? n : left;
}

/*
 * The buffers: where runs are kept, one for each run of a pass, of its length; else some that fit
 * any run. Returns how many, at least 1; runs_out [that many], or NULL to count.
 */
static unsigned lay_out(const struct drps_recfile *file, const struct drps_recstream_options *o,
                        uint64_t cap, struct run *runs_out)
{
    const uint64_t end = o->first + o->count;
    unsigned depth = o->depth ? o->depth : DEFAULT_DEPTH;
    if (depth > MAX_DEPTH) depth = MAX_DEPTH;
    if (!keeps_runs(o)) {
        for (unsigned i = 0; runs_out && i < depth; i++)
            runs_out[i].cap = cap;
        return depth;
    }
    depth = 0;
    for (uint64_t first = o->first, n; first < end; first += n, depth++) {
        n = run_length(file, o, first, cap);
        if (runs_out) runs_out[depth].cap = drps_recfile_run_bytes(file, first, n);
    }
    return depth ? depth : 1;
}

static uint64_t plain_records(const struct drps_recstream_options *o)
{
    if (!o->unpack) return 0;
    if (o->keep) return o->count;
    return o->plain_records ? o->plain_records : DEFAULT_PLAIN_RECORDS;
}

uint64_t drps_recstream_memory(const struct drps_recfile *file,
                               const struct drps_recstream_options *o)
{
    const uint64_t cap = run_cap(file, o), buffers = lay_out(file, o, cap, NULL);
    if (keeps_runs(o))
        return drps_recfile_run_bytes(file, o->first, o->count) + drps_recfile_room(0) * buffers;
    return drps_recfile_room(cap) * buffers + plain_records(o) * (stride(o) + sizeof(size_t));
}

/* ---- Reading ---- */

static struct run *run_of(const struct drps_recstream *s, uint64_t number)
{
    return &s->runs[number % s->options.depth];
}

/* The next run to read, in order, when there is room for it; NULL: there is none, or no need. Lock
 * held. */
static struct run *begin_run(struct drps_recstream *s)
{
    const struct drps_recstream_options *o = &s->options;
    if (s->stopping || s->err.code || s->begun_records == s->to_read ||
        s->begun - s->done == o->depth)
        return NULL;
    struct run *run = run_of(s, s->begun++);
    run->state = READING;
    run->first = o->first + s->begun_records % o->count;
    run->n = run_length(s->file, o, run->first, s->run_cap);
    if (run->n > s->to_read - s->begun_records) run->n = s->to_read - s->begun_records;
    s->begun_records += run->n;
    return run;
}

/* After a failure no run is begun; those before it are still handed out. Lock held. */
static void fail(struct drps_recstream *s, struct run *run, const struct drps_err *err)
{
    run->state = FAILED;
    if (!s->err.code) s->err = *err;
    (void)pthread_cond_signal(&s->news);
}

static int check_sizes(const struct drps_recstream *s, const struct run *run, struct drps_err *err)
{
    for (uint64_t j = run->first; s->options.unpack && j < run->first + run->n; j++)
        if (drps_recfile_run_bytes(s->file, j, 1) > stride(&s->options))
            return drps_err_set(
                err, DRPS_E_CORRUPT, "record %llu takes %llu bytes, the largest %llu when unpacked",
                (unsigned long long)j, (unsigned long long)drps_recfile_bytes(s->file, j),
                (unsigned long long)s->options.plain_bytes);
    return 0;
}

/* Lock held before and after, not meanwhile. */
static void read_run(struct drps_recstream *s, struct run *run)
{
    struct drps_err err = DRPS_ERR_INIT;
    (void)pthread_mutex_unlock(&s->lock);
    int rc = check_sizes(s, run, &err);
    if (rc == 0) rc = drps_recfile_read_in(s->file, run->first, run->n, run->mem, &run->data, &err);
    (void)pthread_mutex_lock(&s->lock);
    if (rc < 0) {
        fail(s, run, &err);
        return;
    }
    run->state = READY;
    s->stats.read_bytes += drps_recfile_run_bytes(s->file, run->first, run->n);
    s->stats.read_calls++;
    if (!s->options.unpack) (void)pthread_cond_signal(&s->news);
}

/* ---- Unpacking ---- */

/* 1: there is a run that is next in turn, and it is in this state. */
static int run_is(const struct drps_recstream *s, int state)
{
    return s->done != s->begun && (int)run_of(s, s->done)->state == state;
}

/* Returns 1 if there is room to unpack one more record; with `keep` each has room of its own. */
static int has_room(const struct drps_recstream *s)
{
    return s->options.keep || s->unpacked - s->taken < s->plain_records;
}

static int can_unpack(const struct drps_recstream *s)
{
    return s->options.unpack && !s->unpacking && run_is(s, READY) && has_room(s);
}

static int unpack(const struct drps_recstream *s, const struct run *run, uint64_t at,
                  uint64_t entry, struct drps_err *err)
{
    const uint64_t j = run->first + at;
    int rc = s->options.unpack(
        (const char *)run->data + drps_recfile_offset_in_run(s->file, run->first, j),
        (size_t)drps_recfile_bytes(s->file, j), s->plain + entry * stride(&s->options),
        (size_t)stride(&s->options), &s->bytes[entry], err);
    if (rc < 0) (void)drps_err_context(err, "record %llu", (unsigned long long)j);
    return rc;
}

/* The next record of its run is used up. Lock held. */
static void use_up(struct drps_recstream *s)
{
    if (++s->at < run_of(s, s->done)->n) return;
    s->at = 0;
    s->done++;
}

/* Unpack the next record, when can_unpack(). Lock held before and after, not meanwhile. */
static void unpack_next(struct drps_recstream *s)
{
    struct run *run = run_of(s, s->done);
    struct drps_err err = DRPS_ERR_INIT;
    const uint64_t entry = s->unpacked % s->plain_records, at = s->at;
    s->unpacking = 1;
    (void)pthread_mutex_unlock(&s->lock);
    const int rc = unpack(s, run, at, entry, &err);
    (void)pthread_mutex_lock(&s->lock);
    s->unpacking = 0;
    if (rc < 0) {
        s->err.code = 0; /* of a run after this one */
        fail(s, run, &err);
        return;
    }
    s->unpacked++;
    use_up(s);
    (void)pthread_cond_signal(&s->news);
}

static void *reader(void *arg)
{
    struct drps_recstream *s = arg;
    struct run *run;
    drps_thread_serves();
    (void)pthread_mutex_lock(&s->lock);
    while (!s->stopping) {
        if (can_unpack(s))
            unpack_next(s);
        else if ((run = begin_run(s)))
            read_run(s, run);
        else
            (void)pthread_cond_wait(&s->work, &s->lock);
    }
    (void)pthread_mutex_unlock(&s->lock);
    return NULL;
}

/* ---- Opening and closing ---- */

static unsigned readers_of(const struct drps_recstream_options *o)
{
    const unsigned n = o->readers ? o->readers : 1;
    return n < MAX_READERS ? n : MAX_READERS;
}

static int allocate(struct drps_recstream *s)
{
    s->runs = calloc(s->options.depth, sizeof(*s->runs));
    if (!s->runs) return -ENOMEM;
    (void)lay_out(s->file, &s->options, s->run_cap, s->runs);
    for (unsigned i = 0; i < s->options.depth; i++) {
        s->runs[i].mem = drps_pages_new(drps_recfile_room(s->runs[i].cap));
        if (!s->runs[i].mem) return -ENOMEM;
    }
    s->plain_records = plain_records(&s->options);
    if (!s->plain_records) return 0;
    s->plain = drps_pages_new(s->plain_records * stride(&s->options));
    s->bytes = drps_array_new(s->plain_records, sizeof(*s->bytes));
    return s->plain && s->bytes ? 0 : -ENOMEM;
}

/* Count what the first pass leaves out as done. Runs that are kept have buffers of their lengths:
 * reading begins with the whole run that record `begin` is in. */
static void skip(struct drps_recstream *s)
{
    const struct drps_recstream_options *o = &s->options;
    const uint64_t begin = o->passes ? o->begin : 0;
    uint64_t start = keeps_runs(o) ? 0 : begin;
    for (uint64_t n; start < begin; start += n, s->done++) {
        n = run_length(s->file, o, o->first + start, s->run_cap);
        if (n > begin - start) break;
    }
    s->begun = s->done;
    s->begun_records = start;
    s->unpacked = s->taken = begin;
    s->at = begin - start;
    if (__builtin_mul_overflow(o->count, o->passes, &s->to_give)) s->to_give = UINT64_MAX;
    s->to_read = o->keep && start + o->count < s->to_give ? start + o->count : s->to_give;
}

static int start_readers(struct drps_recstream *s, struct drps_err *err)
{
    while (s->started < readers_of(&s->options)) {
        const int rc = pthread_create(&s->threads[s->started], NULL, reader, s);
        if (rc && !s->started)
            return drps_err_set(err, -rc, "cannot start a reading thread: %s", strerror(rc));
        if (rc) break; /* fewer do */
        s->started++;
    }
    return 0;
}

int drps_recstream_open(struct drps_recfile *file, const struct drps_recstream_options *options,
                        struct drps_recstream **s_out, struct drps_err *err)
{
    *s_out = NULL;
    if (options->begin && options->begin >= options->count)
        return drps_err_set(err, -EINVAL, "a pass of %llu records cannot begin with number %llu",
                            (unsigned long long)options->count, (unsigned long long)options->begin);
    struct drps_recstream *s = calloc(1, sizeof(*s));
    if (!s) return drps_err_set(err, -ENOMEM, "no memory for a read-ahead stream");
    s->file = file;
    s->options = *options;
    s->run_cap = run_cap(file, options);
    s->options.depth = lay_out(file, options, s->run_cap, NULL);
    skip(s);
    (void)pthread_mutex_init(&s->lock, NULL);
    (void)pthread_cond_init(&s->work, NULL);
    (void)pthread_cond_init(&s->news, NULL);
    int rc = allocate(s) < 0 ? drps_err_set(err, -ENOMEM, "no memory for a read-ahead stream") : 0;
    if (rc == 0) rc = start_readers(s, err);
    if (rc < 0) {
        drps_recstream_close(s);
        return rc;
    }
    *s_out = s;
    return 0;
}

void drps_recstream_close(struct drps_recstream *s)
{
    if (!s) return;
    (void)pthread_mutex_lock(&s->lock);
    s->stopping = 1;
    (void)pthread_cond_broadcast(&s->work);
    (void)pthread_mutex_unlock(&s->lock);
    while (s->started)
        (void)pthread_join(s->threads[--s->started], NULL);
    for (unsigned i = 0; s->runs && i < s->options.depth; i++)
        drps_pages_free(s->runs[i].mem, drps_recfile_room(s->runs[i].cap));
    free(s->runs);
    drps_pages_free(s->plain, s->plain_records * stride(&s->options));
    free(s->bytes);
    (void)pthread_cond_destroy(&s->news);
    (void)pthread_cond_destroy(&s->work);
    (void)pthread_mutex_destroy(&s->lock);
    free(s);
}

/* ---- The consumer ---- */

/* Give back the record that the consumer had. A reader is woken for several records, when the last
 * quarter of the plain records is at hand: should it come late, the consumer unpacks. Lock held. */
static void give_back(struct drps_recstream *s)
{
    if (!s->holds) return;
    s->holds = 0;
    s->taken++;
    if (s->options.unpack) {
        if (s->unpacked - s->taken <= (s->plain_records + 3) / 4)
            (void)pthread_cond_signal(&s->work);
        return;
    }
    use_up(s);
    if (s->at) return;
    if (!s->options.keep)
        (void)pthread_cond_signal(&s->work);
    else if (s->done == s->begun && s->begun_records == s->to_read)
        s->done -= s->options.depth; /* all are here: the first of them is next again */
}

/* 1: the next record is here. */
static int is_here(const struct drps_recstream *s)
{
    if (s->options.unpack) return s->taken < s->unpacked || s->unpacked == s->to_read;
    return run_is(s, READY);
}

/* Wait until the next record is here, or never will be: all have been taken, or its run cannot be
 * read. Lock held before and after. */
static void await_record(struct drps_recstream *s)
{
    while (s->taken != s->to_give && !is_here(s) && !run_is(s, FAILED)) {
        if (can_unpack(s)) {
            unpack_next(s);
            (void)pthread_cond_signal(&s->work);
            continue;
        }
        const uint64_t start = drps_clock_ns();
        (void)pthread_cond_wait(&s->news, &s->lock);
        s->stats.wait_ns += drps_clock_ns() - start;
    }
}

static void take(struct drps_recstream *s, const void **record_out, size_t *bytes_out)
{
    if (s->options.unpack) {
        const uint64_t entry = s->taken % s->plain_records;
        *record_out = s->plain + entry * stride(&s->options);
        *bytes_out = s->bytes[entry];
    } else {
        const struct run *run = run_of(s, s->done);
        const uint64_t j = run->first + s->at;
        *record_out = (const char *)run->data + drps_recfile_offset_in_run(s->file, run->first, j);
        *bytes_out = drps_recfile_bytes(s->file, j);
    }
    s->holds = 1;
}

int drps_recstream_next(struct drps_recstream *s, const void **record_out, size_t *bytes_out,
                        struct drps_err *err)
{
    int rc = 0;
    *record_out = NULL;
    *bytes_out = 0;
    (void)pthread_mutex_lock(&s->lock);
    give_back(s);
    await_record(s);
    if (s->taken == s->to_give) {
        rc = 0;
    } else if (is_here(s)) {
        take(s, record_out, bytes_out);
        rc = 1;
    } else {
        rc = drps_err_set(err, s->err.code, "%s", s->err.text);
    }
    (void)pthread_mutex_unlock(&s->lock);
    return rc;
}

void drps_recstream_stats(struct drps_recstream *s, struct drps_recstream_stats *out)
{
    pthread_mutex_lock(&s->lock);
    *out = s->stats;
    pthread_mutex_unlock(&s->lock);
}
