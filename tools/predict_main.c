/* drps-predict scores samples with a model. This file parses arguments and prints; the work is done
 * by engine/predict/predict.c. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"
#include "base/drps_clock.h"
#include "base/drps_size.h"
#include "base/folder/drps_manifest.h"
#include "engine/predict/drps_predict.h"
#include "tools/drps_cli.h"
#include "tools/drps_progress.h"
#include "tools/drps_reader_options.h"

enum {
    KEY_METRICS = DRPS_CLI_KEY,
    KEY_PROBABILITIES,
    KEY_VALUE,
    KEY_EXPLAIN,
    KEY_AS,
    KEY_CALIBRATE,
    KEY_CURVE,
    KEY_UNCALIBRATED,
    KEY_MEMORY,
    KEY_FORCE,
};

static const struct argp_option option_table[] = {
    {NULL, 0, NULL, 0, "Result:", 1},
    {"output", 'o', "FILE", 0, "File to write, one score a line; - for standard output (required)",
     1},
    {"metrics", KEY_METRICS, NULL, 0,
     "Compare with the labels in DATA, too: loss, and accuracy (of two classes AUC, too) or RMSE",
     1},
    {"probabilities", KEY_PROBABILITIES, NULL, 0,
     "For mlr, and expr with softmax(W*x): the probability of each class in place of a class's "
     "name; the first line has the "
     "names",
     1},
    {"value", KEY_VALUE, "EXPRESSION", 0,
     "What is made of a sample's scores W*x, or one score w*x, in place of scores and names: "
     "'sum(sigmoid(W*x))'",
     1},
    {"explain", KEY_EXPLAIN, "N", 0,
     "In place of scores: the N features that add most to each score, with what they add", 1},
    {"as", KEY_AS, "HOW", 0,
     "With --explain: tabs (default), lines of fields, or json, an object a sample", 1},
    {"calibrate", KEY_CALIBRATE, "HOW", 0,
     "For two classes: fit a calibration on DATA, which MODEL was not trained with, and keep it in "
     "MODEL: platt, isotonic, or none, which removes it and needs no DATA",
     1},
    {"calibration", KEY_CURVE, "BINS", OPTION_ARG_OPTIONAL,
     "For two classes: compare probabilities with the labels in DATA, in so many bins (default 10)",
     1},
    {"uncalibrated", KEY_UNCALIBRATED, NULL, 0, "Scores without the model's calibration", 1},
    {"memory", KEY_MEMORY, "SIZE", 0,
     "Memory of the whole process (default: half of what it may use)", 1},
    {"force", KEY_FORCE, NULL, 0, "Replace FILE if it exists", 1},
    {NULL, 0, NULL, 0, "Input:", 2},
    READER_OPTIONS(2, "default: that of the training data", "that of the training data",
                   "as in training"),
    WEIGHT_OPTIONS(2),
    {0},
};

static const char *const shapes[] = {"tabs", "json", NULL}; /* of explanations */

struct options {
    const char *as; /* one of them; NULL: not given */
    struct drps_predict_options predict;
    const char **inputs; /* own */
    size_t inputs_cap;
    const char **weights; /* own: files beside them */
    size_t weights_cap;
};

static void add_argument(struct drps_cli *cli, struct options *o, const char *arg)
{
    if (!o->predict.model) {
        o->predict.model = arg;
        return;
    }
    if (drps_array_reserve(&o->inputs, &o->inputs_cap, o->predict.inputs_n + 1, sizeof(*o->inputs)))
        drps_cli_usage(cli, "no memory for %zu file names", o->predict.inputs_n + 1);
    o->inputs[o->predict.inputs_n++] = arg;
}

static void add_weights(struct drps_cli *cli, struct options *o, const char *arg)
{
    size_t *n = &o->predict.reader.weights_n;
    if (drps_array_reserve(&o->weights, &o->weights_cap, *n + 1, sizeof(*o->weights)))
        drps_cli_usage(cli, "no memory for %zu file names", *n + 1);
    o->weights[(*n)++] = arg;
}

static void check(struct drps_cli *cli, const struct options *o)
{
    if (!o->predict.model) drps_cli_usage(cli, "no model: name the folder that drps-train made");
    if (!o->predict.inputs_n &&
        (o->predict.calibrate != 1 || o->predict.output || o->predict.curve_bins))
        drps_cli_usage(cli, "no data: name at least one file, or - for stdin");
    if (!o->predict.output && !o->predict.calibrate && !o->predict.curve_bins)
        drps_cli_usage(cli, "-o FILE is missing: the file to write, or - for standard output");
    const struct drps_reader_options *r = &o->predict.reader;
    if (!o->predict.metrics && !o->predict.calibrate && !o->predict.curve_bins &&
        (r->weights_n || r->weight || r->clicks || r->impressions))
        drps_cli_usage(cli, "--weights, --weight, --clicks and --impressions need --metrics: they "
                            "change no score");
    if (o->as && !o->predict.explain)
        drps_cli_usage(cli, "--as goes with --explain: give that, too");
    if (cli->json && o->predict.output && strcmp(o->predict.output, "-") == 0)
        drps_cli_usage(cli, "--json and -o - both want standard output: give the scores a file");
}

static int parse(struct drps_cli *cli, int key, char *arg)
{
    struct options *o = cli->input;
    switch (key) {
    case ARGP_KEY_ARG:
        add_argument(cli, o, arg);
        return 0;
    case ARGP_KEY_END:
        check(cli, o);
        return 0;
    case 'o':
        o->predict.output = arg;
        return 0;
    case KEY_METRICS:
        o->predict.metrics = 1;
        return 0;
    case READER_KEY_WEIGHTS:
        add_weights(cli, o, arg);
        return 0;
    case KEY_PROBABILITIES:
        o->predict.probabilities = 1;
        return 0;
    case KEY_VALUE:
        o->predict.value = arg;
        return 0;
    case KEY_EXPLAIN:
        o->predict.explain = (size_t)drps_cli_count(cli, arg, 1, UINT32_MAX);
        return 0;
    case KEY_AS:
        o->as = arg;
        o->predict.explain_json = drps_cli_choice(cli, arg, shapes) == 1;
        return 0;
    case KEY_CALIBRATE:
        o->predict.calibrate = 1 + (unsigned)drps_cli_choice(cli, arg, drps_calibration_names());
        return 0;
    case KEY_CURVE:
        o->predict.curve_bins =
            arg ? (size_t)drps_cli_count(cli, arg, 2, DRPS_CALIBRATION_BINS_MOST)
                : DRPS_CALIBRATION_BINS;
        return 0;
    case KEY_UNCALIBRATED:
        o->predict.uncalibrated = 1;
        return 0;
    case KEY_FORCE:
        o->predict.replace = 1;
        return 0;
    case KEY_MEMORY:
        o->predict.memory_bytes = drps_cli_size(cli, arg, 1, INT64_MAX);
        return 0;
    default:
        return reader_option(cli, &o->predict.reader, key, arg);
    }
}

struct view {
    struct drps_cli *cli;
    uint64_t begin_ns;
};

static void show_progress(void *ctx, const struct drps_predict_progress *p)
{
    const struct view *v = ctx;
    struct drps_progress work = {
        .what = "scoring", .unit = "samples", .seconds = drps_seconds_since(v->begin_ns)};
    work.done = p->samples;
    if (p->input_bytes) { /* nobody knows yet how many samples there are */
        work.unit = DRPS_PROGRESS_BYTES;
        work.done = p->read_bytes;
        work.total = p->input_bytes;
    }
    drps_progress_show(v->cli, &work);
}

static void print_curve(FILE *to, const struct drps_predict_result *r)
{
    char samples[DRPS_CLI_COUNT_BYTES];
    if (r->before.n)
        (void)fprintf(to, "before calibration: error %.5f, log loss %.6f\n", r->before.error,
                      r->before.loss);
    if (!r->curve.n) return;
    (void)fprintf(to, "calibration: error %.5f, log loss %.6f\n", r->curve.error, r->curve.loss);
    (void)fprintf(to, "  %9s %9s %10s %10s %12s\n", "from", "to", "predicted", "observed",
                  "samples");
    for (size_t i = 0; i < r->curve.n; i++) {
        const struct drps_calibration_bin *b = &r->curve.bins[i];
        (void)fprintf(to, "  %9.5f %9.5f %10.5f %10.5f %12s\n", b->least, b->most, b->predicted,
                      b->observed, drps_cli_grouped((uint64_t)(b->weight + 0.5), samples));
    }
}

static void print_calibrated(FILE *to, const struct drps_predict_options *o,
                             const struct drps_predict_result *r)
{
    const char *const *names = drps_calibration_names();
    char samples[DRPS_CLI_COUNT_BYTES];
    if (o->calibrate == 1)
        (void)fprintf(to, "%s now has no calibration", o->model);
    else
        (void)fprintf(to, "%s now has calibration %s", o->model, names[o->calibrate - 1]);
    if (r->replaced)
        (void)fprintf(to, ", in place of %s, of %s samples", names[r->replaced],
                      drps_cli_grouped((uint64_t)(r->replaced_samples + 0.5), samples));
    (void)fprintf(to, "\n");
}

static void print_text(const struct drps_predict_options *o, const struct drps_predict_result *r)
{
    FILE *to = o->output && strcmp(o->output, "-") == 0
                   ? stderr
                   : stdout; /* scores and the summary never mix */
    char samples[DRPS_CLI_COUNT_BYTES], unseen[DRPS_CLI_COUNT_BYTES], all[DRPS_CLI_COUNT_BYTES];
    if (!o->inputs_n) { /* a calibration was taken out, and that is all */
        print_calibrated(to, o, r);
        return;
    }
    (void)fprintf(to, "%s %s in %.2f s; %s of their %s features are not in the model",
                  drps_cli_grouped(r->samples, samples), r->samples == 1 ? "sample" : "samples",
                  r->seconds, drps_cli_grouped(r->unseen, unseen),
                  drps_cli_grouped(r->nnz + r->unseen, all));
    if (r->skipped_lines)
        (void)fprintf(to, "; %llu bad lines skipped", (unsigned long long)r->skipped_lines);
    (void)fprintf(to, "\n");
    if (!o->metrics) return;
    if (isnan(r->quality.loss))
        (void)fprintf(to, "no loss");
    else
        (void)fprintf(to, "loss %.6f", r->quality.loss);
    if (!isnan(r->quality.auc)) (void)fprintf(to, ", AUC %.5f", r->quality.auc);
    if (!isnan(r->quality.accuracy)) (void)fprintf(to, ", accuracy %.5f", r->quality.accuracy);
    if (!isnan(r->quality.rmse)) (void)fprintf(to, ", RMSE %.6f", r->quality.rmse);
    if (r->quality.unknown)
        (void)fprintf(
            to, "; %llu labels are no class of the model: they have no loss, and count as wrong",
            (unsigned long long)r->quality.unknown);
    (void)fprintf(to, "\n");
    if (o->calibrate) print_calibrated(to, o, r);
    print_curve(to, r);
}

static json_t *curve_to_json(const struct drps_calibration_curve *c)
{
    json_t *j = json_object(), *bins = json_array();
    for (size_t i = 0; i < c->n; i++) {
        const struct drps_calibration_bin *b = &c->bins[i];
        drps_manifest_append(&bins, json_pack("{s:f, s:f, s:f, s:f, s:f}", "from", b->least, "to",
                                              b->most, "predicted", b->predicted, "observed",
                                              b->observed, "samples", b->weight));
    }
    drps_manifest_put(&j, "error", drps_cli_json_real(c->error));
    drps_manifest_put(&j, "log_loss", drps_cli_json_real(c->loss));
    drps_manifest_put(&j, "bins", bins);
    return j;
}

static int print_json(const struct drps_predict_options *o, const struct drps_predict_result *r,
                      struct drps_err *err)
{
    json_t *j = json_object();
    drps_manifest_put(&j, "test_samples", drps_cli_json_count(r->samples));
    drps_manifest_put(&j, "test_nnz", drps_cli_json_count(r->nnz));
    drps_manifest_put(&j, "test_unseen", drps_cli_json_count(r->unseen));
    drps_manifest_put(&j, "skipped_lines", drps_cli_json_count(r->skipped_lines));
    drps_manifest_put(&j, "seconds", drps_cli_json_real(r->seconds));
    drps_manifest_put(&j, "peak_rss_bytes", drps_cli_json_count(drps_memory_peak()));
    if (o->metrics) {
        drps_manifest_put(&j, "test_loss", drps_cli_json_real(r->quality.loss));
        drps_manifest_put(&j, "test_auc", drps_cli_json_real(r->quality.auc));
        drps_manifest_put(&j, "test_accuracy", drps_cli_json_real(r->quality.accuracy));
        if (r->quality.unknown)
            drps_manifest_put(&j, "test_unknown_labels", drps_cli_json_count(r->quality.unknown));
        drps_manifest_put(&j, "test_rmse", drps_cli_json_real(r->quality.rmse));
    }
    if (r->before.n) drps_manifest_put(&j, "before_calibration", curve_to_json(&r->before));
    if (r->curve.n) drps_manifest_put(&j, "calibration", curve_to_json(&r->curve));
    return drps_cli_json_print(j, err);
}

int main(int argc, char **argv)
{
    static const struct drps_cli_tool tool = {
        .name = "drps-predict",
        .args_doc = "MODEL DATA... -o FILE",
        .doc =
            "Score samples with a model that drps-train made: one line a sample, in the order of "
            "DATA.\v"
            "A score is a probability for lor and fm with two classes, the margin for svm, the "
            "value for regression, the name of a class where labels are names, a document's code "
            "for "
            "topics. Features that "
            "training never saw "
            "are left out. DATA are text "
            "files, plain or compressed (.gz .zst .xz), or - for stdin. Without --metrics csv "
            "needs "
            "no label and ratings need no rating; other formats with a label need one, of any "
            "value.",
        .options = option_table,
        .parse = parse,
    };
    struct options o = {.inputs = NULL};
    struct drps_predict_result result;
    struct drps_cli cli;
    struct drps_err err = DRPS_ERR_INIT;

    drps_cli_start(&cli, &tool, &o, argc, argv);
    o.predict.inputs = o.inputs;
    o.predict.reader.weights = o.weights;
    if (o.predict.calibrate || o.predict.curve_bins) o.predict.metrics = 1;
    o.predict.stop = drps_cli_stop();
    o.predict.log = &cli.log;
    o.predict.on_progress = show_progress;
    struct view view = {.cli = &cli, .begin_ns = drps_clock_ns()};
    o.predict.ctx = &view;
    int rc = drps_predict_run(drps_io_os(), &o.predict, &result, &err);
    drps_cli_progress_end(&cli);
    if (rc == 0) {
        if (cli.json)
            rc = print_json(&o.predict, &result, &err);
        else if (cli.log.level >= DRPS_LOG_INFO)
            print_text(&o.predict, &result);
    }
    free(result.curve.bins);
    free(result.before.bins);
    free(o.inputs);
    free(o.weights);
    return drps_cli_finish(&cli, rc, &err);
}
