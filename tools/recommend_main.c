/* drps-recommend finds the best items for users of a model. This file parses arguments and prints;
 * the work is done by engine/recommend/recommend.c. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/report/drps_files_json.h"
#include "api/settings/drps_recommend_settings.h"
#include "base/drps_clock.h"
#include "base/drps_size.h"
#include "engine/recommend/drps_recommend.h"
#include "tools/drps_cli.h"
#include "tools/drps_progress.h"

enum { TEXT_BYTES = 64 };

static int parse(struct drps_cli *cli, int key, char *arg)
{
    struct drps_recommend_settings *o = cli->input;
    struct drps_recommend_options *r = &o->recommend;
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_values v = drps_cli_values(&err);
    int known = 1;
    if (key == ARGP_KEY_ARG && r->model)
        drps_cli_usage(cli, "one model at a time: what is '%s'?", arg);
    else if (key == ARGP_KEY_ARG)
        r->model = arg;
    else if (key == 'o')
        r->output = arg;
    else if (key == ARGP_KEY_END && !r->model)
        drps_cli_usage(cli, "no model: name the folder that drps-train made");
    else if (key == ARGP_KEY_END)
        drps_recommend_settings_check(o, &v);
    else
        known = drps_recommend_setting(o, &v, key, arg);
    return drps_cli_taken(cli, known, &err);
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

static void print_test(FILE *to, size_t n, const struct drps_evaluation *e)
{
    char a[TEXT_BYTES];
    if (!e->users) {
        (void)fprintf(to, "  test    no user of the model has a held-out item\n");
        return;
    }
    (void)fprintf(to,
                  "  test    means over %s with %s: precision@%zu %.5f, recall@%zu %.5f, NDCG@%zu "
                  "%.5f, MAP@%zu %.5f\n",
                  drps_cli_counted(e->users, "user"), drps_cli_counted(e->items, "held-out item"),
                  n, e->precision, n, e->recall, n, e->ndcg, n, e->map);
    if (e->missing)
        (void)fprintf(to, "          %s of these the model does not have: they are never found\n",
                      drps_cli_grouped(e->missing, a));
}

static void print_text(const struct drps_recommend_settings *o,
                       const struct drps_recommend_result *r)
{
    const struct drps_recommend_options *in = &o->recommend;
    const int among = strcmp(in->output, "-") == 0 && !in->no_lines;
    FILE *to = among ? stderr : stdout; /* never among the results */
    const size_t n = in->n ? in->n : DRPS_RECOMMEND_DEFAULT;
    char a[TEXT_BYTES], b[TEXT_BYTES];
    (void)fprintf(to, "%s, the best %zu of %s each, in %.2f s\n",
                  drps_cli_counted(r->queries, in->similar ? "item" : "user"), n,
                  drps_cli_counted(r->items, "item"), r->seconds);
    (void)fprintf(to, "  read    %s of items in %s, %s of %s\n",
                  drps_size_format(r->item_bytes, a, sizeof(a)),
                  drps_cli_counted(r->item_passes, "pass"),
                  drps_size_format(r->query_bytes, b, sizeof(b)),
                  in->fold_in_n ? "the items that were rated" : "those they are for");
    if (r->few)
        (void)fprintf(to, "  fewer   than %zu for %s of them: there are no more\n", n,
                      drps_cli_grouped(r->few, a));
    if (r->unknown_names)
        (void)fprintf(to, "  skipped %s that the model does not have\n",
                      drps_cli_counted(r->unknown_names, "name"));
    if (r->ratings)
        (void)fprintf(to, "  ratings %s, %s of %s that the model does not have\n",
                      drps_cli_grouped(r->ratings, a), drps_cli_grouped(r->unknown_ratings, b),
                      in->fold_in_n ? "items" : "users or items");
    if (in->test_n) print_test(to, n, &r->test);
    if (in->test_n && !in->seen_n)
        (void)fprintf(to, "          items that users have seen are among the best: --seen leaves "
                          "them out\n");
    if (r->skipped_lines)
        (void)fprintf(to, "  skipped %s\n", drps_cli_counted(r->skipped_lines, "bad line"));
}

static void complete(struct drps_cli *cli, struct drps_recommend_settings *o)
{
    struct drps_recommend_options *r = &o->recommend;
    drps_recommend_settings_complete(o);
    r->json = cli->json;
    if (!r->output) r->output = "-";
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
        .options = drps_recommend_table,
        .parse = parse,
    };
    struct drps_recommend_settings o;
    struct drps_recommend_result result;
    struct drps_cli cli;
    struct drps_err err = DRPS_ERR_INIT;

    drps_recommend_settings_init(&o);
    drps_cli_start(&cli, &tool, &o, argc, argv);
    complete(&cli, &o);
    struct view view = {.cli = &cli, .begin_ns = drps_clock_ns()};
    o.recommend.ctx = &view;
    int rc = drps_recommend_run(drps_io_os(), &o.recommend, &result, &err);
    drps_cli_progress_end(&cli);
    if (rc == 0 && cli.json && (o.recommend.no_lines || strcmp(o.recommend.output, "-") != 0))
        rc = drps_cli_json_print(drps_recommend_json(&o.recommend, &result), &err);
    else if (rc == 0 && !cli.json && cli.log.level >= DRPS_LOG_INFO)
        print_text(&o, &result);
    drps_recommend_settings_free(&o);
    return drps_cli_finish(&cli, rc, &err);
}
