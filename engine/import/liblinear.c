/*
 * LIBLINEAR's model: "key value" lines, a line "w", then a line a feature with its weight, or with
 * one for each class; the last line is the bias feature's, if there is one, whose value is `bias`.
 * A score above 0 means the first label of two.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"
#include "engine/import/source.h"

struct solver {
    const char *name, *algo, *loss;
    int many; /* as many scores as classes, of two classes too */
};

static const struct solver solvers[] = {
    {"L2R_LR", "lor", "logistic", 0},
    {"L2R_L2LOSS_SVC_DUAL", "svm", "squared-hinge", 0},
    {"L2R_L2LOSS_SVC", "svm", "squared-hinge", 0},
    {"L2R_L1LOSS_SVC_DUAL", "svm", "hinge", 0},
    {"MCSVM_CS", "svm", "hinge", 1},
    {"L1R_L2LOSS_SVC", "svm", "squared-hinge", 0},
    {"L1R_LR", "lor", "logistic", 0},
    {"L2R_LR_DUAL", "lor", "logistic", 0},
    {"L2R_L2LOSS_SVR", "lir", "squared", 0},
    {"L2R_L2LOSS_SVR_DUAL", "lir", "squared", 0},
    {"L2R_L1LOSS_SVR_DUAL", "lir", "squared", 0},
};

struct liblinear {
    struct import *m; /* borrowed */
    const struct solver *solver;
    uint64_t features, lines; /* that are due; weights read so far */
    size_t classes, labels;   /* that are due; read */
    float first_two[2];       /* labels */
    float bias;               /* negative: none */
    size_t columns;           /* weights a line */
    int in_weights, writes;   /* `w` was read; rows are written */
    int negative;             /* the first label is the smaller one: scores change their sign */
    uint32_t *to;             /* own: [classes] class of each column; NULL: its own number */
    float *in, *row;          /* own: [columns] as read, and by class; of the last line */
};

static int is_key(const struct drps_line *line, const char *key, const char **value_out)
{
    const size_t n = strlen(key);
    if (line->n < n || memcmp(line->text, key, n) != 0) return 0;
    if (line->n > n && line->text[n] != ' ') return 0;
    *value_out = line->n > n ? line->text + n + 1 : line->text + n;
    return 1;
}

static int take_solver(struct liblinear *l, const struct drps_line *line, const char *p,
                       struct drps_err *err)
{
    const size_t n = (size_t)(line->text + line->n - p);
    for (size_t i = 0; i < sizeof(solvers) / sizeof(solvers[0]); i++)
        if (strlen(solvers[i].name) == n && memcmp(solvers[i].name, p, n) == 0)
            l->solver = &solvers[i];
    if (l->solver) return 0;
    return drps_err_set(err, DRPS_E_CONFIG, "%s: solver %.*s makes no model that drps has",
                        l->m->o->input, (int)(n < 80 ? n : 80), p);
}

static int take_count(const struct liblinear *l, const struct drps_line *line, const char *p,
                      uint64_t most, uint64_t *out, struct drps_err *err)
{
    const char *q = drps_number_u64(p, out);
    if (q == line->text + line->n && q > p && *out >= 1 && *out <= most) return 0;
    return import_bad(l->m, line->number, "no count, or too large a one", err);
}

static int take_labels(struct liblinear *l, const struct drps_line *line, const char *p,
                       struct drps_err *err)
{
    const char *const end = line->text + line->n;
    if (l->m->classes) return import_bad(l->m, line->number, "labels stand there twice", err);
    l->m->classes = drps_classes_new();
    if (!l->m->classes) return drps_err_set(err, -ENOMEM, "no memory for classes");
    while (p < end) {
        float v;
        const char *q = import_number(p, end, &v);
        const char *blank = q ? memchr(p, ' ', (size_t)(end - p)) : NULL;
        if (!q || !isfinite(v))
            return import_bad(l->m, line->number, "a label is no finite number", err);
        if (l->labels < 2) l->first_two[l->labels] = v;
        const int32_t c = drps_classes_add(l->m->classes, p, (size_t)((blank ? blank : end) - p));
        if (c < 0 || (size_t)c != l->labels)
            return import_bad(l->m, line->number, "a label stands there twice, or is too long",
                              err);
        l->labels++;
        p = q;
    }
    return 0;
}

/* Called once all lines above the weights are read: checks what they say, and prepares for rows. */
static int end_head(struct liblinear *l, const struct drps_line *line, struct drps_err *err)
{
    struct import *m = l->m;
    const int is_regression = l->solver && strcmp(l->solver->algo, "lir") == 0;
    if (!l->solver || !l->features || !l->classes)
        return import_bad(m, line->number, "solver_type, nr_class or nr_feature is missing", err);
    if (!is_regression && l->labels != l->classes)
        return import_bad(m, line->number, "there are not as many labels as classes", err);
    const int named = !is_regression && (l->classes > 2 || l->solver->many);
    l->columns = named ? l->classes : 1;
    if (named && drps_classes_sort(m->classes, &l->to, err) < 0) return -ENOMEM;
    if (!named) {
        drps_classes_free(m->classes);
        m->classes = NULL;
    }
    if (!named && !is_regression) {
        l->negative = l->first_two[0] < l->first_two[1];
        m->info.label_negative = l->first_two[!l->negative];
        m->info.label_positive = l->first_two[l->negative];
    }
    l->in = drps_array_new(l->columns, sizeof(*l->in));
    l->row = drps_array_new(l->columns, sizeof(*l->row));
    if (!l->in || !l->row)
        return drps_err_set(err, -ENOMEM, "no memory for %zu weights", l->columns);
    const struct drps_model_terms terms = {
        .algo = named ? "svm" : l->solver->algo,
        .loss = named && strcmp(l->solver->algo, "svm") != 0 ? "hinge" : l->solver->loss,
        .classes = named ? (int)l->classes : !is_regression};
    l->in_weights = 1;
    (void)memcpy(m->info.format, "libsvm", sizeof("libsvm"));
    return import_describe(m, &terms, l->features, l->bias >= 0, err);
}

static int take_head(struct liblinear *l, const struct drps_line *line, struct drps_err *err)
{
    const char *p;
    uint64_t n;
    if (is_key(line, "solver_type", &p)) return take_solver(l, line, p, err);
    if (is_key(line, "nr_class", &p)) {
        const int rc = take_count(l, line, p, DRPS_CLASSES_MOST, &n, err);
        l->classes = (size_t)n;
        return rc;
    }
    if (is_key(line, "label", &p)) return take_labels(l, line, p, err);
    if (is_key(line, "nr_feature", &p))
        return take_count(l, line, p, UINT32_MAX - 2, &l->features, err);
    if (is_key(line, "bias", &p))
        return import_number(p, line->text + line->n, &l->bias)
                   ? 0
                   : import_bad(l->m, line->number, "bias is no number", err);
    if (is_key(line, "w", &p)) return end_head(l, line, err);
    return import_bad(l->m, line->number, "no line of a model of LIBLINEAR", err);
}

/* Reads the weights of a line into l->row. */
static int take_weights(struct liblinear *l, const struct drps_line *line, struct drps_err *err)
{
    const char *p = line->text, *const end = p + line->n;
    for (size_t c = 0; c < l->columns; c++) {
        p = import_number(p, end, &l->in[c]);
        if (!p)
            return import_bad(l->m, line->number, "too few weights, or one that is no number", err);
    }
    if (p < end) return import_bad(l->m, line->number, "too many weights", err);
    for (size_t c = 0; c < l->columns; c++)
        l->row[l->to ? l->to[c] : c] = l->negative ? -l->in[c] : l->in[c];
    return 0;
}

static int take_line(void *ctx, const struct drps_line *line, struct drps_err *err)
{
    struct liblinear *l = ctx;
    if (!l->in_weights) {
        const char *p;
        if (!l->writes) return take_head(l, line, err);
        l->in_weights = is_key(line, "w", &p);
        return 0;
    }
    const uint64_t due = l->features + (uint64_t)(l->bias >= 0);
    if (l->lines == due) return import_bad(l->m, line->number, "more weights than features", err);
    int rc = take_weights(l, line, err);
    const uint64_t at = l->lines++;
    if (rc < 0 || !l->writes || at == l->features) return rc;
    return drps_params_add_packed(l->m->params, at + (uint64_t)(l->bias >= 0), 1, l->row, err);
}

static int look(struct import *m, struct drps_err *err)
{
    struct liblinear *l = calloc(1, sizeof(*l));
    if (!l) return drps_err_set(err, -ENOMEM, "no memory to import %s", m->o->input);
    m->own = l;
    *l = (struct liblinear){.m = m, .bias = -1};
    int rc = drps_lines_read(&m->io, m->o->input, take_line, l, err);
    if (rc < 0) return rc;
    const uint64_t due = l->features + (uint64_t)(l->bias >= 0);
    if (l->in_weights && l->lines == due) return 0;
    return drps_err_set(err, DRPS_E_FORMAT, "%s ends after %llu of %llu weights: it is cut off",
                        m->o->input, (unsigned long long)l->lines, (unsigned long long)due);
}

/* The bias feature's weights, which were read last, are the intercept's. */
static int rows(struct import *m, struct drps_err *err)
{
    struct liblinear *l = m->own;
    int rc = 0;
    for (size_t c = 0; c < l->columns; c++)
        l->row[c] *= l->bias;
    if (l->bias >= 0) rc = drps_params_add_packed(m->params, 0, 1, l->row, err);
    l->in_weights = 0;
    l->lines = 0;
    l->writes = 1;
    return rc == 0 ? drps_lines_read(&m->io, m->o->input, take_line, l, err) : rc;
}

static int names(struct import *m, struct drps_err *err)
{
    const struct liblinear *l = m->own;
    return import_number_names(m, 1, l->bias >= 0, l->features, err);
}

static void end(struct import *m)
{
    struct liblinear *l = m->own;
    if (!l) return;
    free(l->to);
    free(l->in);
    free(l->row);
}

const struct import_source import_liblinear = {
    .name = "liblinear", .look = look, .rows = rows, .names = names, .end = end};
