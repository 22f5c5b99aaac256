/* Degrees are counted in one walk over the batches, and then sorted by counting. */
#include "index/degrees/drps_degrees.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"
#include "index/walk/drps_walk.h"

/* How many features, or samples, have each degree; those with more are counted in ranges alone. */
struct side {
    struct drps_degree_counts *out;
    uint64_t *exact; /* own: [DRPS_DEGREES_EXACT] */
};

static unsigned range_of(uint64_t degree)
{
    return degree ? 64u - (unsigned)__builtin_clzll(degree) : 0;
}

static void add(struct side *s, uint64_t degree)
{
    s->out->n++;
    s->out->in_range[range_of(degree)]++;
    if (degree > s->out->most) s->out->most = degree;
    if (degree < DRPS_DEGREES_EXACT) s->exact[degree]++;
}

/* The smallest degree that a share of all do not exceed. */
static uint64_t quantile(const struct side *s, double share)
{
    const double wanted = share * (double)s->out->n;
    uint64_t sum = 0;
    if (!s->out->n) return 0;
    for (uint64_t d = 0; d < DRPS_DEGREES_EXACT; d++) {
        sum += s->exact[d];
        if (s->exact[d] && (double)sum >= wanted) return d;
    }
    for (unsigned r = range_of(DRPS_DEGREES_EXACT); r < DRPS_DEGREE_RANGES; r++) {
        sum += s->out->in_range[r];
        if ((double)sum >= wanted) return drps_degree_range_first(r);
    }
    return 0;
}

static void finish(struct side *s)
{
    s->out->median = quantile(s, 0.5);
    s->out->p90 = quantile(s, 0.9);
    s->out->p99 = quantile(s, 0.99);
}

/* The entry of a sample's own row has the value 0. */
static int is_feature(const struct drps_batch *b, size_t entry)
{
    return drps_batch_value(b, entry) != 0;
}

static void add_batch(const struct drps_batch *b, const uint32_t *rows, uint32_t *uses,
                      struct side *samples)
{
    for (size_t i = 0; i < b->samples; i++) {
        uint64_t degree = 0;
        for (size_t j = drps_batch_start(b, i); j < drps_batch_start(b, i + 1); j++) {
            if (!is_feature(b, j)) continue;
            degree++;
            uses[rows[drps_batch_local(b, j)]]++;
        }
        add(samples, degree);
    }
}

static int walk(const struct drps_plan *plan, uint32_t *uses, struct side *samples,
                struct drps_err *err)
{
    struct drps_walk w;
    struct drps_batch b;
    const uint32_t *rows;
    int rc = drps_walk_open(&w, plan, err);
    for (uint64_t s = 0; rc == 0 && s < plan->info.batches; s++) {
        rc = drps_walk_read(&w, s, &b, &rows, err);
        if (rc == 0) add_batch(&b, rows, uses, samples);
    }
    drps_walk_close(&w);
    return rc;
}

/* The first row that is a feature's. */
static uint64_t first_feature(const struct drps_plan_info *info)
{
    const struct drps_algorithm *a = drps_plan_algorithm(info);
    const size_t before = (size_t)(drps_plan_common_rows(info) != 0) +
                          (size_t)(a && drps_algorithm_has_sample_rows(a));
    return before < info->tables_n ? info->tables[before].first : info->rows;
}

int drps_degrees_count(const struct drps_plan *plan, struct drps_degrees *out, struct drps_err *err)
{
    const uint64_t rows = plan->info.rows;
    struct side features = {.out = &out->features}, samples = {.out = &out->samples};
    memset(out, 0, sizeof(*out));
    uint32_t *uses = calloc((size_t)rows + 1, sizeof(*uses));
    features.exact = calloc(DRPS_DEGREES_EXACT, sizeof(*features.exact));
    samples.exact = calloc(DRPS_DEGREES_EXACT, sizeof(*samples.exact));
    int rc = uses && features.exact && samples.exact
                 ? walk(plan, uses, &samples, err)
                 : drps_err_set(err, -ENOMEM, "no memory to count the uses of %llu rows",
                                (unsigned long long)rows);
    for (uint64_t row = first_feature(&plan->info); rc == 0 && row < rows; row++) {
        add(&features, uses[row]);
        out->edges += uses[row];
    }
    if (rc == 0) finish(&features);
    if (rc == 0) finish(&samples);
    free(uses);
    free(features.exact);
    free(samples.exact);
    return rc;
}
