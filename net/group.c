/*
 * Barrier, broadcast and gather, over rank 0: for checks at the start and ends of phases, so plain
 * before fast. Every message carries how many calls its rank has made before, so that ranks that
 * are in different calls find out.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "net/drps_transport.h"

int drps_net_group_begin(struct drps_net *net, struct drps_err *err)
{
    if (!atomic_exchange(&net->in_group, 1)) return 0;
    return drps_err_set(err, -EBUSY,
                        "another thread of rank %u is in a call of the group: one makes them all",
                        net->o.rank);
}

void drps_net_group_end(struct drps_net *net)
{
    atomic_store(&net->in_group, 0);
}

int drps_net_group_send(struct drps_net *net, const struct net_call *call, uint32_t to,
                        const void *data, size_t bytes, uint32_t timeout_ms, struct drps_err *err)
{
    const struct drps_piece piece = {data, bytes};
    const struct drps_net_send send = {.to = to,
                                       .type = call->type,
                                       .tag = call->tag,
                                       .round = call->round,
                                       .pieces = &piece,
                                       .n = 1};
    return drps_net_send_part(net, &send, WIRE_GROUP, timeout_ms, err);
}

int drps_net_group_receive(struct drps_net *net, const struct net_call *call, uint32_t from,
                           size_t bytes, uint32_t timeout_ms, struct drps_net_message **message_out,
                           struct drps_err *err)
{
    struct drps_net_message *m;
    int rc = drps_net_receive_part(net, WIRE_GROUP, from, timeout_ms, &m, err);
    *message_out = m;
    if (rc < 0 || (m->type == call->type && m->tag == call->tag && m->round == call->round &&
                   m->bytes == bytes))
        return rc;
    rc = drps_err_set(err, DRPS_E_PROTO,
                      "%s is in another call of the group: it sent type %u, tag %u, call %llu, %zu "
                      "bytes; expected %u, %u, %llu, %zu",
                      net->peers[from].name, m->type, m->tag, (unsigned long long)m->round,
                      m->bytes, call->type, call->tag, (unsigned long long)call->round, bytes);
    drps_net_message_free(m);
    *message_out = NULL;
    return rc;
}

static int receive_from(struct drps_net *net, const struct net_call *call, uint32_t from, void *out,
                        size_t bytes, uint32_t timeout_ms, struct drps_err *err)
{
    struct drps_net_message *m;
    const int rc = drps_net_group_receive(net, call, from, bytes, timeout_ms, &m, err);
    if (rc == 0 && bytes) memcpy(out, m->data, bytes);
    drps_net_message_free(m);
    return rc;
}

/* Nothing, of a rank that is missing. `err` is that of the call before, which failed with rc. */
static int unless_missing(struct drps_net *net, uint32_t rank, int rc, struct drps_err *err)
{
    if (rc != DRPS_E_PEER || !drps_net_is_missing(net, rank)) return rc;
    drps_err_clear(err);
    return 0;
}

static int size_ok(size_t bytes, size_t times, struct drps_err *err)
{
    if (bytes > DRPS_NET_GROUP_BYTES / times)
        return drps_err_set(err, -EINVAL, "%zu times %zu bytes in a group call: at most %d", times,
                            bytes, DRPS_NET_GROUP_BYTES);
    return 0;
}

static int broadcast(struct drps_net *net, uint32_t root, void *data, size_t bytes,
                     uint32_t timeout_ms, struct drps_err *err)
{
    const struct net_call call = {.type = WIRE_BROADCAST, .round = net->group_calls};
    if (net->o.rank != root) return receive_from(net, &call, root, data, bytes, timeout_ms, err);
    int rc = 0;
    for (uint32_t r = 0; r < net->o.count && rc == 0; r++) {
        if (r == root) continue;
        rc = drps_net_group_send(net, &call, r, data, bytes, timeout_ms, err);
        rc = unless_missing(net, r, rc, err);
    }
    return rc;
}

static int gather(struct drps_net *net, const void *mine, size_t bytes, unsigned char *all,
                  uint32_t timeout_ms, struct drps_err *err)
{
    const struct net_call call = {.type = WIRE_GATHER, .round = net->group_calls};
    const uint32_t count = net->o.count;
    if (net->o.rank) return drps_net_group_send(net, &call, 0, mine, bytes, timeout_ms, err);
    if (bytes) memset(all, 0, count * bytes);
    if (bytes) memcpy(all, mine, bytes);
    int rc = 0;
    for (uint32_t r = 1; r < count && rc == 0; r++) {
        rc = receive_from(net, &call, r, bytes ? all + r * bytes : NULL, bytes, timeout_ms, err);
        rc = unless_missing(net, r, rc, err);
    }
    return rc;
}

static void end_call(struct drps_net *net)
{
    net->group_calls++;
    drps_net_group_end(net);
}

int drps_net_broadcast(struct drps_net *net, uint32_t root, void *data, size_t bytes,
                       uint32_t timeout_ms, struct drps_err *err)
{
    if (root >= net->o.count) return drps_err_set(err, -EINVAL, "broadcast of rank %u", root);
    int rc = size_ok(bytes, 1, err);
    if (rc == 0) rc = drps_net_group_begin(net, err);
    if (rc < 0) return rc;
    rc = broadcast(net, root, data, bytes, timeout_ms, err);
    end_call(net);
    return rc;
}

int drps_net_gather(struct drps_net *net, const void *mine, size_t bytes, void *all_out,
                    uint32_t timeout_ms, struct drps_err *err)
{
    int rc = size_ok(bytes, net->o.count, err);
    if (rc == 0) rc = drps_net_group_begin(net, err);
    if (rc < 0) return rc;
    rc = gather(net, mine, bytes, all_out, timeout_ms, err);
    if (rc == 0) rc = broadcast(net, 0, all_out, bytes * net->o.count, timeout_ms, err);
    end_call(net);
    return rc;
}

int drps_net_barrier(struct drps_net *net, uint32_t timeout_ms, struct drps_err *err)
{
    return drps_net_gather(net, NULL, 0, NULL, timeout_ms, err);
}
