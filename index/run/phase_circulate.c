/*
 * The phase that splits a plan by rank where rows circulate (index/ranks/drps_circulation.h): each
 * rank's steps go to a folder of its own.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/drps_alloc.h"
#include "index/ranks/drps_circulate.h"
#include "index/run/run.h"

/* The blocks of what the part holds, which are whole. block_first [blocks + 1] are those of all. */
static int take_blocks(struct part *part, const uint32_t *block_first, uint64_t blocks,
                       struct drps_err *err)
{
    const struct drps_plan_ranks *ranks = &part->info.ranks;
    uint32_t at = 0;
    uint64_t n = 0, b = 0;
    part->block_first = drps_array_new(blocks + 1, sizeof(*part->block_first));
    if (!part->block_first) return drps_err_set(err, -ENOMEM, "no memory for block boundaries");
    for (size_t k = 0; k < ranks->held_n; k++) {
        const uint64_t end = ranks->held[k].first + ranks->held[k].rows;
        while (block_first[b] < ranks->held[k].first)
            b++;
        for (; b < blocks && block_first[b] < end; b++) {
            part->block_first[n++] = at;
            at += block_first[b + 1] - block_first[b];
        }
    }
    part->block_first[n] = at;
    part->info.blocks = n;
    return 0;
}

static int make_part(struct index_run *r, const struct circulate_job *job, uint32_t rank,
                     struct drps_err *err)
{
    const struct blocks_job blocks = drps_run_blocks_job(r);
    struct part *part = &r->parts[rank];
    uint64_t plain = 0;
    part->info = *r->info;
    part->info.max_batch_rows = drps_circulate_most_rows(job);
    int rc = drps_plan_rank_dir(r->stage.dir, rank, part->dir, err);
    if (rc == 0) rc = r->io->ops->mkdir(r->io->ctx, part->dir, 0777);
    if (rc < 0) return drps_err_set(err, rc, "cannot create %s: %s", part->dir, drps_err_name(rc));
    rc = drps_circulate_rank(job, rank, part->dir, &part->info, &plain, err);
    r->result->plain_rows += plain;
    if (rc == 0) rc = take_blocks(part, r->block_first, r->info->blocks, err);
    return rc < 0 ? rc
                  : drps_blocks_make_files(&blocks, part->dir, part->block_first, &part->info, err);
}

static int name_whole(struct index_run *r, const struct circulate_job *job, struct drps_err *err)
{
    uint32_t first[DRPS_BATCH_LANES + 1];
    for (uint32_t i = 0; i <= r->parts_n; i++)
        first[i] = drps_circulate_first_row(job, i);
    return drps_run_name_whole(r, first, err);
}

int drps_phase_circulate(struct index_run *r, struct drps_err *err)
{
    const struct circulation c = circulation_of(r->info, r->parts_n);
    const struct circulate_job job = {.io = r->io,
                                      .from = r->stage.dir,
                                      .info = r->info,
                                      .circulation = &c,
                                      .range_first = r->range_first,
                                      .memory_bytes = r->options.memory_bytes};
    int rc = drps_circulate_check(&job, err);
    drps_run_begin_whole(r);
    r->info->ranks.round_samples = r->info->max_batch_samples; /* a step is a batch of one worker,
                                                                  or hands rows over */
    for (uint32_t i = 0; i < r->parts_n && rc == 0; i++) {
        rc = make_part(r, &job, i, err);
        if (rc == 0) rc = drps_index_report(&r->progress, i + 1, r->parts_n, err);
    }
    if (rc == 0) rc = name_whole(r, &job, err);
    r->info->max_batch_rows = drps_circulate_most_rows(&job);
    return rc < 0 ? rc : drps_run_remove_batches(r, err);
}
