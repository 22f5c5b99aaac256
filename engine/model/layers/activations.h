/* Functions of single floats, which several layers have. */
#ifndef DRPS_ENGINE_MODEL_LAYERS_ACTIVATIONS_H
#define DRPS_ENGINE_MODEL_LAYERS_ACTIVATIONS_H

#include <math.h>

#include "base/kernel/drps_vector_floats.h"
#include "engine/model/math/drps_exp.h"

DRPS_INLINE float sigmoid_of(float x)
{
    const float e = exp_negative(-fabsf(x));
    return (x < 0 ? e : 1) / (1 + e);
}

/* Within some ulp: by the exponential function where it is far from 0, else by the polynomial of
 * tanhf in Cephes (Moshier). */
DRPS_INLINE float tanh_of(float x)
{
    const float e = exp_negative(-2 * fabsf(x)), z = x * x;
    const float far = copysignf((1 - e) / (1 + e), x);
    float p = -5.70498872745e-3f;
    p = p * z + 2.06390887954e-2f;
    p = p * z - 5.37397155531e-2f;
    p = p * z + 1.33314422036e-1f;
    p = p * z - 3.33332819422e-1f;
    return fabsf(x) < 0.625f ? p * z * x + x : far;
}

#endif
