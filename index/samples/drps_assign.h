/*
 * Which worker trains on which samples, where they are placed with the rows that they use
 * (--samples placed, round), or stay with their files (kept), instead of in turn (dealt), or where
 * workers are to have as many entries of a round (--balance). Shared inside index/.
 *
 * Every worker keeps the order that all samples have (shuffled, given, or of a grid), and its
 * samples are cut into as many batches as anybody's, of equal size to one sample: batch k is worker
 * k mod W's in round k / W, as where batches go to workers in turn. Where training samples stay in
 * their round, all batches but those of the last round are full. Where workers' shares are unequal
 * a batch may have more than batch_size samples, and a round as many.
 */
#ifndef DRPS_INDEX_SAMPLES_ASSIGN_H
#define DRPS_INDEX_SAMPLES_ASSIGN_H

#include <stdint.h>

#include "base/drps_log.h"
#include "index/drps_index.h"
#include "index/plan/drps_plan.h"
#include "index/samples/drps_spool.h"

/* What each worker gets of the training samples, or of those held out. */
struct assignment {
    uint32_t workers;
    uint64_t rounds;
    int whole_rounds; /* 1: rounds have the samples that they have where these are dealt, and of
                 each but the last a worker has `full`; 0: a worker's batches are even, to one
                 sample */
    uint64_t full[DRPS_PLAN_WORKERS_MAX];
    uint64_t samples[DRPS_PLAN_WORKERS_MAX];
    uint64_t dealt_rows; /* rows of all batches, had they been dealt in turn; of training only */
    double largest, largest_before; /* where rounds were balanced: of all rounds, the entries of the
                                       worker with most, to the mean; and before that */
};

/* Samples of a worker in all batches before the one of this round. */
static inline uint64_t assigned_before(const struct assignment *a, uint32_t worker, uint64_t round)
{
    const uint64_t n = a->samples[worker];
    if (a->whole_rounds) return round * a->full[worker] < n ? round * a->full[worker] : n;
    return (uint64_t)((__uint128_t)n * round / a->rounds);
}

/* Samples of batch k, 0 .. rounds * workers - 1; may be none. */
static inline uint64_t assigned_batch(const struct assignment *a, uint64_t k)
{
    const uint64_t round = k / a->workers;
    const uint32_t worker = (uint32_t)(k % a->workers);
    return assigned_before(a, worker, round + 1) - assigned_before(a, worker, round);
}

struct assign_job {
    const struct drps_io *io;
    const char *dir; /* for scratch files */
    uint32_t workers;
    uint32_t rows;       /* placed ids are below that */
    uint64_t batch_size; /* no batch is larger, unless shares are unequal */
    int rounds;          /* 1: a round has the training samples that it has where they are dealt */
    int kept;            /* 1: samples have their owners */
    int tests_dealt;     /* with kept: samples of evaluation go to workers in turn all the same */
    int dealt;           /* 1: they begin where they are dealt, and only balancing moves them */
    const double *share; /* dealt: each worker's share of a round, 1 in all; NULL: all alike */
    double balance; /* of a round nobody is to have more entries than so many times the mean; 0:
                       they stay as they are. rounds is 1 */
    uint64_t seed;
    uint64_t memory_bytes;
    const uint32_t *map; /* provisional to placed ids; NULL: samples have these */
    const struct drps_log *log;
    const struct drps_dppa_wish *dppa; /* not NULL: samples are placed so, and rounds is 0 */
    uint32_t **row_homes; /* dppa: set to an own array [rows] of machines where rows are placed
                             first; also after a failure */
    int (*turn)(void *ctx, uint64_t placed, struct drps_err *err); /* dppa: called now and then;
                                                                      NULL allowed */
    void *turn_ctx;
};

/*
 * Replace both spools by such as drain batch after batch, with placed ids. test may be without
 * samples. Of samples that are dealt the assignment has no rounds. DRPS_E_MEMORY_BUDGET: see
 * drps_streams_place().
 */
DRPS_MUST_CHECK
int drps_assign_samples(const struct assign_job *job, struct spool **train, struct spool **test,
                        struct assignment *train_out, struct assignment *test_out,
                        struct drps_err *err);

#endif
