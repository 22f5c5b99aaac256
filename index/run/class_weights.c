/*
 * Weights of classes: "balanced", or those that are named. They are settled once all samples are
 * read, and multiply the weights of training samples as batches are cut; samples of evaluation keep
 * theirs, so that metrics stay those of the data.
 *
 * Balanced: a class whose samples weigh c of all, n, gets n / (classes c). So all classes weigh the
 * same together, and all samples as much as before.
 */
#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"
#include "index/run/run.h"

/* What training samples of each class weigh together, by the numbers that batches have: of two
 * labels that are numbers 0 for the smaller one, 1 for the other. */
static void sum_classes(const struct index_run *r, size_t n, double *sums)
{
    const struct label_set *set = &r->parsed.labels;
    memset(sums, 0, n * sizeof(*sums));
    for (size_t i = 0; r->classes && i < n; i++)
        sums[(size_t)r->label_of[i]] = drps_exact_value(&r->parsed.in_training[i]);
    for (size_t i = 0; !r->classes && i < set->n; i++)
        sums[set->values[i] == r->info->label_positive] = drps_exact_value(&set->weights[i]);
}

static void balance(const double *sums, size_t n, float *weights)
{
    double all = 0, classes = 0;
    for (size_t i = 0; i < n; i++) {
        all += sums[i];
        classes += sums[i] > 0;
    }
    for (size_t i = 0; i < n; i++) /* a class of tests alone has no training sample to weigh */
        weights[i] = sums[i] > 0 ? (float)(all / (classes * sums[i])) : 1.0f;
}

/* Returns the number of the class of this name, -1 if there is none. */
static int32_t class_named(const struct index_run *r, const char *name)
{
    const float number = r->classes ? 0 : drps_reader_label_number(name);
    if (r->classes) return drps_classes_find(r->classes, name, strlen(name));
    if (number == r->info->label_positive) return 1;
    return number == r->info->label_negative ? 0 : -1;
}

static int no_class(const struct index_run *r, const char *name, struct drps_err *err)
{
    char names[160];
    if (r->classes)
        return drps_err_set(err, DRPS_E_CONFIG,
                            "class weights: no label is '%.100s'; the classes are: %s", name,
                            drps_classes_text(r->classes, names, sizeof(names)));
    return drps_err_set(err, DRPS_E_CONFIG,
                        "class weights: no label is '%.100s'; the labels are %g and %g", name,
                        (double)r->info->label_negative, (double)r->info->label_positive);
}

/* Cut "NAME=W" at its last "=", and read W. */
static int split_one(char *text, float *weight_out, struct drps_err *err)
{
    char *equals = strrchr(text, '='), *end = NULL;
    *weight_out = equals && equals[1] ? strtof(equals + 1, &end) : 0;
    if (!end || *end || !(*weight_out > 0) || !(*weight_out <= FLT_MAX))
        return drps_err_set(
            err, DRPS_E_CONFIG,
            "class weights: '%.100s' is not NAME=W with a number W above 0; 'balanced' "
            "stands for weights by the samples of each class",
            text);
    *equals = '\0';
    return 0;
}

/* Take all of "NAME=W,NAME=W". `r` NULL: only look whether they can be read. */
static int take_named(const struct index_run *r, const char *wanted, float *weights,
                      struct drps_err *err)
{
    char *text = strdup(wanted), *at = text, *one;
    int rc = text ? 0 : drps_err_set(err, -ENOMEM, "no memory for weights of classes");
    while (rc == 0 && (one = strsep(&at, ","))) {
        float weight;
        rc = split_one(one, &weight, err);
        if (rc < 0 || !r) continue;
        const int32_t number = class_named(r, one);
        if (number < 0)
            rc = no_class(r, one, err);
        else
            weights[number] = weight;
    }
    free(text);
    return rc;
}

static int is_balanced(const char *wanted)
{
    return strcmp(wanted, "balanced") == 0;
}

static int need_classes(const char *algo, struct drps_err *err)
{
    return drps_err_set(err, DRPS_E_CONFIG,
                        "class weights need labels that are classes, and those of the algorithm %s "
                        "are numbers here",
                        algo);
}

int drps_run_check_class_weights(const struct drps_index_options *o, struct drps_err *err)
{
    if (!o->class_weights) return 0;
    if (drps_algorithm_find(o->algo)->labels == DRPS_LABELS_REAL) return need_classes(o->algo, err);
    return is_balanced(o->class_weights) ? 0 : take_named(NULL, o->class_weights, NULL, err);
}

int drps_run_weigh_classes(struct index_run *r, struct drps_err *err)
{
    const char *wanted = r->options.class_weights;
    const size_t n = r->classes ? drps_classes_count(r->classes) : 2;
    if (!wanted) return 0;
    if (!r->info->classification)
        return drps_err_set(
            err, DRPS_E_CONFIG,
            "class weights need labels that are classes, and those of the algorithm "
            "%s are numbers here",
            r->options.algo);
    r->class_weights = drps_array_new(n, sizeof(*r->class_weights));
    double *sums = drps_array_new(n, sizeof(*sums));
    int rc = r->class_weights && sums
                 ? 0
                 : drps_err_set(err, -ENOMEM, "no memory for weights of %zu classes", n);
    for (size_t i = 0; rc == 0 && i < n; i++)
        r->class_weights[i] = 1;
    if (rc == 0 && is_balanced(wanted)) {
        sum_classes(r, n, sums);
        balance(sums, n, r->class_weights);
    } else if (rc == 0) {
        rc = take_named(r, wanted, r->class_weights, err);
    }
    free(sums);
    return rc;
}

int drps_run_weight_of(const struct index_run *r, float label, float weight, float *out,
                       struct drps_err *err)
{
    const size_t number = r->classes ? (size_t)label : label > 0;
    *out = r->class_weights ? weight * r->class_weights[number] : weight;
    if (*out > 0 && *out <= FLT_MAX) return 0;
    return drps_err_set(err, DRPS_E_CONFIG,
                        "a sample of weight %g in a class of weight %g: a float cannot hold their "
                        "product",
                        (double)weight, (double)r->class_weights[number]);
}
