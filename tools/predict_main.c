/* drps-predict scores samples with a model. This file parses arguments and prints; the work is done
 * by engine/predict/predict.c. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/report/drps_files_json.h"
#include "api/settings/drps_predict_settings.h"
#include "base/drps_clock.h"
#include "base/drps_size.h"
#include "engine/predict/drps_predict.h"
#include "tools/drps_cli.h"
#include "tools/drps_progress.h"

static void check(struct drps_cli *cli, const struct drps_predict_settings *o,
                  struct drps_values *v)
{
    if (!o->predict.model) drps_cli_usage(cli, "no model: name the folder that drps-train made");
    drps_predict_settings_check(o, v);
    if (cli->json && o->predict.output && strcmp(o->predict.output, "-") == 0)
        drps_value_bad(v, "{json} and -o - both want standard output: give the scores a file");
}

static int parse(struct drps_cli *cli, int key, char *arg)
{
    struct drps_predict_settings *o = cli->input;
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_values v = drps_cli_values(&err);
    int known = 1;
    if (key == ARGP_KEY_ARG && !o->predict.model)
        o->predict.model = arg;
    else if (key == ARGP_KEY_ARG)
        drps_value_add(&v, &o->inputs, arg);
    else if (key == 'o')
        o->predict.output = arg;
    else if (key == ARGP_KEY_END)
        check(cli, o, &v);
    else
        known = drps_predict_setting(o, &v, key, arg);
    return drps_cli_taken(cli, known, &err);
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
    char unseen[DRPS_CLI_COUNT_BYTES], all[DRPS_CLI_COUNT_BYTES];
    if (!o->inputs_n) { /* a calibration was taken out, and that is all */
        print_calibrated(to, o, r);
        return;
    }
    (void)fprintf(to, "%s in %.2f s; %s of their %s features are not in the model",
                  drps_cli_counted(r->samples, "sample"), r->seconds,
                  drps_cli_grouped(r->unseen, unseen), drps_cli_grouped(r->nnz + r->unseen, all));
    if (r->skipped_lines)
        (void)fprintf(to, "; %s skipped", drps_cli_counted(r->skipped_lines, "bad line"));
    if (r->blank_lines)
        (void)fprintf(to, "; %s without a sample %s no score",
                      drps_cli_counted(r->blank_lines, "line"),
                      r->blank_lines == 1 ? "has" : "have");
    (void)fprintf(to, "\n");
    if (!o->metrics) return;
    if (isnan(r->quality.loss))
        (void)fprintf(to, "no loss");
    else
        (void)fprintf(to, "loss %.6f", r->quality.loss);
    if (!isnan(r->perplexity)) (void)fprintf(to, ", perplexity %.3f", r->perplexity);
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
            "no label and ratings need no rating, lines of other formats may lack it, and what "
            "stands in its place is not looked at.",
        .options = drps_predict_table,
        .parse = parse,
    };
    struct drps_predict_settings o = {.has_shape = 0};
    struct drps_predict_result result;
    struct drps_cli cli;
    struct drps_err err = DRPS_ERR_INIT;

    drps_cli_start(&cli, &tool, &o, argc, argv);
    drps_predict_settings_complete(&o);
    o.predict.stop = drps_cli_stop();
    o.predict.log = &cli.log;
    o.predict.on_progress = show_progress;
    struct view view = {.cli = &cli, .begin_ns = drps_clock_ns()};
    o.predict.ctx = &view;
    int rc = drps_predict_run(drps_io_os(), &o.predict, &result, &err);
    drps_cli_progress_end(&cli);
    if (rc == 0) {
        if (cli.json)
            rc = drps_cli_json_print(drps_predict_json(&o.predict, &result), &err);
        else if (cli.log.level >= DRPS_LOG_INFO)
            print_text(&o.predict, &result);
    }
    free(result.curve.bins);
    free(result.before.bins);
    drps_predict_settings_free(&o);
    return drps_cli_finish(&cli, rc, &err);
}
