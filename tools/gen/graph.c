/*
 * A random graph of samples and features, whose two sides have any sizes: each sample has each
 * feature with the same probability. The synthetic sets of Duan and Wu, "Accelerating distributed
 * machine learning with model compression and graph partition", section 6.1, which vary n : m,
 * samples to parameters. Labels are from a hidden sparse logistic model, half of them positive.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "tools/gen/gen.h"

#define POSITIVE_SHARE 0.5
#define SPREAD 2.5 /* standard deviation of a sample's log odds */

struct gen {
    uint64_t rows, sample_seed, weight_seed;
    double log_none; /* of the probability that a sample lacks a feature; 0: it has all */
    size_t most;     /* features of a sample: nobody has seen more */
    uint64_t *ids;   /* own, [most] */
    double scale, bias;
};

static void graph_free(struct gen *g)
{
    if (!g) return;
    free(g->ids);
    free(g);
}

/* Draw the ids of the sample with this key: gaps between them are geometric. Returns its log odds,
 * not yet scaled. */
static double draw(struct gen *g, uint64_t key, size_t *n_out)
{
    uint64_t at = 0;
    size_t n = 0;
    double z = 0;
    for (; n < g->most; n++) {
        const double u = 1 - drps_unit_double(drps_rng_at(key, n)); /* above 0 */
        const double gap = g->log_none < 0 ? floor(log(u) / g->log_none) : 0;
        if (!(gap < (double)(g->rows - at))) break;
        at += (uint64_t)gap + 1;
        g->ids[n] = at;
        z += gen_weight(g->weight_seed, at);
    }
    *n_out = n;
    return z;
}

static int calibrate(struct gen *g, uint64_t seed, struct drps_err *err)
{
    size_t n = GEN_CALIBRATION_SAMPLES, unused;
    double *z = malloc(n * sizeof(*z));
    if (!z) return drps_err_set(err, -ENOMEM, "no memory to calibrate labels");
    const uint64_t stream = gen_stream_seed(seed, GEN_CALIBRATE);
    for (size_t i = 0; i < n; i++)
        z[i] = draw(g, drps_rng_at(stream, i), &unused);
    gen_calibrate(z, n, SPREAD, POSITIVE_SHARE, &g->scale, &g->bias);
    free(z);
    return 0;
}

static int graph_new(const struct gen_options *o, struct gen **g_out, struct drps_err *err)
{
    const double mean = o->density * (double)o->rows;
    *g_out = NULL;
    if (mean > GEN_MAX_NNZ)
        return drps_err_set(err, DRPS_E_CONFIG,
                            "--density %g of %ju rows is %.0f features a sample: at most %d can be "
                            "made",
                            o->density, (uintmax_t)o->rows, mean, GEN_MAX_NNZ);
    struct gen *g = calloc(1, sizeof(*g));
    if (!g) return drps_err_set(err, -ENOMEM, "no memory for the generator");
    const double most = mean + 12 * sqrt(mean) + 40;
    g->rows = o->rows;
    g->most = most < (double)o->rows ? (size_t)most : (size_t)o->rows;
    g->log_none = log1p(-o->density);
    if (!(o->density < 1)) g->log_none = 0;
    g->sample_seed = gen_stream_seed(o->seed, GEN_SAMPLE);
    g->weight_seed = gen_stream_seed(o->seed, GEN_WEIGHT);
    g->ids = calloc(g->most, sizeof(*g->ids));
    int rc = g->ids ? calibrate(g, o->seed, err)
                    : drps_err_set(err, -ENOMEM, "no memory for samples of %zu features", g->most);
    if (rc < 0) {
        graph_free(g);
        return rc;
    }
    *g_out = g;
    return 0;
}

static char *graph_line(struct gen *g, uint64_t i, char *p, double *label, size_t *nnz)
{
    const uint64_t key = drps_rng_at(g->sample_seed, i);
    size_t n;
    const double z = draw(g, key, &n);
    const int positive = gen_flip(g->scale * z + g->bias, drps_rng_at(~key, UINT64_MAX));
    if (!positive) *p++ = '-';
    *p++ = '1';
    for (size_t k = 0; k < n; k++) {
        *p++ = ' ';
        p = gen_put_count(p, g->ids[k]);
        *p++ = ':';
        *p++ = '1';
    }
    *p++ = '\n';
    *label = positive ? 1 : -1;
    *nnz = n;
    return p;
}

static size_t graph_line_bytes(const struct gen *g)
{
    return 3 + g->most * (sizeof(" 18446744073709551615:1") - 1);
}

const struct gen_kind gen_graph = {"graph", graph_new, graph_line, graph_line_bytes, graph_free};
