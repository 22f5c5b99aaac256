/*
 * Negatives of implicit feedback: for each sample, a user and an item that the user has chosen,
 * items are drawn that the user has not. Shared inside index/.
 *
 * It needs to be known which items there are, and which rows they have, so it is a pass of its own
 * over the samples, between placing and batching. Samples are sorted by user, outside of memory
 * where they must be, and each user's choices are met together. A draw depends on the seed and on
 * the sample's place in the order of all, not on memory.
 *
 * Negatives of training samples are none of the user's training choices; those of evaluation none
 * of all choices that the data says of the user. An item has mass 1, or by popularity as many as
 * there are training samples of it.
 *
 * Sources: Rendle, Freudenthaler, Gantner and Schmidt-Thieme (UAI 2009), section 4.2, for pairs of
 * items; Hu, Koren and Volinsky (ICDM 2008), Eq. 3, for the confidence 1 + alpha r.
 */
#ifndef DRPS_INDEX_NEGATIVES_NEGATIVES_H
#define DRPS_INDEX_NEGATIVES_NEGATIVES_H

#include <stdint.h>

#include "base/drps_io.h"
#include "index/plan/drps_plan.h"
#include "index/samples/drps_spool.h"

struct negatives_job {
    const struct drps_io *io;
    const char *dir;         /* for scratch files */
    struct drps_table items; /* placed ids of items; of each other row no sample has two */
    const uint32_t *map;     /* provisional to placed ids; NULL: samples have these */
    int confidence; /* 1: labels are (1 + alpha r) / weight; 0: they are 1. Where `how.weight` is 0
                       it is the user's, see struct drps_plan_negatives, and training samples weigh
                       so much more */
    struct drps_plan_negatives how; /* each, test, draws, by_popularity, alpha, weight */
    uint64_t samples, test_samples; /* in the spools */
    uint64_t seed;
    uint64_t memory_bytes; /* of this pass, beside the spools that it empties */
    uint64_t limit_bytes;  /* the memory limit of the run, for messages */
};

/* What is in the spools afterwards, and what was left out. */
struct negatives_drawn {
    uint64_t samples, test_samples, nnz, test_nnz;
    uint64_t few, test_few, test_new; /* see struct drps_plan_negatives */
    double confidence; /* wmf: sum over training samples of 1 + alpha times the rating */
};

/*
 * Replace both spools by such as drain in the same order, with placed ids, and roles as fields. A
 * training sample comes `draws` times: once in each of as many passes over all. test may be without
 * samples. DRPS_E_MEMORY_BUDGET: the items, or what one user has chosen, do not fit.
 */
DRPS_MUST_CHECK
int drps_negatives_draw(const struct negatives_job *job, struct spool **train, struct spool **test,
                        struct negatives_drawn *out, struct drps_err *err);

#endif
