/*
 * The parts of a plan: a folder for each rank, or the plan itself for one worker. What follows from
 * a part's row lists is made alike for all: blocks and their uses, windows, forecast. Private to
 * index/.
 */
#ifndef DRPS_INDEX_RUN_PARTS_H
#define DRPS_INDEX_RUN_PARTS_H

#include "index/blocks/drps_make_blocks.h"
#include "index/drps_index.h"

struct part {
    char dir[DRPS_PLAN_PATH_BYTES];
    struct drps_plan_info info;
    uint32_t *block_first; /* own: [info.blocks + 1] */
    struct drps_forecast forecast[DRPS_FORECASTS];
    size_t forecasts; /* 0 without a forecast */
};

/* Returns the rows that drps-train --memory of the same size will have room for in two windows, a
 * little less rather than more: then it runs these windows, else it compiles others. Its program
 * and buffers take some fixed memory and a share of the rest, and every row some bytes beside
 * itself. */
uint64_t drps_parts_room_rows(uint64_t row_bytes, uint64_t memory_bytes);
/* 1: it will have room for all rows of the plan, or part. */
int drps_parts_fit(const struct drps_plan_info *info, uint64_t memory_bytes);

/* What windows of this part are cut for: drps-train's memory is that of this run. Windows and the
 * forecast are made side by side, in half of the memory each. */
struct drps_window_options drps_part_windows(const struct part *part,
                                             const struct drps_index_options *options);

/* Write plan.json into the part's folder, with a forecast or, where that is left for later,
 * without.
 */
DRPS_MUST_CHECK
int drps_part_save(const struct part *part, const struct drps_io *io, char *const *fields,
                   int with_forecast, struct drps_err *err);

/* Numbers of the whole from those of its parts, and, of several, what result says of each. */
void drps_parts_sum(const struct part *parts, uint32_t n, struct drps_index_result *result);

void drps_part_free(struct part *part);

#endif
