/*
 * How long does a cache line take from one processor to another and back?
 *
 *   bench_cores [ROUNDS]     default 20,000; a line for each pair of the first processors that this
 *                            process may use: nanoseconds, the median of 5 runs
 *
 * Threads of a team hand each other the rows of a batch, so that this decides what a second one
 * brings. It differs between processors that share a cache and others, and where the machine is a
 * guest, from one minute to the next: the host moves its processors.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_clock.h"

enum { RUNS = 5, PROCESSORS_MAX = 8, WARM = 1000, LINE = 128 };

/* Counts half rounds: the first thread makes it odd, the second one even. */
struct ball {
    _Alignas(LINE) atomic_uint count;
    unsigned rounds;
    size_t processor; /* of the second thread */
};

static void must(int rc, const char *what)
{
    if (!rc) return;
    (void)fprintf(stderr, "bench_cores: %s: %s\n", what, strerror(rc));
    exit(1);
}

static void stay_on(size_t processor)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(processor, &set);
    must(sched_setaffinity(0, sizeof(set), &set) ? errno : 0, "cannot choose a processor");
}

/* Only the count itself goes from thread to thread: relaxed. */
static void wait_for(const struct ball *ball, unsigned count)
{
    while (atomic_load_explicit(&ball->count, memory_order_relaxed) != count)
        ;
}

static void *throw_back(void *arg)
{
    struct ball *ball = arg;
    stay_on(ball->processor);
    for (unsigned i = 0; i < ball->rounds; i++) {
        wait_for(ball, 2 * i + 1);
        atomic_store_explicit(&ball->count, 2 * i + 2, memory_order_relaxed);
    }
    return NULL;
}

/* Nanoseconds of a round. */
static double play(size_t a, size_t b, unsigned rounds)
{
    struct ball ball = {.rounds = rounds + WARM, .processor = b};
    pthread_t other;
    uint64_t start = 0;
    stay_on(a);
    must(pthread_create(&other, NULL, throw_back, &ball), "cannot start a thread");
    for (unsigned i = 0; i < ball.rounds; i++) {
        if (i == WARM) start = drps_clock_ns();
        atomic_store_explicit(&ball.count, 2 * i + 1, memory_order_relaxed);
        wait_for(&ball, 2 * i + 2);
    }
    const uint64_t end = drps_clock_ns();
    must(pthread_join(other, NULL), "cannot join a thread");
    return (double)(end - start) / rounds;
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(size_t a, size_t b, unsigned rounds)
{
    double ns[RUNS];
    for (int i = 0; i < RUNS; i++)
        ns[i] = play(a, b, rounds);
    qsort(ns, RUNS, sizeof(*ns), by_value);
    return ns[RUNS / 2];
}

int main(int argc, char **argv)
{
    char *end = NULL;
    const unsigned long rounds = argc > 1 ? strtoul(argv[1], &end, 10) : 20000;
    if (argc > 2 || (end && *end) || rounds < 1 || rounds > 100000000) {
        (void)fprintf(stderr, "usage: bench_cores [ROUNDS]\n");
        return 2;
    }
    size_t processors[PROCESSORS_MAX], n = 0;
    cpu_set_t set;
    must(sched_getaffinity(0, sizeof(set), &set) ? errno : 0, "cannot ask for processors");
    for (size_t i = 0; i < CPU_SETSIZE && n < PROCESSORS_MAX; i++)
        if (CPU_ISSET(i, &set)) processors[n++] = i;
    if (n < 2) {
        (void)fprintf(stderr, "bench_cores: only one processor may be used\n");
        return 77;
    }
    for (size_t i = 0; i < n; i++)
        for (size_t k = i + 1; k < n; k++)
            printf("processors %zu and %zu: %.0f ns\n", processors[i], processors[k],
                   median(processors[i], processors[k], (unsigned)rounds));
    return 0;
}
