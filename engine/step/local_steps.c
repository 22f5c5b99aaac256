/* Local steps: one sample after the other, on a copy of the batch's rows. */
#include "engine/step/local_steps.h"

#include <string.h>

void drps_local_init(struct drps_local *local, size_t rows)
{
    for (size_t i = 0; i <= rows; i++) {
        local->identity[i] = (uint32_t)i;
        local->narrow[i] = (uint16_t)i; /* wraps where it is not used */
        local->touches[i] = 1;
    }
}

void drps_local_pull(struct drps_local *local, const struct drps_rows *rows, size_t row_bytes,
                     size_t first, size_t last)
{
    for (size_t i = first; i < last; i++)
        memcpy(local->copy + i * row_bytes, drps_row_at(rows, i), row_bytes);
    memcpy(local->original + first * row_bytes, local->copy + first * row_bytes,
           (last - first) * row_bytes);
}

/*
 * Sample s as a batch of its own, over the rows local->index[0 .. rows). Of the batch's form:
 * kernels of another one may round otherwise.
 */
static struct drps_batch one_sample(struct drps_local *local, const struct drps_batch *b, size_t s,
                                    int has_bias)
{
    const size_t start = drps_batch_start(b, s);
    const size_t n = drps_batch_start(b, s + 1) - start;
    const size_t bias = has_bias ? 1 : 0;

    local->index[0] = 0; /* the intercept is row 0 of the batch, too */
    for (size_t j = 0; j < n; j++)
        local->index[bias + j] = b->local16 ? b->local16[start + j] : b->local32[start + j];
    const int narrow = b->local16 && bias + n <= (size_t)UINT16_MAX + 1;
    return (struct drps_batch){.samples = 1,
                               .rows = bias + n,
                               .nnz = n,
                               .labels = b->labels + s,
                               .weights = b->weights ? b->weights + s : NULL,
                               .per_sample = (uint32_t)n,
                               .local16 = narrow ? local->narrow + bias : NULL,
                               .local32 = narrow ? NULL : local->identity + bias,
                               .values = b->values ? b->values + start : NULL,
                               .fields = b->fields ? b->fields + start : NULL,
                               .field_count = b->field_count};
}

double drps_local_train(struct drps_local *local, const struct drps_model *model,
                        const struct drps_optim *optim, const struct drps_batch *batch,
                        float *scores, const struct drps_local_room *room)
{
    const uint32_t dim = model->dim;
    struct drps_rows rows = {.base = local->copy,
                             .stride = drps_optim_row_floats(optim, dim) * sizeof(float),
                             .index = local->index};
    const size_t fixed = model->has_bias && model->fixed_bias ? 1 : 0;
    double loss = 0;

    for (size_t s = 0; s < batch->samples; s++) {
        const struct drps_batch one = one_sample(local, batch, s, model->has_bias);
        rows.n = one.rows;
        drps_rows_gather(&rows, dim, 0, one.rows, room->params);
        memset(room->grads, 0, one.rows * dim * sizeof(float));
        loss += drps_model_gradient(model, &one, 0, 1, room->params, room->grads,
                                    scores + s * drps_model_score_floats(model), room->scratch);
        if (drps_model_ranks(model)) { /* else every row of a sample counts once */
            memset(local->touches, 0, one.rows * sizeof(*local->touches));
            drps_model_touches(model, &one, 0, 1, local->touches);
        }
        drps_optim_step(optim, dim, &rows, fixed, one.rows, room->grads, local->touches,
                        drps_model_common_rows(model));
    }
    return loss;
}

/* Adds what the copy changed by. A value that nobody else changed is taken as the copy has it:
 * adding a difference would round it once more. */
static void add_difference(size_t n, float *restrict stored, const float *restrict copy,
                           const float *restrict original)
{
    for (size_t i = 0; i < n; i++) {
        const float moved = stored[i] + (copy[i] - original[i]);
        stored[i] = stored[i] == original[i] ? copy[i] : moved;
    }
}

void drps_local_push(const struct drps_local *local, const struct drps_rows *rows, size_t row_bytes,
                     size_t first, size_t last)
{
    for (size_t i = first; i < last; i++)
        add_difference(row_bytes / sizeof(float), drps_row_at(rows, i),
                       (const float *)(const void *)(local->copy + i * row_bytes),
                       (const float *)(const void *)(local->original + i * row_bytes));
}
