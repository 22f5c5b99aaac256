/*
 * The largest of each K x K pixels, channel by channel. Where several are the largest, the slope
 * goes to the first of them, from the left and then from the top. Channels lie beside each other,
 * so that loops over them become vectors.
 */
#include <string.h>

#include "base/kernel/drps_level.h"
#include "engine/model/layers/image.h"

enum { TOGETHER = 64 }; /* channels whose slopes are given away together */

/* Where the pixel (kx, ky) of what result pixel `pixel` sees begins in the image. */
static inline size_t at_of(const struct drps_layer *a, const struct drps_layer *y, size_t pixel,
                           size_t ky, size_t kx)
{
    const size_t row = pixel / y->columns * y->step + ky,
                 column = pixel % y->columns * y->step + kx;
    return (row * a->columns + column) * a->each;
}

/* A NaN stays one. */
DRPS_INLINE void take_larger(size_t n, const float *restrict a, float *restrict most)
{
    for (size_t c = 0; c < n; c++)
        most[c] = a[c] > most[c] || a[c] != a[c] ? a[c] : most[c];
}

DRPS_KERNEL(void, drps_layers_pool, (const struct pass *p, const struct drps_layer *y), (p, y))
{
    const struct drps_layer *a = input_of(p, y, 0);
    const size_t C = y->each;
    float *out = out_of(p, y);
    for (size_t s = 0; s < p->n; s++) {
        const float *image = out_of(p, a) + s * width_of(a);
        for (size_t pixel = 0; pixel < y->parts; pixel++, out += C) {
            memcpy(out, image + at_of(a, y, pixel, 0, 0), C * sizeof(*out));
            for (size_t k = 1; k < (size_t)y->kernel * y->kernel; k++)
                take_larger(C, image + at_of(a, y, pixel, k / y->kernel, k % y->kernel), out);
        }
    }
}

/* left [n] are slopes that no pixel has got so far: this one gets those of channels where it is the
 * largest. */
DRPS_INLINE void give_slopes(size_t n, const float *restrict a, const float *restrict most,
                             float *restrict left, float *restrict of_a)
{
    for (size_t c = 0; c < n; c++) {
        const int is_it = a[c] == most[c];
        of_a[c] += is_it ? left[c] : 0;
        left[c] = is_it ? 0 : left[c];
    }
}

DRPS_KERNEL(void, drps_layers_pool_back, (const struct pass *p, const struct drps_layer *y), (p, y))
{
    const struct drps_layer *a = input_of(p, y, 0);
    const size_t C = y->each;
    const float *out = out_of(p, y), *slope = slope_of(p, y);
    float left[TOGETHER];
    for (size_t s = 0; s < p->n; s++) {
        const float *image = out_of(p, a) + s * width_of(a);
        float *of_image = slope_of(p, a) + s * width_of(a);
        for (size_t pixel = 0; pixel < y->parts; pixel++, out += C, slope += C)
            for (size_t c = 0; c < C; c += TOGETHER) {
                const size_t n = C - c < TOGETHER ? C - c : TOGETHER;
                memcpy(left, slope + c, n * sizeof(*left));
                for (size_t k = 0; k < (size_t)y->kernel * y->kernel; k++) {
                    const size_t at = at_of(a, y, pixel, k / y->kernel, k % y->kernel) + c;
                    give_slopes(n, image + at, out + c, left, of_image + at);
                }
            }
    }
}
