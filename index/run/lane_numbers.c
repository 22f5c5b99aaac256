/* Rows of a plan with lanes are numbered by lane, so that it is the same for one worker and for
 * several (index/ranks/drps_lane_rows.h). */
#include "index/ranks/drps_lane_rows.h"
#include "index/run/run.h"

int drps_run_number_by_lane(struct index_run *r, struct drps_err *err)
{
    const struct circulation c = circulation_of(r->info, r->parts_n);
    const struct lane_rows_job job = {.io = r->io,
                                      .from = r->laid,
                                      .to = r->stage.dir,
                                      .circulation = &c,
                                      .pages =
                                          !drps_block_builder_find(r->options.blocks.by)->merges,
                                      .block_rows = drps_run_block_rows(r),
                                      .memory_bytes = r->options.memory_bytes};
    int rc = drps_lane_rows_make(&job, r->info, &r->block_first, &r->range_first, err);
    return rc < 0 ? rc : drps_io_remove_tree(r->io, r->laid, err);
}
