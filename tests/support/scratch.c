#include "support/scratch.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include <cmocka.h>

#include "base/drps_io.h"
#include "base/drps_rng.h"

void scratch_begin(struct scratch *s)
{
    const char *root = getenv("TMPDIR");
    memset(s, 0, sizeof(*s));
    (void)snprintf(s->dir, sizeof(s->dir), "%s/drps-test-XXXXXX", root && *root ? root : "/tmp");
    if (!mkdtemp(s->dir)) fail_msg("cannot make %s: %s", s->dir, strerror(errno));
}

void scratch_end(struct scratch *s)
{
    (void)drps_io_remove_tree(drps_io_os(), s->dir, NULL); /* what stays is in a temporary folder */
}

int scratch_setup(void **state)
{
    struct scratch *s = calloc(1, sizeof(*s));
    if (!s) return -1;
    scratch_begin(s);
    *state = s;
    return 0;
}

int scratch_teardown(void **state)
{
    scratch_end(*state);
    free(*state);
    return 0;
}

const char *scratch_path(struct scratch *s, const char *name)
{
    char *path = s->paths[s->next++ % SCRATCH_PATHS];
    size_t dir_n = strlen(s->dir);
    size_t name_n = strlen(name);
    assert_true(dir_n + name_n + 2 <= SCRATCH_PATH_BYTES);
    memcpy(path, s->dir, dir_n);
    path[dir_n] = '/';
    memcpy(path + dir_n + 1, name, name_n + 1);
    return path;
}

void scratch_write(const char *path, const void *data, size_t n)
{
    FILE *f = fopen(path, "wb");
    if (!f) fail_msg("cannot make %s: %s", path, strerror(errno));
    size_t put = n ? fwrite(data, 1, n, f) : 0;
    if (fclose(f) || put != n) fail_msg("cannot write %s", path);
}

const char *scratch_file(struct scratch *s, const char *name, const void *data, size_t n)
{
    const char *path = scratch_path(s, name);
    scratch_write(path, data, n == SIZE_MAX ? strlen(data) : n);
    return path;
}

char *scratch_read(const char *path, size_t *n_out)
{
    struct drps_err err = DRPS_ERR_INIT;
    char *data = NULL;
    if (drps_io_read_file(drps_io_os(), path, SIZE_MAX - 1, &data, n_out, &err) < 0)
        fail_msg("%s", err.text);
    return data;
}

int path_exists(const char *path)
{
    struct stat st;
    return lstat(path, &st) == 0;
}

size_t folder_entries(const char *path)
{
    size_t n = 0;
    DIR *dir = opendir(path);
    if (!dir) fail_msg("cannot list %s: %s", path, strerror(errno));
    for (const struct dirent *e; (e = readdir(dir));)
        n += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
    (void)closedir(dir); /* only read */
    return n;
}

int files_equal(const char *a, const char *b)
{
    size_t an, bn;
    char *x = scratch_read(a, &an);
    char *y = scratch_read(b, &bn);
    int same = an == bn && memcmp(x, y, an) == 0;
    free(x);
    free(y);
    return same;
}

struct random_source random_begin(const char *test)
{
    const char *text = getenv("DRPS_TEST_SEED");
    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME, &now); /* cannot fail */
    uint64_t seed =
        text ? strtoull(text, NULL, 0) : (uint64_t)now.tv_sec * 1000003u + (uint64_t)now.tv_nsec;
    print_message("%s: DRPS_TEST_SEED=%" PRIu64 "\n", test, seed);
    return (struct random_source){.seed = seed};
}

uint64_t random_u64(struct random_source *r)
{
    return drps_rng_at(r->seed, r->i++);
}

uint64_t random_below(struct random_source *r, uint64_t n)
{
    return (uint64_t)(((__uint128_t)random_u64(r) * n) >> 64);
}
