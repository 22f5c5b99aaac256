/* The rules by which vectors are chosen, and their new u. */
#include "engine/cluster/sv/select/drps_select.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_rng.h"
#include "engine/cluster/sv/select/drps_gram.h"
#include "engine/cluster/sv/select/drps_jmcss.h"
#include "engine/cluster/sv/select/project.h"

static const double usual_least_captured = .75;

/* Where the parts of the scratch lie. */
struct parts {
    double *gram_u, *gram_x; /* [n][n] */
    double *factor;          /* [C][C] */
    double *rest;            /* for what is done one after the other */
};

static uint32_t least_of(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

static struct drps_jmcss jmcss_of(uint32_t n, const struct drps_select_options *o)
{
    return (struct drps_jmcss){.n = n, .count = o->count, .matrices = 2, .seed = o->seed};
}

static size_t most_of(size_t a, size_t b)
{
    return a > b ? a : b;
}

size_t drps_select_scratch(uint32_t n, uint32_t entries, const struct drps_select_options *options)
{
    const size_t c = least_of(n, options->count);
    const struct drps_jmcss j = jmcss_of(n, options);
    if (options->rule == DRPS_SELECT_ALL || options->rule == DRPS_SELECT_RANDOM)
        return sizeof(double);
    const size_t grams = most_of(drps_gram_scratch(n), drps_gram_sparse_scratch(entries));
    const size_t after = most_of(drps_jmcss_scratch(&j), projection_block_bytes((uint32_t)c));
    return (2 * (size_t)n * n + c * c) * sizeof(double) + most_of(grams, after);
}

static struct parts parts_of(void *scratch, size_t n, size_t c)
{
    double *at = scratch;
    return (struct parts){at, at + n * n, at + 2 * n * n, at + 2 * n * n + c * c};
}

/* ---- What is chosen ---- */

/* Each subset of that size has the same probability; picks increase. */
static void choose_random(uint32_t n, uint32_t count, uint64_t seed, uint32_t *picks)
{
    uint32_t chosen = 0;
    for (uint32_t i = 0; chosen < count; i++)
        if (drps_unit_double(drps_rng_at(seed, i)) * (double)(n - i) < (double)(count - chosen))
            picks[chosen++] = i;
}

static int by_number(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static int choose_jmcss(const struct drps_vectors *batch, const struct drps_select_options *o,
                        const struct parts *parts, uint32_t *picks, struct drps_err *err)
{
    const double *const grams[] = {parts->gram_u, parts->gram_x};
    struct drps_jmcss j = jmcss_of(batch->n, o);
    uint32_t drawn;
    j.grams = grams;
    drps_gram_dense(batch, parts->rest, parts->gram_u);
    drps_gram_sparse(batch, parts->rest, parts->gram_x);
    int rc = drps_jmcss(&j, parts->rest, picks, &drawn, NULL, err);
    if (rc == 0) qsort(picks, least_of(batch->n, o->count), sizeof(*picks), by_number);
    return rc;
}

/* ---- Their new u ---- */

static void scale(const struct drps_vectors *batch, struct drps_selected *out)
{
    const float by = (float)((double)batch->n / (double)out->n);
    const size_t dim = batch->dim;
    for (size_t c = 0; c < out->n; c++)
        for (size_t k = 0; k < dim; k++)
            out->u[c * dim + k] = by * batch->u[out->picks[c] * dim + k];
}

static void take_random(const struct drps_vectors *batch, uint64_t seed, struct drps_selected *out)
{
    choose_random(batch->n, out->n, seed, out->picks);
    scale(batch, out);
}

static int take_jmcss(const struct drps_vectors *batch, const struct drps_select_options *o,
                      const struct parts *parts, struct drps_selected *out, struct drps_err *err)
{
    int rc = choose_jmcss(batch, o, parts, out->picks, err);
    if (rc == 0) scale(batch, out);
    return rc;
}

static int take_projected(const struct drps_vectors *batch, const struct drps_select_options *o,
                          const struct parts *parts, float *error, struct drps_selected *out,
                          struct drps_err *err)
{
    const double least = o->least_captured > 0 ? o->least_captured : usual_least_captured;
    const struct projection p = {.batch = batch,
                                 .picks = out->picks,
                                 .count = out->n,
                                 .gram_u = parts->gram_u,
                                 .gram_x = parts->gram_x,
                                 .factor = parts->factor,
                                 .block = parts->rest};
    int rc = choose_jmcss(batch, o, parts, out->picks, err);
    if (rc < 0) return rc;
    out->captured = project(&p, out->u);
    out->projected = out->captured >= least;
    if (!out->projected)
        take_random(batch, o->seed, out);
    else if (error)
        project_error(&p, error, out->u);
    return 0;
}

static void take_all(const struct drps_vectors *batch, struct drps_selected *out)
{
    for (uint32_t i = 0; i < batch->n; i++)
        out->picks[i] = i;
    if (batch->n) memcpy(out->u, batch->u, (size_t)batch->n * batch->dim * sizeof(float));
}

int drps_select(const struct drps_vectors *batch, const struct drps_select_options *options,
                float *error, void *scratch, struct drps_selected *out, struct drps_err *err)
{
    const int all = options->rule == DRPS_SELECT_ALL || options->count >= batch->n;
    out->n = all ? batch->n : options->count;
    out->captured = 0;
    out->projected = 0;
    if (batch->n > DRPS_SELECT_VECTORS_MOST || (!options->count && !all))
        return drps_err_set(err, -EINVAL, "%u of %u sufficient vectors cannot be chosen",
                            options->count, batch->n);
    if (all)
        take_all(batch, out);
    else if (options->rule == DRPS_SELECT_RANDOM)
        take_random(batch, options->seed, out);
    if (all || options->rule == DRPS_SELECT_RANDOM) return 0;
    const struct parts parts = parts_of(scratch, batch->n, out->n);
    return options->rule == DRPS_SELECT_JMCSS
               ? take_jmcss(batch, options, &parts, out, err)
               : take_projected(batch, options, &parts, error, out, err);
}
