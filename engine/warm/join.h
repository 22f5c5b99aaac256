/* Which row of an earlier run each row of a plan was, by their names. Private to engine/warm/. */
#ifndef DRPS_ENGINE_WARM_JOIN_H
#define DRPS_ENGINE_WARM_JOIN_H

#include "base/drps_extsort.h"
#include "engine/warm/old.h"

struct warm_join {
    const struct drps_io *io;
    const char *dir; /* for runs of the sort */
    const struct warm_old *old;
    const struct warm_about *now; /* of the whole plan */
    const char *names_dir;        /* of its names.rec */
    uint64_t memory_bytes;        /* of the sort of names, where there is one */
};

/* Gets each pair once, in no order; rows are within those of `old` and `now`. */
typedef int (*warm_pair)(void *ctx, uint32_t old_row, uint32_t row, struct drps_err *err);

/* Find all pairs; the intercepts are one where both have them. DRPS_E_CORRUPT: a dictionary is
 * damaged. */
DRPS_MUST_CHECK
int drps_warm_join(const struct warm_join *j, warm_pair take, void *ctx, struct drps_err *err);

#endif
