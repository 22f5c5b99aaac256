/* Prediction: samples are read in batches, scored and written. It needs a model, a reader and an
 * output. */
#include "engine/predict/drps_predict.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/drps_alloc.h"
#include "base/drps_clock.h"
#include "base/drps_size.h"
#include "engine/publish/drps_modeldata.h"
#include "engine/publish/drps_modeldir.h"
#include "base/folder/drps_textfile.h"
#include "engine/model/expr/drps_slopes.h"
#include "engine/predict/calibrate.h"
#include "engine/predict/explain.h"
#include "engine/predict/scorer.h"
#include "engine/predict/share.h"
#include "engine/predict/warnings.h"

enum { MIB = 1 << 20, SCORE_CHARS = 64 };

struct predictor {
    const struct drps_predict_options *options;
    struct drps_predict_result *result;
    struct drps_modeldir *md;
    const struct drps_modeldir_info *info; /* of md */
    struct drps_modeldata data;
    struct drps_scorer scorer;
    struct drps_metrics *metrics;
    struct drps_textfile out;
    struct drps_explain explain;                /* used where options->explain is set */
    const struct drps_calibration *calibration; /* of info; NULL: none is in effect */
    double *chances;                            /* own: [outputs] of a sample's classes */
    struct drps_expr expr;                      /* what is written, if that is a text */
    double *work;                               /* own: for it; NULL: it is none */
    uint64_t scored;                            /* samples so far */
    unsigned of_line; /* samples that share a line of the output, the same but for their labels */
    uint64_t given;   /* features of the model's fields in all samples so far */
    uint64_t limit_bytes, reader_bytes;
    uint64_t input_bytes; /* of all files; 0: not known */
};

static int open_model(struct predictor *p, const struct drps_io *io, struct drps_err *err)
{
    const struct drps_predict_options *o = p->options;
    struct drps_predict_share share;
    p->limit_bytes = o->memory_bytes ? o->memory_bytes : drps_memory_available() / 2;
    int rc = drps_modeldir_open(io, o->model, 0, &p->md, err);
    if (rc < 0) return rc;
    p->info = drps_modeldir_info(p->md);
    /* Explanations and values are of uncalibrated scores. */
    if (!o->explain && !o->value) p->calibration = drps_calibration_in_effect(o, p->info);
    rc = drps_predict_share_out(o, p->md, p->limit_bytes, &share, err);
    if (rc == 0) rc = drps_modeldir_open_rows(p->md, share.model_bytes, err);
    if (rc < 0) return rc;
    p->reader_bytes = share.reader_bytes;
    return drps_scorer_init(&p->scorer, p->md, share.entries / DRPS_PREDICT_SAMPLE_ENTRIES,
                            share.entries, err);
}

/* The error names the memory, to a tenth of a MiB, whose batches take the sample. */
static int sample_too_large(const struct predictor *p, size_t n, struct drps_err *err)
{
    const unsigned long long sample = p->result->samples + 1;
    uint64_t tenths = p->limit_bytes / MIB * 10 + p->limit_bytes % MIB * 10 / MIB + 1;
    struct drps_predict_share share = {0};
    if (n > DRPS_PREDICT_ENTRIES_MOST)
        return drps_err_set(err, DRPS_E_MEMORY_BUDGET,
                            "sample %llu has %zu features; at most %d can be scored", sample, n,
                            DRPS_PREDICT_ENTRIES_MOST);
    while (drps_predict_share_out(p->options, p->md, tenths * MIB / 10, &share, NULL) < 0 ||
           share.entries < n)
        tenths++;
    return drps_err_set(err, DRPS_E_MEMORY_BUDGET,
                        "sample %llu has %zu features, and a batch may have %zu within the memory "
                        "limit: at least %llu.%llu MiB is needed",
                        sample, n, p->scorer.entries_cap, (unsigned long long)tenths / 10,
                        (unsigned long long)tenths % 10);
}

static int is_weighted(const struct predictor *p)
{
    const struct drps_reader_options *o = &p->options->reader;
    return o->weights_n || o->weight || o->clicks || o->impressions;
}

/* The bytes of all inputs, or 0 if one of them is no file. */
static uint64_t bytes_of_inputs(const struct drps_predict_options *o)
{
    uint64_t sum = 0;
    struct stat st;
    for (size_t i = 0; i < o->inputs_n; i++) {
        if (strcmp(o->inputs[i], "-") == 0 || stat(o->inputs[i], &st) || !S_ISREG(st.st_mode))
            return 0;
        sum += (uint64_t)st.st_size;
    }
    return sum;
}

static int open_data(struct predictor *p, const struct drps_io *io, struct drps_err *err)
{
    struct drps_reader_options o = p->options->reader;
    p->input_bytes = bytes_of_inputs(p->options);
    o.memory_bytes = p->reader_bytes;
    o.log = p->options->log;
    o.label_optional = o.label_ignored = !p->options->metrics;
    o.keep_weightless = 1; /* they have scores */
    p->of_line = o.clicks ? 2 : 1;
    o.stop = p->options->stop;
    return drps_modeldata_open(io, p->options->model, p->info, p->options->inputs,
                               p->options->inputs_n, &o, &p->data, err);
}

/* ---- Scores ---- */

/* Log-odds of a probability, made by a calibration or by the model itself. */
static double answer(const struct predictor *p, float score)
{
    const int has_log_odds = p->calibration || p->info->model.loss == DRPS_LOSS_LOGISTIC;
    return has_log_odds ? 1 / (1 + exp(-(double)score)) : (double)score;
}

static int put(struct predictor *p, const char *text, size_t n, char end, struct drps_err *err)
{
    char *at;
    int rc = drps_textfile_room(&p->out, n + 1, &at, err);
    if (rc < 0) return rc;
    memcpy(at, text, n);
    at[n] = end;
    drps_textfile_used(&p->out, n + 1);
    return 0;
}

/* 1: sample i of the batch is the first of its line. */
static int begins_line(const struct predictor *p, size_t i)
{
    return (p->scored + i) % p->of_line == 0;
}

/* Lines of J fields: a tab behind each but the last. */
static char field_end(const struct predictor *p, size_t c)
{
    return c + 1 < p->info->model.outputs ? '\t' : '\n';
}

static int write_head(struct predictor *p, struct drps_err *err)
{
    int rc = 0;
    for (size_t c = 0; rc == 0 && c < p->info->model.outputs; c++) {
        const char *name = drps_classes_name(p->info->classes, c);
        rc = put(p, name, strlen(name), field_end(p, c), err);
    }
    return rc;
}

static int write_probabilities(struct predictor *p, const float *scores, struct drps_err *err)
{
    const size_t outputs = p->info->model.outputs;
    char text[SCORE_CHARS];
    int rc = 0;
    drps_softmax_probabilities(scores, outputs, p->chances);
    for (size_t c = 0; rc == 0 && c < outputs; c++) {
        const int n = snprintf(text, sizeof(text), "%.9g", p->chances[c]);
        rc = put(p, text, n > 0 ? (size_t)n : 0, field_end(p, c), err);
    }
    return rc;
}

static int write_classes(struct predictor *p, struct drps_err *err)
{
    const size_t outputs = p->info->model.outputs;
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < p->scorer.n; i++) {
        if (!begins_line(p, i)) continue;
        const float *scores = p->scorer.scores + i * outputs;
        const char *name = drps_classes_name(p->info->classes, drps_softmax_best(scores, outputs));
        rc = p->chances ? write_probabilities(p, scores, err)
                        : put(p, name, strlen(name), '\n', err);
    }
    return rc;
}

static int begin_classes(struct predictor *p, struct drps_err *err)
{
    if (!p->options->probabilities) return 0;
    if (!p->info->classes)
        return drps_err_set(err, DRPS_E_CONFIG,
                            "%s has no named classes to give probabilities of: algorithm %s",
                            p->options->model, drps_algo_name(p->info->model.algo));
    const struct drps_model *model = &p->info->model;
    if (model->loss == DRPS_LOSS_EXPRESSION && !drps_expr_has_softmax(&model->expr))
        return drps_err_set(err, DRPS_E_CONFIG,
                            "%s has no probabilities: its loss takes no softmax of the scores",
                            p->options->model);
    if (model->loss != DRPS_LOSS_SOFTMAX && model->loss != DRPS_LOSS_EXPRESSION)
        return drps_err_set(err, DRPS_E_CONFIG,
                            "%s has no probabilities: the scores of algorithm %s are margins; use "
                            "the algorithm mlr",
                            p->options->model, drps_algo_name(model->algo));
    p->chances = drps_array_new(p->info->model.outputs, sizeof(*p->chances));
    if (!p->chances) return drps_err_set(err, -ENOMEM, "no memory for probabilities");
    return write_head(p, err);
}

/* Lines of n numbers: a document's code, or a sample's scores. */
static int write_numbers(struct predictor *p, const float *numbers, size_t n, struct drps_err *err)
{
    char text[SCORE_CHARS];
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < p->scorer.n * n; i++) {
        if (!begins_line(p, i / n)) continue;
        const int chars = snprintf(text, sizeof(text), "%.9g", (double)numbers[i]);
        rc = put(p, text, chars > 0 ? (size_t)chars : 0, (i + 1) % n ? '\t' : '\n', err);
    }
    return rc;
}

static int begin_value(struct predictor *p, struct drps_err *err)
{
    const struct drps_predict_options *o = p->options;
    const size_t outputs = p->info->model.outputs;
    if (!o->value) return 0;
    if (o->probabilities)
        return drps_err_set(err, DRPS_E_CONFIG, "a value and probabilities exclude each other");
    if (drps_algorithm_is_topic(drps_algorithm(p->info->model.algo)))
        return drps_err_set(err, DRPS_E_CONFIG,
                            "%s has no scores to make a value of: it is of topics", o->model);
    int rc = drps_expr_parse_value(&p->expr, o->value, outputs, err);
    if (rc < 0) return rc;
    p->work = drps_array_new(drps_expr_work(&p->expr, outputs), sizeof(*p->work));
    return p->work ? 0 : drps_err_set(err, -ENOMEM, "no memory for values");
}

static int write_values(struct predictor *p, struct drps_err *err)
{
    const size_t outputs = p->info->model.outputs;
    const double *value;
    char text[SCORE_CHARS];
    size_t n;
    int rc = 0;
    for (size_t i = 0; i < p->scorer.n && rc == 0; i++) {
        if (!begins_line(p, i)) continue;
        rc = drps_expr_value(&p->expr, outputs, p->scorer.scores + i * outputs, p->work, &value, &n,
                             err);
        if (rc < 0)
            return drps_err_context(err, "sample %llu, the value",
                                    (unsigned long long)((p->scored + i) / p->of_line + 1));
        for (size_t c = 0; c < n && rc == 0; c++) {
            const int chars = snprintf(text, sizeof(text), "%.9g", value[c]);
            rc = put(p, text, chars > 0 ? (size_t)chars : 0, c + 1 < n ? '\t' : '\n', err);
        }
    }
    return rc;
}

static int begin_explain(struct predictor *p, struct drps_err *err)
{
    const struct drps_predict_options *o = p->options;
    if (!o->explain) return 0;
    if (o->probabilities || o->value)
        return drps_err_set(err, DRPS_E_CONFIG,
                            "explanations are in place of probabilities and values: ask for one");
    p->explain.data = &p->data;
    p->explain.out = &p->out;
    p->explain.most = o->explain;
    p->explain.json = o->explain_json;
    int rc = drps_explain_open(&p->explain, p->md, p->scorer.entries_cap, err);
    return rc == 0 ? drps_scorer_keep_places(&p->scorer, err) : rc;
}

static int write_explained(struct predictor *p, struct drps_err *err)
{
    int rc = 0;
    for (size_t i = 0; i < p->scorer.n && rc == 0; i++)
        if (begins_line(p, i))
            rc = drps_explain_sample(&p->explain, &p->scorer, i, (p->scored + i) / p->of_line + 1,
                                     err);
    return rc;
}

static int write_scores(struct predictor *p, struct drps_err *err)
{
    if (!p->options->output) return 0;
    if (p->options->explain) return write_explained(p, err);
    if (p->work) return write_values(p, err);
    if (p->info->classes) return write_classes(p, err);
    const struct drps_model *model = &p->info->model;
    if (p->scorer.topic) return write_numbers(p, p->scorer.codes, model->factors, err);
    if (model->outputs > 1) return write_numbers(p, p->scorer.scores, model->outputs, err);

    for (size_t i = 0; i < p->scorer.n; i++) {
        char *at;
        if (!begins_line(p, i)) continue;
        int rc = drps_textfile_room(&p->out, SCORE_CHARS, &at, err);
        if (rc < 0) return rc;
        const int n = snprintf(at, SCORE_CHARS, "%.9g\n", answer(p, p->scorer.scores[i]));
        drps_textfile_used(&p->out, n > 0 ? (size_t)n : 0);
    }
    return 0;
}

/* Labels as training saw them: -1 and +1 for the two of the training data; classes are as read. */
static int measure(struct predictor *p, struct drps_err *err)
{
    struct drps_scorer *s = &p->scorer;
    const int signs = p->info->classification && !p->info->classes;
    for (size_t i = 0; signs && i < s->n; i++) {
        if (s->labels[i] == p->info->label_positive)
            s->labels[i] = 1;
        else if (s->labels[i] == p->info->label_negative)
            s->labels[i] = -1;
        else
            return drps_err_set(
                err, DRPS_E_FORMAT,
                "sample %llu has label %g; metrics need %g or %g, as in the training data",
                (unsigned long long)((p->scored + i) / p->of_line + 1), (double)s->labels[i],
                (double)p->info->label_negative, (double)p->info->label_positive);
    }
    drps_metrics_add(p->metrics, s->scores, s->labels, is_weighted(p) ? s->weights : NULL, s->n);
    return 0;
}

static void tell_progress(const struct predictor *p)
{
    const struct drps_predict_progress now = {.samples = p->result->samples,
                                              .read_bytes = drps_reader_file_bytes(p->data.reader),
                                              .input_bytes = p->input_bytes};
    if (p->options->on_progress) p->options->on_progress(p->options->ctx, &now);
}

static int score_batch(struct predictor *p, struct drps_err *err)
{
    struct drps_scorer *s = &p->scorer;
    int rc = drps_scorer_run(s, err);
    if (rc == 0 && p->calibration) drps_calibrate_scores(p->calibration, s->scores, s->n);
    if (rc == 0 && p->metrics) rc = measure(p, err);
    if (rc == 0) rc = write_scores(p, err);
    if (rc < 0) return rc;
    p->scored += s->n;
    p->result->samples = p->scored / p->of_line;
    p->result->unseen = s->unseen;
    p->result->nnz = p->given - s->unseen;
    drps_scorer_clear(s);
    tell_progress(p);
    return 0;
}

/* 1: the sample begins a sequence that might not fit the batch, and sequences are scored whole. */
static int begins_next(const struct predictor *p, const struct drps_modeldata_sample *s)
{
    const uint32_t most = drps_predict_sequence(p->options, p->info);
    return most && s->fields[0] == DRPS_SEQUENCE_BEGINS && p->scorer.n &&
           drps_scorer_room(&p->scorer) < most;
}

static int add_sample(struct predictor *p, size_t i, struct drps_err *err)
{
    struct drps_modeldata_sample s;
    int rc = drps_modeldata_sample(&p->data, i, &s, err);
    if (rc == 0 && begins_next(p, &s)) rc = score_batch(p, err);
    if (rc < 0) return rc;
    p->given += s.n;
    if (drps_scorer_add(&p->scorer, &s)) return 0;
    rc = score_batch(p, err);
    if (rc < 0 || drps_scorer_add(&p->scorer, &s)) return rc;
    return sample_too_large(p, s.n, err);
}

static int predict_all(struct predictor *p, struct drps_err *err)
{
    const atomic_int *stop = p->options->stop;
    int rc;
    while ((rc = drps_reader_next(p->data.reader, &p->data.piece, err)) > 0) {
        for (size_t i = 0; i < p->data.piece.n; i++) {
            if (stop && atomic_load_explicit(stop, memory_order_relaxed)) /* it publishes nothing */
                return drps_err_set(err, DRPS_E_INTERRUPTED,
                                    "interrupted after %llu samples; nothing was written",
                                    (unsigned long long)p->result->samples);
            rc = add_sample(p, i, err);
            if (rc < 0) return rc;
        }
        /* Names of features are lost with their piece, so explanations must be written now. */
        if (p->options->explain) rc = score_batch(p, err);
        if (rc < 0) return rc;
    }
    return rc == 0 ? score_batch(p, err) : rc;
}

static int run(struct predictor *p, const struct drps_io *io, struct drps_err *err)
{
    const struct drps_predict_options *o = p->options;
    int rc = o->output ? drps_textfile_check(o->output, o->model, o->inputs, o->inputs_n, err) : 0;
    if (rc == 0) rc = open_model(p, io, err);
    if (rc == 0) rc = drps_calibrate_check(o, p->info, err);
    /* The output comes before the data, which may come late: others who want it hear at once. */
    if (rc == 0 && o->output) rc = drps_textfile_open(&p->out, io, o->output, o->replace, err);
    if (rc == 0) rc = begin_value(p, err);
    if (rc == 0) rc = begin_classes(p, err);
    if (rc == 0) rc = begin_explain(p, err);
    if (rc == 0) rc = open_data(p, io, err);
    if (rc == 0 && o->metrics && drps_model_ranks(&p->info->model))
        rc = drps_err_set(err, DRPS_E_CONFIG,
                          "%s is a model of %s, whose metrics are of all items of a user, not of "
                          "pairs with labels: measure recommendations",
                          o->model, drps_algo_name(p->info->model.algo));
    if (rc == 0 && o->metrics) {
        p->metrics = p->calibration ? drps_metrics_new(DRPS_LOSS_LOGISTIC, 1)
                                    : drps_metrics_of(&p->info->model);
        if (!p->metrics) rc = drps_err_set(err, -ENOMEM, "no memory for the metrics");
    }
    if (rc == 0) rc = predict_all(p, err);
    if (rc == 0) rc = drps_predict_check_samples(o, p->result, err);
    if (rc == 0 && o->output) rc = drps_textfile_commit(&p->out, err);
    if (rc == 0) rc = drps_calibrate_finish(io, o, p->info, p->metrics, p->result, err);
    if (p->data.reader) p->result->skipped_lines = drps_reader_skipped(p->data.reader);
    if (p->data.reader) p->result->blank_lines = drps_reader_blank(p->data.reader);
    if (p->metrics) drps_metrics_result(p->metrics, &p->result->quality);
    if (p->metrics && p->info->sequences.most) p->result->perplexity = exp(p->result->quality.loss);
    if (rc == 0) drps_predict_warn(o, &p->data, p->result);
    return rc;
}

int drps_predict_run(const struct drps_io *io, const struct drps_predict_options *options,
                     struct drps_predict_result *result, struct drps_err *err)
{
    struct predictor p = {.options = options, .result = result};
    const uint64_t start = drps_clock_ns();

    memset(result, 0, sizeof(*result));
    result->perplexity = NAN;
    const int looks = options->calibrate || options->curve_bins;
    const int needs_data = options->calibrate != 1 || options->output || options->curve_bins;
    if (!options->model || (!options->inputs_n && needs_data) || !(options->output || looks))
        return drps_err_set(err, DRPS_E_CONFIG, "give a model, data and -o FILE");
    if (looks && !options->metrics)
        return drps_err_set(err, DRPS_E_CONFIG, "calibration needs labels: ask for metrics");
    if (is_weighted(&p) && !options->metrics)
        return drps_err_set(err, DRPS_E_CONFIG,
                            "weights of samples change metrics alone, and none are asked for");
    int rc = options->inputs_n ? run(&p, io, err) : drps_calibrate_remove(io, options, result, err);
    drps_textfile_close(&p.out);
    drps_metrics_free(p.metrics);
    drps_explain_close(&p.explain);
    drps_scorer_destroy(&p.scorer);
    drps_modeldata_close(&p.data);
    drps_modeldir_close(p.md);
    free(p.chances);
    free(p.work);
    result->seconds = drps_seconds_since(start);
    return rc;
}
