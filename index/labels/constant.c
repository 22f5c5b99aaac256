/* Labels are counted, and the best constant's loss is made of the counts. */
#include "index/labels/drps_constant.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

int drps_label_sums_init(struct drps_label_sums *s, enum drps_loss loss, size_t classes,
                         struct drps_err *err)
{
    *s = (struct drps_label_sums){.loss = loss, .classes = classes, .first = UINT64_MAX};
    if (!classes) return 0;
    s->of_class = calloc(classes, sizeof(*s->of_class));
    s->of_classes = calloc(classes, sizeof(*s->of_classes));
    if (s->of_class && s->of_classes) return 0;
    drps_label_sums_destroy(s);
    return drps_err_set(err, -ENOMEM, "no memory for %zu classes", classes);
}

void drps_label_sums_destroy(struct drps_label_sums *s)
{
    if (!s) return;
    free(s->of_class);
    free(s->of_classes);
    memset(s, 0, sizeof(*s));
}

/* Add w y^2. Without a weight it has 48 bits, else up to 72: then what the product of two doubles
 * rounds off is added, too. */
static void add_square(struct drps_exact *s, double weight, double label)
{
    const double weighted = weight * label, square = weighted * label;
    drps_exact_add(s, square);
    if (weight == 1) return;
    const double rest = fma(weighted, label, -square);
    if (rest != 0) drps_exact_add_slowly(s, rest);
}

void drps_label_sums_add(struct drps_label_sums *s, uint64_t batch, float label, float weight)
{
    const double y = (double)label, w = (double)weight;
    if (batch < s->first) {
        s->first = batch;
        s->origin = y;
    }
    drps_exact_add(&s->weights, w);
    drps_exact_add(&s->labels, w * y); /* exact: 48 bits */
    add_square(&s->squared, w, y);
    if (y > 0) drps_exact_add(&s->positives, w);
    if (y >= 0 && y < (double)s->classes) drps_exact_add(&s->of_classes[(size_t)y], w);
}

void drps_label_sums_merge(struct drps_label_sums *s, const struct drps_label_sums *from)
{
    if (from->first < s->first) {
        s->first = from->first;
        s->origin = from->origin;
    }
    drps_exact_merge(&s->weights, &from->weights);
    drps_exact_merge(&s->labels, &from->labels);
    drps_exact_merge(&s->squared, &from->squared);
    drps_exact_merge(&s->positives, &from->positives);
    for (size_t c = 0; c < s->classes; c++)
        drps_exact_merge(&s->of_classes[c], &from->of_classes[c]);
}

void drps_label_sums_settle(struct drps_label_sums *s)
{
    struct drps_exact sum = s->labels, squares = s->squared;
    drps_exact_add_times(&sum, &s->weights, -s->origin);
    drps_exact_add_times(&squares, &s->labels, -2 * s->origin);
    drps_exact_add_times(&squares, &s->weights, s->origin * s->origin);
    s->n = drps_exact_value(&s->weights);
    s->sum = drps_exact_value(&sum);
    s->squares = drps_exact_value(&squares);
    s->positive = drps_exact_value(&s->positives);
    for (size_t c = 0; c < s->classes; c++)
        s->of_class[c] = drps_exact_value(&s->of_classes[c]);
}

double drps_label_sums_mean(const struct drps_label_sums *s)
{
    return drps_exact_value(&s->labels) / s->n;
}

static double mean_of(const struct drps_label_sums *s)
{
    return s->origin + s->sum / s->n;
}

static double squared(const struct drps_label_sums *train, const struct drps_label_sums *of)
{
    const double mean = of->sum / of->n, off = mean_of(of) - mean_of(train);
    const double variance = of->squares / of->n - mean * mean;
    return ((variance > 0 ? variance : 0) + off * off) / 2;
}

/* -q log p of a class of share q that is taken to have share p. */
static double surprise(double q, double p)
{
    return q > 0 ? -q * log(p) : 0;
}

/* One class of share q, told from all others by the score that is best where its share is p. */
static double of_hinge(double q, double p, int is_squared)
{
    const double score = is_squared ? 2 * p - 1 : p > 0.5 ? 1 : p < 0.5 ? -1 : 0;
    const double own = 1 - score, others = 1 + score;
    return is_squared ? q * own * own + (1 - q) * others * others : q * own + (1 - q) * others;
}

/* A class of share q in `of`, and p in training. */
static double of_class(enum drps_loss loss, double q, double p)
{
    return loss == DRPS_LOSS_SOFTMAX ? surprise(q, p)
                                     : of_hinge(q, p, loss == DRPS_LOSS_SQUARED_HINGE);
}

static double named(const struct drps_label_sums *train, const struct drps_label_sums *of)
{
    double sum = 0;
    for (size_t c = 0; c < train->classes; c++)
        sum += of_class(train->loss, of->of_class[c] / of->n, train->of_class[c] / train->n);
    return sum;
}

static double of_labels(const struct drps_label_sums *train, const struct drps_label_sums *of)
{
    const double p = train->positive / train->n, q = of->positive / of->n;
    if (train->classes) return named(train, of);
    switch (train->loss) {
    case DRPS_LOSS_SQUARED:
        return squared(train, of);
    case DRPS_LOSS_LOGISTIC:
        return surprise(q, p) + surprise(1 - q, 1 - p);
    case DRPS_LOSS_HINGE:
    case DRPS_LOSS_SQUARED_HINGE:
        return of_hinge(q, p, train->loss == DRPS_LOSS_SQUARED_HINGE);
    case DRPS_LOSS_BPR: /* all items score the same */
        return log(2);
    case DRPS_LOSS_WARP: /* the first draw is too high already, by 1 */
        return train->items > 2 ? log((double)(train->items - 1)) : 0;
    case DRPS_LOSS_WMF: /* labels are confidences of a score of 1; negatives have theirs */
        return mean_of(of) / 2;
    default: /* of named classes alone, or without labels */
        return NAN;
    }
}

double drps_constant_loss(const struct drps_label_sums *train, const struct drps_label_sums *of)
{
    if (!(train->n > 0) || !(of->n > 0) || train->loss == DRPS_LOSS_EXPRESSION) return NAN;
    const double loss = of_labels(train, of);
    return isfinite(loss) ? loss : NAN;
}
