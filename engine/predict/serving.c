/*
 * Samples pass a reader and a scorer that belong to the call; the model's rows are shared.
 *
 * A piece of the input is scored in batches whose rows take a bounded memory, but for a sample that
 * needs more by itself.
 */
#include "engine/predict/drps_serving.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"
#include "base/folder/drps_manifest.h"
#include "base/folder/drps_textfile.h"
#include "engine/predict/calibrate.h"
#include "engine/predict/explain.h"
#include "engine/predict/memory_rows.h"
#include "engine/predict/scorer.h"
#include "engine/predict/text_io.h"
#include "index/reader/matrix/drps_matrix_rows.h"

enum {
    MIB = 1 << 20,
    LOAD_BYTES = 8 * MIB, /* of the engine, while all is loaded */
    BATCH_BYTES = 16 * MIB /* of a batch's parameters */,
    ENTRIES_MOST = 1 << 20, /* of a batch whose parameters are few */
    TEXT_LEAST = MIB,
    TEXT_MOST = 64 * MIB,
    PAIR_BYTES = 48, /* of a user and an item as text */
};

struct drps_serving {
    struct drps_io_ops ops; /* that count reads */
    struct drps_io io;
    _Atomic uint64_t reads, read_bytes; /* of names */
    char *path;                         /* own: for texts */
    struct drps_modeldir *md;           /* own */
    const struct drps_modeldir_info *info;
    int in_memory;                /* all rows are */
    int has_names;                /* names are, at least */
    struct drps_memory_rows rows; /* has_names */
    pthread_mutex_t lock;         /* of md */
    int has_lock;
    uint64_t loaded_reads, loaded_bytes; /* while it was opened */
};

/* ---- Opening ---- */

static ssize_t count_pread(void *ctx, int fd, void *buf, size_t n, uint64_t offset)
{
    struct drps_serving *s = ctx;
    const struct drps_io *os = drps_io_os();
    const ssize_t got = os->ops->pread(os->ctx, fd, buf, n, offset);
    atomic_fetch_add_explicit(&s->reads, 1, memory_order_relaxed);
    if (got > 0) atomic_fetch_add_explicit(&s->read_bytes, (uint64_t)got, memory_order_relaxed);
    return got;
}

/* Names and rows in memory; or names, and as many blocks of rows as fit; or pages of names, too: a
 * sample's features lie far apart in them. */
static int open_rows(struct drps_serving *s, uint64_t memory_bytes, struct drps_err *err)
{
    const uint64_t names = drps_memory_names_bytes(s->info), rows = drps_memory_rows_bytes(s->info);
    const uint64_t least = drps_modeldir_memory_least(s->md);
    const uint64_t left = memory_bytes > least ? memory_bytes - least : 0;
    s->in_memory = !memory_bytes || left >= drps_sum(names, rows);
    s->has_names = s->in_memory || left >= names;
    const uint64_t engine = s->in_memory   ? least + LOAD_BYTES
                            : s->has_names ? memory_bytes - names
                                           : memory_bytes;
    int rc = drps_modeldir_open_rows(s->md, engine, err);
    if (rc == 0 && s->has_names) rc = drps_memory_rows_load(&s->rows, s->md, s->in_memory, err);
    return rc;
}

static uint64_t all_reads(struct drps_serving *s, uint64_t *bytes_out)
{
    uint64_t bytes;
    const uint64_t reads = drps_modeldir_reads(s->md, &bytes);
    *bytes_out = bytes + atomic_load_explicit(&s->read_bytes, memory_order_relaxed);
    return reads + atomic_load_explicit(&s->reads, memory_order_relaxed);
}

int drps_serving_open(const char *model, uint64_t memory_bytes, struct drps_serving **out,
                      struct drps_err *err)
{
    *out = NULL;
    struct drps_serving *s = calloc(1, sizeof(*s));
    if (!s) return drps_err_set(err, -ENOMEM, "no memory to open %s", model);
    s->ops = *drps_io_os()->ops;
    s->ops.pread = count_pread;
    s->io = (struct drps_io){.ops = &s->ops, .ctx = s};
    s->path = strdup(model);
    s->has_lock = pthread_mutex_init(&s->lock, NULL) == 0;
    int rc = s->path && s->has_lock ? 0 : drps_err_set(err, -ENOMEM, "no memory to open %s", model);
    if (rc == 0) rc = drps_modeldir_open(&s->io, model, 0, &s->md, err);
    if (rc == 0) s->info = drps_modeldir_info(s->md);
    if (rc == 0) rc = open_rows(s, memory_bytes, err);
    if (rc < 0) {
        drps_serving_close(s);
        return rc;
    }
    s->loaded_reads = all_reads(s, &s->loaded_bytes);
    *out = s;
    return 0;
}

void drps_serving_close(struct drps_serving *s)
{
    if (!s) return;
    drps_memory_rows_free(&s->rows);
    drps_modeldir_close(s->md);
    if (s->has_lock) (void)pthread_mutex_destroy(&s->lock);
    free(s->path);
    free(s);
}

/* ---- Asking ---- */

const struct drps_modeldir_info *drps_serving_info(const struct drps_serving *s)
{
    return s->info;
}

const void *drps_serving_json(const struct drps_serving *s)
{
    return drps_modeldir_json(s->md);
}

static int has_topics(const struct drps_serving *s)
{
    return drps_algorithm_is_topic(drps_algorithm(s->info->model.algo));
}

static int rates(const struct drps_serving *s)
{
    return drps_algorithm_rates(drps_algorithm(s->info->model.algo));
}

size_t drps_serving_outputs(const struct drps_serving *s)
{
    return has_topics(s) ? s->info->model.factors : s->info->model.outputs;
}

uint64_t drps_serving_reads(struct drps_serving *s, uint64_t *bytes_out)
{
    uint64_t bytes;
    (void)pthread_mutex_lock(&s->lock);
    const uint64_t reads = all_reads(s, &bytes);
    (void)pthread_mutex_unlock(&s->lock);
    if (bytes_out) *bytes_out = bytes - s->loaded_bytes;
    return reads - s->loaded_reads;
}

int drps_serving_rows(struct drps_serving *s, drps_readout_visit visit, void *ctx,
                      struct drps_err *err)
{
    struct drps_readout r;
    (void)pthread_mutex_lock(&s->lock);
    int rc = drps_readout_open(s->md, TEXT_MOST, &r, err);
    if (rc == 0) rc = drps_readout_rows(&r, NULL, 0, visit, ctx, err);
    drps_readout_close(&r);
    (void)pthread_mutex_unlock(&s->lock);
    return rc;
}

int drps_serving_row(struct drps_serving *s, const char *name, float *params, struct drps_err *err)
{
    struct drps_readout r;
    uint32_t row;
    (void)pthread_mutex_lock(&s->lock);
    int rc = drps_readout_open(s->md, TEXT_MOST, &r, err);
    if (rc == 0) rc = drps_readout_find(&r, name, &row, params, err);
    drps_readout_close(&r);
    (void)pthread_mutex_unlock(&s->lock);
    return rc;
}

/* ---- One call ---- */

struct call {
    struct drps_serving *s;
    int raw;
    double *scores; /* [most][outputs]; NULL: explanations are wanted */
    size_t most, n;
    struct drps_modeldata data;
    struct drps_text_io text;
    char *pairs; /* own: users and items as text */
    size_t explain;
    struct drps_textfile out; /* explanations */
};

/* Log-odds become a probability; of a calibrated model scores are log-odds. */
static void put_single(struct call *c, const float *scores, size_t n)
{
    const struct drps_serving *s = c->s;
    const int has_log_odds =
        !c->raw && (s->info->calibration.kind || s->info->model.loss == DRPS_LOSS_LOGISTIC);
    for (size_t i = 0; i < n; i++)
        c->scores[c->n + i] = has_log_odds ? 1 / (1 + exp(-(double)scores[i])) : (double)scores[i];
}

static int has_softmax(const struct drps_model *model)
{
    return model->loss == DRPS_LOSS_SOFTMAX ||
           (model->loss == DRPS_LOSS_EXPRESSION && drps_expr_has_softmax(&model->expr));
}

static void put_several(struct call *c, const float *scores, size_t n)
{
    const size_t outputs = drps_serving_outputs(c->s);
    const int softmax = !c->raw && c->s->info->classes && has_softmax(&c->s->info->model);
    for (size_t i = 0; i < n; i++) {
        double *to = c->scores + (c->n + i) * outputs;
        if (softmax)
            drps_softmax_probabilities(scores + i * outputs, outputs, to);
        else
            for (size_t k = 0; k < outputs; k++)
                to[k] = (double)scores[i * outputs + k];
    }
}

static int put_scores(struct call *c, struct drps_scorer *scorer, struct drps_err *err)
{
    const struct drps_modeldir_info *info = c->s->info;
    if (scorer->n > c->most - c->n)
        return drps_err_set(err, -ERANGE, "there are more than %zu samples", c->most);
    if (info->calibration.kind && !c->raw)
        drps_calibrate_scores(&info->calibration, scorer->scores, scorer->n);
    if (scorer->topic)
        put_several(c, scorer->codes, scorer->n);
    else if (info->model.outputs > 1)
        put_several(c, scorer->scores, scorer->n);
    else
        put_single(c, scorer->scores, scorer->n);
    return 0;
}

static int put_explained(struct call *c, const struct drps_scorer *scorer, struct drps_err *err)
{
    struct drps_explain e = {.data = &c->data, .out = &c->out, .most = c->explain, .json = 1};
    (void)pthread_mutex_lock(&c->s->lock); /* names are made through the model's folder */
    int rc = drps_explain_open(&e, c->s->md, scorer->entries_cap, err);
    for (size_t i = 0; i < scorer->n && rc == 0; i++)
        rc = drps_explain_sample(&e, scorer, i, c->n + i + 1, err);
    drps_explain_close(&e);
    (void)pthread_mutex_unlock(&c->s->lock);
    return rc;
}

static int score_batch(struct call *c, struct drps_scorer *scorer, struct drps_err *err)
{
    if (!c->s->in_memory) (void)pthread_mutex_lock(&c->s->lock);
    int rc = drps_scorer_run(scorer, err);
    if (!c->s->in_memory) (void)pthread_mutex_unlock(&c->s->lock);
    if (rc == 0) rc = c->scores ? put_scores(c, scorer, err) : put_explained(c, scorer, err);
    if (rc < 0) return rc;
    c->n += scorer->n;
    drps_scorer_clear(scorer);
    return 0;
}

/* Returns how many entries have rows that fit a batch's memory. A net without features has few of
 * these, whatever a sample's entries are. */
static size_t entries_that_fit(const struct drps_modeldir_info *info)
{
    const size_t fit = BATCH_BYTES / (info->model.dim * sizeof(float));
    const uint64_t features = info->rows - drps_model_common_rows(&info->model);
    return features > fit ? fit : ENTRIES_MOST;
}

/* Entries of a batch: of the longest sample, or as many as fit its memory. */
static size_t entries_for(const struct call *c)
{
    const struct drps_samples *p = &c->data.piece;
    const size_t fit = entries_that_fit(c->s->info);
    size_t longest = 1, sum = 0;
    for (size_t i = 0; i < p->n; i++) {
        const size_t most = drps_modeldata_most(&c->data, i);
        if (most > longest) longest = most;
        sum += most;
    }
    const size_t all = sum > longest ? sum : longest;
    return all < fit ? all : longest > fit ? longest : fit;
}

static int score_piece(struct call *c, struct drps_err *err)
{
    const struct drps_scorer_rows rows = {c->s->info, &c->s->rows, drps_memory_rows_lookup,
                                          drps_memory_rows_gather};
    const size_t n = c->data.piece.n, entries = entries_for(c);
    struct drps_scorer scorer;
    struct drps_modeldata_sample sample;
    int rc = c->s->has_names ? drps_scorer_init_rows(&scorer, &rows, n, entries, err)
                             : drps_scorer_init(&scorer, c->s->md, n, entries, err);
    if (rc == 0 && c->explain) rc = drps_scorer_keep_places(&scorer, err);
    for (size_t i = 0; i < n && rc == 0; i++) {
        rc = drps_modeldata_sample(&c->data, i, &sample, err);
        if (rc < 0 || drps_scorer_add(&scorer, &sample)) continue;
        rc = score_batch(c, &scorer, err);
        if (rc == 0 && !drps_scorer_add(&scorer, &sample)) rc = -EFAULT; /* it has room for any */
    }
    if (rc == 0) rc = score_batch(c, &scorer, err);
    drps_scorer_destroy(&scorer);
    return rc;
}

/* ---- Input ---- */

/* What a reader says of a file is not for who scores some lines. */
static void drop_message(void *ctx, enum drps_log_level level, const char *text)
{
    (void)ctx, (void)level, (void)text;
}

static const struct drps_log silent = {.level = DRPS_LOG_ERROR, .sink = drop_message};

/* Users and items as the lines of ratings that they are. */
static int write_pairs(struct call *c, const struct drps_matrix *m, struct drps_err *err)
{
    uint64_t first, n, user, item;
    float value;
    size_t at = 0;
    c->pairs = drps_array_new(m->samples + 1, PAIR_BYTES);
    if (!c->pairs) return drps_err_set(err, -ENOMEM, "no memory for pairs of users and items");
    for (uint64_t i = 0; i < m->samples; i++) {
        int rc = drps_matrix_row(m, i, &first, &n, err);
        if (rc == 0 && n != 2)
            rc = drps_err_set(err, DRPS_E_FORMAT,
                              "the matrix: sample %llu has %llu entries; a user and an item are "
                              "two",
                              (unsigned long long)i, (unsigned long long)n);
        if (rc == 0) rc = drps_matrix_entry(m, i, first, &user, &value, err);
        if (rc == 0) rc = drps_matrix_entry(m, i, first + 1, &item, &value, err);
        if (rc < 0) return rc;
        at += (size_t)snprintf(c->pairs + at, PAIR_BYTES, "%llu %llu\n", (unsigned long long)user,
                               (unsigned long long)item);
    }
    drps_text_io_init(&c->text, c->pairs, at);
    return 0;
}

static int check_matrix(const struct call *c, const struct drps_matrix *m, struct drps_err *err)
{
    const struct drps_modeldir_info *info = c->s->info;
    int rc = drps_matrix_check(m, err);
    if (rc < 0 || rates(c->s)) return rc;
    if (drps_modeldir_reads_names(info))
        return drps_err_set(err, DRPS_E_CONFIG,
                            "features of %s are names of %s data, and a matrix has numbers: score "
                            "text",
                            c->s->path, info->format);
    if (info->model.fields && !m->fields.data)
        return drps_err_set(err, DRPS_E_CONFIG,
                            "%s needs the field of each column: the matrix has none", c->s->path);
    return 0;
}

static int open_data(struct call *c, const struct drps_serving_input *in,
                     const struct drps_matrix *features, struct drps_err *err)
{
    static const char *const texts[] = {DRPS_TEXT_PATH}, *const matrices[] = {"the matrix"};
    const uint64_t wanted = 8 * (uint64_t)c->text.bytes;
    struct drps_reader_options o = {
        .label_optional = 1, .keep_weightless = 1, .matrix = features, .log = &silent};
    if (features)
        o.format = c->s->info->model.fields ? "libffm" : "libsvm";
    else
        o.memory_bytes = wanted < TEXT_LEAST ? TEXT_LEAST : wanted > TEXT_MOST ? TEXT_MOST : wanted;
    if (in->matrix && !features) o.format = "ratings"; /* pairs, as they were written */
    return drps_modeldata_open(&c->text.io, c->s->path, c->s->info, features ? matrices : texts, 1,
                               &o, &c->data, err);
}

static int open_input(struct call *c, const struct drps_serving_input *in, struct drps_matrix *own,
                      struct drps_err *err)
{
    if (c->s->info->sequences.most)
        return drps_err_set(err, DRPS_E_CONFIG,
                            "%s reads sequences, which are scored from files: use drps-predict",
                            c->s->path);
    if (!in->matrix) {
        drps_text_io_init(&c->text, in->text, in->bytes);
        return open_data(c, in, NULL, err);
    }
    int rc = check_matrix(c, in->matrix, err);
    if (rc < 0) return rc;
    if (rates(c->s)) {
        rc = write_pairs(c, in->matrix, err);
        return rc == 0 ? open_data(c, in, NULL, err) : rc;
    }
    *own = *in->matrix;
    own->labels.data = own->weights.data = NULL; /* they change no score */
    return open_data(c, in, own, err);
}

static int run(struct call *c, const struct drps_serving_input *in, struct drps_err *err)
{
    struct drps_matrix features;
    int rc = 0;
    if (in->matrix ? in->matrix->samples > 0 || in->matrix->starts.data == NULL : in->bytes > 0)
        rc = open_input(c, in, &features, err);
    while (rc == 0 && c->data.reader &&
           (rc = drps_reader_next(c->data.reader, &c->data.piece, err)) > 0)
        rc = score_piece(c, err);
    drps_modeldata_close(&c->data);
    free(c->pairs);
    return rc;
}

int drps_serving_score(struct drps_serving *s, const struct drps_serving_input *in, int raw,
                       double *scores, size_t most, size_t *n_out, struct drps_err *err)
{
    struct call c = {.s = s, .raw = raw, .scores = scores, .most = most};
    const int rc = run(&c, in, err);
    *n_out = c.n;
    return rc;
}

int drps_serving_explain(struct drps_serving *s, const struct drps_serving_input *in, size_t most,
                         char **text_out, struct drps_err *err)
{
    struct call c = {.s = s, .raw = 1, .explain = most};
    *text_out = NULL;
    int rc = drps_textfile_open_memory(&c.out, err);
    if (rc == 0) rc = run(&c, in, err);
    if (rc == 0) rc = drps_textfile_take(&c.out, text_out, err);
    drps_textfile_close(&c.out);
    return rc;
}
