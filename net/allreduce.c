/*
 * All-reduce: ring, tree and in order. drps_allreduce.h has what they are and in which order they
 * add.
 *
 * Vectors go in messages of at most DRPS_NET_GROUP_BYTES. In each step all ranks of a ring send and
 * receive the same number of them, of which some may be empty; so it is in order. Each message
 * carries a mix of what is summed (tag) and the caller's round.
 *
 * No rank waits for ever, even with queues of one message. For suppose that all wait.
 *
 *   ring  Each rank sends its message m, then receives its neighbour's message m, for m = 1, 2, ...
 *         Take the rank that has done the fewest of these. If it waits to send message m, then the
 *         next rank has not received message m - 1, and has done less. If it waits to receive
 *         message m, then the rank before has not sent it, and has done less.
 *   tree  Each rank passes on message m = 1, 2, ... upwards: receives it from all right below,
 *         then sends it. Take the ranks that have passed on the fewest, and the lowest of these.
 *         If it waits to receive message m, then a rank below it has passed on no more. If it waits
 *         to send message m, then the one above has not received message m - 1, and has passed on
 *         less. So all come to pass on messages downwards; there take the highest.
 *   in order
 *         Each rank sends a message m to all others, then receives one of each, for m = 1, 2, ...
 *         Take the ranks that have done the fewest of these halves. If one waits to send message
 *         m, then another has not received message m - 1, and has done less. If it waits to
 *         receive message m, then another has not sent it, and has done less.
 *
 * A rank that has returned may begin the next call: what it sends waits behind what it has sent in
 * this one, and nobody who is still in this one needs anything more of it.
 */
#include "net/drps_allreduce.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_rng.h"
#include "net/drps_transport.h"

enum { STEP_COST = 16 << 10 }; /* bytes */

/* A rank's side of a call. */
struct call {
    struct drps_net *net;
    const struct drps_net_allreduce *sum;
    uint32_t count, place; /* of ranks; of this one among them */
    size_t width, most;    /* bytes of a value; values of a message */
    void *room;            /* own: sums of a message; in order alone */
    struct net_call messages;
    uint32_t timeout_ms;
};

struct span { /* of values */
    size_t first, n;
};

enum taking { ADD, COPY }; /* what is done with values that come */

static size_t width_of(enum drps_net_float type)
{
    return type == DRPS_NET_FLOAT32 ? sizeof(float) : sizeof(double);
}

/* ---- Messages ---- */

static uint32_t rank_at(const struct drps_net_allreduce *sum, uint32_t place)
{
    return sum->ranks ? sum->ranks[place] : place;
}

static unsigned char *values_at(const struct call *c, struct span s)
{
    return s.n ? (unsigned char *)c->sum->values + s.first * c->width : NULL;
}

static int send_to(const struct call *c, uint32_t place, struct span s, struct drps_err *err)
{
    return drps_net_group_send(c->net, &c->messages, rank_at(c->sum, place), values_at(c, s),
                               s.n * c->width, c->timeout_ms, err);
}

static void add_float32(float *restrict to, const float *restrict from, size_t n)
{
    for (size_t i = 0; i < n; i++)
        to[i] += from[i];
}

static void add_float64(double *restrict to, const double *restrict from, size_t n)
{
    for (size_t i = 0; i < n; i++)
        to[i] += from[i];
}

static void add_values(const struct call *c, void *to, const void *from, size_t n)
{
    if (c->sum->type == DRPS_NET_FLOAT32)
        add_float32(to, from, n);
    else
        add_float64(to, from, n);
}

static void take(const struct call *c, enum taking taking, struct span s, const void *data)
{
    if (!s.n) return;
    if (taking == COPY)
        memcpy(values_at(c, s), data, s.n * c->width);
    else
        add_values(c, values_at(c, s), data, s.n);
}

static int take_from(const struct call *c, uint32_t place, enum taking taking, struct span s,
                     struct drps_err *err)
{
    struct drps_net_message *m;
    const int rc = drps_net_group_receive(c->net, &c->messages, rank_at(c->sum, place),
                                          s.n * c->width, c->timeout_ms, &m, err);
    if (rc == 0) take(c, taking, s, m->data);
    drps_net_message_free(m);
    return rc;
}

/* The values of s that message i has. */
static struct span part_of(const struct call *c, struct span s, size_t i)
{
    const size_t before = i * c->most < s.n ? i * c->most : s.n, rest = s.n - before;
    return (struct span){s.first + before, rest < c->most ? rest : c->most};
}

/* Messages for n values: one at least. */
static size_t messages_for(const struct call *c, size_t n)
{
    return n ? (n - 1) / c->most + 1 : 1;
}

/* ---- Ring ---- */

static struct span chunk_of(uint64_t n, uint32_t count, uint32_t c)
{
    const size_t each = n / count, longer = n % count, before = c < longer ? c : longer;
    return (struct span){c * each + before, each + (c < longer)};
}

/* Send chunk `first`, then those before it, to the next rank; of each receive the one before. */
static int pass_round(const struct call *c, uint32_t first, enum taking taking,
                      struct drps_err *err)
{
    const uint32_t count = c->count, next = (c->place + 1) % count;
    const uint32_t last = (c->place + count - 1) % count;
    const size_t messages = messages_for(c, chunk_of(c->sum->n, count, 0).n);
    int rc = 0;
    for (uint32_t step = 0; step + 1 < count && rc == 0; step++) {
        const uint32_t chunk = (first + count - step) % count, before = (chunk + count - 1) % count;
        const struct span out = chunk_of(c->sum->n, count, chunk);
        const struct span in = chunk_of(c->sum->n, count, before);
        for (size_t i = 0; i < messages && rc == 0; i++) {
            rc = send_to(c, next, part_of(c, out, i), err);
            if (rc == 0) rc = take_from(c, last, taking, part_of(c, in, i), err);
        }
    }
    return rc;
}

/* Reduce-scatter leaves the rank with the sums of the chunk after its own; all-gather begins there.
 */
static int ring(const struct call *c, struct drps_err *err)
{
    int rc = pass_round(c, c->place, ADD, err);
    return rc == 0 ? pass_round(c, c->place + 1, COPY, err) : rc;
}

/* ---- Tree: above place p is p without its lowest bit ---- */

/* The first power of two that is no distance to a place right below `place`. */
static uint32_t end_of_distances(uint32_t count, uint32_t place)
{
    uint32_t d = 1;
    while (d < count - place && !(place & d))
        d *= 2;
    return d;
}

static uint32_t above(uint32_t place)
{
    return place & (place - 1);
}

static int reduce(const struct call *c, struct span s, struct drps_err *err)
{
    const uint32_t end = end_of_distances(c->count, c->place);
    int rc = 0;
    for (uint32_t d = 1; d < end && rc == 0; d *= 2)
        rc = take_from(c, c->place + d, ADD, s, err);
    return rc == 0 && c->place ? send_to(c, above(c->place), s, err) : rc;
}

/* Those with the most below them come first. */
static int broadcast(const struct call *c, struct span s, struct drps_err *err)
{
    int rc = c->place ? take_from(c, above(c->place), COPY, s, err) : 0;
    for (uint32_t d = end_of_distances(c->count, c->place) / 2; d && rc == 0; d /= 2)
        rc = send_to(c, c->place + d, s, err);
    return rc;
}

static int tree(const struct call *c, struct drps_err *err)
{
    const struct span all = {0, c->sum->n};
    const size_t messages = messages_for(c, all.n);
    int rc = 0;
    for (size_t i = 0; i < messages && rc == 0; i++)
        rc = reduce(c, part_of(c, all, i), err);
    for (size_t i = 0; i < messages && rc == 0; i++)
        rc = broadcast(c, part_of(c, all, i), err);
    return rc;
}

/* ---- In order ---- */

static struct span chunk_part(const struct call *c, uint32_t chunk, size_t i)
{
    return part_of(c, chunk_of(c->sum->n, c->count, chunk), i);
}

/* Send all others message i of a chunk: of theirs, or of this rank's. The next one comes first, so
 * that not all send to the same. */
static int send_to_others(const struct call *c, int theirs, size_t i, struct drps_err *err)
{
    int rc = 0;
    for (uint32_t k = 1; k < c->count && rc == 0; k++) {
        const uint32_t to = (c->place + k) % c->count;
        rc = send_to(c, to, chunk_part(c, theirs ? to : c->place, i), err);
    }
    return rc;
}

/* Add up message i of this rank's chunk, as all have sent it. */
static int sum_up(const struct call *c, size_t i, struct drps_err *err)
{
    const struct span s = chunk_part(c, c->place, i);
    int rc = 0;
    memset(c->room, 0, s.n * c->width);
    for (uint32_t p = 0; p < c->count && rc == 0; p++) {
        struct drps_net_message *m = NULL;
        if (p != c->place)
            rc = drps_net_group_receive(c->net, &c->messages, rank_at(c->sum, p), s.n * c->width,
                                        c->timeout_ms, &m, err);
        if (rc == 0 && s.n) add_values(c, c->room, m ? m->data : values_at(c, s), s.n);
        drps_net_message_free(m);
    }
    if (rc == 0) take(c, COPY, s, c->room);
    return rc;
}

static int take_sums(const struct call *c, size_t i, struct drps_err *err)
{
    int rc = 0;
    for (uint32_t p = 0; p < c->count && rc == 0; p++)
        if (p != c->place) rc = take_from(c, p, COPY, chunk_part(c, p, i), err);
    return rc;
}

static int in_order(const struct call *c, struct drps_err *err)
{
    const size_t messages = messages_for(c, chunk_of(c->sum->n, c->count, 0).n);
    int rc = 0;
    for (size_t i = 0; i < messages && rc == 0; i++) {
        rc = send_to_others(c, 1, i, err);
        if (rc == 0) rc = sum_up(c, i, err);
    }
    for (size_t i = 0; i < messages && rc == 0; i++) {
        rc = send_to_others(c, 0, i, err);
        if (rc == 0) rc = take_sums(c, i, err);
    }
    return rc;
}

/* ---- Choice ---- */

static uint32_t tree_height(uint32_t count)
{
    uint32_t height = 0;
    while (UINT64_C(1) << height < count)
        height++;
    return height;
}

uint64_t drps_net_allreduce_cost(enum drps_net_way way, uint32_t count, uint64_t bytes)
{
    const uint64_t chunk = bytes / count + (bytes % count != 0);
    switch (way) {
    case DRPS_NET_TREE:
        return 2 * tree_height(count) * (bytes + STEP_COST);
    case DRPS_NET_IN_ORDER:
        return count > 1 ? 2 * ((count - 1) * chunk + STEP_COST) : 0;
    default:
        return 2 * (count - 1) * (chunk + STEP_COST);
    }
}

enum drps_net_way drps_net_allreduce_way(uint32_t count, uint64_t bytes)
{
    const uint64_t by_ring = drps_net_allreduce_cost(DRPS_NET_RING, count, bytes);
    const uint64_t by_tree = drps_net_allreduce_cost(DRPS_NET_TREE, count, bytes);
    return by_tree < by_ring ? DRPS_NET_TREE : DRPS_NET_RING;
}

static enum drps_net_way chosen(enum drps_net_way way, uint32_t count, uint64_t bytes)
{
    return way == DRPS_NET_BY_SIZE ? drps_net_allreduce_way(count, bytes) : way;
}

uint64_t drps_net_allreduce_bytes(enum drps_net_way way, uint32_t count, uint32_t place, uint64_t n,
                                  enum drps_net_float type)
{
    const uint64_t width = width_of(type);
    if (count == 1) return 0;
    if (way == DRPS_NET_IN_ORDER)
        return (n + (count - 2) * (uint64_t)chunk_of(n, count, place).n) * width;
    if (chosen(way, count, n * width) == DRPS_NET_TREE) {
        uint64_t vectors = place > 0;
        for (uint32_t d = 1; d < end_of_distances(count, place); d *= 2)
            vectors++;
        return vectors * n * width;
    }
    const uint64_t not_added = chunk_of(n, count, (place + 1) % count).n;
    const uint64_t not_copied = chunk_of(n, count, (place + 2) % count).n;
    return (2 * n - not_added - not_copied) * width;
}

uint64_t drps_net_allreduce_bytes_to(uint32_t count, uint32_t from, uint32_t to, uint64_t n,
                                     enum drps_net_float type)
{
    return (uint64_t)(chunk_of(n, count, from).n + chunk_of(n, count, to).n) * width_of(type);
}

/* ---- The call ---- */

/* What all ranks of the sum must have said alike; that they sum values of one type shows in the
 * sizes of messages. */
static uint32_t mix(const struct call *c, enum drps_net_way way)
{
    uint64_t h = drps_mix64(drps_mix64(c->sum->n) ^ (uint64_t)way);
    for (uint32_t p = 0; p < c->count; p++)
        h = drps_mix64(h ^ rank_at(c->sum, p));
    return (uint32_t)h;
}

/* Find this rank's place in the list. */
static int check_ranks(struct call *c, struct drps_err *err)
{
    const struct drps_net_allreduce *sum = c->sum;
    const uint32_t rank = drps_net_rank(c->net), all = drps_net_count(c->net);
    c->place = c->count;
    for (uint32_t p = 0; p < c->count; p++) {
        const uint32_t r = rank_at(sum, p);
        if (r >= all || (p && r <= rank_at(sum, p - 1)))
            return drps_err_set(err, -EINVAL,
                                "rank %u at place %u of a sum's list: it must ascend, below %u", r,
                                p, all);
        if (r == rank) c->place = p;
    }
    if (c->place == c->count)
        return drps_err_set(err, -EINVAL, "rank %u sums, but is not in the sum's list", rank);
    return 0;
}

static int check(struct call *c, struct drps_err *err)
{
    const struct drps_net_allreduce *sum = c->sum;
    if ((unsigned)sum->type > DRPS_NET_FLOAT64 || (unsigned)sum->way > DRPS_NET_IN_ORDER)
        return drps_err_set(err, -EINVAL, "sum of values of type %u by way %u", (unsigned)sum->type,
                            (unsigned)sum->way);
    if (sum->n > DRPS_NET_MESSAGE_MAX / c->width)
        return drps_err_set(err, -EINVAL, "sum of %zu values of %zu bytes: at most %llu bytes",
                            sum->n, c->width, (unsigned long long)DRPS_NET_MESSAGE_MAX);
    return check_ranks(c, err);
}

/* Room for the first part of the longest chunk, which is the longest part. */
static int reserve_room(struct call *c, struct drps_err *err)
{
    const size_t bytes = chunk_part(c, 0, 0).n * c->width;
    c->room = malloc(bytes + 1);
    return c->room ? 0 : drps_err_set(err, -ENOMEM, "no memory to sum %zu bytes", bytes);
}

static int run(const struct call *c, enum drps_net_way way, struct drps_err *err)
{
    if (way == DRPS_NET_IN_ORDER) return in_order(c, err);
    return way == DRPS_NET_RING ? ring(c, err) : tree(c, err);
}

int drps_net_allreduce(struct drps_net *net, const struct drps_net_allreduce *sum,
                       uint32_t timeout_ms, struct drps_err *err)
{
    struct call c = {.net = net, .sum = sum, .timeout_ms = timeout_ms};
    c.count = sum->ranks ? sum->count : drps_net_count(net);
    c.width = width_of(sum->type);
    c.most = DRPS_NET_GROUP_BYTES / c.width;
    int rc = check(&c, err);
    if (rc == 0) rc = drps_net_group_begin(net, err);
    if (rc < 0) return rc;
    const enum drps_net_way way = chosen(sum->way, c.count, sum->n * c.width);
    c.messages = (struct net_call){.type = WIRE_SUM, .tag = mix(&c, way), .round = sum->round};
    if (way == DRPS_NET_IN_ORDER) rc = reserve_room(&c, err);
    if (rc == 0) rc = run(&c, way, err);
    drps_net_group_end(net);
    free(c.room);
    return rc;
}
