/* The server's calls: rows of a step are opened, read out, stepped with summed gradients, and
 * closed. It needs a row store. */
#include "engine/step/drps_server.h"

#include <string.h>

enum { SUM_BLOCK = 512 }; /* floats that are summed in L1 */

void drps_server_init(struct drps_server *server, const struct drps_model *model,
                      const struct drps_optim *optim)
{
    memset(server, 0, sizeof(*server));
    server->model = *model;
    server->optim = *optim;
    server->row_bytes = (size_t)model->dim * (1 + drps_optim_states(optim)) * sizeof(float);
}

void drps_server_fresh(const struct drps_server *server, uint64_t first, size_t n, void *rows_out)
{
    const struct drps_model *model = &server->model;
    for (size_t i = 0; i < n; i++) {
        float *row = (float *)(void *)((char *)rows_out + i * server->row_bytes);
        const uint64_t id = server->first_row + first + i;
        drps_model_init_row(model, id, row);
        drps_optim_init_row(&server->optim, model->dim, model->has_bias && id == 0, row);
    }
}

/* Fills rows that are used first: those that an earlier run has saved, or fresh ones. */
static int init_rows(void *ctx, uint64_t first, size_t n, void *rows_out, struct drps_err *err)
{
    const struct drps_server *server = ctx;
    if (server->saved) return server->saved(server->saved_ctx, first, n, rows_out, err);
    drps_server_fresh(server, first, n, rows_out);
    return 0;
}

void drps_server_configure(struct drps_server *server, struct drps_store_config *config,
                           uint64_t rows)
{
    config->rows = rows;
    config->row_bytes = server->row_bytes;
    config->scan_bytes = server->model.dim * sizeof(float); /* a model holds no optimizer's state */
    config->init = init_rows;
    config->init_ctx = server;
}

int drps_server_open(struct drps_server *server, const struct drps_store_ops *ops,
                     struct drps_store_config *config, uint64_t rows, struct drps_err *err)
{
    drps_server_configure(server, config, rows);
    server->ops = ops;
    return ops->open(config, &server->store, err);
}

void drps_server_close(struct drps_server *server)
{
    if (!server || !server->store) return;
    server->ops->close(server->store);
    server->store = NULL;
}

int drps_server_open_step(struct drps_server *server, const uint32_t *ids, size_t n,
                          struct drps_err *err)
{
    int rc = server->ops->step_open(server->store, server->steps, ids, n, &server->rows, err);
    if (rc == 0) server->steps++;
    return rc;
}

int drps_server_close_step(struct drps_server *server, int changed, struct drps_err *err)
{
    return drps_server_close_one(server, server->steps - 1, changed, err);
}

int drps_server_close_one(struct drps_server *server, uint64_t step, int changed,
                          struct drps_err *err)
{
    return server->ops->step_close(server->store, step, changed, err);
}

void drps_server_pull(const struct drps_server *server, size_t first, size_t last, float *params)
{
    drps_rows_gather(&server->rows, server->model.dim, first, last, params);
}

static void add_floats(size_t n, float *restrict sum, const float *restrict more)
{
    for (size_t i = 0; i < n; i++)
        sum[i] += more[i];
}

static void add_counts(size_t n, uint32_t *restrict sum, const uint32_t *restrict more)
{
    for (size_t i = 0; i < n; i++)
        sum[i] += more[i];
}

/* Sums floats [i, i + n) of the arrays, in their order, whichever gets the sum. */
static void sum_block(const struct drps_gradients *g, size_t i, size_t n, unsigned into)
{
    float sum[SUM_BLOCK];
    memcpy(sum, g->grads[0] + i, n * sizeof(*sum));
    for (unsigned k = 1; k < g->n; k++)
        add_floats(n, sum, g->grads[k] + i);
    memcpy(g->grads[into] + i, sum, n * sizeof(*sum));
}

void drps_gradients_sum(uint32_t dim, size_t first, size_t last, const struct drps_gradients *g,
                        unsigned into)
{
    const size_t end = last * dim;
    if (g->n == 1) return;
    for (size_t i = first * dim; i < end; i += SUM_BLOCK)
        sum_block(g, i, end - i < SUM_BLOCK ? end - i : SUM_BLOCK, into);
    for (unsigned k = 0; g->touches && k < g->n; k++)
        if (k != into) add_counts(last - first, g->touches[into] + first, g->touches[k] + first);
}

void drps_server_push(struct drps_server *server, size_t first, size_t last,
                      const struct drps_gradients *g, unsigned into)
{
    drps_gradients_sum(server->model.dim, first, last, g, into);
    drps_server_step(server, &server->rows, first, last, g->grads[into],
                     g->touches ? g->touches[into] : NULL);
}

void drps_server_step(const struct drps_server *server, const struct drps_rows *rows, size_t first,
                      size_t last, const float *grads, const uint32_t *touches)
{
    const struct drps_model *model = &server->model;
    const int has_bias = model->has_bias && !server->first_row;
    if (has_bias && model->fixed_bias && !first) first = 1;
    drps_optim_step(&server->optim, model->dim, rows, first, last, grads, touches, has_bias);
}
