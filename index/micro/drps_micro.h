/*
 * Micro order: samples that share rare features stand together, so that rows which few samples use
 * are moved less often. Shared inside index/.
 *
 * A row is rare that 2 to MICRO_MOST training samples use. There are three classes of rare rows:
 * up to MICRO_SCARCE uses, up to MICRO_SELDOM, and more. Each sample takes of each class that of
 * its rows which is first by a hash. Samples with the same row of the first class make a cluster,
 * which has the other rows of one of them. Clusters with the same row of the second class make
 * larger ones in the same way, and those with the same row of the third class stand side by side.
 * This line is cut into groups of MICRO_GROUP samples. Each group goes to a part of some
 * MICRO_PART samples at random, and the samples of a part are shuffled.
 *
 * All of it follows from the seed, the samples and their order in the input, not from the memory:
 * rows are counted as many at a time as fit, and samples are sorted externally.
 */
#ifndef DRPS_INDEX_MICRO_MICRO_H
#define DRPS_INDEX_MICRO_MICRO_H

#include <stdint.h>

#include "index/samples/drps_spool.h"

enum { MICRO_CLASSES = 3, MICRO_SCARCE = 4, MICRO_SELDOM = 16, MICRO_MOST = 64 };
enum { MICRO_GROUP = 32, MICRO_PART = 4000 };

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
