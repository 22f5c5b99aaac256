/*
 * What a server makes of gradients that come: as they are, filtered, or what was held back of some
 * rows alone. With filters a worker sends those of its own batches to other ranks filtered, and all
 * else whole.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"
#include "engine/cluster/async/parts.h"

struct async_gradients {
    const struct async_job *job;
    struct drps_push_reader *reader; /* own, as is all that follows; NULL: nothing is filtered */
    struct drps_held held;           /* [part rows] */
    uint32_t *frames, *zeros;        /* [part rows] of the rows that were held back */
};

static int is_filtered(const struct async_job *job, const struct drps_net_message *m)
{
    return job->filters && m->from != job->rank && m->tag == m->from;
}

int drps_async_gradient_is_due(const struct async_job *job, const struct drps_net_message *m)
{
    return m->type == (is_filtered(job, m) ? DRPS_MESSAGE_FILTERED : DRPS_MESSAGE_GRADIENT);
}

int drps_async_held_is_due(const struct async_job *job, uint32_t from, uint32_t share)
{
    return job->filters && share != job->rank && share != from;
}

static int read_filtered(const struct async_gradients *g, const struct drps_net_message *m,
                         size_t rows, struct drps_message_here *out, struct drps_err *err)
{
    const struct drps_push_shape shape = {rows, g->job->dim, g->job->touches};
    int rc =
        drps_push_decode(g->reader, &shape, m->data, m->bytes, &out->values, &out->touches, err);
    if (rc == 0) return 0;
    return drps_err_context(err, "rank %u, step %llu", m->from, (unsigned long long)m->round);
}

int drps_async_gradient_read(const struct async_gradients *g, const struct drps_net_message *m,
                             size_t rows, struct drps_message_here *out, struct drps_err *err)
{
    const struct async_job *job = g->job;
    *out = (struct drps_message_here){.values = m->data};
    if (is_filtered(job, m)) return read_filtered(g, m, rows, out, err);
    if (m->bytes != drps_async_gradient_bytes(job, m->from, rows))
        return drps_async_undue(m, "server", err);
    if (m->from == job->rank)
        memcpy(out, m->data, sizeof(*out));
    else if (job->touches)
        out->touches = (const uint32_t *)m->data + rows * job->dim;
    return 0;
}

int drps_async_held_read(struct async_gradients *g, const struct drps_net_message *m,
                         const struct drps_rows *rows, struct async_held *out, struct drps_err *err)
{
    int rc = drps_held_decode(m->data, m->bytes, rows->n, g->job->dim, &g->held, err);
    if (rc < 0)
        return drps_err_context(err, "rank %u, step %llu", m->from, (unsigned long long)m->round);
    for (size_t i = 0; i < g->held.n; i++)
        g->frames[i] = rows->index[g->held.rows[i]];
    out->rows = *rows;
    out->rows.index = g->frames;
    out->rows.n = g->held.n;
    out->values = g->held.values;
    out->touches = g->zeros;
    out->begins = g->held.n && g->held.rows[0] == 0;
    return 0;
}

int drps_async_gradients_new(const struct async_job *job, struct async_gradients **out,
                             struct drps_err *err)
{
    const struct drps_plan_info *info = &job->o.plan->info;
    const size_t rows = (size_t)drps_async_part_rows(info);
    struct async_gradients *g = *out = calloc(1, sizeof(*g));
    if (!g) return drps_err_set(err, -ENOMEM, "no memory for gradients");
    g->job = job;
    if (!job->filters) return 0;
    const struct drps_push_shape most = drps_push_most(info, job->touches);
    g->reader = drps_push_reader_new(&most);
    g->held.rows = drps_array_new(rows, sizeof(*g->held.rows));
    g->held.values = drps_array_new(rows, job->dim * sizeof(*g->held.values));
    g->frames = drps_array_new(rows, sizeof(*g->frames));
    g->zeros = calloc(rows + 1, sizeof(*g->zeros));
    if (g->reader && g->held.rows && g->held.values && g->frames && g->zeros) return 0;
    return drps_err_set(err, -ENOMEM, "no memory for filtered gradients");
}

void drps_async_gradients_free(struct async_gradients *g)
{
    if (!g) return;
    drps_push_reader_free(g->reader);
    free(g->held.rows);
    free(g->held.values);
    free(g->frames);
    free(g->zeros);
    free(g);
}
