/*
 * Rows of a plan for several workers go to servers as partition/ says, and get new placed ids, so
 * that each server's are neighbours (docs/placement.md). Shared inside index/.
 *
 * With `auto` each row has a home of its own. The others place units:
 * blocks, and the rows that are used most one by one (DRPS, section 5); where samples
 * were placed by what they use, a block is cut into a unit for each worker that uses some of its
 * rows more than others do. The intercept stays row 0, of server 0.
 */
#ifndef DRPS_INDEX_RANKS_PLACEMENT_H
#define DRPS_INDEX_RANKS_PLACEMENT_H

#include "index/ranks/drps_owners.h"

struct swap_ranks; /* index/swap/drps_swap.h */

struct placement_job {
    const struct drps_io *io;
    const char *from; /* folder of data.rec, rows.rec and names.rec */
    const char *to;   /* folder that gets them with the new ids */
    const char *algo; /* greedy, dppa, auto or hash: drps_rows_place() has them */
    uint32_t servers;
    uint32_t workers, first_worker; /* batch k is that of rank first_worker + k mod workers */
    int by_home;                    /* samples were placed: cut units by who uses their rows most */
    int pages; /* blocks are pages: a server's are cut anew where they are full */
    /* dppa alone: */
    int single;                /* 1: each row is placed by itself, in place of units */
    int by_sets;               /* 1: traffic is counted by sets (drps_partition.h) */
    const uint32_t *row_homes; /* [info->rows] machines that are settled already; NULL: none */
    uint64_t *set_rows, *busiest_set_rows; /* single: set to what struct drps_index_links has */
    uint32_t block_rows;                   /* of a block at most, >= 1 */
    double hot_share; /* units: of the rows, those used most are placed one by one, 0 .. 1 */
    uint64_t net_bps; /* units: bytes a second of a machine's link, t_net */
    uint64_t memory_bytes;
    uint64_t batches, records; /* in the files: of training, and all */
    struct swap_ranks *ranks;  /* of several machines, the files have this rank's batches alone, and
                                  names on rank 0; auto places rows alike on all. NULL: alone */
};

/* Whether rows are renumbered for `algo`; ranges (NULL, "range", "counts") leave them where they
 * are. */
int drps_placement_renumbers(const char *algo);

/* Whether `algo` puts rows where they are used: then it pays to place samples first. */
int drps_placement_follows_samples(const char *algo);

/*
 * Renumber rows and cut their blocks anew: what is left of the old ones in each server, or, of
 * pages, pages of it; where units are placed, hot rows of a server before that, in blocks of their
 * own. *block_first [info->blocks + 1]
 * is replaced and stays the caller's to free(), also after a failure. Sets info->blocks; tables
 * other than the intercept's, whose rows mix, become one, "rows". DRPS_E_CONFIG: fewer rows than
 * servers; DRPS_E_MEMORY_BUDGET.
 */
DRPS_MUST_CHECK
int drps_placement_make(const struct placement_job *job, struct drps_plan_info *info,
                        uint32_t **block_first, struct owners *out, struct drps_err *err);

#endif
