/* The options of drps-gen: their table, and which go together. */
#include "tools/gen/options.h"

#include <stdint.h>
#include <string.h>

#define ID_LIMIT (UINT64_C(1) << 48)

static const struct gen_kind *const kinds[] = {&gen_ctr, &gen_classification, &gen_graph,
                                               &gen_matrix};
enum { N_KINDS = sizeof(kinds) / sizeof(*kinds) };

enum key {
    KEY_SAMPLES = DRPS_CLI_KEY,
    KEY_SEED,
    KEY_TEST_SAMPLES,
    KEY_TEST_OUTPUT,
    KEY_ROWS,
    KEY_ZIPF,
    KEY_FIELDS,
    KEY_INTERACTIONS,
    KEY_FORMAT,
    KEY_DAY_SAMPLES,
    KEY_DRIFT,
    KEY_NNZ,
    KEY_DENSITY,
    KEY_USERS,
    KEY_ITEMS,
    KEY_RATINGS,
    KEY_FACTORS,
    KEY_RANK, /* of drps-train; here a mistake that is told */
    KEY_NOISE,
    KEY_FORCE,
};

static const struct argp_option option_table[] = {
    {"samples", KEY_SAMPLES, "N", 0, "Samples in all (default 1M)", 1},
    {"seed", KEY_SEED, "N", 0, "Another seed gives another set (default 1)", 1},
    {"output", 'o', "FILE", 0, "Write here instead of standard output", 1},
    {"force", KEY_FORCE, NULL, 0, "Replace files that exist", 1},
    {"test-samples", KEY_TEST_SAMPLES, "N", 0, "The last N samples go to --test-output (default 0)",
     1},
    {"test-output", KEY_TEST_OUTPUT, "FILE", 0, "File for the last samples", 1},
    {NULL, 0, NULL, 0, "ctr, classification and graph:", 2},
    {"rows", KEY_ROWS, "N", 0, "Feature ids run from 1 to N (default 1M)", 2},
    {"zipf", KEY_ZIPF, "S", 0,
     "Frequencies fall as 1 / rank^S (default 1.05; 0: uniform; not of graph)", 2},
    {NULL, 0, NULL, 0, "ctr:", 3},
    {"fields", KEY_FIELDS, "N", 0, "Fields, one feature of each in every sample (default 39)", 3},
    {"interactions", KEY_INTERACTIONS, "K", 0,
     "Labels also follow K hidden factors of each feature (default 0: they do not)", 3},
    {"format", KEY_FORMAT, "F", 0, "libsvm (default) or libffm", 3},
    {"day-samples", KEY_DAY_SAMPLES, "N", 0, "N samples make a day (default: all are of one)", 3},
    {"drift", KEY_DRIFT, "P", 0,
     "From day to day this share of the features gives way to new ones, and weights move (0.1 or "
     "10%; default 0)",
     3},
    {NULL, 0, NULL, 0, "classification:", 4},
    {"nnz", KEY_NNZ, "N", 0, "Features of a sample: 1 to 2 N - 1 (default 100)", 4},
    {NULL, 0, NULL, 0, "graph:", 5},
    {"density", KEY_DENSITY, "P", 0,
     "Each sample has each of the --rows features with this probability (0.0001 or 0.01%; default "
     "0.00001)",
     5},
    {NULL, 0, NULL, 0, "matrix:", 6},
    {"users", KEY_USERS, "N", 0, "Users (default 100K)", 6},
    {"items", KEY_ITEMS, "N", 0, "Items (default 10K)", 6},
    {"ratings", KEY_RATINGS, "N", 0, "Another name of --samples", 6},
    {"factors", KEY_FACTORS, "K", 0, "Hidden factors of each user and item (default 8)", 6},
    {"rank", KEY_RANK, "N", OPTION_HIDDEN, NULL, 6},
    {"noise", KEY_NOISE, "SD", 0, "Standard deviation of the noise (default 0.3)", 6},
    {0},
};

/* Options that only some kinds know. */
static const struct {
    int key;
    const char *name;
    const struct gen_kind *kinds[3];
} shapes[] = {
    {KEY_ROWS, "rows", {&gen_ctr, &gen_classification, &gen_graph}},
    {KEY_ZIPF, "zipf", {&gen_ctr, &gen_classification}},
    {KEY_FIELDS, "fields", {&gen_ctr}},
    {KEY_INTERACTIONS, "interactions", {&gen_ctr}},
    {KEY_FORMAT, "format", {&gen_ctr}},
    {KEY_DAY_SAMPLES, "day-samples", {&gen_ctr}},
    {KEY_DRIFT, "drift", {&gen_ctr}},
    {KEY_NNZ, "nnz", {&gen_classification}},
    {KEY_DENSITY, "density", {&gen_graph}},
    {KEY_USERS, "users", {&gen_matrix}},
    {KEY_ITEMS, "items", {&gen_matrix}},
    {KEY_FACTORS, "factors", {&gen_matrix}},
    {KEY_NOISE, "noise", {&gen_matrix}},
};
enum { N_SHAPES = sizeof(shapes) / sizeof(*shapes) };

static void take_kind(struct drps_cli *cli, struct gen_tool_options *o, const char *arg)
{
    if (o->kind) drps_cli_usage(cli, "one data set at a time: '%s' is too much", arg);
    for (size_t i = 0; i < N_KINDS; i++)
        if (!strcmp(arg, kinds[i]->name)) o->kind = kinds[i];
    if (!o->kind)
        drps_cli_usage(cli, "'%s' is not one of: ctr, classification, graph, matrix", arg);
}

static void check(struct drps_cli *cli, const struct gen_tool_options *o)
{
    if (!o->kind) drps_cli_usage(cli, "say which data set: ctr, classification, graph or matrix");
    for (size_t i = 0; i < N_SHAPES; i++)
        if (o->given >> i & 1 && o->kind != shapes[i].kinds[0] && o->kind != shapes[i].kinds[1] &&
            o->kind != shapes[i].kinds[2])
            drps_cli_usage(cli, "--%s does not apply to %s", shapes[i].name, o->kind->name);
    if (o->gen.drift > 0 && !o->gen.day_samples)
        drps_cli_usage(cli, "--drift needs --day-samples N: how many samples make a day");
    if (o->test_samples > o->gen.samples)
        drps_cli_usage(cli, "--test-samples %ju is more than the %ju samples in all",
                       (uintmax_t)o->test_samples, (uintmax_t)o->gen.samples);
    if (o->test_samples && !o->test_output)
        drps_cli_usage(cli, "--test-samples needs --test-output FILE");
    if (!o->test_samples && o->test_output)
        drps_cli_usage(cli, "--test-output needs --test-samples N");
    if (o->output && o->test_output && !strcmp(o->output, o->test_output))
        drps_cli_usage(cli, "--output and --test-output are the same file");
    if (cli->json && !o->output)
        drps_cli_usage(cli, "--json writes to standard output: give the data set a file with -o");
}

static int parse(struct drps_cli *cli, int key, char *arg)
{
    static const char *const formats[] = {"libsvm", "libffm", NULL};
    struct gen_tool_options *o = cli->input;
    struct gen_options *g = &o->gen;

    for (size_t i = 0; i < N_SHAPES; i++)
        if (shapes[i].key == key) o->given |= 1u << i;
    switch (key) {
    case KEY_SAMPLES:
    case KEY_RATINGS:
        g->samples = drps_cli_count(cli, arg, 1, UINT64_MAX / 2);
        return 0;
    case KEY_SEED:
        g->seed = drps_cli_count(cli, arg, 0, UINT64_MAX);
        return 0;
    case 'o':
        o->output = strcmp(arg, "-") ? arg : NULL;
        return 0;
    case KEY_FORCE:
        o->force = 1;
        return 0;
    case KEY_TEST_SAMPLES:
        o->test_samples = drps_cli_count(cli, arg, 0, UINT64_MAX / 2);
        return 0;
    case KEY_TEST_OUTPUT:
        o->test_output = arg;
        return 0;
    case KEY_ROWS:
        g->rows = drps_cli_count(cli, arg, 1, ID_LIMIT);
        return 0;
    case KEY_ZIPF:
        g->zipf = drps_cli_real(cli, arg, 0, 10);
        return 0;
    case KEY_FIELDS:
        g->fields = drps_cli_count(cli, arg, 1, GEN_MAX_FIELDS);
        return 0;
    case KEY_INTERACTIONS:
        g->interactions = drps_cli_count(cli, arg, 0, GEN_MAX_FACTORS);
        return 0;
    case KEY_FORMAT:
        g->format = (enum gen_format)drps_cli_choice(cli, arg, formats);
        return 0;
    case KEY_DAY_SAMPLES:
        g->day_samples = drps_cli_count(cli, arg, 1, UINT64_MAX / 2);
        return 0;
    case KEY_DRIFT:
        g->drift = drps_cli_share(cli, arg);
        return 0;
    case KEY_NNZ:
        g->nnz = drps_cli_count(cli, arg, 1, GEN_MAX_NNZ);
        return 0;
    case KEY_DENSITY:
        g->density = drps_cli_share(cli, arg);
        if (!(g->density > 0)) drps_cli_usage(cli, "--density '%s' gives samples no features", arg);
        return 0;
    case KEY_USERS:
        g->users = drps_cli_count(cli, arg, 1, ID_LIMIT);
        return 0;
    case KEY_ITEMS:
        g->items = drps_cli_count(cli, arg, 1, ID_LIMIT);
        return 0;
    case KEY_FACTORS:
        g->factors = drps_cli_count(cli, arg, 1, GEN_MAX_FACTORS);
        return 0;
    case KEY_RANK:
        drps_cli_usage(cli,
                       "a rank is a process of several, in drps-train; say --factors %s for "
                       "the length of the factors",
                       arg);
    case KEY_NOISE:
        g->noise = drps_cli_real(cli, arg, 0, 1000);
        return 0;
    case ARGP_KEY_ARG:
        take_kind(cli, o, arg);
        return 0;
    case ARGP_KEY_END:
        check(cli, o);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

const struct drps_cli_tool gen_tool = {
    .name = "drps-gen",
    .args_doc = "ctr|classification|graph|matrix",
    .doc = "Make a synthetic data set: text on standard output, one sample a line."
           "\vCounts take K, M, G and T for powers of 1000. The same options give the same bytes.",
    .options = option_table,
    .parse = parse,
};
