/* Algorithm 3: what a sample will change, by what the recent samples most like it have changed. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/drps_alloc.h"
#include "partition/dynamic/recent.h"

struct estimate {
    const struct drps_recent *recent;
    const struct drps_correlation_options *o;
    struct drps_near *near; /* own [r] */
    double *sum;            /* own [U] of s_l q_l */
    size_t cap_units, cap_weights;
};

/* The similarity of a neighbour: 1 / distance, or of those at distance 0, which then are alone, 1.
 */
static double similarity(const struct drps_near *near, uint32_t l)
{
    if (near[0].distance == 0) return near[l].distance == 0;
    return 1 / near[l].distance;
}

static void add_changed(const struct drps_recent *r, uint32_t at, double s, double *sum)
{
    const uint64_t *bits = &r->changed[at * r->words];
    for (size_t word = 0; word < r->words; word++)
        for (uint64_t left = bits[word]; left; left &= left - 1)
            sum[word * 64 + (size_t)__builtin_ctzll(left)] += s;
}

static int add_edges(struct estimate *e, const float *x, struct drps_correlation *out,
                     size_t *edges)
{
    const uint32_t found = drps_recent_nearest(e->recent, x, e->o->nearest, e->near);
    double all = 0;
    for (uint32_t u = 0; u < out->units; u++)
        e->sum[u] = 0;
    for (uint32_t l = 0; l < found; l++) {
        const double s = similarity(e->near, l);
        all += s;
        if (s > 0) add_changed(e->recent, e->near[l].at, s, e->sum);
    }
    const double divisor = all * (e->o->printed ? found : 1);
    for (uint32_t u = 0; u < out->units; u++) {
        if (!(e->sum[u] > 0) || !(e->sum[u] / divisor > e->o->least)) continue;
        if (drps_array_reserve(&out->unit, &e->cap_units, *edges + 1, sizeof(*out->unit)) < 0 ||
            drps_array_reserve(&out->weight, &e->cap_weights, *edges + 1, sizeof(*out->weight)) < 0)
            return -ENOMEM;
        out->unit[*edges] = u;
        out->weight[(*edges)++] = e->sum[u] / divisor;
    }
    return 0;
}

static int check(const struct drps_recent *r, const float *x, size_t n,
                 const struct drps_correlation_options *o, struct drps_err *err)
{
    if (!o->nearest || !(o->least >= 0))
        return drps_err_set(err, DRPS_E_CONFIG,
                            "correlation: %u nearest samples, edges above %g: at least 1, and 0",
                            (unsigned)o->nearest, o->least);
    for (size_t i = 0; i < n * r->width; i++)
        if (!isfinite(x[i]))
            return drps_err_set(err, -EINVAL, "sample %zu of the batch: value %zu is not finite",
                                i / r->width, i % r->width);
    return 0;
}

int drps_correlation_new(const struct drps_recent *r, const float *x, size_t n,
                         const struct drps_correlation_options *o, struct drps_correlation *out,
                         struct drps_err *err)
{
    struct estimate e = {.recent = r, .o = o};
    size_t edges = 0;
    *out = (struct drps_correlation){.n = n, .units = r->units};
    int rc = check(r, x, n, o, err);
    if (rc < 0) goto out;
    e.near = drps_array_new(o->nearest < r->most ? o->nearest : r->most, sizeof(*e.near));
    e.sum = drps_array_new(r->units, sizeof(*e.sum));
    out->starts = drps_array_new(n < SIZE_MAX ? n + 1 : n, sizeof(*out->starts));
    rc = e.near && e.sum && out->starts ? 0 : -ENOMEM;
    if (rc == 0) out->starts[0] = 0;
    for (size_t d = 0; d < n && rc == 0; d++) {
        rc = add_edges(&e, &x[d * r->width], out, &edges);
        out->starts[d + 1] = edges;
    }
    if (rc < 0) drps_err_set(err, rc, "correlation of %zu samples", n);
out:
    free(e.near);
    free(e.sum);
    if (rc < 0) drps_correlation_destroy(out);
    return rc;
}

void drps_correlation_destroy(struct drps_correlation *c)
{
    free(c->starts);
    free(c->unit);
    free(c->weight);
    *c = (struct drps_correlation){0};
}
