/* The settings of drps-index: their values, and which go together. */
#include "api/settings/drps_index_settings.h"

#include <float.h>
#include <stdio.h>
#include <string.h>

#include "api/settings/dppa.h"
#include "api/settings/drps_index_keys.h"
#include "api/settings/drps_reader_settings.h"
#include "base/drps_alloc.h"
#include "engine/arithmetic/drps_arithmetic.h"
#include "index/plan/drps_algorithm.h"

/* Settings whose value is kept as it is given. */
static int parse_plain(struct drps_values *v, struct drps_index_settings *o, int key,
                       const char *arg)
{
    static const char *const tasks[] = {"auto", "regression", "classification", NULL};
    static const char *const orders[] = {"shuffled", "given", "grid", "micro", NULL};
    static const char *const partitions[] = {"range", "counts", "greedy", "dppa",
                                             "auto",  "hash",   NULL};
    static const char *const draws[] = {"even", "popular", NULL};
    static const char *const samples[] = {"dealt", "kept", "placed", "round", "dppa", NULL};
    static const char *const builders[] = {"pattern", "auto", "topk",      "pairwise", "greedy",
                                           "none",    "id",   "frequency", "random",   NULL};
    const struct drps_value_plain plain[] = {
        {.key = KEY_FORCE, .flag = &o->index.force},
        {.key = KEY_NO_BIAS, .flag = &o->index.no_bias},
        {.key = KEY_DENSE, .flag = &o->index.dense},
        {.key = KEY_NO_NORMALIZE, .flag = &o->index.not_normalized},
        {.key = KEY_NO_FORECAST, .flag = &o->index.no_forecast},
        {.key = KEY_SEPARATE, .flag = &o->index.separate},
        {.key = KEY_FROM_PLAN, .text = &o->index.from_plan},
        {.key = KEY_BASE, .text = &o->index.base},
        {.key = KEY_LAYERS, .text = &o->index.net},
        {.key = KEY_CLASS_WEIGHTS, .text = &o->index.class_weights},
        {.key = KEY_CALIBRATE, .text = &o->index.blocks.calibrate},
        {.key = KEY_TASK, .text = &o->index.task, .names = tasks},
        {.key = KEY_ORDER, .text = &o->index.order, .names = orders},
        {.key = KEY_PARTITION, .text = &o->index.partition, .names = partitions},
        {.key = KEY_SAMPLES, .text = &o->index.samples, .names = samples},
        {.key = KEY_NEGATIVES, .text = &o->index.implicit.by, .names = draws},
        {.key = KEY_BLOCKS, .text = &o->index.blocks.by, .names = builders},
    };
    return drps_value_take(v, plain, sizeof(plain) / sizeof(plain[0]), key, arg);
}

static void parse_batch_size(struct drps_values *v, struct drps_index_options *o, const char *arg)
{
    const size_t n = strlen(arg);
    o->batch_size = 0;
    o->batch_percent = 0;
    if (n && arg[n - 1] == '%')
        o->batch_percent = drps_value_share(v, arg) * 100;
    else
        o->batch_size = drps_value_count(v, arg, 1, UINT32_MAX);
    if (!o->batch_size && o->batch_percent <= 0)
        drps_value_bad(v, "a batch needs at least one sample");
}

static int parse_data_option(struct drps_values *v, struct drps_index_options *o, int key,
                             const char *arg)
{
    switch (key) {
    case KEY_HASH_SEED:
        o->reader.hash_seed = drps_value_count(v, arg, 0, INT64_MAX);
        return 1;
    case KEY_HASH_BITS:
        o->hashing.bits = (uint32_t)drps_value_count(v, arg, 1, DRPS_HASH_BITS_MOST);
        return 1;
    case KEY_HASH_KIND:
        o->hashing.kind = (enum drps_hash_kind)drps_value_choice(v, arg, drps_hash_kinds());
        return 1;
    case KEY_HASH_BINS:
        o->hashing.bins =
            (uint32_t)drps_value_count(v, arg, DRPS_HASH_BINS_LEAST, DRPS_HASH_BINS_MOST);
        return 1;
    case KEY_REPLAY:
        o->replay = drps_value_share(v, arg);
        return 1;
    case KEY_TEST_FRACTION:
        o->test_fraction = drps_value_share_to(v, arg, DRPS_INDEX_TEST_FRACTION_MOST);
        return 1;
    default:
        return drps_reader_setting(&o->reader, v, key, arg);
    }
}

static int parse_blocks_option(struct drps_values *v, struct drps_index_options *options, int key,
                               const char *arg)
{
    struct drps_blocks_options *o = &options->blocks;
    switch (key) {
    case KEY_BLOCK_BYTES:
        o->bytes = drps_value_size(v, arg, 4, 1 << 30);
        return 1;
    case KEY_SEEK:
        o->seek_ns = (uint64_t)(drps_value_real(v, arg, 1e-3, 1e9) * 1e3);
        return 1;
    case KEY_TRANSFER:
        o->transfer_bps = (uint64_t)(drps_value_real(v, arg, 1e-3, 1e9) * 1e6);
        return 1;
    case KEY_TOP_K:
        o->top_k = (uint32_t)drps_value_count(v, arg, 1, UINT32_MAX);
        return 1;
    case KEY_MIN_GAIN:
        o->min_gain_us = drps_value_real(v, arg, 0, 1e15);
        return 1;
    case KEY_PRUNE:
        o->prune = (uint32_t)drps_value_count(v, arg, 1, UINT32_MAX);
        return 1;
    case KEY_PRUNE_TO:
        if (!strchr(arg, '%'))
            o->prune_to = (uint32_t)drps_value_count(v, arg, 1, UINT32_MAX);
        else if (o->keep_share = drps_value_share(v, arg), !(o->keep_share > 0))
            drps_value_bad(v, "'%s' keeps no row", arg);
        return 1;
    case KEY_SAMPLE:
    case KEY_SAMPLE_SAMPLES:
        o->sample = drps_value_share(v, arg);
        if (!(o->sample > 0)) drps_value_bad(v, "'%s' counts no batch", arg);
        o->sample_samples = key == KEY_SAMPLE_SAMPLES;
        return 1;
    case KEY_SHARDS:
        o->shards = (unsigned)drps_value_count(v, arg, 1, 64);
        return 1;
    default:
        return 0;
    }
}

/* Floats of an optimizer's state for each parameter. */
static uint32_t parse_states(struct drps_values *v, const char *arg)
{
    for (uint32_t i = 0; i < 4; i++)
        if (strcmp(arg, drps_plan_states_name(i)) == 0) return i;
    drps_value_bad(v, "'%s' is not one of: sgd, adagrad, ftrl, adam", arg);
    return 0;
}

/* Take "1,1,2,1". */
static void parse_machine_weights(struct drps_values *v, struct drps_index_options *o,
                                  const char *arg)
{
    char part[DRPS_VALUE_PART_BYTES];
    o->machine_weights_n = 0;
    while (drps_value_part(v, &arg, part)) {
        if (o->machine_weights_n == DRPS_PLAN_WORKERS_MAX) {
            drps_value_bad(v, "there are more than %d weights", DRPS_PLAN_WORKERS_MAX);
            return;
        }
        o->machine_weights[o->machine_weights_n++] = drps_value_real(v, part, 1e-6, 1e6);
    }
}

static int parse_ranks_option(struct drps_values *v, struct drps_index_settings *o, int key,
                              const char *arg)
{
    switch (key) {
    case KEY_MACHINE_WEIGHTS:
        parse_machine_weights(v, &o->index, arg);
        return 1;
    case KEY_BALANCE:
        o->index.balance = drps_value_real(v, arg, 1, 1000);
        return 1;
    case KEY_DPPA:
        drps_dppa_setting(v, &o->index.dppa, arg);
        return 1;
    case KEY_NET:
        o->index.net_bps = (uint64_t)(drps_value_real(v, arg, 1e-3, 1e9) * 1e6);
        return 1;
    case KEY_HOT_ROWS:
        o->index.hot_share = drps_value_share(v, arg);
        o->index.has_hot_share = 1;
        return 1;
    case KEY_HAND_ON:
        o->index.hand_on =
            strcmp(arg, "all") == 0 ? UINT64_MAX : drps_value_count(v, arg, 1, UINT32_MAX - 1);
        return 1;
    case KEY_HAND_ON_FOR:
        o->index.hand_on_states = parse_states(v, arg);
        o->has_hand_on_for = 1;
        return 1;
    default:
        return 0;
    }
}

static int parse_implicit_option(struct drps_values *v, struct drps_index_options *options, int key,
                                 const char *arg)
{
    struct drps_implicit_options *o = &options->implicit;
    switch (key) {
    case KEY_POSITIVE_FROM:
        o->has_least = 1;
        o->least = drps_value_real(v, arg, -FLT_MAX, FLT_MAX);
        return 1;
    case KEY_NEGATIVES_PER:
        o->each = (uint32_t)drps_value_count(v, arg, 1, DRPS_NEGATIVES_MOST);
        return 1;
    case KEY_NEGATIVE_DRAWS:
        o->draws = (uint32_t)drps_value_count(v, arg, 1, 1000);
        return 1;
    case KEY_TEST_NEGATIVES:
        o->test = (uint32_t)drps_value_count(v, arg, 1, DRPS_NEGATIVES_MOST);
        return 1;
    case KEY_ALPHA:
        o->has_alpha = 1;
        o->alpha = drps_value_real(v, arg, 0, 1e6);
        return 1;
    case KEY_NEGATIVE_WEIGHT:
        o->weight_all = strcmp(arg, "all") == 0;
        o->weight = o->weight_all ? 0 : drps_value_real(v, arg, 1e-6, 1e6);
        return 1;
    default:
        return 0;
    }
}

/* Take "U,I", or "G" for both. */
static void parse_grid(struct drps_values *v, struct drps_index_options *o, const char *arg)
{
    char users[DRPS_VALUE_PART_BYTES];
    if (!drps_value_part(v, &arg, users)) return;
    o->grid_users = (uint32_t)drps_value_count(v, users, 1, 4096);
    o->grid_items = arg ? (uint32_t)drps_value_count(v, arg, 1, 4096) : o->grid_users;
}

/* Take an algorithm, or the name of a net. */
static int parse_algo(struct drps_values *v, struct drps_index_settings *o, int key,
                      const char *arg)
{
    char names[DRPS_ALGORITHM_NAMES_BYTES], nets[DRPS_LAYERS_NAMES_BYTES];
    if (key != KEY_ALGO) return 0;
    o->named_net = drps_layers_has_name(arg) ? arg : NULL;
    o->index.algo = o->named_net ? drps_algo_name(DRPS_ALGO_NET) : arg;
    if (!o->named_net && !drps_algorithm_find(arg))
        drps_value_bad(v, "'%s' is not one of: %s, %s", arg, drps_algo_names(names),
                       drps_layers_names(nets));
    return 1;
}

static int parse_plan_option(struct drps_values *v, struct drps_index_options *o, int key,
                             const char *arg)
{
    switch (key) {
    case KEY_LOSS:
        o->loss = arg;
        return 1;
    case KEY_OUTPUTS:
        o->outputs =
            (uint32_t)drps_value_count(v, arg, DRPS_EXPR_OUTPUTS_LEAST, DRPS_EXPR_OUTPUTS_MOST);
        return 1;
    case KEY_FACTORS:
        o->factors = (uint32_t)drps_value_count(v, arg, 1, 65535);
        return 1;
    case KEY_RANK:
        drps_value_bad(v,
                       "a rank is a process of several, in drps-train; say {factors} %s for "
                       "the length of the factors",
                       arg);
        return 1;
    case KEY_WORKERS:
        o->workers = (uint32_t)drps_value_count(v, arg, 1, DRPS_PLAN_WORKERS_MAX);
        return 1;
    case KEY_SERVERS:
        o->servers = (uint32_t)drps_value_count(v, arg, 1, DRPS_PLAN_WORKERS_MAX);
        return 1;
    case KEY_RESIDUALS:
        o->own_slots = strcmp(arg, "each") == 0;
        o->residual_slots = o->own_slots || strcmp(arg, "all") == 0
                                ? UINT64_MAX
                                : drps_value_count(v, arg, 1, UINT32_MAX - 1);
        return 1;
    case KEY_BATCH_SIZE:
        parse_batch_size(v, o, arg);
        return 1;
    case KEY_GRID:
        parse_grid(v, o, arg);
        return 1;
    case KEY_LANES:
        o->lanes = (uint32_t)drps_value_count(v, arg, 1, 16);
        return 1;
    case KEY_SEED:
        o->seed = drps_value_count(v, arg, 0, INT64_MAX);
        return 1;
    case KEY_MEMORY:
        o->memory_bytes = drps_value_size(v, arg, 1, INT64_MAX);
        return 1;
    default:
        return 0;
    }
}

/* The net is one that the algorithm names, or what {net} says. */
static void settle_net(struct drps_values *v, struct drps_index_settings *o)
{
    const struct drps_algorithm *a = drps_algorithm_find(o->index.algo);
    if (o->named_net && o->index.net && strcmp(o->named_net, o->index.net) != 0)
        drps_value_bad(v, "{algo} %s is a net that is built in; for that of {net} say {algo} net",
                       o->named_net);
    if (o->named_net) o->index.net = o->named_net;
    if (a && drps_algorithm_is_net(a) && !o->index.net)
        drps_value_bad(v, "{algo} net needs {net} FILE, a text of its layers");
}

/* A name, but for expr, whose loss is a text. */
static void check_loss(struct drps_values *v, const struct drps_index_options *o)
{
    const struct drps_algorithm *a = drps_algorithm_find(o->algo);
    char names[DRPS_ALGORITHM_NAMES_BYTES];
    enum drps_loss loss;
    const int has_text = a && drps_algorithm_has_text(a);
    if (o->outputs && !has_text) drps_value_bad(v, "{outputs} needs {algo} expr");
    if (has_text && !o->loss)
        drps_value_bad(v, "{algo} expr needs {loss}, such as {loss} 'squared(y, w*x)'");
    if (!o->loss || has_text || drps_loss_find(o->loss, &loss)) return;
    drps_value_bad(v, "'%s' is not one of: %s; an expression needs {algo} expr", o->loss,
                   drps_loss_names(names));
}

static void check_base(struct drps_values *v, const struct drps_index_settings *o)
{
    if (o->index.replay > 0 && !o->index.base)
        drps_value_bad(v, "{replay} takes samples of a base: give {base} PLAN");
    if (!o->index.base || !o->of_model) return;
    drps_value_bad(
        v, "{base} takes the model, the hash seed, the format and the columns from the "
           "plan: leave out {algo}, {net}, {factors}, {task}, {loss}, {outputs}, {no-bias}, "
           "{no-normalize}, {hash-seed}, {hash-bits}, {hash-kind}, {hash-bins}, "
           "{format}, {label}, {columns}, {separator}, "
           "{header}, {no-header}, {scale} and {cross}");
}

static void check_hashing(struct drps_values *v, const struct drps_index_options *o)
{
    const struct drps_hashing *h = &o->hashing;
    if (!h->bits && (h->bins || h->kind != DRPS_HASH_SIGNED))
        drps_value_bad(v,
                       "{hash-kind} and {hash-bins} say how {hash-bits} B hashes: give its bits");
    if (h->bins && h->kind != DRPS_HASH_OPH)
        drps_value_bad(v, "{hash-bins} is how many features {hash-kind} oph makes of a sample");
}

/* Refuses options of implicit feedback without a model of it. */
static void check_implicit(struct drps_values *v, const struct drps_index_options *o)
{
    const struct drps_algorithm *a = drps_algorithm_find(o->algo);
    const struct drps_implicit_options *i = &o->implicit;
    const int is_of_wmf = i->has_alpha || i->weight > 0 || i->weight_all;
    const int any = i->each || i->test || i->draws || i->by || i->has_least || is_of_wmf;
    if (any && a && !drps_algorithm_draws(a))
        drps_value_bad(v,
                       "{positive-from}, {negatives}, {negatives-per}, {negative-draws}, "
                       "{negative-weight}, {test-negatives} and {alpha} are for {algo} bpr, warp "
                       "and wmf, not for %s",
                       a->name);
    if (is_of_wmf && a && a->algo != DRPS_ALGO_WMF)
        drps_value_bad(v, "{alpha} and {negative-weight} are for {algo} wmf, not for %s", a->name);
}

void drps_index_settings_check_model(struct drps_index_settings *o, struct drps_values *v)
{
    check_base(v, o);
    settle_net(v, o);
    check_loss(v, &o->index);
    check_implicit(v, &o->index);
    check_hashing(v, &o->index);
    if (o->has_hand_on_for && !o->index.hand_on)
        drps_value_bad(v, "{hand-on-for} says for which optimizer {hand-on} counts: give both");
    if (o->index.from_plan &&
        (o->of_text || o->inputs.n || o->tests.n || o->weights.n || o->test_weights.n ||
         o->labels.n || o->test_labels.n || o->in_memory))
        drps_value_bad(v, "{from-plan} takes all but {workers}, {servers}, {separate}, "
                          "{partition}, {net-mbs}, {hot-rows}, {dppa}, {residuals}, {hand-on}, "
                          "{hand-on-for}, {link}, {memory} and {no-forecast} from the plan: give "
                          "no other options, and no DATA");
    if (o->index.separate && !o->index.servers)
        drps_value_bad(v, "{separate} needs {servers} M: how many machines hold the rows");
}

void drps_index_settings_check_data(const struct drps_index_settings *o, struct drps_values *v)
{
    char names[DRPS_ALGORITHM_NAMES_BYTES];
    const int is_grid = o->index.order && strcmp(o->index.order, "grid") == 0;
    if (o->index.from_plan) return;
    if (!o->inputs.n && !o->in_memory && !o->only_counts)
        drps_value_bad(v, "no input: name at least one file, or - for stdin");
    if (!o->index.algo && !o->index.base && !o->only_counts)
        drps_value_bad(v, "{algo} is missing: %s", drps_algo_names(names));
    if (o->index.grid_users && !is_grid) drps_value_bad(v, "{grid} needs {order} grid");
    if (o->index.lanes > 1 && !is_grid && o->index.order && strcmp(o->index.order, "shuffled") != 0)
        drps_value_bad(v, "{lanes} needs {order} shuffled or grid");
}

/* Several machines pull and push the fewest rows that way. Rows circulate in grid order, and a plan
 * that is dealt anew, or goes on from another one, keeps its row numbers. */
static void place_rows(struct drps_index_options *o)
{
    const int is_grid = o->order && strcmp(o->order, "grid") == 0;
    if (o->workers > 1 && !o->partition && !o->from_plan && !o->base && !is_grid)
        o->partition = o->machine_weights_n ? "range" : "auto";
}

int drps_index_setting_is_of_plans(int key)
{
    return key == 'o' || key == KEY_FORCE || key == KEY_WORKERS || key == KEY_SERVERS ||
           key == KEY_SEPARATE || key == KEY_PARTITION || key == KEY_MEMORY ||
           key == KEY_NO_FORECAST || key == KEY_FROM_PLAN || key == KEY_LINK || key == KEY_NET ||
           key == KEY_HOT_ROWS || key == KEY_RESIDUALS || key == KEY_HAND_ON ||
           key == KEY_HAND_ON_FOR || key == KEY_DPPA;
}

int drps_index_setting_is_of_model(int key)
{
    switch (key) {
    case KEY_ALGO:
    case KEY_FACTORS:
    case KEY_TASK:
    case KEY_LOSS:
    case KEY_OUTPUTS:
    case KEY_NO_BIAS:
    case KEY_LAYERS:
    case KEY_NO_NORMALIZE:
    case KEY_HASH_SEED:
    case KEY_HASH_BITS:
    case KEY_HASH_KIND:
    case KEY_HASH_BINS:
    case READER_KEY_FORMAT:
    case READER_KEY_LABEL:
    case READER_KEY_COLUMNS:
    case READER_KEY_SEPARATOR:
    case READER_KEY_HEADER:
    case READER_KEY_NO_HEADER:
    case READER_KEY_SCALE:
    case READER_KEY_CROSS:
        return 1;
    default:
        return 0;
    }
}

/* Take a file of a list of them. */
static int parse_file(struct drps_values *v, struct drps_index_settings *o, int key,
                      const char *arg)
{
    struct drps_value_list *list = key == KEY_TEST             ? &o->tests
                                   : key == READER_KEY_WEIGHTS ? &o->weights
                                   : key == KEY_TEST_WEIGHTS   ? &o->test_weights
                                   : key == READER_KEY_LABELS  ? &o->labels
                                   : key == KEY_TEST_LABELS    ? &o->test_labels
                                                               : NULL;
    if (list) drps_value_add(v, list, arg);
    return list != NULL;
}

int drps_index_setting(struct drps_index_settings *o, struct drps_values *v, int key,
                       const char *text)
{
    if (parse_file(v, o, key, text)) return 1; /* which goes with a base */
    const int taken = parse_plain(v, o, key, text) || parse_data_option(v, &o->index, key, text) ||
                      parse_blocks_option(v, &o->index, key, text) ||
                      parse_ranks_option(v, o, key, text) ||
                      parse_implicit_option(v, &o->index, key, text) ||
                      parse_algo(v, o, key, text) || parse_plan_option(v, &o->index, key, text);
    if (taken && !drps_index_setting_is_of_plans(key)) o->of_text = 1;
    if (taken && drps_index_setting_is_of_model(key)) o->of_model = 1;
    return taken;
}

void drps_index_settings_init(struct drps_index_settings *o)
{
    *o = (struct drps_index_settings){
        .index = {.seed = 1, .windows_later = 1, .arithmetic = drps_arithmetic_measure}};
}

void drps_index_settings_complete(struct drps_index_settings *o)
{
    if (!o->has_hand_on_for) o->index.hand_on_states = 1; /* adagrad */
    place_rows(&o->index);
    o->index.inputs = o->inputs.texts;
    o->index.inputs_n = o->inputs.n;
    o->index.tests = o->tests.texts;
    o->index.tests_n = o->tests.n;
    o->index.weights = o->weights.texts;
    o->index.weights_n = o->weights.n;
    o->index.test_weights = o->test_weights.texts;
    o->index.test_weights_n = o->test_weights.n;
    o->index.labels = o->labels.texts;
    o->index.labels_n = o->labels.n;
    o->index.test_labels = o->test_labels.texts;
    o->index.test_labels_n = o->test_labels.n;
}

void drps_index_settings_free(struct drps_index_settings *o)
{
    drps_value_list_free(&o->inputs);
    drps_value_list_free(&o->tests);
    drps_value_list_free(&o->weights);
    drps_value_list_free(&o->test_weights);
    drps_value_list_free(&o->labels);
    drps_value_list_free(&o->test_labels);
}
