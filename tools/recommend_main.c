/* drps-recommend finds the best items for users of a model. This file parses arguments and prints;
 * the work is done by engine/recommend/recommend.c. */
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"
#include "base/drps_clock.h"
#include "base/drps_size.h"
#include "base/folder/drps_manifest.h"
#include "engine/drps_engine.h"
#include "engine/recommend/drps_recommend.h"
#include "tools/drps_cli.h"
#include "tools/drps_progress.h"
#include "tools/drps_reader_options.h"

enum {
    KEY_USER = DRPS_CLI_KEY,
    KEY_USERS,
    KEY_SIMILAR,
    KEY_ALL_SIMILAR,
    KEY_FOLD_IN,
    KEY_FOLD_L2,
    KEY_SEEN,
    KEY_TEST,
    KEY_POSITIVE_FROM,
    KEY_CANDIDATES,
    KEY_EXCLUDE,
    KEY_ON_UNKNOWN,
    KEY_THREADS,
    KEY_PRODUCTS,
    KEY_MEMORY,
    KEY_FORCE,
};

static const struct argp_option option_table[] = {
    {NULL, 0, NULL, 0, "For whom (default: all users of MODEL):", 1},
    {"user", KEY_USER, "NAME", 0, "This user; may be given several times", 1},
    {"users", KEY_USERS, "FILE", 0, "The users in FILE, a name a line; - for stdin", 1},
    {"fold-in", KEY_FOLD_IN, "RATINGS", 0,
     "The users of RATINGS, whom MODEL need not have: their factors are those that fit the ratings "
     "best; may be given several times",
     1},
    {"fold-l2", KEY_FOLD_L2, "L2", 0,
     "Their l2 (default: that of training, or .02 where that was 0)", 1},
    {"similar", KEY_SIMILAR, "ITEM", 0,
     "Not for a user: items like ITEM, by the cosine of factors; may be given several times", 1},
    {"all-similar", KEY_ALL_SIMILAR, NULL, 0, "Similar items for all items", 1},
    {NULL, 0, NULL, 0, "Which items:", 2},
    {"number", 'n', "N", 0, "How many for each (default 10)", 2},
    {"seen", KEY_SEEN, "RATINGS", 0,
     "No user gets an item that it has rated in RATINGS; may be given several times", 2},
    {"candidates", KEY_CANDIDATES, "FILE", 0, "Only items in FILE, a name a line", 2},
    {"exclude", KEY_EXCLUDE, "FILE", 0, "No items in FILE, a name a line", 2},
    {"on-unknown", KEY_ON_UNKNOWN, "WHAT", 0,
     "At a name of --user, --users, --similar, --candidates or --exclude that MODEL does not have: "
     "stop (default), or skip and count it. Ratings of unknown items are left out and counted",
     2},
    {NULL, 0, NULL, 0, "Evaluation:", 3},
    {"test", KEY_TEST, "RATINGS", 0,
     "Held-out ratings: print precision, recall, NDCG and MAP at N, means over the users who have "
     "some. Without -o nothing else is written. Give the training ratings with --seen. May be "
     "given "
     "several times",
     3},
    {"positive-from", KEY_POSITIVE_FROM, "R", 0, "Ratings of --test below R do not count", 3},
    {NULL, 0, NULL, 0, "Result:", 4},
    {"output", 'o', "FILE", 0,
     "File to write: user, rank, item and score with tabs between them, or with --json a JSON "
     "object a user (default: standard output)",
     4},
    {"force", KEY_FORCE, NULL, 0, "Replace FILE if it exists", 4},
    {NULL, 0, NULL, 0, "Work:", 5},
    {"threads", KEY_THREADS, "N", 0, "Threads that compute (default: one for each processor)", 5},
    {"memory", KEY_MEMORY, "SIZE", 0,
     "Memory of the whole process (default: half of what it may use)", 5},
    {"products", KEY_PRODUCTS, "WHAT", 0,
     "What multiplies: openblas, own, or fastest (default). Results are the same", 5},
    {NULL, 0, NULL, 0, "Ratings:", 6},
    READER_OPTIONS(6, "default: that of the training data", "that of the training data",
                   "as in training"),
    {0},
};

enum { TEXT_BYTES = 64 };

/* Values of an option that is given several times. */
struct list {
    const char **values; /* own */
    size_t n, cap;
};

struct options {
    struct drps_recommend_options recommend;
    struct list users, items, fold_in, seen, test;
    int all_similar;
    double test_from;
};

static void add(struct drps_cli *cli, struct list *list, const char *value)
{
    if (drps_array_reserve(&list->values, &list->cap, list->n + 1, sizeof(*list->values)))
        drps_cli_usage(cli, "no memory for %zu values", list->n + 1);
    list->values[list->n++] = value;
}

static void check(struct drps_cli *cli, struct options *o)
{
    struct drps_recommend_options *r = &o->recommend;
    const int users = o->users.n || r->names_file, similar = o->items.n || o->all_similar;
    if (!r->model) drps_cli_usage(cli, "no model: name the folder that drps-train made");
    if (similar && (users || o->fold_in.n))
        drps_cli_usage(cli, "--similar and --all-similar are for items: give no users");
    if (o->items.n && o->all_similar)
        drps_cli_usage(cli, "--all-similar is for all items: leave --similar out");
    if (similar && o->seen.n) drps_cli_usage(cli, "--seen is for users: items have seen nothing");
    if (o->test.n && (similar || o->fold_in.n))
        drps_cli_usage(cli, "--test is for users of the model: leave --fold-in, --similar and "
                            "--all-similar out");
    if (r->test_from && !o->test.n) drps_cli_usage(cli, "--positive-from goes with --test");
    if (o->fold_in.n && users)
        drps_cli_usage(cli, "--fold-in is for the users of its ratings: leave --user and --users "
                            "out");
    if (r->fold_l2 >= 0 && !o->fold_in.n) drps_cli_usage(cli, "--fold-l2 goes with --fold-in");
}

static int parse(struct drps_cli *cli, int key, char *arg)
{
    static const char *const on_unknown[] = {"stop", "skip", NULL};
    static const char *const products[] = {"fastest", "openblas", "own", NULL};
    struct options *o = cli->input;
    struct drps_recommend_options *r = &o->recommend;
    const struct drps_cli_plain plain[] = {
        {.key = 'o', .text = &r->output},
        {.key = KEY_USERS, .text = &r->names_file},
        {.key = KEY_ALL_SIMILAR, .flag = &o->all_similar},
        {.key = KEY_CANDIDATES, .text = &r->candidates},
        {.key = KEY_EXCLUDE, .text = &r->exclude},
        {.key = KEY_FORCE, .flag = &r->replace},
    };
    if (drps_cli_take(cli, plain, sizeof(plain) / sizeof(plain[0]), key, arg) == 0) return 0;
    switch (key) {
    case ARGP_KEY_ARG:
        if (r->model) drps_cli_usage(cli, "one model at a time: what is '%s'?", arg);
        r->model = arg;
        return 0;
    case ARGP_KEY_END:
        check(cli, o);
        return 0;
    case KEY_USER:
        add(cli, &o->users, arg);
        return 0;
    case KEY_SIMILAR:
        add(cli, &o->items, arg);
        return 0;
    case KEY_FOLD_IN:
        add(cli, &o->fold_in, arg);
        return 0;
    case KEY_SEEN:
        add(cli, &o->seen, arg);
        return 0;
    case KEY_TEST:
        add(cli, &o->test, arg);
        return 0;
    case KEY_POSITIVE_FROM:
        o->test_from = drps_cli_real(cli, arg, -1e38, 1e38);
        r->test_from = &o->test_from;
        return 0;
    case KEY_FOLD_L2:
        r->fold_l2 = drps_cli_real(cli, arg, 0, 1e30);
        return 0;
    case 'n':
        r->n = (size_t)drps_cli_count(cli, arg, 1, DRPS_RECOMMEND_MOST);
        return 0;
    case KEY_ON_UNKNOWN:
        r->skip_unknown = drps_cli_choice(cli, arg, on_unknown) == 1;
        return 0;
    case KEY_THREADS:
        r->threads = (unsigned)drps_cli_count(cli, arg, 1, DRPS_TRAIN_THREADS_MAX);
        return 0;
    case KEY_PRODUCTS:
        r->products = (enum drps_products)drps_cli_choice(cli, arg, products);
        return 0;
    case KEY_MEMORY:
        r->memory_bytes = drps_cli_size(cli, arg, 1, INT64_MAX);
        return 0;
    default:
        return reader_option(cli, &r->reader, key, arg);
    }
}

/* ---- Progress ---- */

struct view {
    struct drps_cli *cli;
    uint64_t begin_ns;
    enum drps_recommend_phase phase; /* that began then */
};

static void show_progress(void *ctx, const struct drps_recommend_progress *p)
{
    static const char *const whats[] = {
        [DRPS_RECOMMEND_NAMES] = "reading names",
        [DRPS_RECOMMEND_SEEN] = "reading ratings",
        [DRPS_RECOMMEND_SCORES] = "scoring",
    };
    struct view *v = ctx;
    if (p->phase != v->phase) v->begin_ns = drps_clock_ns();
    v->phase = p->phase;
    const struct drps_progress work = {.what = whats[p->phase],
                                       .unit =
                                           p->phase == DRPS_RECOMMEND_SEEN ? "ratings" : "pairs",
                                       .done = p->done,
                                       .total = p->total,
                                       .seconds = drps_seconds_since(v->begin_ns)};
    drps_progress_show(v->cli, &work);
}

/* ---- Results ---- */

/* "1,234 users", "1 item". */
static const char *counted(uint64_t n, const char *what, char *buf, size_t cap)
{
    char number[DRPS_CLI_COUNT_BYTES];
    (void)snprintf(buf, cap, "%s %s%s", drps_cli_grouped(n, number), what, n == 1 ? "" : "s");
    return buf;
}

static void print_test(FILE *to, size_t n, const struct drps_evaluation *e)
{
    char a[TEXT_BYTES], b[TEXT_BYTES];
    if (!e->users) {
        (void)fprintf(to, "  test    no user of the model has a held-out item\n");
        return;
    }
    (void)fprintf(to,
                  "  test    means over %s with %s: precision@%zu %.5f, recall@%zu %.5f, NDCG@%zu "
                  "%.5f, MAP@%zu %.5f\n",
                  counted(e->users, "user", a, sizeof(a)),
                  counted(e->items, "held-out item", b, sizeof(b)), n, e->precision, n, e->recall,
                  n, e->ndcg, n, e->map);
    if (e->missing)
        (void)fprintf(to, "          %s of these the model does not have: they are never found\n",
                      drps_cli_grouped(e->missing, a));
}

static json_t *test_json(const struct drps_recommend_options *o, const struct drps_evaluation *e)
{
    json_t *j = json_object();
    drps_manifest_put(&j, "n", drps_cli_json_count(o->n ? o->n : DRPS_RECOMMEND_DEFAULT));
    drps_manifest_put(&j, "users", drps_cli_json_count(e->users));
    drps_manifest_put(&j, "items", drps_cli_json_count(e->items));
    drps_manifest_put(&j, "missing", drps_cli_json_count(e->missing));
    drps_manifest_put(&j, "precision", drps_cli_json_real(e->precision));
    drps_manifest_put(&j, "recall", drps_cli_json_real(e->recall));
    drps_manifest_put(&j, "ndcg", drps_cli_json_real(e->ndcg));
    drps_manifest_put(&j, "map", drps_cli_json_real(e->map));
    return j;
}

static void print_text(const struct options *o, const struct drps_recommend_result *r)
{
    const struct drps_recommend_options *in = &o->recommend;
    const int among = strcmp(in->output, "-") == 0 && !in->no_lines;
    FILE *to = among ? stderr : stdout; /* never among the results */
    const size_t n = in->n ? in->n : DRPS_RECOMMEND_DEFAULT;
    char a[TEXT_BYTES], b[TEXT_BYTES], c[TEXT_BYTES];
    (void)fprintf(to, "%s, the best %zu of %s each, in %.2f s\n",
                  counted(r->queries, in->similar ? "item" : "user", a, sizeof(a)), n,
                  counted(r->items, "item", b, sizeof(b)), r->seconds);
    (void)fprintf(to, "  read    %s of items in %" PRIu64 " pass%s, %s of %s\n",
                  drps_size_format(r->item_bytes, a, sizeof(a)), r->item_passes,
                  r->item_passes == 1 ? "" : "es", drps_size_format(r->query_bytes, b, sizeof(b)),
                  in->fold_in_n ? "the items that were rated" : "those they are for");
    if (r->few)
        (void)fprintf(to, "  fewer   than %zu for %s of them: there are no more\n", n,
                      drps_cli_grouped(r->few, a));
    if (r->unknown_names)
        (void)fprintf(to, "  skipped %s that the model does not have\n",
                      counted(r->unknown_names, "name", a, sizeof(a)));
    if (r->ratings)
        (void)fprintf(to, "  ratings %s, %s of %s that the model does not have\n",
                      drps_cli_grouped(r->ratings, a), drps_cli_grouped(r->unknown_ratings, b),
                      in->fold_in_n ? "items" : "users or items");
    if (in->test_n) print_test(to, n, &r->test);
    if (in->test_n && !in->seen_n)
        (void)fprintf(to, "          items that users have seen are among the best: --seen leaves "
                          "them out\n");
    if (r->skipped_lines)
        (void)fprintf(to, "  skipped %s\n", counted(r->skipped_lines, "bad line", c, sizeof(c)));
}

static int print_json(const struct drps_recommend_options *o, const struct drps_recommend_result *r,
                      struct drps_err *err)
{
    json_t *j = json_object();
    drps_manifest_put(&j, "queries", drps_cli_json_count(r->queries));
    drps_manifest_put(&j, "items", drps_cli_json_count(r->items));
    drps_manifest_put(&j, "recommended", drps_cli_json_count(r->recommended));
    drps_manifest_put(&j, "few", drps_cli_json_count(r->few));
    drps_manifest_put(&j, "unknown_names", drps_cli_json_count(r->unknown_names));
    drps_manifest_put(&j, "ratings", drps_cli_json_count(r->ratings));
    drps_manifest_put(&j, "unknown_ratings", drps_cli_json_count(r->unknown_ratings));
    drps_manifest_put(&j, "skipped_lines", drps_cli_json_count(r->skipped_lines));
    drps_manifest_put(&j, "item_passes", drps_cli_json_count(r->item_passes));
    drps_manifest_put(&j, "item_bytes", drps_cli_json_count(r->item_bytes));
    drps_manifest_put(&j, "query_bytes", drps_cli_json_count(r->query_bytes));
    if (o->test_n) drps_manifest_put(&j, "test", test_json(o, &r->test));
    drps_manifest_put(&j, "exact_scores", drps_cli_json_count(r->exact));
    drps_manifest_put(&j, "products", json_string(r->products ? r->products : ""));
    drps_manifest_put(&j, "product_seconds", drps_cli_json_real(r->product_seconds));
    drps_manifest_put(&j, "seconds", drps_cli_json_real(r->seconds));
    drps_manifest_put(&j, "peak_rss_bytes", drps_cli_json_count(drps_memory_peak()));
    return drps_cli_json_print(j, err);
}

/* Results do not depend on how many threads there are. */
static unsigned processors(void)
{
    cpu_set_t set;
    const int n = sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 1;
    return n < DRPS_TRAIN_THREADS_MAX ? (unsigned)n : DRPS_TRAIN_THREADS_MAX;
}

static void complete(struct drps_cli *cli, struct options *o)
{
    struct drps_recommend_options *r = &o->recommend;
    r->similar = o->items.n || o->all_similar;
    r->names = r->similar ? o->items.values : o->users.values;
    r->names_n = r->similar ? o->items.n : o->users.n;
    r->fold_in = o->fold_in.values;
    r->fold_in_n = o->fold_in.n;
    r->seen = o->seen.values;
    r->seen_n = o->seen.n;
    r->test = o->test.values;
    r->test_n = o->test.n;
    r->no_lines = o->test.n && !r->output;
    r->json = cli->json;
    if (!r->output) r->output = "-";
    if (!r->threads) r->threads = processors();
    r->scratch = getenv("TMPDIR");
    r->stop = drps_cli_stop();
    r->log = &cli->log;
    r->on_progress = show_progress;
}

int main(int argc, char **argv)
{
    static const struct drps_cli_tool tool = {
        .name = "drps-recommend",
        .args_doc = "MODEL [-n N] [-o FILE]",
        .doc = "Find the items with the largest scores for users of a model of algorithm lmf, bpr, "
               "warp or wmf: exact, and from a model that need not fit the memory.\v"
               "A score is, but for rounding, what drps-predict says of a user and an item. Of "
               "equal scores the item "
               "that comes first in the model is first. RATINGS are files as in training, plain or "
               "compressed (.gz .zst .xz), or - for stdin.",
        .options = option_table,
        .parse = parse,
    };
    struct options o = {.recommend = {.fold_l2 = -1}};
    struct drps_recommend_result result;
    struct drps_cli cli;
    struct drps_err err = DRPS_ERR_INIT;

    drps_cli_start(&cli, &tool, &o, argc, argv);
    complete(&cli, &o);
    struct view view = {.cli = &cli, .begin_ns = drps_clock_ns()};
    o.recommend.ctx = &view;
    int rc = drps_recommend_run(drps_io_os(), &o.recommend, &result, &err);
    drps_cli_progress_end(&cli);
    if (rc == 0 && cli.json && (o.recommend.no_lines || strcmp(o.recommend.output, "-") != 0))
        rc = print_json(&o.recommend, &result, &err);
    else if (rc == 0 && !cli.json && cli.log.level >= DRPS_LOG_INFO)
        print_text(&o, &result);
    free(o.users.values);
    free(o.items.values);
    free(o.fold_in.values);
    free(o.seen.values);
    free(o.test.values);
    return drps_cli_finish(&cli, rc, &err);
}
