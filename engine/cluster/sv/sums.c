/* The sum of all ranks' gradients in a round. */
#include "engine/cluster/sv/sums.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"

int sums_open(struct sums *s, size_t most, uint32_t dim, int touches, struct drps_err *err)
{
    *s = (struct sums){.dim = dim, .has_touches = touches, .most = most};
    s->ids = drps_array_new(most, sizeof(*s->ids));
    s->merged = drps_array_new(most, sizeof(*s->merged));
    s->grads = drps_array_new(most, dim * sizeof(*s->grads));
    s->touches = drps_array_new(touches ? most : 0, sizeof(*s->touches));
    if (s->ids && s->merged && s->grads && s->touches) return 0;
    return drps_err_set(err, -ENOMEM, "no memory for the gradients of a round");
}

void sums_close(struct sums *s)
{
    free(s->ids);
    free(s->merged);
    free(s->grads);
    free(s->touches);
    memset(s, 0, sizeof(*s));
}

void sums_begin(struct sums *s)
{
    s->n = 0;
}

void sums_unite(struct sums *s, const uint32_t *ids, size_t n)
{
    size_t i = 0, j = 0, out = 0;
    while (i < s->n || j < n) {
        const int here = j == n || (i < s->n && s->ids[i] <= ids[j]);
        const uint32_t id = here ? s->ids[i] : ids[j];
        i += i < s->n && s->ids[i] == id;
        j += j < n && ids[j] == id;
        s->merged[out++] = id;
    }
    uint32_t *before = s->ids;
    s->ids = s->merged;
    s->merged = before;
    s->n = out;
}

void sums_zero(struct sums *s)
{
    memset(s->grads, 0, s->n * s->dim * sizeof(*s->grads));
    if (s->has_touches) memset(s->touches, 0, s->n * sizeof(*s->touches));
}

void sums_add(struct sums *s, const uint32_t *ids, size_t n, const float *grads,
              const uint32_t *touches)
{
    size_t at = 0;
    for (size_t i = 0; i < n; i++) {
        while (s->ids[at] != ids[i])
            at++;
        float *restrict sum = s->grads + at * s->dim;
        const float *restrict more = grads + i * s->dim;
        for (uint32_t k = 0; k < s->dim; k++)
            sum[k] += more[k];
        if (s->has_touches) s->touches[at] += touches[i];
    }
}
