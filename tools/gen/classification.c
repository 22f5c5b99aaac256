/*
 * The papers' "Classification": skewed ids over one wide range, a varying number of real-valued
 * features a sample, labels from a hidden sparse logistic model, half of them positive.
 */
#include <errno.h>
#include <stdlib.h>

#include "tools/gen/gen.h"

#define POSITIVE_SHARE 0.5
#define SPREAD 2.5 /* standard deviation of a sample's log odds */

enum { VALUE_STEPS = 10000, TRIES = 4 };

struct gen {
    uint64_t rows, nnz, sample_seed, weight_seed;
    struct gen_zipf zipf;
    struct gen_shuffle shuffle;
    double scale, bias;
    uint64_t *ids, *spare; /* own, [2 nnz]: one sample */
    uint32_t *values;      /* own, [2 nnz]: in steps of 1 / VALUE_STEPS */
    /* Ids seen in this sample, an open hash: entry p holds ids[seen[p].at] when seen[p].turn is
     * `turn`. */
    struct {
        uint32_t turn, at;
    } * seen; /* own, [seen_mask + 1] */
    size_t seen_mask;
    uint32_t turn;
};

static void classification_free(struct gen *g)
{
    if (!g) return;
    gen_zipf_destroy(&g->zipf);
    free(g->ids);
    free(g->spare);
    free(g->values);
    free(g->seen);
    free(g);
}

/* Add an id that the sample does not have yet as its n-th; 0 when it has it. */
static int add_id(struct gen *g, uint64_t id, size_t n)
{
    size_t p = drps_mix64(id) & g->seen_mask;
    for (; g->seen[p].turn == g->turn; p = (p + 1) & g->seen_mask)
        if (g->ids[g->seen[p].at] == id) return 0;
    g->seen[p].turn = g->turn;
    g->seen[p].at = (uint32_t)n;
    g->ids[n] = id;
    return 1;
}

/* Draw the sample with this key into g->ids and g->values; returns its log odds, not yet scaled. */
static double draw(struct gen *g, uint64_t key, size_t *n_out)
{
    size_t want = 1 + (size_t)(drps_rng_at(key, 0) % (2 * g->nnz - 1));
    size_t n = 0;
    double z = 0;
    if (++g->turn == 0) { /* the turns went round: forget all */
        for (size_t p = 0; p <= g->seen_mask; p++)
            g->seen[p].turn = 0;
        g->turn = 1;
    }
    /* Frequent ids come again; a steep law may not have enough others, so the tries are bounded. */
    for (size_t t = 1; n < want && t <= TRIES * want; t++) {
        uint64_t row = gen_zipf_draw(&g->zipf, drps_rng_at(key, t));
        n += (size_t)add_id(g, 1 + gen_shuffle_at(&g->shuffle, row), n);
    }
    gen_sort(g->ids, g->spare, n, g->rows);
    for (size_t i = 0; i < n; i++) {
        g->values[i] = 1 + (uint32_t)((drps_rng_at(~key, i) >> 32) * VALUE_STEPS >> 32);
        z += gen_weight(g->weight_seed, g->ids[i]) * g->values[i];
    }
    *n_out = n;
    return z / VALUE_STEPS;
}

static int calibrate(struct gen *g, uint64_t seed, struct drps_err *err)
{
    size_t n = GEN_CALIBRATION_SAMPLES, unused;
    double *z = malloc(n * sizeof(*z));
    if (!z) return drps_err_set(err, -ENOMEM, "no memory to calibrate labels");
    uint64_t stream = gen_stream_seed(seed, GEN_CALIBRATE);
    for (size_t i = 0; i < n; i++)
        z[i] = draw(g, drps_rng_at(stream, i), &unused);
    gen_calibrate(z, n, SPREAD, POSITIVE_SHARE, &g->scale, &g->bias);
    free(z);
    return 0;
}

static int classification_new(const struct gen_options *o, struct gen **g_out, struct drps_err *err)
{
    *g_out = NULL;
    if (2 * o->nnz - 1 > o->rows)
        return drps_err_set(err, DRPS_E_CONFIG,
                            "--rows %ju is too few: samples have up to %ju features (2 nnz - 1)",
                            (uintmax_t)o->rows, (uintmax_t)(2 * o->nnz - 1));
    struct gen *g = calloc(1, sizeof(*g));
    if (!g) return drps_err_set(err, -ENOMEM, "no memory for the generator");
    g->rows = o->rows;
    g->nnz = o->nnz;
    g->sample_seed = gen_stream_seed(o->seed, GEN_SAMPLE);
    g->weight_seed = gen_stream_seed(o->seed, GEN_WEIGHT);
    gen_shuffle_init(&g->shuffle, g->rows, gen_stream_seed(o->seed, GEN_SHUFFLE));
    size_t most = 2 * (size_t)g->nnz;
    size_t entries = 4;
    while (entries < 2 * most)
        entries *= 2;
    g->seen_mask = entries - 1;
    g->ids = calloc(most, sizeof(*g->ids));
    g->spare = calloc(most, sizeof(*g->spare));
    g->values = calloc(most, sizeof(*g->values));
    g->seen = calloc(entries, sizeof(*g->seen));
    int rc = 0;
    if (!g->ids || !g->spare || !g->values || !g->seen) {
        rc = drps_err_set(err, -ENOMEM, "no memory for samples of %zu features", most);
        goto out;
    }
    rc = gen_zipf_init(&g->zipf, g->rows, o->zipf, 1, err);
    if (rc == 0) rc = calibrate(g, o->seed, err);
    if (rc < 0) goto out;
    *g_out = g;
    g = NULL;
out:
    classification_free(g);
    return rc;
}

/* "0.0001" to "0.9999", "1" */
static char *put_value(char *p, uint32_t steps)
{
    if (steps == VALUE_STEPS) {
        *p++ = '1';
        return p;
    }
    *p++ = '0';
    gen_put_count(
        p, steps + VALUE_STEPS); /* "1" and four digits; the point takes the place of the one */
    *p = '.';
    return p + 5;
}

static char *classification_line(struct gen *g, uint64_t i, char *p, double *label, size_t *nnz)
{
    uint64_t key = drps_rng_at(g->sample_seed, i);
    size_t n;
    double z = draw(g, key, &n);
    int positive = gen_flip(g->scale * z + g->bias, drps_rng_at(~key, UINT64_MAX));
    if (!positive) *p++ = '-';
    *p++ = '1';
    for (size_t k = 0; k < n; k++) {
        *p++ = ' ';
        p = gen_put_count(p, g->ids[k]);
        *p++ = ':';
        p = put_value(p, g->values[k]);
    }
    *p++ = '\n';
    *label = positive ? 1 : -1;
    *nnz = n;
    return p;
}

static size_t classification_line_bytes(const struct gen *g)
{
    return 3 + 2 * (size_t)g->nnz * (sizeof(" 18446744073709551615:0.1234") - 1);
}

const struct gen_kind gen_classification = {"classification", classification_new,
                                            classification_line, classification_line_bytes,
                                            classification_free};
