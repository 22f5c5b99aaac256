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
    server->row_bytes = drps_optim_row_floats(optim, model->dim) * sizeof(float);
}

static uint64_t placed_id(const struct drps_server *server, uint64_t row)
{
    return server->holds ? drps_plan_placed_id(server->holds, row) : server->first_row + row;
}

uint32_t drps_server_common_rows(const struct drps_server *server)
{
    const uint32_t common = drps_model_common_rows(&server->model);
    if (server->holds) return common;
    return server->first_row < common ? common - (uint32_t)server->first_row : 0;
}

void drps_server_fresh(const struct drps_server *server, uint64_t first, size_t n, void *rows_out)
{
    const struct drps_model *model = &server->model;
    for (size_t i = 0; i < n; i++) {
        float *row = (float *)(void *)((char *)rows_out + i * server->row_bytes);
        const uint64_t id = placed_id(server, first + i);
        drps_model_init_row(model, id, row);
        drps_optim_init_row(&server->optim, model->dim, id < drps_model_common_rows(model), row);
    }
}

/* The rows of [first, first + n) that are the rank's own: *n_out from *from_out on. */
static void own_part(const struct drps_server *server, uint64_t first, size_t n, uint64_t *from_out,
                     size_t *n_out)
{
    const struct drps_row_range *own = &server->own;
    const uint64_t end = own->first + own->rows, last = first + n < end ? first + n : end;
    *from_out = first > own->first ? first : own->first;
    *n_out = *from_out < last ? (size_t)(last - *from_out) : 0;
}

/* Rows of other ranks arrive before they are used; the intercept is everybody's. */
static int init_held(const struct drps_server *server, uint64_t first, size_t n, void *rows_out,
                     struct drps_err *err)
{
    uint64_t from;
    size_t own;
    drps_server_fresh(server, first, n, rows_out);
    if (!first && server->intercept) memcpy(rows_out, server->intercept, server->row_bytes);
    own_part(server, first, n, &from, &own);
    if (!own) return 0;
    return server->saved(server->saved_ctx, from - server->own.first, own,
                         (char *)rows_out + (from - first) * server->row_bytes, err);
}

/* Fills rows that are used first: those that an earlier run has saved, or fresh ones. */
static int init_rows(void *ctx, uint64_t first, size_t n, void *rows_out, struct drps_err *err)
{
    const struct drps_server *server = ctx;
    int rc = 0;
    if (server->saved && server->holds) return init_held(server, first, n, rows_out, err);
    if (server->saved)
        rc = server->saved(server->saved_ctx, first, n, rows_out, err);
    else
        drps_server_fresh(server, first, n, rows_out);
    drps_newton_number(&server->optim, server->model.dim, first, n, rows_out);
    return rc;
}

/* A visit of all rows that passes on those of the rank. */
struct own_visit {
    const struct drps_server *server;
    drps_row_visit visit;
    void *ctx;
};

static int visit_own(void *ctx, uint64_t first, size_t n, const void *rows, struct drps_err *err)
{
    const struct own_visit *v = ctx;
    uint64_t from;
    size_t own;
    own_part(v->server, first, n, &from, &own);
    if (!own) return 0;
    return v->visit(v->ctx, from - v->server->own.first, own,
                    (const char *)rows + (from - first) * v->server->row_bytes, err);
}

int drps_server_scan(const struct drps_server *server, size_t bytes, drps_row_visit visit,
                     void *ctx, struct drps_err *err)
{
    struct own_visit own = {server, visit, ctx};
    return server->holds ? server->ops->scan(server->store, bytes, visit_own, &own, err)
                         : server->ops->scan(server->store, bytes, visit, ctx, err);
}

int drps_server_scan_parameters(const struct drps_server *server, drps_row_visit visit, void *ctx,
                                struct drps_err *err)
{
    struct drps_newton_visit accepted = {server->newton, visit, ctx};
    struct drps_topic_visit dictionary = {server->topic, visit, ctx};
    if (server->topic)
        return drps_server_scan(server, server->row_bytes, drps_topic_visit_dictionary, &dictionary,
                                err);
    if (!server->newton)
        return drps_server_scan(server, server->model.dim * sizeof(float), visit, ctx, err);
    return drps_server_scan(server, drps_newton_accepted_bytes(server->newton),
                            drps_newton_visit_accepted, &accepted, err);
}

size_t drps_server_scan_bytes(const struct drps_server *server)
{
    return drps_optim_is_newton(server->optim.kind) ? server->row_bytes
                                                    : server->model.dim * sizeof(float);
}

void drps_server_configure(struct drps_server *server, struct drps_store_config *config,
                           uint64_t rows)
{
    config->rows = rows;
    config->row_bytes = server->row_bytes;
    config->scan_bytes = drps_server_scan_bytes(server);
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
    const uint32_t common = drps_server_common_rows(server);
    if (server->topic) {
        drps_topic_change_rows(server->topic, rows, last, grads);
        return;
    }
    if (common && (model->fixed_bias || model->late_bias) && !first) first = 1;
    drps_optim_step(&server->optim, model->dim, rows, first, last, grads, touches, common);
}
