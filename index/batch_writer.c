#include "index/batch_writer.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"
#include "index/bodies.h"
#include "index/drps_batch.h"
#include "index/extsort.h"

struct batch_writer {
    struct drps_recwriter *data, *rows; /* borrowed */
    const uint32_t *map;                /* borrowed: placed ids by id, or NULL: they are the same */
    int has_bias;

    uint64_t *pairs, *aux; /* placed id << 32 | first-touch number */
    uint32_t *sorted, *rank;
    size_t pairs_cap, aux_cap, sorted_cap, rank_cap;
    unsigned char *list; /* packed rows */
    size_t list_cap;
    struct bodies bodies;
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

void gathered_free(struct gathered *g)
{
    free(g->touched);
    free(g->labels);
    free(g->starts);
    free(g->local);
    free(g->values);
    *g = (struct gathered){0};
}

/* ---- One batch ---- */

/* Sort the rows: w->sorted, and w->rank of each first-touch number. */
static int rank_rows(struct batch_writer *w, const struct gathered *g, struct drps_err *err)
{
    const size_t n = g->rows_n;
    if (drps_array_reserve(&w->pairs, &w->pairs_cap, n, sizeof(*w->pairs)) ||
        drps_array_reserve(&w->aux, &w->aux_cap, n, sizeof(*w->aux)) ||
        drps_array_reserve(&w->sorted, &w->sorted_cap, n, sizeof(*w->sorted)) ||
        drps_array_reserve(&w->rank, &w->rank_cap, n, sizeof(*w->rank)) ||
        drps_array_reserve(&w->list, &w->list_cap, drps_list_encode_bound(n), 1))
        return drps_err_set(err, -ENOMEM, "no memory for a batch of %zu rows", n);
    for (size_t i = 0; i < n; i++) {
        const uint32_t row = i == 0 && w->has_bias ? 0
                             : w->map              ? w->map[g->touched[i]]
                                                   : g->touched[i];
        w->pairs[i] = (uint64_t)row << 32 | i;
    }
    sort_keyed(w->pairs, w->aux, n);
    for (size_t i = 0; i < n; i++) {
        w->sorted[i] = (uint32_t)(w->pairs[i] >> 32);
        w->rank[(uint32_t)w->pairs[i]] = (uint32_t)i;
    }
    return 0;
}

/* Replace first-touch numbers by ranks. */
static void relabel(const struct batch_writer *w, struct gathered *g)
{
    for (size_t j = 0; j < g->nnz; j++)
        g->local[j] = w->rank[g->local[j]];
}

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
    raise(&w->bodies.max_bytes, DRPS_BATCH_HEAD_BYTES);
    return rc < 0 ? rc : drps_recwriter_add(w->rows, &rows, 1, err);
}

static int write_batch(struct batch_writer *w, struct gathered *g, struct drps_err *err)
{
    struct drps_batch batch = {.samples = g->n,
                               .rows = g->rows_n,
                               .nnz = g->nnz,
                               .labels = g->labels,
                               .diagonal = g->diagonal,
                               .lane = g->lane};
    struct drps_batch_pieces body;

    if (!g->n) return write_empty(w, err);
    int rc = rank_rows(w, g, err);
    if (rc < 0) return rc;
    relabel(w, g);
    if (is_uniform(g))
        batch.per_sample = g->starts[1];
    else
        batch.starts = g->starts;
    if (g->has_values) batch.values = g->values;
    rc = bodies_encode(&w->bodies, &batch, g->local, &body, err);
    if (rc == 0) rc = drps_recwriter_add(w->data, body.pieces, body.n, err);
    struct drps_piece list = {w->list, drps_list_encode_dense(w->sorted, g->rows_n, w->list)};
    if (rc == 0) rc = drps_recwriter_add(w->rows, &list, 1, err);
    raise(&w->max_samples, g->n);
    raise(&w->max_rows, g->rows_n);
    raise(&w->max_nnz, g->nnz);
    return rc;
}

/* 0, or the error of the first batch that failed. */
static int outcome(const struct batch_writer *w, struct drps_err *err)
{
    return w->rc < 0 ? drps_err_set(err, w->rc, "%s", w->err.text) : 0;
}

/* By the caller's thread, while the other one has nothing to do. */
static int write_now(struct batch_writer *w, struct gathered *g, struct drps_err *err)
{
    w->rc = write_batch(w, g, &w->err);
    return outcome(w, err);
}

static void free_arrays(struct batch_writer *w)
{
    free(w->pairs);
    free(w->aux);
    free(w->sorted);
    free(w->rank);
    free(w->list);
}

void batch_writer_shrink(struct batch_writer *w)
{
    const uint64_t max_bytes = w->bodies.max_bytes;
    free_arrays(w);
    bodies_end(&w->bodies);
    w->bodies.max_bytes = max_bytes;
    w->pairs = w->aux = NULL;
    w->sorted = w->rank = NULL;
    w->list = NULL;
    w->pairs_cap = w->aux_cap = w->sorted_cap = w->rank_cap = w->list_cap = 0;
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

int batch_writer_wait(struct batch_writer *w, struct drps_err *err)
{
    pthread_mutex_lock(&w->lock);
    while (w->busy)
        pthread_cond_wait(&w->changed, &w->lock);
    pthread_mutex_unlock(&w->lock);
    return outcome(w, err);
}

int batch_writer_write(struct batch_writer *w, struct gathered *g, struct drps_err *err)
{
    int rc = batch_writer_wait(w, err);
    return rc < 0 ? rc : write_now(w, g, err);
}

int batch_writer_hand(struct batch_writer *w, struct gathered *g, struct drps_err *err)
{
    int rc = batch_writer_wait(w, err);
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

int batch_writer_open(struct drps_recwriter *data, struct drps_recwriter *rows, const uint32_t *map,
                      int has_bias, struct batch_writer **w_out, struct drps_err *err)
{
    struct batch_writer *w = calloc(1, sizeof(*w));
    *w_out = w;
    if (!w) return drps_err_set(err, -ENOMEM, "no memory for batches");
    w->data = data;
    w->rows = rows;
    w->map = map;
    w->has_bias = has_bias;
    w->err = (struct drps_err)DRPS_ERR_INIT;
    (void)pthread_mutex_init(&w->lock, NULL); /* neither fails with default attributes */
    (void)pthread_cond_init(&w->changed, NULL);
    return 0;
}

void batch_writer_close(struct batch_writer *w)
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
    free_arrays(w);
    bodies_end(&w->bodies);
    free(w);
}

void batch_writer_maxima(const struct batch_writer *w, struct drps_plan_info *info)
{
    raise(&info->max_batch_samples, w->max_samples);
    raise(&info->max_batch_rows, w->max_rows);
    raise(&info->max_batch_nnz, w->max_nnz);
    raise(&info->max_body_bytes, w->bodies.max_bytes);
}
