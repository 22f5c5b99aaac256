/*
 * The row lists of a sample of the samples: what blocks are built from in place of those of all
 * batches. Private to index/blocks/. Source: DRPS, section 4.2 (data sampling).
 */
#ifndef DRPS_INDEX_BLOCKS_SAMPLED_H
#define DRPS_INDEX_BLOCKS_SAMPLED_H

#include "index/blocks/drps_make_blocks.h"

/*
 * Each sample of job->from is chosen with probability options.sample, by its number and the seed.
 * In their order the chosen ones make batches of info->batch_size, whose row lists become
 * dir/rows.rec, a folder that is made; it has as many lists as the plan has batches, of which the
 * last are empty.
 */
DRPS_MUST_CHECK
int drps_sampled_lists(const struct blocks_job *job, const struct drps_plan_info *info,
                       const char *dir, struct drps_err *err);

#endif
