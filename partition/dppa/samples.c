/*
 * Algorithm 1 (drps_dppa.h). A part is known by the bits of the rows that it touches; unassigned
 * samples are a list from which any can be taken.
 *
 * Two things are not printed. A sample set whose turns assign nothing a hundred times in a row, or
 * once where the next turn would be the same, gives the smallest part its cheapest sample. And S
 * can have a fixed size.
 */
#include "partition/dppa/drps_dppa.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/drps_alloc.h"
#include "base/drps_rng.h"
#include "partition/dppa/subset.h"

enum { SAMPLE = 32, FRUITLESS_MOST = 100, SUBSETS_MOST = 1000000000 };

struct part {
    uint64_t weight, samples, touched; /* touched: f(D_i) */
};

struct loop {
    const struct drps_sample_set *set;
    const struct drps_dppa_options *o;
    struct subset_search search; /* drawn, marked: own */
    struct part *parts;          /* own [W] */
    uint64_t *touched;           /* own [W][words]: bit f of part i: it touches row f */
    size_t words;                /* of a part */
    uint32_t *left;              /* own [left_n]: D */
    uint32_t *place;             /* own [N]: where in left */
    size_t left_n;
    uint64_t random;    /* numbers drawn so far, or turns */
    uint64_t fruitless; /* turns in a row */
    struct drps_dppa_report report;
};

static int check(const struct drps_sample_set *set, const struct drps_dppa_options *o,
                 struct drps_err *err)
{
    if (o->machines < 1 || o->machines > DRPS_MACHINES_MAX)
        return drps_err_set(err, DRPS_E_CONFIG, "dppa: %u machines; 1 to %d are possible",
                            o->machines, DRPS_MACHINES_MAX);
    if (!(o->beta >= 0) || !isfinite(o->beta))
        return drps_err_set(err, DRPS_E_CONFIG, "dppa: beta is %g; it is 0 or more", o->beta);
    if (o->alpha > SUBSET_MOST && o->alpha != DRPS_DPPA_ADAPTIVE)
        return drps_err_set(err, DRPS_E_CONFIG,
                            "dppa: alpha is %u; at most %d samples can be taken together", o->alpha,
                            SUBSET_MOST);
    return drps_sample_set_check(set, err);
}

static uint64_t weight_of(const struct loop *l, uint32_t s)
{
    return l->o->by_entries ? l->set->starts[s + 1] - l->set->starts[s] : 1;
}

/* ---- What the options come to ---- */

static uint64_t drawn_most(const struct drps_sample_set *set, const struct drps_dppa_options *o)
{
    uint64_t most = o->sample ? o->sample : SAMPLE;
    if (o->sample == DRPS_DPPA_PRINTED) most = 2 * (uint64_t)set->n / o->machines;
    if (most < 1) most = 1;
    return most < set->n ? most : set->n;
}

static double beta_of(const struct drps_sample_set *set, const struct drps_dppa_options *o)
{
    size_t longest = 0;
    if (o->beta > 0) return o->beta;
    for (size_t s = 0; s < set->n; s++)
        if (set->starts[s + 1] - set->starts[s] > longest)
            longest = set->starts[s + 1] - set->starts[s];
    return (double)longest + 1;
}

/* drawn: samples of an S, on average. */
static uint32_t alpha_of(const struct drps_sample_set *set, const struct drps_dppa_options *o,
                         uint64_t drawn)
{
    const uint64_t rows = (uint64_t)set->features_n + 1;
    uint32_t alpha = 1;
    if (o->alpha != DRPS_DPPA_ADAPTIVE) return o->alpha ? o->alpha : 1;
    while (alpha < SUBSET_MOST && drps_subset_count(drawn, alpha + 1, rows) < rows)
        alpha++;
    return alpha;
}

static int settle(struct loop *l, struct drps_err *err)
{
    const struct drps_sample_set *set = l->set;
    uint64_t drawn = drawn_most(set, l->o);
    if (l->o->sample == DRPS_DPPA_PRINTED) drawn = (drawn + 1) / 2;
    l->report.beta = beta_of(set, l->o);
    l->report.alpha = alpha_of(set, l->o, drawn);
    if (drps_subset_count(drawn, l->report.alpha, SUBSETS_MOST) < SUBSETS_MOST) return 0;
    return drps_err_set(err, DRPS_E_CONFIG,
                        "dppa: %llu samples have more than %d subsets of up to %u, and each turn "
                        "looks at all of them: lower alpha, or look at fewer samples at a time",
                        (unsigned long long)drawn, SUBSETS_MOST, l->report.alpha);
}

/* ---- The loop ---- */

static int is_in_order(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* So many of D at random, brought to its end. */
static void draw_some(struct loop *l, uint32_t *drawn, size_t n)
{
    for (size_t k = 0; k < n; k++) {
        const size_t last = l->left_n - 1 - k;
        const uint64_t bits = drps_rng_at(l->o->seed, l->random++);
        const size_t at = (size_t)((__uint128_t)bits * (last + 1) >> 64);
        const uint32_t sample = l->left[at], other = l->left[last];
        l->left[at] = other;
        l->place[other] = (uint32_t)at;
        l->left[last] = sample;
        l->place[sample] = (uint32_t)last;
        drawn[k] = sample;
    }
}

/* Each of D with probability N / (W |D|). Returns 0 if there are more than `most`. */
static int draw_each(struct loop *l, uint32_t *drawn, size_t most)
{
    const double share = (double)l->set->n / ((double)l->o->machines * (double)l->left_n);
    const uint64_t seed = drps_rng_at(l->o->seed, l->random++);
    size_t n = 0;
    for (size_t k = 0; k < l->left_n; k++) {
        if (!(drps_unit_double(drps_rng_at(seed, l->left[k])) < share)) continue;
        if (n == most) return 0;
        drawn[n++] = l->left[k];
    }
    l->search.n = n;
    return 1;
}

/* Lines 3 and 4: set S. Returns 0 where it has too many, and is not valid. */
static int draw(struct loop *l, uint32_t *drawn)
{
    const size_t most = (size_t)drawn_most(l->set, l->o);
    l->search.n = 0;
    if (l->o->sample == DRPS_DPPA_PRINTED) {
        if (!draw_each(l, drawn, most)) return 0;
    } else {
        l->search.n = most < l->left_n ? most : l->left_n;
        draw_some(l, drawn, l->search.n);
    }
    qsort(drawn, l->search.n, sizeof(*drawn), is_in_order);
    return 1;
}

static uint32_t smallest_part(const struct loop *l)
{
    uint32_t part = 0;
    for (uint32_t m = 1; m < l->o->machines; m++)
        if (l->parts[m].weight < l->parts[part].weight) part = m;
    return part;
}

/* Line 8. */
static void assign(struct loop *l, uint32_t part, const uint32_t *samples, uint32_t n,
                   uint64_t fresh, uint32_t *owner)
{
    uint64_t *touched = l->touched + part * l->words;
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t s = samples[i], last = l->left[--l->left_n];
        owner[s] = part;
        l->parts[part].weight += weight_of(l, s);
        l->left[l->place[s]] = last;
        l->place[last] = l->place[s];
        for (size_t e = l->set->starts[s]; e < l->set->starts[s + 1]; e++)
            touched[l->set->features[e] / 64] |= (uint64_t)1 << (l->set->features[e] % 64);
    }
    l->parts[part].samples += n;
    l->parts[part].touched += fresh;
    l->fruitless = 0;
}

/* Nothing was assigned: where that goes on, the cheapest sample of S is. */
static void do_without(struct loop *l, uint32_t part, uint32_t *owner)
{
    uint64_t fresh;
    l->report.fruitless++;
    l->fruitless++;
    if (!l->search.n || (l->fruitless < FRUITLESS_MOST && l->search.n < l->left_n)) return;
    const uint32_t sample = drps_subset_cheapest(&l->search, &fresh);
    l->report.forced++;
    assign(l, part, &sample, 1, fresh, owner);
}

/* Lines 3 to 8. */
static void turn(struct loop *l, uint32_t *drawn, uint32_t *owner)
{
    struct subset_search *s = &l->search;
    const uint32_t i = smallest_part(l);
    l->report.turns++;
    s->touched = l->touched + i * l->words;
    if (draw(l, drawn)) {
        drps_subset_find(s);
        const double now = (double)l->parts[i].touched - s->beta * (double)l->parts[i].samples;
        if (s->found_n && now + s->found_gain < 0) {
            assign(l, i, s->found, s->found_n, s->found_fresh, owner);
            return;
        }
    }
    do_without(l, i, owner);
}

int drps_dppa_samples(const struct drps_sample_set *set, const struct drps_dppa_options *o,
                      uint32_t *owner_out, struct drps_dppa_report *report_out,
                      struct drps_err *err)
{
    struct loop l = {.set = set, .o = o, .words = (size_t)set->features_n / 64 + 1};
    *report_out = (struct drps_dppa_report){0};
    int rc = check(set, o, err);
    if (rc == 0) rc = settle(&l, err);
    if (rc < 0) return rc;
    uint32_t *drawn = drps_array_new(drawn_most(set, o) + 1, sizeof(*drawn));
    uint32_t *marked = calloc((size_t)set->features_n + 1, sizeof(*marked));
    l.parts = calloc(o->machines, sizeof(*l.parts));
    l.touched = calloc(o->machines, l.words * sizeof(*l.touched));
    l.left = drps_array_new(set->n, sizeof(*l.left));
    l.place = drps_array_new(set->n, sizeof(*l.place));
    if (!drawn || !marked || !l.parts || !l.touched || !l.left || !l.place)
        rc = drps_err_set(err, -ENOMEM,
                          "no memory to place %zu samples of %u features on %u machines", set->n,
                          set->features_n, o->machines);
    l.search = (struct subset_search){.set = set,
                                      .drawn = drawn,
                                      .alpha = l.report.alpha,
                                      .beta = l.report.beta,
                                      .marked = marked};
    for (size_t s = 0; rc == 0 && s < set->n; s++)
        l.left[l.left_n++] = l.place[s] = (uint32_t)s;
    while (rc == 0 && l.left_n > 0) {
        turn(&l, drawn, owner_out);
        if (o->turn) rc = o->turn(o->turn_ctx, set->n - l.left_n, err);
    }
    *report_out = l.report;
    free(drawn);
    free(marked);
    free(l.parts);
    free(l.touched);
    free(l.left);
    free(l.place);
    return rc;
}
