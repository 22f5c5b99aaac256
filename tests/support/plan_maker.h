/*
 * Small plans for tests, written record by record, without drps-index: samples go in, batches of
 * consecutive samples come out. Feature f is row f (+ 1 behind the intercept) and is called 3 * f +
 * 5 in names.rec.
 */
#ifndef DRPS_TESTS_SUPPORT_PLAN_MAKER_H
#define DRPS_TESTS_SUPPORT_PLAN_MAKER_H

#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <setjmp.h>
#include <cmocka.h>

#include "base/drps_rng.h"
#include "index/plan/drps_batch.h"
#include "index/plan/drps_names_writer.h"
#include "index/plan/drps_plan.h"
#include "index/plan/drps_window.h"

enum { MAKER_ENTRIES = 8, MAKER_BATCH = 64, MAKER_SAMPLES = 4096 };

struct maker_sample {
    float label;
    uint32_t n;
    uint32_t features[MAKER_ENTRIES];
    float values[MAKER_ENTRIES];
};

struct maker {
    const char *algo, *loss;
    uint32_t rank;
    uint32_t fields; /* entry k of a sample has field k modulo this; 0: entries have none */
    int classification, no_bias;
    uint32_t features;
    size_t batch; /* samples a batch, at most MAKER_BATCH */
    uint32_t block_rows;
    size_t n, test_n;
    size_t mean_n;     /* the label mean is that of so many training samples; 0: of all */
    int small_windows; /* cut for the rows of two batches; else as few as there can be: all fit */
    struct maker_sample *train, *test; /* [MAKER_SAMPLES] */
    char dir[256];
};

static inline uint64_t maker_key(uint32_t feature)
{
    return 3 * (uint64_t)feature + 5;
}

static inline void maker_init(struct maker *m, const char *algo, const char *loss,
                              uint32_t features, size_t batch)
{
    memset(m, 0, sizeof(*m));
    m->algo = algo;
    m->loss = loss;
    m->classification = strcmp(loss, "squared") != 0;
    m->features = features;
    m->batch = batch;
    m->block_rows = 4;
    m->train = calloc(MAKER_SAMPLES, sizeof(*m->train));
    m->test = calloc(MAKER_SAMPLES, sizeof(*m->test));
    assert_non_null(m->train);
    assert_non_null(m->test);
}

static inline void maker_free(struct maker *m)
{
    free(m->train);
    free(m->test);
}

static inline struct maker_sample *maker_add(struct maker *m, int test, float label)
{
    struct maker_sample *s = test ? &m->test[m->test_n++] : &m->train[m->n++];
    assert_true(m->n < MAKER_SAMPLES && m->test_n < MAKER_SAMPLES);
    s->label = label;
    return s;
}

static inline void maker_entry(struct maker_sample *s, uint32_t feature, float value)
{
    assert_true(s->n < MAKER_ENTRIES);
    s->features[s->n] = feature;
    s->values[s->n++] = value;
}

/* n samples of `entries` distinct features each, labels by a hidden linear rule with some noise. */
static inline void maker_random(struct maker *m, size_t n, uint32_t entries, int test,
                                uint64_t seed)
{
    for (size_t i = 0; i < n; i++) {
        struct maker_sample *s = maker_add(m, test, 0);
        double score = 0.3;
        for (uint32_t k = 0; k < entries; k++) {
            const double u = drps_unit_double(drps_rng_at(seed, i * 64 + k));
            const uint32_t width =
                m->features / entries; /* every entry draws from a range of its own: distinct */
            const uint32_t f = k * width + (uint32_t)(u * u * width);
            const float value =
                m->loss[0] == 's'
                    ? 0.5f + (float)drps_unit_double(drps_rng_at(seed, i * 64 + 32 + k))
                    : 1.0f;
            maker_entry(s, f, value);
            score += (double)value * (drps_unit_double(drps_rng_at(99, f)) * 2 - 1);
        }
        score += 0.2 * (drps_unit_double(drps_rng_at(seed + 1, i)) - 0.5);
        s->label = m->classification ? (score > 0 ? 1.0f : -1.0f) : (float)score;
    }
}

static inline int maker_compare(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

/* One batch's distinct rows. */
static inline size_t maker_rows(const struct maker *m, const struct maker_sample *s, size_t n,
                                uint32_t *rows)
{
    const uint32_t bias = m->no_bias ? 0 : 1;
    size_t count = 0, kept = 0;
    if (bias) rows[count++] = 0;
    for (size_t i = 0; i < n; i++)
        for (uint32_t k = 0; k < s[i].n; k++)
            rows[count++] = s[i].features[k] + bias;
    qsort(rows, count, sizeof(*rows), maker_compare);
    for (size_t i = 0; i < count; i++)
        if (!kept || rows[kept - 1] != rows[i]) rows[kept++] = rows[i];
    return kept;
}

struct maker_files {
    struct drps_recwriter *data, *rows, *uses;
    struct drps_plan_info *info;
    size_t blocks;
    uint8_t *touched; /* [steps][blocks] */
};

static inline struct drps_recwriter *maker_open(const struct maker *m, const char *name,
                                                uint32_t kind)
{
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_recwriter *w;
    char *path = drps_path_join(m->dir, name);
    if (drps_recwriter_open(drps_io_os(), path, kind, &w, &err) < 0) fail_msg("%s", err.text);
    free(path);
    return w;
}

static inline void maker_close(struct drps_recwriter *w)
{
    assert_int_equal(drps_recwriter_finish(w, NULL), 0);
    drps_recwriter_close(w);
}

static inline void maker_list(struct drps_recwriter *w, const uint32_t *list, size_t n)
{
    void *packed = malloc(drps_list_encode_bound(n));
    const struct drps_piece piece = {packed, drps_list_encode(list, n, packed)};
    assert_int_equal(drps_recwriter_add(w, &piece, 1, NULL), 0);
    free(packed);
}

static inline void maker_batch(const struct maker *m, const struct maker_sample *s, size_t n,
                               size_t step, struct maker_files *f)
{
    static uint32_t rows[MAKER_BATCH * MAKER_ENTRIES + 1];
    static uint16_t local[MAKER_BATCH * MAKER_ENTRIES], fields[MAKER_BATCH * MAKER_ENTRIES];
    static float labels[MAKER_BATCH], values[MAKER_BATCH * MAKER_ENTRIES];
    static uint32_t starts[MAKER_BATCH + 1];
    const uint32_t bias = m->no_bias ? 0 : 1;
    struct drps_plan_info *info = f->info;
    struct drps_batch_pieces pieces;
    struct drps_batch b = {
        .samples = n, .labels = labels, .starts = starts, .local16 = local, .values = values};

    b.fields = m->fields ? fields : NULL;
    b.field_count = m->fields;
    b.rows = maker_rows(m, s, n, rows);
    for (size_t i = 0; i < n; i++) {
        labels[i] = s[i].label;
        starts[i] = (uint32_t)b.nnz;
        for (uint32_t k = 0; k < s[i].n; k++) {
            const uint32_t row = s[i].features[k] + bias;
            const uint32_t *at = bsearch(&row, rows, b.rows, sizeof(*rows), maker_compare);
            local[b.nnz] = (uint16_t)(at - rows);
            if (m->fields) fields[b.nnz] = (uint16_t)(k % m->fields);
            values[b.nnz++] = s[i].values[k];
        }
    }
    starts[n] = (uint32_t)b.nnz;
    drps_batch_encode(&b, &pieces);
    assert_int_equal(drps_recwriter_add(f->data, pieces.pieces, pieces.n, NULL), 0);
    maker_list(f->rows, rows, b.rows);
    for (size_t i = 0; i < b.rows; i++)
        f->touched[step * f->blocks + rows[i] / m->block_rows] = 1;
    if (n > info->max_batch_samples) info->max_batch_samples = n;
    if (b.rows > info->max_batch_rows) info->max_batch_rows = b.rows;
    if (b.nnz > info->max_batch_nnz) info->max_batch_nnz = b.nnz;
    uint64_t bytes = 0;
    for (size_t i = 0; i < pieces.n; i++)
        bytes += pieces.pieces[i].bytes;
    if (bytes > info->max_body_bytes) info->max_body_bytes = bytes;
}

/* uses.rec by looking ahead step by step. */
static inline void maker_uses(const struct maker_files *f, size_t steps)
{
    uint32_t *blocks = calloc(f->blocks, sizeof(*blocks)),
             *distance = calloc(f->blocks, sizeof(*distance));
    unsigned char *packed = malloc(2 * drps_list_encode_bound(f->blocks));
    for (size_t t = 0; t < steps; t++) {
        size_t n = 0;
        for (size_t b = 0; b < f->blocks; b++) {
            uint32_t d = 1;
            if (!f->touched[t * f->blocks + b]) continue;
            while (!f->touched[(t + d) % steps * f->blocks + b])
                d++;
            blocks[n] = (uint32_t)b;
            distance[n++] = d;
        }
        size_t used = drps_list_encode(blocks, n, packed);
        used += drps_numbers_encode(distance, n, packed + used);
        const struct drps_piece piece = {packed, used};
        assert_int_equal(drps_recwriter_add(f->uses, &piece, 1, NULL), 0);
        if (n > f->info->max_step_blocks) f->info->max_step_blocks = n;
    }
    free(blocks);
    free(distance);
    free(packed);
}

static inline void maker_names(const struct maker *m)
{
    struct names_writer *w;
    assert_int_equal(drps_names_writer_open(drps_io_os(), m->dir, 0, &w, NULL), 0);
    for (uint32_t f = 0; f < m->features; f++)
        assert_int_equal(
            drps_names_writer_add(w, maker_key(f), f + (m->no_bias ? 0 : 1), 0, NULL, 0, NULL), 0);
    assert_int_equal(drps_names_writer_finish(w, NULL), 0);
    drps_names_writer_close(w);
}

static inline void maker_blocks(const struct maker *m, struct drps_plan_info *info, size_t blocks)
{
    uint32_t *first = calloc(blocks + 1, sizeof(*first));
    for (size_t b = 0; b < blocks; b++)
        first[b] = (uint32_t)b * m->block_rows;
    first[blocks] = (uint32_t)info->rows;
    assert_int_equal(drps_blocks_write(drps_io_os(), m->dir, first, blocks, NULL), 0);
    info->blocks = blocks;
    info->max_block_rows = m->block_rows < info->rows ? m->block_rows : info->rows;
    free(first);
}

static inline void maker_windows(const struct maker *m, struct drps_plan_info *info)
{
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_window_result r;
    const uint64_t rows = m->small_windows ? 2 * info->max_batch_rows : info->rows;
    const struct drps_window_options o = {.steps = info->batches + info->eval_batches,
                                          .train_steps = info->batches,
                                          .rows = info->rows,
                                          .row_bytes = info->row_bytes,
                                          .budget_bytes = rows * info->row_bytes,
                                          .memory_bytes = 1 << 20};
    if (drps_windows_compile(drps_io_os(), m->dir, m->dir, &o, &r, &err) < 0)
        fail_msg("%s", err.text);
    info->windows = r.windows;
    info->window_budget_bytes = o.budget_bytes;
    info->working_set_rows = r.working_set_rows;
}

static inline void maker_info(const struct maker *m, struct drps_plan_info *info)
{
    const uint32_t dim = 1 + m->rank * (m->fields ? m->fields : 1);
    double sum = 0;
    *info = (struct drps_plan_info){.factors = m->rank,
                                    .dim = dim,
                                    .field_count = m->fields,
                                    .normalized = m->fields != 0,
                                    .classification = m->classification,
                                    .label_negative = m->classification ? -1.0f : 0.0f,
                                    .label_positive = m->classification ? 1.0f : 0.0f,
                                    .samples = m->n,
                                    .test_samples = m->test_n,
                                    .rows = m->features + (m->no_bias ? 0 : 1),
                                    .batch_size = m->batch,
                                    .batches = (m->n + m->batch - 1) / m->batch,
                                    .eval_batches = (m->test_n + m->batch - 1) / m->batch,
                                    .row_bytes = 8 * dim};
    (void)snprintf(info->algo, sizeof(info->algo), "%s", m->algo);
    (void)snprintf(info->loss, sizeof(info->loss), "%s", m->loss);
    (void)snprintf(info->format, sizeof(info->format), m->fields ? "libffm" : "libsvm");
    (void)snprintf(info->order, sizeof(info->order), "given");
    (void)snprintf(info->blocks_by, sizeof(info->blocks_by), "none");
    const size_t mean_n = m->mean_n ? m->mean_n : m->n;
    for (size_t i = 0; i < mean_n; i++)
        sum += (double)m->train[i].label;
    for (size_t i = 0; i < m->n; i++)
        info->nnz += m->train[i].n;
    for (size_t i = 0; i < m->test_n; i++)
        info->test_nnz += m->test[i].n;
    info->label_mean = sum / (double)mean_n;
    info->constant_loss = info->test_constant_loss = (double)NAN;
    if (!m->no_bias)
        info->tables[info->tables_n++] = (struct drps_table){.name = "bias", .first = 0, .rows = 1};
    info->tables[info->tables_n++] =
        (struct drps_table){.name = "w", .first = m->no_bias ? 0 : 1, .rows = m->features};
}

/* Write the plan to a new folder below `parent` and open it. */
static inline struct drps_plan *maker_write(struct maker *m, const char *parent, const char *name)
{
    struct drps_plan_info info;
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_plan *plan;
    maker_info(m, &info);
    const size_t steps = info.batches + info.eval_batches;
    struct maker_files f = {.info = &info,
                            .blocks = (info.rows + m->block_rows - 1) / m->block_rows};

    (void)snprintf(m->dir, sizeof(m->dir), "%s/%s", parent, name);
    assert_int_equal(mkdir(m->dir, 0777), 0);
    f.touched = calloc(steps * f.blocks, 1);
    f.data = maker_open(m, "data.rec", DRPS_KIND_DATA);
    f.rows = maker_open(m, "rows.rec", DRPS_KIND_ROWS);
    f.uses = maker_open(m, "uses.rec", DRPS_KIND_USES);
    for (size_t t = 0; t < steps; t++) {
        const int test = t >= info.batches;
        const size_t first = (test ? t - info.batches : t) * m->batch;
        const size_t left = (test ? m->test_n : m->n) - first;
        maker_batch(m, (test ? m->test : m->train) + first, left < m->batch ? left : m->batch, t,
                    &f);
    }
    maker_uses(&f, steps);
    maker_close(f.data);
    maker_close(f.rows);
    maker_close(f.uses);
    maker_windows(m, &info);
    maker_names(m);
    maker_blocks(m, &info, f.blocks);
    free(f.touched);
    if (drps_plan_save(drps_io_os(), m->dir, &info, NULL, NULL, &err) < 0) fail_msg("%s", err.text);
    if (drps_plan_open(drps_io_os(), m->dir, &plan, &err) < 0) fail_msg("%s", err.text);
    return plan;
}

/* A new temporary folder; remove it with temp_remove(). */
static inline char *temp_make(void)
{
    const char *base = getenv("TMPDIR");
    char *dir;
    if (asprintf(&dir, "%s/drps-test-XXXXXX", base ? base : "/tmp") < 0) fail();
    assert_non_null(mkdtemp(dir));
    return dir;
}

static inline void temp_remove(char *dir)
{
    (void)drps_io_remove_tree(drps_io_os(), dir, NULL);
    free(dir);
}

#endif
