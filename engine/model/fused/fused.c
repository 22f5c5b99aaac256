/* A batch chunk by chunk: forward, losses, backward with steps (drps_fused.h). A chunk reads no row
 * that one before it has stepped. */
#include "engine/model/fused/drps_fused.h"

#include <string.h>

#include "engine/model/fused/passes.h"

int drps_fused_fits(const struct drps_model *model, const struct drps_optim *optim,
                    const struct drps_batch *b)
{
    return drps_algorithm(model->algo)->predictor == DRPS_PREDICTOR_MF &&
           !drps_model_ranks(model) && model->outputs == 1 && !model->callbacks &&
           model->loss != DRPS_LOSS_EXPRESSION && optim->kind == DRPS_OPTIM_ADAGRAD &&
           !(optim->l1 > 0) && !b->starts && b->per_sample == 2 && !b->values;
}

int drps_fused_pays(const struct drps_batch *b)
{
    return 4 * b->rows >= 3 * b->nnz;
}

static void count(const struct drps_batch *b, struct drps_fused_uses *uses)
{
    memset(uses, 0, b->rows * sizeof(*uses));
    for (size_t j = 0; j < b->nnz; j++)
        uses[drps_batch_local(b, j)].all++;
}

double drps_fused_train(const struct drps_model *model, const struct drps_optim *optim,
                        const struct drps_batch *b, const struct drps_rows *rows,
                        const struct drps_fused_room *room)
{
    const float bias = model->has_bias ? *(const float *)drps_row_at(rows, 0) : 0.0f;
    struct drps_fused_uses *uses = room->counts;
    float slopes[DRPS_MF_CHUNK], of_bias = 0;
    double loss = 0;
    count(b, uses);
    for (size_t s = 0; s < b->samples; s += DRPS_MF_CHUNK) {
        const size_t end = b->samples - s < DRPS_MF_CHUNK ? b->samples : s + DRPS_MF_CHUNK;
        drps_fused_forward(b, model->factors, bias, s, end, rows, room->scores);
        loss +=
            drps_model_chunk_loss(model, b, s, end, room->scores, slopes, &of_bias, room->scratch);
        drps_fused_backward(b, model->factors, optim, s, end, slopes, rows, uses, room->grads);
    }
    if (!model->has_bias) return loss;
    memset(room->grads, 0, model->dim * sizeof(float));
    room->grads[0] = of_bias;
    return loss;
}
