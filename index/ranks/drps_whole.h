/*
 * The name of a plan for several ranks, by which they know each other: a hash over what each rank
 * knows of its own part, eight bytes, and what all know. Shared inside index/.
 */
#ifndef DRPS_INDEX_RANKS_WHOLE_H
#define DRPS_INDEX_RANKS_WHOLE_H

#include <stdint.h>

#include "base/drps_io.h"
#include "index/plan/drps_plan.h"

/* Hash the steps of a rank's part, which lie in `dir`: its batches, its rows of each round, and
 * what workers have of them. `info` is the part's. */
DRPS_MUST_CHECK
int drps_whole_hash_rank(const struct drps_io *io, const char *dir,
                         const struct drps_plan_info *info, uint64_t *hash_out,
                         struct drps_err *err);

/* Hash the dictionary, names.rec in `dir`. */
DRPS_MUST_CHECK
int drps_whole_hash_names(const struct drps_io *io, const char *dir, uint64_t *hash_out,
                          struct drps_err *err);

struct whole_parts {
    const uint64_t *rank_hash; /* [info->ranks.count] */
    uint64_t names_hash;
    const uint32_t *first;   /* [info->ranks.count + 1] rank r has the rows first[r] ..
                                first[r + 1] - 1 */
    uint64_t hand_on;        /* as in struct drps_index_options: ranks whose parts hand other */
    uint32_t hand_on_states; /* rows on are not of one plan */
};

/* Set info->ranks.whole, from the shape that the other members of info->ranks say, and the text of
 * the loss. */
void drps_whole_name(const struct whole_parts *parts, struct drps_plan_info *info);

#endif
