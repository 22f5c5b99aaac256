/* Replicas that differ meet. */
#include "engine/cluster/sv/average.h"

#include "net/drps_allreduce.h"

enum { CHUNK = 1 << 22 }; /* values of an all-reduce */

static size_t values_of(uint64_t rows, size_t row_bytes)
{
    return (size_t)rows * (row_bytes / sizeof(float));
}

int replica_average(struct replica *r, struct drps_net *net, uint64_t *sums_done, uint32_t wait_ms,
                    struct drps_err *err)
{
    const size_t n = values_of(r->rows, r->row_bytes);
    const float share = 1 / (float)drps_net_count(net);
    float *values = (float *)(void *)r->data;
    int rc = 0;
    for (size_t at = 0; at < n && rc == 0; at += CHUNK) {
        const struct drps_net_allreduce sum = {.values = values + at,
                                               .n = n - at < CHUNK ? n - at : CHUNK,
                                               .type = DRPS_NET_FLOAT32,
                                               .way = DRPS_NET_RING,
                                               .round = (*sums_done)++};
        rc = drps_net_allreduce(net, &sum, wait_ms, err);
    }
    for (size_t i = 0; i < n && rc == 0; i++)
        values[i] *= share;
    return rc;
}

uint64_t replica_average_bytes(uint64_t rows, size_t row_bytes, uint32_t ranks, uint32_t place)
{
    const size_t n = values_of(rows, row_bytes);
    uint64_t bytes = 0;
    for (size_t at = 0; at < n; at += CHUNK)
        bytes += drps_net_allreduce_bytes(DRPS_NET_RING, ranks, place,
                                          n - at < CHUNK ? n - at : CHUNK, DRPS_NET_FLOAT32);
    return bytes;
}

int replica_rotate(struct replica *r, struct drps_net *net, uint32_t wait_ms, struct drps_err *err)
{
    const uint32_t rank = drps_net_rank(net), count = drps_net_count(net);
    int rc = 0;
    for (uint64_t at = 0, n = 0; at < r->rows && rc == 0; at += n) {
        rc = replica_send_chunk(r, net, (rank + 1) % count, at, r->rows, wait_ms, err);
        if (rc == 0)
            rc = replica_receive_chunk(r, net, (rank + count - 1) % count, at, r->rows, &n, wait_ms,
                                       err);
    }
    return rc;
}
