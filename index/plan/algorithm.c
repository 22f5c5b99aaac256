/* The table of algorithms, and the names of losses. It needs nothing else of drps but the language
 * of losses that are texts. */
#include "index/plan/drps_algorithm.h"

#include <stdio.h>
#include <string.h>

#include "index/expr/drps_expr_ops.h"
#include "index/hashing/drps_hashing.h"

#define LOSS(name) (1u << DRPS_LOSS_##name)

#define TEXT_ENTRY(is_matrix, takes, learning_rate, ...)                                           \
    {                                                                                              \
        .algo = DRPS_ALGO_EXPR, .name = "expr",                                                    \
        .predictor = (is_matrix) ? DRPS_PREDICTOR_MATRIX : DRPS_PREDICTOR_LINEAR,                  \
        .labels = (takes),                                                                         \
        .losses = LOSS(SQUARED) | LOSS(LOGISTIC) | LOSS(SOFTMAX) | LOSS(EXPRESSION),               \
        .loss_of_reals = DRPS_LOSS_EXPRESSION, .loss_of_classes = DRPS_LOSS_EXPRESSION,            \
        .optimizer = "adagrad", .adagrad_lr = (learning_rate), __VA_ARGS__                         \
    }
/* An algorithm whose samples are a user, an item that the user has chosen, and items drawn against
 * it. */
#define IMPLICIT_ENTRY(upper, lower, learning_rate, eps)                                           \
    [DRPS_ALGO_##upper] = {.algo = DRPS_ALGO_##upper,                                              \
                           .name = (lower),                                                        \
                           .predictor = DRPS_PREDICTOR_MF,                                         \
                           .labels = DRPS_LABELS_REAL,                                             \
                           .losses = LOSS(upper),                                                  \
                           .loss_of_reals = DRPS_LOSS_##upper,                                     \
                           .loss_of_classes = DRPS_LOSS_##upper,                                   \
                           .has_factors = 1,                                                       \
                           .tables = {"user", "item"},                                             \
                           .draws = 1,                                                             \
                           .optimizer = "adagrad",                                                 \
                           .adagrad_lr = (learning_rate),                                          \
                           .adagrad_eps = (eps)}
#define NET_ENTRY(takes, ...)                                                                      \
    {                                                                                              \
        .algo = DRPS_ALGO_NET, .name = "net", .predictor = DRPS_PREDICTOR_NET, .labels = (takes),  \
        .losses = LOSS(LOGISTIC) | LOSS(SQUARED) | LOSS(SOFTMAX),                                  \
        .loss_of_reals = DRPS_LOSS_SQUARED, .loss_of_classes = DRPS_LOSS_LOGISTIC,                 \
        .loss_of_names = DRPS_LOSS_SOFTMAX, .has_factors = 1, .tables = {"wv"},                    \
        .optimizer = "adagrad", __VA_ARGS__                                                        \
    }
#define OF_FEATURES .tables = {"w"}
#define OF_SAMPLES .tables = {"own", "w"}, .sample_rows = 1

/* AdaGrad's numbers were measured: docs/quality.md, bench/quality.sh. */
static const struct drps_algorithm algorithms[DRPS_ALGOS] = {
    [DRPS_ALGO_LIR] = {.algo = DRPS_ALGO_LIR,
                       .name = "lir",
                       .predictor = DRPS_PREDICTOR_LINEAR,
                       .labels = DRPS_LABELS_REAL,
                       .losses = LOSS(SQUARED),
                       .loss_of_reals = DRPS_LOSS_SQUARED,
                       .loss_of_classes = DRPS_LOSS_SQUARED,
                       .tables = {"w"},
                       .optimizer = "adagrad",
                       .adagrad_lr = 0.05f},
    [DRPS_ALGO_LOR] = {.algo = DRPS_ALGO_LOR,
                       .name = "lor",
                       .predictor = DRPS_PREDICTOR_LINEAR,
                       .labels = DRPS_LABELS_CLASSES,
                       .losses = LOSS(LOGISTIC),
                       .loss_of_reals = DRPS_LOSS_LOGISTIC,
                       .loss_of_classes = DRPS_LOSS_LOGISTIC,
                       .tables = {"w"},
                       .optimizer = "adagrad",
                       .adagrad_lr = 0.05f,
                       .ones_lr = 0.07f,
                       .ones_eps = 1},
    [DRPS_ALGO_SVM] = {.algo = DRPS_ALGO_SVM,
                       .name = "svm",
                       .predictor = DRPS_PREDICTOR_LINEAR,
                       .labels = DRPS_LABELS_CLASSES_OR_NAMES,
                       .losses = LOSS(HINGE) | LOSS(SQUARED_HINGE),
                       .loss_of_reals = DRPS_LOSS_HINGE,
                       .loss_of_classes = DRPS_LOSS_HINGE,
                       .tables = {"w"},
                       .optimizer = "adagrad",
                       .adagrad_lr = 0.05f},
    [DRPS_ALGO_LMF] = {.algo = DRPS_ALGO_LMF,
                       .name = "lmf",
                       .predictor = DRPS_PREDICTOR_MF,
                       .labels = DRPS_LABELS_REAL,
                       .losses = LOSS(SQUARED),
                       .loss_of_reals = DRPS_LOSS_SQUARED,
                       .loss_of_classes = DRPS_LOSS_SQUARED,
                       .has_factors = 1,
                       .tables = {"user", "item"},
                       .optimizer = "adagrad",
                       .adagrad_lr = 0.1f,
                       .adagrad_eps = 0.1f},
    [DRPS_ALGO_FM] = {.algo = DRPS_ALGO_FM,
                      .name = "fm",
                      .predictor = DRPS_PREDICTOR_FM,
                      .labels = DRPS_LABELS_EITHER,
                      .losses = LOSS(LOGISTIC) | LOSS(SQUARED),
                      .loss_of_reals = DRPS_LOSS_SQUARED,
                      .loss_of_classes = DRPS_LOSS_LOGISTIC,
                      .has_factors = 1,
                      .tables = {"wv"},
                      .optimizer = "adagrad",
                      .adagrad_lr = 0.01f},
    [DRPS_ALGO_MLR] = {.algo = DRPS_ALGO_MLR,
                       .name = "mlr",
                       .predictor = DRPS_PREDICTOR_MATRIX,
                       .labels = DRPS_LABELS_NAMES,
                       .losses = LOSS(SOFTMAX),
                       .loss_of_reals = DRPS_LOSS_SOFTMAX,
                       .loss_of_classes = DRPS_LOSS_SOFTMAX,
                       .tables = {"w"},
                       .optimizer = "adagrad",
                       .adagrad_lr = 0.1f},
    [DRPS_ALGO_TOPIC] = {.algo = DRPS_ALGO_TOPIC,
                         .name = "topic",
                         .predictor = DRPS_PREDICTOR_TOPIC,
                         .labels = DRPS_LABELS_REAL,
                         .losses = LOSS(CODING),
                         .loss_of_reals = DRPS_LOSS_CODING,
                         .loss_of_classes = DRPS_LOSS_CODING,
                         .has_factors = 1,
                         .tables = {"doc", "word"},
                         .sample_rows = 1,
                         .optimizer = "alternating"},
    [DRPS_ALGO_FFM] = {.algo = DRPS_ALGO_FFM,
                       .name = "ffm",
                       .predictor = DRPS_PREDICTOR_FFM,
                       .labels = DRPS_LABELS_EITHER,
                       .losses = LOSS(LOGISTIC) | LOSS(SQUARED),
                       .loss_of_reals = DRPS_LOSS_SQUARED,
                       .loss_of_classes = DRPS_LOSS_LOGISTIC,
                       .has_factors = 1,
                       .has_fields = 1,
                       .default_factors = 4,
                       .tables = {"wv"},
                       .optimizer = "adagrad",
                       .init = 0.5f,
                       .adagrad_lr = 0.1f,
                       .adagrad_eps = 0.01f},
    IMPLICIT_ENTRY(BPR, "bpr", 0.1f, 0.1f),
    IMPLICIT_ENTRY(WARP, "warp", 0.03f, 0.1f),
    IMPLICIT_ENTRY(WMF, "wmf", 0.1f, 0.01f),
    [DRPS_ALGO_EXPR] = TEXT_ENTRY(0, DRPS_LABELS_EITHER, 0.05f, OF_FEATURES),
    [DRPS_ALGO_NET] = NET_ENTRY(DRPS_LABELS_EITHER, .adagrad_lr = 0.01f),
};

static const struct drps_algorithm net_of_classes =
    NET_ENTRY(DRPS_LABELS_CLASSES_OR_NAMES, .adagrad_lr = 0.01f);
/* The best of those that were tried on the Penn Treebank, by the perplexity after an epoch. */
static const struct drps_algorithm net_of_sequences = NET_ENTRY(
    DRPS_LABELS_CLASSES_OR_NAMES, .adagrad_lr = 0.08f, .adagrad_eps = 0.01f, .init = 1.4f);

/* Indexed by the scores and labels of the loss, and whether samples have rows of their own.
 * Learning rates are those of the algorithms with the same predictor, but for those where most
 * entries are 1: these were measured for the logistic loss alone. */
static const struct drps_algorithm of_texts[3][2] = {
    {TEXT_ENTRY(0, DRPS_LABELS_EITHER, 0.05f, OF_FEATURES),
     TEXT_ENTRY(0, DRPS_LABELS_EITHER, 0.05f, OF_SAMPLES)},
    {TEXT_ENTRY(1, DRPS_LABELS_EITHER, 0.1f, OF_FEATURES),
     TEXT_ENTRY(1, DRPS_LABELS_EITHER, 0.1f, OF_SAMPLES)},
    {TEXT_ENTRY(1, DRPS_LABELS_NAMES, 0.1f, OF_FEATURES),
     TEXT_ENTRY(1, DRPS_LABELS_NAMES, 0.1f, OF_SAMPLES)},
};

static const char *const losses[DRPS_LOSSES] = {
    [DRPS_LOSS_SQUARED] = "squared",
    [DRPS_LOSS_LOGISTIC] = "logistic",
    [DRPS_LOSS_HINGE] = "hinge",
    [DRPS_LOSS_SQUARED_HINGE] = "squared-hinge",
    [DRPS_LOSS_SOFTMAX] = "softmax",
    [DRPS_LOSS_CODING] = "coding",
    [DRPS_LOSS_EXPRESSION] = "expression",
    [DRPS_LOSS_BPR] = "bpr",
    [DRPS_LOSS_WARP] = "warp",
    [DRPS_LOSS_WMF] = "wmf",
};

const struct drps_algorithm *drps_algorithm_find(const char *name)
{
    for (size_t i = 0; name && i < DRPS_ALGOS; i++)
        if (strcmp(algorithms[i].name, name) == 0) return &algorithms[i];
    return NULL;
}

const struct drps_algorithm *drps_algorithm(enum drps_algo algo)
{
    return &algorithms[algo];
}

int drps_algorithm_has_text(const struct drps_algorithm *a)
{
    return a->algo == DRPS_ALGO_EXPR;
}

const struct drps_algorithm *drps_algorithm_of(const struct drps_algorithm *a,
                                               const struct drps_expr *e)
{
    if (!drps_algorithm_has_text(a) || !e || !e->n) return a;
    return &of_texts[e->vector_y ? 2 : e->vector_scores][e->has_own];
}

const struct drps_algorithm *drps_algorithm_of_net(int classes, int sequences)
{
    if (sequences) return &net_of_sequences;
    return classes ? &net_of_classes : &algorithms[DRPS_ALGO_NET];
}

int drps_algorithm_is_net(const struct drps_algorithm *a)
{
    return a->predictor == DRPS_PREDICTOR_NET;
}

enum drps_loss drps_algorithm_text_loss(const struct drps_expr *e, int classes)
{
    static const struct {
        enum drps_expr_op op;
        int vector_y;
        enum drps_loss loss;
    } built_in[] = {
        {OP_SOFTMAX_ENTROPY, 1, DRPS_LOSS_SOFTMAX},
        {OP_LOGISTIC, 0, DRPS_LOSS_LOGISTIC},
        {OP_SQUARED, 0, DRPS_LOSS_SQUARED},
    };
    const struct drps_expr_node *root = &e->nodes[e->n - 1];
    if (e->n != 3 || root->b < 0 || e->nodes[root->a].op != OP_Y ||
        e->nodes[root->b].op != OP_SCORES)
        return DRPS_LOSS_EXPRESSION;
    for (size_t i = 0; i < sizeof(built_in) / sizeof(*built_in); i++)
        if (root->op == built_in[i].op && e->vector_y == built_in[i].vector_y &&
            drps_loss_is_classification(built_in[i].loss) == (classes != 0))
            return built_in[i].loss;
    return DRPS_LOSS_EXPRESSION;
}

int drps_algorithm_rates(const struct drps_algorithm *a)
{
    return a->predictor == DRPS_PREDICTOR_MF;
}

int drps_algorithm_draws(const struct drps_algorithm *a)
{
    return a->draws;
}

int drps_algorithm_is_topic(const struct drps_algorithm *a)
{
    return a->predictor == DRPS_PREDICTOR_TOPIC;
}

int drps_algorithm_has_sample_rows(const struct drps_algorithm *a)
{
    return a->sample_rows;
}

int drps_algorithm_has_fields(const struct drps_algorithm *a)
{
    return a->has_fields;
}

int drps_algorithm_check_hashing(const struct drps_algorithm *a, const struct drps_hashing *h,
                                 uint32_t fields, struct drps_err *err)
{
    if (!h->bits) return 0;
    if (drps_algorithm_rates(a) || drps_algorithm_is_topic(a))
        return drps_err_set(err, DRPS_E_CONFIG,
                            drps_algorithm_rates(a)
                                ? "hashing would make one row of several users or items, and the "
                                  "algorithm %s knows them one by one: leave it out, or use fm"
                                : "hashing changes signs and adds words up, and the algorithm %s "
                                  "counts each word: leave it out",
                            a->name);
    if (h->kind == DRPS_HASH_OPH && drps_algorithm_has_fields(a))
        return drps_err_set(err, DRPS_E_CONFIG,
                            "one-permutation hashing makes a set of all features of a sample, and "
                            "the algorithm %s needs the field of each: use signed hashing",
                            a->name);
    if (((uint64_t)fields << h->bits) <= UINT64_C(1) << 32) return 0;
    return drps_err_set(err, DRPS_E_CONFIG,
                        "each of %u fields has bins of its own, and 2^%u of each are more than "
                        "2^32: hash into fewer bits",
                        fields, h->bits);
}

uint32_t drps_algorithm_default_factors(const struct drps_algorithm *a)
{
    if (!a->has_factors) return 0;
    return a->default_factors ? a->default_factors : DRPS_FACTORS_DEFAULT;
}

int drps_algorithm_takes_names(const struct drps_algorithm *a)
{
    return a->labels == DRPS_LABELS_NAMES || a->labels == DRPS_LABELS_CLASSES_OR_NAMES;
}

uint32_t drps_algorithm_dim(const struct drps_algorithm *a, uint32_t factors, size_t classes)
{
    if (drps_algorithm_is_net(a)) return 1 + factors;
    if (drps_algorithm_takes_names(a) && classes > 1) return (uint32_t)classes;
    return a->has_factors ? 1 + factors : 1;
}

uint32_t drps_algorithm_field_dim(uint32_t factors, uint32_t fields)
{
    const uint64_t dim = 1 + (uint64_t)factors * fields;
    return dim <= DRPS_DIM_MAX ? (uint32_t)dim : 0;
}

enum drps_loss drps_algorithm_loss(const struct drps_algorithm *a, int classes)
{
    if (classes > 1 && a->loss_of_names) return a->loss_of_names;
    return classes ? a->loss_of_classes : a->loss_of_reals;
}

int drps_algorithm_has_loss(const struct drps_algorithm *a, enum drps_loss loss)
{
    return (a->losses & 1u << loss) != 0;
}

const char *drps_algo_name(enum drps_algo algo)
{
    return (size_t)algo < DRPS_ALGOS ? algorithms[algo].name : "unknown";
}

const char *drps_loss_name(enum drps_loss loss)
{
    return (size_t)loss < DRPS_LOSSES ? losses[loss] : "unknown";
}

int drps_loss_find(const char *name, enum drps_loss *loss_out)
{
    for (size_t i = 0; i < DRPS_LOSSES; i++)
        if (strcmp(losses[i], name) == 0) {
            *loss_out = (enum drps_loss)i;
            return 1;
        }
    return 0;
}

int drps_loss_is_classification(enum drps_loss loss)
{
    return loss != DRPS_LOSS_SQUARED && loss != DRPS_LOSS_CODING && loss < DRPS_LOSS_EXPRESSION;
}

/* Appends a name to the list that `out` holds; what does not fit is cut. */
static void append(char out[DRPS_ALGORITHM_NAMES_BYTES], const char *name)
{
    const size_t used = strlen(out);
    (void)snprintf(out + used, DRPS_ALGORITHM_NAMES_BYTES - used, "%s%s", used ? ", " : "", name);
}

const char *drps_algo_names(char out[DRPS_ALGORITHM_NAMES_BYTES])
{
    out[0] = '\0';
    for (size_t i = 0; i < DRPS_ALGOS; i++)
        append(out, algorithms[i].name);
    return out;
}

const char *drps_loss_names(char out[DRPS_ALGORITHM_NAMES_BYTES])
{
    out[0] = '\0';
    for (size_t i = 0; i < DRPS_LOSS_EXPRESSION; i++) /* which nobody calls by its name */
        append(out, losses[i]);
    return out;
}
