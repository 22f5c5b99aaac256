/*
 * All-reduce: ranks add up their vectors, and each gets the sums.
 *
 *   ring  reduce-scatter and all-gather (Patarasuk and Yuan, "Bandwidth optimal all-reduce
 *         algorithms for clusters of workstations", JPDC 2009). Of P ranks each sends
 *         2 (P - 1) / P of the vector, in 2 (P - 1) steps
 *   tree  reduce to the first rank, then broadcast, along a binomial tree (Thakur, Rabenseifner and
 *         Gropp, "Optimization of collective communication operations in MPICH", 2005): each value
 *         crosses at most 2 ceil(log2 P) links, one after another, and the first rank sends the
 *         vector ceil(log2 P) times
 *   in order
 *         as the ring, each rank sends 2 (P - 1) / P of the vector, but in two steps: its values
 *         of each chunk go to the rank that sums this chunk, and the sums from there to all
 *
 * What is added in which order depends on the number of ranks, on the number of values and on the
 * way, never on time; the ways differ by rounding. Each sum is made by one rank and copied by
 * the others, so that all have the same bits, those of NaN included. With v[p] the vector of the
 * rank at place p of the list, and places modulo P:
 *
 *   ring  the vector is cut into P chunks; chunk c has n / P values, and one more if c < n mod P.
 *         A value of chunk c is ((v[c] + v[c + 1]) + v[c + 2]) + ... + v[c + P - 1]
 *   tree  place p begins with v[p] and adds what the places p + 1, p + 2, p + 4, ... have summed,
 *         in this order, for the powers of two that are less than the lowest bit of p (at place 0:
 *         than P) while there are such places
 *   in order
 *         chunks are those of the ring. A value is (((0 + v[0]) + v[1]) + v[2]) + ... +
 *         v[P - 1]: what one rank gets that adds up the vectors of all in the order of the list
 *
 * This is a call of a group, as those of drps_net.h: one thread of a rank makes them all. Its
 * messages go to the group's part and have at most DRPS_NET_GROUP_BYTES; messages to other parts
 * may be under way. No queue is too short: see allreduce.c.
 */
#ifndef DRPS_NET_ALLREDUCE_H
#define DRPS_NET_ALLREDUCE_H

#include <stddef.h>
#include <stdint.h>

#include "base/drps_err.h"
#include "net/drps_net.h"

enum drps_net_float { DRPS_NET_FLOAT32, DRPS_NET_FLOAT64 };
enum drps_net_way { DRPS_NET_BY_SIZE, DRPS_NET_RING, DRPS_NET_TREE, DRPS_NET_IN_ORDER };

/* What is summed; the same on all its ranks, but for the values. */
struct drps_net_allreduce {
    void *values; /* [n] of `type`, aligned for it: the sums take their place. NULL if n is 0 */
    size_t n;     /* at most DRPS_NET_MESSAGE_MAX bytes */
    enum drps_net_float type;
    enum drps_net_way way;
    /* Those that take part, ascending; others do not call, and their messages of the group are as
     * before. NULL: all, and `count` is not read. */
    const uint32_t *ranks; /* [count] borrowed until return */
    uint32_t count;
    uint64_t round; /* which sum it is, as the caller counts: another for each */
};

/*
 * Sum over ranks. timeout_ms bounds each message's wait.
 *   -ENOMEM        in order alone: no room for a message's sums
 *   -EINVAL        the list does not ascend, lacks this rank or has one that is not there; or the
 *                  vector is too long
 *   -EBUSY         another thread of this rank is in a call of the group
 *   DRPS_E_PROTO   a rank is in another call of the group, or sums something else
 *   DRPS_E_PEER    a rank has left or was lost: the text names it
 *   -ETIMEDOUT and the others of drps_net_receive()
 * After -EINVAL, -EBUSY and -ENOMEM nothing has been sent. After any other error the values are
 * partly sums, and messages may be left over, so that no call of the group can follow: close the
 * net.
 */
DRPS_MUST_CHECK
int drps_net_allreduce(struct drps_net *net, const struct drps_net_allreduce *sum,
                       uint32_t timeout_ms, struct drps_err *err);

/*
 * Returns how long a sum of `bytes` bytes, at most DRPS_NET_MESSAGE_MAX, of `count` ranks takes, in
 * bytes that a link moves in this time: steps * (most bytes that a rank sends in a step + 16 KiB).
 * 16 KiB is about what a link of 1 Gbit/s moves in the time that a message needs to arrive.
 */
uint64_t drps_net_allreduce_cost(enum drps_net_way way, uint32_t count, uint64_t bytes);

/* Returns what DRPS_NET_BY_SIZE is for such a vector: of ring and tree the one that costs less, and
 * the ring if it is the same. So it is the ring for up to three ranks, and for long vectors. */
enum drps_net_way drps_net_allreduce_way(uint32_t count, uint64_t bytes);

/* Returns how many bytes of payload the rank at `place` of `count` sends for n values by `way`. */
uint64_t drps_net_allreduce_bytes(enum drps_net_way way, uint32_t count, uint32_t place, uint64_t n,
                                  enum drps_net_float type);

/* Returns how many of these the rank at place `from` sends to the one at another place, in order.
 */
uint64_t drps_net_allreduce_bytes_to(uint32_t count, uint32_t from, uint32_t to, uint64_t n,
                                     enum drps_net_float type);

#endif
