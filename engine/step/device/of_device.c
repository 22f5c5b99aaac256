/* Model and optimizer in the terms of a device, and whether it has kernels for them. */
#include "engine/step/device/of_device.h"

#include "engine/step/device/drps_device_worker.h"
#include "index/plan/drps_algorithm.h"

/* 0, or -1: no device has this. */
static int find_predictor(const struct drps_model *model, enum drps_device_predictor *out)
{
    switch (drps_algorithm(model->algo)->predictor) {
    case DRPS_PREDICTOR_LINEAR:
        *out = DRPS_DEVICE_LINEAR;
        return 0;
    case DRPS_PREDICTOR_FM:
        *out = DRPS_DEVICE_FM;
        return 0;
    case DRPS_PREDICTOR_MF:
        *out = DRPS_DEVICE_MF;
        return 0;
    case DRPS_PREDICTOR_FFM:
        *out = DRPS_DEVICE_FFM;
        return 0;
    case DRPS_PREDICTOR_NET:
        *out = DRPS_DEVICE_NET;
        return 0;
    default:
        return -1;
    }
}

static int find_loss(enum drps_loss loss, enum drps_device_loss *out)
{
    switch (loss) {
    case DRPS_LOSS_SQUARED:
        *out = DRPS_DEVICE_SQUARED;
        return 0;
    case DRPS_LOSS_LOGISTIC:
        *out = DRPS_DEVICE_LOGISTIC;
        return 0;
    case DRPS_LOSS_HINGE:
        *out = DRPS_DEVICE_HINGE;
        return 0;
    case DRPS_LOSS_SQUARED_HINGE:
        *out = DRPS_DEVICE_SQUARED_HINGE;
        return 0;
    case DRPS_LOSS_SOFTMAX:
        *out = DRPS_DEVICE_SOFTMAX;
        return 0;
    default:
        return -1;
    }
}

/* 0, or -1: no device has this layer. */
static int find_layer(enum drps_layer_kind kind, enum drps_device_layer_kind *out)
{
    static const struct {
        enum drps_layer_kind kind;
        enum drps_device_layer_kind of_device;
    } kinds[] = {{DRPS_LAYER_EMBEDDING, DRPS_DEVICE_EMBEDDING},
                 {DRPS_LAYER_BAG, DRPS_DEVICE_BAG},
                 {DRPS_LAYER_LINEAR, DRPS_DEVICE_WEIGHTS},
                 {DRPS_LAYER_NUMBERS, DRPS_DEVICE_NUMBERS},
                 {DRPS_LAYER_IMAGE, DRPS_DEVICE_IMAGE},
                 {DRPS_LAYER_FULL, DRPS_DEVICE_FULL},
                 {DRPS_LAYER_RELU, DRPS_DEVICE_RELU},
                 {DRPS_LAYER_SIGMOID, DRPS_DEVICE_SIGMOID},
                 {DRPS_LAYER_TANH, DRPS_DEVICE_TANH},
                 {DRPS_LAYER_DROPOUT, DRPS_DEVICE_DROPOUT},
                 {DRPS_LAYER_FM, DRPS_DEVICE_PAIRS},
                 {DRPS_LAYER_DOTS, DRPS_DEVICE_DOTS},
                 {DRPS_LAYER_CROSS, DRPS_DEVICE_CROSS},
                 {DRPS_LAYER_SUM, DRPS_DEVICE_SUM},
                 {DRPS_LAYER_JOIN, DRPS_DEVICE_JOIN},
                 {DRPS_LAYER_CONV, DRPS_DEVICE_CONV},
                 {DRPS_LAYER_POOL, DRPS_DEVICE_POOL},
                 {DRPS_LAYER_LSTM, DRPS_DEVICE_LSTM}};
    for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
        if (kinds[i].kind == kind) {
            *out = kinds[i].of_device;
            return 0;
        }
    return -1;
}

static int net_of(const struct drps_model *model, struct drps_device_layer *layers,
                  struct drps_device_model *out, struct drps_err *err)
{
    const struct drps_layers *l = &model->layers;
    uint32_t of_rows = 0;
    for (uint32_t i = 0; i < l->n; i++) {
        const struct drps_layer *from = &l->layers[i];
        struct drps_device_layer *to = &layers[i];
        *to = (struct drps_device_layer){.inputs_n = from->inputs_n,
                                         .parts = from->parts,
                                         .each = from->each,
                                         .at = from->at,
                                         .first = from->first,
                                         .probability = from->probability,
                                         .rows = from->rows,
                                         .columns = from->columns,
                                         .kernel = from->kernel,
                                         .step = from->step,
                                         .border = from->border};
        for (uint32_t k = 0; k < from->inputs_n; k++)
            to->input[k] = from->input[k];
        if (find_layer(from->kind, &to->kind) < 0)
            return drps_err_set(err, DRPS_E_CONFIG,
                                "the device has no kernels for layer %s, in line %u of the net",
                                drps_layer_name(from->kind), from->line);
        of_rows += to->kind == DRPS_DEVICE_EMBEDDING || to->kind == DRPS_DEVICE_BAG ||
                   to->kind == DRPS_DEVICE_WEIGHTS;
    }
    if (of_rows > DRPS_DEVICE_ROW_LAYERS)
        return drps_err_set(err, DRPS_E_CONFIG,
                            "%u layers read features, and the device trains nets of at most %d "
                            "such layers",
                            of_rows, DRPS_DEVICE_ROW_LAYERS);
    out->layers = layers;
    out->n_layers = l->n;
    out->width = l->width;
    out->floats = l->floats;
    out->seed = model->seed;
    return 0;
}

int device_model_of(const struct drps_model *model, struct drps_device_layer *layers,
                    struct drps_device_model *out, struct drps_err *err)
{
    *out = (struct drps_device_model){.factors = model->factors,
                                      .dim = model->dim,
                                      .normalized = model->normalized,
                                      .has_bias = model->has_bias,
                                      .outputs = model->outputs,
                                      .common = drps_model_common_rows(model),
                                      .fixed_bias = model->fixed_bias};
    if ((model->outputs > 1 && !model->layers.n) || find_predictor(model, &out->predictor) < 0)
        return drps_err_set(err, DRPS_E_CONFIG, "the device has no kernels for algorithm %s%s",
                            drps_algo_name(model->algo),
                            model->outputs > 1 ? " with several scores a sample" : "");
    if (model->callbacks || find_loss(model->loss, &out->loss) < 0)
        return drps_err_set(err, DRPS_E_CONFIG, "the device has no kernels for %s%s",
                            model->callbacks ? "callbacks" : "loss ",
                            model->callbacks ? "" : drps_loss_name(model->loss));
    if (model->late_bias)
        return drps_err_set(err, DRPS_E_CONFIG,
                            "the device trains no plan with lanes, whose intercept learns between "
                            "them");
    return model->layers.n ? net_of(model, layers, out, err) : 0;
}

int device_optim_of(const struct drps_optim *o, struct drps_device_optim *out, struct drps_err *err)
{
    static const enum drps_device_optimizer kinds[] = {[DRPS_OPTIM_SGD] = DRPS_DEVICE_SGD,
                                                       [DRPS_OPTIM_ADAGRAD] = DRPS_DEVICE_ADAGRAD,
                                                       [DRPS_OPTIM_FTRL] = DRPS_DEVICE_FTRL,
                                                       [DRPS_OPTIM_ADAM] = DRPS_DEVICE_ADAM};
    if (!drps_optim_steps_batches(o->kind))
        return drps_err_set(err, DRPS_E_CONFIG, "the device has no kernels for optimizer %s",
                            drps_optim_name(o->kind));
    *out = (struct drps_device_optim){.kind = kinds[o->kind],
                                      .lr = o->lr,
                                      .l1 = o->l1,
                                      .l2 = o->l2,
                                      .eps = drps_optim_eps(o),
                                      .beta = drps_optim_beta(o),
                                      .beta1 = drps_optim_beta1(o),
                                      .beta2 = drps_optim_beta2(o),
                                      .l1_all = o->l1_all};
    return 0;
}

int drps_device_worker_can(const struct drps_device_ops *ops, const struct drps_model *model,
                           const struct drps_optim *optim, struct drps_err *err)
{
    struct drps_device_layer layers[DRPS_LAYERS_MOST];
    struct drps_device_model m;
    struct drps_device_optim o;
    char why[DRPS_DEVICE_TEXT_BYTES];
    int rc = device_model_of(model, layers, &m, err);
    if (rc == 0) rc = device_optim_of(optim, &o, err);
    if (rc < 0 || ops->can(&m, &o, why)) return rc;
    return drps_err_set(err, DRPS_E_CONFIG, "the device cannot: %s", why);
}
