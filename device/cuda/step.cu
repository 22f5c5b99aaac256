/* A step: how its room is divided, and which kernels run on it in which order. */
#include "device/cuda/net.h"

#include <stdio.h>

#include "device/cuda/products.h"

enum { SCORES_AT = 16 };

/* Hands out pieces of the room; with base NULL it only counts. */
struct room {
    char *base;
    size_t used;
};

static void *take(struct room *room, size_t n, size_t size)
{
    const size_t at = (room->used + 15) / 16 * 16;
    room->used = at + n * size;
    return room->base ? room->base + at : NULL;
}

static size_t lay_out(struct step *step, const struct drps_device_model *model,
                      const struct drps_device_optim *optim, void *base, size_t samples,
                      size_t rows, size_t pieces)
{
    struct room room = {(char *)base, 0};
    const size_t blocks = (size_t)step_forward_blocks(model, samples);
    step->blocks = (uint32_t)blocks;
    step->loss = (double *)take(&room, SCORES_AT / sizeof(double), sizeof(double));
    step->scores = (float *)take(&room, samples * model->outputs, sizeof(float));
    step->slopes = (float *)take(&room, samples, sizeof(float));
    step->block_losses = (double *)take(&room, blocks, sizeof(double));
    step->block_slopes = (double *)take(&room, blocks, sizeof(double));
    step->parts = (float *)take(&room, pieces * step_part_floats(model), sizeof(float));
    if (model->predictor == DRPS_DEVICE_FM)
        step->sums = (float *)take(&room, samples * model->factors, sizeof(float));
    if (model->predictor == DRPS_DEVICE_MF || model->predictor == DRPS_DEVICE_FFM)
        step->params = (float *)take(&room, rows * model->dim, sizeof(float));
    if (optim->kind == DRPS_DEVICE_ADAM)
        step->rates = (struct adam_rates *)take(&room, rows, sizeof(*step->rates));
    if (model->predictor == DRPS_DEVICE_NET) {
        struct net_room none;
        const size_t bytes = net_room(&none, model, NULL, samples);
        (void)net_room(&step->net, model, take(&room, bytes, 1), samples);
    }
    return room.used;
}

size_t device_room_bytes(const struct drps_device_model *model,
                         const struct drps_device_optim *optim, size_t samples, size_t rows,
                         size_t pieces)
{
    struct step step = {};
    return lay_out(&step, model, optim, NULL, samples, rows, pieces);
}

void device_results(const struct drps_device_model *model, struct drps_device_results *out)
{
    (void)model;
    out->loss_at = 0;
    out->scores_at = SCORES_AT;
}

int device_can(const struct drps_device_model *model, const struct drps_device_optim *optim,
               char *why)
{
    const int is_linear = model->predictor == DRPS_DEVICE_LINEAR;
    const int is_ffm = model->predictor == DRPS_DEVICE_FFM;
    (void)optim;
    if (model->predictor == DRPS_DEVICE_NET) return products_can(why);
    if (is_linear == (model->factors == 0) && (is_ffm || model->dim == 1 + model->factors))
        return 1;
    (void)snprintf(why, DRPS_DEVICE_TEXT_BYTES, "rows of %u floats for %u factors", model->dim,
                   model->factors);
    return 0;
}

static struct step prepare(const struct drps_device_step *is, int trains)
{
    const struct drps_device_batch *b = &is->batch;
    struct step step = {};
    step.is = *is;
    step.is.model.layers = NULL; /* of the host, as are the steps */
    step.is.steps = NULL;
    step.trains = trains;
    (void)lay_out(&step, &is->model, &is->optim, is->room, b->samples, b->rows, b->n_pieces);
    return step;
}

int device_train(struct drps_device *dev, const struct drps_device_step *is, char *why)
{
    const struct step step = prepare(is, 1);
    const struct net net = {dev, &step, is, is->model.layers, why};
    int rc = step_count(dev, &step, why);
    if (rc == 0 && step.params)
        rc = device_gather(dev, DRPS_DEVICE_COMPUTE, &is->rows, is->frames, is->batch.rows,
                           is->model.dim * sizeof(float), step.params, why);
    if (is->model.predictor == DRPS_DEVICE_NET) {
        if (rc == 0) rc = net_forward(&net);
        if (rc == 0) rc = net_backward(&net);
    } else {
        if (rc == 0) rc = step_forward(dev, &step, why);
        if (rc == 0) rc = step_backward(dev, &step, why);
    }
    return rc == 0 ? step_finish(dev, &step, why) : rc;
}

int device_predict(struct drps_device *dev, const struct drps_device_step *is, char *why)
{
    const struct step step = prepare(is, 0);
    const struct net net = {dev, &step, is, is->model.layers, why};
    return is->model.predictor == DRPS_DEVICE_NET ? net_forward(&net)
                                                  : step_forward(dev, &step, why);
}
