/*
 * A model's names in memory, and its rows, or the names alone: what a program that scores single
 * samples looks up. Nothing of it changes once it is loaded, so that any number of threads may read
 * it. Private to engine/predict/.
 *
 * The table of names is open: a key's place is its hash, or the next free one. At most half of the
 * places are taken.
 */
#ifndef DRPS_ENGINE_PREDICT_MEMORY_ROWS_H
#define DRPS_ENGINE_PREDICT_MEMORY_ROWS_H

#include <stddef.h>
#include <stdint.h>

#include "engine/publish/drps_modeldir.h"

struct drps_memory_name {
    uint64_t key;
    uint32_t row; /* DRPS_NO_ROW: the place is free */
};

struct drps_memory_rows {
    uint64_t rows;
    size_t dim;
    float *params;            /* own: [rows][dim]; NULL: rows are read from md */
    struct drps_modeldir *md; /* borrowed */
    size_t params_bytes;
    struct drps_memory_name *names; /* own: [1 << bits] */
    unsigned bits;
    uint64_t named; /* names there are */
};

/* Returns the bytes that a model's names take; and what its rows take beside them. */
uint64_t drps_memory_names_bytes(const struct drps_modeldir_info *info);
uint64_t drps_memory_rows_bytes(const struct drps_modeldir_info *info);

/* Read the names, or with_rows all, of a model whose rows are open. -ENOMEM, DRPS_E_CORRUPT. Free
 * it in either case. */
DRPS_MUST_CHECK
int drps_memory_rows_load(struct drps_memory_rows *m, struct drps_modeldir *md, int with_rows,
                          struct drps_err *err);
void drps_memory_rows_free(struct drps_memory_rows *m); /* zeroed too */

/* For struct drps_scorer_rows; ctx is a struct drps_memory_rows. */
DRPS_MUST_CHECK
int drps_memory_rows_lookup(void *ctx, const uint64_t *keys, size_t n, uint32_t *rows_out,
                            struct drps_err *err);
DRPS_MUST_CHECK
int drps_memory_rows_gather(void *ctx, const uint32_t *ids, size_t n, float *params,
                            struct drps_err *err);

#endif
