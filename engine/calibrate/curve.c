/* Compares predicted probabilities with observed labels: in bins of equal weight, and by two
 * numbers over all samples. */
#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "base/drps_alloc.h"
#include "engine/calibrate/drps_calibration.h"

static double weight_of(const struct drps_score_point *p)
{
    return p->positive + p->negative;
}

/* 0 and 1 have the largest loss that a float's log-odds can have. */
static double log_of(double p)
{
    return log(p > DBL_MIN ? p : DBL_MIN);
}

static void close_bin(struct drps_calibration_curve *out, struct drps_calibration_bin *bin)
{
    bin->predicted /= bin->weight;
    bin->observed /= bin->weight;
    out->error += bin->weight * fabs(bin->predicted - bin->observed);
    out->bins[out->n++] = *bin;
    *bin = (struct drps_calibration_bin){.weight = 0};
}

int drps_calibration_measure(const struct drps_calibration *c,
                             const struct drps_score_point *points, size_t n, size_t bins,
                             struct drps_calibration_curve *out, struct drps_err *err)
{
    struct drps_calibration_bin bin = {.weight = 0};
    double total = 0, seen = 0;
    *out = (struct drps_calibration_curve){.bins = drps_array_new(bins + 1, sizeof(*out->bins))};
    if (!out->bins) return drps_err_set(err, -ENOMEM, "no memory for %zu bins", bins);
    for (size_t i = 0; i < n; i++)
        total += weight_of(&points[i]);
    for (size_t i = 0; i < n; i++) {
        const double w = weight_of(&points[i]),
                     p = drps_calibration_apply(c, (double)points[i].score);
        if (!(bin.weight > 0)) bin.least = p;
        bin.most = p;
        bin.weight += w;
        bin.predicted += w * p;
        bin.observed += points[i].positive;
        out->loss -= points[i].positive * log_of(p) + points[i].negative * log_of(1 - p);
        seen += w;
        if (i + 1 == n || seen * (double)bins >= total * (double)(out->n + 1)) close_bin(out, &bin);
    }
    out->error /= total;
    out->loss /= total;
    return 0;
}
