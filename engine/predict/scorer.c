/*
 * Keys are sorted once a batch, so that the dictionary is read page by page and each name is looked
 * up once; the rows found are sorted again, so that the database is read block by block.
 */
#include "engine/predict/scorer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"
#include "index/plan/drps_names.h"

enum { DIGIT_BITS = 8, DIGITS = 64 / DIGIT_BITS, BUCKETS = 1 << DIGIT_BITS, FEW = 64 };

/* Bytes that each entry takes in the arrays of scorer.shared that are used before the parameters.
 */
enum { FIRST_BYTES = 2 * sizeof(uint64_t) + 2 * sizeof(struct drps_scorer_ref) };

/* Rows that a batch may have: no more than the model. */
static size_t most_rows(const struct drps_modeldir_info *info, size_t entries)
{
    const size_t rows = entries + 1 + drps_model_common_rows(&info->model);
    return rows < info->rows ? rows : (size_t)info->rows;
}

/* What names take, then rows. */
static size_t shared_bytes(const struct drps_modeldir_info *info, size_t entries)
{
    const size_t names = (entries + 1) * FIRST_BYTES;
    const size_t rows = most_rows(info, entries) * info->model.dim * sizeof(float);
    return names > rows ? names : rows;
}

/* Numbers by place that wait to be scored, at most, but for those of one sample. */
enum { NUMBERS_BYTES = 8 << 20 };

/* Samples whose numbers by place there is room for; 0: the model's samples have none. */
static size_t numbers_most(const struct drps_model *model, size_t samples)
{
    if (!model->layers.n || model->layers.has_features || !model->fields) return 0;
    const size_t fit = NUMBERS_BYTES / (model->fields * sizeof(float));
    return fit < 1 ? 1 : fit < samples ? fit : samples;
}

static int has_topics(const struct drps_model *model)
{
    return drps_algorithm_is_topic(drps_algorithm(model->algo));
}

static struct drps_topic_options topic_options(const struct drps_modeldir_info *info)
{
    return (struct drps_topic_options){
        .topics = info->model.factors, .l1 = info->topic_l1, .rho = 1, .members = 1};
}

static uint64_t topic_memory(const struct drps_model *model, size_t samples)
{
    const struct drps_topic_options options = {.topics = model->factors, .members = 1};
    if (!has_topics(model)) return 0;
    return drps_topic_memory(&options) + drps_modeldir_gram_memory(model) +
           samples * (uint64_t)model->factors * sizeof(float);
}

uint64_t drps_scorer_memory(const struct drps_modeldir_info *info, size_t samples, size_t entries)
{
    const struct drps_model *model = &info->model;
    return topic_memory(model, samples) +
           samples * ((2 + (uint64_t)model->outputs) * sizeof(float) + sizeof(uint32_t)) +
           entries * (sizeof(float) + 2 * sizeof(uint32_t) + (model->fields ? 2 : 0)) +
           (uint64_t)numbers_most(model, samples) * model->fields * sizeof(float) +
           most_rows(info, entries) * sizeof(uint32_t) + shared_bytes(info, entries) +
           drps_model_scratch_bytes(model, samples, entries + 1);
}

static int init_topics(struct drps_scorer *s, size_t samples, struct drps_err *err)
{
    const struct drps_modeldir_info *info = s->from.info;
    const struct drps_topic_options options = topic_options(info);
    if (!has_topics(&info->model)) return 0;
    s->codes = drps_array_new(samples * info->model.factors, sizeof(*s->codes));
    if (!s->codes) return drps_err_set(err, -ENOMEM, "no memory for codes of documents");
    return drps_topic_open_scorer(&options, info->gram, DRPS_MODEL_MANIFEST, &s->topic, err);
}

static int lookup_in_model(void *ctx, const uint64_t *keys, size_t n, uint32_t *rows_out,
                           struct drps_err *err)
{
    return drps_modeldir_lookup(ctx, keys, n, rows_out, err);
}

static int gather_from_model(void *ctx, const uint32_t *ids, size_t n, float *params,
                             struct drps_err *err)
{
    return drps_modeldir_gather(ctx, ids, n, params, err);
}

int drps_scorer_init(struct drps_scorer *s, struct drps_modeldir *md, size_t samples,
                     size_t entries, struct drps_err *err)
{
    const struct drps_scorer_rows rows = {drps_modeldir_info(md), md, lookup_in_model,
                                          gather_from_model};
    return drps_scorer_init_rows(s, &rows, samples, entries, err);
}

int drps_scorer_init_rows(struct drps_scorer *s, const struct drps_scorer_rows *rows,
                          size_t samples, size_t entries, struct drps_err *err)
{
    const struct drps_model *model = &rows->info->model;
    memset(s, 0, sizeof(*s));
    s->from = *rows;
    s->samples_cap = samples;
    s->entries_cap = entries;
    s->labels = drps_array_new(samples, sizeof(*s->labels));
    s->weights = drps_array_new(samples, sizeof(*s->weights));
    s->scores = drps_array_new(samples * model->outputs, sizeof(*s->scores));
    s->starts = drps_array_new(samples + 1, sizeof(*s->starts));
    s->values = drps_array_new(entries, sizeof(*s->values));
    if (model->fields) s->fields = drps_array_new(entries, sizeof(*s->fields));
    s->numbers_most = numbers_most(model, samples);
    if (s->numbers_most)
        s->numbers = drps_array_new(s->numbers_most * model->fields, sizeof(*s->numbers));
    s->local = drps_array_new(entries, sizeof(*s->local));
    s->rows = drps_array_new(entries, sizeof(*s->rows));
    s->ids = drps_array_new(most_rows(rows->info, entries), sizeof(*s->ids));
    s->shared = drps_array_new(shared_bytes(rows->info, entries), 1);
    s->scratch = drps_array_new(drps_model_scratch_bytes(model, samples, entries + 1), 1);
    if ((model->fields && !s->fields) || (s->numbers_most && !s->numbers) || !s->labels ||
        !s->weights || !s->scores || !s->starts || !s->values || !s->local || !s->rows || !s->ids ||
        !s->shared || !s->scratch)
        return drps_err_set(err, -ENOMEM, "no memory for batches of %zu features", entries);
    s->keys = (uint64_t *)(void *)s->shared;
    s->names = s->keys + entries;
    s->refs = (struct drps_scorer_ref *)(void *)(s->names + entries);
    s->spare = s->refs + entries;
    s->params = (float *)(void *)s->shared;
    drps_scorer_clear(s);
    return init_topics(s, samples, err);
}

void drps_scorer_destroy(struct drps_scorer *s)
{
    free(s->labels);
    free(s->weights);
    free(s->scores);
    free(s->starts);
    free(s->values);
    free(s->fields);
    free(s->numbers);
    free(s->local);
    free(s->places);
    free(s->rows);
    free(s->ids);
    free(s->shared);
    free(s->scratch);
    drps_topic_close(s->topic);
    free(s->codes);
    memset(s, 0, sizeof(*s));
}

void drps_scorer_clear(struct drps_scorer *s)
{
    s->n = s->entries = 0;
    s->starts[0] = 0;
}

int drps_scorer_keep_places(struct drps_scorer *s, struct drps_err *err)
{
    s->places = drps_array_new(s->entries_cap, sizeof(*s->places));
    return s->places
               ? 0
               : drps_err_set(err, -ENOMEM, "no memory for places of %zu features", s->entries_cap);
}

int drps_scorer_add(struct drps_scorer *s, const struct drps_modeldata_sample *sample)
{
    const size_t n = sample->n, at = s->entries;
    const uint32_t each = sample->numbers_each;
    if (s->n == s->samples_cap || n > s->entries_cap - at) return 0;
    if (each && s->n == s->numbers_most) return 0;
    s->has_numbers = each != 0;
    if (each) memcpy(s->numbers + s->n * each, sample->numbers, each * sizeof(*s->numbers));
    memcpy(s->keys + at, sample->keys, n * sizeof(*s->keys));
    memcpy(s->values + at, sample->values, n * sizeof(*s->values));
    if (s->fields && each) memset(s->fields + at, 0, n * sizeof(*s->fields));
    if (s->fields && !each) memcpy(s->fields + at, sample->fields, n * sizeof(*s->fields));
    for (size_t i = 0; s->places && i < n; i++)
        s->places[at + i] = sample->places ? sample->places[i] : (uint32_t)(sample->first + i);
    s->weights[s->n] = sample->weight;
    s->labels[s->n++] = sample->label;
    s->entries += n;
    s->starts[s->n] = (uint32_t)s->entries;
    return 1;
}

/* Sort few refs: those of a sample that is scored alone. */
static void insert_refs(struct drps_scorer_ref *refs, size_t n)
{
    for (size_t i = 1; i < n; i++) {
        const struct drps_scorer_ref ref = refs[i];
        size_t at = i;
        for (; at && refs[at - 1].key > ref.key; at--)
            refs[at] = refs[at - 1];
        refs[at] = ref;
    }
}

/* Sort refs by key, byte by byte from the lowest; bytes that all keys share are skipped. */
static void sort_refs(struct drps_scorer *s, size_t n)
{
    if (n <= FEW) {
        insert_refs(s->refs, n);
        return;
    }
    size_t count[DIGITS][BUCKETS];
    memset(count, 0, sizeof(count));
    for (size_t i = 0; i < n; i++)
        for (unsigned d = 0; d < DIGITS; d++)
            count[d][s->refs[i].key >> (d * DIGIT_BITS) & (BUCKETS - 1)]++;
    for (unsigned d = 0; n && d < DIGITS; d++) {
        const unsigned shift = d * DIGIT_BITS;
        if (count[d][s->refs[0].key >> shift & (BUCKETS - 1)] == n) continue;
        size_t at = 0;
        for (size_t b = 0; b < BUCKETS; b++) {
            const size_t here = count[d][b];
            count[d][b] = at;
            at += here;
        }
        for (size_t i = 0; i < n; i++)
            s->spare[count[d][s->refs[i].key >> shift & (BUCKETS - 1)]++] = s->refs[i];
        struct drps_scorer_ref *sorted = s->spare;
        s->spare = s->refs;
        s->refs = sorted;
    }
}

/* Distinct keys into names; local[j] becomes the number of entry j's name. Returns how many names.
 */
static size_t number_names(struct drps_scorer *s)
{
    size_t n = 0;
    for (size_t j = 0; j < s->entries; j++)
        s->refs[j] = (struct drps_scorer_ref){s->keys[j], (uint32_t)j};
    sort_refs(s, s->entries);
    for (size_t i = 0; i < s->entries; i++) {
        if (!n || s->names[n - 1] != s->refs[i].key) s->names[n++] = s->refs[i].key;
        s->local[s->refs[i].at] = (uint32_t)(n - 1);
    }
    return n;
}

/* Distinct rows into ids; rows[name] becomes the row's number in the batch, or DRPS_NO_ROW. Returns
 * how many ids. */
static int number_rows(struct drps_scorer *s, size_t names, size_t *ids_n, struct drps_err *err)
{
    const uint32_t common = drps_model_common_rows(&s->from.info->model);
    size_t found = 0, n = 0;
    for (size_t i = 0; i < names; i++)
        if (s->rows[i] != DRPS_NO_ROW)
            s->refs[found++] = (struct drps_scorer_ref){s->rows[i], (uint32_t)i};
    sort_refs(s, found);
    for (; n < common; n++)
        s->ids[n] = (uint32_t)n;
    for (size_t i = 0; i < found; i++) {
        const uint32_t row = (uint32_t)s->refs[i].key;
        if (row >= s->from.info->rows)
            return drps_err_set(err, DRPS_E_CORRUPT,
                                DRPS_FILE_NAMES " has row %u, and the model %llu rows", row,
                                (unsigned long long)s->from.info->rows);
        if (n && s->ids[n - 1] >= row)
            return drps_err_set(err, DRPS_E_CORRUPT, DRPS_FILE_NAMES " gives row %u %s", row,
                                row < common ? "a name" : "two names");
        s->rows[s->refs[i].at] = (uint32_t)n;
        s->ids[n++] = row;
    }
    *ids_n = n;
    return 0;
}

/* Turn names into local rows. Tokens that the model does not have count as none: 0 times the first
 * row, whose field still says whether a sequence begins. */
static size_t keep_marks(struct drps_scorer *s)
{
    for (size_t j = 0; j < s->entries; j++) {
        const uint32_t row = s->rows[s->local[j]];
        s->local[j] = row;
        if (row != DRPS_NO_ROW) continue;
        s->local[j] = 0;
        s->values[j] = 0;
        s->unseen++;
    }
    return s->entries;
}

/* Turn names into local rows and close the gaps of unseen features. */
static size_t keep_seen(struct drps_scorer *s)
{
    const uint32_t fields = s->from.info->model.fields;
    size_t kept = 0, from = 0;
    if (s->from.info->sequences.most) return keep_marks(s);
    for (size_t i = 0; i < s->n; i++) {
        const size_t end = s->starts[i + 1];
        for (size_t j = from; j < end; j++) {
            const uint32_t row = s->rows[s->local[j]];
            if (row == DRPS_NO_ROW || (s->fields && s->fields[j] >= fields)) continue;
            if (s->fields) s->fields[kept] = s->fields[j];
            if (s->places) s->places[kept] = s->places[j];
            s->values[kept] = s->values[j];
            s->local[kept++] = row;
        }
        from = end;
        s->starts[i + 1] = (uint32_t)kept;
    }
    s->unseen += s->entries - kept;
    return kept;
}

static int check_entries(const struct drps_scorer *s, struct drps_err *err)
{
    const struct drps_algorithm *a = drps_algorithm(s->from.info->model.algo);
    if (!drps_algorithm_rates(a)) return 0;
    for (size_t i = 0; i < s->n; i++)
        if (s->starts[i + 1] - s->starts[i] > 2)
            return drps_err_set(err, DRPS_E_FORMAT,
                                "a sample has %u features; %s takes two, a user and an item",
                                s->starts[i + 1] - s->starts[i], a->name);
    return 0;
}

/* Where training samples have rows of their own these have the largest ids, and no feature has
 * such. */
static void forget_samples(struct drps_scorer *s, size_t names)
{
    const struct drps_model *model = &s->from.info->model;
    const struct drps_algorithm *a = drps_algorithm_of(drps_algorithm(model->algo), &model->expr);
    if (!drps_algorithm_has_sample_rows(a)) return;
    for (size_t i = names; i && s->names[i - 1] >= DRPS_SAMPLE_KEYS; i--)
        s->rows[i - 1] = DRPS_NO_ROW;
}

static void score(struct drps_scorer *s)
{
    const struct drps_batch *batch = &s->batch;
    const struct drps_topic_step step = {
        .batch = batch, .before = s->params, .scores = s->scores, .codes = s->codes};
    if (!s->topic)
        drps_model_predict(&s->from.info->model, batch, 0, s->n, s->params, s->scores, s->scratch);
    for (unsigned phase = 0; s->topic && phase < DRPS_TOPIC_PHASES; phase++)
        drps_topic_work(s->topic, &step, phase, 0);
}

int drps_scorer_run(struct drps_scorer *s, struct drps_err *err)
{
    const struct drps_model *model = &s->from.info->model;
    size_t ids = 0;

    int rc = check_entries(s, err);
    if (rc < 0) return rc;
    const size_t names = number_names(s);
    rc = s->from.lookup(s->from.ctx, s->names, names, s->rows, err);
    if (rc == 0) forget_samples(s, names);
    if (rc == 0) rc = number_rows(s, names, &ids, err);
    if (rc == 0) rc = s->from.gather(s->from.ctx, s->ids, ids, s->params, err);
    if (rc < 0) return rc;
    const size_t kept = keep_seen(s);
    s->batch = (struct drps_batch){.samples = s->n,
                                   .rows = ids,
                                   .nnz = kept,
                                   .labels = s->labels,
                                   .starts = s->starts,
                                   .local32 = s->local,
                                   .values = s->values,
                                   .fields = s->has_numbers ? NULL : s->fields,
                                   .field_count = s->has_numbers ? 0 : model->fields};
    if (s->has_numbers)
        s->batch.numbers = (struct drps_dense){.each = model->fields, .floats = s->numbers};
    score(s);
    return 0;
}
