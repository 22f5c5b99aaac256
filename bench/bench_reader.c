/*
 * How fast are text files read? Prints MB/s of text (after decompression) and features a second,
 * median of 5 passes over the file; the page cache is warm from the second pass on.
 *
 *   bench_reader FORMAT FILE [MEMORY]
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/drps_clock.h"
#include "base/drps_size.h"
#include "index/reader/drps_reader.h"

enum { PASSES = 5 };

struct pass {
    double seconds;
    uint64_t bytes, samples, features;
};

static int read_once(const char *path, const struct drps_reader_options *o, struct drps_samples *s,
                     struct pass *pass, struct drps_err *err)
{
    struct drps_reader *r;
    uint64_t start = drps_clock_ns();
    int rc = drps_reader_open(drps_io_os(), &path, 1, o, &r, err);

    if (rc < 0) return rc;
    *pass = (struct pass){0};
    while ((rc = drps_reader_next(r, s, err)) > 0) {
        pass->samples += s->n;
        pass->features += s->starts[s->n];
    }
    pass->bytes = drps_reader_bytes(r);
    pass->seconds = drps_seconds_since(start);
    drps_reader_close(r);
    return rc;
}

static int by_seconds(const void *a, const void *b)
{
    const struct pass *x = a, *y = b;
    return (x->seconds > y->seconds) - (x->seconds < y->seconds);
}

int main(int argc, char **argv)
{
    struct drps_reader_options o = {.format = argc > 1 ? argv[1] : NULL};
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_samples s = {0};
    struct pass passes[PASSES];

    if (argc < 3 || argc > 4) {
        fprintf(stderr, "usage: bench_reader FORMAT FILE [MEMORY]\n");
        return 2;
    }
    int rc = argc > 3 ? drps_size_parse(argv[3], &o.memory_bytes, &err) : 0;
    for (int i = 0; i < PASSES && rc == 0; i++)
        rc = read_once(argv[2], &o, &s, &passes[i], &err);
    drps_samples_free(&s);
    if (rc < 0) {
        fprintf(stderr, "bench_reader: %s\n", err.text);
        return 1;
    }
    qsort(passes, PASSES, sizeof(passes[0]), by_seconds);
    const struct pass *m = &passes[PASSES / 2];
    printf("%s %s: %llu samples, %llu features, %.1f MB in %.3f s: %.0f MB/s, %.1f M features/s\n",
           argv[1], argv[2], (unsigned long long)m->samples, (unsigned long long)m->features,
           (double)m->bytes / 1e6, m->seconds, (double)m->bytes / 1e6 / m->seconds,
           (double)m->features / 1e6 / m->seconds);
    return 0;
}
