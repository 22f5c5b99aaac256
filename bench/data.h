/* Samples in memory, for benchmarks that place them. What goes wrong ends the program. */
#ifndef DRPS_BENCH_DATA_H
#define DRPS_BENCH_DATA_H

#include <stddef.h>
#include <stdint.h>

#include "base/drps_err.h"
#include "partition/drps_homes.h"

/* Returns p, which is not NULL. */
void *must(void *p);
void ok(int rc, const struct drps_err *err);

/* Keys become 0, 1, ... as they appear. Zero it first; data_free() it. */
struct data {
    size_t n, starts_cap, entries_cap;
    size_t *starts;
    uint32_t *features;
    uint64_t *keys; /* [1 << bits] open addressing */
    uint32_t *ids;  /* beside it: id + 1, 0: free */
    uint32_t bits, features_n;
};

void data_add(struct data *d, const uint64_t *keys, size_t n);
void data_read(struct data *d, const char *format, const char *path);
void data_free(struct data *d);

/* Walk units of one row each (a struct drps_units) as a stream of rows. */
int data_walk_rows(void *ctx, drps_row_visit visit, void *visit_ctx, struct drps_err *err);

#endif
