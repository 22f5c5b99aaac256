/*
 * What the plan of a rank says of a round beside its batch (data.rec) and the union of rows that
 * its server opens (rows.rec): how many of the batch's rows each server has (shares.rec), and which
 * of the union's rows each worker's batch has (positions.rec). So rows travel without their ids.
 *
 * Servers own neighbouring ranges of placed ids, and row lists are in placed order: the parts of
 * servers 0, 1, ... one after another are the rows of the batch.
 */
#ifndef DRPS_INDEX_PLAN_ROUND_H
#define DRPS_INDEX_PLAN_ROUND_H

#include <stddef.h>
#include <stdint.h>

#include "base/drps_err.h"
#include "index/plan/drps_plan.h"

/* The files of a rank's plan with a record for each round. */
enum {
    DRPS_ROUND_DATA,
    DRPS_ROUND_ROWS,
    DRPS_ROUND_SHARES,
    DRPS_ROUND_POSITIONS,
    DRPS_ROUND_FILES
};
struct drps_round_file {
    const char *name;
    uint32_t kind;
};
extern const struct drps_round_file drps_round_file[DRPS_ROUND_FILES];

/*
 * Record of shares.rec: packed numbers, one a server; shares_out [workers]. DRPS_E_CORRUPT unless
 * they are as many and sum up to `rows`.
 */
DRPS_MUST_CHECK
int drps_shares_decode(const void *record, size_t bytes, uint32_t workers, size_t rows,
                       uint32_t *shares_out, struct drps_err *err);

/* Rows of an epoch that the worker of a part has at each server. */
struct drps_round_rows {
    uint64_t training[DRPS_PLAN_WORKERS_MAX], evaluation[DRPS_PLAN_WORKERS_MAX];
};

/* Sum shares.rec up. DRPS_E_CORRUPT. */
DRPS_MUST_CHECK
int drps_shares_sum(const struct drps_plan *part, struct drps_round_rows *out,
                    struct drps_err *err);

/*
 * Record of positions.rec: for each worker a packed list of positions in the union. Worker w's are
 * positions_out[part_out[w] .. part_out[w + 1]), strictly increasing and below `rows`; part_out
 * [workers + 1]. DRPS_E_CORRUPT when malformed, or when they are more than `cap` together.
 */
DRPS_MUST_CHECK
int drps_positions_decode(const void *record, size_t bytes, uint32_t workers, size_t rows,
                          size_t cap, uint32_t *positions_out, size_t *part_out,
                          struct drps_err *err);

#endif
