/*
 * The phase that makes batches: spooled samples in their final order, with placed ids, become
 * data.rec and rows.rec (index/batches/).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"
#include "index/batches/drps_batcher.h"
#include "index/batches/drps_lanes.h"
#include "index/batches/drps_mixed.h"
#include "index/labels/drps_constant.h"
#include "index/plan/drps_names.h"
#include "index/run/run.h"

/* ---- One batch after another ---- */

struct batching {
    struct index_run *r;
    struct batcher *batcher;
    const uint32_t *map; /* provisional to placed ids; NULL: they are placed already */
    uint32_t any;        /* an id of training; of sequences */
    float *values;       /* of a sample that lost entries */
    uint16_t *fields;
    size_t values_cap, fields_cap;
    uint64_t ones; /* training entries of value 1, or hashed to that with a sign */
    double most;   /* weight of a training sample */
    int weighted;  /* a weight is not 1 */
    struct drps_label_sums labels[2]; /* of training, of test */
    uint64_t done, total, trained;    /* samples; those of training */
    int test;
    struct lanes *lanes; /* batches are marked, and end with their stratum; or NULL */
    struct mixed *mixed; /* batches are marked, of the shuffled order; or NULL */
    const struct assignment *assignment; /* NULL: batches end when they are full */
    uint64_t batch, left; /* with one: which is being made, and how many samples it still takes */
    uint64_t end, step;   /* batches are below `end`, every `step`-th of them is made here */
};

/* Batches that have all their samples end; they may have none. */
static int end_batches(struct batching *b, struct drps_err *err)
{
    int rc = 0;
    while (!b->left && b->batch < b->end && rc == 0) {
        rc = drps_batcher_end(b->batcher, err);
        b->batch += b->step;
        if (b->batch < b->end) b->left = assigned_batch(b->assignment, b->batch);
    }
    return rc;
}

static void begin_batches(struct batching *b, const struct assignment *a)
{
    const struct swap_ranks *ranks = b->r->options.ranks;
    b->assignment = a->rounds ? a : NULL;
    b->batch = ranks ? ranks->rank : 0; /* of several machines each makes its own */
    b->step = ranks ? ranks->count : 1;
    b->end = !a->rounds ? 0 : ranks ? drps_together_batches(a) : a->rounds * a->workers;
    b->left = b->batch < b->end ? assigned_batch(a, b->batch) : 0;
}

/* Whether training has touched what entry i of a sample touches. */
static int is_seen(const struct batching *b, const struct spool_sample *s, uint32_t i)
{
    const uint32_t row = b->map ? b->map[s->ids[i]] : s->ids[i];
    return row != DRPS_NO_ROW && (!s->fields || s->fields[i] < b->r->info->field_count);
}

/* Drop entries that training never touches, from samples of evaluation; values and fields follow.
 */
static int drop_unseen(struct batching *b, struct spool_sample *s, struct drps_err *err)
{
    uint32_t kept = 0;
    if (drps_array_reserve(&b->values, &b->values_cap, s->values ? s->n : 0, sizeof(*b->values)) ||
        drps_array_reserve(&b->fields, &b->fields_cap, s->fields ? s->n : 0, sizeof(*b->fields)))
        return drps_err_set(err, -ENOMEM, "no memory for a sample with %u features", s->n);
    for (uint32_t i = 0; i < s->n; i++) {
        if (!is_seen(b, s, i)) continue;
        s->ids[kept] = s->ids[i];
        if (s->values) b->values[kept] = s->values[i];
        if (s->fields) b->fields[kept] = s->fields[i];
        kept++;
    }
    b->r->info->test_unseen += s->n - kept;
    s->n = kept;
    if (s->values) s->values = b->values;
    if (s->fields) s->fields = b->fields;
    return 0;
}

/* The token of a sample that training does not have counts as none, but its mark stays: it becomes
 * an entry of value 0, of whatever row. */
static int keep_mark(struct batching *b, struct spool_sample *s, struct drps_err *err)
{
    if (is_seen(b, s, 0)) return 0;
    if (drps_array_reserve(&b->values, &b->values_cap, 1, sizeof(*b->values)))
        return drps_err_set(err, -ENOMEM, "no memory for the value of a token");
    b->values[0] = 0;
    s->values = b->values;
    s->ids[0] = b->any;
    b->r->info->test_unseen++;
    return 0;
}

static int add_to_lane(struct batching *b, const struct spool_sample *s, struct drps_err *err)
{
    const struct drps_plan_info *info = b->r->info;
    const struct grid_position position =
        drps_run_position_of(info, (uint32_t)info->lanes, b->map, s);
    const uint64_t before = b->test ? info->grid_users * info->grid_items * info->lanes : 0;
    return drps_lanes_add(b->lanes, (uint32_t)(before + position.stratum) + 1, position.lane, s,
                          err);
}

static int add_mixed(struct batching *b, const struct spool_sample *s, struct drps_err *err)
{
    const struct mix_position at = drps_run_mix_of(b->r->info, b->map, s);
    return drps_mixed_add(b->mixed, at.stratum, at.lane, s, err);
}

/* What batches hold of a label: a number, a sign, or the number of a class. */
static float stored_label(const struct index_run *r, float label)
{
    if (r->label_of) label = r->label_of[(uint32_t)label];
    if (!r->info->classification || r->classes) return label;
    return label == r->info->label_positive ? 1.0f : -1.0f;
}

/* The batch that the next sample is for, or one before or behind it, where batches are marked with
 * lanes; the first sample's is 0. */
static uint64_t batch_of(const struct batching *b)
{
    if (b->assignment) return b->batch;
    return (b->done - (b->test ? b->trained : 0)) / b->r->info->batch_size;
}

/* Settle what a sample weighs, and count it. */
static int weigh(struct batching *b, struct spool_sample *s, struct drps_err *err)
{
    int rc = b->test ? 0 : drps_run_weight_of(b->r, s->label, s->weight, &s->weight, err);
    b->weighted |= s->weight != 1;
    drps_label_sums_add(&b->labels[b->test], batch_of(b), s->label, s->weight);
    if (!b->test && (double)s->weight > b->most) b->most = (double)s->weight;
    return rc;
}

/* Counts values of 1; where hashing gives features a sign, of -1, too. */
static uint32_t count_ones(const struct spool_sample *s, int hashed)
{
    uint32_t ones = 0;
    if (!s->values) return s->n;
    for (uint32_t i = 0; i < s->n; i++)
        ones += s->values[i] == 1 || (hashed && s->values[i] == -1);
    return ones;
}

static int batch_sample(void *ctx, struct spool_sample *s, struct drps_err *err)
{
    enum { REPORT_EVERY = 1 << 14 };
    struct batching *b = ctx;
    struct index_run *r = b->r;

    int rc = b->assignment ? end_batches(b, err) : 0; /* the first ones may be without samples */
    if (rc == 0 && b->test)
        rc = r->info->sequences.most ? keep_mark(b, s, err) : drop_unseen(b, s, err);
    if (rc < 0) return rc;
    if (!b->test && s->n) b->any = s->ids[0];
    s->label = stored_label(r, s->label);
    rc = weigh(b, s, err);
    if (rc < 0) return rc;
    if (!b->test) b->ones += count_ones(s, r->info->hashing.bits > 0);
    if (++b->done % REPORT_EVERY == 0) {
        rc = drps_index_report(&r->progress, b->done, b->total, err);
        if (rc < 0) return rc;
    }
    if (b->lanes) return add_to_lane(b, s, err);
    if (b->mixed) return add_mixed(b, s, err);
    if (!b->assignment) return drps_batcher_add(b->batcher, s, err);
    rc = drps_batcher_add(b->batcher, s, err);
    b->left--;
    return rc < 0 ? rc : end_batches(b, err);
}

static void expect_sample(void *ctx, const uint32_t *ids, uint32_t n)
{
    const struct batching *b = ctx;
    drps_batcher_expect(b->batcher, ids, n);
}

static int open_lanes(struct batching *b, struct drps_err *err)
{
    const struct drps_plan_info *info = b->r->info;
    const uint32_t lanes = (uint32_t)info->lanes;
    if (!drps_run_has_lanes(info, b->test)) return 0;
    return info->grid_users
               ? drps_lanes_open(lanes, (size_t)info->batch_size, b->batcher, &b->lanes, err)
               : drps_mixed_open(lanes, (size_t)info->batch_size, b->batcher, &b->mixed, err);
}

static int finish_lanes(struct batching *b, struct drps_err *err)
{
    int rc = b->lanes ? drps_lanes_finish(b->lanes, err) : 0;
    return rc == 0 && b->mixed ? drps_mixed_finish(b->mixed, err) : rc;
}

static void close_lanes(struct batching *b)
{
    drps_lanes_close(b->lanes);
    drps_mixed_close(b->mixed);
    b->lanes = NULL;
    b->mixed = NULL;
}

/* A thread that sorts buckets pays where these have some milliseconds of work. */
enum { AHEAD_NNZ = 1 << 22 };

static int drain(struct index_run *r, struct batching *b, struct spool *spool,
                 struct drps_recwriter *data, struct drps_recwriter *rows, struct drps_err *err)
{
    const uint64_t most = b->assignment ? SIZE_MAX : r->info->batch_size;
    /* What is left when the spool has its eighth, samples being sorted and the batch a third each,
     * and the map of ids a 24th at most. */
    const struct batcher_options options = {
        .batch_size = (size_t)most,
        .common = drps_plan_common_rows(r->info),
        .ways = {.dense = r->options.dense, .levels = r->options.hashing.bits > 0},
        .memory_bytes = r->options.memory_bytes / 3,
        .map = b->map,
        .threads = drps_run_processors() > 1 ? 2 : 0,
        .field_count = drps_plan_entry_fields(r->info),
        .numbers = drps_plan_numbers_each(r->info),
        .sequence = r->info->sequences.most};
    int rc = drps_batcher_open(data, rows, &options, &b->batcher, err);
    const struct spool_visitor visitor = {.visit = batch_sample,
                                          .expect = expect_sample,
                                          .ctx = b,
                                          .ahead = r->info->nnz >= AHEAD_NNZ &&
                                                   drps_run_processors() > 1};
    if (rc == 0) rc = open_lanes(b, err);
    if (rc == 0) rc = drps_spool_drain(spool, r->options.memory_bytes / 3, &visitor, err);
    if (rc == 0) rc = finish_lanes(b, err);
    if (rc == 0 && b->assignment) rc = end_batches(b, err); /* there may have been no samples */
    close_lanes(b);
    if (rc == 0) rc = drps_batcher_flush(b->batcher, err);
    if (rc == 0) drps_batcher_maxima(b->batcher, r->info);
    drps_batcher_close(b->batcher);
    b->batcher = NULL;
    return rc;
}

static int open_records(struct index_run *r, const char *name, uint32_t kind,
                        struct drps_recwriter **w_out, struct drps_err *err)
{
    char *path = drps_path_join(r->batch_dir, name);
    *w_out = NULL;
    if (!path) return drps_err_set(err, -ENOMEM, "no memory for %s", name);
    int rc = drps_recwriter_open(r->io, path, kind, w_out, err);
    free(path);
    return rc;
}

static int begin_labels(struct batching *b, struct drps_err *err)
{
    const struct drps_plan_info *info = b->r->info;
    const size_t classes = drps_classes_count(info->classes);
    enum drps_loss loss = DRPS_LOSS_CODING; /* for any that has no constant */
    (void)drps_loss_find(info->loss, &loss);
    int rc = drps_label_sums_init(&b->labels[0], loss, classes, err);
    if (rc == 0) rc = drps_label_sums_init(&b->labels[1], loss, classes, err);
    b->labels[0].items = b->labels[1].items = info->negatives.items;
    return rc;
}

static void end_labels(struct batching *b, int rc)
{
    struct drps_plan_info *info = b->r->info;
    drps_label_sums_settle(&b->labels[0]);
    drps_label_sums_settle(&b->labels[1]);
    info->label_mean = info->classes ? 0 : drps_label_sums_mean(&b->labels[0]);
    if (b->weighted)
        info->weights = (struct drps_plan_weights){
            .sum = b->labels[0].n, .test_sum = b->labels[1].n, .most = b->most};
    if (rc == 0) drps_run_remark_labels(b->r, &b->labels[0], &b->labels[1]);
    info->constant_loss = drps_constant_loss(&b->labels[0], &b->labels[0]);
    info->test_constant_loss = drps_constant_loss(&b->labels[0], &b->labels[1]);
    drps_label_sums_destroy(&b->labels[0]);
    drps_label_sums_destroy(&b->labels[1]);
}

/* Where several machines make the plan, adds up what each has counted in its batches: the numbers
 * become those of all machines. */
static int count_of_all(struct batching *b, struct drps_err *err)
{
    struct index_run *r = b->r;
    struct drps_plan_info *info = r->info;
    struct together_batches sums;
    memset(&sums, 0, sizeof(sums)); /* holes, too: it is sent */
    sums.ones = b->ones;
    sums.test_unseen = info->test_unseen;
    sums.max_batch_samples = info->max_batch_samples;
    sums.max_batch_rows = info->max_batch_rows;
    sums.max_batch_nnz = info->max_batch_nnz;
    sums.max_body_bytes = info->max_body_bytes;
    sums.most = b->most;
    sums.weighted = b->weighted;
    int rc = drps_together_sum_batches(r->options.ranks, &sums, b->labels, err);
    if (rc < 0) return rc;
    b->ones = sums.ones;
    b->most = sums.most;
    b->weighted = sums.weighted;
    info->test_unseen = sums.test_unseen;
    info->max_batch_samples = sums.max_batch_samples;
    info->max_batch_rows = sums.max_batch_rows;
    info->max_batch_nnz = sums.max_batch_nnz;
    info->max_body_bytes = sums.max_body_bytes;
    info->batches = drps_together_batches(&r->train);
    info->eval_batches = drps_together_batches(&r->test);
    return 0;
}

/* What is known of the samples once all are in batches. */
static void tell_samples(const struct batching *b)
{
    struct drps_plan_info *info = b->r->info;
    info->ones = info->nnz ? (double)b->ones / (double)info->nnz : 0;
    info->test_nnz =
        b->r->parsed.test_nnz - (info->sequences.most ? 0 : info->test_unseen); /* marks stay */
}

int drps_phase_batch(struct index_run *r, struct drps_err *err)
{
    struct drps_plan_info *info = r->info;
    struct batching b = {.r = r, .total = info->samples + info->test_samples};
    struct drps_recwriter *data = NULL;
    struct drps_recwriter *rows = NULL;

    if (r->options.ranks || !drps_run_assigns_samples(&r->options)) b.map = drps_run_map(r);
    begin_batches(&b, &r->train);
    int rc = begin_labels(&b, err);
    if (rc == 0) rc = open_records(r, DRPS_FILE_DATA, DRPS_KIND_DATA, &data, err);
    if (rc == 0) rc = open_records(r, DRPS_FILE_ROWS, DRPS_KIND_ROWS, &rows, err);
    if (rc == 0) rc = drain(r, &b, r->parsed.train, data, rows, err);
    if (rc == 0) {
        info->batches = drps_recwriter_count(data);
        b.test = 1;
        b.trained = b.done;
        begin_batches(&b, &r->test);
        rc = drain(r, &b, r->parsed.test, data, rows, err);
        info->eval_batches = drps_recwriter_count(data) - info->batches;
    }
    if (rc == 0 && r->options.ranks) rc = count_of_all(&b, err);
    if (rc == 0) tell_samples(&b);
    if (rc == 0) rc = drps_recwriter_finish(data, err);
    if (rc == 0) rc = drps_recwriter_finish(rows, err);
    drps_recwriter_close(data);
    drps_recwriter_close(rows);
    end_labels(&b, rc);
    free(b.values);
    free(b.fields);
    drps_read_samples_free(&r->parsed);
    return rc;
}
