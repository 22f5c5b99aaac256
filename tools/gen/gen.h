/*
 * Synthetic data sets, the shapes of the papers' experiments: a line of text for each sample.
 *
 * A sample depends on the options and its number alone: randomness is counter based and the hidden
 * model that gives the labels is a hash of row numbers. So nothing is stored by row, and sets of
 * any size need the same few megabytes. Reals pass through exp() and log(): another C library may,
 * once in billions of draws, round a draw to the next row.
 */
#ifndef DRPS_TOOLS_GEN_H
#define DRPS_TOOLS_GEN_H

#include <stddef.h>
#include <stdint.h>

#include "base/drps_err.h"
#include "base/drps_rng.h"

enum gen_format { GEN_LIBSVM, GEN_LIBFFM };

struct gen_options {
    uint64_t samples; /* at least 1 */
    uint64_t seed;

    /* ctr, classification, graph */
    uint64_t rows;   /* ids run from 1 to rows; up to 2^48 */
    double zipf;     /* exponent of the skew, 0 (uniform) to 10 */
    uint64_t fields; /* ctr: 1 to GEN_MAX_FIELDS; rows >= 3 * fields */
    /* ctr: hidden factors of each feature, 0 for none, up to GEN_MAX_FACTORS */
    uint64_t interactions;
    enum gen_format format; /* ctr */
    uint64_t day_samples;   /* ctr: that make a day; 0: all are of one */
    double drift;           /* ctr: share of the features that are others from day to day, 0 to 1 */
    double density;         /* graph: share of the rows that a sample has, above 0, up to 1 */
    uint64_t nnz; /* classification: mean features a sample, 1 to GEN_MAX_NNZ; 2 nnz - 1 <= rows */

    /* matrix */
    uint64_t users, items; /* 1 to 2^48 */
    uint64_t factors;      /* 1 to GEN_MAX_FACTORS */
    double noise;          /* standard deviation, >= 0 */
};

enum { GEN_MAX_FIELDS = 10000, GEN_MAX_NNZ = 1000000, GEN_MAX_FACTORS = 1024 };

struct gen; /* opaque: one data set, owned by whoever called gen_*_new() */

/* One kind of data set. */
struct gen_kind {
    const char *name;
    /* Returns 0, -ENOMEM, or DRPS_E_CONFIG for options that do not fit together. */
    int (*new)(const struct gen_options *options, struct gen **g_out, struct drps_err *err);
    /*
     * Write the line of sample i at `p`, which has room for line_bytes; returns its end. Sets
     * *label to the label or rating and *nnz to the features written.
     */
    char *(*line)(struct gen *g, uint64_t i, char *p, double *label, size_t *nnz);
    size_t (*line_bytes)(const struct gen *g); /* the most that a line takes */
    void (*free)(struct gen *g);               /* NULL-safe; accepts half-built sets */
};

extern const struct gen_kind gen_ctr, gen_classification, gen_graph, gen_matrix;

/* ---- What the kinds share ---- */

/* Streams of randomness derived from --seed. */
enum gen_stream {
    GEN_SAMPLE,
    GEN_CALIBRATE,
    GEN_SHUFFLE,
    GEN_WEIGHT,
    GEN_FACTOR,
    GEN_USER,
    GEN_ITEM,
    GEN_PHASE,
    GEN_LATER_WEIGHT,
};
uint64_t gen_stream_seed(uint64_t seed, enum gen_stream stream);

/*
 * Zipf's law on 1..n: P(k) ~ 1 / k^s. Small n draw from an alias table; larger ones by
 * rejection-inversion (Hoermann and Derflinger, "Rejection-inversion to generate variates from
 * monotone discrete distributions", ACM TOMACS 6(3), 1996), which needs no table.
 */
struct gen_zipf {
    uint64_t n;
    double s;
    double inv_1ms; /* 1 / (1 - s); 0 near s = 1 */
    double h_first, h_last,
        fast; /* H(1.5) - 1, H(n + 0.5), and the bound below which no test is needed */
    struct gen_alias *table; /* own, or NULL */
};

DRPS_MUST_CHECK
int gen_zipf_init(struct gen_zipf *z, uint64_t n, double s, int with_table, struct drps_err *err);
void gen_zipf_destroy(struct gen_zipf *z);
/* Returns the draw, in 0..n-1 (0 is the most frequent), that 64 random bits stand for. */
uint64_t gen_zipf_draw(const struct gen_zipf *z, uint64_t bits);

/* A pseudo-random permutation of 0..n-1, so that frequent ids lie anywhere and neighbours share
 * nothing. */
struct gen_shuffle {
    uint64_t n, mask;
    uint64_t keys[3];
    unsigned shift;
};

void gen_shuffle_init(struct gen_shuffle *d, uint64_t n, uint64_t seed);

static inline uint64_t gen_shuffle_at(const struct gen_shuffle *d, uint64_t i)
{
    /* Every step is a bijection of 0..mask; walk the cycle until it is back below n: less than 2
     * turns. */
    do {
        for (int r = 0; r < 3; r++) {
            i = (i ^ d->keys[r]) * (d->keys[r] >> 7 | 1) & d->mask;
            i ^= i >> d->shift;
        }
    } while (i >= d->n);
    return i;
}

/* The hidden linear model: one row in five has a weight, uniform in [-1, 1]. */
static inline double gen_weight(uint64_t seed, uint64_t row)
{
    uint64_t bits = drps_rng_at(seed, row);
    double weight = 2 * drps_unit_double(bits) - 1;
    return (bits & 0xff) < 51 ? weight : 0; /* the low bits are not in the double's: independent */
}

/*
 * Hidden factors of a row: `factors` odd integers, uniform with mean 0; in units of GEN_FACTOR_UNIT
 * their variance is 1. Integers, so that sums do not depend on how a compiler orders them. `out`
 * has room for GEN_FACTOR_ROOM(factors).
 */
#define GEN_FACTOR_ROOM(factors) (((factors) + 3) / 4 * 4)
void gen_factors(uint64_t seed, uint64_t row, size_t factors, int32_t *out);
#define GEN_FACTOR_UNIT (1.7320508075688772 * 0x1p-16)

/*
 * Find scale and bias such that scale * z + bias has standard deviation `spread` and its sigmoid
 * the mean `share`, for n values z, which are scaled in place.
 */
void gen_calibrate(double *z, size_t n, double spread, double share, double *scale_out,
                   double *bias_out);
enum { GEN_CALIBRATION_SAMPLES = 8192 };

/* Returns 1 with the probability sigmoid(z). */
int gen_flip(double z, uint64_t bits);

/* Sort ids; `spare` has room for n more. */
void gen_sort(uint64_t *ids, uint64_t *spare, size_t n, uint64_t max);

/* Write the decimal digits of v at p, at most 20 bytes. Returns the end. */
char *gen_put_count(char *p, uint64_t v);

#endif
