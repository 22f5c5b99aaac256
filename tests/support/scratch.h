/*
 * What most tests need: a temporary folder that goes away with the test, small files, and random
 * numbers whose seed is printed. Every helper fails the running cmocka test when the system
 * refuses.
 */
#ifndef DRPS_TESTS_SCRATCH_H
#define DRPS_TESTS_SCRATCH_H

#include <stddef.h>
#include <stdint.h>

enum { SCRATCH_PATHS = 16, SCRATCH_PATH_BYTES = 512 };

struct scratch {
    char dir[SCRATCH_PATH_BYTES / 2];
    char paths[SCRATCH_PATHS][SCRATCH_PATH_BYTES]; /* a ring: what scratch_path() returned last */
    unsigned next;
};

/* A new folder below $TMPDIR, or its removal with everything in it. */
void scratch_begin(struct scratch *s);
void scratch_end(struct scratch *s);

/* Fixtures of cmocka that begin and end a scratch folder: *state is the struct scratch. */
int scratch_setup(void **state);
int scratch_teardown(void **state);

/* "<dir>/<name>", valid until SCRATCH_PATHS further calls. */
const char *scratch_path(struct scratch *s, const char *name);

/* Write a whole file; returns its path, valid as scratch_path()'s. n SIZE_MAX: data is a string. */
const char *scratch_file(struct scratch *s, const char *name, const void *data, size_t n);

/* A whole file in memory with a zero byte after it; free() it. */
char *scratch_read(const char *path, size_t *n_out);
void scratch_write(const char *path, const void *data, size_t n);

int path_exists(const char *path);

/* Entries of a folder, without "." and "..". */
size_t folder_entries(const char *path);

/* Whether two files hold the same bytes. */
int files_equal(const char *a, const char *b);

/* Random numbers of one test; the seed is DRPS_TEST_SEED or the clock, and is printed. */
struct random_source {
    uint64_t seed, i;
};
struct random_source random_begin(const char *test);
uint64_t random_u64(struct random_source *r);
uint64_t random_below(struct random_source *r, uint64_t n); /* 0 .. n - 1 */

#endif
