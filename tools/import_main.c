/* drps-import makes a model of another program's. This file parses arguments and prints; the work
 * is done by engine/import/. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_size.h"
#include "base/folder/drps_manifest.h"
#include "engine/import/drps_import.h"
#include "tools/drps_cli.h"

enum { KEY_FORMAT = DRPS_CLI_KEY, KEY_ALGO, KEY_LABELS, KEY_FORCE, KEY_STORE, KEY_MEMORY };

static const struct argp_option option_table[] = {
    {"output", 'o', "MODEL", 0, "Folder to make (required)", 1},
    {"format", KEY_FORMAT, "NAME", 0, "liblinear, vw or libffm (default: by the first bytes)", 1},
    {"algo", KEY_ALGO, "NAME", 0,
     "For vw: lor, lir or svm (default: lor if its link is logistic, else lir)", 1},
    {"labels", KEY_LABELS, "A,B", 0,
     "For vw and libffm: the data's two labels, the smaller first, for metrics (default -1,1)", 1},
    {"model-store", KEY_STORE, "ENGINE", 0, "rocksdb or leveldb (default: what this build has)", 1},
    {"memory", KEY_MEMORY, "SIZE", 0,
     "Memory of the whole process (default: half of what it may use)", 1},
    {"force", KEY_FORCE, NULL, 0, "Replace MODEL if it exists", 1},
    {0},
};

struct options {
    struct drps_import_options import;
    float labels[2];
};

static void read_labels(struct drps_cli *cli, struct options *o, const char *arg)
{
    char *end;
    o->labels[0] = strtof(arg, &end);
    const int comma = end > arg && *end == ',';
    const char *second = comma ? end + 1 : arg;
    if (comma) o->labels[1] = strtof(second, &end);
    if (!comma || end == second || *end || !(o->labels[0] < o->labels[1]))
        drps_cli_usage(cli, "'%s' is not two numbers, the smaller first: 0,1", arg);
    o->import.labels = o->labels;
}

static int parse(struct drps_cli *cli, int key, char *arg)
{
    static const char *const algos[] = {"lor", "lir", "svm", NULL};
    struct options *o = cli->input;
    switch (key) {
    case ARGP_KEY_ARG:
        if (o->import.input) drps_cli_usage(cli, "one file at a time: '%s' is too much", arg);
        o->import.input = arg;
        return 0;
    case ARGP_KEY_END:
        if (!o->import.input) drps_cli_usage(cli, "no file: name a model of another program");
        if (!o->import.model_path) drps_cli_usage(cli, "-o MODEL is missing: the folder to make");
        return 0;
    case 'o':
        o->import.model_path = arg;
        return 0;
    case KEY_FORMAT:
        o->import.format = drps_import_formats()[drps_cli_choice(cli, arg, drps_import_formats())];
        return 0;
    case KEY_ALGO:
        o->import.algo = algos[drps_cli_choice(cli, arg, algos)];
        return 0;
    case KEY_LABELS:
        read_labels(cli, o, arg);
        return 0;
    case KEY_STORE:
        o->import.model_store = arg;
        return 0;
    case KEY_MEMORY:
        o->import.memory_bytes = drps_cli_size(cli, arg, 1, INT64_MAX);
        return 0;
    case KEY_FORCE:
        o->import.replace = 1;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static int print_json(const struct drps_import_result *r, struct drps_err *err)
{
    json_t *j = json_object();
    drps_manifest_put(&j, "format", json_string(r->format));
    drps_manifest_put(&j, "algo", json_string(r->algo));
    drps_manifest_put(&j, "rows", drps_json_count(r->rows));
    drps_manifest_put(&j, "model_bytes", drps_json_count(r->model_bytes));
    drps_manifest_put(&j, "content", drps_manifest_hex(r->content));
    drps_manifest_put(&j, "seconds", drps_json_real(r->seconds));
    return drps_cli_json_print(j, err);
}

static void print_text(const struct options *o, const struct drps_import_result *r)
{
    char bytes[32];
    printf("model %s, made of a model of %s: %s, %s, %s, in %.2f s\n", o->import.model_path,
           r->format, r->algo, drps_cli_counted(r->rows, "row"),
           drps_size_format(r->model_bytes, bytes, sizeof(bytes)), r->seconds);
}

int main(int argc, char **argv)
{
    static const struct drps_cli_tool tool = {
        .name = "drps-import",
        .args_doc = "FILE -o MODEL",
        .doc =
            "Make a model of FILE, a model of LIBLINEAR, Vowpal Wabbit (--invert_hash) or libffm, "
            "which drps-predict, drps-stat and drps-train --from read like any other.",
        .options = option_table,
        .parse = parse,
    };
    struct options o = {.labels = {0}};
    struct drps_import_result result;
    struct drps_cli cli;
    struct drps_err err = DRPS_ERR_INIT;
    drps_cli_start(&cli, &tool, &o, argc, argv);
    o.import.log = &cli.log;
    const struct drps_io *os = drps_io_os();
    const struct drps_io io = {.ops = os->ops, .ctx = os->ctx, .stop = drps_cli_stop()};
    int rc = drps_import_run(&io, &o.import, &result, &err);
    if (rc == 0 && cli.json)
        rc = print_json(&result, &err);
    else if (rc == 0 && cli.log.level >= DRPS_LOG_INFO)
        print_text(&o, &result);
    return drps_cli_finish(&cli, rc, &err);
}
