/*
 * The second pass over samples, for orders that follow from where rows were placed: those of a grid
 * go to its cells (index/order/), those with rare features in common to groups (index/micro/), and
 * those that several workers share by their rows to the workers (index/samples/drps_assign.h).
 * Spools are replaced by such as drain in the final order.
 */
#include <stdlib.h>
#include <string.h>

#include "index/batches/drps_lanes.h"
#include "index/batches/drps_mixed.h"
#include "index/micro/drps_micro.h"
#include "index/plan/drps_names.h"
#include "index/run/run.h"

/* ---- Where a sample belongs ---- */

static struct grid grid_of(const struct drps_plan_info *info)
{
    return (struct grid){(uint32_t)info->grid_users, (uint32_t)info->grid_items};
}

/* The numbers of a sample's user and item in their tables; of a name that training does not have,
 * 0. */
static void find_ranks(const struct drps_plan_info *info, const uint32_t *map,
                       const struct spool_sample *s, uint32_t *user_out, uint32_t *item_out)
{
    const struct drps_table *items = &info->tables[info->tables_n - 1];
    const uint32_t first_user = (uint32_t)items[-1].first, first_item = (uint32_t)items->first;
    *user_out = *item_out = 0;
    for (uint32_t i = 0; i < s->n; i++) {
        const uint32_t row = map ? map[s->ids[i]] : s->ids[i];
        if (row == DRPS_NO_ROW) continue;
        if (row >= first_item)
            *item_out = row - first_item;
        else
            *user_out = row - first_user;
    }
}

struct grid_position drps_run_position_of(const struct drps_plan_info *info, uint32_t lanes,
                                          const uint32_t *map, const struct spool_sample *s)
{
    const struct grid grid = grid_of(info);
    const struct drps_table *items = &info->tables[info->tables_n - 1];
    uint32_t user, item;
    find_ranks(info, map, s, &user, &item);
    return grid_position_of(&grid, lanes, grid_group(user, items[-1].rows, grid.users * lanes),
                            grid_group(item, items->rows, grid.items * lanes));
}

struct mix_position drps_run_mix_of(const struct drps_plan_info *info, const uint32_t *map,
                                    const struct spool_sample *s)
{
    uint32_t user, item;
    find_ranks(info, map, s, &user, &item);
    return mix_position_of((uint32_t)info->lanes, user, item);
}

/* ---- Lanes ---- */

/* What samples that wait in lanes may take. */
static uint64_t lanes_room(const struct index_run *r)
{
    return r->options.memory_bytes / 24;
}

static int set_lanes(struct index_run *r, struct drps_err *err)
{
    const uint64_t batch_size = r->info->batch_size, lanes = r->options.lanes;
    const uint64_t need = drps_run_is_grid(&r->options) ? drps_lanes_memory(lanes, batch_size)
                                                        : drps_mixed_memory(lanes, batch_size);
    if (lanes <= 1) return 0;
    r->info->lanes = lanes;
    if (need <= lanes_room(r)) return 0;
    return drps_err_set(err, DRPS_E_MEMORY_BUDGET,
                        "%llu lanes of batches of %llu samples do not fit the memory limit: use "
                        "fewer, smaller batches, or a limit of %llu MiB",
                        (unsigned long long)lanes, (unsigned long long)batch_size,
                        (unsigned long long)(need * 24 >> 20) + 1);
}

/* Where nobody asked for lanes, ratings get the usual ones, if they are enough for their batches to
 * be full, and memory is. */
static int mix(struct index_run *r, struct drps_err *err)
{
    enum { USUAL_LANES = 4, LEAST_BATCHES = USUAL_LANES * USUAL_LANES * DRPS_MIXED_BATCHES };
    const uint64_t batch_size = r->info->batch_size;
    if (r->options.lanes) return set_lanes(r, err);
    if (r->base) return 0; /* its users and items share one table */
    if (r->info->samples / batch_size < LEAST_BATCHES ||
        drps_mixed_memory(USUAL_LANES, batch_size) > lanes_room(r))
        return 0;
    r->options.lanes = USUAL_LANES;
    return set_lanes(r, err);
}

/* ---- Cells ---- */

static int choose_grid(struct index_run *r, struct drps_err *err)
{
    struct drps_plan_info *info = r->info;
    const struct drps_table *items = &info->tables[info->tables_n - 1];
    const struct grid_input in = {
        .users = items[-1].rows,
        .items = items->rows,
        .samples = info->samples,
        .test_samples = info->test_samples,
        .batch_size = info->batch_size * r->options.workers,
        .room_rows =
            r->options.servers * drps_parts_room_rows(info->row_bytes, r->options.memory_bytes)};
    struct grid grid = {r->options.grid_users, r->options.grid_items};
    if (!grid.users && drps_run_circulates(&r->options)) /* one cell is trained, one travels */
        grid = in.users >= in.items ? (struct grid){1, 2} : (struct grid){2, 1};
    if (!grid.users) grid = drps_grid_choose(&in);
    info->grid_users = grid.users;
    info->grid_items = grid.items;
    return set_lanes(r, err);
}

int drps_run_has_lanes(const struct drps_plan_info *info, int test)
{
    const struct grid grid = grid_of(info);
    if (!info->grid_users) return info->lanes && !test;
    return info->lanes && (!test || grid_has_one_pass(&grid));
}

/* One spool is emptied into another. */
struct reordering {
    const struct index_run *r;
    const uint32_t *map; /* provisional to placed ids */
    struct spool *to;
    uint32_t lanes; /* 1: none */
    int backwards;
    uint64_t done;
};

static int add_to_cell(void *ctx, struct spool_sample *s, struct drps_err *err)
{
    enum { REPORT_EVERY = 1 << 14 };
    struct reordering *d = ctx;
    const struct drps_plan_info *info = d->r->info;
    const struct grid grid = grid_of(info);
    uint64_t stratum = drps_run_position_of(info, d->lanes, d->map, s).stratum;
    if (d->backwards) stratum = info->grid_users * info->grid_items - 1 - stratum;
    s->order = grid_order(&grid, d->lanes, stratum, s->order);
    int rc = drps_spool_add(d->to, s, err);
    if (rc == 0 && ++d->done % REPORT_EVERY == 0)
        rc = drps_index_report(&d->r->progress, d->done, 0, err);
    return rc;
}

/* Replace a spool in the order of arrival by one that drains cell after cell. */
static int reorder(struct index_run *r, struct spool **spool, const char *name, int test,
                   struct drps_err *err)
{
    const uint64_t share = test ? SPOOL_TEST_SHARE : SPOOL_TRAIN_SHARE;
    const int lanes = drps_run_has_lanes(r->info, test);
    struct reordering d = {.r = r,
                           .map = drps_run_map(r),
                           .lanes = lanes ? (uint32_t)r->info->lanes : 1,
                           .backwards = test && !lanes};
    int rc = drps_spool_open(r->io, r->scratch, name, SPOOL_BUCKETS,
                             r->options.memory_bytes / share, &d.to, err);
    const struct spool_visitor visitor = {.visit = add_to_cell, .ctx = &d};
    if (rc == 0) rc = drps_spool_drain(*spool, 0, &visitor, err);
    if (rc == 0) rc = drps_spool_finish(d.to, err);
    drps_spool_close(*spool);
    *spool = d.to;
    return rc;
}

/* The serpentine may end far from where it began. Evaluation walks it back, so that neither
 * evaluation nor the next epoch begins with rows that are all out of memory. With lanes and a
 * single pass it walks as training does, whose parts have come round by then. */
static int order_by_grid(struct index_run *r, struct drps_err *err)
{
    int rc = choose_grid(r, err);
    if (rc == 0) rc = reorder(r, &r->parsed.train, "train-cells", 0, err);
    return rc < 0 ? rc : reorder(r, &r->parsed.test, "test-cells", 1, err);
}

/* ---- Groups of samples with rare features in common ---- */

static int report_done(void *ctx, uint64_t done, struct drps_err *err)
{
    const struct index_run *r = ctx;
    return drps_index_report(&r->progress, done, 0, err);
}

static int order_by_rare_rows(struct index_run *r, struct drps_err *err)
{
    struct spool *to;
    const struct micro_job job = {.io = r->io,
                                  .dir = r->scratch,
                                  .map = drps_run_map(r),
                                  .rows = r->info->rows,
                                  .samples = r->info->samples,
                                  .seed = r->info->seed,
                                  .memory_bytes = r->options.memory_bytes / 3,
                                  .turn = report_done,
                                  .turn_ctx = r};
    int rc = drps_spool_open(r->io, r->scratch, "train-groups", SPOOL_BUCKETS,
                             r->options.memory_bytes / SPOOL_TRAIN_SHARE, &to, err);
    if (rc == 0) rc = drps_micro_order(&job, r->parsed.train, to, err);
    if (rc == 0) rc = drps_spool_finish(to, err);
    drps_spool_close(r->parsed.train);
    r->parsed.train = to;
    return rc;
}

/* ---- Workers ---- */

/* Samples go to the workers whose rows they use, or whose files they are from; then they have
 * placed ids. */
static int assign(struct index_run *r, struct drps_err *err)
{
    double share[DRPS_PLAN_WORKERS_MAX];
    const struct assign_job job = {
        .io = r->io,
        .dir = r->scratch,
        .workers = r->options.workers,
        .rows = (uint32_t)r->info->rows,
        .batch_size = r->info->batch_size,
        .rounds = drps_run_keeps_rounds(&r->options) || !drps_run_places_samples(&r->options),
        .kept = drps_samples_stay(&r->options),
        .tests_dealt = drps_samples_stay(&r->options) && !drps_tests_stay(&r->options),
        .dealt = !drps_run_places_samples(&r->options),
        .share = drps_run_shares(&r->options, share),
        .balance = r->options.balance,
        .seed = r->info->seed,
        .memory_bytes = r->options.memory_bytes / 3,
        .map = drps_run_map(r),
        .log = r->options.log,
        .dppa = drps_run_samples_dppa(&r->options) ? &r->options.dppa : NULL,
        .row_homes = &r->row_homes,
        .turn = report_done,
        .turn_ctx = r};
    int rc = drps_assign_samples(&job, &r->parsed.train, &r->parsed.test, &r->train, &r->test, err);
    r->result->links.largest = r->train.largest;
    r->result->links.largest_before = r->train.largest_before;
    return rc;
}

static int move_samples(struct index_run *r, struct drps_err *err)
{
    struct together_move move = {.dir = r->scratch,
                                 .map = drps_run_map(r),
                                 .label_of = r->label_of,
                                 .classes = drps_classes_count(r->classes),
                                 .samples_of = r->train_of,
                                 .rows = r->info->rows,
                                 .fields = (uint32_t)r->info->field_count,
                                 .batch_size = r->info->batch_size,
                                 .memory_bytes = r->options.memory_bytes / 3,
                                 .by_order = strcmp(r->info->order, "shuffled") == 0};
    struct swap_ranks *ranks = r->options.ranks;
    if (drps_run_places_samples(&r->options)) {
        drps_together_keep(ranks, r->train_of, r->info->batch_size, &r->train);
        drps_together_keep(ranks, r->test_of, r->info->batch_size, &r->test);
        return 0;
    }
    int rc = drps_together_deal(ranks, &move, "train", &r->parsed.train, &r->train, err);
    move.samples_of = r->test_of;
    move.by_order = 0;
    move.test = 1;
    if (rc == 0) rc = drps_together_deal(ranks, &move, "test", &r->parsed.test, &r->test, err);
    r->moved = 1;
    free(r->label_of); /* labels are what it has given */
    r->label_of = NULL;
    return rc;
}

int drps_phase_order(struct index_run *r, struct drps_err *err)
{
    if (r->options.ranks) return move_samples(r, err);
    int rc = drps_run_is_grid(&r->options)    ? order_by_grid(r, err)
             : drps_run_is_micro(&r->options) ? order_by_rare_rows(r, err)
             : drps_run_may_mix(&r->options)  ? mix(r, err)
                                              : 0;
    return rc == 0 && drps_run_assigns_samples(&r->options) ? assign(r, err) : rc;
}
