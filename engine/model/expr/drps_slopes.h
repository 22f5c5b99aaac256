/*
 * The value of a loss that is a text (index/expr/drps_expr.h), and its derivatives: arithmetic
 * only, no I/O, no memory. For a = W*x the gradient by row k of W is x[k] u with u = df/da: u and x
 * are the sample's sufficient vectors.
 *
 * Shared inside engine/.
 */
#ifndef DRPS_ENGINE_MODEL_SLOPES_H
#define DRPS_ENGINE_MODEL_SLOPES_H

#include "index/expr/drps_expr.h"

/* One sample; all arrays have J numbers, 1 where the loss has w*x. */
struct drps_expr_sample {
    const float *scores;
    float y;           /* the label, or the number of its class */
    const float *own;  /* NULL: zeros */
    float *slopes;     /* of the caller: derivatives by the scores, */
    float *own_slopes; /* and by own; NULL: not asked for */
};

/* Returns how many doubles drps_expr_slopes() works in; `outputs` is J. */
size_t drps_expr_work(const struct drps_expr *e, size_t outputs);

/* The loss of one sample, and its derivatives; work [drps_expr_work()]. Returns 0, or DRPS_E_CONFIG
 * where a value or a derivative is not finite: err names the column, and the loss is NaN. */
DRPS_MUST_CHECK
int drps_expr_slopes(const struct drps_expr *e, size_t outputs, const struct drps_expr_sample *s,
                     double *work, double *loss_out, struct drps_err *err);

/* The value of drps_expr_parse_value() for these scores: *n_out numbers, 1 or J, in `work`. Returns
 * 0, or DRPS_E_CONFIG where a value is not finite: err names the column. */
DRPS_MUST_CHECK
int drps_expr_value(const struct drps_expr *e, size_t outputs, const float *scores, double *work,
                    const double **value_out, size_t *n_out, struct drps_err *err);

#endif
