/*
 * Micro order: samples that share rare features stand together, so that rows which few samples use
 * are moved less often. Shared inside index/.
 *
 * A row is rare that 2 to MICRO_MOST training samples use, and scarce that at most MICRO_SCARCE of
 * these do. Each sample takes two of its rows by a hash: one that is scarce, and one that is rare
 * but not scarce. Samples with the same scarce row make a cluster, of whose other rows the first by
 * hash is the cluster's. Clusters with the same one stand side by side, and this line is cut into
 * groups of MICRO_GROUP samples. Each group goes to a window of some MICRO_WINDOW samples at
 * random, and the samples of a window are shuffled.
 *
 * All of it follows from the seed, the samples and their order in the input, not from the memory:
 * rows are counted as many at a time as fit, and samples are sorted externally.
 */
#ifndef DRPS_INDEX_MICRO_MICRO_H
#define DRPS_INDEX_MICRO_MICRO_H

#include <stdint.h>

#include "index/samples/drps_spool.h"

enum { MICRO_SCARCE = 4, MICRO_MOST = 64, MICRO_GROUP = 32, MICRO_WINDOW = 4000 };

struct micro_job {
    const struct drps_io *io;
    const char *dir;     /* for scratch files */
    const uint32_t *map; /* provisional to placed ids; NULL: samples have these */
    uint64_t rows;       /* placed ids are below that */
    uint64_t samples;
    uint64_t seed;
    uint64_t memory_bytes;                                       /* beside those of the spools */
    int (*turn)(void *ctx, uint64_t done, struct drps_err *err); /* called now and then */
    void *turn_ctx;
};

/* Drain a spool of one bucket, in the order of arrival, into one that drains in micro order. A
 * sample's order is a random number of 64 bits before, and says where it stands afterwards. */
DRPS_MUST_CHECK
int drps_micro_order(const struct micro_job *job, struct spool *from, struct spool *to,
                     struct drps_err *err);

#endif
