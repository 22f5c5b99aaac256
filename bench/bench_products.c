/*
 * The least time of recommending: products of users and items alone.
 *
 *   bench_products USERS ITEMS FACTORS [MIB]      MIB of items at a time; default: 64
 *
 * sgemm-tiles   by OpenBLAS (one thread), blocks of the size that drps-recommend multiplies
 * sgemm-blocks  by OpenBLAS, 4096 items at a time with all users: as it does best by itself, but
 * for scores that no cache holds own           by drps's own product, blocks as in the first
 *
 * Vectors are random, USERS and ITEMS of them, a vector FACTORS floats; items are the same ones
 * over and over where they are more than MIB. Prints for each seconds of the processor and of the
 * clock for all pairs, and 10^9 multiplications and additions a second of the processor. Nothing is
 * kept of the scores but a sum of some.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/drps_clock.h"
#include "base/drps_rng.h"
#include "engine/recommend/math/drps_products.h"

enum { TILE_USERS = 480, TILE_ITEMS = 256, BLOCK_ITEMS = 4096, MOST = 100000000 };

struct job {
    size_t users, items, d, held; /* held: items in memory */
    float *u, *v, *scores;
    void *scratch;
    double sum;
};

static void die(const char *what)
{
    (void)fprintf(stderr, "bench_products: %s\n", what);
    exit(1);
}

static float *vectors(size_t n, size_t d, uint64_t seed)
{
    float *v = malloc(n * d * sizeof(*v));
    if (!v) die("no memory");
    for (size_t i = 0; i < n * d; i++)
        v[i] = drps_unit_float(drps_rng_at(seed, i)) - 0.5f;
    return v;
}

static size_t less(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* All pairs, so many users and items at a time. */
static void multiply(struct job *j, drps_product product, size_t users, size_t items)
{
    for (size_t from = 0, n; from < j->items; from += n) {
        const size_t at = from % j->held;
        n = less(less(32 * items, j->held - at), j->items - from);
        for (size_t i = 0; i < j->users; i += users)
            for (size_t k = 0; k < n; k += items) {
                const size_t q = less(users, j->users - i), some = less(items, n - k);
                product(j->u + i * j->d, q, j->v + (at + k) * j->d, some, j->d, j->scores,
                        j->scratch);
                j->sum += (double)j->scores[q * some - 1];
            }
    }
}

static double processor(void)
{
    struct timespec t;
    if (clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t)) die("no clock of the processor");
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void measure(struct job *j, const char *name, drps_product product, size_t users,
                    size_t items)
{
    const double from = processor();
    const uint64_t start = drps_clock_ns();
    multiply(j, product, users, items);
    const double seconds = processor() - from, pairs = (double)j->users * (double)j->items;
    printf("%s %.3f %.3f %.1f\n", name, seconds, drps_seconds_since(start),
           2e-9 * pairs * (double)j->d / seconds);
}

static size_t argument(const char *text, size_t most)
{
    char *end;
    const unsigned long long n = strtoull(text, &end, 10);
    if (!n || n > most || *end) die("give USERS, ITEMS, FACTORS and perhaps MIB");
    return (size_t)n;
}

int main(int argc, char **argv)
{
    if (argc < 4 || argc > 5) die("give USERS, ITEMS, FACTORS and perhaps MIB");
    struct job j = {.users = argument(argv[1], MOST),
                    .items = argument(argv[2], MOST),
                    .d = argument(argv[3], 1 << 14)};
    const size_t mib = argc == 5 ? argument(argv[4], 1 << 16) : 64;
    j.held = (mib << 20) / (j.d * sizeof(float)) / BLOCK_ITEMS * BLOCK_ITEMS;
    j.held = less(j.held ? j.held : BLOCK_ITEMS, j.items);
    j.u = vectors(j.users, j.d, 1);
    j.v = vectors(j.held, j.d, 2);
    const size_t tile = (size_t)TILE_USERS * TILE_ITEMS, block = j.users * BLOCK_ITEMS;
    j.scores = malloc((tile > block ? tile : block) * sizeof(*j.scores));
    j.scratch = malloc(drps_product_scratch(j.d));
    if (!j.scores || !j.scratch) die("no memory");
    if (drps_product_has_blas()) {
        measure(&j, "sgemm-tiles", drps_product_blas, TILE_USERS, TILE_ITEMS);
        measure(&j, "sgemm-blocks", drps_product_blas, j.users, BLOCK_ITEMS);
    }
    measure(&j, "own", drps_product_own, TILE_USERS, TILE_ITEMS);
    (void)fprintf(stderr, "sum of some scores: %g\n", j.sum);
    free(j.u);
    free(j.v);
    free(j.scores);
    free(j.scratch);
    return 0;
}
