/*
 * Gathered batches are encoded and written (batch_writer.h), by the caller or by a thread one
 * batch behind.
 */
#include "index/batches/batch_writer.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "index/plan/drps_batch.h"

struct batch_writer {
    struct drps_recwriter *data, *rows; /* borrowed */
    int has_bias;

    struct batch_encoder encoder;
    uint64_t max_samples, max_rows, max_nnz;

    /* All above is the thread's while `busy`. */
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int started, busy, stopping;
    struct gathered work;
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

static int write_empty(struct batch_writer *w, struct drps_err *err)
{
    static const float none[1];
    static const uint16_t nothing[1];
    const struct drps_batch batch = {.labels = none, .local16 = nothing};
    struct drps_batch_pieces body;
    unsigned char list[16];
    drps_batch_encode(&batch, &body);
    int rc = drps_recwriter_add(w->data, body.pieces, body.n, err);
    const struct drps_piece rows = {list, drps_list_encode(NULL, 0, list)};
    raise(&w->encoder.max_bytes, DRPS_BATCH_HEAD_BYTES);
    return rc < 0 ? rc : drps_recwriter_add(w->rows, &rows, 1, err);
}

static int write_batch(struct batch_writer *w, struct gathered *g, struct drps_err *err)
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
    struct encoded out;

    if (!g->n) return write_empty(w, err);
    if (is_uniform(g))
        batch.per_sample = g->starts[1];
    else
        batch.starts = g->starts;
    int rc = drps_batch_encoder_encode(&w->encoder, &batch, g->rows, w->has_bias, &out, err);
    if (rc == 0) rc = drps_recwriter_add(w->data, out.body.pieces, out.body.n, err);
    if (rc == 0) rc = drps_recwriter_add(w->rows, &out.list, 1, err);
    if (rc < 0) return rc;
    raise(&w->max_samples, g->n);
    raise(&w->max_rows, out.rows);
    raise(&w->max_nnz, g->nnz);
    return 0;
}

/* Returns 0, or the error of the first batch that failed. */
static int outcome(const struct batch_writer *w, struct drps_err *err)
{
    return w->rc < 0 ? drps_err_set(err, w->rc, "%s", w->err.text) : 0;
}

/* Write in the caller's thread, while the other one has nothing to do. */
static int write_now(struct batch_writer *w, struct gathered *g, struct drps_err *err)
{
    w->rc = write_batch(w, g, &w->err);
    return outcome(w, err);
}

void drps_batch_writer_shrink(struct batch_writer *w)
{
    const uint64_t max_bytes = w->encoder.max_bytes;
    const struct encoder_ways ways = w->encoder.ways;
    drps_batch_encoder_end(&w->encoder);
    w->encoder.max_bytes = max_bytes;
    w->encoder.ways = ways;
}

/* ---- The thread ---- */

static void *write_handed(void *arg)
{
    struct batch_writer *w = arg;
    pthread_mutex_lock(&w->lock);
    for (;;) {
        while (!w->busy && !w->stopping)
            pthread_cond_wait(&w->changed, &w->lock);
        if (!w->busy) break;
        pthread_mutex_unlock(&w->lock);
        const int rc = write_batch(w, &w->work, &w->err);
        pthread_mutex_lock(&w->lock);
        w->rc = rc;
        w->busy = 0;
        pthread_cond_broadcast(&w->changed);
    }
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

int drps_batch_writer_wait(struct batch_writer *w, struct drps_err *err)
{
    pthread_mutex_lock(&w->lock);
    while (w->busy)
        pthread_cond_wait(&w->changed, &w->lock);
    pthread_mutex_unlock(&w->lock);
    return outcome(w, err);
}

int drps_batch_writer_write(struct batch_writer *w, struct gathered *g, struct drps_err *err)
{
    int rc = drps_batch_writer_wait(w, err);
    return rc < 0 ? rc : write_now(w, g, err);
}

int drps_batch_writer_hand(struct batch_writer *w, struct gathered *g, struct drps_err *err)
{
    int rc = drps_batch_writer_wait(w, err);
    if (rc < 0) return rc;
    if (!w->started && pthread_create(&w->thread, NULL, write_handed, w) == 0) w->started = 1;
    if (!w->started) return write_now(w, g, err);
    pthread_mutex_lock(&w->lock);
    w->work = *g;
    w->busy = 1;
    pthread_cond_broadcast(&w->changed);
    pthread_mutex_unlock(&w->lock);
    return 0;
}

int drps_batch_writer_open(struct drps_recwriter *data, struct drps_recwriter *rows, int has_bias,
                           struct encoder_ways ways, struct batch_writer **w_out,
                           struct drps_err *err)
{
    struct batch_writer *w = calloc(1, sizeof(*w));
    *w_out = w;
    if (!w) return drps_err_set(err, -ENOMEM, "no memory for batches");
    w->data = data;
    w->rows = rows;
    w->has_bias = has_bias;
    w->encoder.ways = ways;
    w->err = (struct drps_err)DRPS_ERR_INIT;
    (void)pthread_mutex_init(&w->lock, NULL); /* neither fails with default attributes */
    (void)pthread_cond_init(&w->changed, NULL);
    return 0;
}

void drps_batch_writer_close(struct batch_writer *w)
{
    if (!w) return;
    if (w->started) {
        pthread_mutex_lock(&w->lock);
        w->stopping = 1;
        pthread_cond_broadcast(&w->changed);
        pthread_mutex_unlock(&w->lock);
        (void)pthread_join(w->thread, NULL); /* cannot fail for a thread of ours */
    }
    pthread_mutex_destroy(&w->lock);
    pthread_cond_destroy(&w->changed);
    drps_batch_encoder_end(&w->encoder);
    free(w);
}

void drps_batch_writer_maxima(const struct batch_writer *w, struct drps_plan_info *info)
{
    raise(&info->max_batch_samples, w->max_samples);
    raise(&info->max_batch_rows, w->max_rows);
    raise(&info->max_batch_nnz, w->max_nnz);
    raise(&info->max_body_bytes, w->encoder.max_bytes);
}
