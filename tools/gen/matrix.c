/*
 * The papers' "Matrix": ratings of pairs of a user and an item, drawn uniformly; a rating is a
 * mean, a bias of each side, the product of hidden factors, and noise. Nobody can predict better
 * than the noise.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "tools/gen/gen.h"

#define MEAN 3.5
#define BIAS_SPREAD 0.4 /* standard deviation of a user's and of an item's bias */
#define FACTOR_SPREAD 0.7

enum { STEPS = 1000 }; /* ratings have three decimals */

struct gen {
    uint64_t users, items, sample_seed, user_seed, item_seed;
    double noise, factor_scale;
    size_t factors;
    int32_t *user, *item; /* own, GEN_FACTOR_ROOM(1 + factors) each, one allocation: bias and
                             factors of one sample */
};

static void matrix_free(struct gen *g)
{
    if (!g) return;
    free(g->user);
    free(g);
}

static int matrix_new(const struct gen_options *o, struct gen **g_out, struct drps_err *err)
{
    *g_out = NULL;
    struct gen *g = calloc(1, sizeof(*g));
    size_t dim = GEN_FACTOR_ROOM(1 + (size_t)o->factors);
    if (g) g->user = calloc(2 * dim, sizeof(*g->user));
    if (!g || !g->user) {
        matrix_free(g);
        return drps_err_set(err, -ENOMEM, "no memory for the generator");
    }
    g->item = g->user + dim;
    g->users = o->users;
    g->items = o->items;
    g->factors = (size_t)o->factors;
    g->noise = o->noise;
    g->factor_scale = FACTOR_SPREAD * GEN_FACTOR_UNIT * GEN_FACTOR_UNIT / sqrt((double)g->factors);
    g->sample_seed = gen_stream_seed(o->seed, GEN_SAMPLE);
    g->user_seed = gen_stream_seed(o->seed, GEN_USER);
    g->item_seed = gen_stream_seed(o->seed, GEN_ITEM);
    *g_out = g;
    return 0;
}

/* Bell-shaped, mean 0, variance 1, within 3.5: the sum of four uniform numbers of 16 bits. */
static double bell(uint64_t bits)
{
    double sum = (double)(bits & 0xffff) + (double)(bits >> 16 & 0xffff) +
                 (double)(bits >> 32 & 0xffff) + (double)(bits >> 48);
    return (sum * 0x1p-16 - 2 + 2 * 0x1p-16) * 1.7320508075688772;
}

static char *put_rating(char *p, int64_t steps)
{
    if (steps < 0) *p++ = '-';
    uint64_t size = (uint64_t)llabs(steps);
    p = gen_put_count(p, size / STEPS);
    size %= STEPS;
    *p++ = '.';
    *p++ = (char)('0' + size / 100);
    *p++ = (char)('0' + size / 10 % 10);
    *p++ = (char)('0' + size % 10);
    return p;
}

static char *matrix_line(struct gen *g, uint64_t i, char *p, double *label, size_t *nnz)
{
    uint64_t key = drps_rng_at(g->sample_seed, i);
    uint64_t user = (uint64_t)((unsigned __int128)drps_rng_at(key, 0) * g->users >> 64);
    uint64_t item = (uint64_t)((unsigned __int128)drps_rng_at(key, 1) * g->items >> 64);
    int64_t product = 0;

    gen_factors(g->user_seed, user, 1 + g->factors, g->user);
    gen_factors(g->item_seed, item, 1 + g->factors, g->item);
    for (size_t r = 1; r <= g->factors; r++)
        product += (int64_t)g->user[r] * g->item[r];
    double rating = MEAN + BIAS_SPREAD * GEN_FACTOR_UNIT * (double)(g->user[0] + g->item[0]) +
                    g->factor_scale * (double)product + g->noise * bell(drps_rng_at(key, 2));
    int64_t steps = llrint(rating * STEPS);
    p = gen_put_count(p, user + 1);
    *p++ = '\t';
    p = gen_put_count(p, item + 1);
    *p++ = '\t';
    p = put_rating(p, steps);
    *p++ = '\n';
    *label = (double)steps / STEPS;
    *nnz = 2;
    return p;
}

static size_t matrix_line_bytes(const struct gen *g)
{
    (void)g;
    return 4 * sizeof("18446744073709551615");
}

const struct gen_kind gen_matrix = {"matrix", matrix_new, matrix_line, matrix_line_bytes,
                                    matrix_free};
