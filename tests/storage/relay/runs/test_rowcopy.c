/* Rows from and to frames, against copies one by one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "storage/relay/runs/rowcopy.h"
#include "support/lists.h"
#include "support/scratch.h"

enum { FRAMES = 150, GUARD = 64 };

static const size_t row_sizes[] = {4,  8,   12,  28,  32,  36,  60,   64,  68,
                                   72, 136, 264, 508, 512, 516, 1024, 4100};
static const size_t counts[] = {0, 1, 2, 11, 12, 13, 14, 100};

static void fill(struct random_source *rng, char *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++)
        bytes[i] = (char)random_below(rng, 256);
}

/* n frames, each once, in any order. */
static void choose(struct random_source *rng, uint32_t *frames)
{
    for (uint32_t i = 0; i < FRAMES; i++)
        frames[i] = i;
    for (size_t i = FRAMES - 1; i; i--) {
        const size_t k = (size_t)random_below(rng, i + 1);
        const uint32_t f = frames[i];
        frames[i] = frames[k];
        frames[k] = f;
    }
}

/* The first `now` of n rows are copied, and no byte more, to where it may lie anyhow. */
static void check(struct random_source *rng, size_t row_bytes, size_t n, size_t now)
{
    const size_t all = FRAMES * row_bytes, off = (size_t)random_below(rng, 64);
    char *base = must(malloc(all)), *scattered = must(malloc(all)), *want = must(malloc(all));
    char *line = must(malloc(all + GUARD + off)), *gathered = line + off;
    /* No longer than the rows: a sanitizer sees what is read behind them. */
    uint32_t frames[FRAMES], *exact = must(malloc(n * sizeof(*exact) + 1));
    fill(rng, base, all);
    fill(rng, scattered, all);
    fill(rng, gathered, all + GUARD);
    memcpy(want, gathered, all);
    char guard[GUARD];
    memcpy(guard, gathered + now * row_bytes, GUARD);
    choose(rng, frames);
    memcpy(exact, frames, n * sizeof(*exact));

    for (size_t i = 0; i < now; i++)
        memcpy(want + i * row_bytes, base + frames[i] * row_bytes, row_bytes);
    drps_rowcopy_gather(gathered, base, row_bytes, exact, n, now);
    if (memcmp(gathered, want, now * row_bytes) || memcmp(gathered + now * row_bytes, guard, GUARD))
        fail_msg("gather: %zu of %zu rows of %zu bytes", now, n, row_bytes);

    memcpy(want, scattered, all);
    for (size_t i = 0; i < now; i++)
        memcpy(want + frames[i] * row_bytes, gathered + i * row_bytes, row_bytes);
    drps_rowcopy_scatter(gathered, scattered, row_bytes, exact, n, now);
    if (memcmp(scattered, want, all))
        fail_msg("scatter: %zu of %zu rows of %zu bytes", now, n, row_bytes);
    free(base);
    free(scattered);
    free(want);
    free(line);
    free(exact);
}

static void test_equal_copies_one_by_one(void **state)
{
    struct random_source rng = random_begin("rowcopy");
    (void)state;
    for (size_t i = 0; i < sizeof(row_sizes) / sizeof(*row_sizes); i++)
        for (size_t k = 0; k < sizeof(counts) / sizeof(*counts); k++)
            for (size_t now = counts[k] / 2; now <= counts[k]; now += counts[k] / 4 + 1)
                check(&rng, row_sizes[i], counts[k], now);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_equal_copies_one_by_one)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
