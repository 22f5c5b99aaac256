/*
 * What do engine/net's transports cost against plain TCP sockets?
 *
 * bench_net [BYTES]
 *     on this machine: inproc (two threads), and two processes over loopback
 * bench_net rank R FOLDER [BYTES]
 *     rank 0 or 1 of two processes, over what FOLDER/peers says (bench/net.sh)
 * bench_net keys FOLDER
 *     make keys and print the public one
 * mpirun -n 2 bench_net mpi [BYTES]
 *     two processes over MPI
 *
 * For each size: "pull" is an empty request and a reply of that size, in microseconds a pull;
 * "stream" is messages of that size one way, in MB/s (10^6 bytes of payload): the median of five,
 * the least and the most. Then what the streams took of the processor, in percent of one core: the
 * sender's process, the receiver's, and all that ran on the machine meanwhile, the kernel's work
 * for the link included. BYTES, default 256M, bounds what a figure moves.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_clock.h"
#include "base/drps_rng.h"
#include "base/drps_size.h"
#include "bench/ends.h"
#include "net/drps_launch.h"

enum { LAPS = 5, MOST = 4000 };

static const size_t sizes[] = {1 << 10, 16 << 10, 256 << 10, 1 << 20, 16 << 20, LARGEST};
enum { SIZES = sizeof(sizes) / sizeof(*sizes) };

struct bench {
    uint64_t budget;
    char *out; /* [LARGEST] what is sent */
};

/* What the streams of a size took, in seconds. */
struct cost {
    double wall, sender, receiver, machine;
};

static unsigned times(const struct bench *b, size_t n, unsigned most)
{
    const uint64_t fits = b->budget / n;
    return fits < 1 ? 1 : fits < most ? (unsigned)fits : most;
}

/* Microseconds a pull, at rank 0. */
static double pulls(struct end *e, const struct bench *b, size_t n)
{
    const unsigned laps = times(b, n, MOST / 4);
    const uint64_t start = drps_clock_ns();
    for (unsigned i = 0; i < laps; i++) {
        if (e->rank == 0) {
            end_put(e, b->out, 0);
            (void)end_get(e, n);
        } else {
            (void)end_get(e, 0);
            end_put(e, b->out, n);
        }
    }
    return drps_seconds_since(start) * 1e6 / laps;
}

/* MB/s from rank 0 to rank 1, until the last one has been taken and rank 1 has said what that cost
 * it. */
static double stream(struct end *e, const struct bench *b, size_t n, struct cost *cost)
{
    const unsigned laps = times(b, n, MOST * 4);
    const double machine = machine_cpu(), used = end_cpu();
    const uint64_t start = drps_clock_ns();
    double theirs;
    if (e->rank == 1) {
        for (unsigned i = 0; i < laps; i++)
            (void)end_get(e, n);
        static double mine; /* it is sent from where it lies */
        mine = end_cpu() - used;
        end_put(e, &mine, sizeof(mine));
        (void)end_get(e, 0); /* read: it may change */
        return 0;
    }
    for (unsigned i = 0; i < laps; i++)
        end_put(e, b->out, n);
    memcpy(&theirs, end_get(e, sizeof(theirs)), sizeof(theirs));
    const double seconds = drps_seconds_since(start);
    cost->wall += seconds;
    cost->sender += end_cpu() - used;
    cost->receiver += theirs;
    cost->machine += machine_cpu() - machine;
    end_put(e, b->out, 0);
    return (double)n * laps * 1e-6 / seconds;
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void run_size(struct end *e, const struct bench *b, size_t n)
{
    char text[32];
    double us[LAPS], mbs[LAPS];
    struct cost cost = {0};
    for (int i = 0; i < LAPS; i++) {
        us[i] = pulls(e, b, n);
        mbs[i] = stream(e, b, n, &cost);
    }
    if (e->rank == 1) return;
    qsort(us, LAPS, sizeof(*us), compare);
    qsort(mbs, LAPS, sizeof(*mbs), compare);
    printf("%-14s %9s %10.1f %9.1f %9.1f %9.1f", transport_names[e->transport],
           drps_size_format(n, text, sizeof(text)), us[LAPS / 2], mbs[LAPS / 2], mbs[0],
           mbs[LAPS - 1]);
    if (e->transport == INPROC)
        printf(" %7.0f%% %8s", 100 * cost.sender / cost.wall, "");
    else
        printf(" %7.0f%% %7.0f%%", 100 * cost.sender / cost.wall, 100 * cost.receiver / cost.wall);
    printf(" %7.0f%%\n", 100 * cost.machine / cost.wall);
    (void)fflush(stdout);
}

static void run(struct end *e, void *arg)
{
    for (size_t i = 0; i < SIZES; i++)
        run_size(e, arg, sizes[i]);
}

static void title(void)
{
    printf("%-14s %9s %10s %9s %9s %9s %8s %8s %8s\n", "transport", "size", "pull us", "stream",
           "least", "most", "sender", "receiver", "machine");
}

static void make_data(struct bench *b)
{
    b->out = malloc(LARGEST);
    if (!b->out) die("memory", NULL);
    for (size_t i = 0; i < LARGEST / sizeof(uint64_t); i++) /* nothing that could be shortened */
        ((uint64_t *)(void *)b->out)[i] = drps_rng_at(1, i);
}

static void run_transports(const struct ends *p, int rank, enum transport first, struct bench *b)
{
    if (rank != 1) title();
    for (enum transport t = first; t < TRANSPORTS; t++) {
        if (rank < 0)
            run_both(p, t, run, b);
        else
            run_one(p, t, (uint32_t)rank, run, b);
    }
}

static void run_mpi(struct bench *b)
{
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_launch launch;
    if (drps_launch_mpi(&launch, &err) < 0) die("mpi", &err);
    if (launch.rank == 0) title();
    run_one(NULL, OVER_MPI, launch.rank, run, b);
}

static int make_keys(const char *folder)
{
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_net_keys keys;
    if (drps_net_keys_make(drps_io_os(), folder, &keys, &err) < 0) die("keys", &err);
    printf("%s\n", keys.public_key);
    return 0;
}

int main(int argc, char **argv)
{
    struct drps_err err = DRPS_ERR_INIT;
    struct bench b = {.budget = 256 << 20};
    struct ends p;
    const int there =
        argc >= 4 && !strcmp(argv[1], "rank") && (argv[2][0] == '0' || argv[2][0] == '1');
    const int mpi = argc >= 2 && !strcmp(argv[1], "mpi");
    const int last = there ? 4 : 1 + mpi;
    if (argc == 3 && !strcmp(argv[1], "keys")) return make_keys(argv[2]);
    if (argc > last + 1 || (argc > last && drps_size_parse(argv[last], &b.budget, &err) < 0)) {
        fprintf(
            stderr,
            "usage: bench_net [BYTES] | rank 0|1 FOLDER [BYTES] | keys FOLDER | mpi [BYTES]\n%s\n",
            err.text);
        return 2;
    }
    make_data(&b);
    if (mpi) {
        run_mpi(&b);
        free(b.out);
        return 0;
    }
    if (there)
        ends_there(&p, argv[2][0] == '1', argv[3]);
    else
        ends_here(&p);
    run_transports(&p, there ? argv[2][0] == '1' : -1, there ? SOCKETS : INPROC, &b);
    ends_free(&p);
    free(b.out);
    return 0;
}
