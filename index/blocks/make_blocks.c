/*
 * The way from batches to blocks (drps_make_blocks.h): tables and access counts for the builder,
 * its layout applied to the files, and what the blocks then cost.
 */
#include "index/blocks/drps_make_blocks.h"

#include <errno.h>
#include <math.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"
#include "index/blocks/builders/drps_prune.h"
#include "index/blocks/counts/drps_counts.h"
#include "index/blocks/counts/drps_stream.h"
#include "index/blocks/drps_renumber.h"
#include "index/blocks/remote/drps_remote.h"
#include "index/blocks/sampled.h"
#include "index/plan/drps_batch.h"
#include "index/plan/drps_names.h"
#include "index/plan/drps_steps.h"
#include "index/plan/drps_window.h"

static uint64_t steps_of(const struct drps_plan_info *info)
{
    return info->batches + info->eval_batches;
}

static void make_tables(const struct drps_plan_info *info, struct block_tables *out)
{
    *out = (struct block_tables){.n = info->tables_n};
    for (size_t t = 0; t < info->tables_n; t++)
        out->first[t] = (uint32_t)info->tables[t].first;
    out->first[out->n] = (uint32_t)info->rows;
}

/* ---- The rows in the order of their names ---- */

struct key_order {
    uint32_t *rows; /* own: [n] */
    uint32_t n, most;
};

static int add_row(void *ctx, uint64_t key, uint32_t row, unsigned field, const char *text,
                   size_t bytes, struct drps_err *err)
{
    struct key_order *o = ctx;
    (void)key;
    (void)field;
    (void)text;
    (void)bytes;
    if (o->n == o->most)
        return drps_err_set(err, DRPS_E_CORRUPT, DRPS_FILE_NAMES " has more than %" PRIu32 " names",
                            o->most);
    o->rows[o->n++] = row;
    return 0;
}

/* Rows that all batches have come first: they have no names. */
static int order_by_key(const struct blocks_job *job, const struct drps_plan_info *info,
                        struct key_order *out, struct drps_err *err)
{
    struct drps_names *names = NULL;
    *out = (struct key_order){.most = (uint32_t)info->rows};
    out->rows = drps_array_new(info->rows, sizeof(*out->rows));
    if (!out->rows) return drps_err_set(err, -ENOMEM, "no memory for the order of rows");
    int rc = drps_names_open(job->io, job->from, &names, err);
    if (rc < 0) return rc;
    while (out->n < drps_plan_common_rows(info)) {
        out->rows[out->n] = out->n;
        out->n++;
    }
    rc = drps_names_scan(names, add_row, out, err);
    drps_names_close(names);
    if (rc == 0 && out->n != out->most)
        rc = drps_err_set(err, DRPS_E_CORRUPT,
                          DRPS_FILE_NAMES " has %" PRIu32 " names of %" PRIu32 " rows", out->n,
                          out->most);
    return rc;
}

/* ---- Building ---- */

/* Rows are pruned as the job says, and further where memory or time call for it, which is said. */
static int prune(const struct blocks_job *job, struct counts *counts, struct block_options *options,
                 struct drps_err *err)
{
    struct prune_choice choice;

    if (!job->builder->prunes) return 0;
    if (job->keep_share > 0)
        options->keep_rows = (uint32_t)fmax(1, round(job->keep_share * counts->blocks));
    int rc = drps_prune_choose(counts, options, &choice, err);
    if (rc == 0)
        drps_log(job->log, DRPS_LOG_INFO,
                 "block builder %s: %" PRIu32 " rows are compared with each other, which takes a "
                 "time that grows with their square; prune rows to have fewer",
                 job->builder->name, choice.kept);
    if (rc < 0 || choice.kept == choice.asked) return rc;
    options->keep_rows = choice.kept;
    drps_log(job->log, DRPS_LOG_WARN,
             "block builder %s: kept the %" PRIu32 " most used of %" PRIu32 " rows, as many as %s; "
             "prune to another number for others",
             job->builder->name, choice.kept, choice.asked,
             choice.for_time ? "are compared in minutes" : "the memory limit has room for");
    return 0;
}

/* One process counts, or several a share of the batches each. */
static int open_counts(const struct blocks_job *job, const struct drps_plan_info *info,
                       const char *dir, struct block_options *options, struct counts **counts_out,
                       struct drps_err *err)
{
    const struct access_source from = {.io = job->io,
                                       .dir = dir,
                                       .rows = (uint32_t)info->rows,
                                       .batches = (uint32_t)steps_of(info),
                                       .share = job->samples ? 1 : options->sample,
                                       .seed = options->seed,
                                       .memory_bytes = options->memory_bytes / 2,
                                       .stop = job->stop};
    int rc = job->remote       ? drps_remote_split(&from, job->remote, counts_out, err)
             : job->shards > 1 ? drps_remote_open(&from, job->shards, counts_out, err)
                               : drps_counts_make(&from, 0, from.batches, counts_out, err);
    if (rc < 0) return rc;
    options->memory_bytes -= job->shards > 1 ? from.memory_bytes : (*counts_out)->access_bytes;
    if (job->remote)
        options->memory_bytes -= job->remote->memory_bytes < options->memory_bytes
                                     ? job->remote->memory_bytes
                                     : options->memory_bytes;
    if ((*counts_out)->streamed)
        drps_log(job->log, DRPS_LOG_INFO,
                 "accesses take more than 3/8 of the memory limit: they stay on disk and are read "
                 "for each "
                 "count, which takes longer");
    return 0;
}

static int build_counting(const struct blocks_job *job, const struct drps_plan_info *info,
                          const struct block_tables *tables, struct block_options *options,
                          struct block_layout *out, struct drps_err *err)
{
    const int sampled = job->samples && options->sample < 1;
    char *dir = sampled ? drps_path_join(job->from, DRPS_FILE_SAMPLED) : strdup(job->from);
    struct counts *counts = NULL;

    int rc = dir ? 0 : drps_err_set(err, -ENOMEM, "no memory for a path");
    if (rc == 0 && sampled) rc = drps_sampled_lists(job, info, dir, err);
    if (rc == 0) rc = open_counts(job, info, dir, options, &counts, err);
    if (rc == 0) rc = prune(job, counts, options, err);
    if (rc == 0) rc = job->builder->build(counts, tables, options, out, err);
    if (counts) counts->ops->close(counts);
    if (rc == 0 && sampled) rc = drps_io_remove_tree(job->io, dir, err);
    free(dir);
    return rc;
}

/* Names the option that asked for so much, and what needs less. */
static int too_little_memory(const struct blocks_job *job, struct drps_err *err)
{
    if (!err) return DRPS_E_MEMORY_BUDGET;
    const struct drps_err cause = *err;
    drps_err_clear(err);
    return drps_err_set(err, DRPS_E_MEMORY_BUDGET,
                        "block builder %s: %s; raise the memory limit (accesses may take 3/8 of "
                        "it), or use pattern",
                        job->builder->name, cause.text);
}

static int build(const struct blocks_job *job, const struct drps_plan_info *info,
                 struct block_layout *out, struct drps_err *err)
{
    struct block_options options = job->options;
    struct block_tables tables;
    struct key_order keys = {0};
    int rc = 0;

    *out = (struct block_layout){0};
    make_tables(info, &tables);
    if (job->builder->keys) {
        rc = order_by_key(job, info, &keys, err);
        options.by_key = keys.rows;
    }
    if (rc == 0 && job->builder->counts)
        rc = build_counting(job, info, &tables, &options, out, err);
    else if (rc == 0)
        rc = job->builder->build(NULL, &tables, &options, out, err);
    free(keys.rows);
    return rc == DRPS_E_MEMORY_BUDGET ? too_little_memory(job, err) : rc;
}

/* ---- Placing ---- */

static int move_file(const struct blocks_job *job, const char *name, struct drps_err *err)
{
    char *from = drps_path_join(job->from, name);
    char *to = drps_path_join(job->to, name);
    int rc = from && to ? job->io->ops->rename(job->io->ctx, from, to) : -ENOMEM;
    if (rc < 0) rc = drps_err_set(err, rc, "cannot move %s: %s", name, drps_err_name(rc));
    free(from);
    free(to);
    return rc;
}

static int remove_file(const struct blocks_job *job, const char *name, struct drps_err *err)
{
    char *path = drps_path_join(job->from, name);
    if (!path) return drps_err_set(err, -ENOMEM, "no memory for a path");
    int rc = drps_io_remove_tree(job->io, path, err);
    free(path);
    return rc;
}

/* Rows get the numbers that the layout says. */
static int place_rows(const struct blocks_job *job, const struct drps_plan_info *info,
                      const uint32_t *order, struct drps_err *err)
{
    static const char *const names[] = {DRPS_FILE_DATA, DRPS_FILE_ROWS, DRPS_FILE_NAMES};
    int rc = 0;
    if (job->from == job->to) return 0;
    if (order) {
        uint32_t *new_id = drps_array_new(info->rows, sizeof(*new_id));
        if (!new_id) return drps_err_set(err, -ENOMEM, "no memory to renumber the rows");
        for (uint64_t i = 0; i < info->rows; i++)
            new_id[order[i]] = (uint32_t)i;
        rc = drps_renumber_rows(job->io, job->from, job->to, info, new_id, err);
        free(new_id);
    }
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]) && rc == 0; i++)
        rc = order ? remove_file(job, names[i], err) : move_file(job, names[i], err);
    return rc;
}

/* ---- What they are for the plan ---- */

int drps_blocks_make_files(const struct blocks_job *job, const char *dir, const uint32_t *first,
                           struct drps_plan_info *info, struct drps_err *err)
{
    int rc = drps_blocks_write(job->io, dir, first, info->blocks, err);
    for (size_t i = 0; i < info->blocks; i++)
        if (first[i + 1] - first[i] > info->max_block_rows)
            info->max_block_rows = first[i + 1] - first[i];
    struct drps_uses_result uses = {0};
    if (rc == 0)
        rc = drps_uses_compile(job->io, dir, steps_of(info), first, info->blocks,
                               block_cost_gap(&job->options.cost), job->options.memory_bytes / 2,
                               &uses, err);
    info->max_step_blocks = uses.max_step_blocks;
    info->max_step_block_rows = uses.max_step_block_rows;
    info->row_uses = uses.row_uses;
    info->block_uses = uses.block_uses;
    info->block_use_rows = uses.block_use_rows;
    info->runs = uses.runs;
    info->run_rows = uses.run_rows;
    return rc;
}

int drps_blocks_make(const struct blocks_job *job, struct drps_plan_info *info,
                     uint32_t **first_out, struct drps_err *err)
{
    struct block_layout layout;

    int rc = build(job, info, &layout, err);
    if (rc == 0 && *layout.note) drps_log(job->log, DRPS_LOG_WARN, "%s", layout.note);
    if (rc == 0) rc = place_rows(job, info, layout.order, err);
    *first_out = layout.first;
    layout.first = NULL;
    (void)snprintf(info->blocks_by, sizeof(info->blocks_by), "%s", job->builder->name);
    info->blocks = layout.blocks;
    drps_block_layout_free(&layout);
    return rc;
}
