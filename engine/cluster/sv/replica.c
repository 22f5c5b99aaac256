/* All rows of a model on one rank. */
#include "engine/cluster/sv/replica.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"
#include "engine/cluster/drps_cluster.h"
#include "engine/cluster/drps_messages.h"

int replica_open(struct replica *r, const struct drps_server *server, uint64_t rows,
                 struct drps_err *err)
{
    *r = (struct replica){.server = server, .rows = rows, .row_bytes = server->row_bytes};
    r->data = drps_array_new((size_t)rows, r->row_bytes);
    return r->data ? 0
                   : drps_err_set(err, -ENOMEM, "no memory for %llu rows of the model",
                                  (unsigned long long)rows);
}

void replica_close(struct replica *r)
{
    free(r->data);
    r->data = NULL;
}

/* ---- Filling ---- */

struct filling {
    struct replica *replica;
    uint64_t first; /* of the rank's own rows */
};

static int visit(void *ctx, uint64_t first, size_t n, const void *rows, struct drps_err *err)
{
    const struct filling *f = ctx;
    (void)err;
    memcpy(f->replica->data + (f->first + first) * f->replica->row_bytes, rows,
           n * f->replica->row_bytes);
    return 0;
}

/* Rows [first, end), or as many of them as a message has. Returns how many. */
static uint64_t chunk_of(const struct replica *r, uint64_t first, uint64_t end)
{
    const uint64_t most = DRPS_CLUSTER_COPY_BYTES / r->row_bytes, left = end - first;
    return left < most ? left : most ? most : 1;
}

int replica_send_chunk(const struct replica *r, struct drps_net *net, uint32_t to, uint64_t first,
                       uint64_t end, uint32_t wait_ms, struct drps_err *err)
{
    const struct drps_piece piece = {r->data + first * r->row_bytes,
                                     (size_t)chunk_of(r, first, end) * r->row_bytes};
    const struct drps_net_send send = {.to = to,
                                       .part = DRPS_NET_WORKER,
                                       .type = DRPS_MESSAGE_REPLICA,
                                       .round = first,
                                       .pieces = &piece,
                                       .n = 1};
    return drps_net_send(net, &send, wait_ms, err);
}

int replica_receive_chunk(struct replica *r, struct drps_net *net, uint32_t from, uint64_t first,
                          uint64_t end, uint64_t *n_out, uint32_t wait_ms, struct drps_err *err)
{
    struct drps_net_message *m;
    int rc = drps_net_receive(net, DRPS_NET_WORKER, from, wait_ms, &m, err);
    if (rc < 0) return rc;
    *n_out = chunk_of(r, first, end);
    if (m->type != DRPS_MESSAGE_REPLICA || m->round != first || m->bytes != *n_out * r->row_bytes)
        rc = drps_err_set(err, DRPS_E_PROTO,
                          "rank %u sent message %u of %zu bytes, where its rows from %llu on were "
                          "due",
                          from, m->type, m->bytes, (unsigned long long)first);
    else
        memcpy(r->data + first * r->row_bytes, m->data, m->bytes);
    drps_net_message_free(m);
    return rc;
}

/* The next rows of this rank, to all others. */
static int send_to_all(const struct replica *r, struct drps_net *net, uint64_t first, uint64_t end,
                       uint32_t wait_ms, struct drps_err *err)
{
    const uint32_t rank = drps_net_rank(net), count = drps_net_count(net);
    int rc = 0;
    for (uint32_t i = 1; i < count && rc == 0; i++)
        rc = replica_send_chunk(r, net, (rank + i) % count, first, end, wait_ms, err);
    return rc;
}

/* One rank's rows, to all others. */
static int share_rows(struct replica *r, struct drps_net *net, uint32_t from,
                      const struct drps_row_range *own, uint32_t wait_ms, struct drps_err *err)
{
    const uint64_t end = own->first + own->rows;
    int rc = 0;
    for (uint64_t at = own->first, n = 0; at < end && rc == 0; at += n) {
        n = chunk_of(r, at, end);
        if (from == drps_net_rank(net))
            rc = send_to_all(r, net, at, end, wait_ms, err);
        else
            rc = replica_receive_chunk(r, net, from, at, end, &n, wait_ms, err);
    }
    return rc;
}

int replica_fill(struct replica *r, struct drps_net *net, const struct drps_row_range *own,
                 uint32_t wait_ms, struct drps_err *err)
{
    const uint32_t rank = drps_net_rank(net);
    struct filling f = {r, own[rank].first};
    int rc = own[rank].rows ? drps_server_scan(r->server, 0, visit, &f, err) : 0;
    for (uint32_t from = 0; from < drps_net_count(net) && rc == 0; from++)
        rc = share_rows(r, net, from, &own[from], wait_ms, err);
    return rc;
}

/* ---- Steps ---- */

void replica_gather(const struct replica *r, const uint32_t *ids, size_t n, float *params)
{
    const struct drps_rows rows = {r->data, r->row_bytes, ids, n};
    drps_rows_gather(&rows, r->server->model.dim, 0, n, params);
}

void replica_step(struct replica *r, const uint32_t *ids, size_t n, const float *grads,
                  const uint32_t *touches)
{
    const struct drps_rows rows = {r->data, r->row_bytes, ids, n};
    const size_t intercept = r->server->model.has_bias && n && ids[0] == 0;
    drps_optim_step(&r->server->optim, r->server->model.dim, &rows, 0, n, grads, touches,
                    intercept);
}

void replica_give(const struct replica *r, uint64_t first, const uint32_t *ids, size_t n,
                  const struct drps_rows *rows)
{
    for (size_t i = 0; i < n; i++)
        memcpy(drps_row_at(rows, i), r->data + (first + ids[i]) * r->row_bytes, r->row_bytes);
}
