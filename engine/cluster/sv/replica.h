/*
 * A replica: all rows of a model, with the optimizer's state, on one rank, by placed id. Those of
 * the rank's own server are copied to its store after each step, which so stays what it is without
 * replicas. Private to engine/cluster/sv/.
 */
#ifndef DRPS_ENGINE_CLUSTER_SV_REPLICA_H
#define DRPS_ENGINE_CLUSTER_SV_REPLICA_H

#include <stddef.h>
#include <stdint.h>

#include "engine/step/drps_server.h"
#include "net/drps_net.h"

struct replica {
    const struct drps_server *server; /* borrowed */
    uint64_t rows;
    size_t row_bytes;
    char *data; /* own: [rows][row_bytes] */
};

/* Room for so many rows. */
DRPS_MUST_CHECK
int replica_open(struct replica *r, const struct drps_server *server, uint64_t rows,
                 struct drps_err *err);
void replica_close(struct replica *r);

/* All ranks call: each reads its own rows from its store and sends them to the others. `own` says
 * which a rank has, [count]. DRPS_E_PROTO. */
DRPS_MUST_CHECK
int replica_fill(struct replica *r, struct drps_net *net, const struct drps_row_range *own,
                 uint32_t wait_ms, struct drps_err *err);

/* Send rows [first, end), or as many as a message has. */
DRPS_MUST_CHECK
int replica_send_chunk(const struct replica *r, struct drps_net *net, uint32_t to, uint64_t first,
                       uint64_t end, uint32_t wait_ms, struct drps_err *err);

/* Take what another rank has so sent, *n_out rows. DRPS_E_PROTO. */
DRPS_MUST_CHECK
int replica_receive_chunk(struct replica *r, struct drps_net *net, uint32_t from, uint64_t first,
                          uint64_t end, uint64_t *n_out, uint32_t wait_ms, struct drps_err *err);

/* Parameters of rows ids [n] to params [n][dim]. */
void replica_gather(const struct replica *r, const uint32_t *ids, size_t n, float *params);

/* Step rows ids [n], strictly increasing, with grads [n][dim] and touches [n] or NULL. */
void replica_step(struct replica *r, const uint32_t *ids, size_t n, const float *grads,
                  const uint32_t *touches);

/* Copy rows first + ids[i], i < n, to the rows of the server's open step, which are as many. */
void replica_give(const struct replica *r, uint64_t first, const uint32_t *ids, size_t n,
                  const struct drps_rows *rows);

#endif
