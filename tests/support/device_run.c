#include "support/device_run.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/step/device/drps_device_worker.h"

enum { TURNS = 2, LEFT = 2 /* batches under way while others are trained */ };

struct run {
    struct drps_device_use *use;
    struct drps_server server;
    struct drps_device_worker *worker;
    void *rows;           /* of the device */
    char *pinned, *plain; /* what was read of them, and those of the twins */
    size_t bytes;
    float *scores, *found;
};

static void must(const struct drps_device_use *use, int rc)
{
    if (rc < 0) fail_msg("%s", use->why);
}

static void *some(size_t n, size_t size)
{
    void *p = calloc(n ? n : 1, size);
    assert_non_null(p);
    return p;
}

static void open_worker(struct run *run, const struct drps_plan_info *info)
{
    struct drps_device_worker_needs needs;
    struct drps_err err = DRPS_ERR_INIT;
    drps_device_worker_needs(run->use->ops, &run->server.model, &run->server.optim, info, &needs);
    assert_true(needs.device_bytes > 0 && needs.keep_most_bytes > 0);
    const struct drps_device_worker_parts parts = {.use = run->use,
                                                   .server = &run->server,
                                                   .info = info,
                                                   .keep_bytes = needs.keep_most_bytes / 4,
                                                   .keep_host_bytes = needs.keep_most_bytes / 4};
    if (drps_device_worker_open(&parts, &run->worker, &err) < 0) fail_msg("%s", err.text);
}

static void open_run(struct run *run, struct drps_device_use *use, const struct drps_server *server,
                     const struct drps_plan_info *info, uint64_t rows)
{
    void *pinned;
    const size_t bytes = (size_t)rows * server->row_bytes;
    const size_t scores = info->max_batch_samples * server->model.outputs;
    *run = (struct run){.use = use, .server = *server, .bytes = bytes};
    must(use, use->ops->alloc(use->dev, bytes, &run->rows, use->why));
    must(use, use->ops->pin(use->dev, bytes, &pinned, use->why));
    run->pinned = pinned;
    run->plain = some(1, bytes);
    run->scores = some(scores, sizeof(float));
    run->found = some(scores, sizeof(float));
    drps_server_fresh(&run->server, 0, rows, run->plain);
    memcpy(run->pinned, run->plain, bytes);
    must(use,
         use->ops->upload(use->dev, DRPS_DEVICE_COMPUTE, run->rows, run->pinned, bytes, use->why));
    open_worker(run, info);
}

static void close_run(struct run *run)
{
    drps_device_worker_close(run->worker);
    run->use->ops->release(run->use->dev, run->rows);
    run->use->ops->unpin(run->use->dev, run->pinned);
    free(run->plain);
    free(run->scores);
    free(run->found);
}

static void read_rows(struct run *run)
{
    struct drps_device_use *use = run->use;
    must(use, use->ops->download(use->dev, DRPS_DEVICE_COMPUTE, run->pinned, run->rows, run->bytes,
                                 use->why));
    must(use, use->ops->mark(use->dev, DRPS_DEVICE_COMPUTE, DRPS_DEVICE_EVENTS_STORE, use->why));
    must(use, use->ops->wait(use->dev, DRPS_DEVICE_EVENTS_STORE, use->why));
}

static struct drps_rows rows_of(const struct run *run, void *base, const struct device_batch *batch)
{
    return (struct drps_rows){
        .base = base, .stride = run->server.row_bytes, .index = batch->ids, .n = batch->b->rows};
}

static void check_close(const char *what, size_t i, double expected, double found)
{
    if (fabs(expected - found) <= 2e-5 + 2e-4 * fabs(expected)) return;
    if (isnan(expected) && isnan(found)) return;
    fail_msg("%s %zu: expected %.9g, found %.9g", what, i, expected, found);
}

/* Scores, and of a batch that trains the loss and the gradient: of nets by the host's passes, which
 * have tests of their own. */
static double plain_gradient(struct run *run, const struct drps_batch *b, int trains,
                             const float *params, float *grads)
{
    const struct drps_model *model = &run->server.model;
    void *scratch = some(1, drps_model_scratch_bytes(model, b->samples, b->rows));
    double loss = 0;
    if (model->layers.n && trains)
        loss = drps_model_gradient(model, b, 0, b->samples, params, grads, run->scores, scratch);
    else if (model->layers.n)
        drps_model_predict(model, b, 0, b->samples, params, run->scores, scratch);
    else if (trains)
        loss = drps_model_gradient_ref(model, b, 0, b->samples, params, grads, run->scores, NULL);
    else
        drps_model_predict_ref(model, b, 0, b->samples, params, run->scores, NULL);
    free(scratch);
    return loss;
}

/* One step by the twins. Returns the loss. */
static double plain_step(struct run *run, const struct device_batch *batch, int trains)
{
    const struct drps_model *model = &run->server.model;
    const struct drps_batch *b = batch->b;
    const struct drps_rows rows = rows_of(run, run->plain, batch);
    float *params = some(b->rows, model->dim * sizeof(float));
    float *grads = some(b->rows, model->dim * sizeof(float));
    uint32_t *touches = some(b->rows, sizeof(*touches));
    drps_rows_gather(&rows, model->dim, 0, b->rows, params);
    const double loss = plain_gradient(run, b, trains, params, grads);
    drps_batch_touches(b, 0, b->samples, model->has_bias, touches);
    if (trains)
        drps_optim_step_ref(&run->server.optim, model->dim, &rows, model->fixed_bias ? 1 : 0,
                            b->rows, grads, touches, drps_model_common_rows(model));
    free(params);
    free(grads);
    free(touches);
    return loss;
}

static void train(struct run *run, const struct device_batch *batches, size_t n)
{
    struct drps_err err = DRPS_ERR_INIT;
    double *losses = some(TURNS * n, sizeof(*losses)), loss;
    size_t at = 0;
    int rc = 0;
    for (size_t i = 0; i < TURNS * n && rc >= 0; i++) {
        const struct device_batch *batch = &batches[i % n];
        run->server.rows = rows_of(run, run->rows, batch);
        losses[i] = plain_step(run, batch, 1);
        rc = drps_device_worker_train(run->worker, i % n, batch->b, &err);
        for (; rc >= 0; at++) {
            rc = drps_device_worker_take(run->worker, i + 1 == TURNS * n ? 0 : LEFT, &loss, &err);
            if (rc != 1) break;
            check_close("loss of batch", at, losses[at], loss);
        }
    }
    if (rc < 0) fail_msg("%s", err.text);
    assert_int_equal(at, TURNS * n);
    free(losses);
}

static void predict(struct run *run, uint64_t step, const struct device_batch *batch)
{
    struct drps_err err = DRPS_ERR_INIT;
    run->server.rows = rows_of(run, run->rows, batch);
    (void)plain_step(run, batch, 0);
    if (drps_device_worker_predict(run->worker, step, batch->b, run->found, &err) < 0)
        fail_msg("%s", err.text);
    for (size_t i = 0; i < batch->b->samples * run->server.model.outputs; i++)
        check_close("score", i, (double)run->scores[i], (double)run->found[i]);
}

static void compute(struct run *run, const struct device_batch *batches, size_t n)
{
    train(run, batches, n);
    predict(run, n, &batches[n]);
    read_rows(run);
}

void device_run(struct drps_device_use *use, const struct drps_server *server,
                const struct drps_plan_info *info, uint64_t rows,
                const struct device_batch *batches, size_t n)
{
    struct run one, two;
    open_run(&one, use, server, info, rows);
    compute(&one, batches, n);
    for (size_t i = 0; i < one.bytes / sizeof(float); i++)
        check_close("float", i, (double)((float *)(void *)one.plain)[i],
                    (double)((float *)(void *)one.pinned)[i]);
    open_run(&two, use, server, info, rows);
    compute(&two, batches, n);
    assert_memory_equal(one.pinned, two.pinned, one.bytes);
    close_run(&one);
    close_run(&two);
}
