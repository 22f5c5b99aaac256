/*
 * Selection of sufficient vectors: C of a batch's B stand for all of them. What is sent is the
 * chosen x with new u, so that the sum of their outer products takes the place of the batch's.
 *
 * Pure functions: the same batch and seed give the same result in one build; nothing is kept.
 *
 * Sources: Xie et al., "Orpheus", section 3.2.1, for what is chosen. Scaling by B/C and projecting
 * are ours: without them the sum is C/B of what it should be.
 *
 * Shared inside engine/.
 */
#ifndef DRPS_ENGINE_CLUSTER_SV_SELECT_SELECT_H
#define DRPS_ENGINE_CLUSTER_SV_SELECT_SELECT_H

#include "base/drps_err.h"
#include "engine/model/drps_vectors.h"

enum drps_select_rule {
    DRPS_SELECT_ALL,    /* nothing is left out */
    DRPS_SELECT_RANDOM, /* with equal probabilities; u times B/C */
    DRPS_SELECT_JMCSS,  /* by drps_jmcss(); u times B/C */
    /* By drps_jmcss(); the new u make the sum as near to the batch's as the chosen x allow. Where
     * these allow too little, as DRPS_SELECT_RANDOM. */
    DRPS_SELECT_PROJECT,
};

enum { DRPS_SELECT_VECTORS_MOST = 1 << 16 };

struct drps_select_options {
    enum drps_select_rule rule;
    uint32_t count;        /* C; where a batch has no more, all are taken */
    double least_captured; /* projects from this share on; 0: .75 */
    uint64_t seed;         /* another one for each batch */
};

/* Arrays are the caller's. */
struct drps_selected {
    uint32_t n;      /* chosen: the least of C and B */
    uint32_t *picks; /* [n] samples of the batch, increasing */
    float *u;        /* [n][dim] in place of theirs */
    /* Share of the batch's squared norm that projecting leaves right; only of
     * DRPS_SELECT_PROJECT, else 0. */
    double captured;
    int projected; /* 1: the u were projected, and `error` has changed */
};

/* Memory that drps_select() uses for a batch of n vectors, whose x have so many entries in all, in
 * bytes; n at most DRPS_SELECT_VECTORS_MOST. */
size_t drps_select_scratch(uint32_t n, uint32_t entries, const struct drps_select_options *options);

/*
 * Choose, and make the new u.
 *
 * error    [rows of the matrix][dim] what earlier projections left wrong, at first zeros; it is
 *          projected with this batch, and what is left is written back. NULL: it is forgotten.
 *          Changes in rows that the batch names.
 * scratch  of drps_select_scratch() bytes, aligned for doubles
 *
 * -EINVAL: more vectors than DRPS_SELECT_VECTORS_MOST, or a count of 0. -EDOM: a vector holds a
 * value that is not finite (not looked for with DRPS_SELECT_ALL and DRPS_SELECT_RANDOM). Nothing is
 * changed then but the arrays of `out`. A new u that is beyond floats is infinite.
 */
DRPS_MUST_CHECK
int drps_select(const struct drps_vectors *batch, const struct drps_select_options *options,
                float *error, void *scratch, struct drps_selected *out, struct drps_err *err);

#endif
