/*
 * A manifest has a checksum, which whoever changes a number on purpose makes anew. So numbers are
 * not trusted for it: each is bounded by others, and those that nothing bounds by a constant. The
 * order is that of dependence: what a bound is made of was checked before it.
 */
#include "index/plan/manifest/check.h"

#include <float.h>
#include <string.h>

#include "base/folder/drps_manifest.h"
#include "index/plan/drps_algorithm.h"
#include "index/plan/drps_batch.h"
#include "index/plan/drps_names.h"

enum {
    FACTORS_MOST = 65535,
    FLOATS_OF_A_PARAMETER = 3
}; /* itself and at most two of its optimizer */

#define COUNT_MOST (UINT64_C(1) << 44)       /* samples, entries, uses: some hundred terabytes */
#define SEEK_NS_MOST UINT64_C(1000000000000) /* a quarter of an hour */
#define TRANSFER_BPS_MOST UINT64_C(1000000000000000)

static uint64_t least_of(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t count_most(uint64_t a, uint64_t b)
{
    return least_of(drps_product(a, b), COUNT_MOST);
}

/* What all bounds are made of. */
struct sizes {
    uint64_t all_rows; /* of the whole plan */
    uint64_t workers;
    int part;       /* the plan is that of one rank */
    int no_rows;    /* which has none */
    int circulates; /* ranks hold ranges of rows in turn */
    uint64_t held;  /* rows, counted for each rank that holds them at some time, at most */
};

int drps_tables_check(const struct drps_table *tables, size_t n, const char *path,
                      uint64_t *rows_out, struct drps_err *err)
{
    uint64_t end = 0;
    *rows_out = 0;
    for (size_t t = 0; t < n; t++) {
        const struct drps_bound bounds[] = {
            {"first", tables[t].first, end, end, "the table before it"},
            {"rows", tables[t].rows, 0, DRPS_NO_ROW - 1 - end, "a row of 32 bits"},
        };
        int rc = drps_manifest_check(bounds, sizeof(bounds) / sizeof(bounds[0]), path, err);
        if (rc < 0) {
            (void)drps_err_context(err, "table %zu", t);
            return rc;
        }
        end += tables[t].rows;
    }
    *rows_out = end;
    return 0;
}

/* A user, an item that was chosen, and those drawn against it. */
static uint64_t roles_of(const struct drps_plan_info *i)
{
    const struct drps_plan_negatives *n = &i->negatives;
    return DRPS_ROLE_NEGATIVE + (n->each > n->test ? n->each : n->test);
}

/* 1: the shuffled order may have lanes, which are for ratings. */
static int may_mix(const struct drps_plan_info *i)
{
    const struct drps_algorithm *a = drps_algorithm_find(i->algo);
    return a && drps_algorithm_rates(a) && !drps_algorithm_draws(a) &&
           strcmp(i->order, "shuffled") == 0;
}

uint64_t drps_plan_entries_most(const struct drps_plan_info *i, uint64_t rows)
{
    enum { READ_MOST = 1 << 28 }; /* of a sample */
    return drps_plan_row_fields(i) ? READ_MOST : rows;
}

/* Each batch has a sample of some worker, and none has more samples than the largest. */
static int check_samples(const struct drps_plan_info *i, const struct sizes *s, const char *path,
                         struct drps_err *err)
{
    const uint64_t larger = i->samples > i->test_samples ? i->samples : i->test_samples;
    const uint64_t round = drps_product(s->workers, i->max_batch_samples);
    const uint64_t entries = drps_plan_entries_most(i, s->all_rows);
    const uint64_t nnz =
        count_most(i->max_batch_samples, drps_plan_entries_most(i, i->max_batch_rows));
    /* Where rows circulate the steps of a rank are its own batches, and hand-overs. */
    const uint64_t least = s->circulates ? 0 : i->batches;
    const uint64_t eval_least = s->circulates ? 0 : i->eval_batches;
    const uint64_t most = s->circulates ? COUNT_MOST : count_most(i->batches, round);
    const uint64_t eval_most = s->circulates ? COUNT_MOST : count_most(i->eval_batches, round);
    const int net = i->net[0] != '\0'; /* whose rows have factors for all fields */
    const uint64_t classes = net ? 0 : drps_classes_count(i->classes);
    const uint64_t fields = drps_plan_row_fields(i) && !net ? i->field_count : 1;
    const uint64_t dim = classes      ? classes
                         : i->outputs ? i->outputs
                                      : (uint64_t)i->factors * fields + 1;
    const char *of = classes ? "the classes" : i->outputs ? "the outputs" : "the factors";
    const uint64_t fields_most = i->negatives.each ? roles_of(i)
                                 : i->numbers      ? (uint64_t)DRPS_DENSE_MOST
                                 : net             ? DRPS_FIELD_MAX + 1
                                 : classes || i->outputs || !i->factors
                                     ? 0
                                     : (DRPS_DIM_MAX - 1) / (uint64_t)i->factors;
    const struct drps_bound bounds[] = {
        {"factors", i->factors, 0, classes || i->outputs ? 0 : FACTORS_MOST, "an algorithm"},
        {"field_count", i->field_count, i->negatives.each ? roles_of(i) : 0, fields_most,
         i->negatives.each ? "the negatives" : "the factors"},
        {"dim", i->dim, dim, dim, of},
        {"row_bytes", i->row_bytes, 0, i->dim * sizeof(float) * FLOATS_OF_A_PARAMETER, "the dim"},
        {"batches", i->batches, 0, INT32_MAX, "an epoch"},
        {"test_batches", i->eval_batches, 0, INT32_MAX - least_of(i->batches, INT32_MAX),
         "an epoch"},
        {"max_batch_samples", i->max_batch_samples, 0, least_of(larger, UINT32_MAX),
         "the number of samples"},
        {"samples", i->samples, least, most, "the batches' number and size"},
        {"test_samples", i->test_samples, eval_least, eval_most, "the batches' number and size"},
        {"batch_size", i->batch_size, 0, COUNT_MOST, "memory"},
        {"max_batch_rows", i->max_batch_rows, 0, s->all_rows, "the number of rows"},
        {"max_batch_nnz", i->max_batch_nnz, 0, nnz, "the largest batch"},
        {"max_body_bytes", i->max_body_bytes, 0,
         drps_batch_plain_bound(i->max_batch_samples, i->max_batch_nnz, drps_plan_numbers_each(i)),
         "the largest batch"},
        {"nnz", i->nnz, 0, count_most(i->samples, entries), "samples and rows"},
        {"test_nnz", i->test_nnz, 0, count_most(i->test_samples, entries), "samples and rows"},
        {"test_unseen", i->test_unseen, 0, COUNT_MOST, "memory"},
        {"grid_users", i->grid_users, 0, DRPS_GRID_GROUPS_MAX, "a grid"},
        {"grid_items", i->grid_items, i->grid_users ? 1 : 0,
         i->grid_users ? DRPS_GRID_GROUPS_MAX : 0, "a grid"},
        {"lanes", i->lanes, s->circulates ? s->workers : 0,
         i->grid_users || may_mix(i) ? DRPS_BATCH_LANES : 0, "the order and the workers"},
    };
    return drps_manifest_check(bounds, sizeof(bounds) / sizeof(bounds[0]), path, err);
}

/* Check what follows from the rows: blocks and windows. Sums over an epoch have a part a step. */
static int check_rows(const struct drps_plan_info *i, const struct sizes *s, const char *path,
                      struct drps_err *err)
{
    const uint64_t steps = i->batches + i->eval_batches;
    const uint64_t row_uses = count_most(steps, s->held), block_uses = count_most(steps, i->blocks);
    const struct drps_bound bounds[] = {
        {"rows", i->rows,
         s->no_rows ? 0
         : s->part  ? 1
                    : s->all_rows,
         s->no_rows ? 0 : s->all_rows - (s->circulates ? 0 : i->ranks.first_row), "the tables"},
        {"blocks", i->blocks, 0, s->held, "the number of rows"},
        {"block_bytes", i->block_bytes, 0, COUNT_MOST, "memory"},
        {"max_block_rows", i->max_block_rows, 0, i->rows, "the number of rows"},
        {"max_step_blocks", i->max_step_blocks, 0, i->blocks, "the number of blocks"},
        {"max_step_block_rows", i->max_step_block_rows, 0, i->rows, "the number of rows"},
        {"windows_later", i->windows_later, 0, 1, "yes and no"},
        {"windows", i->windows, 0, i->windows_later ? 0 : steps, "the number of batches"},
        {"max_window_rows", i->max_window_rows, 0, i->rows, "the number of rows"},
        {"working_set_rows", i->working_set_rows, i->max_window_rows, i->rows,
         "the windows and rows"},
        {"window_rows", i->window_rows, 0, count_most(i->windows, s->held), "windows and rows"},
        {"window_rows_kept", i->window_rows_kept, 0, i->window_rows, "the rows of windows"},
        {"window_rows_moved", i->window_rows_moved, 0, i->window_rows - i->window_rows_kept,
         "the rows of windows"},
        {"row_uses", i->row_uses, 0, row_uses, "batches and rows"},
        {"block_uses", i->block_uses, 0, block_uses, "batches and blocks"},
        {"block_use_rows", i->block_use_rows, 0, row_uses, "batches and rows"},
        {"runs", i->runs, 0, i->block_uses, "the uses of blocks"},
        {"run_rows", i->run_rows, 0, row_uses, "batches and rows"},
        {"seek_ns", i->seek_ns, 0, SEEK_NS_MOST, "a disk"},
        {"transfer_bps", i->transfer_bps, 0, TRANSFER_BPS_MOST, "a disk"},
    };
    return drps_manifest_check(bounds, sizeof(bounds) / sizeof(bounds[0]), path, err);
}

enum { STATES_MOST = 3 };

/* Rows of batches that workers have themselves are not more than those that they would pull. A
 * net's are not handed on: each round has its parameters. */
static int check_handed(const struct drps_plan_info *i, const struct sizes *s, const char *path,
                        struct drps_err *err)
{
    const struct drps_plan_ranks *r = &i->ranks;
    const struct drps_plan_handed *h = &r->handed;
    const int can = !s->circulates && !r->residual_slots && !i->net[0];
    const uint64_t slots = h->slots && can ? s->all_rows : 0;
    const uint64_t served = slots ? r->served_rows : 0, pulled = slots ? r->pulled_rows : 0;
    const uint64_t arrived =
        slots ? count_most(drps_product(i->batches, s->part ? 1 : s->workers), s->all_rows) : 0;
    const struct drps_bound bounds[] = {
        {"slots", h->slots, 0, slots, "the tables"},
        {"states", h->states, 0, slots ? STATES_MOST : 0, "optimizers"},
        {"used", h->used, 0, pulled, "the rows of batches"},
        {"taken", h->taken, 0, h->used, "the rows that are used"},
        {"returned", h->returned, 0, h->used, "the rows that are used"},
        {"handed", h->handed, 0, h->used - least_of(h->used, h->returned),
         "the rows that are used and not returned"},
        {"arrived", h->arrived, 0, arrived, "batches and rows"},
        {"away", h->away, 0, served, "the rows of rounds"},
        {"given", h->given, 0, h->away, "the rows that are away"},
        {"regained", h->regained, 0, h->away, "the rows that are away"},
    };
    return drps_manifest_check(bounds, sizeof(bounds) / sizeof(bounds[0]), path, err);
}

/* The whole has sums over all ranks. */
static int check_ranks(const struct drps_plan_info *i, const struct sizes *s, const char *path,
                       struct drps_err *err)
{
    const struct drps_plan_ranks *r = &i->ranks;
    const uint64_t all = least_of(drps_product(i->batch_size, s->workers), i->samples);
    const uint64_t round_samples = s->circulates ? i->max_batch_samples : all;
    const uint64_t batches = drps_product(i->batches, s->part ? 1 : s->workers);
    const uint64_t eval_batches = drps_product(i->eval_batches, s->part ? 1 : s->workers);
    const uint64_t servers = s->part ? 1 : r->servers;
    const uint64_t served = drps_product(i->batches, servers);
    const uint64_t eval_served = drps_product(i->eval_batches, servers);
    const struct drps_bound bounds[] = {
        {"round_samples", r->round_samples, round_samples, round_samples, "batch size and workers"},
        {"max_round_uses", r->max_round_uses, 0, drps_product(s->workers, i->max_batch_rows),
         "the largest batch of each worker"},
        {"max_round_rows", r->max_round_rows, 0, least_of(i->rows, r->max_round_uses),
         "the rows of batches"},
        {"pulled_rows", r->pulled_rows, 0, count_most(batches, i->max_batch_rows),
         "the rows of batches"},
        {"test_pulled_rows", r->eval_pulled_rows, 0, count_most(eval_batches, i->max_batch_rows),
         "the rows of batches"},
        {"served_rows", r->served_rows, 0, count_most(served, r->max_round_uses),
         "the rows of rounds"},
        {"test_served_rows", r->eval_served_rows, 0, count_most(eval_served, r->max_round_uses),
         "the rows of rounds"},
        {"residual_slots", r->residual_slots, 0, s->circulates ? 0 : s->all_rows, "the tables"},
        {"own_slots", (uint64_t)r->own_slots, 0, r->residual_slots != 0, "residual_slots"},
        {"published_slots", r->published_slots, 0, r->residual_slots ? s->all_rows : 0,
         "the tables and residual_slots"},
    };
    return drps_manifest_check(bounds, sizeof(bounds) / sizeof(bounds[0]), path, err);
}

/* Ranges follow on each other, one of them is the rank's own, the first one begins with the
 * intercept, and all are of as many rows as the part has. */
static int check_held(const struct drps_plan_info *i, const struct sizes *s, const char *path,
                      struct drps_err *err)
{
    const struct drps_plan_ranks *r = &i->ranks;
    uint64_t end = 0, rows = 0;
    int own = 0;
    const struct drps_bound largest = {"max_range_rows", r->max_range_rows, 0, i->rows,
                                       "the number of rows"};
    int rc = drps_manifest_check(&largest, 1, path, err);
    if (rc < 0) return rc;
    for (size_t k = 0; k < r->held_n; k++) {
        const struct drps_bound bounds[] = {
            {"first", r->held[k].first, end, s->all_rows, "the range before it"},
            {"rows", r->held[k].rows, 1, s->all_rows - least_of(r->held[k].first, s->all_rows),
             "the tables"},
        };
        rc = drps_manifest_check(bounds, sizeof(bounds) / sizeof(bounds[0]), path, err);
        if (rc < 0) {
            (void)drps_err_context(err, "range %zu", k);
            return rc;
        }
        end = r->held[k].first + r->held[k].rows;
        rows += r->held[k].rows;
        own |= r->held[k].first == r->first_row;
    }
    if (rows == i->rows && own && i->lanes % s->workers == 0 &&
        (i->grid_users == 1 || i->grid_items == 1) &&
        i->grid_users * i->grid_items <= DRPS_PLAN_CIRCULATING_CELLS &&
        (!drps_plan_common_rows(i) || r->held[0].first == 0))
        return 0;
    return drps_err_set(err, DRPS_E_CORRUPT,
                        "%s: ranges of %llu rows, of which %s is the rank's own, in a part of %llu "
                        "rows of %llu lanes for %llu workers",
                        path, (unsigned long long)rows, own ? "one" : "none",
                        (unsigned long long)i->rows, (unsigned long long)i->lanes,
                        (unsigned long long)s->workers);
}

/* All are 0, or those of training are above. No sum is more than as many samples of the largest
 * float. */
static int check_weights(const struct drps_plan_info *i, const char *path, struct drps_err *err)
{
    const struct drps_plan_weights *w = &i->weights;
    const double most = (double)COUNT_MOST * (double)FLT_MAX;
    const int none = w->most == 0 && w->sum == 0 && w->test_sum == 0;
    if (none || (w->most > 0 && w->most <= (double)FLT_MAX && w->sum >= w->most && w->sum <= most &&
                 w->test_sum >= 0 && w->test_sum <= most))
        return 0;
    return drps_err_set(err, DRPS_E_CORRUPT,
                        "%s: samples that weigh %g together, %g at most, and %g of evaluation",
                        path, w->sum, w->most, w->test_sum);
}

/* A loss is a text of an algorithm for such, and its scores are those of the rows. */
static int check_text(const struct drps_plan_info *i, const char *path, struct drps_err *err)
{
    const struct drps_algorithm *a = drps_algorithm_find(i->algo);
    const int due = a && drps_algorithm_has_text(a);
    struct drps_err why = DRPS_ERR_INIT;
    struct drps_expr e;
    if (!i->expression[0] && !due && !i->outputs) return 0;
    if (!due || !i->expression[0])
        return drps_err_set(err, DRPS_E_CORRUPT, "%s: the algorithm %s with %s expression", path,
                            i->algo, i->expression[0] ? "an" : "no");
    if (drps_expr_parse(&e, i->expression, i->outputs > 0, &why) < 0)
        return drps_err_set(err, DRPS_E_CORRUPT, "%s: %s", path, why.text);
    const uint64_t least = e.vector_scores && !e.vector_y ? DRPS_EXPR_OUTPUTS_LEAST : 0;
    const struct drps_bound outputs = {"outputs", i->outputs, least,
                                       least ? DRPS_EXPR_OUTPUTS_MOST : 0, "the expression"};
    if (e.vector_y != (i->classes != NULL))
        return drps_err_set(err, DRPS_E_CORRUPT, "%s: the expression is of %s", path,
                            e.vector_y ? "classes, and there are none" : "numbers, not of classes");
    return drps_manifest_check(&outputs, 1, path, err);
}

int drps_plan_check_sequences(const struct drps_plan_sequences *s, const struct drps_layers *net,
                              uint32_t fields, const char *format, const char *path,
                              struct drps_err *err)
{
    const int has = net->n && net->has_sequences;
    if ((s->most > 0) == has && s->most <= DRPS_SEQUENCE_MOST && (has || !s->lines) &&
        (strcmp(format, "tokens") == 0) == has && (!has || fields == DRPS_SEQUENCE_MARKS))
        return 0;
    return drps_err_set(err, DRPS_E_CORRUPT,
                        "%s: sequences of %u samples at most, in format %s with %u fields, and a "
                        "net that reads %s",
                        path, s->most, format, fields, has ? "sequences" : "none");
}

/* A net is of the algorithm for nets, and its parameters fill the plan's first rows. */
static int check_net(const struct drps_plan_info *i, const char *path, struct drps_err *err)
{
    const struct drps_algorithm *a = drps_algorithm_find(i->algo);
    const int due = a && drps_algorithm_is_net(a);
    const uint32_t common = drps_plan_common_rows(i);
    struct drps_err why = DRPS_ERR_INIT;
    struct drps_layers net = {.n = 0};
    if (!i->net[0] && i->numbers)
        return drps_err_set(err, DRPS_E_CORRUPT, "%s: numbers by place, and no net", path);
    if (!i->net[0] && !due && common > 1)
        return drps_err_set(err, DRPS_E_CORRUPT, "%s: an intercept of %u rows", path, common);
    if (!i->net[0] && !due)
        return drps_plan_check_sequences(&i->sequences, &net, i->field_count, i->format, path, err);
    if (!due || !i->net[0])
        return drps_err_set(err, DRPS_E_CORRUPT, "%s: the algorithm %s with %s net", path, i->algo,
                            i->net[0] ? "a" : "no");
    if (drps_plan_layers(i, &net, &why) < 0)
        return drps_err_set(err, DRPS_E_CORRUPT, "%s: %s", path, why.text);
    if (net.factors == i->factors && i->dim == 1 + i->factors &&
        common == drps_layers_rows(&net, i->dim) &&
        (i->field_count > 0) == drps_layers_take_fields(&net) &&
        (!i->numbers || (net.has_fields && !net.has_features)))
        return drps_plan_check_sequences(&i->sequences, &net, i->field_count, i->format, path, err);
    return drps_err_set(err, DRPS_E_CORRUPT,
                        "%s: %u factors, %u floats a row, %u rows and %u fields for a net of %u "
                        "factors and %llu parameters",
                        path, i->factors, i->dim, common, i->field_count, net.factors,
                        (unsigned long long)net.floats);
}

/* Bins are numbers, of features that an algorithm knows as such. */
static int check_hashing(const struct drps_plan_info *i, const char *path, struct drps_err *err)
{
    const struct drps_algorithm *a = drps_algorithm_find(i->algo);
    struct drps_err why = DRPS_ERR_INIT;
    if (!i->hashing.bits) return 0;
    if (i->string_names)
        return drps_err_set(err, DRPS_E_CORRUPT, "%s: features are hashed, and strings", path);
    if (!a || drps_algorithm_check_hashing(a, &i->hashing, i->field_count, &why) == 0) return 0;
    return drps_err_set(err, DRPS_E_CORRUPT, "%s: %s", path, why.text);
}

/* Checks that negatives are there for algorithms that draw, and only for these. */
static int check_negatives(const struct drps_plan_info *i, const char *path, struct drps_err *err)
{
    const struct drps_plan_negatives *n = &i->negatives;
    const struct drps_algorithm *a = drps_algorithm_find(i->algo);
    const uint64_t least = a && drps_algorithm_draws(a), most = least ? DRPS_NEGATIVES_MOST : 0;
    const struct drps_bound bounds[] = {
        {"each", n->each, least, most, "the algorithm"},
        {"test", n->test, least, most, "the algorithm"},
        {"draws", n->draws, least, most, "the algorithm"},
        {"items", n->items, least, least ? DRPS_NO_ROW : 0, "a row of 32 bits"},
        {"few", n->few, 0, COUNT_MOST, "memory"},
        {"test_few", n->test_few, 0, COUNT_MOST, "memory"},
        {"test_new", n->test_new, 0, COUNT_MOST, "memory"},
        {"below", n->below, 0, COUNT_MOST, "memory"},
    };
    int rc = drps_manifest_check(bounds, sizeof(bounds) / sizeof(bounds[0]), path, err);
    if (rc < 0) return rc;
    if (n->alpha >= 0 && n->alpha <= (double)FLT_MAX && n->weight >= 0 &&
        n->weight <= (double)FLT_MAX)
        return 0;
    return drps_err_set(err, DRPS_E_CORRUPT, "%s: negatives with alpha %g and weight %g", path,
                        n->alpha, n->weight);
}

int drps_plan_check_numbers(const struct drps_plan_info *i, const char *path, struct drps_err *err)
{
    const struct drps_plan_ranks *r = &i->ranks;
    const int several = r->count > 1;
    struct sizes s = {.workers = r->workers,
                      .part = several && r->rank != DRPS_PLAN_WHOLE,
                      .circulates = drps_plan_circulates(i)};
    s.no_rows = s.part && !drps_rank_serves(r, r->rank);
    if (!i->classification && i->classes)
        return drps_err_set(err, DRPS_E_CORRUPT, "%s: classes, and labels that are numbers", path);
    int rc = check_text(i, path, err);
    if (rc == 0) rc = check_hashing(i, path, err);
    if (rc == 0) rc = check_negatives(i, path, err);
    if (rc == 0) rc = drps_tables_check(i->tables, i->tables_n, path, &s.all_rows, err);
    if (rc == 0) rc = check_net(i, path, err);
    s.held = s.circulates && !s.part ? count_most(i->rows, s.workers) : i->rows;
    const struct drps_bound base = {"rows of the base", i->base_rows, i->base[0] ? 1 : 0,
                                    i->base[0] ? s.all_rows : 0, "the tables"};
    if (rc == 0) rc = drps_manifest_check(&base, 1, path, err);
    const struct drps_bound first_row = {"first_row", r->first_row, 0, s.part ? s.all_rows : 0,
                                         "the tables"};
    if (rc == 0) rc = drps_manifest_check(&first_row, 1, path, err);
    if (rc == 0) rc = check_samples(i, &s, path, err);
    if (rc == 0) rc = check_weights(i, path, err);
    if (rc == 0) rc = check_rows(i, &s, path, err);
    if (rc == 0 && several) rc = check_ranks(i, &s, path, err);
    if (rc == 0 && several) rc = check_handed(i, &s, path, err);
    if (rc == 0 && s.circulates && !drps_ranks_are_alike(r))
        return drps_err_set(err, DRPS_E_CORRUPT,
                            "%s: rows circulate, and of %u ranks %u have rows and %u samples", path,
                            r->count, r->servers, r->workers);
    return rc == 0 && s.part && s.circulates ? check_held(i, &s, path, err) : rc;
}
