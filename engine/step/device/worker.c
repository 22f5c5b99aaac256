/* Batches on their way to the device, in slots that take turns: one is filled while those before it
 * are uploaded and computed. */
#include "engine/step/device/drps_device_worker.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"
#include "engine/model/layers/drps_layers_steps.h"
#include "engine/step/device/batch.h"
#include "engine/step/device/of_device.h"
#include "engine/step/device/transpose.h"

enum { SLOTS = DRPS_DEVICE_UNDER_WAY + 1, ALIGN = 256 };

/* Events of slot k. */
enum { EVENT_UPLOADED = DRPS_DEVICE_EVENTS_WORKER, EVENT_DONE = EVENT_UPLOADED + SLOTS };

struct slot {
    char *pinned; /* own: the batch, its frames, and its samples in the order of time */
    char *device; /* own: the same */
    double *loss; /* own, pinned */
};

/* A batch as it was laid out once: on the device, or in pinned memory, from where it is uploaded.
 */
struct kept {
    enum { NOWHERE, ON_DEVICE, ON_HOST } where;
    char *at; /* where it lies */
    size_t bytes;
    struct drps_device_batch batch; /* with pointers as if it lay on the device at `at` */
};

/* Memory for batches that are kept. */
struct kept_memory {
    char *memory; /* own */
    uint64_t bytes, used;
};

struct drps_device_worker {
    struct drps_device_use use;
    const struct drps_server *server;
    struct drps_device_model model;
    struct drps_device_layer layers[DRPS_LAYERS_MOST]; /* of a net, which the model points to */
    struct drps_device_results at;
    uint64_t batch_bytes, frames_bytes, order_bytes; /* of a slot */
    uint64_t score_bytes;
    struct slot slots[SLOTS];
    float *scores;       /* own, pinned: of a batch that is predicted */
    uint32_t *sequences; /* own: what drps_layers_steps_of() writes to */
    uint64_t room_bytes;
    void *room; /* own, of the device: of one step after the other, whose results the same queue
                   fetches */
    uint64_t given, taken; /* batches, whose losses were taken */
    struct kept *kept;     /* own: [steps] of an epoch; NULL: none are kept */
    uint64_t steps;
    struct kept_memory device, host; /* for those that are kept */
};

/* ---- Memory ---- */

static uint64_t aligned(uint64_t bytes)
{
    return (bytes + ALIGN - 1) / ALIGN * ALIGN;
}

/* Returns the bytes of what is uploaded for a step. */
static uint64_t moved_bytes(const struct drps_device_worker *w)
{
    return w->batch_bytes + w->frames_bytes + w->order_bytes;
}

/* Returns the bytes of drps_device_worker.sequences. */
static uint64_t sequences_bytes(const struct drps_device_worker *w,
                                const struct drps_plan_info *info)
{
    return w->order_bytes ? DRPS_LAYERS_STEPS_WORDS(info->max_batch_samples) * sizeof(uint32_t) : 0;
}

static void measure(struct drps_device_worker *w, const struct drps_device_ops *ops,
                    const struct drps_device_optim *optim, int has_sequences,
                    const struct drps_plan_info *info)
{
    w->batch_bytes = aligned(device_batch_most(info));
    w->frames_bytes = aligned(info->max_batch_rows * sizeof(uint32_t));
    w->order_bytes = has_sequences ? aligned(info->max_batch_samples * sizeof(uint32_t)) : 0;
    w->room_bytes =
        aligned(ops->room_bytes(&w->model, optim, info->max_batch_samples, info->max_batch_rows,
                                transposed_pieces_most(info->max_batch_nnz)));
    ops->results(&w->model, &w->at);
    w->score_bytes = aligned(info->max_batch_samples * w->model.outputs * sizeof(float));
    w->steps = info->batches + info->eval_batches;
}

void drps_device_worker_needs(const struct drps_device_ops *ops, const struct drps_model *model,
                              const struct drps_optim *optim, const struct drps_plan_info *info,
                              struct drps_device_worker_needs *out)
{
    struct drps_device_worker w = {0};
    struct drps_device_optim o;
    *out = (struct drps_device_worker_needs){0};
    if (device_model_of(model, w.layers, &w.model, NULL) < 0 ||
        device_optim_of(optim, &o, NULL) < 0)
        return;
    measure(&w, ops, &o, model->layers.has_sequences, info);
    out->host_bytes = SLOTS * (moved_bytes(&w) + aligned(sizeof(double))) + w.score_bytes +
                      sequences_bytes(&w, info) + w.steps * sizeof(struct kept);
    out->device_bytes = SLOTS * moved_bytes(&w) + w.room_bytes;
    out->keep_most_bytes = w.steps * w.batch_bytes;
}

static int open_slot(struct drps_device_worker *w, struct slot *slot, struct drps_err *err)
{
    struct drps_device_use *use = &w->use;
    const uint64_t moved = moved_bytes(w);
    void *pinned = NULL, *device = NULL, *loss = NULL;
    int rc = DRPS_DEVICE_CALL(use, err, pin, (size_t)moved, &pinned);
    if (rc == 0) rc = DRPS_DEVICE_CALL(use, err, pin, sizeof(*slot->loss), &loss);
    if (rc == 0) rc = DRPS_DEVICE_CALL(use, err, alloc, (size_t)moved, &device);
    *slot = (struct slot){pinned, device, loss};
    return rc;
}

static int open_kept(struct drps_device_worker *w, uint64_t device_bytes, uint64_t host_bytes,
                     struct drps_err *err)
{
    void *device = NULL, *host = NULL;
    int rc = 0;
    if (!device_bytes && !host_bytes) return 0;
    w->kept = calloc((size_t)w->steps, sizeof(*w->kept));
    if (!w->kept) return drps_err_set(err, -ENOMEM, "no memory to know which batches are kept");
    if (device_bytes) rc = DRPS_DEVICE_CALL(&w->use, err, alloc, (size_t)device_bytes, &device);
    w->device = (struct kept_memory){device, device_bytes, 0};
    if (rc == 0 && host_bytes) rc = DRPS_DEVICE_CALL(&w->use, err, pin, (size_t)host_bytes, &host);
    w->host = (struct kept_memory){host, rc == 0 ? host_bytes : 0, 0};
    return rc;
}

static int open_sequences(struct drps_device_worker *w, const struct drps_plan_info *info,
                          struct drps_err *err)
{
    const uint64_t bytes = sequences_bytes(w, info);
    if (!bytes) return 0;
    w->sequences = malloc((size_t)bytes);
    return w->sequences ? 0 : drps_err_set(err, -ENOMEM, "no memory for the order of sequences");
}

int drps_device_worker_open(const struct drps_device_worker_parts *parts,
                            struct drps_device_worker **w_out, struct drps_err *err)
{
    *w_out = NULL;
    struct drps_device_worker *w = calloc(1, sizeof(*w));
    if (!w) return drps_err_set(err, -ENOMEM, "no memory for the worker of the device");
    struct drps_device_optim optim;
    void *scores = NULL;
    w->use = *parts->use;
    w->server = parts->server;
    int rc = device_model_of(&parts->server->model, w->layers, &w->model, err);
    if (rc == 0) rc = device_optim_of(&parts->server->optim, &optim, err);
    if (rc == 0)
        measure(w, w->use.ops, &optim, parts->server->model.layers.has_sequences, parts->info);
    for (unsigned k = 0; k < SLOTS && rc == 0; k++)
        rc = open_slot(w, &w->slots[k], err);
    if (rc == 0) rc = DRPS_DEVICE_CALL(&w->use, err, pin, (size_t)w->score_bytes, &scores);
    w->scores = scores;
    if (rc == 0) rc = DRPS_DEVICE_CALL(&w->use, err, alloc, (size_t)w->room_bytes, &w->room);
    if (rc == 0) rc = open_sequences(w, parts->info, err);
    if (rc == 0) rc = open_kept(w, parts->keep_bytes, parts->keep_host_bytes, err);
    if (rc < 0)
        drps_device_worker_close(w);
    else
        *w_out = w;
    return rc;
}

void drps_device_worker_close(struct drps_device_worker *w)
{
    if (!w) return;
    const struct drps_device_ops *ops = w->use.ops;
    for (uint64_t i = w->taken; i < w->given; i++) /* their memory goes: errors do not matter now */
        (void)ops->wait(w->use.dev, EVENT_DONE + (unsigned)(i % SLOTS), w->use.why);
    for (unsigned k = 0; k < SLOTS; k++) {
        ops->unpin(w->use.dev, w->slots[k].pinned);
        ops->unpin(w->use.dev, w->slots[k].loss);
        ops->release(w->use.dev, w->slots[k].device);
    }
    ops->unpin(w->use.dev, w->scores);
    ops->release(w->use.dev, w->room);
    ops->release(w->use.dev, w->device.memory);
    ops->unpin(w->use.dev, w->host.memory);
    free(w->sequences);
    free(w->kept);
    free(w);
}

/* ---- Batches ---- */

/* What slopes are multiplied by: 1 of a sum, else the share of a mean that a weight of 1 has. */
static float share_of(const struct drps_model *model, const struct drps_batch *b)
{
    double weight = b->weights ? 0 : (double)b->samples;
    if (!model->mean_of) return 1;
    for (size_t s = 0; b->weights && s < b->samples; s++)
        weight += (double)b->weights[s];
    return (float)(1 / (weight * model->mean_of));
}

static int has_pairs(const struct drps_device_model *model)
{
    return model->predictor >= DRPS_DEVICE_MF;
}

/* 1: there is room for as much as a batch may have. */
static int has_room(const struct drps_device_worker *w, const struct kept_memory *m)
{
    return w->kept && m->used + w->batch_bytes <= m->bytes;
}

/* Lays the batch out for the first time, in the slot or where it is to stay. */
static struct kept lay_out(struct drps_device_worker *w, const struct drps_batch *b, int trains,
                           const struct slot *slot)
{
    const int on_device = has_room(w, &w->device);
    const int on_host = !on_device && has_room(w, &w->host);
    char *host = on_host ? w->host.memory + w->host.used : slot->pinned;
    struct kept k = {.where = on_device ? ON_DEVICE
                              : on_host ? ON_HOST
                                        : NOWHERE,
                     .at = on_device ? w->device.memory + w->device.used : host};
    k.bytes = device_batch_lay_out(b, trains, has_pairs(&w->model), host, k.at, &k.batch);
    if (on_device) w->device.used += aligned(k.bytes);
    if (on_host) w->host.used += aligned(k.bytes);
    return k;
}

/* The batch, uploaded if it is not on the device. */
static int upload_batch(struct drps_device_worker *w, uint64_t step, const struct drps_batch *b,
                        int trains, const struct slot *slot, struct drps_device_batch *out,
                        struct drps_err *err)
{
    struct kept *known = w->kept && w->kept[step].where ? &w->kept[step] : NULL;
    const struct kept k = known ? *known : lay_out(w, b, trains, slot);
    const char *from = k.where == ON_DEVICE ? slot->pinned : k.at;
    char *to = k.where == ON_DEVICE ? k.at : slot->device;
    *out = k.batch;
    device_batch_move(out, k.at, to);
    if (known && k.where == ON_DEVICE) return 0;
    int rc = DRPS_DEVICE_CALL(&w->use, err, upload, DRPS_DEVICE_BATCHES, to, from, k.bytes);
    if (rc == 0 && k.where) w->kept[step] = k;
    return rc;
}

/* Uploads n numbers to byte `at` of the slot. */
static int upload_numbers(struct drps_device_worker *w, const struct slot *slot, uint64_t at,
                          const uint32_t *numbers, size_t n, const uint32_t **out,
                          struct drps_err *err)
{
    char *pinned = slot->pinned + at, *device = slot->device + at;
    memcpy(pinned, numbers, n * sizeof(*numbers));
    *out = (const uint32_t *)(void *)device;
    return DRPS_DEVICE_CALL(&w->use, err, upload, DRPS_DEVICE_BATCHES, device, pinned,
                            n * sizeof(*numbers));
}

static int upload_frames(struct drps_device_worker *w, const struct slot *slot,
                         const uint32_t **out, struct drps_err *err)
{
    const struct drps_rows *rows = &w->server->rows;
    return upload_numbers(w, slot, w->batch_bytes, rows->index, rows->n, out, err);
}

/* The samples in the order of time, of a net that looks at it. */
static int upload_order(struct drps_device_worker *w, const struct slot *slot,
                        const struct drps_batch *b, struct drps_device_step *out,
                        struct drps_err *err)
{
    struct drps_layers_steps s;
    if (!w->sequences) return 0;
    drps_layers_steps_of(b, 0, b->samples, w->sequences, &s);
    out->steps = s.first;
    out->n_steps = s.n;
    return upload_numbers(w, slot, w->batch_bytes + w->frames_bytes, s.sample, b->samples,
                          &out->order, err);
}

/* All that the device needs for a step, which its computing waits for. */
static int prepare(struct drps_device_worker *w, uint64_t step, const struct drps_batch *b,
                   int trains, unsigned k, struct drps_device_step *out, struct drps_err *err)
{
    struct drps_device_use *use = &w->use;
    struct slot *slot = &w->slots[k];
    if (!b->samples) /* kernels take it that there is one */
        return drps_err_set(err, DRPS_E_CORRUPT, "a batch has no samples: make the plan anew");
    *out = (struct drps_device_step){
        .rows = {.base = w->server->rows.base, .stride = w->server->rows.stride},
        .model = w->model,
        .share = share_of(&w->server->model, b),
        .room = w->room};
    int rc = device_optim_of(&w->server->optim, &out->optim, err);
    if (rc == 0) rc = upload_batch(w, step, b, trains, slot, &out->batch, err);
    if (rc == 0) rc = upload_frames(w, slot, &out->frames, err);
    if (rc == 0) rc = upload_order(w, slot, b, out, err);
    if (rc == 0) rc = DRPS_DEVICE_CALL(use, err, mark, DRPS_DEVICE_BATCHES, EVENT_UPLOADED + k);
    if (rc == 0) rc = DRPS_DEVICE_CALL(use, err, after, DRPS_DEVICE_COMPUTE, EVENT_UPLOADED + k);
    return rc;
}

/* Has the bytes from `at` on in the step's room come to `to`. */
static int fetch(struct drps_device_worker *w, unsigned k, const struct drps_device_step *step,
                 size_t at, size_t bytes, void *to, struct drps_err *err)
{
    int rc = DRPS_DEVICE_CALL(&w->use, err, download, DRPS_DEVICE_COMPUTE, to,
                              (const char *)step->room + at, bytes);
    return rc < 0 ? rc : DRPS_DEVICE_CALL(&w->use, err, mark, DRPS_DEVICE_COMPUTE, EVENT_DONE + k);
}

int drps_device_worker_train(struct drps_device_worker *w, uint64_t step,
                             const struct drps_batch *b, struct drps_err *err)
{
    const unsigned k = (unsigned)(w->given % SLOTS);
    struct drps_device_step of_device;
    if (w->given - w->taken >= SLOTS)
        return drps_err_set(err, -EINVAL, "%d batches are on their way to the device", SLOTS);
    int rc = prepare(w, step, b, 1, k, &of_device, err);
    if (rc == 0) rc = DRPS_DEVICE_CALL(&w->use, err, train, &of_device);
    if (rc == 0) rc = fetch(w, k, &of_device, w->at.loss_at, sizeof(double), w->slots[k].loss, err);
    if (rc == 0) w->given++;
    return rc;
}

int drps_device_worker_take(struct drps_device_worker *w, unsigned left, double *loss_out,
                            struct drps_err *err)
{
    const unsigned k = (unsigned)(w->taken % SLOTS);
    if (w->given - w->taken <= left) return 0;
    int rc = DRPS_DEVICE_CALL(&w->use, err, wait, EVENT_DONE + k);
    if (rc < 0) return rc;
    *loss_out = *w->slots[k].loss;
    w->taken++;
    return 1;
}

int drps_device_worker_predict(struct drps_device_worker *w, uint64_t step,
                               const struct drps_batch *b, float *scores, struct drps_err *err)
{
    const unsigned k = (unsigned)(w->given % SLOTS);
    const size_t bytes = b->samples * w->model.outputs * sizeof(*scores);
    struct drps_device_step of_device;
    if (w->given != w->taken)
        return drps_err_set(err, -EINVAL, "losses of batches are not taken from the device");
    int rc = prepare(w, step, b, 0, k, &of_device, err);
    if (rc == 0) rc = DRPS_DEVICE_CALL(&w->use, err, predict, &of_device);
    if (rc == 0) rc = fetch(w, k, &of_device, w->at.scores_at, bytes, w->scores, err);
    if (rc == 0) rc = DRPS_DEVICE_CALL(&w->use, err, wait, EVENT_DONE + k);
    if (rc < 0) return rc;
    memcpy(scores, w->scores, bytes);
    return 0;
}
