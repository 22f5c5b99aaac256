/*
 * The compression and partition paper, Algorithm 1: the smallest part D_i takes, of a random set S
 * of unassigned samples, the at most alpha ones that minimise f(D_i u S') - beta |D_i u S'|, where
 * f is the number of features that a part touches.
 *
 * The paper tries every subset and draws S of about N / W samples; here S has a fixed size and the
 * subset is built greedily, best sample first, as long as each brings fewer than beta new features.
 * Where even the best one brings more, it is taken alone: the paper's loop would draw for ever.
 */
#include "partition/samples.h"

#include <errno.h>
#include <stdlib.h>

#include "base/drps_alloc.h"
#include "base/drps_rng.h"

enum { CHOICE = 32, TAKE = 1 };

struct parts {
    const struct drps_sample_set *set;
    const struct drps_samples_options *o;
    uint64_t *weight;  /* own [W] */
    uint64_t *touched; /* own [W][words]: bit f of part i: it touches feature f */
    size_t words;      /* of a part */
    uint32_t *left;    /* own [left_n]: unassigned samples */
    size_t left_n;
    uint64_t weight_max; /* of a part */
    uint64_t drawn;      /* random numbers so far */
};

static void parts_free(struct parts *p)
{
    free(p->weight);
    free(p->touched);
    free(p->left);
}

static int parts_init(struct parts *p, const struct drps_sample_set *set,
                      const struct drps_samples_options *o)
{
    *p = (struct parts){.set = set,
                        .o = o,
                        .words = (size_t)set->features_n / 64 + 1,
                        .weight_max = drps_samples_weight_max(set, o)};
    p->weight = calloc(o->machines, sizeof(*p->weight));
    p->touched = calloc(o->machines, p->words * sizeof(*p->touched));
    p->left = drps_array_new(set->n, sizeof(*p->left));
    if (!p->weight || !p->touched || !p->left) return -ENOMEM;
    for (size_t s = 0; s < set->n; s++)
        p->left[p->left_n++] = (uint32_t)s;
    return 0;
}

static size_t new_features(const struct parts *p, const uint64_t *touched, size_t s)
{
    size_t n = 0;
    for (size_t i = p->set->starts[s]; i < p->set->starts[s + 1]; i++) {
        uint32_t f = p->set->features[i];
        n += !(touched[f / 64] >> (f % 64) & 1);
    }
    return n;
}

/* Bring S, a random choice of the unassigned, to the end of left; returns where it begins. */
static size_t draw(struct parts *p, size_t choice)
{
    size_t first = p->left_n > choice ? p->left_n - choice : 0;
    for (size_t k = p->left_n; k > first; k--) {
        uint64_t bits = drps_rng_at(p->o->seed, p->drawn++);
        size_t at = (size_t)((__uint128_t)bits * k >> 64);
        uint32_t sample = p->left[at];
        p->left[at] = p->left[k - 1];
        p->left[k - 1] = sample;
    }
    return first;
}

/* The sample of left[first ..] that brings the part the fewest new features. */
static size_t fewest_new(const struct parts *p, const uint64_t *touched, size_t first,
                         size_t *new_out)
{
    size_t best = first;
    *new_out = SIZE_MAX;
    for (size_t k = first; k < p->left_n; k++) {
        size_t n = new_features(p, touched, p->left[k]);
        if (n >= *new_out) continue;
        *new_out = n;
        best = k;
    }
    return best;
}

/* One turn of the paper's loop, for the lightest part. */
static void take(struct parts *p, size_t choice, size_t most, double beta, uint32_t *owner)
{
    uint32_t part = 0;
    for (uint32_t m = 1; m < p->o->machines; m++)
        if (p->weight[m] < p->weight[part]) part = m;
    uint64_t *touched = p->touched + part * p->words;
    size_t first = draw(p, choice), fresh;
    for (size_t taken = 0; taken < most && first < p->left_n; taken++) {
        size_t k = fewest_new(p, touched, first, &fresh);
        uint32_t s = p->left[k];
        uint64_t weight = p->weight[part] + sample_weight(p->set, p->o, s);
        if (taken > 0 && ((double)fresh >= beta || weight > p->weight_max)) break;
        owner[s] = part;
        p->weight[part] = weight;
        for (size_t i = p->set->starts[s]; i < p->set->starts[s + 1]; i++)
            touched[p->set->features[i] / 64] |= (uint64_t)1 << (p->set->features[i] % 64);
        p->left[k] = p->left[--p->left_n];
    }
}

int drps_samples_dppa(const struct drps_sample_set *set, const struct drps_samples_options *o,
                      uint32_t *owner, struct drps_err *err)
{
    struct parts p;
    size_t choice = o->dppa_choice ? o->dppa_choice : CHOICE;
    size_t most = o->dppa_take ? o->dppa_take : TAKE;
    double mean = set->n ? (double)set->starts[set->n] / (double)set->n : 0;
    int rc = parts_init(&p, set, o);
    if (rc < 0)
        drps_err_set(err, rc, "no memory to place %zu samples of %u features on %u machines",
                     set->n, set->features_n, o->machines);
    while (rc == 0 && p.left_n > 0)
        take(&p, choice, most, o->dppa_beta > 0 ? o->dppa_beta : mean, owner);
    parts_free(&p);
    return rc;
}
