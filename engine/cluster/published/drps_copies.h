/*
 * The copies that a worker keeps of rows of other servers, each in the row's residual slot
 * (index/plan/drps_residuals.h). Servers leave out what the copy has. One thread. Shared inside
 * engine/.
 */
#ifndef DRPS_ENGINE_CLUSTER_PUBLISHED_COPIES_H
#define DRPS_ENGINE_CLUSTER_PUBLISHED_COPIES_H

#include "index/plan/drps_plan.h"
#include "index/plan/drps_residuals.h"

struct drps_copies; /* opaque: slots, and a batch's rows */

/* For batches of at most `most_rows` rows. NULL: no memory. */
struct drps_copies *drps_copies_new(uint64_t slots, uint32_t dim, uint64_t most_rows);
void drps_copies_free(struct drps_copies *c); /* NULL-safe */

/* Returns the memory of that. */
uint64_t drps_copies_bytes(uint64_t slots, uint32_t dim, uint64_t most_rows);

/* Where the next batch's record is decoded to; set n first. */
struct drps_residual_rows *drps_copies_rows(struct drps_copies *c);

/* The batch begins: rows that are used the last time give their copies up, once it is over. */
void drps_copies_begin(struct drps_copies *c);

/* Returns the copy [dim] of row i of the batch's rows of other servers; NULL: there is none. */
const float *drps_copies_at(const struct drps_copies *c, size_t i);

/* Keep copies of the batch's rows: params [][dim] of all of them, of which [own_first, own_first +
 * own_n) are the rank's own. */
void drps_copies_keep(struct drps_copies *c, const float *params, size_t own_first, size_t own_n);

#endif
