/* How the memory of a run is divided. Private to engine/recommend/. */
#ifndef DRPS_ENGINE_RECOMMEND_SHARE_H
#define DRPS_ENGINE_RECOMMEND_SHARE_H

#include <stddef.h>
#include <stdint.h>

#include "engine/publish/drps_modeldir.h"

/* What a run needs memory for. */
struct drps_share_needs {
    const struct drps_modeldir *md;
    uint64_t limit_bytes;
    size_t most; /* items for each query */
    unsigned threads;
    int ratings; /* some are read */
    int folds;   /* users are folded in */
    int similar;
    int evaluates;           /* held-out items are looked for */
    uint64_t queries, items; /* how many; while that is not known the model's rows */
};

struct drps_share {
    uint64_t model_bytes; /* for drps_modeldir_open_rows() */
    uint64_t reader_bytes;
    uint64_t sort_bytes; /* of ratings, or for drps_fold_open() */
    uint64_t names_bytes;
    size_t items;   /* in memory */
    size_t queries; /* of a block */
    size_t seen;    /* by the queries of a block */
};

/* The least of everything, or DRPS_E_MEMORY_BUDGET with the breakdown. What is left goes to names,
 * sorting, items, and queries. */
DRPS_MUST_CHECK
int drps_share_out(const struct drps_share_needs *needs, struct drps_share *out,
                   struct drps_err *err);

#endif
