/* The phase that makes batches: spooled samples in their final order, with placed ids. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"
#include "index/batches/drps_batcher.h"
#include "index/batches/drps_lanes.h"
#include "index/order/drps_grid.h"
#include "index/plan/drps_names.h"
#include "index/run/run.h"

enum { MIN_BATCH = 100 };

/* ---- Grid order ---- */

static struct grid grid_of(const struct drps_plan_info *info)
{
    return (struct grid){(uint32_t)info->grid_users, (uint32_t)info->grid_items};
}

/* Where the sample belongs among so many lanes; map as in struct batching. */
static struct grid_spot spot_of(const struct drps_plan_info *info, uint32_t lanes,
                                const uint32_t *map, const struct spool_sample *s)
{
    const struct grid grid = grid_of(info);
    const struct drps_table *items = &info->tables[info->tables_n - 1];
    uint32_t user = 0, item = 0; /* groups; of a name that training does not have, the first */

    for (uint32_t i = 0; i < s->n; i++) {
        const uint32_t row = map ? map[s->ids[i]] : s->ids[i];
        if (row == DRPS_NO_ROW) continue;
        if (row >= items->first)
            item = grid_group(row - items->first, items->rows, grid.items * lanes);
        else
            user = grid_group(row - items[-1].first, items[-1].rows, grid.users * lanes);
    }
    return grid_spot(&grid, lanes, user, item);
}

/* ---- One batch after another ---- */

struct batching {
    struct run *r;
    struct batcher *batcher;
    const uint32_t *map; /* provisional to placed ids; NULL: they are placed already */
    float *values;       /* of a sample that lost entries */
    size_t values_cap;
    double label_sum;
    uint64_t done, total;
    int test;
    struct lanes *lanes;               /* batches are marked, and end with their stratum; or NULL */
    const struct allotment *allotment; /* NULL: batches end when they are full */
    uint64_t batch, left; /* with one: which is being made, and how many samples it still takes */
};

/* Batches that have all their samples end; they may have none. */
static int end_batches(struct batching *b, struct drps_err *err)
{
    const uint64_t batches = b->allotment->rounds * b->allotment->workers;
    int rc = 0;
    while (!b->left && b->batch < batches && rc == 0) {
        rc = batcher_end(b->batcher, err);
        if (++b->batch < batches) b->left = allot_batch(b->allotment, b->batch);
    }
    return rc;
}

static void begin_batches(struct batching *b, const struct allotment *a)
{
    b->allotment = a->rounds ? a : NULL;
    b->batch = 0;
    b->left = a->rounds ? allot_batch(a, 0) : 0;
}

/* Drop entries that training never touches, from samples of evaluation; values follow. */
static int drop_unseen(struct batching *b, struct spool_sample *s, struct drps_err *err)
{
    uint32_t kept = 0;
    if (s->values && drps_array_reserve(&b->values, &b->values_cap, s->n, sizeof(*b->values)))
        return drps_err_set(err, -ENOMEM, "no memory for a sample with %u features", s->n);
    for (uint32_t i = 0; i < s->n; i++) {
        uint32_t row = b->map ? b->map[s->ids[i]] : s->ids[i];
        if (row == DRPS_NO_ROW) continue;
        s->ids[kept] = s->ids[i];
        if (s->values) b->values[kept] = s->values[i];
        kept++;
    }
    b->r->info->test_unseen += s->n - kept;
    s->n = kept;
    if (s->values) s->values = b->values;
    return 0;
}

static int add_to_lane(struct batching *b, const struct spool_sample *s, struct drps_err *err)
{
    const struct drps_plan_info *info = b->r->info;
    const struct grid_spot spot = spot_of(info, (uint32_t)info->lanes, b->map, s);
    return lanes_add(b->lanes, (uint32_t)spot.stratum + 1, spot.lane, s, err);
}

static int batch_sample(void *ctx, struct spool_sample *s, struct drps_err *err)
{
    enum { REPORT_EVERY = 1 << 14 };
    struct batching *b = ctx;
    struct run *r = b->r;
    const struct drps_index_options *o = &r->options;

    int rc = b->test ? drop_unseen(b, s, err) : 0;
    if (rc < 0) return rc;
    float label = s->label;
    if (r->info->classification) label = label == r->info->label_positive ? 1.0f : -1.0f;
    if (!b->test) b->label_sum += (double)label;
    if (++b->done % REPORT_EVERY == 0) {
        if (o->progress) o->progress(o->progress_ctx, DRPS_PHASE_BATCH, b->done, b->total);
        rc = check_interrupt(o, err);
        if (rc < 0) return rc;
    }
    s->label = label;
    if (b->lanes) return add_to_lane(b, s, err);
    if (!b->allotment) return batcher_add(b->batcher, label, s->n, s->ids, s->values, err);
    rc = end_batches(b, err); /* the first ones may be without samples */
    if (rc == 0) rc = batcher_add(b->batcher, label, s->n, s->ids, s->values, err);
    b->left--;
    return rc < 0 ? rc : end_batches(b, err);
}

static void expect_sample(void *ctx, const struct spool_sample *s)
{
    const struct batching *b = ctx;
    batcher_expect(b->batcher, s->ids, s->n);
}

static int drain(struct run *r, struct batching *b, struct spool *spool,
                 struct drps_recwriter *data, struct drps_recwriter *rows, struct drps_err *err)
{
    const uint64_t most = b->allotment ? SIZE_MAX : r->info->batch_size;
    /* What is left when the spool has its eighth, samples being sorted and the batch a third each,
     * and the map of ids a 24th at most. */
    const struct batcher_options options = {.batch_size = (size_t)most,
                                            .has_bias = !r->options.no_bias,
                                            .memory_bytes = r->options.memory_bytes / 3,
                                            .map = b->map};
    int rc = batcher_open(data, rows, &options, &b->batcher, err);
    const struct spool_visitor visitor = {.visit = batch_sample, .expect = expect_sample, .ctx = b};
    if (rc == 0 && r->info->lanes && !b->test)
        rc = lanes_open((uint32_t)r->info->lanes, (size_t)most, b->batcher, &b->lanes, err);
    if (rc == 0) rc = spool_drain(spool, r->options.memory_bytes / 3, &visitor, err);
    if (rc == 0 && b->lanes) rc = lanes_finish(b->lanes, err);
    lanes_close(b->lanes);
    b->lanes = NULL;
    if (rc == 0) rc = batcher_flush(b->batcher, err);
    if (rc == 0) batcher_maxima(b->batcher, r->info);
    batcher_close(b->batcher);
    b->batcher = NULL;
    return rc;
}

static int open_records(struct run *r, const char *name, uint32_t kind,
                        struct drps_recwriter **w_out, struct drps_err *err)
{
    char *path = drps_path_join(r->batch_dir, name);
    *w_out = NULL;
    if (!path) return drps_err_set(err, -ENOMEM, "no memory for %s", name);
    int rc = drps_recwriter_open(r->io, path, kind, w_out, err);
    free(path);
    return rc;
}

static int choose_batch_size(struct run *r, struct drps_err *err)
{
    double percent = r->options.batch_percent > 0 ? r->options.batch_percent : 0.01;
    uint64_t size = r->options.batch_size;
    if (!size) {
        size = (uint64_t)((double)r->info->samples * percent / 100);
        if (size < MIN_BATCH) size = MIN_BATCH;
    }
    r->info->batch_size = size;
    /* Indexes of the record files: 16 bytes a batch, two at a time, doubling as they grow. */
    enum { STEP_BYTES = 96 };
    uint64_t steps = (r->info->samples + r->info->test_samples) / size + 2;
    if (steps * STEP_BYTES <= r->options.memory_bytes / 2) return 0;
    return drps_err_set(err, DRPS_E_MEMORY_BUDGET,
                        "%llu batches of %llu samples are too many for the memory limit: use "
                        "larger batches, or a limit of %llu MiB",
                        (unsigned long long)steps, (unsigned long long)size,
                        (unsigned long long)(steps * STEP_BYTES * 2 >> 20) + 1);
}

/* ---- Dealing samples to cells ---- */

/* Samples that wait in lanes may take a 24th of the memory. */
static int set_lanes(struct run *r, struct drps_err *err)
{
    const uint64_t batch_size = r->info->batch_size, lanes = r->options.lanes;
    const uint64_t need = lanes_memory(lanes, batch_size);
    if (lanes <= 1) return 0;
    r->info->lanes = lanes;
    if (need <= r->options.memory_bytes / 24) return 0;
    return drps_err_set(err, DRPS_E_MEMORY_BUDGET,
                        "%llu lanes of batches of %llu samples do not fit the memory limit: use "
                        "fewer, smaller batches, or a limit of %llu MiB",
                        (unsigned long long)lanes, (unsigned long long)batch_size,
                        (unsigned long long)(need * 24 >> 20) + 1);
}

static int choose_grid(struct run *r, struct drps_err *err)
{
    struct drps_plan_info *info = r->info;
    const struct drps_table *items = &info->tables[info->tables_n - 1];
    const struct grid_input in = {
        .users = items[-1].rows,
        .items = items->rows,
        .samples = info->samples,
        .test_samples = info->test_samples,
        .batch_size = info->batch_size * r->parts_n,
        .room_rows = r->parts_n * parts_room_rows(info->row_bytes, r->options.memory_bytes)};
    struct grid grid = {r->options.grid_users, r->options.grid_items};
    if (!grid.users) grid = grid_choose(&in);
    info->grid_users = grid.users;
    info->grid_items = grid.items;
    return set_lanes(r, err);
}

struct dealing {
    const struct run *r;
    const uint32_t *map; /* as in struct batching */
    struct spool *to;
    int backwards;
};

static int deal_to_cell(void *ctx, struct spool_sample *s, struct drps_err *err)
{
    const struct dealing *d = ctx;
    const struct drps_plan_info *info = d->r->info;
    const struct grid grid = grid_of(info);
    const uint32_t lanes = d->backwards || !info->lanes ? 1 : (uint32_t)info->lanes;
    uint64_t stratum = spot_of(info, lanes, d->map, s).stratum;
    if (d->backwards) stratum = info->grid_users * info->grid_items - 1 - stratum;
    s->order = grid_spot_order(&grid, lanes, stratum, s->order);
    return spool_add(d->to, s, err);
}

/* From the order of arrival to cell after cell. */
static int deal(struct run *r, const uint32_t *map, struct spool **spool, const char *name,
                int backwards, struct drps_err *err)
{
    const uint64_t share = backwards ? SPOOL_TEST_SHARE : SPOOL_TRAIN_SHARE;
    struct dealing d = {.r = r, .map = map, .backwards = backwards};
    int rc = spool_open(r->io, r->scratch, name, SPOOL_BUCKETS, r->options.memory_bytes / share,
                        &d.to, err);
    const struct spool_visitor visitor = {.visit = deal_to_cell, .ctx = &d};
    if (rc == 0) rc = spool_drain(*spool, 0, &visitor, err);
    if (rc == 0) rc = spool_finish(d.to, err);
    spool_close(*spool);
    *spool = d.to;
    return rc;
}

/* The serpentine may end far from where it began. Evaluation walks it back, so that neither
 * evaluation nor the next epoch begins with rows that are all out of memory. */
static int deal_to_grid(struct run *r, const uint32_t *map, struct drps_err *err)
{
    if (strcmp(r->info->order, "grid") != 0) return 0;
    int rc = choose_grid(r, err);
    if (rc == 0) rc = deal(r, map, &r->parsed.train, "train-cells", 0, err);
    return rc < 0 ? rc : deal(r, map, &r->parsed.test, "test-cells", 1, err);
}

/* To workers, if not in turn; then they have placed ids. */
static int allot(struct run *r, const uint32_t **map, struct drps_err *err)
{
    const struct allot_job job = {.io = r->io,
                                  .dir = r->scratch,
                                  .workers = r->parts_n,
                                  .rows = (uint32_t)r->info->rows,
                                  .batch_size = r->info->batch_size,
                                  .seed = r->info->seed,
                                  .memory_bytes = r->options.memory_bytes / 3,
                                  .map = *map,
                                  .log = r->options.log};
    if (!run_places_samples(&r->options)) return 0;
    *map = NULL;
    return allot_samples(&job, &r->parsed.train, &r->parsed.test, &r->train, &r->test, err);
}

int run_make_batches(struct run *r, struct drps_err *err)
{
    struct drps_plan_info *info = r->info;
    struct batching b = {.r = r, .total = info->samples + info->test_samples};
    struct drps_recwriter *data = NULL;
    struct drps_recwriter *rows = NULL;
    const uint32_t *map = b.map = dict_placed(r->parsed.dict);

    int rc = choose_batch_size(r, err);
    if (rc == 0) rc = deal_to_grid(r, map, err);
    if (rc == 0) rc = allot(r, &b.map, err);
    begin_batches(&b, &r->train);
    if (rc == 0) rc = open_records(r, DRPS_FILE_DATA, DRPS_KIND_DATA, &data, err);
    if (rc == 0) rc = open_records(r, DRPS_FILE_ROWS, DRPS_KIND_ROWS, &rows, err);
    if (rc == 0) rc = drain(r, &b, r->parsed.train, data, rows, err);
    if (rc == 0) {
        info->batches = drps_recwriter_count(data);
        info->label_mean = b.label_sum / (double)info->samples;
        b.test = 1;
        begin_batches(&b, &r->test);
        rc = drain(r, &b, r->parsed.test, data, rows, err);
        info->eval_batches = drps_recwriter_count(data) - info->batches;
        info->test_nnz = r->parsed.test_nnz - info->test_unseen;
    }
    if (rc == 0) rc = drps_recwriter_finish(data, err);
    if (rc == 0) rc = drps_recwriter_finish(rows, err);
    drps_recwriter_close(data);
    drps_recwriter_close(rows);
    free(b.values);
    parsed_free(&r->parsed);
    return rc;
}
