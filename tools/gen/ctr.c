/*
 * Clicks on advertisements: every sample has one feature of each field, drawn by Zipf's law; fields
 * have from 3 to millions of features. Labels come from a hidden logistic model, with factors on
 * request.
 *
 * With drift, features come and go. A rank of a field stands for the same feature for 1 / drift
 * days; then a new feature takes its place. Meanwhile the feature's weight goes, in a line, from
 * one drawn at random to another.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tools/gen/gen.h"

#define POSITIVE_SHARE 0.25
#define LINEAR_SPREAD 1.5 /* standard deviations of the two parts of a sample's log odds */
#define FACTOR_SPREAD 1.2

enum { LEAST_FEATURES = 3, TABLES_MAX = 1 << 20, DAYS_MAX = 10000 };

struct field {
    uint64_t base; /* row numbers base .. base + zipf.n - 1 */
    struct gen_zipf zipf;
};

struct gen {
    size_t n_fields, factors;
    enum gen_format format;
    struct field *fields; /* own, [n_fields] */
    struct gen_shuffle shuffle;
    uint64_t rows, sample_seed, weight_seed, factor_seed, phase_seed, later_seed;
    uint64_t day_samples, ids_max;
    double drift;
    double linear_scale, factor_scale, bias;
    uint64_t *ids, *spare; /* own, [n_fields] each: one sample */
    int32_t *factor;       /* own, [GEN_FACTOR_ROOM(factors)]: of one row */
    int64_t *sum;          /* own, [factors]: over the rows of a sample */
};

static void ctr_free(struct gen *g)
{
    if (!g) return;
    for (size_t f = 0; g->fields && f < g->n_fields; f++)
        gen_zipf_destroy(&g->fields[f].zipf);
    free(g->fields);
    free(g->ids);
    free(g->spare);
    free(g->factor);
    free(g->sum);
    free(g);
}

/* Sum the features of the fields 0 .. n-1, where sizes grow by the same ratio. */
static double sizes_sum(size_t n, double log_largest)
{
    double sum = 0;
    for (size_t f = 0; f < n; f++)
        sum += LEAST_FEATURES * exp(log_largest * (double)f / (double)(n - 1));
    return sum;
}

/* Choose sizes from LEAST_FEATURES up, evenly spread on a logarithmic scale, that add up to g->rows
 * exactly. */
static int make_fields(struct gen *g, double zipf, struct drps_err *err)
{
    size_t n = g->n_fields;
    double low = 0, high = log((double)g->rows);
    for (int turn = 0; n > 1 && turn < 60; turn++) {
        double middle = (low + high) / 2;
        *(sizes_sum(n, middle) < (double)g->rows ? &low : &high) = middle;
    }
    uint64_t base = 0, tables = 0;
    for (size_t f = 0; f < n; f++) {
        uint64_t after =
            LEAST_FEATURES * (uint64_t)(n - 1 - f); /* at least that for the fields to come */
        uint64_t size = g->rows - base;
        if (f + 1 < n) {
            double even = LEAST_FEATURES * exp(low * (double)f / (double)(n - 1));
            size = even < (double)(size - after) ? (uint64_t)even : size - after;
        }
        tables += size;
        g->fields[f].base = base;
        int rc = gen_zipf_init(&g->fields[f].zipf, size, zipf, tables <= TABLES_MAX, err);
        if (rc < 0) return rc;
        base += size;
    }
    return 0;
}

/* Returns the feature that a row stands for on a day. It is a row of its own behind the earlier
 * ones. *age is the share of its life that is over. */
static uint64_t feature_on(const struct gen *g, uint64_t row, uint64_t day, double *age)
{
    *age = 0;
    if (g->drift <= 0) return row;
    const double lives = g->drift * (double)day + drps_unit_double(drps_rng_at(g->phase_seed, row));
    *age = lives - floor(lives);
    return row + (uint64_t)lives * g->rows;
}

static double weight_of(const struct gen *g, uint64_t feature, double age)
{
    const double first = gen_weight(g->weight_seed, feature);
    return age > 0 ? (1 - age) * first + age * gen_weight(g->later_seed, feature) : first;
}

/*
 * Draw the rows of the sample with this key into g->ids, shuffled and from 1. The two parts of its
 * log odds, not yet scaled, go to *linear and *factors.
 */
static void draw(struct gen *g, uint64_t key, uint64_t day, double *linear, double *factors)
{
    double z = 0, crossed = 0;
    int64_t squares = 0;
    memset(g->sum, 0, g->factors * sizeof(*g->sum));
    for (size_t f = 0; f < g->n_fields; f++) {
        const struct field *field = &g->fields[f];
        uint64_t row = field->base + gen_zipf_draw(&field->zipf, drps_rng_at(key, f));
        double age;
        const uint64_t feature = feature_on(g, row, day, &age);
        z += weight_of(g, feature, age);
        g->ids[f] = 1 + gen_shuffle_at(&g->shuffle, row) + (feature - row);
        if (!g->factors) continue;
        gen_factors(g->factor_seed, feature, g->factors, g->factor);
        for (size_t r = 0; r < g->factors; r++) {
            g->sum[r] += g->factor[r];
            squares += (int64_t)g->factor[r] * g->factor[r];
        }
    }
    /* Rendle's identity: the sum over pairs is (square of the sum - sum of the squares) / 2 */
    for (size_t r = 0; r < g->factors; r++)
        crossed += (double)g->sum[r] * (double)g->sum[r];
    crossed = (crossed - (double)squares) / 2;
    *linear = z;
    *factors = crossed * GEN_FACTOR_UNIT * GEN_FACTOR_UNIT;
}

static int calibrate(struct gen *g, uint64_t seed, struct drps_err *err)
{
    size_t n = GEN_CALIBRATION_SAMPLES;
    double *z = malloc(2 * n * sizeof(*z));
    if (!z) return drps_err_set(err, -ENOMEM, "no memory to calibrate labels");
    double *crossed = z + n, unused;
    uint64_t stream = gen_stream_seed(seed, GEN_CALIBRATE);
    for (size_t i = 0; i < n; i++)
        draw(g, drps_rng_at(stream, i), 0, &z[i], &crossed[i]);
    gen_calibrate(z, n, LINEAR_SPREAD, POSITIVE_SHARE, &g->linear_scale, &g->bias);
    if (g->factors) {
        gen_calibrate(crossed, n, FACTOR_SPREAD, POSITIVE_SHARE, &g->factor_scale, &unused);
        double spread = hypot(LINEAR_SPREAD, FACTOR_SPREAD), again;
        for (size_t i = 0; i < n; i++)
            z[i] += crossed[i];
        gen_calibrate(z, n, spread, POSITIVE_SHARE, &again, &g->bias);
        g->linear_scale *= again;
        g->factor_scale *= again;
    }
    free(z);
    return 0;
}

static int ctr_new(const struct gen_options *o, struct gen **g_out, struct drps_err *err)
{
    *g_out = NULL;
    if (o->day_samples && (o->samples - 1) / o->day_samples >= DAYS_MAX)
        return drps_err_set(err, DRPS_E_CONFIG, "%ju samples in days of %ju are more than %d days",
                            (uintmax_t)o->samples, (uintmax_t)o->day_samples, DAYS_MAX);
    if (o->rows < LEAST_FEATURES * o->fields)
        return drps_err_set(
            err, DRPS_E_CONFIG, "--rows %ju is too few: %ju fields need at least %ju",
            (uintmax_t)o->rows, (uintmax_t)o->fields, (uintmax_t)(LEAST_FEATURES * o->fields));
    struct gen *g = calloc(1, sizeof(*g));
    if (!g) return drps_err_set(err, -ENOMEM, "no memory for the generator");
    g->n_fields = (size_t)o->fields;
    g->factors = (size_t)o->interactions;
    g->format = o->format;
    g->rows = o->rows;
    g->sample_seed = gen_stream_seed(o->seed, GEN_SAMPLE);
    g->weight_seed = gen_stream_seed(o->seed, GEN_WEIGHT);
    g->factor_seed = gen_stream_seed(o->seed, GEN_FACTOR);
    g->phase_seed = gen_stream_seed(o->seed, GEN_PHASE);
    g->later_seed = gen_stream_seed(o->seed, GEN_LATER_WEIGHT);
    g->day_samples = o->day_samples;
    g->drift = o->day_samples ? o->drift : 0;
    g->ids_max = g->drift > 0 ? UINT64_MAX : g->rows;
    gen_shuffle_init(&g->shuffle, g->rows, gen_stream_seed(o->seed, GEN_SHUFFLE));
    g->fields = calloc(g->n_fields, sizeof(*g->fields));
    g->ids = calloc(g->n_fields, sizeof(*g->ids));
    g->spare = calloc(g->n_fields, sizeof(*g->spare));
    g->factor = calloc(GEN_FACTOR_ROOM(g->factors) + 1, sizeof(*g->factor));
    g->sum = calloc(g->factors + 1, sizeof(*g->sum));
    int rc = 0;
    if (!g->fields || !g->ids || !g->spare || !g->factor || !g->sum) {
        rc = drps_err_set(err, -ENOMEM, "no memory for %zu fields", g->n_fields);
        goto out;
    }
    rc = make_fields(g, o->zipf, err);
    if (rc == 0) rc = calibrate(g, o->seed, err);
    if (rc < 0) goto out;
    *g_out = g;
    g = NULL;
out:
    ctr_free(g);
    return rc;
}

static char *ctr_line(struct gen *g, uint64_t i, char *p, double *label, size_t *nnz)
{
    uint64_t key = drps_rng_at(g->sample_seed, i);
    uint64_t day = g->day_samples ? i / g->day_samples : 0;
    double linear, crossed;
    draw(g, key, day, &linear, &crossed);
    int click = gen_flip(g->linear_scale * linear + g->factor_scale * crossed + g->bias,
                         drps_rng_at(key, g->n_fields));
    *p++ = (char)('0' + click);
    if (g->format == GEN_LIBSVM) gen_sort(g->ids, g->spare, g->n_fields, g->ids_max);
    for (size_t f = 0; f < g->n_fields; f++) {
        *p++ = ' ';
        if (g->format == GEN_LIBFFM) {
            p = gen_put_count(p, f);
            *p++ = ':';
        }
        p = gen_put_count(p, g->ids[f]);
        *p++ = ':';
        *p++ = '1';
    }
    *p++ = '\n';
    *label = click;
    *nnz = g->n_fields;
    return p;
}

static size_t ctr_line_bytes(const struct gen *g)
{
    return 2 + g->n_fields * (sizeof(" 10000:18446744073709551615:1") - 1);
}

const struct gen_kind gen_ctr = {"ctr", ctr_new, ctr_line, ctr_line_bytes, ctr_free};
