/*
 * The parts of a plan: a folder for each rank, or the plan itself for one worker. What follows from
 * a part's row lists is made alike for all: blocks and their uses, windows, forecast. Private to
 * index/.
 */
#ifndef DRPS_INDEX_RUN_PARTS_H
#define DRPS_INDEX_RUN_PARTS_H

#include "index/blocks/drps_layout.h"
#include "index/drps_index.h"
#include "index/ranks/drps_split.h"

struct part {
    char dir[DRPS_PLAN_PATH_BYTES];
    struct drps_plan_info info;
    uint32_t *block_first; /* own: [info.blocks + 1] */
    struct drps_window_options window;
    struct drps_forecast forecast[DRPS_FORECASTS];
    size_t forecasts;
};

/*
 * Make one rank's part in the new folder part->dir: deal it its batches and rows, and number the
 * blocks that its range has a row of; one across the border of two ranges is cut. part->info is
 * that of all as far as it is known; block_first [info.blocks + 1] are the blocks of all.
 */
DRPS_MUST_CHECK
int part_deal(struct part *part, const struct deal_job *job, uint32_t rank,
              const uint32_t *block_first, struct drps_err *err);

/*
 * The rows that drps-train --memory of the same size will have room for in two windows, a little
 * less rather than more: then it runs these windows, else it compiles others. Its program and
 * buffers take some fixed memory and a share of the rest, and every row some bytes beside itself.
 */
uint64_t parts_room_rows(uint64_t row_bytes, uint64_t memory_bytes);

/*
 * windows.rec and slots.rec for so much memory of drps-train, and, unless no_forecast, the I/O of
 * an epoch. Windows follow from rows.rec, the forecast from that and uses.rec: they are made side
 * by side, in half of the memory each.
 */
DRPS_MUST_CHECK
int part_study(struct part *part, const struct drps_io *io, uint64_t memory_bytes, int no_forecast,
               const struct drps_log *log, struct drps_err *err);

/* plan.json, into the part's folder. */
DRPS_MUST_CHECK
int part_save(const struct part *part, const struct drps_io *io, char *const *fields,
              struct drps_err *err);

/* Numbers of the whole from those of its n > 1 parts, and what result says of each. */
void parts_sum(const struct part *parts, uint32_t n, struct drps_index_result *result);

void part_free(struct part *part);

#endif
