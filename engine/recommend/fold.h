/*
 * Queries that are folded in: users with ratings, whom the model need not have, in the order in
 * which they come first. Private to engine/recommend/.
 *
 * Ratings are sorted twice: by user, which tells where each user came first and drops what is only
 * known to have been seen by others; then by that place. Names lie in a scratch file.
 */
#ifndef DRPS_ENGINE_RECOMMEND_FOLD_H
#define DRPS_ENGINE_RECOMMEND_FOLD_H

#include "engine/publish/drps_modeldir.h"
#include "engine/recommend/queries.h"
#include "engine/recommend/input/drps_ratings.h"

struct drps_fold; /* opaque */

struct drps_fold_options {
    struct drps_modeldir *md;
    const char *model;   /* its name, for texts */
    const char *scratch; /* folder, in which 4.part, 5.run and 6.run may be made */
    double l2;
    uint64_t memory_bytes; /* at least drps_fold_memory_least() */
};

uint64_t drps_fold_memory_least(const struct drps_modeldir *md);

/* All is borrowed until close. */
DRPS_MUST_CHECK
int drps_fold_open(const struct drps_io *io, const struct drps_fold_options *options,
                   struct drps_fold **f_out, struct drps_err *err);
void drps_fold_close(struct drps_fold *f); /* NULL-safe */

/* Takes ratings of users who are to be folded in, or of what users have seen, of whom only those
 * matter that are folded in. First the one kind, then the other. */
struct drps_rating_sink drps_fold_sink(struct drps_fold *f, int only_seen);

/* All ratings are there. *users_out: how many are folded in. */
DRPS_MUST_CHECK
int drps_fold_finish(struct drps_fold *f, uint64_t *users_out, struct drps_err *err);

/* DRPS_E_CONFIG: l2 is too small for a user's ratings. DRPS_E_FORMAT: these are too large. */
struct drps_query_source drps_fold_source(struct drps_fold *f);
uint64_t drps_fold_bytes(const struct drps_fold *f); /* of parameters read */

#endif
