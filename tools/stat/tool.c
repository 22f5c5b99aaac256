/* drps-stat shows what a plan or a model is, how training went, and where the disk time went. This
 * file finds out what a folder is, and what is asked of it. */
#include "tools/stat/tool.h"

#include <stdio.h>
#include <string.h>

#include "tools/drps_cli.h"
#include "api/report/drps_link.h"
#include "index/forecast/drps_plan_forecast.h"
#include "tools/drps_folder_kind.h"
#include "tools/stat/check.h"
#include "tools/stat/checkpoints.h"
#include "tools/stat/degrees.h"
#include "tools/stat/export.h"
#include "tools/stat/html/drps_html_report.h"
#include "tools/stat/print.h"
#include "tools/stat/topics.h"
#include "tools/drps_json_text.h"
#include "tools/stat/verify.h"
#include "tools/stat/weights.h"

enum {
    KEY_VERIFY = DRPS_CLI_KEY,
    KEY_CHECK,
    KEY_DEGREES,
    KEY_EPOCH,
    KEY_WINDOWS,
    KEY_LINK,
    KEY_TOPICS,
    KEY_WORDS,
    KEY_WEIGHTS,
    KEY_TOP,
    KEY_CLASS,
    KEY_PLAN,
    KEY_SIMILAR,
    KEY_EXPORT,
    KEY_AS,
    KEY_FORCE,
    KEY_MEMORY,
    KEY_HTML,
};
enum { MODEL_MEMORY_BYTES = 64 << 20 };

struct options {
    const char *path;                    /* the first of */
    const char *paths[HTML_REPORT_MOST]; /* [report.n] */
    struct html_report report;           /* file NULL: not asked for */
    int verify;
    int check;          /* the samples of a plan */
    int degrees;        /* of its features and samples */
    size_t topic_words; /* of each topic are shown instead; 0: not asked for */
    const char *words;  /* file of their names */
    struct stat_weights weights;
    int largest;                       /* --weights itself, not --similar */
    int link_given;                    /* a speed */
    struct drps_export_options export; /* output NULL: not asked for */
    struct stat_shown shown;
};

static const struct argp_option option_table[] = {
    {"verify", KEY_VERIFY, NULL, 0,
     "Instead: read every file whole, and check every checksum and what files say of each other",
     1},
    {"check", KEY_CHECK, NULL, 0,
     "Instead, of a plan: look for what goes wrong in learning: features that are the same in all "
     "samples, one that alone decides the label, test samples that are in training, too",
     1},
    {"degrees", KEY_DEGREES, NULL, 0,
     "Instead, of a plan: how many samples have each feature, and how many features each sample "
     "has",
     1},
    {"epoch", KEY_EPOCH, "E", 0, "Only this epoch of a model's training", 1},
    {"windows", KEY_WINDOWS, NULL, 0,
     "Also every window (run of batches whose rows are in memory together) of a model's training "
     "with store relay",
     1},
    {"link", KEY_LINK, "SPEED", 0,
     "Of several ranks: the speed of each machine's link to the network, for the least time of an "
     "epoch (default 1Gbit)",
     1},
    {"topics", KEY_TOPICS, "N", 0,
     "Instead, of a topic model: a line a topic, its number and the N words of the largest weights",
     1},
    {"words", KEY_WORDS, "FILE", 0,
     "With --topics: line i of FILE is the word with number i (default: words are shown as "
     "numbers)",
     1},
    {"weights", KEY_WEIGHTS, NULL, 0,
     "Instead, for a model: the largest weights, with the names of their features", 1},
    {"top", KEY_TOP, "N", 0, "With --weights or --similar: so many (default 20)", 1},
    {"class", KEY_CLASS, "NAME", 0, "With --weights: this class alone (default: each)", 1},
    {"similar", KEY_SIMILAR, "NAME", 0,
     "Instead, for a model with factors: the features, users or items whose factors are most like "
     "those of NAME",
     1},
    {"plan", KEY_PLAN, "PLAN", 0,
     "With --weights: how many training samples of PLAN, from which the model was trained, have "
     "each feature, and the standard error of its weight",
     1},
    {"export", KEY_EXPORT, "FILE", 0,
     "Instead, for a model: write all its parameters with their names to FILE; - for standard "
     "output",
     1},
    {"as", KEY_AS, "KIND", 0,
     "With --export: text, csv, npy or onnx (default: what FILE's name ends in, else text)", 1},
    {"html", KEY_HTML, "FILE", 0,
     "Instead, for up to 6 models, plans or folders of checkpoints: write a page with charts to "
     "FILE, models side by side; - for standard output",
     1},
    {"force", KEY_FORCE, NULL, 0, "With --export, --html: replace FILE if it exists", 1},
    {"memory", KEY_MEMORY, "SIZE", 0,
     "With --weights, --similar or --export: memory of the whole process (default: half of what it "
     "may use, "
     "at most 1G)",
     1},
    {0},
};

static void check_options(struct drps_cli *cli, const struct options *o)
{
    const struct stat_weights *w = &o->weights;
    if (!o->path) drps_cli_usage(cli, "name a plan or a model");
    if (o->words && !o->topic_words)
        drps_cli_usage(cli, "--words names the words of --topics: give that, too");
    const struct drps_export_options *e = &o->export;
    if (w->similar && (w->plan || w->class_name))
        drps_cli_usage(cli, "--plan and --class are of weights, not of --similar");
    if ((w->top || w->class_name || w->plan) && !w->wanted)
        drps_cli_usage(
            cli, "--class and --plan are of --weights, --top also of --similar: give that, too");
    if ((e->as && !e->output) || (e->replace && !e->output && !o->report.file))
        drps_cli_usage(cli, "--as is of --export, --force also of --html: give that, too");
    if (w->memory_bytes && !w->wanted && !e->output)
        drps_cli_usage(cli,
                       "--memory is of --weights, --similar and --export: give one of them, too");
    if (e->output && cli->json && strcmp(e->output, "-") == 0)
        drps_cli_usage(cli, "--json and --export - both want standard output: give the export a "
                            "file");
    if (o->largest && w->similar)
        drps_cli_usage(cli, "--weights and --similar do not go together: give one of them");
    if (cli->json && o->report.file)
        drps_cli_usage(cli, "--json and --html do not go together: give one of them");
    if (o->report.n > 1 && !o->report.file)
        drps_cli_usage(cli, "one plan or model at a time: '%s' is too much", o->paths[1]);
    const int questions = !!o->degrees + !!o->verify + !!o->check + !!o->topic_words + !!w->wanted +
                          !!e->output + !!o->report.file;
    if (questions > 1)
        drps_cli_usage(cli,
                       "--verify, --check, --degrees, --topics, --weights, --export and --html are "
                       "questions of their own: ask one");
    if (questions && (o->shown.epoch || o->shown.windows || o->link_given))
        drps_cli_usage(cli, "--epoch, --windows and --link show how training went, and another "
                            "question is asked: leave one of them out");
}

static int parse(struct drps_cli *cli, int key, char *arg)
{
    struct options *o = cli->input;
    switch (key) {
    case KEY_VERIFY:
        o->verify = 1;
        return 0;
    case KEY_CHECK:
        o->check = 1;
        return 0;
    case KEY_DEGREES:
        o->degrees = 1;
        return 0;
    case KEY_EPOCH:
        o->shown.epoch = drps_cli_count(cli, arg, 1, UINT32_MAX);
        return 0;
    case KEY_WINDOWS:
        o->shown.windows = 1;
        return 0;
    case KEY_LINK:
        o->link_given = 1;
        o->shown.link_bits = drps_cli_speed(cli, arg);
        return 0;
    case KEY_TOPICS:
        o->topic_words = (size_t)drps_cli_count(cli, arg, 1, STAT_TOPIC_WORDS_MOST);
        return 0;
    case KEY_WORDS:
        o->words = arg;
        return 0;
    case KEY_WEIGHTS:
        o->weights.wanted = o->largest = 1;
        return 0;
    case KEY_TOP:
        o->weights.top = (size_t)drps_cli_count(cli, arg, 1, STAT_WEIGHTS_MOST);
        return 0;
    case KEY_CLASS:
        o->weights.class_name = arg;
        return 0;
    case KEY_SIMILAR:
        o->weights.wanted = 1;
        o->weights.similar = arg;
        return 0;
    case KEY_PLAN:
        o->weights.plan = arg;
        return 0;
    case KEY_EXPORT:
        o->export.output = arg;
        return 0;
    case KEY_AS:
        o->export.as = drps_export_kinds()[drps_cli_choice(cli, arg, drps_export_kinds())];
        return 0;
    case KEY_FORCE:
        o->export.replace = o->report.replace = 1;
        return 0;
    case KEY_HTML:
        o->report.file = arg;
        return 0;
    case KEY_MEMORY:
        o->weights.memory_bytes = o->export.memory_bytes = drps_cli_size(cli, arg, 1, INT64_MAX);
        return 0;
    case ARGP_KEY_ARG:
        if (o->report.n == HTML_REPORT_MOST)
            drps_cli_usage(cli, "%d folders at a time: '%s' is too much", HTML_REPORT_MOST, arg);
        o->paths[o->report.n++] = arg;
        o->path = o->paths[0];
        return 0;
    case ARGP_KEY_END:
        check_options(cli, o);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

/* ---- What the folder is ---- */

static int show_plan(const struct drps_cli *cli, struct drps_plan *plan,
                     const struct stat_shown *shown, struct drps_err *err)
{
    const int rc = drps_plan_complete_forecast(plan, &cli->log, err);
    if (rc < 0) return rc;
    if (cli->json) return drps_cli_json_print(json_incref(plan->json), err);
    stat_print_plan(plan, shown);
    return 0;
}

static int stat_plan(struct drps_cli *cli, const struct drps_io *io, const struct options *o,
                     struct drps_err *err)
{
    struct drps_plan *plan;
    int rc = drps_plan_open(io, o->path, &plan, err);
    if (rc == 0 && (o->shown.epoch || o->shown.windows || o->topic_words || o->weights.wanted ||
                    o->export.output))
        rc =
            drps_err_set(err, DRPS_E_CONFIG,
                         "--epoch, --windows, --topics, --weights, --similar and --export are "
                         "for models, and %s is a plan; of a plan there are --check, --degrees and "
                         "--verify",
                         o->path);
    if (rc == 0) {
        if (o->verify)
            rc = stat_verify_plan(cli, plan, err);
        else if (o->check)
            rc = stat_check_plan(cli, plan, err);
        else if (o->degrees)
            rc = stat_print_degrees(cli, plan, err);
        else
            rc = show_plan(cli, plan, &o->shown, err);
    }
    drps_plan_close(plan);
    return rc;
}

static int check_parts(const struct options *o, const json_t *j, struct drps_err *err)
{
    if (o->check || o->degrees)
        return drps_err_set(err, DRPS_E_CONFIG, "%s is of a plan, and %s is a model: name the plan",
                            o->check ? "--check" : "--degrees", o->path);
    const json_t *training = json_object_get(j, "training");
    const size_t n = json_array_size(json_object_get(training, "epochs"));
    if (o->shown.epoch > n)
        return drps_err_set(err, DRPS_E_CONFIG, "--epoch %llu: %s was trained for %zu epochs",
                            (unsigned long long)o->shown.epoch, o->path, n);
    if (o->shown.windows && !json_is_object(json_object_get(training, "windows")))
        return drps_err_set(err, DRPS_E_CONFIG,
                            "--windows: %s was trained with store %s, not relay", o->path,
                            text_of(training, "store"));
    return 0;
}

static int stat_model(struct drps_cli *cli, const struct drps_io *io, const struct options *o,
                      struct drps_err *err)
{
    struct drps_modeldir *md;
    const uint64_t memory_bytes = o->weights.wanted ? 0 : MODEL_MEMORY_BYTES;
    int rc = drps_modeldir_open(io, o->path, memory_bytes, &md, err);
    if (rc == 0) rc = check_parts(o, drps_modeldir_json(md), err);
    if (rc == 0) {
        if (o->verify)
            rc = stat_verify_model(cli, md, o->path, err);
        else if (o->topic_words)
            rc = stat_print_topics(cli, io, o->path, md, o->topic_words, o->words, err);
        else if (o->weights.wanted)
            rc = stat_print_weights(cli, io, o->path, md, &o->weights, err);
        else if (cli->json)
            rc = drps_cli_json_print(json_deep_copy(drps_modeldir_json(md)), err);
        else
            stat_print_model(o->path, md, &o->shown);
    }
    drps_modeldir_close(md);
    return rc;
}

static int stat_checkpoints(struct drps_cli *cli, const struct drps_io *io, const struct options *o,
                            struct drps_err *err)
{
    if (o->verify) return stat_verify_checkpoints(cli, io, o->path, err);
    if (o->shown.epoch || o->shown.windows || o->check || o->degrees || o->topic_words ||
        o->weights.wanted || o->export.output)
        return drps_err_set(
            err, DRPS_E_CONFIG,
            "--epoch, --windows, --topics, --weights, --similar and --export are "
            "for models, --check and --degrees are of plans, and %s holds checkpoints; of these "
            "there is --verify",
            o->path);
    return stat_print_checkpoints(cli, io, o->path, err);
}

static int write_html(struct drps_cli *cli, const struct drps_io *io, const struct options *o,
                      struct drps_err *err)
{
    struct html_report report = o->report;
    report.paths = o->paths;
    report.log = &cli->log;
    const int rc = html_report_write(io, &report, err);
    if (rc == 0 && cli->log.level >= DRPS_LOG_INFO && strcmp(report.file, "-") != 0)
        printf("report %s: open it in a browser\n", report.file);
    return rc;
}

static int run(struct drps_cli *cli, const struct options *o, struct drps_err *err)
{
    const struct drps_io *os = drps_io_os();
    const struct drps_io io = {.ops = os->ops, .ctx = os->ctx, .stop = drps_cli_stop()};
    enum folder_kind kind;
    if (o->report.file) return write_html(cli, &io, o, err);
    int rc = folder_kind_of(&io, o->path, &kind, err);
    if (rc < 0) return rc;
    if (kind == FOLDER_MODEL && o->export.output)
        return stat_export(cli, &io, &o->export, o->path, err);
    if (kind == FOLDER_MODEL) return stat_model(cli, &io, o, err);
    if (kind == FOLDER_CHECKPOINTS) return stat_checkpoints(cli, &io, o, err);
    rc = stat_plan(cli, &io, o, err);
    return rc == DRPS_E_NOT_FOUND ? folder_kind_unknown(o->path, err) : rc;
}

int stat_tool_main(int argc, char **argv)
{
    static const struct drps_cli_tool tool = {
        .name = "drps-stat",
        .args_doc = "PLAN|MODEL|CHECKPOINTS [...]",
        .doc = "Show what a plan or a model is: counts, blocks and windows, the forecast of disk "
               "I/O, the loss of every epoch, and where time, memory and disk I/O of training "
               "went; or from where training can go on that left checkpoints.",
        .options = option_table,
        .parse = parse,
    };
    struct options o = {.shown.link_bits = DRPS_LINK_USUAL_BITS};
    struct drps_cli cli;
    struct drps_err err = DRPS_ERR_INIT;
    drps_cli_start(&cli, &tool, &o, argc, argv);
    o.shown.details = cli.log.level >= DRPS_LOG_DEBUG;
    return drps_cli_finish(&cli, run(&cli, &o, &err), &err);
}
