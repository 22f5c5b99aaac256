/* The worker's arrays, and one step on them by the team: pull, gradient, push; or the gradient
 * alone, where rows are with servers of other ranks. */
#include "engine/step/drps_worker.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/drps_alloc.h"
#include "base/drps_clock.h"

enum {
    LINE = 64,
    PIECES = 8,       /* of a member's share of the rows, when it has enough */
    PIECE_ROWS = 256, /* a piece is a multiple of this */
    PART_SAMPLES = 512,
};

/* Hands out pieces of one allocation; with base NULL it only counts. */
struct arena {
    char *base;
    size_t used;
};

static void *take(struct arena *a, size_t n, size_t size)
{
    const size_t at = (a->used + LINE - 1) / LINE * LINE;
    a->used = at + n * size;
    return a->base ? a->base + at : NULL;
}

/* Bytes of grads[0] and touches[0], where messages share their buffer. */
static size_t sent_bytes(const struct drps_worker_size *size, uint32_t dim)
{
    return (size->rows + 1) * (dim * sizeof(float) + (size->touches ? sizeof(uint32_t) : 0));
}

/* Lays the arrays out in worker->arena; where that is NULL, only counts the bytes that they need.
 */
static size_t lay_out(struct drps_worker *w, const struct drps_server *server)
{
    const struct drps_worker_size *size = &w->size;
    const size_t dim = server->model.dim;
    const size_t rows = size->rows + 1;
    const size_t scratch = drps_model_scratch_bytes(&server->model, size->samples, size->rows);
    struct arena a = {.base = w->arena};

    w->params = take(&a, rows * dim, sizeof(float));
    w->scores = take(&a, size->samples * drps_model_score_floats(&server->model), sizeof(float));
    if (size->slopes) w->slopes = take(&a, size->samples * server->model.outputs, sizeof(float));
    for (unsigned k = 0; k < size->members; k++) {
        const int here = k ? !size->one_array : !size->sends;
        if (here) w->grads[k] = take(&a, rows * dim, sizeof(float));
        if (here && size->touches) w->touches[k] = take(&a, rows, sizeof(uint32_t));
        w->scratch[k] = take(&a, scratch, 1);
    }
    if (size->local_steps) {
        w->local.copy = take(&a, rows, server->row_bytes);
        w->local.original = take(&a, rows, server->row_bytes);
        w->local.index = take(&a, rows, sizeof(uint32_t));
        w->local.identity = take(&a, rows, sizeof(uint32_t));
        w->local.narrow = take(&a, rows, sizeof(uint16_t));
        w->local.touches = take(&a, rows, sizeof(uint32_t));
    }
    return a.used + LINE;
}

uint64_t drps_worker_memory(const struct drps_server *server, const struct drps_worker_size *size)
{
    struct drps_worker counted = {.size = *size};
    return lay_out(&counted, server) + (size->sends ? sent_bytes(size, server->model.dim) : 0);
}

int drps_worker_start(struct drps_worker *worker, struct drps_server *server,
                      const struct drps_worker_size *size, struct drps_err *err)
{
    memset(worker, 0, sizeof(*worker));
    worker->model = &server->model;
    worker->server = server;
    worker->size = *size;
    worker->has_touches = size->touches;
    worker->arena_bytes = lay_out(worker, server);
    worker->arena = drps_pages_new(worker->arena_bytes);
    if (!worker->arena)
        return drps_err_set(err, -ENOMEM, "no memory for batches of %zu rows: %zu bytes",
                            size->rows, worker->arena_bytes);
    (void)lay_out(worker, server);
    if (size->local_steps) drps_local_init(&worker->local, size->rows);
    int rc = size->sends ? drps_worker_renew(worker, err) : 0;
    return rc < 0 ? rc : drps_team_start(size->members, &worker->team, err);
}

void drps_worker_stop(struct drps_worker *worker)
{
    if (!worker) return;
    drps_team_stop(worker->team);
    drps_shared_buffer_release(worker->sent);
    drps_pages_free(worker->arena, worker->arena_bytes);
    memset(worker, 0, sizeof(*worker));
}

int drps_worker_renew(struct drps_worker *worker, struct drps_err *err)
{
    const struct drps_worker_size *size = &worker->size;
    const uint32_t dim = worker->model->dim;
    int rc = drps_shared_buffer_renew(&worker->sent, sent_bytes(size, dim), err);
    if (rc < 0) return rc;
    worker->grads[0] = (float *)(void *)worker->sent->data;
    if (size->touches)
        worker->touches[0] = (uint32_t *)(void *)(worker->grads[0] + (size->rows + 1) * dim);
    return 0;
}

/* The k-th of n nearly equal parts of 0 .. count. */
static size_t part(size_t count, unsigned k, unsigned n)
{
    return count / n * k + count % n * k / n;
}

/*
 * The n-th piece of the batch's rows that falls to a member; 0 when there is none. Pieces share no
 * cache lines, and are few, since no row is requested ahead of time across their borders.
 */
static int piece(const struct drps_worker *w, unsigned member, size_t n, size_t *first,
                 size_t *last)
{
    const size_t rows = w->batch->rows, members = w->size.members;
    const size_t share = members == 1 ? rows : rows / (members * PIECES);
    const size_t size = share / PIECE_ROWS * PIECE_ROWS + PIECE_ROWS;

    *first = (n * members + member) * size;
    *last = *first + size < rows ? *first + size : rows;
    return *first < rows;
}

/* Member 0 keeps the time of all: they wait for each other between the phases. */
static uint64_t lap(unsigned member, uint64_t since, uint64_t *sum)
{
    if (member) return 0;
    const uint64_t now = drps_clock_ns();
    *sum += now - since;
    return now;
}

static void pull(struct drps_worker *w, unsigned member)
{
    size_t first, last;
    for (size_t n = 0; piece(w, member, n, &first, &last); n++)
        drps_server_pull(w->server, first, last, w->params);
}

static struct drps_gradients gradients(const struct drps_worker *w)
{
    return (struct drps_gradients){w->grads, w->has_touches ? w->touches : NULL, w->size.members};
}

static void push(struct drps_worker *w, unsigned member)
{
    const struct drps_gradients g = gradients(w);
    size_t first, last;
    for (size_t n = 0; piece(w, member, n, &first, &last); n++)
        drps_server_push(w->server, first, last, &g, member);
}

void drps_worker_share(const struct drps_worker *w, unsigned member, size_t *first_out,
                       size_t *last_out)
{
    const struct drps_batch *b = w->batch;
    *first_out = drps_model_cut(w->model, b, part(b->samples, member, w->size.members));
    *last_out = drps_model_cut(w->model, b, part(b->samples, member + 1, w->size.members));
}

static void compute_gradient(struct drps_worker *w, unsigned member)
{
    const struct drps_batch *b = w->batch;
    size_t first, last;

    drps_worker_share(w, member, &first, &last);
    memset(w->grads[member], 0, b->rows * w->model->dim * sizeof(float));
    w->loss[member] =
        w->slopes
            ? drps_model_gradient_slopes(w->model, b, first, last, w->params, w->grads[member],
                                         w->scores, w->slopes, w->scratch[member])
            : drps_model_gradient(w->model, b, first, last, w->params, w->grads[member], w->scores,
                                  w->scratch[member]);
    if (!w->has_touches) return;
    memset(w->touches[member], 0, b->rows * sizeof(uint32_t));
    drps_model_touches(w->model, b, first, last, w->touches[member]);
}

static void batch_step(void *ctx, unsigned member)
{
    struct drps_worker *w = ctx;
    uint64_t now = member ? 0 : drps_clock_ns();

    pull(w, member);
    drps_team_barrier(w->team);
    now = lap(member, now, &w->gather_ns);
    compute_gradient(w, member);
    drps_team_barrier(w->team);
    (void)lap(member, now, &w->compute_ns);
    push(w, member);
}

/* The parts of a batch whose gradients are summed apart; the number of members does not count. */
static unsigned parts_of(const struct drps_batch *b)
{
    const size_t n = b->samples / PART_SAMPLES;
    return n < 1 ? 1 : n > DRPS_WORKER_PARTS ? DRPS_WORKER_PARTS : (unsigned)n;
}

static void compute_part(struct drps_worker *w, unsigned member, unsigned k)
{
    const struct drps_batch *b = w->batch;
    const unsigned parts = parts_of(b);
    memset(w->grads[member], 0, b->rows * w->model->dim * sizeof(float));
    w->part_loss[k] =
        drps_model_gradient(w->model, b, part(b->samples, k, parts), part(b->samples, k + 1, parts),
                            w->params, w->grads[member], w->scores, w->scratch[member]);
}

/* Adds the gradients that members have made of parts, in their order. */
static void add_parts(struct drps_worker *w, unsigned member, unsigned parts)
{
    const struct drps_server *server = w->server;
    size_t first, last;
    for (size_t n = 0; piece(w, member, n, &first, &last); n++)
        for (unsigned k = 0; k < parts; k++)
            drps_newton_add(server->newton, &server->rows, first, last, w->grads[k]);
}

/* A batch of a pass: its gradient is summed in the rows, part by part, so that the sums are the
 * same with any number of members. */
static void pass_step(void *ctx, unsigned member)
{
    struct drps_worker *w = ctx;
    const unsigned members = w->size.members, parts = parts_of(w->batch);
    size_t first, last;
    uint64_t now = member ? 0 : drps_clock_ns();

    for (size_t n = 0; piece(w, member, n, &first, &last); n++)
        drps_newton_open_rows(w->server->newton, &w->server->rows, first, last, w->params);
    drps_team_barrier(w->team);
    now = lap(member, now, &w->gather_ns);
    for (unsigned k = 0; k < parts; k += members) {
        if (k + member < parts) compute_part(w, member, k + member);
        drps_team_barrier(w->team);
        now = lap(member, now, &w->compute_ns);
        add_parts(w, member, parts - k < members ? parts - k : members);
        drps_team_barrier(w->team);
        now = member ? 0 : drps_clock_ns();
    }
}

/* The samples follow on each other, so one thread computes; the copies are made and added by all.
 */
static void local_step(void *ctx, unsigned member)
{
    struct drps_worker *w = ctx;
    size_t first, last;
    const struct drps_local_room room = {w->params, w->grads[0], w->scratch[0]};
    uint64_t now = member ? 0 : drps_clock_ns();

    for (size_t n = 0; piece(w, member, n, &first, &last); n++)
        drps_local_pull(&w->local, &w->server->rows, w->server->row_bytes, first, last);
    drps_team_barrier(w->team);
    now = lap(member, now, &w->gather_ns);
    w->loss[member] = member ? 0
                             : drps_local_train(&w->local, w->model, &w->server->optim, w->batch,
                                                w->scores, &room);
    drps_team_barrier(w->team);
    (void)lap(member, now, &w->compute_ns);
    for (size_t n = 0; piece(w, member, n, &first, &last); n++)
        drps_local_push(&w->local, &w->server->rows, w->server->row_bytes, first, last);
}

static void gradient_step(void *ctx, unsigned member)
{
    struct drps_worker *w = ctx;
    size_t first, last;
    const struct drps_gradients g = gradients(w);
    const uint64_t now = member ? 0 : drps_clock_ns();

    compute_gradient(w, member);
    drps_team_barrier(w->team);
    for (size_t n = 0; piece(w, member, n, &first, &last); n++)
        drps_gradients_sum(w->model->dim, first, last, &g, 0);
    (void)lap(member, now, &w->compute_ns);
}

/* A loss that is no finite number is explained while scores and parameters are there; local steps
 * have changed the latter. */
static double checked(struct drps_worker *worker, const struct drps_batch *batch, double loss)
{
    const float *params = worker->size.local_steps ? NULL : worker->params;
    if (!isfinite(loss) && !worker->why.code)
        (void)drps_model_explain(worker->model, batch, params, worker->scores, 1,
                                 worker->scratch[0], &worker->why);
    return loss;
}

static double run(struct drps_worker *worker, drps_team_work step, const struct drps_batch *batch)
{
    const uint64_t start = drps_clock_ns();
    double loss = 0;
    worker->batch = batch;
    drps_team_run(worker->team, step, worker);
    worker->compute_ns += drps_emulate_wait(&worker->emulate, start);
    for (unsigned k = 0; k < worker->size.members; k++)
        loss += worker->loss[k];
    return checked(worker, batch, loss);
}

/* A batch of a quasi-Newton method's pass. */
static double run_pass(struct drps_worker *worker, const struct drps_batch *batch)
{
    double loss = 0;
    (void)run(worker, pass_step, batch);
    for (unsigned k = 0; k < parts_of(batch); k++)
        loss += worker->part_loss[k];
    return loss;
}

/* ---- Topic models ---- */

/* Documents are coded where `after` is not NULL, and rows changed where `rows` is not. */
static void topic_phases(struct drps_worker *w, unsigned member, float *after,
                         const struct drps_rows *rows)
{
    const struct drps_topic_step step = {
        .batch = w->batch, .rows = rows, .before = w->params, .after = after, .scores = w->scores};
    const uint64_t start = drps_clock_ns();
    for (unsigned phase = 0; phase < DRPS_TOPIC_PHASES; phase++) {
        drps_topic_work(w->server->topic, &step, phase, member);
        drps_team_barrier(w->team);
    }
    if (after) (void)lap(member, start, &w->compute_ns);
}

static void topic_step(void *ctx, unsigned member)
{
    struct drps_worker *w = ctx;
    const uint64_t start = drps_clock_ns();
    pull(w, member);
    drps_team_barrier(w->team);
    (void)lap(member, start, &w->gather_ns);
    topic_phases(w, member, w->grads[0], &w->server->rows);
}

static void topic_gradient(void *ctx, unsigned member)
{
    struct drps_worker *w = ctx;
    topic_phases(w, member, w->grads[0], NULL);
}

static void topic_score(void *ctx, unsigned member)
{
    topic_phases(ctx, member, NULL, NULL);
}

static void topic_predict(void *ctx, unsigned member)
{
    struct drps_worker *w = ctx;
    pull(w, member);
    drps_team_barrier(w->team);
    topic_score(w, member);
}

/* The sum is that of one member's order, with any number of them. */
static double run_topic(struct drps_worker *worker, drps_team_work step,
                        const struct drps_batch *batch)
{
    double loss = 0;
    worker->batch = batch;
    drps_team_run(worker->team, step, worker);
    for (size_t s = 0; s < batch->samples; s++)
        loss += (double)worker->scores[s];
    return loss;
}

/* The first member pushes the first row, and has the sum of its gradients. */
static double run_step(struct drps_worker *worker, const struct drps_batch *batch)
{
    struct drps_server *server = worker->server;
    drps_intercept_begin(server, &server->rows, batch->stratum);
    const double loss = run(worker, batch_step, batch);
    drps_intercept_add(server, batch->stratum, worker->grads[0][0]);
    return loss;
}

double drps_worker_train(struct drps_worker *worker, const struct drps_batch *batch)
{
    if (worker->server->topic) return run_topic(worker, topic_step, batch);
    if (worker->server->newton) return run_pass(worker, batch);
    return worker->size.local_steps ? run(worker, local_step, batch) : run_step(worker, batch);
}

double drps_worker_gradient(struct drps_worker *worker, const struct drps_batch *batch)
{
    if (worker->server->topic) return run_topic(worker, topic_gradient, batch);
    return run(worker, gradient_step, batch);
}

static void score(void *ctx, unsigned member)
{
    struct drps_worker *w = ctx;
    size_t first, last;
    drps_worker_share(w, member, &first, &last);
    drps_model_predict(w->model, w->batch, first, last, w->params, w->scores, w->scratch[member]);
}

static void predict(void *ctx, unsigned member)
{
    struct drps_worker *w = ctx;
    pull(w, member);
    drps_team_barrier(w->team);
    score(w, member);
}

void drps_worker_predict(struct drps_worker *worker, const struct drps_batch *batch)
{
    worker->batch = batch;
    drps_team_run(worker->team, worker->server->topic ? topic_predict : predict, worker);
}

void drps_worker_score(struct drps_worker *worker, const struct drps_batch *batch)
{
    worker->batch = batch;
    drps_team_run(worker->team, worker->server->topic ? topic_score : score, worker);
}

int drps_worker_explain(struct drps_worker *worker, const struct drps_batch *batch)
{
    if (worker->why.code || worker->server->topic) return 0;
    return drps_model_explain(worker->model, batch, NULL, worker->scores, 0, worker->scratch[0],
                              &worker->why);
}

double drps_worker_slopes(struct drps_worker *worker, const struct drps_batch *batch,
                          float *slopes_out)
{
    const uint64_t start = drps_clock_ns();
    drps_worker_score(worker, batch);
    const double loss =
        drps_model_slopes(worker->model, batch, worker->scores, slopes_out, worker->scratch[0]);
    worker->compute_ns += drps_emulate_wait(&worker->emulate, start);
    return checked(worker, batch, loss);
}
