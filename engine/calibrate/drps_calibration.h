/*
 * Calibration: a score of two classes becomes the probability of the larger label, by what held-out
 * samples say; and how good probabilities are. Pure arithmetic on counts of scores
 * (drps_metrics_points()), in which weights count.
 *
 * platt      1 / (1 + exp(a score + b)) of largest likelihood, with targets (n+ + 1) / (n+ + 2) and
 *            1 / (n- + 2) in place of 1 and 0, where n is the weight of a class, or how many scores
 *            it has if these are more; found by Newton's method with halved steps. Platt,
 *            "Probabilistic outputs for support vector machines" (1999); Lin, Lin and Weng, "A note
 *            on Platt's probabilistic outputs" (Machine Learning 68, 2007).
 * isotonic   a function that does not fall, of the least squares, by pooling adjacent violators
 *            (Ayer and others, 1955); Zadrozny and Elkan (KDD 2002). Scores are first put into at
 *            most DRPS_CALIBRATION_STEPS groups of equal weight, so that the function is short; it
 *            is a line between two steps, and stays between the two targets of above.
 */
#ifndef DRPS_ENGINE_CALIBRATE_CALIBRATION_H
#define DRPS_ENGINE_CALIBRATE_CALIBRATION_H

#include <stddef.h>

#include "base/drps_err.h"
#include "engine/model/drps_metrics.h"

enum drps_calibration_kind {
    DRPS_CALIBRATION_NONE,
    DRPS_CALIBRATION_PLATT,
    DRPS_CALIBRATION_ISOTONIC
};
enum { DRPS_CALIBRATION_STEPS = 1000 };
/* A calibration that is made of fewer samples, or of fewer with one of the labels, says little
 * about other samples. */
enum { DRPS_CALIBRATION_SAMPLES_LEAST = 100, DRPS_CALIBRATION_LABEL_LEAST = 10 };

/* Zero: none. */
struct drps_calibration {
    enum drps_calibration_kind kind;
    double samples;        /* that it was made of, or what they weigh */
    double a, b;           /* platt */
    size_t n;              /* isotonic: points, at most 2 * DRPS_CALIBRATION_STEPS; at least 1 */
    double *scores;        /* own: [n] increasing */
    double *probabilities; /* own: [n] not falling */
};

/* Names of the kinds, NULL-terminated, in their order: none platt isotonic. */
const char *const *drps_calibration_names(void);

/* Fit to points [n], increasing by score. DRPS_E_CONFIG: they are not of both classes; the minima
 * above are for the caller to check. -ENOMEM. Free *out in either case. */
DRPS_MUST_CHECK
int drps_calibration_fit(enum drps_calibration_kind kind, const struct drps_score_point *points,
                         size_t n, struct drps_calibration *out, struct drps_err *err);
void drps_calibration_free(struct drps_calibration *c); /* zeroed too */

/* Returns the probability of the larger label; without a calibration that of log-odds. */
double drps_calibration_apply(const struct drps_calibration *c, double score);

/* ---- In a manifest ---- */

/* A json_t object, own; NULL: memory is gone. */
void *drps_calibration_to_json(const struct drps_calibration *c);
/* Read the member "calibration" of a manifest, a json_t object whose file is `path`; none where it
 * is not there. DRPS_E_CORRUPT, -ENOMEM; free *out in either case. */
DRPS_MUST_CHECK
int drps_calibration_get(const void *manifest, const char *path, struct drps_calibration *out,
                         struct drps_err *err);

/* ---- How good probabilities are ---- */

enum { DRPS_CALIBRATION_BINS = 10, DRPS_CALIBRATION_BINS_MOST = 1000 };

struct drps_calibration_bin {
    double least, most; /* probabilities in it */
    double predicted;   /* their mean */
    double observed;    /* share of the larger label */
    double weight;      /* how many samples, or what they weigh */
};

/* Bins of about equal weight, by increasing probability; equal scores share a bin. */
struct drps_calibration_curve {
    size_t n;                          /* of bins, at most as many as were asked for */
    struct drps_calibration_bin *bins; /* own: [n] */
    double error; /* the bins' |predicted - observed|, weighted: expected calibration error (Naeini,
                     Cooper and Hauskrecht, AAAI 2015, with bins of equal weight) */
    double loss;  /* mean logistic loss of the probabilities */
};

/* Measure how good probabilities are for points [n]: those that `c` makes of the scores, or, where
 * `c` is NULL, those of the scores as log-odds. -ENOMEM. Free out->bins in either case. */
DRPS_MUST_CHECK
int drps_calibration_measure(const struct drps_calibration *c,
                             const struct drps_score_point *points, size_t n, size_t bins,
                             struct drps_calibration_curve *out, struct drps_err *err);

#endif
