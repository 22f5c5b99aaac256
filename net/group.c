/*
 * Barrier, broadcast and gather, over rank 0: for checks at the start and ends of phases, so plain
 * before fast. Every message carries how many calls its rank has made before, so that ranks that
 * are in different calls find out.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "net/drps_transport.h"

static int send_to(struct drps_net *net, uint32_t to, uint8_t type, const void *data, size_t bytes,
                   uint32_t timeout_ms, struct drps_err *err)
{
    const struct drps_piece piece = {data, bytes};
    const struct drps_net_send send = {
        .to = to, .type = type, .round = net->group_calls, .pieces = &piece, .n = 1};
    return drps_net_send_part(net, &send, WIRE_GROUP, timeout_ms, err);
}

static int receive_from(struct drps_net *net, uint32_t from, uint8_t type, void *out, size_t bytes,
                        uint32_t timeout_ms, struct drps_err *err)
{
    struct drps_net_message *m;
    int rc = drps_net_receive_part(net, WIRE_GROUP, from, timeout_ms, &m, err);
    if (rc < 0) return rc;
    if (m->type != type || m->round != net->group_calls || m->bytes != bytes)
        rc = drps_err_set(err, DRPS_E_PROTO,
                          "%s is in another call of the group: it sent type %u, call %llu, %zu "
                          "bytes; expected %u, %llu, %zu",
                          net->peers[from].name, m->type, (unsigned long long)m->round, m->bytes,
                          type, (unsigned long long)net->group_calls, bytes);
    else if (bytes)
        memcpy(out, m->data, bytes);
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
    if (net->o.rank != root)
        return receive_from(net, root, WIRE_BROADCAST, data, bytes, timeout_ms, err);
    int rc = 0;
    for (uint32_t r = 0; r < net->o.count && rc == 0; r++) {
        if (r == root) continue;
        rc = send_to(net, r, WIRE_BROADCAST, data, bytes, timeout_ms, err);
        rc = unless_missing(net, r, rc, err);
    }
    return rc;
}

int drps_net_broadcast(struct drps_net *net, uint32_t root, void *data, size_t bytes,
                       uint32_t timeout_ms, struct drps_err *err)
{
    if (root >= net->o.count) return drps_err_set(err, -EINVAL, "broadcast of rank %u", root);
    int rc = size_ok(bytes, 1, err);
    if (rc == 0) rc = broadcast(net, root, data, bytes, timeout_ms, err);
    net->group_calls++;
    return rc;
}

int drps_net_gather(struct drps_net *net, const void *mine, size_t bytes, void *all_out,
                    uint32_t timeout_ms, struct drps_err *err)
{
    const uint32_t count = net->o.count, rank = net->o.rank;
    unsigned char *all = all_out;
    int rc = size_ok(bytes, count, err);
    if (rc == 0 && rank > 0) rc = send_to(net, 0, WIRE_GATHER, mine, bytes, timeout_ms, err);
    if (rc == 0 && rank == 0) {
        if (bytes) memset(all, 0, count * bytes);
        if (bytes) memcpy(all, mine, bytes);
        for (uint32_t r = 1; r < count && rc == 0; r++) {
            rc = receive_from(net, r, WIRE_GATHER, bytes ? all + r * bytes : NULL, bytes,
                              timeout_ms, err);
            rc = unless_missing(net, r, rc, err);
        }
    }
    if (rc == 0) rc = broadcast(net, 0, all, bytes * count, timeout_ms, err);
    net->group_calls++;
    return rc;
}

int drps_net_barrier(struct drps_net *net, uint32_t timeout_ms, struct drps_err *err)
{
    return drps_net_gather(net, NULL, 0, NULL, timeout_ms, err);
}
