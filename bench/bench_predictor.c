/*
 * One sample at a time, by the library: how long a score takes, and how many reads.
 *
 *     bench_predictor MODEL DATA MEMORY N      DATA: libsvm; MEMORY: bytes, 0: all rows in memory
 *
 * Scores the first N samples twice, each by a call of its own, and prints for both passes the
 * median and the mean of the microseconds of a call, and the reads and bytes of one; then how long
 * opening took. The model's files leave the page cache first.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/drps.h"
#include "base/drps_clock.h"

enum { MOST = 1 << 20, EACH = 64 };

struct samples {
    int32_t *indices, *starts;
    float *values;
    size_t n, entries;
};

static void read_samples(const char *path, size_t most, struct samples *s)
{
    FILE *f = fopen(path, "r");
    char *line = NULL;
    size_t cap = 0;
    s->indices = calloc(most * EACH, sizeof(*s->indices));
    s->values = calloc(most * EACH, sizeof(*s->values));
    s->starts = calloc(most + 1, sizeof(*s->starts));
    if (!f || !s->indices || !s->values || !s->starts) exit(1);
    while (s->n < most && getline(&line, &cap, f) > 0) {
        int used;
        for (char *p = strchr(line, ' '); p && s->entries < (s->n + 1) * EACH; p += used) {
            if (sscanf(p, " %d:%f%n", &s->indices[s->entries], &s->values[s->entries], &used) != 2)
                break;
            s->entries++;
        }
        s->starts[++s->n] = (int32_t)s->entries;
    }
    free(line);
    fclose(f);
}

static void forget_file(const char *path)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return;
    (void)posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    close(fd);
}

/* Files of the model, and of its database. */
static void forget(const char *folder, int depth)
{
    char path[4096];
    const struct dirent *entry;
    DIR *dir = opendir(folder);
    while (dir && (entry = readdir(dir))) {
        if (entry->d_name[0] == '.') continue;
        if (snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name) >= (int)sizeof(path))
            continue;
        if (depth) forget(path, depth - 1);
        forget_file(path);
    }
    if (dir) closedir(dir);
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static void pass(struct drps_predictor *p, const struct samples *s, double *us)
{
    uint64_t bytes, before_bytes;
    const uint64_t before = drps_predictor_reads(p, &before_bytes);
    double score, sum = 0;
    struct drps_err err = DRPS_ERR_INIT;
    for (size_t i = 0; i < s->n; i++) {
        const struct drps_matrix one = {.samples = 1,
                                        .columns = INT32_MAX,
                                        .starts = {s->starts + i, DRPS_I32},
                                        .indices = {s->indices, DRPS_I32},
                                        .values = {s->values, DRPS_F32}};
        const uint64_t begin = drps_clock_ns();
        if (drps_predictor_score(p, &one, DRPS_SCORE_USUAL, &score, &err) < 0) {
            fprintf(stderr, "%s\n", err.text);
            exit(1);
        }
        us[i] = 1e-3 * (double)(drps_clock_ns() - begin);
        sum += us[i];
    }
    const uint64_t reads = drps_predictor_reads(p, &bytes);
    qsort(us, s->n, sizeof(*us), by_value);
    printf("%.2f %.2f %.2f %.0f ", us[s->n / 2], sum / (double)s->n,
           (double)(reads - before) / (double)s->n, (double)(bytes - before_bytes) / (double)s->n);
}

int main(int argc, char **argv)
{
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_predictor *p;
    struct samples s = {.n = 0};
    if (argc != 5) return 2;
    const size_t most = (size_t)strtoull(argv[4], NULL, 10);
    if (!most || most > MOST) return 2;
    double *us = calloc(most, sizeof(*us));
    read_samples(argv[2], most, &s);
    forget(argv[1], 1);
    const uint64_t begin = drps_clock_ns();
    if (!us || drps_predictor_open(argv[1], strtoull(argv[3], NULL, 10), &p, &err) < 0) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    const double opened = drps_seconds_since(begin);
    pass(p, &s, us);
    pass(p, &s, us);
    printf("%.2f\n", opened);
    drps_predictor_close(p);
    free(s.indices);
    free(s.values);
    free(s.starts);
    free(us);
    return 0;
}
