/* Parts are computed (parts.c), sorted, named and written. */
#include "engine/predict/explain.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"
#include "base/folder/drps_escape.h"

struct drps_explain_part {
    double contribution, value;
    size_t place; /* of the entry in the data's piece; PAIR: of both together */
};
enum { PAIR = -1 };

_Static_assert(sizeof(double) + sizeof(struct drps_explain_part) <= DRPS_EXPLAIN_ENTRY_BYTES,
               "what a feature takes");

int drps_explain_open(struct drps_explain *e, struct drps_modeldir *md, size_t entries,
                      struct drps_err *err)
{
    const struct drps_modeldir_info *info = drps_modeldir_info(md);
    static const char head[] = "sample\tfeature\tvalue\tcontribution\n";
    e->info = info;
    e->cap = entries + 1;
    if (!drps_parts_exist(&info->model) || (info->model.outputs > 1 && !info->classes))
        return drps_err_set(err, DRPS_E_CONFIG,
                            "predictions of algorithm %s cannot be explained: %s",
                            drps_algo_name(info->model.algo),
                            info->model.layers.n      ? "a net's score is no sum over features"
                            : info->model.outputs > 1 ? "a sample has several scores"
                                                      : "a document's code is no sum over words");
    e->of = drps_array_new(e->cap, sizeof(*e->of));
    e->sums = drps_array_new(info->model.factors, sizeof(*e->sums));
    e->parts = drps_array_new(e->cap, sizeof(*e->parts));
    if (!e->of || !e->sums || !e->parts)
        return drps_err_set(err, -ENOMEM, "no memory for samples of %zu features", entries);
    int rc = drps_readout_open(md, 0, &e->names, err);
    if (rc == 0 && !e->json) rc = drps_textfile_put(e->out, head, sizeof(head) - 1, err);
    return rc;
}

void drps_explain_close(struct drps_explain *e)
{
    drps_readout_close(&e->names);
    free(e->of);
    free(e->sums);
    free(e->parts);
    memset(e, 0, sizeof(*e));
}

/* ---- Parts ---- */

/* The largest first; equal ones in the order of the data. */
static int by_size(const void *a, const void *b)
{
    const struct drps_explain_part *x = a, *y = b;
    const double u = fabs(x->contribution), v = fabs(y->contribution);
    if (u > v) return -1;
    if (u < v) return 1;
    return x->place < y->place ? -1 : x->place > y->place;
}

/* Returns how many parts the sample has, sorted; *score_out is their sum. */
static size_t make_parts(struct drps_explain *e, const struct drps_scorer *scorer, size_t s,
                         size_t output, double *intercept_out, double *score_out)
{
    const struct drps_batch *b = &scorer->batch;
    const size_t first = drps_batch_start(b, s);
    size_t n = drps_batch_start(b, s + 1) - first;
    struct drps_parts parts = {.of = e->of};
    drps_parts_of(&e->info->model, b, s, scorer->params, output, e->sums, &parts);
    *score_out = *intercept_out = parts.intercept;
    for (size_t i = 0; i < n; i++) {
        e->parts[i] = (struct drps_explain_part){.contribution = e->of[i],
                                                 .value = (double)drps_batch_value(b, first + i),
                                                 .place = scorer->places[first + i]};
        *score_out += e->of[i];
    }
    if (e->info->model.factors && n == 2 &&
        drps_algorithm_rates(drps_algorithm(e->info->model.algo))) {
        e->parts[n] = (struct drps_explain_part){.contribution = parts.pair,
                                                 .value = e->parts[0].value * e->parts[1].value,
                                                 .place = (size_t)PAIR};
        *score_out += parts.pair;
        n++;
    }
    qsort(e->parts, n, sizeof(*e->parts), by_size);
    return n;
}

/* ---- Lines ---- */

static int put_place(struct drps_explain *e, size_t place, struct drps_err *err)
{
    struct drps_modeldata_name n;
    const char *name;
    size_t bytes;
    drps_modeldata_name(e->data, place, &n);
    int rc = drps_readout_name(&e->names, n.key, n.field, n.text, n.bytes, &name, &bytes, err);
    return rc == 0 ? drps_textfile_put_name(e->out, e->json ? DRPS_NAME_IN_JSON : DRPS_NAME_IN_TABS,
                                            name, bytes, err)
                   : rc;
}

/* A user and an item together are called "user=17*item=5". */
static int put_feature(struct drps_explain *e, const struct drps_scorer *scorer, size_t s,
                       size_t place, struct drps_err *err)
{
    const size_t first = drps_batch_start(&scorer->batch, s);
    if (place != (size_t)PAIR) return put_place(e, place, err);
    int rc = put_place(e, scorer->places[first], err);
    if (rc == 0) rc = drps_textfile_put(e->out, "*", 1, err);
    return rc == 0 ? put_place(e, scorer->places[first + 1], err) : rc;
}

static int put_class(struct drps_explain *e, size_t output, struct drps_err *err)
{
    const char *name = drps_classes_name(e->info->classes, output);
    return drps_textfile_put_name(e->out, e->json ? DRPS_NAME_IN_JSON : DRPS_NAME_IN_TABS, name,
                                  strlen(name), err);
}

/* One sample on its way out. */
struct explained {
    const struct drps_scorer *scorer;
    size_t s, output, n, shown;
    uint64_t number;
    double intercept, score, others;
};

static int write_tabs(struct drps_explain *e, const struct explained *x, struct drps_err *err)
{
    const unsigned long long number = x->number;
    int rc = 0;
    if (e->info->model.has_bias)
        rc = drps_textfile_print(e->out, err, "%llu\t" DRPS_READOUT_INTERCEPT "\t1\t%.9g\n", number,
                                 x->intercept);
    for (size_t i = 0; rc == 0 && i < x->shown; i++) {
        const struct drps_explain_part *part = &e->parts[i];
        rc = drps_textfile_print(e->out, err, "%llu\t", number);
        if (rc == 0) rc = put_feature(e, x->scorer, x->s, part->place, err);
        if (rc == 0)
            rc =
                drps_textfile_print(e->out, err, "\t%.9g\t%.9g\n", part->value, part->contribution);
    }
    if (rc == 0 && x->shown < x->n)
        rc = drps_textfile_print(e->out, err, "%llu\t(others)\t\t%.9g\n", number, x->others);
    if (rc == 0) rc = drps_textfile_print(e->out, err, "%llu\t(score", number);
    if (rc == 0 && e->info->classes) rc = drps_textfile_put(e->out, " of ", 4, err);
    if (rc == 0 && e->info->classes) rc = put_class(e, x->output, err);
    return rc == 0 ? drps_textfile_print(e->out, err, ")\t\t%.9g\n", x->score) : rc;
}

static int write_json(struct drps_explain *e, const struct explained *x, struct drps_err *err)
{
    int rc = drps_textfile_print(e->out, err, "{\"sample\": %llu", (unsigned long long)x->number);
    if (rc == 0 && e->info->classes) {
        rc = drps_textfile_put(e->out, ", \"class\": \"", 12, err);
        if (rc == 0) rc = put_class(e, x->output, err);
        if (rc == 0) rc = drps_textfile_put(e->out, "\"", 1, err);
    }
    if (rc == 0)
        rc = drps_textfile_print(e->out, err,
                                 ", \"score\": %.9g, \"intercept\": %.9g, \"features\": [",
                                 x->score, x->intercept);
    for (size_t i = 0; rc == 0 && i < x->shown; i++) {
        const struct drps_explain_part *part = &e->parts[i];
        rc = drps_textfile_print(e->out, err, "%s{\"feature\": \"", i ? ", " : "");
        if (rc == 0) rc = put_feature(e, x->scorer, x->s, part->place, err);
        if (rc == 0)
            rc = drps_textfile_print(e->out, err, "\", \"value\": %.9g, \"contribution\": %.9g}",
                                     part->value, part->contribution);
    }
    return rc == 0 ? drps_textfile_print(e->out, err, "], \"others\": %.9g}\n", x->others) : rc;
}

int drps_explain_sample(struct drps_explain *e, const struct drps_scorer *scorer, size_t s,
                        uint64_t number, struct drps_err *err)
{
    const size_t outputs = e->info->model.outputs;
    struct explained x = {.scorer = scorer, .s = s, .number = number};
    if (e->info->classes) x.output = drps_softmax_best(scorer->scores + s * outputs, outputs);
    x.n = make_parts(e, scorer, s, x.output, &x.intercept, &x.score);
    x.shown = x.n < e->most ? x.n : e->most;
    for (size_t i = x.shown; i < x.n; i++)
        x.others += e->parts[i].contribution;
    return e->json ? write_json(e, &x, err) : write_tabs(e, &x, err);
}
