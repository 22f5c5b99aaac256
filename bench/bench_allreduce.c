/*
 * What do ranks send for an all-reduce?
 *
 *   bench_allreduce [RANKS [VALUES]]      default: 8 ranks, 1,000,000 values of float32
 *
 * For each way, ranks of this process sum a vector. Printed are, of each rank, the messages
 * and the bytes of payload that it has sent, beside the bytes that drps_net_allreduce_bytes()
 * says. These are counts: they are the same at every run and over every transport. The program
 * fails where the two differ, or where a sum is wrong.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "net/drps_allreduce.h"

enum { MOST_RANKS = 64, MOST_VALUES = 1 << 24, WAIT_MS = 60000 };

struct rank {
    struct drps_net *net;
    enum drps_net_way way;
    size_t n;
    uint64_t messages, bytes; /* sent */
};

static void die(const char *what, const char *text)
{
    fprintf(stderr, "bench_allreduce: %s: %s\n", what, text);
    exit(1);
}

static void count(struct rank *r)
{
    for (uint32_t to = 0; to < drps_net_count(r->net); to++) {
        struct drps_net_peer_stats stats;
        drps_net_peer_stats(r->net, to, &stats);
        r->messages += stats.sent_messages;
        r->bytes += stats.sent_bytes;
    }
}

/* Value i of rank p is p + i mod 7: sums are whole numbers, and exact. */
static void *sum(void *arg)
{
    struct rank *r = arg;
    struct drps_err err = DRPS_ERR_INIT;
    const uint32_t ranks = drps_net_count(r->net);
    float *values = malloc(r->n * sizeof(*values) + 1);
    if (!values) die("memory", "there is too little");
    for (size_t i = 0; i < r->n; i++)
        values[i] = (float)(drps_net_rank(r->net) + i % 7);
    const struct drps_net_allreduce sum = {.values = values, .n = r->n, .way = r->way};
    if (drps_net_allreduce(r->net, &sum, WAIT_MS, &err) < 0) die("sum", err.text);
    for (size_t i = 0; i < r->n; i++)
        if (values[i] != (float)(ranks * (ranks - 1) / 2 + ranks * (i % 7)))
            die("sum", "it is wrong");
    count(r);
    free(values);
    return NULL;
}

static void run(struct rank *ranks, uint32_t n)
{
    pthread_t threads[MOST_RANKS];
    for (uint32_t r = 0; r < n; r++)
        if (pthread_create(&threads[r], NULL, sum, &ranks[r])) die("thread", "there is none");
    for (uint32_t r = 0; r < n; r++)
        (void)pthread_join(threads[r], NULL);
}

static void print(const struct rank *r, uint32_t ranks, uint32_t place)
{
    const uint64_t formula = drps_net_allreduce_bytes(r->way, ranks, place, r->n, DRPS_NET_FLOAT32);
    static const char *const names[] = {
        [DRPS_NET_RING] = "ring", [DRPS_NET_TREE] = "tree", [DRPS_NET_IN_ORDER] = "in order"};
    printf("%-8s %6u %10llu %14llu %14llu\n", names[r->way], place, (unsigned long long)r->messages,
           (unsigned long long)r->bytes, (unsigned long long)formula);
    if (r->bytes != formula) die("bytes", "they differ from the formula");
}

static void run_way(enum drps_net_way way, uint32_t n, size_t values)
{
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_net *nets[MOST_RANKS];
    struct rank ranks[MOST_RANKS];
    if (drps_net_open_inproc(&(struct drps_net_options){.count = n}, nets, &err) < 0)
        die("open", err.text);
    for (uint32_t r = 0; r < n; r++)
        ranks[r] = (struct rank){.net = nets[r], .way = way, .n = values};
    run(ranks, n);
    for (uint32_t r = 0; r < n; r++) {
        print(&ranks[r], n, r);
        drps_net_close(nets[r], 0, NULL);
    }
}

int main(int argc, char **argv)
{
    const long ranks = argc > 1 ? atol(argv[1]) : 8, values = argc > 2 ? atol(argv[2]) : 1000000;
    if (argc > 3 || ranks < 1 || ranks > MOST_RANKS || values < 0 || values > MOST_VALUES) {
        fprintf(stderr, "usage: bench_allreduce [RANKS, at most %d [VALUES, at most %d]]\n",
                MOST_RANKS, MOST_VALUES);
        return 2;
    }
    printf("%-8s %6s %10s %14s %14s\n", "way", "rank", "messages", "bytes sent", "formula");
    run_way(DRPS_NET_RING, (uint32_t)ranks, (size_t)values);
    run_way(DRPS_NET_TREE, (uint32_t)ranks, (size_t)values);
    run_way(DRPS_NET_IN_ORDER, (uint32_t)ranks, (size_t)values);
    return 0;
}
