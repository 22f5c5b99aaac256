/* The options of a run: checked, and defaults filled in. */
#include <stdio.h>
#include <string.h>

#include "base/drps_size.h"
#include "index/blocks/remote/drps_remote.h"
#include "index/order/drps_grid.h"
#include "index/together/drps_together.h"
#include "index/ranks/drps_placement.h"
#include "index/run/run.h"

enum { MIN_MEMORY_BYTES = 64 << 20 };
enum { SEEK_NS = 40000, TRANSFER_BPS = 1200000000, TOP_K = 50 };

static int check_order(struct drps_index_options *o, struct drps_err *err)
{
    const char *order = o->order ? o->order : "shuffled";
    int grid = strcmp(order, "grid") == 0, micro = strcmp(order, "micro") == 0;
    if (!grid && !micro && strcmp(order, "shuffled") != 0 && strcmp(order, "given") != 0)
        return drps_err_set(err, DRPS_E_CONFIG,
                            "the order must be shuffled, given, grid or micro, not %s", order);
    if ((o->grid_users || o->grid_items) && !grid)
        return drps_err_set(err, DRPS_E_CONFIG,
                            "groups of a grid are for the order grid only, not for %s", order);
    const struct drps_algorithm *a = drps_algorithm_find(o->algo);
    if (grid && (!drps_algorithm_rates(a) || drps_algorithm_draws(a)))
        return drps_err_set(err, DRPS_E_CONFIG,
                            "the order grid cuts the users and items of ratings into groups, so it "
                            "needs the algorithm lmf; for %s use the order shuffled",
                            o->algo);
    if (micro && drps_algorithm_draws(a))
        return drps_err_set(err, DRPS_E_CONFIG,
                            "the order micro groups the samples that are read, and for %s more are "
                            "drawn: use the order shuffled",
                            o->algo);
    if (o->grid_users > DRPS_GRID_GROUPS_MAX || o->grid_items > DRPS_GRID_GROUPS_MAX ||
        !o->grid_users != !o->grid_items)
        return drps_err_set(err, DRPS_E_CONFIG,
                            "groups of a grid: both numbers must lie between 1 and %d, not %u,%u",
                            DRPS_GRID_GROUPS_MAX, o->grid_users, o->grid_items);
    if (o->lanes > 1 && (!drps_algorithm_rates(a) || drps_algorithm_draws(a)))
        return drps_err_set(err, DRPS_E_CONFIG,
                            "%u lanes: they are for ratings, of the algorithm lmf, not for %s",
                            o->lanes, o->algo);
    if (o->lanes > 1 && !grid && strcmp(order, "shuffled") != 0)
        return drps_err_set(err, DRPS_E_CONFIG,
                            "%u lanes: they are for the orders shuffled and grid, as they change "
                            "the order of samples",
                            o->lanes);
    if (o->lanes > DRPS_BATCH_LANES)
        return drps_err_set(err, DRPS_E_CONFIG, "the lanes must lie between 1 and %d, not %u",
                            DRPS_BATCH_LANES, o->lanes);
    return 0;
}

struct drps_plan_ranks drps_run_ranks(const struct drps_index_options *o)
{
    return drps_plan_ranks_of(o->workers, o->servers, o->separate);
}

int drps_run_circulates(const struct drps_index_options *o)
{
    return drps_run_is_grid(o) && o->workers > 1 && !o->partition && !o->from_plan;
}

static int has_single_pass(const struct drps_index_options *o)
{
    return o->grid_users == 1 || o->grid_items == 1;
}

int drps_run_numbers_by_lane(const struct drps_index_options *o)
{
    return drps_run_circulates(o) || (o->lanes > 1 && !o->from_plan && has_single_pass(o));
}

/* Checks the lanes of several workers. Where rows circulate there is at least one a worker; a
 * finished plan in shuffled order loses its lanes. */
static int check_lanes(struct drps_index_options *o, struct drps_err *err)
{
    if (!drps_run_circulates(o)) {
        if (o->lanes < 2 || drps_run_ranks(o).count < 2) return 0;
        if (o->from_plan && !drps_run_is_grid(o)) {
            o->lanes = 0;
            return 0;
        }
        return drps_err_set(err, DRPS_E_CONFIG,
                            "%u lanes of several workers are for rows that circulate, in a plan "
                            "made from data and without a partition",
                            o->lanes);
    }
    if (!o->lanes) o->lanes = o->workers;
    if (o->lanes > DRPS_BATCH_LANES)
        return drps_err_set(err, DRPS_E_CONFIG,
                            "%u workers: rows circulate between %d at most; name a partition for "
                            "rounds in which rows are pulled and pushed",
                            o->workers, DRPS_BATCH_LANES);
    if (o->lanes % o->workers)
        return drps_err_set(err, DRPS_E_CONFIG,
                            "%u lanes for %u workers: each worker must have as many", o->lanes,
                            o->workers);
    if (o->grid_users &&
        (!has_single_pass(o) || o->grid_users * o->grid_items > DRPS_PLAN_CIRCULATING_CELLS))
        return drps_err_set(err, DRPS_E_CONFIG,
                            "a grid of %u x %u groups: where rows circulate, users or items must "
                            "be one group, and the others %d at most; or name a partition",
                            o->grid_users, o->grid_items, DRPS_PLAN_CIRCULATING_CELLS);
    if (!o->samples) return 0;
    return drps_err_set(err, DRPS_E_CONFIG,
                        "samples %s: where rows circulate, samples go where their rows are; or "
                        "name a partition",
                        o->samples);
}

int drps_index_counts(const char *by)
{
    const struct block_builder *builder = drps_block_builder_find(by);
    return builder && builder->counts;
}

static int check_remote(const struct drps_blocks_options *o, struct drps_err *err)
{
    if (!o->remote) return 0;
    if (!drps_index_counts(o->by))
        return drps_err_set(
            err, DRPS_E_CONFIG,
            "block builder %s counts nothing that several machines could share: use "
            "auto, topk, pairwise or greedy, or run it on one machine",
            o->by);
    if (o->shards)
        return drps_err_set(err, DRPS_E_CONFIG,
                            "shards are processes of one machine: leave them out where several "
                            "machines count");
    if (o->remote->peers > DRPS_REMOTE_PEERS_MAX)
        return drps_err_set(err, DRPS_E_CONFIG, "%u machines: at most %d can count",
                            o->remote->peers, DRPS_REMOTE_PEERS_MAX);
    return 0;
}

/* Rows and samples that are left out: which ones, and that the builder leaves any out. */
static int check_left_out(const struct drps_blocks_options *o, const struct block_builder *builder,
                          struct drps_err *err)
{
    const int prunes = !!o->prune + !!o->prune_to + (o->keep_share > 0);
    if (!(o->keep_share >= 0 && o->keep_share <= 1))
        return drps_err_set(err, DRPS_E_CONFIG,
                            "the share of rows that pruning keeps must lie between 0 and 1");
    if (prunes > 1)
        return drps_err_set(
            err, DRPS_E_CONFIG,
            "to prune rows of few batches and to prune all but so many rows exclude "
            "each other");
    if (prunes && !builder->prunes)
        return drps_err_set(err, DRPS_E_CONFIG,
                            "block builder %s prunes no rows: use topk, pairwise or greedy, or "
                            "leave out pruning",
                            builder->name);
    if (!o->sample_samples || builder->counts) return 0;
    return drps_err_set(err, DRPS_E_CONFIG,
                        "block builder %s counts nothing, of all samples or of a share: use auto, "
                        "topk, pairwise, greedy or frequency, or leave out the share of samples",
                        builder->name);
}

static int check_blocks(struct drps_blocks_options *o, struct drps_err *err)
{
    if (!o->by) o->by = "pattern";
    const struct block_builder *builder = drps_block_builder_find(o->by);
    if (!builder) return drps_err_set(err, DRPS_E_CONFIG, "there is no block builder %s", o->by);
    if (!(o->sample >= 0 && o->sample <= 1) || !(o->min_gain_us >= 0))
        return drps_err_set(err, DRPS_E_CONFIG,
                            "the share of batches must lie between 0 and 1, and the least gain not "
                            "below 0");
    if (o->shards > REMOTE_SHARDS)
        return drps_err_set(err, DRPS_E_CONFIG, "the shards must lie between 1 and %d, not %u",
                            REMOTE_SHARDS, o->shards);
    int rc = check_left_out(o, builder, err);
    if (rc == 0) rc = check_remote(o, err);
    if (rc < 0) return rc;
    if (!o->top_k) o->top_k = TOP_K;
    if (o->sample <= 0) o->sample = 1;
    if (!o->shards) o->shards = 1;
    if (!o->calibrate) {
        if (!o->seek_ns) o->seek_ns = SEEK_NS;
        if (!o->transfer_bps) o->transfer_bps = TRANSFER_BPS;
    } else if (o->seek_ns || o->transfer_bps) {
        return drps_err_set(err, DRPS_E_CONFIG,
                            "to measure the disk and to say what a request costs and how fast its "
                            "bytes go exclude each other");
    }
    return 0;
}

/* What only the placing of units weighs. */
static int check_units(const struct drps_index_options *o, struct drps_err *err)
{
    const char *p = o->partition ? o->partition : "range";
    if (o->net_bps && strcmp(p, "greedy") != 0)
        return drps_err_set(
            err, DRPS_E_CONFIG,
            "the speed of the network that placing rows weighs is for the partition "
            "greedy, not %s",
            p);
    if (o->has_hot_share &&
        (strcmp(p, "range") == 0 || strcmp(p, "counts") == 0 || strcmp(p, "auto") == 0))
        return drps_err_set(err, DRPS_E_CONFIG,
                            "hot rows are placed apart from their blocks by the partition greedy, "
                            "dppa or hash, not %s",
                            p);
    if (o->hot_share >= 0 && o->hot_share <= 1) return 0;
    return drps_err_set(err, DRPS_E_CONFIG, "the share of hot rows must lie between 0 and 1");
}

static int check_partition(const struct drps_index_options *o, struct drps_err *err)
{
    static const char *const known[] = {"range", "counts", "greedy", "dppa", "auto", "hash"};
    if (!o->partition) return check_units(o, err);
    if (drps_run_ranks(o).count < 2)
        return drps_err_set(err, DRPS_E_CONFIG,
                            "partition %s shares rows among machines: it needs 2 workers or more",
                            o->partition);
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if (strcmp(o->partition, known[i]) == 0) return check_units(o, err);
    return drps_err_set(err, DRPS_E_CONFIG,
                        "the partition must be range, counts, greedy, dppa, auto or hash, not %s",
                        o->partition);
}

/* How many ranks there are is bounded, and so is what can be done where they are not alike. */
static int check_servers(struct drps_index_options *o, struct drps_err *err)
{
    if (!o->servers) o->servers = o->workers;
    if (o->servers > DRPS_PLAN_WORKERS_MAX)
        return drps_err_set(err, DRPS_E_CONFIG, "the servers must lie between 1 and %d, not %u",
                            DRPS_PLAN_WORKERS_MAX, o->servers);
    const struct drps_plan_ranks ranks = drps_run_ranks(o);
    if (ranks.count > DRPS_PLAN_WORKERS_MAX)
        return drps_err_set(err, DRPS_E_CONFIG,
                            "%u workers and %u servers on machines of their own are %u ranks: at "
                            "most %d",
                            o->workers, o->servers, ranks.count, DRPS_PLAN_WORKERS_MAX);
    if (drps_ranks_are_alike(&ranks)) return 0;
    if (drps_run_is_grid(o) && !o->partition && !o->from_plan)
        return drps_err_set(err, DRPS_E_CONFIG,
                            "in the order grid rows circulate between workers, each of which has "
                            "rows: leave the number of servers out, or name a partition");
    if (!o->partition || (strcmp(o->partition, "greedy") != 0 && strcmp(o->partition, "dppa") != 0))
        return 0;
    return drps_err_set(err, DRPS_E_CONFIG,
                        "partition %s places rows on machines that all have a worker, not on %u "
                        "servers of %u workers: use auto, range or hash",
                        o->partition, o->servers, o->workers);
}

/* Checks that samples can stay with their files. */
static int check_kept(const struct drps_index_options *o, struct drps_err *err)
{
    size_t sum = 0;
    if (drps_run_is_grid(o))
        return drps_err_set(err, DRPS_E_CONFIG,
                            "samples kept: in the order grid samples go to cells, whichever file "
                            "they are from; take another order, or have samples dealt");
    if (o->replay > 0 || drps_algorithm_draws(o->algorithm))
        return drps_err_set(err, DRPS_E_CONFIG,
                            "samples kept: %s, and belong to no worker's files; have samples dealt",
                            o->replay > 0
                                ? "replayed samples come from the plan that the run goes on from"
                                : "negatives are drawn from all items");
    if (o->matrix && o->workers > 1)
        return drps_err_set(
            err, DRPS_E_CONFIG,
            "samples kept: the samples of a matrix in memory come from no files that the "
            "workers could share; have samples dealt");
    for (uint32_t w = 0; o->inputs_of && w < o->workers; w++)
        sum += o->inputs_of[w];
    if (o->inputs_of ? sum == o->inputs_n : o->inputs_n % o->workers == 0) return 0;
    return drps_err_set(err, DRPS_E_CONFIG,
                        "samples kept: %zu file%s for %u workers; each worker has as many files: "
                        "give a multiple of %u, or have samples dealt",
                        o->inputs_n, o->inputs_n == 1 ? "" : "s", o->workers, o->workers);
}

static int check_samples(const struct drps_index_options *o, struct drps_err *err)
{
    if (!o->samples || strcmp(o->samples, "dealt") == 0) return 0;
    if (strcmp(o->samples, "kept") == 0) return o->ranks ? 0 : check_kept(o, err);
    if (strcmp(o->samples, "placed") != 0 && strcmp(o->samples, "round") != 0 &&
        !drps_run_samples_dppa(o))
        return drps_err_set(err, DRPS_E_CONFIG,
                            "samples must be dealt, kept, placed, round or dppa, not %s",
                            o->samples);
    if (drps_placement_follows_samples(o->partition)) return 0;
    return drps_err_set(err, DRPS_E_CONFIG,
                        "placed samples come to one machine, whose rows then follow: they need the "
                        "partition auto, greedy or dppa, not %s",
                        o->partition ? o->partition : "range");
}

static int check_machine_weights(const struct drps_index_options *o, struct drps_err *err)
{
    const struct drps_plan_ranks ranks = drps_run_ranks(o);
    if (!o->machine_weights_n) return 0;
    if (o->machine_weights_n != o->workers)
        return drps_err_set(
            err, DRPS_E_CONFIG,
            "%u weights of machines are given for %u workers: give one for each worker",
            o->machine_weights_n, o->workers);
    for (uint32_t w = 0; w < o->workers; w++)
        if (!(o->machine_weights[w] > 0 && o->machine_weights[w] <= 1e9))
            return drps_err_set(err, DRPS_E_CONFIG,
                                "the weights of machines must be above 0 and at most 1e9; that of "
                                "machine %u is %g",
                                w, o->machine_weights[w]);
    if (o->workers < 2 || drps_run_circulates(o) || !drps_ranks_are_alike(&ranks))
        return drps_err_set(err, DRPS_E_CONFIG,
                            "weights of machines are for rounds of 2 workers or more, each with a "
                            "server on its machine: %s, or leave them out",
                            o->workers < 2           ? "make a plan for more workers"
                            : drps_run_circulates(o) ? "here rows circulate; name a partition"
                                                     : "give as many servers as workers");
    if (drps_placement_renumbers(o->partition))
        return drps_err_set(err, DRPS_E_CONFIG,
                            "weights of machines are not for the partition %s: use range or counts",
                            o->partition);
    if (drps_run_places_samples(o))
        return drps_err_set(err, DRPS_E_CONFIG,
                            "weights of machines are not for samples %s: have samples dealt",
                            o->samples);
    return 0;
}

static int check_balance(const struct drps_index_options *o, struct drps_err *err)
{
    if (o->balance <= 0 && o->balance >= 0) return 0;
    if (!(o->balance >= 1))
        return drps_err_set(err, DRPS_E_CONFIG,
                            "to balance rounds, say how many times the mean entries a worker may "
                            "have at most: 1 or more, such as 1.03, not %g",
                            o->balance);
    if (o->workers < 2 || drps_run_circulates(o))
        return drps_err_set(err, DRPS_E_CONFIG, "to balance rounds %s",
                            o->workers > 1 ? "there must be rounds, and here rows circulate: name "
                                             "a partition, or do not balance"
                                           : "takes several workers: make a plan for 2 workers or "
                                             "more, or do not balance");
    if (!drps_run_places_samples(o) || drps_run_keeps_rounds(o)) return 0;
    return drps_err_set(
        err, DRPS_E_CONFIG,
        "to balance rounds samples must stay in their round, and with samples %s they "
        "do not: have samples dealt, or placed in their round",
        o->samples);
}

/* Checks that settings of DPPA are given only where it places what they are about: samples, or
 * rows. */
static int check_dppa(const struct drps_index_options *o, struct drps_err *err)
{
    const struct drps_dppa_wish *w = &o->dppa;
    const int of_samples = w->alpha || w->sample || w->beta > 0 || w->bins || w->rows_first;
    const int of_rows = w->single_rows || w->rows_first;
    if (!w->given) return 0;
    if (of_samples && !drps_run_samples_dppa(o))
        return drps_err_set(err, DRPS_E_CONFIG,
                            "alpha, beta, sample, bins and first say how dppa places samples, and "
                            "here it places none: say samples dppa, or leave them out");
    if (of_rows && (!o->partition || strcmp(o->partition, "dppa") != 0))
        return drps_err_set(err, DRPS_E_CONFIG,
                            "traffic, and rows first, say how dppa places rows, and here it places "
                            "none: say partition dppa, or leave them out");
    if (!w->rows_first) return 0;
    if (w->bins)
        return drps_err_set(
            err, DRPS_E_CONFIG,
            "bins stand for rows while dppa places samples, and with rows first the "
            "rows themselves are placed: leave out bins, or place samples first");
    if (!o->blocks.by || !drps_block_builder_find(o->blocks.by) ||
        !drps_block_builder_find(o->blocks.by)->orders)
        return 0;
    return drps_err_set(err, DRPS_E_CONFIG,
                        "rows that are placed before the samples keep their numbers, and the block "
                        "builder %s gives new ones: use pattern or none",
                        o->blocks.by);
}

static int check_residuals(const struct drps_index_options *o, struct drps_err *err)
{
    if (o->own_slots && o->residual_slots != UINT64_MAX)
        return drps_err_set(err, DRPS_E_CONFIG,
                            "each row can have a slot of its own where residual slots are not "
                            "bounded: ask for all of them");
    if (!o->residual_slots || (o->workers > 1 && !drps_run_circulates(o))) return 0;
    return drps_err_set(err, DRPS_E_CONFIG,
                        "residual slots are for gradients that are pushed: %s, or leave them out",
                        o->workers > 1 ? "here rows circulate; name a partition"
                                       : "make a plan for 2 workers or more");
}

static int check_hand_on(const struct drps_index_options *o, struct drps_err *err)
{
    if (!o->hand_on) return 0;
    if (o->workers < 2 || drps_run_circulates(o))
        return drps_err_set(err, DRPS_E_CONFIG, "rows are handed on %s",
                            o->workers > 1
                                ? "between rounds, and here they circulate: name a partition, or "
                                  "leave it out"
                                : "from worker to worker: make a plan for 2 workers or more, or "
                                  "leave it out");
    if (o->residual_slots)
        return drps_err_set(err, DRPS_E_CONFIG,
                            "rows that are handed on have no gradients to filter: leave out either "
                            "residual slots or handing on");
    return 0;
}

/* Topics have no intercept, and all documents change the same matrices of topics. */
static int check_topic(struct drps_index_options *o, const struct drps_algorithm *a,
                       struct drps_err *err)
{
    if (!drps_algorithm_is_topic(a)) return 0;
    o->no_bias = 1;
    if (o->weights_n || o->test_weights_n || o->reader.weight || o->reader.clicks ||
        o->reader.impressions || o->class_weights)
        return drps_err_set(err, DRPS_E_CONFIG, "the algorithm %s takes no weights of samples",
                            a->name);
    if (o->factors < DRPS_TOPICS_LEAST || o->factors > DRPS_TOPICS_MOST)
        return drps_err_set(err, DRPS_E_CONFIG, "%u topic%s: give %d to %d factors", o->factors,
                            o->factors == 1 ? "" : "s", DRPS_TOPICS_LEAST, DRPS_TOPICS_MOST);
    if (!o->residual_slots && !o->hand_on) return 0;
    return drps_err_set(err, DRPS_E_CONFIG,
                        "servers of topics add up what all documents change, whole and in each "
                        "round: leave %s out",
                        o->residual_slots ? "residual slots" : "handing rows on");
}

static int check_hashing(struct drps_index_options *o, const struct drps_algorithm *a,
                         struct drps_err *err)
{
    drps_hashing_complete(&o->hashing);
    int rc = drps_hashing_check(&o->hashing, err);
    return rc == 0 ? drps_algorithm_check_hashing(a, &o->hashing, 0, err) : rc;
}

static int no_outputs(const char *why, struct drps_err *err)
{
    return drps_err_set(err, DRPS_E_CONFIG, "the outputs are of %s: leave their number out", why);
}

/* A loss that is a text says which labels and rows there are. */
static int check_text(struct drps_index_options *o, const struct drps_algorithm *a,
                      struct drps_err *err)
{
    struct drps_expr e;
    o->algorithm = a;
    if (!drps_algorithm_has_text(a))
        return o->outputs ? no_outputs("losses that are expressions", err) : 0;
    if (!o->loss)
        return drps_err_set(err, DRPS_E_CONFIG,
                            "the algorithm %s needs a loss, such as "
                            "'cross_entropy(y, softmax(W*x))' or 'squared(y, w*x)'",
                            a->name);
    if (o->outputs && (o->outputs < DRPS_EXPR_OUTPUTS_LEAST || o->outputs > DRPS_EXPR_OUTPUTS_MOST))
        return drps_err_set(err, DRPS_E_CONFIG, "%u outputs: give %d to %d", o->outputs,
                            DRPS_EXPR_OUTPUTS_LEAST, DRPS_EXPR_OUTPUTS_MOST);
    int rc = drps_expr_parse(&e, o->loss, o->outputs > 0, err);
    if (rc == 0 && o->outputs && !e.vector_scores)
        rc = no_outputs("W*x, and this loss has w*x, which is one number", err);
    if (rc == 0) o->algorithm = drps_algorithm_of(a, &e);
    return rc;
}

/* Its text says which labels there are, and how many factors. */
static int check_net(struct drps_index_options *o, const struct drps_layers *net,
                     struct drps_err *err)
{
    if (!drps_algorithm_is_net(o->algorithm)) return 0;
    if (o->no_bias)
        return drps_err_set(err, DRPS_E_CONFIG,
                            "a net's parameters lie with its intercept: do not leave that out");
    if (o->hand_on)
        return drps_err_set(err, DRPS_E_CONFIG,
                            "every round moves all parameters of a net: leave handing rows on out");
    if (o->ranks)
        return drps_err_set(err, DRPS_E_CONFIG,
                            "one machine makes the plan of a net: run drps-index on one");
    if (net->has_classes && o->task && strcmp(o->task, "regression") == 0)
        return drps_err_set(err, DRPS_E_CONFIG,
                            "a net with `full classes` is for labels that are classes, not for "
                            "regression: write `full 1` in its place");
    o->algorithm = drps_algorithm_of_net(net->has_classes, net->has_sequences);
    o->factors = net->factors;
    o->has_fields = drps_layers_take_fields(net);
    o->one_feature = !net->has_features;
    o->image = drps_layers_image(net);
    return 0;
}

int drps_run_above_memory(const struct drps_index_options *o, char *text, size_t cap)
{
    char given[32], have[32];
    const uint64_t bytes = drps_memory_available();
    if (o->memory_bytes <= bytes) return 0;
    (void)snprintf(text, cap, "a memory limit of %s is above the %s that this machine has",
                   drps_size_format(o->memory_bytes, given, sizeof(given)),
                   drps_size_format(bytes, have, sizeof(have)));
    return 1;
}

/* A plan for a larger machine may be made so, as long as no more is needed here. */
static void warn_of_memory(const struct drps_index_options *o)
{
    char text[DRPS_ABOVE_MEMORY_BYTES];
    if (drps_run_above_memory(o, text, sizeof(text)))
        drps_log(o->log, DRPS_LOG_WARN, "%s: this run may fail for want of it, or be ended", text);
}

int drps_run_check_options(struct drps_index_options *o, const struct drps_layers *net,
                           struct drps_err *err)
{
    const struct drps_algorithm *a = drps_algorithm_find(o->algo);
    char text[32], names[DRPS_ALGORITHM_NAMES_BYTES];

    if (!a)
        return drps_err_set(err, DRPS_E_CONFIG, "the algorithm must be one of %s%s%s",
                            drps_algo_names(names), o->algo ? ", not " : "",
                            o->algo ? o->algo : "");
    if (o->from_plan && (o->inputs_n || o->tests_n))
        return drps_err_set(err, DRPS_E_CONFIG,
                            "a plan made from a plan takes its samples from there: name no input");
    if (!o->inputs_n && !o->from_plan)
        return drps_err_set(err, DRPS_E_CONFIG, "no input: name at least one file, or - for stdin");
    if (o->tests_n && o->test_fraction > 0)
        return drps_err_set(err, DRPS_E_CONFIG,
                            "test files and a share of samples for tests exclude each other");
    if (o->test_weights_n && !o->tests_n)
        return drps_err_set(err, DRPS_E_CONFIG, "weights of test files, but no test file");
    if (o->test_labels_n && !o->tests_n)
        return drps_err_set(err, DRPS_E_CONFIG, "labels of test files, but no test file");
    if (!(o->replay >= 0 && o->replay <= 1) || (o->replay > 0 && !o->base))
        return drps_err_set(err, DRPS_E_CONFIG,
                            "the share of samples to replay must lie between 0 and 1, and needs a "
                            "base");
    if (!(o->test_fraction >= 0 && o->test_fraction <= DRPS_INDEX_TEST_FRACTION_MOST))
        return drps_err_set(err, DRPS_E_CONFIG,
                            "the share of samples for tests must lie between 0 and %g",
                            DRPS_INDEX_TEST_FRACTION_MOST);
    int rc = check_order(o, err);
    if (rc == 0) rc = check_text(o, a, err);
    if (rc < 0) return rc;
    if (o->ranks) rc = drps_together_check(o, err);
    if (rc < 0) return rc;
    if (!o->workers) o->workers = 1;
    if (o->workers > DRPS_PLAN_WORKERS_MAX)
        return drps_err_set(err, DRPS_E_CONFIG, "the workers must lie between 1 and %d, not %u",
                            DRPS_PLAN_WORKERS_MAX, o->workers);
    rc = check_servers(o, err);
    if (rc == 0) rc = check_partition(o, err);
    if (rc == 0) rc = check_lanes(o, err);
    if (rc == 0) rc = check_samples(o, err);
    if (rc == 0) rc = check_dppa(o, err);
    if (rc == 0) rc = check_balance(o, err);
    if (rc == 0) rc = check_machine_weights(o, err);
    if (rc == 0) rc = check_residuals(o, err);
    if (rc == 0) rc = check_hand_on(o, err);
    if (rc < 0) return rc;
    if (o->factors && !a->has_factors)
        return drps_err_set(err, DRPS_E_CONFIG, "the algorithm %s has no factors", a->name);
    if (!o->factors) o->factors = drps_algorithm_default_factors(a);
    o->has_fields = drps_algorithm_has_fields(a);
    rc = check_net(o, net, err);
    if (rc == 0) rc = drps_run_check_sequences(o, net, err);
    if (rc < 0) return rc;
    if (o->factors > DRPS_FACTORS_MAX)
        return drps_err_set(err, DRPS_E_CONFIG, "%u factors are too many: at most %d", o->factors,
                            DRPS_FACTORS_MAX);
    if (o->not_normalized && !drps_algorithm_has_fields(a))
        return drps_err_set(err, DRPS_E_CONFIG,
                            "samples that are not normalised are a choice of field-aware models: "
                            "the algorithm %s normalises none",
                            a->name);
    rc = check_topic(o, a, err);
    if (rc == 0) rc = check_hashing(o, a, err);
    if (rc == 0) rc = drps_run_check_implicit(o, err);
    if (rc == 0) rc = drps_run_check_class_weights(o, err);
    if (rc < 0) return rc;
    rc = check_blocks(&o->blocks, err);
    if (rc < 0) return rc;
    if (!o->memory_bytes) o->memory_bytes = drps_memory_available() / 2;
    if (o->memory_bytes < MIN_MEMORY_BYTES)
        return drps_err_set(err, DRPS_E_MEMORY_BUDGET,
                            "a memory limit of %s is too small: at least 64M is needed",
                            drps_size_format(o->memory_bytes, text, sizeof(text)));
    warn_of_memory(o);
    return 0;
}

void drps_run_take_model(const struct drps_plan_info *info, struct drps_index_options *o)
{
    o->algo = info->algo;
    o->loss = info->expression[0] ? info->expression : info->loss;
    o->outputs = info->outputs;
    o->net = info->net[0] ? info->net : NULL;
    o->factors = info->factors;
    o->not_normalized = drps_plan_row_fields(info) && !info->normalized && !info->net[0];
    o->reader.hash_seed = info->hash_seed;
    o->hashing = info->hashing;
    drps_run_take_sequences(info, &o->reader);
    o->no_bias = !drps_plan_common_rows(info);
}

/* Sets the options that are settled by the plan which the run begins with. */
void drps_run_take_options(const struct drps_plan_info *info, struct drps_index_options *o)
{
    drps_run_take_model(info, o);
    o->order = info->order;
    o->grid_users = (uint32_t)info->grid_users;
    o->grid_items = (uint32_t)info->grid_items;
    o->lanes = (uint32_t)info->lanes;
    o->batch_size = info->batch_size;
    o->seed = info->seed;
    o->samples = "dealt";
    o->blocks = (struct drps_blocks_options){
        .bytes = info->block_bytes, .seek_ns = info->seek_ns, .transfer_bps = info->transfer_bps};
    if (drps_block_builder_find(info->blocks_by)) o->blocks.by = info->blocks_by;
}

int drps_run_is_grid(const struct drps_index_options *o)
{
    return o->order && strcmp(o->order, "grid") == 0;
}

int drps_run_is_micro(const struct drps_index_options *o)
{
    return o->order && strcmp(o->order, "micro") == 0;
}

int drps_run_may_mix(const struct drps_index_options *o)
{
    const struct drps_algorithm *a = o->algorithm;
    return o->lanes != 1 && drps_algorithm_rates(a) && !drps_algorithm_draws(a) &&
           (!o->order || strcmp(o->order, "shuffled") == 0) && drps_run_ranks(o).count == 1 &&
           !o->ranks;
}

int drps_run_places_samples(const struct drps_index_options *o)
{
    if (!o->samples) return drps_placement_follows_samples(o->partition);
    if (strcmp(o->samples, "kept") == 0) return drps_samples_stay(o);
    return strcmp(o->samples, "dealt") != 0;
}

int drps_run_assigns_samples(const struct drps_index_options *o)
{
    return drps_run_places_samples(o) || o->balance > 0 || o->machine_weights_n;
}

const double *drps_run_shares(const struct drps_index_options *o, double *share)
{
    double sum = 0;
    for (uint32_t w = 0; w < o->machine_weights_n; w++)
        sum += o->machine_weights[w];
    for (uint32_t w = 0; w < o->machine_weights_n; w++)
        share[w] = o->machine_weights[w] / sum;
    return o->machine_weights_n ? share : NULL;
}

int drps_run_samples_dppa(const struct drps_index_options *o)
{
    return o->samples && strcmp(o->samples, "dppa") == 0;
}

int drps_run_keeps_rounds(const struct drps_index_options *o)
{
    return o->samples ? strcmp(o->samples, "round") == 0 : drps_run_places_samples(o);
}

uint32_t drps_run_block_rows(const struct index_run *r)
{
    const uint64_t rows = r->info->block_bytes / r->info->row_bytes;
    if (drps_block_builder_find(r->options.blocks.by)->single || !rows) return 1;
    return rows < UINT32_MAX ? (uint32_t)rows : UINT32_MAX;
}
