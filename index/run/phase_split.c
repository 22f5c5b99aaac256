/*
 * The phase that splits a plan by rank: each server gets a range of the rows, each worker its
 * batches, and the folder of a rank has both (index/ranks/).
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"
#include "index/ranks/drps_owners.h"
#include "index/ranks/drps_placement.h"
#include "index/ranks/drps_split.h"
#include "index/ranks/drps_whole.h"
#include "index/ranks/handed/drps_handed_on.h"
#include "index/ranks/published/drps_published_slots.h"
#include "index/ranks/residuals/drps_residual_slots.h"
#include "index/run/run.h"

int drps_run_remove_batches(struct index_run *r, struct drps_err *err)
{
    static const char *const names[] = {DRPS_FILE_DATA, DRPS_FILE_ROWS};
    int rc = 0;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]) && rc == 0; i++) {
        char *path = drps_path_join(r->stage.dir, names[i]);
        rc = path ? drps_io_remove_tree(r->io, path, err)
                  : drps_err_set(err, -ENOMEM, "no memory for a path");
        free(path);
    }
    return rc;
}

void drps_run_begin_whole(struct index_run *r)
{
    struct drps_plan_ranks *ranks = &r->info->ranks;
    *ranks = drps_run_ranks(&r->options);
    ranks->round_samples = r->info->batch_size * ranks->workers;
    if (ranks->round_samples > r->info->samples) ranks->round_samples = r->info->samples;
}

/* Where several machines make the plan, each has hashed its own part, and rank 0 the dictionary:
 * gathers the hashes, so that each machine has all. */
static int share_hashes(const struct swap_ranks *ranks, struct whole_parts *parts, uint64_t *hash,
                        struct drps_err *err)
{
    uint64_t *all;
    const uint64_t mine[2] = {hash[ranks->rank], parts->names_hash};
    int rc = drps_swap_gather(ranks, mine, 2, &all, err);
    for (size_t i = 0; i < ranks->count && rc == 0; i++)
        hash[i] = all[2 * i];
    if (rc == 0) parts->names_hash = all[1];
    free(all);
    return rc;
}

int drps_run_name_whole(struct index_run *r, const uint32_t *first, struct drps_err *err)
{
    uint64_t hash[DRPS_PLAN_WORKERS_MAX];
    struct whole_parts parts = {.rank_hash = hash,
                                .first = first,
                                .hand_on = r->options.hand_on,
                                .hand_on_states = r->options.hand_on_states};
    const struct swap_ranks *ranks = r->options.ranks;
    int rc = ranks && ranks->rank
                 ? 0 /* rank 0 has the dictionary */
                 : drps_whole_hash_names(r->io, r->stage.dir, &parts.names_hash, err);
    for (uint32_t i = r->own_first; i < r->own_end && rc == 0; i++)
        rc = drps_whole_hash_rank(r->io, r->parts[i].dir, &r->parts[i].info, &hash[i], err);
    if (rc == 0 && ranks) rc = share_hashes(ranks, &parts, hash, err);
    if (rc < 0) return rc;
    drps_whole_name(&parts, r->info);
    for (uint32_t i = r->own_first; i < r->own_end; i++)
        memcpy(r->parts[i].info.ranks.whole, r->info->ranks.whole, sizeof(r->info->ranks.whole));
    return 0;
}

/* Batches of training, or with those of evaluation, in the files of this run. */
static uint64_t own_batches(const struct index_run *r, int all)
{
    const struct swap_ranks *ranks = r->options.ranks;
    if (!ranks) return r->info->batches + (all ? r->info->eval_batches : 0);
    return drps_together_own_batches(&r->train, ranks->rank) +
           (all ? drps_together_own_batches(&r->test, ranks->rank) : 0);
}

/* What placing units weighs by default: a link of 1 Gbit/s, and the sixteenth of the rows that is
 * used most one by one. */
enum { NET_BPS = 125000000 };
#define HOT_SHARE (1.0 / 16)

/* Find each server's range: of the rows as they are, or renumbered first. */
static int choose_owners(struct index_run *r, struct owners *out, struct drps_err *err)
{
    struct drps_plan_info *info = r->info;
    double share[DRPS_PLAN_WORKERS_MAX];
    const struct owners_job ranges = {.io = r->io,
                                      .dir = r->whole,
                                      .steps = own_batches(r, 1),
                                      .ranks = r->options.ranks,
                                      .training = own_batches(r, 0),
                                      .block_first = r->block_first,
                                      .blocks = info->blocks,
                                      .share = drps_run_shares(&r->options, share),
                                      .memory_bytes = r->options.memory_bytes};
    const struct placement_job placement = {
        .io = r->io,
        .from = r->laid,
        .to = r->whole,
        .batches = own_batches(r, 0),
        .records = own_batches(r, 1),
        .ranks = r->options.ranks,
        .algo = r->options.partition,
        .servers = r->options.servers,
        .workers = r->options.workers,
        .first_worker = drps_run_ranks(&r->options).first_worker,
        .by_home = drps_run_places_samples(&r->options) &&
                   drps_placement_follows_samples(r->options.partition),
        .single = r->options.dppa.single_rows ||
                  (drps_run_samples_dppa(&r->options) && strcmp(r->options.partition, "dppa") == 0),
        .by_sets = r->options.dppa.by_sets,
        .row_homes = r->row_homes,
        .set_rows = &r->result->links.set_rows,
        .busiest_set_rows = &r->result->links.busiest_set_rows,
        .pages = !drps_block_builder_find(r->options.blocks.by)->merges,
        .block_rows = drps_run_block_rows(r),
        .hot_share = r->options.has_hot_share ? r->options.hot_share : HOT_SHARE,
        .net_bps = r->options.net_bps ? r->options.net_bps : NET_BPS,
        .memory_bytes = r->options.memory_bytes};
    if (r->options.partition && strcmp(r->options.partition, "counts") == 0)
        return drps_owners_by_counts(&ranges, r->options.servers, out, err);
    if (!drps_placement_renumbers(r->options.partition))
        return drps_owners_by_range(&ranges, r->options.servers, out, err);
    int rc = drps_placement_make(&placement, info, &r->block_first, out, err);
    return rc < 0 ? rc : drps_io_remove_tree(r->io, r->laid, err);
}

/* Where several machines make the plan, gathers in a scratch folder the batches and row lists that
 * this rank's folder is made of. The dictionary is moved into the plan by rank 0, which has it. */
static int share_whole(struct index_run *r, const struct owners *owners, struct drps_err *err)
{
    const struct drps_plan_info *info = r->info;
    char *to = drps_path_join(r->scratch, DRPS_FILE_GATHERED);
    char *from = drps_path_join(r->whole, DRPS_FILE_NAMES);
    char *names = drps_path_join(r->stage.dir, DRPS_FILE_NAMES);
    int rc = to && from && names ? r->io->ops->mkdir(r->io->ctx, to, 0777) : -ENOMEM;
    if (rc == 0 && !r->options.ranks->rank) rc = r->io->ops->rename(r->io->ctx, from, names);
    if (rc < 0) rc = drps_err_set(err, rc, "cannot make %s: %s", to, drps_err_name(rc));
    const struct together_lists lists = {.io = r->io,
                                         .from = r->whole,
                                         .to = to,
                                         .batches = info->batches,
                                         .eval_batches = info->eval_batches,
                                         .first = owners->first,
                                         .memory_bytes = r->options.memory_bytes};
    if (rc == 0) rc = drps_together_share_lists(r->options.ranks, &lists, err);
    free(from);
    free(names);
    free(r->whole);
    r->whole = to; /* moved */
    return rc;
}

/* The blocks of rows [first, end), their boundaries counted from first. */
static int cut_blocks(struct part *part, const uint32_t *block_first, uint32_t first, uint32_t end,
                      struct drps_err *err)
{
    const uint64_t all = part->info.blocks;
    uint64_t from = 0, to, n = 0;
    while (from < all && block_first[from + 1] <= first)
        from++;
    for (to = from; to < all && block_first[to] < end;)
        to++;
    part->block_first = drps_array_new(to - from + 1, sizeof(*part->block_first));
    if (!part->block_first) return drps_err_set(err, -ENOMEM, "no memory for block boundaries");
    part->block_first[0] = 0;
    part->info.blocks = 0;
    if (first == end) return 0; /* a rank without rows has no block */
    for (uint64_t b = from + 1; b < to; b++)
        part->block_first[++n] = block_first[b] - first;
    part->block_first[++n] = end - first;
    part->info.blocks = n;
    return 0;
}

/* One rank's part in a new folder. A block across the border of two ranges is cut. block_first
 * [info.blocks + 1] are the blocks of all. */
static int make_part(struct part *part, const struct split_job *job, uint32_t rank,
                     const uint32_t *block_first, struct drps_err *err)
{
    const uint32_t first = job->owners->first[rank], end = job->owners->first[rank + 1];
    int rc = job->io->ops->mkdir(job->io->ctx, part->dir, 0777);
    if (rc < 0) return drps_err_set(err, rc, "cannot create %s: %s", part->dir, drps_err_name(rc));
    rc = drps_split_rank(job, rank, part->dir, &part->info.ranks, err);
    if (rc == 0) rc = cut_blocks(part, block_first, first, end, err);
    part->info.rows = end - first;
    part->info.batches = split_rounds(job->batches, job->ranks->workers);
    part->info.eval_batches = split_rounds(job->eval_batches, job->ranks->workers);
    return rc;
}

/* Give the workers their residual slots. Ranks without samples have one, of no row. */
static int make_residuals(const struct index_run *r, const struct split_job *job,
                          struct steps_scratch *records, struct drps_err *err)
{
    int rc = drps_steps_scratch_begin(records, r->io, r->stage.dir, DRPS_FILE_PUBLISHED_TMP, err);
    for (uint32_t i = 0; i < r->parts_n && rc == 0; i++) {
        struct part *part = &r->parts[i];
        uint64_t *slots = &part->info.ranks.residual_slots;
        const struct drps_residual_wish wish = {r->options.residual_slots, r->options.own_slots};
        part->info.ranks.own_slots = wish.own;
        rc = drps_residual_slots_make(job, i, &wish, part->dir,
                                      drps_rank_trains(job->ranks, i) ? records->writer : NULL,
                                      slots, err);
    }
    return rc == 0 ? drps_steps_scratch_turn(records, err) : rc;
}

static int make_published(const struct index_run *r, const struct published_job *job,
                          struct drps_err *err)
{
    int rc = 0;
    for (uint32_t i = 0; i < r->parts_n && rc == 0; i++) {
        struct part *part = &r->parts[i];
        rc = drps_published_slots_make(job, i, part->dir, &part->info.ranks.published_slots, err);
    }
    return rc;
}

/* How many of the first rows hold intercepts: of a net these are its first J parameters. */
static uint32_t intercept_rows(const struct index_run *r)
{
    const uint32_t common = drps_plan_common_rows(r->info);
    return r->layers.n ? (r->layers.outputs - 1) / r->info->dim + 1 : common;
}

/* Give workers and servers their slots, if the plan is to have any. */
static int make_slots(const struct index_run *r, const struct split_job *split,
                      struct drps_err *err)
{
    uint64_t slots[DRPS_PLAN_WORKERS_MAX];
    struct steps_scratch records = {0};
    const struct published_job job = {
        .split = split, .records = &records, .slots = slots, .always = intercept_rows(r)};
    if (!r->options.residual_slots) return 0;
    int rc = make_residuals(r, split, &records, err);
    for (uint32_t i = 0; i < r->parts_n; i++)
        slots[i] = r->parts[i].info.ranks.residual_slots;
    if (rc == 0) rc = make_published(r, &job, err);
    drps_steps_scratch_end(&records);
    return rc;
}

/* Find the rows to hand on, if the plan is to say which. */
static int find_handed(const struct index_run *r, const struct handing_job *job,
                       struct handing **out, struct drps_err *err)
{
    *out = NULL;
    return r->options.hand_on ? handing_find(job, out, err) : 0;
}

/* Returns how many of so many rows an epoch would move if samples were dealt and homes drawn at
 * random. A worker with a server beside it has one row in `servers` at home. */
static uint64_t not_at_home(const struct drps_plan_ranks *ranks, uint64_t rows)
{
    const uint64_t pairs = (uint64_t)ranks->workers * ranks->servers;
    const uint64_t both = ranks->first_worker               ? 0
                          : ranks->workers < ranks->servers ? ranks->workers
                                                            : ranks->servers;
    return rows - (uint64_t)((double)rows * (double)both / (double)pairs);
}

/* Returns how many rows an epoch would move if samples were dealt and homes drawn at random. */
static uint64_t hashed_rows(const struct index_run *r, uint64_t batch_rows)
{
    const struct drps_plan_info *info = r->info;
    uint64_t rows = batch_rows;
    if (drps_run_assigns_samples(&r->options)) {
        rows = r->train.dealt_rows;
        rows += drps_plan_common_rows(info) * ((info->samples - 1) / info->batch_size + 1);
    }
    return drps_ranks_are_alike(&info->ranks) ? rows - rows / r->parts_n
                                              : not_at_home(&info->ranks, rows);
}

/* Counts what the rounds of an epoch move. Where several machines make the plan, what each counts
 * is added up, and hashed_rows stays 0: no machine knows the rows that dealt batches would have. */
static int count_links(struct index_run *r, uint64_t batch_rows, struct drps_err *err)
{
    struct swap_ranks *ranks = r->options.ranks;
    if (!ranks) {
        r->result->links.hashed_rows = hashed_rows(r, batch_rows);
        return 0;
    }
    uint64_t *all, *fresh = &r->result->links.fresh_rows;
    const uint64_t mine = *fresh;
    int rc = drps_swap_gather(ranks, &mine, 1, &all, err);
    *fresh = 0;
    for (uint32_t i = 0; i < r->parts_n && rc == 0; i++)
        *fresh += all[i];
    free(all);
    return rc;
}

/* The dictionary stays with the whole. */
int drps_phase_split(struct index_run *r, struct drps_err *err)
{
    const struct blocks_job blocks = drps_run_blocks_job(r);
    struct drps_plan_info *info = r->info;
    struct owners owners = {0};
    uint64_t batch_rows = 0;
    r->result->links.fresh_rows = 0;
    struct split_job job = {.io = r->io,
                            .batches = info->batches,
                            .eval_batches = info->eval_batches,
                            .owners = &owners,
                            .ranks = &info->ranks,
                            .batch_rows = &batch_rows,
                            .fresh_rows = &r->result->links.fresh_rows,
                            .numbers = drps_plan_is_matrix(info),
                            .memory_bytes = r->options.memory_bytes};
    const struct handing_job handed = {.split = &job,
                                       .scratch = r->stage.dir,
                                       .most = r->options.hand_on,
                                       .states = r->options.hand_on_states};
    struct handing *handing = NULL;
    int rc = choose_owners(r, &owners, err);
    for (uint32_t i = owners.servers; i < r->parts_n && rc == 0; i++)
        owners.first[i + 1] = owners.first[i]; /* these ranks have none */
    if (rc == 0 && r->options.ranks) rc = share_whole(r, &owners, err);
    job.from = r->whole;
    drps_run_begin_whole(r);
    if (rc == 0) rc = find_handed(r, &handed, &handing, err);
    for (uint32_t i = r->own_first; i < r->own_end && rc == 0; i++) {
        struct part *part = &r->parts[i];
        part->info = *info;
        rc = drps_plan_rank_dir(r->stage.dir, i, part->dir, err);
        if (rc == 0) rc = make_part(part, &job, i, r->block_first, err);
        if (rc == 0 && handing)
            rc = handing_write(handing, i, part->dir, &part->info.ranks.handed, err);
        if (rc == 0)
            rc = drps_blocks_make_files(&blocks, part->dir, part->block_first, &part->info, err);
        if (rc == 0) rc = drps_index_report(&r->progress, i + 1, r->parts_n, err);
    }
    if (rc == 0) rc = drps_run_name_whole(r, owners.first, err);
    if (rc == 0) rc = make_slots(r, &job, err);
    handing_free(handing);
    if (rc == 0) rc = count_links(r, batch_rows, err);
    return rc < 0 ? rc : drps_run_remove_batches(r, err);
}
