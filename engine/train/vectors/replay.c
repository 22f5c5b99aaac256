/*
 * Rounds once more. A row's bytes depend on the batches that touch it, their order and that of
 * their samples alone (engine/model/matrix.c, engine/model/optim.c), so they come out as they were
 * though only the rank's own rows are here: each batch's gradient on its own, added up in the order
 * of batches, then the step.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/drps_alloc.h"
#include "engine/train/vectors/drps_round_log.h"

/* Rows that were met, each once. */
struct met {
    uint64_t *stamp; /* own: [rows] when a row was met last */
    uint32_t *rows;  /* own: [rows] */
    size_t n;
    uint64_t now;
};

struct stepping {
    struct drps_round_replay *r;
    struct drps_model model; /* the intercept is a feature of the vectors */
    struct met of_batch, of_round;
    float *grads, *sums;        /* own: [rows][dim] of a batch, of the round */
    uint32_t *touches, *counts; /* own: [rows] the same */
};

static int met_init(struct met *m, size_t rows)
{
    m->stamp = calloc(rows ? rows : 1, sizeof(*m->stamp));
    m->rows = drps_array_new(rows, sizeof(*m->rows));
    return m->stamp && m->rows ? 0 : -ENOMEM;
}

static void met_destroy(struct met *m)
{
    free(m->stamp);
    free(m->rows);
}

static void met_begin(struct met *m)
{
    m->now++;
    m->n = 0;
}

/* Returns 1 when the row is new. */
static int meet(struct met *m, uint32_t row)
{
    if (m->stamp[row] == m->now) return 0;
    m->stamp[row] = m->now;
    m->rows[m->n++] = row;
    return 1;
}

static void zero_row(float *values, size_t dim, uint32_t row, uint32_t *count)
{
    for (size_t k = 0; k < dim; k++)
        values[row * dim + k] = 0;
    count[row] = 0;
}

/* The batch's gradient, of the rows that it has. */
static void make_gradient(struct stepping *s, const struct drps_vectors *v)
{
    const size_t entries = v->first[v->n];
    const struct drps_batch b = {.samples = v->n,
                                 .rows = (size_t)s->r->rows,
                                 .nnz = entries,
                                 .starts = v->first,
                                 .local32 = v->ids,
                                 .values = v->values};
    met_begin(&s->of_batch);
    for (size_t e = 0; e < entries; e++)
        if (meet(&s->of_batch, v->ids[e])) zero_row(s->grads, v->dim, v->ids[e], s->touches);
    drps_model_backward(&s->model, &b, v->u, s->grads);
    drps_batch_touches(&b, 0, b.samples, 0, s->touches);
}

static void add_gradient(struct stepping *s, size_t dim)
{
    for (size_t i = 0; i < s->of_batch.n; i++) {
        const uint32_t row = s->of_batch.rows[i];
        if (meet(&s->of_round, row)) zero_row(s->sums, dim, row, s->counts);
        for (size_t k = 0; k < dim; k++)
            s->sums[row * dim + k] += s->grads[row * dim + k];
        s->counts[row] += s->touches[row];
    }
}

static void step_rows(struct stepping *s, char *matrix)
{
    const struct drps_server *server = s->r->server;
    const uint32_t dim = server->model.dim;
    for (size_t i = 0; i < s->of_round.n; i++) {
        const uint32_t row = s->of_round.rows[i];
        const struct drps_rows one = {matrix, server->row_bytes, &row, 1};
        const size_t intercept = server->model.has_bias && server->first_row + row == 0;
        drps_optim_step(&server->optim, dim, &one, 0, 1, s->sums + (size_t)row * dim,
                        s->r->touches ? s->counts + row : NULL, intercept);
    }
}

/* Takes up what the round's note says. */
static int take_note(struct drps_round_replay *r, const struct drps_vector_round *round,
                     struct drps_err *err)
{
    struct drps_epoch done;
    int rc = drps_round_note_read(round->note, round->note_bytes, &r->last, &done, err);
    const uint64_t epoch = (round->number - 1) / r->batches; /* that is done */
    if (rc == 0 && r->last.done && (done.epoch != epoch || !epoch || epoch > r->epochs))
        rc = drps_err_set(err, DRPS_E_CORRUPT, "results of epoch %llu in a round of epoch %llu",
                          (unsigned long long)done.epoch, (unsigned long long)epoch + 1);
    if (rc == 0 && r->last.done) r->done[epoch - 1] = done;
    r->last.done = NULL;
    return rc;
}

/* A drps_vector_apply. */
static int apply(void *ctx, const struct drps_vector_round *round, void *matrix,
                 struct drps_err *err)
{
    struct stepping *s = ctx;
    met_begin(&s->of_round);
    for (uint32_t b = 0; b < round->n; b++) {
        make_gradient(s, &round->batches[b]);
        add_gradient(s, round->batches[b].dim);
    }
    step_rows(s, matrix);
    return take_note(s->r, round, err);
}

uint64_t drps_round_replay_memory(uint64_t rows, uint32_t dim)
{
    const uint64_t met = sizeof(uint64_t) + sizeof(uint32_t);
    return 2 * rows * (dim * sizeof(float) + sizeof(uint32_t) + met);
}

static int stepping_init(struct stepping *s, struct drps_round_replay *r, struct drps_err *err)
{
    const size_t rows = (size_t)r->rows, bytes = r->server->model.dim * sizeof(float);
    *s = (struct stepping){.r = r, .model = r->server->model};
    s->model.has_bias = 0;
    s->grads = drps_array_new(rows, bytes);
    s->sums = drps_array_new(rows, bytes);
    s->touches = drps_array_new(rows, sizeof(*s->touches));
    s->counts = drps_array_new(rows, sizeof(*s->counts));
    if (!s->grads || !s->sums || !s->touches || !s->counts || met_init(&s->of_batch, rows) < 0 ||
        met_init(&s->of_round, rows) < 0)
        return drps_err_set(err, -ENOMEM, "no memory to restore a round");
    return 0;
}

static void stepping_destroy(struct stepping *s)
{
    met_destroy(&s->of_batch);
    met_destroy(&s->of_round);
    free(s->grads);
    free(s->sums);
    free(s->touches);
    free(s->counts);
}

int drps_round_replay(struct drps_round_replay *r, const struct drps_io *io,
                      struct drps_checkpoint *cp, uint64_t round, void *matrix,
                      struct drps_err *err)
{
    const struct drps_matrix_shape shape = {
        .rows = r->rows, .row_bytes = r->server->row_bytes, .dim = r->server->model.dim};
    struct stepping s;
    uint64_t got;
    int rc = stepping_init(&s, r, err);
    if (rc == 0) rc = drps_vector_log_replay(io, cp, &shape, round, apply, &s, matrix, &got, err);
    stepping_destroy(&s);
    return rc;
}
