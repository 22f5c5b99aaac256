/* Platt's sigmoid and isotonic regression, fitted to counts of scores, and applied. */
#include "engine/calibrate/drps_calibration.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"

const char *const *drps_calibration_names(void)
{
    static const char *const names[] = {"none", "platt", "isotonic", NULL};
    return names;
}

void drps_calibration_free(struct drps_calibration *c)
{
    free(c->scores);
    free(c->probabilities);
    memset(c, 0, sizeof(*c));
}

/* ---- Applying ---- */

static double sigmoid(double v)
{
    return v >= 0 ? 1 / (1 + exp(-v)) : exp(v) / (1 + exp(v));
}

static double isotonic(const struct drps_calibration *c, double score)
{
    size_t low = 0, high = c->n; /* points before `low` are not above the score */
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (c->scores[middle] <= score)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == 0) return c->probabilities[0];
    if (low == c->n) return c->probabilities[c->n - 1];
    const double from = c->scores[low - 1], share = (score - from) / (c->scores[low] - from);
    return c->probabilities[low - 1] + share * (c->probabilities[low] - c->probabilities[low - 1]);
}

double drps_calibration_apply(const struct drps_calibration *c, double score)
{
    if (c && c->kind == DRPS_CALIBRATION_PLATT) return sigmoid(-(c->a * score + c->b));
    return c && c->kind == DRPS_CALIBRATION_ISOTONIC ? isotonic(c, score) : sigmoid(score);
}

/* ---- What is fitted to ---- */

struct targets {
    double positive, negative; /* weights of both classes */
    double high, low;          /* what the probability of one of them is to be */
};

static struct targets targets_of(const struct drps_score_point *points, size_t n)
{
    struct targets t = {0};
    double positives = 0, negatives = 0; /* points with samples of the class: it has as many */
    for (size_t i = 0; i < n; i++) {
        t.positive += points[i].positive;
        t.negative += points[i].negative;
        positives += points[i].positive > 0;
        negatives += points[i].negative > 0;
    }
    t.high = (fmax(t.positive, positives) + 1) / (fmax(t.positive, positives) + 2);
    t.low = 1 / (fmax(t.negative, negatives) + 2);
    return t;
}

/* ---- Platt ---- */

enum { STEPS_MOST = 200 };
static const double RIDGE = 1e-12, SMALLEST_STEP = 1e-10, ENOUGH = 1e-4, SMALL_GRADIENT = 1e-10;

/* log(1 + exp(v)) */
static double softplus(double v)
{
    return v > 0 ? v + log1p(exp(-v)) : log1p(exp(v));
}

/* The negative log-likelihood at (a, b); its gradient and second derivatives where `d` is given. */
struct derivatives {
    double a, b, aa, ab, bb;
};

static double objective(const struct drps_score_point *points, size_t n, const struct targets *t,
                        double a, double b, struct derivatives *d)
{
    double sum = 0;
    if (d) *d = (struct derivatives){.aa = RIDGE, .bb = RIDGE};
    for (size_t i = 0; i < n; i++) {
        const double f = (double)points[i].score, v = a * f + b;
        const double weight = points[i].positive + points[i].negative;
        /* The share of the weight that is to be of the positive class. */
        const double target = points[i].positive * t->high + points[i].negative * t->low;
        const double p = sigmoid(-v), slope = target - weight * p, bend = weight * p * (1 - p);
        sum += weight * softplus(-v) + target * v;
        if (!d) continue;
        d->a += f * slope;
        d->b += slope;
        d->aa += f * f * bend;
        d->ab += f * bend;
        d->bb += bend;
    }
    return sum;
}

static void fit_platt(const struct drps_score_point *points, size_t n, const struct targets *t,
                      struct drps_calibration *out)
{
    const double small = SMALL_GRADIENT * (t->positive + t->negative);
    double a = 0, b = log((t->negative + 1) / (t->positive + 1)), step = 1;
    struct derivatives d;
    double value = objective(points, n, t, a, b, &d);
    for (int i = 0; i < STEPS_MOST && step >= SMALLEST_STEP; i++) {
        if (fabs(d.a) < small && fabs(d.b) < small) break;
        const double det = d.aa * d.bb - d.ab * d.ab;
        const double to_a = -(d.bb * d.a - d.ab * d.b) / det;
        const double to_b = -(d.aa * d.b - d.ab * d.a) / det;
        const double slope = d.a * to_a + d.b * to_b;
        for (step = 1; step >= SMALLEST_STEP; step /= 2) {
            const double next = objective(points, n, t, a + step * to_a, b + step * to_b, NULL);
            if (next < value + ENOUGH * step * slope) break;
        }
        if (step < SMALLEST_STEP) break;
        a += step * to_a;
        b += step * to_b;
        value = objective(points, n, t, a, b, &d);
    }
    out->a = a;
    out->b = b;
}

/* ---- Isotonic ---- */

struct step {
    double first, last; /* scores */
    double weight, positive;
};

static double mean_of(const struct step *s)
{
    return s->positive / s->weight;
}

/* Puts points into at most DRPS_CALIBRATION_STEPS groups of equal weight, and pools these until
 * their means rise. Returns how many are left. */
static size_t pool(const struct drps_score_point *points, size_t n, double total,
                   struct step *steps)
{
    struct step group = {.weight = 0};
    double seen = 0;
    size_t used = 0, closed = 0;
    for (size_t i = 0; i < n; i++) {
        const double score = (double)points[i].score;
        if (!(group.weight > 0)) group.first = score;
        group.last = score;
        group.positive += points[i].positive;
        group.weight += points[i].positive + points[i].negative;
        seen += points[i].positive + points[i].negative;
        const int full = seen * DRPS_CALIBRATION_STEPS >= total * (double)(closed + 1);
        if (i + 1 < n && (!full || closed + 1 >= DRPS_CALIBRATION_STEPS)) continue;
        /* Rounding must not leave it behind: each group of small weights would then be closed. */
        const double all = floor(seen / total * DRPS_CALIBRATION_STEPS);
        closed = all > (double)(closed + 1) ? (size_t)all : closed + 1;
        while (used && mean_of(&steps[used - 1]) >= mean_of(&group)) {
            used--;
            group.first = steps[used].first;
            group.positive += steps[used].positive;
            group.weight += steps[used].weight;
        }
        steps[used++] = group;
        group = (struct step){.weight = 0};
    }
    return used;
}

static void add_point(struct drps_calibration *c, double score, double p)
{
    if (c->n && !(score > c->scores[c->n - 1])) return;
    c->scores[c->n] = score;
    c->probabilities[c->n++] = p;
}

static int fit_isotonic(const struct drps_score_point *points, size_t n, const struct targets *t,
                        struct drps_calibration *out, struct drps_err *err)
{
    struct step *steps = drps_array_new(DRPS_CALIBRATION_STEPS, sizeof(*steps));
    const size_t room = 2 * DRPS_CALIBRATION_STEPS;
    out->scores = drps_array_new(room, sizeof(double));
    out->probabilities = drps_array_new(room, sizeof(double));
    const int rc = steps && out->scores && out->probabilities
                       ? 0
                       : drps_err_set(err, -ENOMEM, "no memory for a calibration");
    const size_t used = rc == 0 ? pool(points, n, t->positive + t->negative, steps) : 0;
    for (size_t i = 0; i < used; i++) {
        const double p = fmin(fmax(mean_of(&steps[i]), t->low), t->high);
        add_point(out, steps[i].first, p);
        add_point(out, steps[i].last, p);
    }
    free(steps);
    return rc;
}

int drps_calibration_fit(enum drps_calibration_kind kind, const struct drps_score_point *points,
                         size_t n, struct drps_calibration *out, struct drps_err *err)
{
    const struct targets t = targets_of(points, n);
    *out = (struct drps_calibration){.kind = kind, .samples = t.positive + t.negative};
    if (kind == DRPS_CALIBRATION_NONE) return 0;
    if (!(t.positive > 0) || !(t.negative > 0))
        return drps_err_set(err, DRPS_E_CONFIG,
                            "calibration needs samples of both labels, and all have the %s one",
                            t.positive > 0 ? "larger" : "smaller");
    if (kind == DRPS_CALIBRATION_ISOTONIC) return fit_isotonic(points, n, &t, out, err);
    fit_platt(points, n, &t, out);
    return 0;
}
