/* Counts hits of recommendations among held-out ratings, user by user. Shared inside
 * engine/recommend/. */
#ifndef DRPS_ENGINE_RECOMMEND_EVALUATE_H
#define DRPS_ENGINE_RECOMMEND_EVALUATE_H

#include <stddef.h>
#include <stdint.h>

#include "base/drps_io.h"
#include "engine/recommend/evaluate/drps_evaluation.h"
#include "engine/recommend/input/drps_ratings.h"
#include "engine/recommend/input/drps_rowset.h"

struct drps_evaluate; /* opaque */

/* Items of one user at most, and the memory for them. */
enum { DRPS_EVALUATE_ITEMS = 1 << 20 };
#define DRPS_EVALUATE_MEMORY ((uint64_t)DRPS_EVALUATE_ITEMS * sizeof(uint32_t))

/* Held-out ratings below `least` are left out (NULL: none are). A sort in sort_bytes; io and dir
 * are borrowed. -ENOMEM. Close it also after a failure. */
DRPS_MUST_CHECK
int drps_evaluate_open(const struct drps_io *io, const char *dir, uint64_t sort_bytes,
                       uint64_t rows, const double *least, struct drps_evaluate **e_out,
                       struct drps_err *err);
void drps_evaluate_close(struct drps_evaluate *e); /* NULL-safe */

/* Takes held-out ratings. */
struct drps_rating_sink drps_evaluate_sink(struct drps_evaluate *e);

/* There are no more: keep in `users` only those who have some. */
DRPS_MUST_CHECK
int drps_evaluate_begin(struct drps_evaluate *e, struct drps_rowset *users, struct drps_err *err);

/* The best items [found_n] of a user, best first, of `n` that were wanted; seen [seen_n]
 * increasing. Users come in the order of their rows. DRPS_E_MEMORY_BUDGET: a user has more than
 * DRPS_EVALUATE_ITEMS. */
DRPS_MUST_CHECK
int drps_evaluate_user(struct drps_evaluate *e, uint64_t user, const uint32_t *found,
                       size_t found_n, size_t n, const uint32_t *seen, size_t seen_n,
                       struct drps_err *err);

void drps_evaluate_result(const struct drps_evaluate *e, struct drps_evaluation *out);

#endif
