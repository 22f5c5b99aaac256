/* The phases of drps-index in order; see drps_index.h. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <jansson.h>

#include "base/drps_alloc.h"
#include "base/drps_clock.h"
#include "base/drps_size.h"
#include "index/allot.h"
#include "index/batcher.h"
#include "index/blocks/crew.h"
#include "index/drps_index.h"
#include "index/drps_names.h"
#include "index/grid.h"
#include "index/owners.h"
#include "index/parse.h"
#include "index/parts.h"
#include "index/placement.h"
#include "storage/drps_probe.h"

enum { MIN_MEMORY_BYTES = 64 << 20, MIN_BATCH = 100, DEFAULT_RANK = 16 };
/* Whole sectors of 512 bytes. Of 1, 2, 4 and 8 KiB, factors of rank 16 cost a solid-state disk
 * little more time with 2 than with 1, and a block takes some 50 bytes of memory
 * (bench/RESULTS.md). */
enum { BLOCK_BYTES = 2048, NARROW_BLOCK_BYTES = 1024 };
enum { SEEK_NS = 40000, TRANSFER_BPS = 1200000000, TOP_K = 50 };

static const char *const phase_names[] = {"parse", "place", "batch", "block", "window", "forecast"};

const char *drps_index_phase_name(enum drps_index_phase phase)
{
    return phase_names[phase];
}

/* One run: everything that the phases hand on. */
struct run {
    const struct drps_io *io;
    struct drps_index_options options; /* with defaults filled in */
    struct drps_stage stage;
    char *scratch;
    char *laid;            /* where rows in blocks go: the plan, or scratch to be placed from */
    const char *batch_dir; /* where batches are made: there, or scratch if blocks renumber rows */
    struct parsed parsed;
    struct drps_plan_info *info;
    struct drps_index_result *result;
    struct part *parts; /* own: [parts_n], one a worker */
    uint32_t parts_n;
    struct allotment train, test; /* of workers; rounds are 0 where batches are dealt in turn */
};

/* ---- Checking options and labels ---- */

static int has_factors(const char *algo)
{
    return strcmp(algo, "lmf") == 0 || strcmp(algo, "fm") == 0;
}

static int check_order(struct drps_index_options *o, struct drps_err *err)
{
    const char *order = o->order ? o->order : "shuffled";
    int grid = strcmp(order, "grid") == 0;
    if (!grid && strcmp(order, "shuffled") != 0 && strcmp(order, "given") != 0)
        return drps_err_set(err, DRPS_E_CONFIG, "--order must be shuffled, given or grid, not %s",
                            order);
    if ((o->grid_users || o->grid_items) && !grid)
        return drps_err_set(err, DRPS_E_CONFIG, "--grid is for --order grid only, not for %s",
                            order);
    if (grid && strcmp(o->algo, "lmf") != 0)
        return drps_err_set(err, DRPS_E_CONFIG,
                            "--order grid cuts the users and items of ratings into groups, so it "
                            "needs --algo lmf; for --algo %s use --order shuffled",
                            o->algo);
    if (o->grid_users > GRID_GROUPS_MAX || o->grid_items > GRID_GROUPS_MAX ||
        !o->grid_users != !o->grid_items)
        return drps_err_set(err, DRPS_E_CONFIG,
                            "--grid: both numbers must lie between 1 and %d, not %u,%u",
                            GRID_GROUPS_MAX, o->grid_users, o->grid_items);
    return 0;
}

static int check_blocks(struct drps_blocks_options *o, struct drps_err *err)
{
    if (!o->by) o->by = "pattern";
    if (!block_builder_find(o->by))
        return drps_err_set(err, DRPS_E_CONFIG, "--blocks %s: no such block builder; see --help",
                            o->by);
    if (!(o->sample >= 0 && o->sample <= 1) || !(o->min_gain_us >= 0))
        return drps_err_set(err, DRPS_E_CONFIG,
                            "--sample must lie between 0 and 1, and --min-gain not below 0");
    if (o->prune && o->prune_to)
        return drps_err_set(err, DRPS_E_CONFIG, "--prune and --prune-to exclude each other");
    if (o->shards > CREW_SHARDS)
        return drps_err_set(err, DRPS_E_CONFIG, "--shards must lie between 1 and %d, not %u",
                            CREW_SHARDS, o->shards);
    if (!o->top_k) o->top_k = TOP_K;
    if (o->sample <= 0) o->sample = 1;
    if (!o->shards) o->shards = 1;
    if (!o->calibrate) {
        if (!o->seek_ns) o->seek_ns = SEEK_NS;
        if (!o->transfer_bps) o->transfer_bps = TRANSFER_BPS;
    } else if (o->seek_ns || o->transfer_bps) {
        return drps_err_set(err, DRPS_E_CONFIG,
                            "--calibrate measures what --seek-us and --transfer-mbs say: give one");
    }
    return 0;
}

static int check_partition(const struct drps_index_options *o, struct drps_err *err)
{
    static const char *const known[] = {"range", "greedy", "dppa", "auto", "hash"};
    if (!o->partition) return 0;
    if (o->workers < 2)
        return drps_err_set(err, DRPS_E_CONFIG,
                            "--partition %s shares rows among machines: it needs --workers 2 or "
                            "more",
                            o->partition);
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if (strcmp(o->partition, known[i]) == 0) return 0;
    return drps_err_set(err, DRPS_E_CONFIG,
                        "--partition must be range, greedy, dppa, auto or hash, not %s",
                        o->partition);
}

static int check_samples(const struct drps_index_options *o, struct drps_err *err)
{
    if (!o->samples || strcmp(o->samples, "dealt") == 0) return 0;
    if (strcmp(o->samples, "placed") != 0)
        return drps_err_set(err, DRPS_E_CONFIG, "--samples must be dealt or placed, not %s",
                            o->samples);
    if (placement_follows_samples(o->partition)) return 0;
    return drps_err_set(err, DRPS_E_CONFIG,
                        "--samples placed brings samples to one machine whose rows then follow: it "
                        "needs --partition auto, greedy or dppa, not %s",
                        o->partition ? o->partition : "range");
}

static int check_options(struct run *r, struct drps_err *err)
{
    struct drps_index_options *o = &r->options;
    static const char *const algos[] = {"lir", "lor", "svm", "lmf", "fm"};
    char text[32];
    int known = 0;

    for (size_t i = 0; o->algo && i < sizeof(algos) / sizeof(algos[0]); i++)
        known |= strcmp(o->algo, algos[i]) == 0;
    if (!known)
        return drps_err_set(err, DRPS_E_CONFIG, "--algo must be one of lir, lor, svm, lmf, fm%s%s",
                            o->algo ? ", not " : "", o->algo ? o->algo : "");
    if (!o->inputs_n)
        return drps_err_set(err, DRPS_E_CONFIG, "no input: name at least one file, or - for stdin");
    if (o->tests_n && o->test_fraction > 0)
        return drps_err_set(err, DRPS_E_CONFIG, "--test and --test-fraction exclude each other");
    if (!(o->test_fraction >= 0 && o->test_fraction <= 0.9))
        return drps_err_set(err, DRPS_E_CONFIG, "--test-fraction must lie between 0 and 0.9");
    int rc = check_order(o, err);
    if (rc < 0) return rc;
    if (!o->workers) o->workers = 1;
    if (o->workers > DRPS_PLAN_WORKERS_MAX)
        return drps_err_set(err, DRPS_E_CONFIG, "--workers must lie between 1 and %d, not %u",
                            DRPS_PLAN_WORKERS_MAX, o->workers);
    rc = check_partition(o, err);
    if (rc == 0) rc = check_samples(o, err);
    if (rc < 0) return rc;
    if (o->rank && !has_factors(o->algo))
        return drps_err_set(err, DRPS_E_CONFIG, "--rank is for --algo lmf and fm only");
    if (!o->rank && has_factors(o->algo)) o->rank = DEFAULT_RANK;
    rc = check_blocks(&o->blocks, err);
    if (rc < 0) return rc;
    if (!o->memory_bytes) o->memory_bytes = drps_memory_available() / 2;
    if (o->memory_bytes < MIN_MEMORY_BYTES)
        return drps_err_set(err, DRPS_E_MEMORY_BUDGET,
                            "--memory %s is too small: drps-index needs 64M at least",
                            drps_size_format(o->memory_bytes, text, sizeof(text)));
    return 0;
}

/* Classification wants exactly two labels; the smaller one becomes -1, the larger +1. */
static int settle_labels(struct run *r, struct drps_err *err)
{
    const struct label_set *set = &r->parsed.labels;
    const char *algo = r->options.algo;
    const char *task = r->options.task ? r->options.task : "auto";
    int fm = strcmp(algo, "fm") == 0;
    int wanted = strcmp(algo, "lor") == 0 || strcmp(algo, "svm") == 0 ||
                 (fm && strcmp(task, "classification") == 0);

    r->info->classification = wanted || (fm && strcmp(task, "auto") == 0 && set->n == 2);
    if (!r->info->classification) return 0;
    if (set->n == 1)
        return drps_err_set(err, DRPS_E_FORMAT,
                            "every training label is %g: classification needs two classes (check "
                            "the label column, or "
                            "use --algo lir)",
                            (double)set->values[0]);
    if (set->n != 2)
        return drps_err_set(err, DRPS_E_FORMAT,
                            "more than two distinct labels (%g, %g, %g, ...): --algo %s needs "
                            "exactly two; for numbers "
                            "use --algo lir%s",
                            (double)set->values[0], (double)set->values[1], (double)set->values[2],
                            algo, fm ? " or --task regression" : "");
    r->info->label_negative = fminf(set->values[0], set->values[1]);
    r->info->label_positive = fmaxf(set->values[0], set->values[1]);
    const struct label_set *test = &r->parsed.test_labels;
    for (size_t i = 0; i < test->n; i++)
        if (test->values[i] != r->info->label_negative &&
            test->values[i] != r->info->label_positive)
            return drps_err_set(err, DRPS_E_FORMAT,
                                "a test sample has the label %g; training has only %g and %g",
                                (double)test->values[i], (double)r->info->label_negative,
                                (double)r->info->label_positive);
    return 0;
}

static const char *default_loss(const struct run *r)
{
    if (r->options.loss) return r->options.loss;
    if (strcmp(r->options.algo, "svm") == 0) return "hinge";
    return r->info->classification ? "logistic" : "squared";
}

static int settle_loss(struct run *r, struct drps_err *err)
{
    const char *loss = default_loss(r);
    const char *algo = r->options.algo;
    int fits = strcmp(algo, "svm") == 0
                   ? !strcmp(loss, "hinge") || !strcmp(loss, "squared-hinge")
                   : !strcmp(loss, r->info->classification ? "logistic" : "squared");
    if (!fits)
        return drps_err_set(err, DRPS_E_CONFIG,
                            "--loss %s does not fit --algo %s with these labels", loss, algo);
    (void)snprintf(r->info->loss, sizeof(r->info->loss), "%s", loss);
    return 0;
}

/* ---- Parse ---- */

static int parse(struct run *r, struct drps_err *err)
{
    struct drps_plan_info *info = r->info;
    struct parsed *p = &r->parsed;

    int rc = parse_inputs(r->io, &r->options, r->scratch, p, err);
    if (rc < 0) return rc;
    if (!p->samples)
        return drps_err_set(err, DRPS_E_FORMAT, "the input holds no %ssample: nothing to train on",
                            p->test_samples ? "training " : "");
    if (r->options.tests_n && !p->test_samples)
        return drps_err_set(err, DRPS_E_FORMAT, "the test input holds no sample");
    rc = settle_labels(r, err);
    if (rc == 0) rc = settle_loss(r, err);
    if (rc < 0) return rc;
    info->samples = p->samples;
    info->test_samples = p->test_samples;
    info->nnz = p->nnz;
    info->string_names = p->string_names;
    info->fields_n = p->fields_n;
    (void)snprintf(info->format, sizeof(info->format), "%s", p->format);
    r->result->input_bytes = p->bytes;
    r->result->input_lines = p->lines;
    r->result->skipped_lines = p->skipped;
    return 0;
}

/* ---- Place ---- */

static void add_table(struct drps_plan_info *info, const char *name, uint64_t rows)
{
    struct drps_table *t = &info->tables[info->tables_n++];
    (void)snprintf(t->name, sizeof(t->name), "%s", name);
    t->first = info->rows;
    t->rows = rows;
    info->rows += rows;
}

static int relabel(struct run *r, struct drps_err *err)
{
    struct parsed *p = &r->parsed;
    int rc = 0;
    for (size_t g = 0; rc == 0 && g < dict_generations(p->dict); g++) {
        uint32_t base = dict_base(p->dict, g);
        uint32_t *map = drps_array_new(dict_base(p->dict, g + 1) - base, sizeof(*map));
        rc = map ? dict_map(p->dict, g, map, err)
                 : drps_err_set(err, -ENOMEM, "no memory for placing");
        if (rc == 0) rc = spool_relabel(p->train, g, base, map, err);
        if (rc == 0) rc = spool_relabel(p->test, g, base, map, err);
        free(map);
    }
    return rc;
}

static int place(struct run *r, struct drps_err *err)
{
    struct drps_plan_info *info = r->info;
    uint64_t rows[2];
    int lmf = strcmp(r->options.algo, "lmf") == 0;

    if (!r->options.no_bias) add_table(info, "bias", 1);
    int rc = dict_place(r->parsed.dict, r->batch_dir, (uint32_t)info->rows, rows, err);
    if (rc < 0) return rc;
    add_table(info, lmf ? "user" : has_factors(r->options.algo) ? "wv" : "w", rows[0]);
    if (lmf) add_table(info, "item", rows[1]);
    if (!info->rows)
        return drps_err_set(err, DRPS_E_FORMAT,
                            "no training sample has a feature, and there is no intercept");
    return dict_generations(r->parsed.dict) > 1 ? relabel(r, err) : 0;
}

/* ---- Batch ---- */

struct batching {
    struct run *r;
    struct batcher *batcher;
    const uint32_t *map; /* provisional to placed ids; NULL: they are placed already */
    uint64_t ids;        /* number of either */
    float *values;       /* of a sample that lost entries */
    size_t values_cap;
    double label_sum;
    uint64_t done, total;
    int test;
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
                                            .map = b->map,
                                            .ids = b->ids,
                                            .stamp_bytes = r->options.memory_bytes / 8};
    int rc = batcher_open(data, rows, &options, &b->batcher, err);
    const struct spool_visitor visitor = {.visit = batch_sample, .expect = expect_sample, .ctx = b};
    if (rc == 0) rc = spool_drain(spool, r->options.memory_bytes / 3, &visitor, err);
    if (rc == 0) rc = batcher_flush(b->batcher, err);
    if (rc == 0) batcher_maxima(b->batcher, r->info);
    batcher_close(b->batcher);
    b->batcher = NULL;
    return rc;
}

/* All provisional ids fit memory when the dictionary was one generation: it was larger itself. */
static int load_map(struct run *r, uint32_t **map_out, struct drps_err *err)
{
    struct dict *d = r->parsed.dict;
    *map_out = NULL;
    if (dict_generations(d) != 1) return 0;
    uint32_t *map = drps_pages_new(dict_base(d, 1) * sizeof(*map));
    if (!map) return drps_err_set(err, -ENOMEM, "no memory for placing");
    *map_out = map;
    return dict_map(d, 0, map, err);
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
                        "%llu batches of %llu samples are too many for --memory: use a larger "
                        "--batch-size, or --memory %lluM",
                        (unsigned long long)steps, (unsigned long long)size,
                        (unsigned long long)(steps * STEP_BYTES * 2 >> 20) + 1);
}

/* ---- Grid order ---- */

static void choose_grid(struct run *r)
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
    const struct grid grid = {(uint32_t)info->grid_users, (uint32_t)info->grid_items};
    const struct drps_table *items = &info->tables[info->tables_n - 1];
    uint32_t user = 0, item = 0; /* groups; of a name that training does not have, the first */

    for (uint32_t i = 0; i < s->n; i++) {
        const uint32_t row = d->map ? d->map[s->ids[i]] : s->ids[i];
        if (row == DRPS_NO_ROW) continue;
        if (row >= items->first)
            item = grid_group(row - items->first, items->rows, grid.items);
        else
            user = grid_group(row - items[-1].first, items[-1].rows, grid.users);
    }
    uint64_t cell = grid_cell(&grid, user, item);
    if (d->backwards) cell = info->grid_users * info->grid_items - 1 - cell;
    s->order = grid_order(&grid, cell, s->order);
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
    choose_grid(r);
    int rc = deal(r, map, &r->parsed.train, "train-cells", 0, err);
    return rc < 0 ? rc : deal(r, map, &r->parsed.test, "test-cells", 1, err);
}

/* ---- Batches ---- */

static int samples_are_placed(const struct drps_index_options *o)
{
    if (!o->samples) return placement_follows_samples(o->partition);
    return strcmp(o->samples, "placed") == 0;
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
    if (!samples_are_placed(&r->options)) return 0;
    *map = NULL;
    return allot_samples(&job, &r->parsed.train, &r->parsed.test, &r->train, &r->test, err);
}

static int make_batches(struct run *r, struct drps_err *err)
{
    struct drps_plan_info *info = r->info;
    struct batching b = {.r = r, .total = info->samples + info->test_samples};
    struct drps_recwriter *data = NULL;
    struct drps_recwriter *rows = NULL;
    uint32_t *map = NULL;
    size_t map_bytes = dict_base(r->parsed.dict, 1) * sizeof(*map);

    int rc = choose_batch_size(r, err);
    if (rc == 0) rc = load_map(r, &map, err);
    b.map = map;
    if (rc == 0) rc = deal_to_grid(r, map, err);
    if (rc == 0) rc = allot(r, &b.map, err);
    b.ids = b.map ? dict_base(r->parsed.dict, 1) : info->rows;
    begin_batches(&b, &r->train);
    if (rc == 0) rc = open_records(r, "data.rec", DRPS_KIND_DATA, &data, err);
    if (rc == 0) rc = open_records(r, "rows.rec", DRPS_KIND_ROWS, &rows, err);
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
    drps_pages_free(map, map_bytes);
    parsed_free(&r->parsed);
    return rc;
}

/* ---- Block, window, forecast ---- */

/* Batches and row lists of all, once they are dealt. */
static int remove_batches(struct run *r, struct drps_err *err)
{
    static const char *const names[] = {"data.rec", "rows.rec"};
    int rc = 0;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]) && rc == 0; i++) {
        char *path = drps_path_join(r->stage.dir, names[i]);
        rc = path ? drps_io_remove_tree(r->io, path, err)
                  : drps_err_set(err, -ENOMEM, "no memory for a path");
        free(path);
    }
    return rc;
}

static struct layout_job layout_job(const struct run *r)
{
    const struct drps_blocks_options *o = &r->options.blocks;
    const struct drps_plan_info *info = r->info;
    const uint64_t rows = info->block_bytes / info->row_bytes;
    return (struct layout_job){
        .io = r->io,
        .from = r->batch_dir,
        .to = r->laid,
        .builder = block_builder_find(o->by),
        .options = {.cost = {.seek = (double)o->seek_ns / 1e3,
                             .row = (double)info->row_bytes / (double)o->transfer_bps * 1e6},
                    .top_k = o->top_k,
                    .min_gain = o->min_gain_us,
                    .min_count = o->prune,
                    .sample = o->sample,
                    .max_rows = rows ? (uint32_t)rows : 1,
                    .seed = info->seed,
                    .memory_bytes = r->options.memory_bytes / 4 * 3},
        .prune_to = o->prune_to,
        .shards = o->shards,
        .log = r->options.log,
        .stop = r->options.interrupt};
}

/* What ranks call the plan: a hash of all batches and of who has what. */
static int name_whole(struct run *r, const struct owners *owners, struct drps_err *err)
{
    static const char *const names[] = {"data.rec", "rows.rec", "names.rec"};
    struct drps_plan_ranks *ranks = &r->info->ranks;
    uint64_t hash[2];
    int rc = drps_plan_hash(r->io, r->stage.dir, names, 3, &hash[0], err);
    hash[1] = drps_checksum(owners->first, (owners->servers + 1) * sizeof(*owners->first));
    ranks->workers = owners->servers;
    ranks->rank = DRPS_PLAN_WHOLE;
    ranks->round_samples = r->info->batch_size * owners->servers;
    if (ranks->round_samples > r->info->samples) ranks->round_samples = r->info->samples;
    (void)snprintf(ranks->whole, sizeof(ranks->whole), "%016llx",
                   (unsigned long long)drps_checksum(hash, sizeof(hash)));
    return rc;
}

/* Ranges of the rows as they are, or the rows renumbered first. */
static int choose_owners(struct run *r, uint32_t **block_first, struct owners *out,
                         struct drps_err *err)
{
    struct drps_plan_info *info = r->info;
    const struct owners_job ranges = {.io = r->io,
                                      .dir = r->stage.dir,
                                      .steps = info->batches + info->eval_batches,
                                      .block_first = *block_first,
                                      .blocks = info->blocks,
                                      .memory_bytes = r->options.memory_bytes};
    const struct placement_job placement = {.io = r->io,
                                            .from = r->laid,
                                            .to = r->stage.dir,
                                            .algo = r->options.partition,
                                            .servers = r->parts_n,
                                            .by_home = samples_are_placed(&r->options),
                                            .pages =
                                                !block_builder_find(r->options.blocks.by)->merges,
                                            .memory_bytes = r->options.memory_bytes};
    if (!placement_renumbers(r->options.partition))
        return owners_by_range(&ranges, r->parts_n, out, err);
    int rc = placement_make(&placement, info, block_first, out, err);
    return rc < 0 ? rc : drps_io_remove_tree(r->io, r->laid, err);
}

/* A part for each rank; the dictionary stays with the whole. */
static int deal_parts(struct run *r, const struct layout_job *layout, uint32_t **block_first,
                      struct drps_err *err)
{
    struct drps_plan_info *info = r->info;
    struct owners owners;
    const struct deal_job job = {.io = r->io,
                                 .from = r->stage.dir,
                                 .batches = info->batches,
                                 .eval_batches = info->eval_batches,
                                 .owners = &owners,
                                 .memory_bytes = r->options.memory_bytes};
    int rc = choose_owners(r, block_first, &owners, err);
    if (rc == 0) rc = name_whole(r, &owners, err);
    for (uint32_t i = 0; i < r->parts_n && rc == 0; i++) {
        struct part *part = &r->parts[i];
        part->info = *info;
        rc = drps_plan_rank_dir(r->stage.dir, i, part->dir, err);
        if (rc == 0) rc = part_deal(part, &job, i, *block_first, err);
        if (rc == 0) rc = layout_write(layout, part->dir, part->block_first, &part->info, err);
        if (rc == 0) rc = check_interrupt(&r->options, err);
    }
    return rc < 0 ? rc : remove_batches(r, err);
}

/* The plan itself is the one part. */
static int keep_whole(struct run *r, const struct layout_job *layout, uint32_t **block_first,
                      struct drps_err *err)
{
    struct part *part = &r->parts[0];
    r->info->ranks = (struct drps_plan_ranks){.workers = 1,
                                              .rank = DRPS_PLAN_WHOLE,
                                              .round_samples = r->info->max_batch_samples,
                                              .max_round_rows = r->info->max_batch_rows};
    part->info = *r->info;
    part->block_first = *block_first; /* moved */
    *block_first = NULL;
    (void)snprintf(part->dir, sizeof(part->dir), "%s", r->stage.dir);
    return layout_write(layout, part->dir, part->block_first, &part->info, err);
}

static int make_blocks(struct run *r, struct drps_err *err)
{
    const struct drps_blocks_options *o = &r->options.blocks;
    struct drps_plan_info *info = r->info;
    uint32_t *block_first = NULL;

    info->seek_ns = o->seek_ns;
    info->transfer_bps = o->transfer_bps;
    const struct layout_job job = layout_job(r);
    int rc = layout_make(&job, info, &block_first, err);
    if (rc == 0)
        rc = r->parts_n > 1 ? deal_parts(r, &job, &block_first, err)
                            : keep_whole(r, &job, &block_first, err);
    free(block_first);
    return rc;
}

static int make_windows(struct run *r, struct drps_err *err)
{
    int rc = 0;
    for (uint32_t i = 0; i < r->parts_n && rc == 0; i++)
        rc = part_windows(&r->parts[i], r->io, r->options.memory_bytes, r->options.log, err);
    return rc;
}

static int forecast(struct run *r, struct drps_err *err)
{
    struct drps_index_result *result = r->result;
    int rc = 0;
    for (uint32_t i = 0; i < r->parts_n && rc == 0 && !r->options.no_forecast; i++)
        rc = part_forecast(&r->parts[i], r->io, err);
    if (rc < 0) return rc;
    if (r->parts_n > 1) {
        parts_sum(r->parts, r->parts_n, result);
        return 0;
    }
    *r->info = r->parts[0].info;
    result->forecasts = r->parts[0].forecasts;
    memcpy(result->forecast, r->parts[0].forecast, sizeof(result->forecast));
    return 0;
}

/* ---- The run ---- */

/*
 * What the disk says. A block that is used is read, changed and written: ts is one request, the
 * mean of a read and a write, ta what reading and writing a byte takes. Source: DRPS, section 4,
 * Eq. 1.
 */
static int calibrate(struct run *r, struct drps_err *err)
{
    struct drps_blocks_options *o = &r->options.blocks;
    struct drps_disk_times t;
    struct drps_disk_cost cost;
    char block[32], chunk[32];

    int rc = drps_disk_measure(r->io, o->calibrate, r->info->block_bytes, drps_clock_ns, &t, err);
    if (rc < 0) return rc;
    drps_disk_cost_of(&t, &cost);
    o->seek_ns = (uint64_t)((cost.read_seek_ns + cost.write_seek_ns) / 2);
    o->transfer_bps = (uint64_t)(1 / (1 / cost.read_bps + 1 / cost.write_bps));
    if (!o->seek_ns) o->seek_ns = 1;
    if (!o->transfer_bps) o->transfer_bps = 1;
    drps_log(
        r->options.log, DRPS_LOG_INFO,
        "%s: random requests of %s take %.1f us to read, %.1f us to write; long ones of %s "
        "%.1f and %.1f us (%.0f and %.0f MB/s); so a request costs %.1f us (--seek-us), to read "
        "and to write its bytes goes at %.0f MB/s (--transfer-mbs)",
        o->calibrate, drps_size_format(t.random_bytes, block, sizeof(block)),
        t.random_read_ns / 1e3, t.random_write_ns / 1e3,
        drps_size_format(t.long_bytes, chunk, sizeof(chunk)), t.long_read_ns / 1e3,
        t.long_write_ns / 1e3, cost.read_bps / 1e6, cost.write_bps / 1e6, (double)o->seek_ns / 1e3,
        (double)o->transfer_bps / 1e6);
    return 0;
}

static int make_folder(struct run *r, const char *path, struct drps_err *err)
{
    int rc = r->io->ops->mkdir(r->io->ctx, path, 0777);
    return rc < 0 ? drps_err_set(err, rc, "cannot create %s: %s", path, drps_err_name(rc)) : 0;
}

/* And parts to fill in. */
static int make_folders(struct run *r, struct drps_err *err)
{
    const int placed = placement_renumbers(r->options.partition);
    r->parts_n = r->options.workers;
    r->parts = calloc(r->parts_n, sizeof(*r->parts));
    r->scratch = drps_path_join(r->stage.dir, "scratch");
    if (r->scratch) r->laid = placed ? drps_path_join(r->scratch, "laid") : strdup(r->stage.dir);
    if (!r->parts || !r->laid) return drps_err_set(err, -ENOMEM, "no memory for a plan's parts");
    r->batch_dir = block_builder_find(r->options.blocks.by)->orders ? r->scratch : r->laid;
    int rc = make_folder(r, r->scratch, err);
    return rc == 0 && placed ? make_folder(r, r->laid, err) : rc;
}

static int begin(struct run *r, struct drps_err *err)
{
    struct drps_plan_info *info = r->info;
    int rc = check_options(r, err);
    info->dim = 1 + r->options.rank;
    info->block_bytes = r->options.blocks.bytes ? r->options.blocks.bytes
                        : info->dim == 1        ? NARROW_BLOCK_BYTES
                                                : BLOCK_BYTES;
    if (rc == 0 && r->options.blocks.calibrate) rc = calibrate(r, err);
    if (rc == 0)
        rc = drps_stage_begin(&r->stage, r->io, r->options.out,
                              r->options.force ? "plan.json" : NULL, err);
    if (rc < 0) return rc;
    (void)snprintf(info->algo, sizeof(info->algo), "%s", r->options.algo);
    (void)snprintf(info->order, sizeof(info->order), "%s",
                   r->options.order ? r->options.order : "shuffled");
    info->rank = r->options.rank;
    info->row_bytes = info->dim * sizeof(float) * 2;
    info->seed = r->options.seed;
    info->hash_seed = r->options.reader.hash_seed;
    info->memory_bytes = r->options.memory_bytes;
    return make_folders(r, err);
}

/* Of the files that are there. */
static uint64_t folder_bytes(const char *dir)
{
    static const char *const names[] = {"data.rec",      "rows.rec",    "names.rec", "blocks.rec",
                                        "uses.rec",      "windows.rec", "slots.rec", "shares.rec",
                                        "positions.rec", "plan.json"};
    uint64_t sum = 0;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        struct stat st;
        char *path = drps_path_join(dir, names[i]);
        if (path && stat(path, &st) == 0) sum += (uint64_t)st.st_size;
        free(path);
    }
    return sum;
}

static void measure_plan(struct run *r)
{
    r->result->plan_bytes = 0;
    for (uint32_t i = 0; i < r->parts_n; i++) {
        const uint64_t bytes = folder_bytes(r->parts[i].dir);
        if (r->parts_n > 1) r->result->ranks[i].plan_bytes = bytes;
        r->result->plan_bytes += bytes;
    }
    if (r->parts_n > 1) r->result->plan_bytes += folder_bytes(r->stage.dir);
}

static int publish(struct run *r, char *const *fields, struct drps_err *err)
{
    int rc = drps_io_remove_tree(r->io, r->scratch, err);
    for (uint32_t i = 0; i < r->parts_n && rc == 0; i++)
        rc = part_save(&r->parts[i], r->io, fields, err);
    if (rc == 0 && r->parts_n > 1)
        rc = drps_plan_save(r->io, r->stage.dir, r->info, fields, NULL, err);
    if (rc == 0) measure_plan(r);
    if (rc == 0) rc = drps_stage_commit(&r->stage, err);
    return rc;
}

static int (*const phases[DRPS_INDEX_PHASES])(struct run *, struct drps_err *) = {
    parse, place, make_batches, make_blocks, make_windows, forecast};

int drps_index_run(const struct drps_io *io, const struct drps_index_options *options,
                   struct drps_index_result *result_out, struct drps_err *err)
{
    uint64_t start = drps_clock_ns();
    struct run *r = calloc(1, sizeof(*r));
    char **fields = NULL;
    size_t fields_n = 0;

    memset(result_out, 0, sizeof(*result_out));
    if (!r) return drps_err_set(err, -ENOMEM, "no memory");
    r->io = io;
    r->options = *options;
    r->result = result_out;
    r->info = &result_out->info;
    int rc = begin(r, err);
    for (unsigned i = 0; rc == 0 && i < DRPS_INDEX_PHASES; i++) {
        uint64_t phase_start = drps_clock_ns();
        if (options->progress)
            options->progress(options->progress_ctx, (enum drps_index_phase)i, 0, 0);
        if (i == DRPS_PHASE_BATCH) { /* the rest of what was parsed goes with this phase */
            fields = r->parsed.fields;
            fields_n = r->parsed.fields_n;
            r->parsed.fields = NULL;
        }
        rc = phases[i](r, err);
        if (rc == 0) rc = check_interrupt(&r->options, err);
        result_out->phase_seconds[i] = drps_seconds_since(phase_start);
    }
    if (rc == 0) rc = publish(r, fields, err);
    if (rc == DRPS_E_INTERRUPTED) { /* whoever noticed it: this is what it means */
        drps_err_clear(err);
        rc = check_interrupt(options, err);
    }
    for (size_t i = 0; i < fields_n; i++)
        free(fields[i]);
    free(fields);
    parsed_free(&r->parsed);
    drps_stage_abort(&r->stage);
    for (uint32_t i = 0; i < r->parts_n; i++)
        part_free(&r->parts[i]);
    free(r->parts);
    free(r->scratch);
    free(r->laid);
    free(r);
    result_out->seconds = drps_seconds_since(start);
    return rc;
}
