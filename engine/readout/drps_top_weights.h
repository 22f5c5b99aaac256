/* The largest weights of a model, with names. Shared inside engine/ and with tools/. */
#ifndef DRPS_ENGINE_READOUT_TOP_WEIGHTS_H
#define DRPS_ENGINE_READOUT_TOP_WEIGHTS_H

#include "base/drps_best.h"
#include "engine/readout/drps_readout.h"

/* Says which weights compete to be among the largest, and by what. */
struct drps_top_choice {
    uint32_t column, lists; /* list i is of float column + i of a row */
    size_t most;            /* of a list; at least 1 */
    int either_sign;        /* 1: by their size, whatever the sign; 0: only those above 0 */
    /* NULL, or a row [dim] of a model with factors: rows compete by the cosine of their factors and
     * this row's, which is then their value. `lists` is 1; rows without factors have none. */
    const float *like;
    uint32_t like_row; /* which does not compete */
};

struct drps_top_weight {
    uint32_t row;
    float value;
    float norm;      /* of the row's factors; 0: it has none */
    double per_unit; /* of a change by 1 in the data, where the column's numbers are scaled; NaN:
                        there is no such weight, as the scale is no line; else the value */
    char *name;      /* own: [name_bytes], any bytes, and a zero */
    size_t name_bytes;
    const char *table; /* borrowed from the model */
    uint64_t samples;  /* of training that have the feature; this and the next one are filled in by
                          drps_support_measure() */
    double error;      /* standard error; NaN: not known */
};

struct drps_top_weights {
    size_t lists, most;
    struct drps_top_weight *of; /* own: [lists][most], largest first */
    size_t *n;                  /* own: [lists] of each list are there */
};

/*
 * Find the largest weights of features: the intercept and rows of training samples do not compete,
 * nor do weights of 0. Of equal ones the first row's comes first. The rows are read once, then
 * those found again, and the dictionary once. Memory: some 90 bytes for each weight, and its name.
 * Destroy *out in either case.
 */
DRPS_MUST_CHECK
int drps_top_weights_find(struct drps_readout *r, const struct drps_top_choice *choice,
                          struct drps_top_weights *out, struct drps_err *err);
void drps_top_weights_destroy(struct drps_top_weights *w); /* zeroed too */

#endif
