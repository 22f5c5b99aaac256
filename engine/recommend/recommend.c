/* A run from the model to the output: names, ratings, then blocks of queries against all items. It
 * needs all other parts of this folder. */
#include "engine/recommend/drps_recommend.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"
#include "base/drps_clock.h"
#include "base/drps_size.h"
#include "engine/drps_engine.h"
#include "engine/publish/drps_modeldir.h"
#include "base/folder/drps_textfile.h"
#include "engine/recommend/choose.h"
#include "engine/recommend/evaluate/drps_evaluate.h"
#include "engine/recommend/fold.h"
#include "engine/recommend/items.h"
#include "engine/recommend/input/drps_people.h"
#include "engine/recommend/input/drps_ratings.h"
#include "engine/recommend/row_queries.h"
#include "engine/recommend/score.h"
#include "engine/recommend/share.h"
#include "engine/recommend/write.h"

#define FOLD_L2 0.02 /* where training had none */
#define FALLBACK_SCRATCH "/tmp"

struct run {
    const struct drps_recommend_options *o;
    struct drps_recommend_result *result;
    struct drps_io io; /* that can be stopped */
    struct drps_modeldir *md;
    struct drps_people people;
    struct drps_textfile out;
    const char *scratch; /* folder */
    struct drps_share_needs needs;
    struct drps_share share;
    struct drps_extsort *seen;      /* of users of the model */
    struct drps_evaluate *evaluate; /* NULL: nothing is evaluated */
    uint32_t *found;                /* own: [most] items of a user, for evaluation */
    struct drps_fold *fold;
    uint64_t fold_users;
    struct drps_rownames *names;
    struct drps_row_queries rows;
    struct drps_query_source source;
    struct drps_items items;
    struct drps_queries queries;
    struct drps_scores *scores;
    struct drps_recommend_progress progress;
};

static void tell(struct run *r, enum drps_recommend_phase phase, uint64_t done, uint64_t total)
{
    r->progress = (struct drps_recommend_progress){.phase = phase, .done = done, .total = total};
    if (r->o->on_progress) r->o->on_progress(r->o->ctx, &r->progress);
}

static unsigned threads_of(const struct drps_recommend_options *o)
{
    return o->threads ? o->threads : 1;
}

/* ---- What is wanted ---- */

static int is_stdin(const char *path)
{
    return path && strcmp(path, "-") == 0;
}

static size_t count_stdin(const struct drps_recommend_options *o)
{
    size_t n = (size_t)(is_stdin(o->names_file) + is_stdin(o->candidates) + is_stdin(o->exclude));
    for (size_t i = 0; i < o->seen_n; i++)
        n += (size_t)is_stdin(o->seen[i]);
    for (size_t i = 0; i < o->fold_in_n; i++)
        n += (size_t)is_stdin(o->fold_in[i]);
    for (size_t i = 0; i < o->test_n; i++)
        n += (size_t)is_stdin(o->test[i]);
    return n;
}

static int check_options(const struct drps_recommend_options *o, struct drps_err *err)
{
    const int named = o->names_n || o->names_file;
    if (!o->model || !o->output)
        return drps_err_set(err, DRPS_E_CONFIG, "give a model and an output");
    if (o->n > DRPS_RECOMMEND_MOST)
        return drps_err_set(err, DRPS_E_CONFIG, "%zu items for each: at most %d", o->n,
                            DRPS_RECOMMEND_MOST);
    if (threads_of(o) > DRPS_TRAIN_THREADS_MAX)
        return drps_err_set(err, DRPS_E_CONFIG, "%u threads: at most %d", o->threads,
                            DRPS_TRAIN_THREADS_MAX);
    if (o->fold_in_n && (named || o->similar))
        return drps_err_set(err, DRPS_E_CONFIG,
                            "users who are folded in are those of the ratings: name no others, and "
                            "ask for no similar items");
    if (o->similar && o->seen_n)
        return drps_err_set(err, DRPS_E_CONFIG,
                            "items have seen nothing: similar items go without ratings");
    if (o->test_n && (o->similar || o->fold_in_n))
        return drps_err_set(err, DRPS_E_CONFIG,
                            "held-out ratings are of users whom the model has: ask for neither "
                            "similar items nor folding in");
    if (count_stdin(o) > 1)
        return drps_err_set(err, DRPS_E_CONFIG,
                            "standard input is read once: '-' stands for one input alone");
    return 0;
}

/* The output is none of the files that are read. */
static int check_output(const struct drps_recommend_options *o, struct drps_err *err)
{
    const char *const more[] = {o->names_file, o->candidates, o->exclude};
    int rc = drps_textfile_check(o->output, o->model, o->seen, o->seen_n, err);
    if (rc == 0) rc = drps_textfile_check(o->output, o->model, o->fold_in, o->fold_in_n, err);
    if (rc == 0) rc = drps_textfile_check(o->output, o->model, o->test, o->test_n, err);
    for (size_t i = 0; rc == 0 && i < sizeof(more) / sizeof(more[0]); i++)
        if (more[i]) rc = drps_textfile_check(o->output, o->model, &more[i], 1, err);
    return rc;
}

/* How many items a query gets at most, of a model or a choice of this many; no less than 1. */
static size_t most_of(const struct drps_recommend_options *o, uint64_t items)
{
    const size_t wanted = o->n ? o->n : DRPS_RECOMMEND_DEFAULT;
    if (wanted <= items) return wanted;
    return items ? (size_t)items : 1;
}

/* The last table has all items, and where they are mixed with users these, too. */
static uint64_t items_at_most(const struct drps_modeldir_info *info)
{
    return info->tables_n ? info->tables[info->tables_n - 1].rows : 0;
}

static int open_model(struct run *r, struct drps_err *err)
{
    const struct drps_recommend_options *o = r->o;
    int rc = drps_modeldir_open(&r->io, o->model, 0, &r->md, err);
    if (rc < 0) return rc;
    const struct drps_modeldir_info *info = drps_modeldir_info(r->md);
    const struct drps_algorithm *a = drps_algorithm(info->model.algo);
    if (!drps_algorithm_rates(a) || !info->string_names || info->fields_n != DRPS_FIELDS)
        return drps_err_set(err, DRPS_E_CONFIG,
                            "%s is a model of algorithm %s; recommending needs users and items: "
                            "algorithm lmf, bpr, warp or wmf on ratings",
                            o->model, a->name);
    if (o->fold_in_n && drps_algorithm_draws(a))
        return drps_err_set(
            err, DRPS_E_CONFIG,
            "%s is a model of %s, which says what users choose; folding in fits "
            "ratings, of a model of algorithm lmf: make a plan of all data, with the new "
            "users, and train it, from this model if you like",
            o->model, a->name);
    r->needs = (struct drps_share_needs){
        .md = r->md,
        .limit_bytes = o->memory_bytes ? o->memory_bytes : drps_memory_available() / 2,
        .most = most_of(o, items_at_most(info)),
        .threads = threads_of(o),
        .ratings = o->seen_n || o->fold_in_n || o->test_n,
        .evaluates = o->test_n > 0,
        .folds = o->fold_in_n > 0,
        .similar = o->similar,
        .queries = info->rows,
        .items = info->rows};
    return drps_share_out(&r->needs, &r->share, err);
}

/* Warns of a list that leaves nothing: most likely another file was meant. */
static void warn_of_nothing(const struct run *r, const char *file, const struct drps_rowset *left)
{
    if (!file || left->n) return;
    drps_log(r->o->log, DRPS_LOG_WARN, "%s names nothing that the model has: is it the right file?",
             is_stdin(file) ? "standard input" : file);
}

/* Sets of users and items become those that are wanted, and memory is divided by them. */
static int choose(struct run *r, struct drps_err *err)
{
    const struct drps_recommend_options *o = r->o;
    const struct drps_name_list who = {.names = o->names, .n = o->names_n, .file = o->names_file};
    const struct drps_name_list only = {.file = o->candidates}, not_these = {.file = o->exclude};
    struct drps_people *p = &r->people;
    tell(r, DRPS_RECOMMEND_NAMES, 0, 0);
    int rc = drps_people_init(p, &r->io, r->md, o->model, o->skip_unknown, err);
    if (rc < 0) return rc;
    struct drps_rowset *queries = &p->of[DRPS_FIELD_USER], *items = &p->of[DRPS_FIELD_ITEM];
    if (o->similar) drps_rowset_copy(queries, items);
    rc = drps_people_choose(p, queries, o->similar ? DRPS_FIELD_ITEM : DRPS_FIELD_USER, &who, 1,
                            err);
    if (rc == 0) warn_of_nothing(r, o->names_file, queries);
    if (rc == 0) rc = drps_people_choose(p, items, DRPS_FIELD_ITEM, &only, 1, err);
    if (rc == 0) warn_of_nothing(r, o->candidates, items);
    if (rc == 0) rc = drps_people_choose(p, items, DRPS_FIELD_ITEM, &not_these, 0, err);
    if (rc < 0) return rc;
    r->result->unknown_names = p->unknown;
    r->result->items = r->needs.items = items->n;
    if (!o->fold_in_n) r->needs.queries = queries->n;
    r->needs.most = most_of(o, items->n);
    return drps_share_out(&r->needs, &r->share, err);
}

/* ---- Ratings ---- */

static void ratings_come(void *ctx, uint64_t ratings)
{
    struct run *r = ctx;
    tell(r, DRPS_RECOMMEND_SEEN, r->result->ratings + ratings, 0);
}

static int read_files(struct run *r, const char *const *paths, size_t n, int values,
                      const struct drps_rating_sink *sink, struct drps_err *err)
{
    struct drps_ratings_files files = {.paths = paths,
                                       .n = n,
                                       .reader = r->o->reader,
                                       .model = r->o->model,
                                       .on_progress = ratings_come,
                                       .ctx = r};
    struct drps_ratings_read read = {.ratings = 0};
    if (!n) return 0;
    files.reader.memory_bytes = r->share.reader_bytes;
    files.reader.log = r->o->log;
    files.reader.stop = r->o->stop;
    files.reader.label_optional = !values;
    const int rc = drps_ratings_read(&r->io, r->md, &files, sink, &read, err);
    r->result->ratings += read.ratings;
    r->result->unknown_ratings += read.unknown;
    r->result->skipped_lines += read.skipped;
    if (rc == 0 && read.ratings && read.unknown == read.ratings)
        drps_log(r->o->log, DRPS_LOG_WARN,
                 "none of the %" PRIu64
                 " ratings of %s%s is of this model's users and items: is it the right file, read "
                 "in the right format?",
                 read.ratings, is_stdin(paths[0]) ? "standard input" : paths[0],
                 n > 1 ? " and the files after it" : "");
    return rc;
}

static int take_seen(void *ctx, const struct drps_rating *rating, struct drps_err *err)
{
    struct run *r = ctx;
    const struct drps_sort_record record = {.hi = rating->user, .lo = rating->item};
    if (rating->item == DRPS_NO_ROW ||
        !drps_rowset_has(&r->people.of[DRPS_FIELD_USER], rating->user))
        return 0;
    return drps_extsort_add(r->seen, &record, err);
}

static int read_seen(struct run *r, struct drps_err *err)
{
    const struct drps_rating_sink sink = {.ctx = r, .take = take_seen};
    if (!r->o->seen_n) return 0;
    int rc = drps_extsort_open(&r->io, r->scratch, "7", r->share.sort_bytes, &r->seen, err);
    if (rc == 0) rc = read_files(r, r->o->seen, r->o->seen_n, 0, &sink, err);
    return rc == 0 ? drps_extsort_finish(r->seen, err) : rc;
}

/* Reads held-out ratings. Users who have none are left out from here on. */
static int read_test(struct run *r, struct drps_err *err)
{
    const struct drps_recommend_options *o = r->o;
    if (!o->test_n) return 0;
    r->found = drps_array_new(r->needs.most, sizeof(*r->found));
    if (!r->found) return drps_err_set(err, -ENOMEM, "no memory for the best items of a user");
    int rc = drps_evaluate_open(&r->io, r->scratch, r->share.sort_bytes,
                                drps_modeldir_info(r->md)->rows, o->test_from, &r->evaluate, err);
    if (rc < 0) return rc;
    const struct drps_rating_sink sink = drps_evaluate_sink(r->evaluate);
    const uint64_t before = r->result->ratings;
    rc = read_files(r, o->test, o->test_n, o->test_from != NULL, &sink, err);
    if (rc == 0 && r->result->ratings == before)
        drps_log(o->log, DRPS_LOG_WARN, "%s%s no held-out ratings: nothing is measured", o->test[0],
                 o->test_n > 1 ? " and the test files after it have" : " has");
    return rc == 0 ? drps_evaluate_begin(r->evaluate, &r->people.of[DRPS_FIELD_USER], err) : rc;
}

/* Returns the l2 of folding in: the one asked for, else that of training, which model.json has,
 * else the default. */
static double fold_l2(const struct run *r)
{
    const json_t *training = json_object_get(drps_modeldir_json(r->md), "training");
    const json_t *optimizer = json_object_get(training, "optimizer");
    const double l2 = json_number_value(json_object_get(optimizer, "l2"));
    if (r->o->fold_l2 >= 0) return r->o->fold_l2;
    return l2 > 0 && isfinite(l2) ? l2 : FOLD_L2;
}

static int read_fold_in(struct run *r, struct drps_err *err)
{
    const struct drps_fold_options options = {.md = r->md,
                                              .model = r->o->model,
                                              .scratch = r->scratch,
                                              .l2 = fold_l2(r),
                                              .memory_bytes = r->share.sort_bytes};
    int rc = drps_fold_open(&r->io, &options, &r->fold, err);
    if (rc < 0) return rc;
    const struct drps_rating_sink rated = drps_fold_sink(r->fold, 0),
                                  seen = drps_fold_sink(r->fold, 1);
    rc = read_files(r, r->o->fold_in, r->o->fold_in_n, 1, &rated, err);
    if (rc == 0) rc = read_files(r, r->o->seen, r->o->seen_n, 0, &seen, err);
    return rc == 0 ? drps_fold_finish(r->fold, &r->fold_users, err) : rc;
}

/* ---- Queries ---- */

static int open_names(struct run *r, struct drps_err *err)
{
    const struct drps_rowset *const sets[] = {&r->people.of[DRPS_FIELD_ITEM],
                                              &r->people.of[DRPS_FIELD_USER]};
    return drps_rownames_open(&r->io, r->md, sets, r->fold ? 1 : 2, r->share.names_bytes,
                              r->scratch, &r->names, err);
}

static int open_source(struct run *r, struct drps_err *err)
{
    r->rows = (struct drps_row_queries){.md = r->md,
                                        .model = r->o->model,
                                        .rows = &r->people.of[DRPS_FIELD_USER],
                                        .names = r->names,
                                        .seen = r->seen,
                                        .similar = r->o->similar};
    r->source = r->fold ? drps_fold_source(r->fold) : drps_row_queries_source(&r->rows);
    return r->fold ? 0 : drps_row_queries_begin(&r->rows, err);
}

static void pairs_scored(void *ctx, uint64_t pairs)
{
    struct run *r = ctx;
    tell(r, DRPS_RECOMMEND_SCORES, r->progress.done + pairs, r->progress.total);
}

static int open_scores(struct run *r, struct drps_err *err)
{
    const size_t d = drps_modeldir_info(r->md)->model.dim;
    const struct drps_scores_options options = {
        .threads = r->needs.threads,
        .d = d,
        .product = drps_product_choose(r->o->products, d, r->needs.threads),
        .stop = r->o->stop,
        .on_pairs = pairs_scored,
        .ctx = r};
    r->result->products = drps_product_name(options.product);
    return drps_scores_open(&options, &r->scores, err);
}

static int evaluate(struct run *r, size_t i, const struct drps_top *top, size_t wanted,
                    struct drps_err *err)
{
    if (!r->evaluate) return 0;
    for (size_t k = 0; k < top->n; k++)
        r->found[k] = top->heap[k].row;
    return drps_evaluate_user(r->evaluate, r->queries.ids[i], r->found, top->n, wanted, top->seen,
                              top->seen_n, err);
}

static int write_query(struct run *r, const struct drps_lines_out *out, size_t i,
                       const struct drps_top *top, struct drps_err *err)
{
    const char *name;
    size_t n;
    if (r->o->no_lines) return 0;
    const int rc = r->source.name(r->source.ctx, r->queries.ids[i], &name, &n, err);
    return rc == 0 ? drps_lines_write(out, name, n, top, err) : rc;
}

static int write_block(struct run *r, struct drps_err *err)
{
    const struct drps_lines_out out = {.out = &r->out,
                                       .items = r->names,
                                       .json = r->o->json,
                                       .query_key = r->o->similar ? "item" : "user"};
    const size_t wanted = r->o->n ? r->o->n : DRPS_RECOMMEND_DEFAULT;
    for (size_t i = 0; i < r->queries.n; i++) {
        struct drps_top top = drps_queries_top(&r->queries, i);
        drps_top_sort(&top);
        int rc = evaluate(r, i, &top, wanted, err);
        if (rc == 0) rc = write_query(r, &out, i, &top, err);
        if (rc == 0) rc = drps_io_stopped(&r->io, err);
        if (rc < 0) return rc;
        r->result->recommended += top.n;
        r->result->few += top.n < wanted;
    }
    r->result->queries += r->queries.n;
    return 0;
}

static int run_blocks(struct run *r, struct drps_err *err)
{
    const uint64_t queries = r->fold ? r->fold_users : r->people.of[DRPS_FIELD_USER].n;
    tell(r, DRPS_RECOMMEND_SCORES, 0, queries * r->needs.items);
    for (;;) {
        drps_queries_clear(&r->queries);
        int rc = r->source.fill(r->source.ctx, &r->queries, err);
        if (rc < 0 || !r->queries.n) return rc;
        rc = drps_scores_run(r->scores, &r->queries, &r->items, err);
        if (rc == 0) rc = write_block(r, err);
        if (rc < 0) return rc;
    }
}

static int recommend(struct run *r, struct drps_err *err)
{
    const size_t d = drps_modeldir_info(r->md)->model.dim;
    int rc = open_names(r, err);
    if (rc == 0) rc = open_source(r, err);
    if (rc == 0)
        rc = drps_items_init(&r->items, r->md, r->o->model, &r->people.of[DRPS_FIELD_ITEM],
                             r->o->similar, r->share.items, err);
    if (rc == 0)
        rc = drps_queries_init(&r->queries, d, r->needs.most, r->share.queries, r->share.seen, err);
    if (rc == 0) rc = open_scores(r, err);
    return rc == 0 ? run_blocks(r, err) : rc;
}

static int run(struct run *r, struct drps_err *err)
{
    const struct drps_recommend_options *o = r->o;
    int rc = check_options(o, err);
    if (rc == 0) rc = check_output(o, err);
    if (rc == 0) rc = open_model(r, err);
    if (rc == 0) rc = drps_modeldir_open_rows(r->md, r->share.model_bytes, err);
    /* The output comes before the data, which may come late: others who want it hear at once. */
    if (rc == 0) rc = drps_textfile_open(&r->out, &r->io, o->output, o->replace, err);
    if (rc == 0)
        rc = drps_textfile_scratch(&r->out, o->scratch ? o->scratch : FALLBACK_SCRATCH, &r->scratch,
                                   err);
    if (rc == 0) rc = choose(r, err);
    if (rc == 0) rc = read_test(r, err);
    if (rc == 0) rc = o->fold_in_n ? read_fold_in(r, err) : read_seen(r, err);
    return rc == 0 ? recommend(r, err) : rc;
}

static void count(struct run *r)
{
    r->result->item_passes = r->items.passes;
    r->result->item_bytes = r->items.bytes;
    r->result->query_bytes = r->fold ? drps_fold_bytes(r->fold) : r->rows.bytes;
    if (r->evaluate) drps_evaluate_result(r->evaluate, &r->result->test);
    if (!r->scores) return;
    r->result->exact = drps_scores_exact(r->scores);
    r->result->product_seconds = drps_scores_seconds(r->scores);
}

int drps_recommend_run(const struct drps_io *io, const struct drps_recommend_options *options,
                       struct drps_recommend_result *result, struct drps_err *err)
{
    struct run r = {.o = options, .result = result, .io = *io};
    const uint64_t start = drps_clock_ns();
    memset(result, 0, sizeof(*result));
    r.io.stop = options->stop;
    int rc = run(&r, err);
    count(&r);
    drps_scores_close(r.scores);
    drps_queries_destroy(&r.queries);
    drps_items_destroy(&r.items);
    drps_row_queries_end(&r.rows);
    drps_rownames_close(r.names);
    drps_fold_close(r.fold);
    drps_extsort_close(r.seen);
    drps_evaluate_close(r.evaluate);
    free(r.found);
    if (rc == 0) rc = drps_textfile_commit(&r.out, err);
    drps_textfile_close(&r.out);
    drps_people_destroy(&r.people);
    drps_modeldir_close(r.md);
    result->seconds = drps_seconds_since(start);
    return rc;
}
