/*
 * Which rows may merge. Shared inside index/. Source: DRPS, section 4.2 (dimension pruning).
 *
 * Builders that compare all pairs leave rows alone that few batches use: those that the user says,
 * and as many more as it takes for the rest to fit the memory and to be done in minutes. That is
 * known from the counts of rows alone, so it is said before anything else is counted.
 */
#ifndef DRPS_INDEX_BLOCKS_BUILDERS_PRUNE_H
#define DRPS_INDEX_BLOCKS_BUILDERS_PRUNE_H

#include <stdint.h>

#include "base/drps_err.h"
#include "index/blocks/builders/drps_builder.h"

/* What a builder that compares all pairs can keep. */
struct prune_choice {
    uint32_t asked; /* rows that options let merge */
    uint32_t kept;  /* of these, the most used */
    int for_time;   /* where kept < asked: 1: one more has room, but takes too long */
};

/*
 * Choose how many rows t's builder keeps: as many as options->memory_bytes and time allow.
 * DRPS_E_MEMORY_BUDGET: not even two.
 */
DRPS_MUST_CHECK
int drps_prune_choose(struct counts *t, const struct block_options *options,
                      struct prune_choice *out, struct drps_err *err);

#endif
