/*
 * The server's side of rows that are handed on (drps_handing.h): which uses of a round's rows are
 * not plain (index/plan/drps_handed.h). Shared inside engine/.
 */
#ifndef DRPS_ENGINE_CLUSTER_HANDED_LENDING_H
#define DRPS_ENGINE_CLUSTER_HANDED_LENDING_H

#include "engine/step/drps_feed.h"
#include "index/plan/drps_handed.h"

struct drps_lending; /* opaque: the stream of records */

struct drps_lending_job {
    const struct drps_plan *plan; /* the rank's part; borrowed */
    uint64_t epochs;              /* as of drps_handing_job */
    int is_over;
};

DRPS_MUST_CHECK
int drps_lending_open(const struct drps_lending_job *job, struct drps_lending **lending_out,
                      struct drps_err *err);
void drps_lending_close(struct drps_lending *lending); /* NULL-safe */

/* A round. Zero: nothing is lent. */
struct drps_lent {
    uint8_t *use;       /* own: [max_round_uses] bits of each use (DRPS_LENT_AWAY ...) */
    uint8_t *away;      /* own: [max_round_rows] 1 for each row of the union that a worker has */
    uint32_t *given;    /* own: [ranks] rows that go to each worker */
    uint32_t *returned; /* own: [ranks] and that come back */
    uint32_t *plain;    /* own: [ranks] rows of each that are pulled and pushed */
    int is_of_round;    /* 1: these are of a round in which rows may be away */
};

/* Free it with drps_lent_free(), also after a failure. */
DRPS_MUST_CHECK
int drps_lent_allocate(struct drps_lent *lent, const struct drps_plan_info *info,
                       struct drps_err *err);
void drps_lent_free(struct drps_lent *lent);

/* Fill in the next training round, whose union is u. DRPS_E_CORRUPT. */
DRPS_MUST_CHECK
int drps_lending_next(struct drps_lending *lending, const struct drps_feed_union *u,
                      struct drps_lent *lent, struct drps_err *err);

#endif
