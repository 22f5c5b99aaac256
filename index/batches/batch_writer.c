/*
 * Gathered batches are encoded and written (batch_writer.h), by the caller or by threads. A batch
 * that is handed over has a number, and lies in a place until it is written. A thread takes the
 * next number, encodes that batch with an encoder of its own, and writes it when all before it are
 * written: so the files do not depend on how many threads there are.
 */
#include "index/batches/batch_writer.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_thread.h"
#include "index/plan/drps_batch.h"

enum { PLACES = BATCH_WRITER_HANDED_MOST };

/* What encodes batches, and the records of the one that it has encoded. */
struct encoding {
    struct batch_writer *writer; /* borrowed */
    pthread_t thread;
    struct batch_encoder encoder;
    struct encoded out;
    uint64_t max_samples, max_rows, max_nnz;
};

struct batch_writer {
    struct drps_recwriter *data, *rows; /* borrowed; used by the thread whose turn it is */
    uint32_t common;
    unsigned wanted, started; /* threads */
    /* Each is used by its own thread, the first one by the caller while nothing is handed over. */
    struct encoding encoding[BATCH_WRITER_THREADS_MOST];

    pthread_mutex_t lock;
    pthread_cond_t more;             /* there is a batch to take, or there will be none */
    pthread_cond_t less;             /* a batch is written */
    uint64_t handed, taken, written; /* numbers of batches: the next of each */
    struct place {
        struct gathered batch;
        int large;   /* its arrays are freed once it is written */
    } place[PLACES]; /* batch i lies in i % PLACES */
    int stopping;
    int rc; /* of the first batch that failed */
    struct drps_err err;
};

void drps_gathered_free(struct gathered *g)
{
    free(g->labels);
    free(g->starts);
    free(g->rows);
    free(g->values);
    free(g->weights);
    free(g->fields);
    free(g->numbers);
    *g = (struct gathered){0};
}

/* ---- One batch ---- */

static int is_uniform(const struct gathered *g)
{
    uint32_t each = g->starts[1];
    for (size_t s = 1; s <= g->n; s++)
        if (g->starts[s] != s * each) return 0;
    return 1;
}

static void raise(uint64_t *max, uint64_t value)
{
    if (value > *max) *max = value;
}

static int add_records(struct batch_writer *w, const struct encoded *out, struct drps_err *err)
{
    int rc = drps_recwriter_add(w->data, out->body.pieces, out->body.n, err);
    return rc < 0 ? rc : drps_recwriter_add(w->rows, &out->list, 1, err);
}

static int write_empty(struct batch_writer *w, struct drps_err *err)
{
    static const float none[1];
    static const uint16_t nothing[1];
    const struct drps_batch batch = {.labels = none, .local16 = nothing};
    struct encoded out;
    unsigned char list[16];
    drps_batch_encode(&batch, &out.body);
    out.list = (struct drps_piece){list, drps_list_encode(NULL, 0, list)};
    raise(&w->encoding[0].encoder.max_bytes, DRPS_BATCH_HEAD_BYTES);
    return add_records(w, &out, err);
}

/* Make e->out of a batch that has samples. */
static int encode(struct encoding *e, const struct gathered *g, struct drps_err *err)
{
    struct drps_batch batch = {.samples = g->n,
                               .nnz = g->nnz,
                               .labels = g->labels,
                               .values = g->has_values ? g->values : NULL,
                               .weights = g->has_weights ? g->weights : NULL,
                               .fields = g->field_count ? g->fields : NULL,
                               .field_count = g->field_count,
                               .stratum = g->stratum,
                               .lane = g->lane};
    if (g->numbers_each)
        batch.numbers = (struct drps_dense){.each = g->numbers_each, .floats = g->numbers};
    if (is_uniform(g))
        batch.per_sample = g->starts[1];
    else
        batch.starts = g->starts;
    int rc =
        drps_batch_encoder_encode(&e->encoder, &batch, g->rows, e->writer->common, &e->out, err);
    if (rc < 0) return rc;
    raise(&e->max_samples, g->n);
    raise(&e->max_rows, e->out.rows);
    raise(&e->max_nnz, g->nnz);
    return 0;
}

/* Returns 0, or the error of the first batch that failed. */
static int outcome(const struct batch_writer *w, struct drps_err *err)
{
    return w->rc < 0 ? drps_err_set(err, w->rc, "%s", w->err.text) : 0;
}

/* Write in the caller's thread, while the others have nothing to do. */
static int write_now(struct batch_writer *w, const struct gathered *g, struct drps_err *err)
{
    struct encoding *e = &w->encoding[0];
    if (!g->n)
        w->rc = write_empty(w, &w->err);
    else if ((w->rc = encode(e, g, &w->err)) == 0)
        w->rc = add_records(w, &e->out, &w->err);
    return outcome(w, err);
}

void drps_batch_writer_shrink(struct batch_writer *w)
{
    for (size_t i = 0; i < PLACES; i++)
        drps_gathered_free(&w->place[i].batch);
    for (size_t i = 0; i < BATCH_WRITER_THREADS_MOST; i++) {
        struct batch_encoder *e = &w->encoding[i].encoder;
        const uint64_t max_bytes = e->max_bytes;
        const struct encoder_ways ways = e->ways;
        drps_batch_encoder_end(e);
        e->max_bytes = max_bytes;
        e->ways = ways;
    }
}

/* ---- Threads ---- */

/* Wait for a batch to encode; 0: there will be none. */
static int take(struct batch_writer *w, uint64_t *number_out)
{
    pthread_mutex_lock(&w->lock);
    while (w->taken == w->handed && !w->stopping)
        pthread_cond_wait(&w->more, &w->lock);
    const int is = w->taken != w->handed;
    if (is) *number_out = w->taken++;
    pthread_mutex_unlock(&w->lock);
    return is;
}

/* Wait until all batches before this one are written; 0: one of them has failed. */
static int await_turn(struct batch_writer *w, uint64_t number)
{
    pthread_mutex_lock(&w->lock);
    while (w->written != number)
        pthread_cond_wait(&w->less, &w->lock);
    const int go = w->rc == 0;
    pthread_mutex_unlock(&w->lock);
    return go;
}

static void end_turn(struct batch_writer *w, int rc, const struct drps_err *err)
{
    pthread_mutex_lock(&w->lock);
    if (rc < 0 && w->rc == 0) {
        w->rc = rc;
        w->err = *err;
    }
    w->written++;
    pthread_cond_broadcast(&w->less);
    pthread_mutex_unlock(&w->lock);
}

static void *write_handed(void *arg)
{
    struct encoding *e = arg;
    struct batch_writer *w = e->writer;
    uint64_t number;
    drps_thread_serves();
    while (take(w, &number)) {
        struct place *place = &w->place[number % PLACES];
        struct drps_err err = DRPS_ERR_INIT;
        int rc = encode(e, &place->batch, &err);
        if (await_turn(w, number) && rc == 0) rc = add_records(w, &e->out, &err);
        if (place->large) drps_gathered_free(&place->batch);
        end_turn(w, rc, &err);
    }
    return NULL;
}

/* Wait until at most `left` batches are not written. */
static int await(struct batch_writer *w, uint64_t left, struct drps_err *err)
{
    pthread_mutex_lock(&w->lock);
    while (w->handed - w->written > left)
        pthread_cond_wait(&w->less, &w->lock);
    const int rc = outcome(w, err);
    pthread_mutex_unlock(&w->lock);
    return rc;
}

int drps_batch_writer_wait(struct batch_writer *w, struct drps_err *err)
{
    return await(w, 0, err);
}

int drps_batch_writer_write(struct batch_writer *w, const struct gathered *g, struct drps_err *err)
{
    int rc = drps_batch_writer_wait(w, err);
    return rc < 0 ? rc : write_now(w, g, err);
}

static void start_threads(struct batch_writer *w)
{
    while (w->started < w->wanted) {
        struct encoding *e = &w->encoding[w->started];
        if (pthread_create(&e->thread, NULL, write_handed, e) != 0) break;
        w->started++;
    }
    w->wanted = w->started;
}

int drps_batch_writer_hand(struct batch_writer *w, struct gathered *g, size_t most, int large,
                           struct drps_err *err)
{
    if (w->started < w->wanted) start_threads(w);
    if (!w->started) return drps_batch_writer_write(w, g, err);
    int rc = await(w, most - 1, err);
    if (rc < 0) return rc;
    pthread_mutex_lock(&w->lock);
    struct place *place = &w->place[w->handed % PLACES];
    const struct gathered written = place->batch;
    *place = (struct place){.batch = *g, .large = large};
    *g = written;
    w->handed++;
    pthread_cond_signal(&w->more);
    pthread_mutex_unlock(&w->lock);
    return 0;
}

/* ---- Opening and closing ---- */

int drps_batch_writer_open(struct drps_recwriter *data, struct drps_recwriter *rows,
                           uint32_t common, struct encoder_ways ways, unsigned threads,
                           struct batch_writer **w_out, struct drps_err *err)
{
    struct batch_writer *w = calloc(1, sizeof(*w));
    *w_out = w;
    if (!w) return drps_err_set(err, -ENOMEM, "no memory for batches");
    w->data = data;
    w->rows = rows;
    w->common = common;
    w->wanted = threads < BATCH_WRITER_THREADS_MOST ? threads : BATCH_WRITER_THREADS_MOST;
    for (size_t i = 0; i < BATCH_WRITER_THREADS_MOST; i++) {
        w->encoding[i].writer = w;
        w->encoding[i].encoder.ways = ways;
    }
    w->err = (struct drps_err)DRPS_ERR_INIT;
    (void)pthread_mutex_init(&w->lock, NULL); /* neither fails with default attributes */
    (void)pthread_cond_init(&w->more, NULL);
    (void)pthread_cond_init(&w->less, NULL);
    return 0;
}

void drps_batch_writer_close(struct batch_writer *w)
{
    if (!w) return;
    pthread_mutex_lock(&w->lock);
    w->stopping = 1;
    pthread_cond_broadcast(&w->more);
    pthread_mutex_unlock(&w->lock);
    for (unsigned i = 0; i < w->started; i++)
        (void)pthread_join(w->encoding[i].thread, NULL); /* cannot fail for a thread of ours */
    pthread_mutex_destroy(&w->lock);
    pthread_cond_destroy(&w->more);
    pthread_cond_destroy(&w->less);
    drps_batch_writer_shrink(w);
    free(w);
}

void drps_batch_writer_maxima(const struct batch_writer *w, struct drps_plan_info *info)
{
    for (size_t i = 0; i < BATCH_WRITER_THREADS_MOST; i++) {
        const struct encoding *e = &w->encoding[i];
        raise(&info->max_batch_samples, e->max_samples);
        raise(&info->max_batch_rows, e->max_rows);
        raise(&info->max_batch_nnz, e->max_nnz);
        raise(&info->max_body_bytes, e->encoder.max_bytes);
    }
}
