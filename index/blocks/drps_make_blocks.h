/*
 * From batches to parameter index blocks: count accesses, run a block builder, renumber the rows as
 * it says, and write what the plan says about blocks. Shared inside index/.
 */
#ifndef DRPS_INDEX_BLOCKS_MAKE_BLOCKS_H
#define DRPS_INDEX_BLOCKS_MAKE_BLOCKS_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/drps_err.h"
#include "base/drps_io.h"
#include "base/drps_log.h"
#include "index/blocks/builders/drps_builder.h"
#include "index/blocks/remote/drps_remote_counts.h"
#include "index/plan/drps_plan.h"

struct blocks_job {
    const struct drps_io *io;
    const char
        *from;      /* folder of data.rec, rows.rec and names.rec, rows numbered in placed order */
    const char *to; /* folder that gets these files */
    const struct block_builder *builder;
    struct block_options options; /* memory_bytes: of all that is done here */
    double keep_share;            /* in place of options.keep_rows: this share of the rows, 0 .. 1;
                                     0: options.keep_rows says */
    int samples;                  /* 1: options.sample is of the samples, which make batches anew;
                                     0: of the batches */
    unsigned shards;              /* processes that count accesses */
    struct drps_remote_link *remote; /* instead: its peers do; closed here, if counting begins;
                                    NULL: none */
    const struct drps_log *log;      /* borrowed; told when a builder did with less */
    const atomic_int *stop;          /* borrowed, NULL allowed: not 0 ends building */
};

/*
 * Build blocks and place the rows. Fills in info's blocks and blocks_by. *first_out [info->blocks +
 * 1] is the caller's to free(), also after a failure. `from` holds none of the three files
 * afterwards, or all of them; if it is `to`, the builder must be one that keeps the order.
 */
DRPS_MUST_CHECK
int drps_blocks_make(const struct blocks_job *job, struct drps_plan_info *info,
                     uint32_t **first_out, struct drps_err *err);

/*
 * Write dir/blocks.rec and dir/uses.rec of the blocks first[0 .. info->blocks] and dir/rows.rec.
 * Fills in info's max_block_rows, max_step_blocks and what its blocks cost.
 */
DRPS_MUST_CHECK
int drps_blocks_make_files(const struct blocks_job *job, const char *dir, const uint32_t *first,
                           struct drps_plan_info *info, struct drps_err *err);

#endif
