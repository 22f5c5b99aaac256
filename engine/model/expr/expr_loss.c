/* Samples of a batch go one by one through a loss that is a text; those with a row of their own
 * take it from the batch's rows. */
#include "engine/model/expr/drps_expr_loss.h"

#include <math.h>

#include "engine/model/expr/drps_slopes.h"

/* What one thread works in. */
struct room {
    double *work;
    float *slopes, *own_slopes; /* [J] */
};

size_t drps_expr_room_bytes(const struct drps_expr *e, size_t outputs)
{
    return drps_expr_work(e, outputs) * sizeof(double) + 2 * outputs * sizeof(float);
}

static struct room room_of(const struct drps_expr *e, size_t outputs, void *bytes)
{
    double *work = bytes;
    float *slopes = (float *)(void *)(work + drps_expr_work(e, outputs));
    return (struct room){work, slopes, slopes + outputs};
}

/* Returns which of the batch's rows is the sample's own; b->rows: none. */
static size_t own_row(const struct drps_expr *e, const struct drps_batch *b, size_t s,
                      const float *params)
{
    return e->has_own && params ? drps_batch_sample_row(b, s) : b->rows;
}

static void add(float *to, const float *by, float share, size_t n)
{
    for (size_t c = 0; c < n; c++)
        to[c] += share * by[c];
}

double drps_expr_loss(const struct drps_expr *e, size_t outputs, const struct drps_batch *b,
                      size_t first, size_t last, const float *params, const float *scores,
                      float share, float *slopes, float *grads, void *room)
{
    const size_t n = outputs;
    const struct room r = room_of(e, outputs, room);
    double total = 0, loss;
    for (size_t s = first; s < last; s++) {
        const size_t row = own_row(e, b, s, params);
        const int has_own = row < b->rows;
        const float weight = b->weights ? b->weights[s] : 1;
        const struct drps_expr_sample sample = {
            .scores = scores + s * n,
            .y = b->labels[s],
            .own = has_own ? params + row * n : NULL,
            .slopes = slopes ? slopes + (s - first) * n : NULL,
            .own_slopes = has_own && grads ? r.own_slopes : NULL,
        };
        if (drps_expr_slopes(e, n, &sample, r.work, &loss, NULL) < 0)
            loss = (double)NAN;
        else if (sample.own_slopes)
            add(grads + row * n, r.own_slopes, share * weight, n);
        for (size_t c = 0; b->weights && slopes && c < n; c++)
            sample.slopes[c] *= weight;
        total += (double)weight * loss;
    }
    return total;
}

int drps_expr_explain(const struct drps_expr *e, size_t outputs, const struct drps_batch *b,
                      const float *params, const float *scores, int trains, void *room,
                      struct drps_err *err)
{
    const size_t n = outputs;
    const struct room r = room_of(e, outputs, room);
    double loss;
    for (size_t s = 0; s < b->samples; s++) {
        const size_t row = own_row(e, b, s, params);
        const struct drps_expr_sample sample = {.scores = scores + s * n,
                                                .y = b->labels[s],
                                                .own = row < b->rows ? params + row * n : NULL,
                                                .slopes = trains ? r.slopes : NULL,
                                                .own_slopes = trains ? r.own_slopes : NULL};
        int rc = drps_expr_slopes(e, n, &sample, r.work, &loss, err);
        if (rc < 0)
            return drps_err_context(err, "sample %zu of its %zu, the loss", s + 1, b->samples);
    }
    return 0;
}
