/* The state of a run as JSON. Numbers that results depend on are written with all their digits. */
#include "engine/checkpoint/drps_state.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/folder/drps_manifest.h"
#include "engine/checkpoint/drps_epoch_json.h"
#include "engine/checkpoint/drps_newton_json.h"
#include "engine/checkpoint/drps_waiting_json.h"

enum { EPOCHS_MOST = 1 << 20 };

static json_t *count(uint64_t v)
{
    return json_integer(v > INT64_MAX ? INT64_MAX : (json_int_t)v);
}

/* ---- Writing ---- */

static json_t *epochs_to_json(const struct drps_state *s)
{
    json_t *list = json_array();
    for (uint64_t i = 0; list && i + 1 < s->epoch; i++) {
        json_t *e = drps_epoch_to_json(&s->done[i]);
        if (json_array_append_new(list, e) == 0) continue;
        json_decref(list);
        return NULL;
    }
    return list;
}

/* JSON has no infinite numbers. */
static json_t *push_to_json(const struct drps_push_options *o)
{
    json_t *j = json_pack("{s:i, s:o, s:f, s:f, s:f}", "bits", (int)o->bits, "phi",
                          isfinite(o->phi) ? json_real(o->phi) : json_null(), "decay", o->decay,
                          "chance", o->chance, "top", o->top);
    if (o->flush) drps_manifest_put(&j, "flush", count(o->flush));
    if (o->whole_bits) drps_manifest_put(&j, "whole_bits", count(o->whole_bits));
    return j;
}

static json_t *pull_to_json(const struct drps_pull_options *o)
{
    return json_pack("{s:i, s:f, s:f, s:f}", "bits", (int)o->bits, "psi", o->psi, "decay", o->decay,
                     "eps", o->eps);
}

static void put_betas(json_t **optimizer, const struct drps_optim *o)
{
    drps_manifest_put(optimizer, "beta1", json_real((double)o->beta1));
    drps_manifest_put(optimizer, "beta2", json_real((double)o->beta2));
}

static json_t *plain_to_json(const struct drps_state *s)
{
    const struct drps_optim *o = &s->optim;
    json_t *optimizer = json_pack(
        "{s:s, s:f, s:f, s:f, s:f, s:f}", "name", drps_optim_name(o->kind), "lr", (double)o->lr,
        "l1", (double)o->l1, "l2", (double)o->l2, "eps", (double)o->eps, "beta", (double)o->beta);
    if (o->kind == DRPS_OPTIM_ADAM) put_betas(&optimizer, o);
    json_t *progress = json_pack("{s:o, s:o, s:o, s:f, s:o}", "epoch", count(s->epoch), "step",
                                 count(s->part.step), "samples", count(s->part.samples), "loss_sum",
                                 s->part.loss, "ns", count(s->part.ns));
    json_t *best = json_pack("{s:o, s:o, s:o}", "epoch", count(s->best_epoch), "content",
                             drps_manifest_hex(s->best_content), "loss",
                             isfinite(s->best_score) ? json_real(s->best_score) : json_null());
    return json_pack("{s:s, s:o, s:o, s:o, s:s, s:o, s:o, s:o, s:b, s:b, s:o, s:f, s:o, s:o, s:o}",
                     "plan", s->plan_id, "rows", count(s->rows), "row_bytes", count(s->row_bytes),
                     "optimizer", optimizer, "sync", drps_sched_mode_name(s->sync), "epochs",
                     count(s->epochs), "patience", count(s->patience), "staleness",
                     count(s->staleness), "local_steps", s->local_steps, "no_claim", s->no_claim,
                     "seed", count(s->seed), "init_scale", (double)s->init_scale, "progress",
                     progress, "best", best, "done", epochs_to_json(s));
}

/* The intercept's step that is due, where one is. */
static void put_intercept(json_t **j, const struct drps_intercept *due)
{
    if (!due->batches) return;
    drps_manifest_put(j, "intercept",
                      json_pack("{s:o, s:o, s:f}", "stratum", count(due->stratum), "batches",
                                count(due->batches), "gradient", due->gradient));
}

static void put_newton(json_t **j, const struct drps_state *s)
{
    json_t *optimizer = json_object_get(*j, "optimizer");
    if (json_object_set_new(optimizer, "pairs", json_integer(s->optim.pairs)) == 0 &&
        json_object_set_new(optimizer, "tolerance", json_real((double)s->optim.tolerance)) == 0)
        drps_manifest_put(j, "newton", drps_newton_to_json(&s->newton));
    else
        drps_manifest_put(j, "newton", NULL);
}

/* How steps are made and epochs judged, where it is not as usual. */
static void put_learning(json_t **j, const struct drps_state *s)
{
    if (s->batch_mean) drps_manifest_put(j, "batch_mean", json_true());
    if (s->lr_decay) drps_manifest_put(j, "lr_decay", json_string(drps_decay_name(s->lr_decay)));
    if (s->metric) drps_manifest_put(j, "metric", json_string(drps_metric_name(s->metric)));
}

/* Filters are there where a run has any, and so is what a quasi-Newton method goes on with. */
json_t *drps_state_to_json(const struct drps_state *s)
{
    json_t *j = plain_to_json(s);
    if (j) put_learning(&j, s);
    if (j) put_intercept(&j, &s->part.intercept);
    if (j) drps_waiting_put(&j, &s->wsp, s->lr_stale);
    if (j && s->push.on) drps_manifest_put(&j, "push", push_to_json(&s->push));
    if (j && s->pull.on) drps_manifest_put(&j, "pull", pull_to_json(&s->pull));
    if (j && drps_optim_is_newton(s->optim.kind)) put_newton(&j, s);
    if (j && s->pull_cached) drps_manifest_put(&j, "pull_cached", json_true());
    if (j && *s->changed) drps_manifest_put(&j, "changed", json_string(s->changed));
    return j;
}

/* ---- Reading ---- */

static int read_newton_options(const json_t *o, const char *path, struct drps_optim *out,
                               struct drps_err *err)
{
    int rc = drps_manifest_get_u32(o, "pairs", path, &out->pairs, err);
    if (rc == 0) rc = drps_manifest_get_float(o, "tolerance", path, &out->tolerance, err);
    const int least = out->kind == DRPS_OPTIM_LBFGS, most = least ? DRPS_OPTIM_PAIRS_MOST : 0;
    if (rc < 0 ||
        (out->pairs >= (uint32_t)least && out->pairs <= (uint32_t)most && out->tolerance > 0))
        return rc;
    return drps_err_set(err, DRPS_E_CORRUPT, "%s: %u pairs, tolerance %g", path, out->pairs,
                        (double)out->tolerance);
}

static int read_beta(const json_t *o, const char *key, const char *path, float *out,
                     struct drps_err *err)
{
    int rc = drps_manifest_get_float(o, key, path, out, err);
    if (rc < 0 || (*out > 0 && *out <= DRPS_OPTIM_BETAS_MOST)) return rc;
    return drps_err_set(err, DRPS_E_CORRUPT, "%s: \"%s\" is %g, which is not above 0 and below 1",
                        path, key, (double)*out);
}

static int read_optimizer(const json_t *j, const char *path, struct drps_optim *out,
                          struct drps_err *err)
{
    const json_t *o = json_object_get(j, "optimizer");
    const struct {
        const char *key;
        float *value;
    } rates[] = {{"lr", &out->lr},
                 {"l1", &out->l1},
                 {"l2", &out->l2},
                 {"eps", &out->eps},
                 {"beta", &out->beta}};
    char name[DRPS_TRAIN_NAME_BYTES];
    int rc = drps_manifest_get_text(o, "name", path, name, sizeof(name), err);
    if (rc == 0 && drps_optim_init(out, name, NULL) < 0)
        rc = drps_err_set(err, DRPS_E_CORRUPT, "%s: there is no optimizer '%s'", path, name);
    for (size_t i = 0; i < sizeof(rates) / sizeof(*rates) && rc == 0; i++) {
        rc = drps_manifest_get_float(o, rates[i].key, path, rates[i].value, err);
        if (rc == 0 && *rates[i].value < 0)
            rc = drps_err_set(err, DRPS_E_CORRUPT, "%s: \"%s\" is negative", path, rates[i].key);
    }
    if (rc == 0 && out->kind == DRPS_OPTIM_ADAM) {
        rc = read_beta(o, "beta1", path, &out->beta1, err);
        if (rc == 0) rc = read_beta(o, "beta2", path, &out->beta2, err);
    }
    return rc == 0 && drps_optim_is_newton(out->kind) ? read_newton_options(o, path, out, err) : rc;
}

static int read_sync(const json_t *j, const char *path, enum drps_sched_mode *out,
                     struct drps_err *err)
{
    char name[DRPS_TRAIN_NAME_BYTES];
    int rc = drps_manifest_get_text(j, "sync", path, name, sizeof(name), err);
#define IS(mode, text)                                                                             \
    if (rc == 0 && !strcmp(name, text)) {                                                          \
        *out = mode;                                                                               \
        return 0;                                                                                  \
    }
    DRPS_SCHED_MODES(IS)
#undef IS
    return rc < 0 ? rc
                  : drps_err_set(err, DRPS_E_CORRUPT, "%s: there is no synchronisation '%s'", path,
                                 name);
}

/* A number that is there if it is not 0. */
static int read_more(const json_t *j, const char *key, const char *path, uint32_t *out,
                     struct drps_err *err)
{
    return json_object_get(j, key) ? drps_manifest_get_u32(j, key, path, out, err) : 0;
}

static int are_bits(uint32_t bits)
{
    return !bits || bits == 8 || bits == 16 || bits == 32;
}

static int read_push(const json_t *push, const char *path, struct drps_push_options *out,
                     struct drps_err *err)
{
    const int any = json_is_null(json_object_get(push, "phi"));
    out->on = 1;
    out->phi = INFINITY;
    int rc = drps_manifest_get_u32(push, "bits", path, &out->bits, err);
    if (rc == 0 && !any) rc = drps_manifest_get_real(push, "phi", path, &out->phi, err);
    if (rc == 0) rc = drps_manifest_get_real(push, "decay", path, &out->decay, err);
    if (rc == 0) rc = drps_manifest_get_real(push, "chance", path, &out->chance, err);
    if (rc == 0) rc = drps_manifest_get_real(push, "top", path, &out->top, err);
    if (rc == 0) rc = read_more(push, "flush", path, &out->flush, err);
    if (rc == 0) rc = read_more(push, "whole_bits", path, &out->whole_bits, err);
    if (rc < 0) return rc;
    if (are_bits(out->bits) && are_bits(out->whole_bits) && out->phi >= 0 && out->decay >= 0 &&
        out->chance >= 0 && out->chance <= 1 && out->top >= 0 && out->top <= 1)
        return 0;
    return drps_err_set(err, DRPS_E_CORRUPT, "%s: filters of gradients that there are none of",
                        path);
}

static int read_pull(const json_t *pull, const char *path, struct drps_pull_options *out,
                     struct drps_err *err)
{
    out->on = 1;
    int rc = drps_manifest_get_u32(pull, "bits", path, &out->bits, err);
    if (rc == 0) rc = drps_manifest_get_real(pull, "psi", path, &out->psi, err);
    if (rc == 0) rc = drps_manifest_get_real(pull, "decay", path, &out->decay, err);
    if (rc == 0) rc = drps_manifest_get_real(pull, "eps", path, &out->eps, err);
    if (rc < 0) return rc;
    if (are_bits(out->bits) && out->psi >= 0 && out->decay >= 0 && out->eps >= 0) return 0;
    return drps_err_set(err, DRPS_E_CORRUPT, "%s: filters of parameters that there are none of",
                        path);
}

/* Members that may be missing, and are as usual then. */
static int read_learning(const json_t *j, const char *path, struct drps_state *out,
                         struct drps_err *err)
{
    char decay[DRPS_TRAIN_NAME_BYTES] = "", metric[DRPS_TRAIN_NAME_BYTES] = "";
    const int has_decay = json_object_get(j, "lr_decay") != NULL;
    const int has_metric = json_object_get(j, "metric") != NULL;
    int rc = has_decay ? drps_manifest_get_text(j, "lr_decay", path, decay, sizeof(decay), err) : 0;
    if (rc == 0 && has_metric)
        rc = drps_manifest_get_text(j, "metric", path, metric, sizeof(metric), err);
    out->batch_mean = json_is_true(json_object_get(j, "batch_mean"));
    if (rc < 0) return rc;
    if (has_decay && !drps_decay_find(decay, &out->lr_decay))
        return drps_err_set(err, DRPS_E_CORRUPT, "%s: there is no decay '%s' of rates", path,
                            decay);
    if (has_metric && !drps_metric_find(metric, &out->metric))
        return drps_err_set(err, DRPS_E_CORRUPT, "%s: there is no metric '%s'", path, metric);
    return 0;
}

static int read_options(const json_t *j, const char *path, struct drps_state *out,
                        struct drps_err *err)
{
    int rc = drps_manifest_get_text(j, "plan", path, out->plan_id, sizeof(out->plan_id), err);
    if (rc == 0) rc = drps_manifest_get_count(j, "rows", path, &out->rows, err);
    if (rc == 0) rc = drps_manifest_get_count(j, "row_bytes", path, &out->row_bytes, err);
    if (rc == 0) rc = read_optimizer(j, path, &out->optim, err);
    if (rc == 0) rc = read_sync(j, path, &out->sync, err);
    if (rc == 0) rc = drps_manifest_get_count(j, "epochs", path, &out->epochs, err);
    if (rc == 0) rc = drps_manifest_get_count(j, "patience", path, &out->patience, err);
    if (rc == 0) rc = drps_manifest_get_count(j, "staleness", path, &out->staleness, err);
    if (rc == 0) rc = drps_manifest_get_count(j, "seed", path, &out->seed, err);
    if (rc == 0) rc = drps_manifest_get_float(j, "init_scale", path, &out->init_scale, err);
    out->local_steps = json_is_true(json_object_get(j, "local_steps"));
    out->no_claim = json_is_true(json_object_get(j, "no_claim"));
    out->pull_cached = json_is_true(json_object_get(j, "pull_cached"));
    if (rc == 0) rc = read_learning(j, path, out, err);
    if (rc == 0) rc = drps_waiting_get(j, path, &out->wsp, &out->lr_stale, err);
    const json_t *push = json_object_get(j, "push"), *pull = json_object_get(j, "pull");
    if (rc == 0 && push) rc = read_push(push, path, &out->push, err);
    return rc == 0 && pull ? read_pull(pull, path, &out->pull, err) : rc;
}

static int read_intercept(const json_t *j, const char *path, struct drps_intercept *out,
                          struct drps_err *err)
{
    const json_t *due = json_object_get(j, "intercept");
    if (!due) return 0;
    int rc = drps_manifest_get_u32(due, "stratum", path, &out->stratum, err);
    if (rc == 0) rc = drps_manifest_get_u32(due, "batches", path, &out->batches, err);
    return rc < 0 ? rc : drps_manifest_get_real(due, "gradient", path, &out->gradient, err);
}

static int read_progress(const json_t *j, const char *path, struct drps_state *out,
                         struct drps_err *err)
{
    const json_t *p = json_object_get(j, "progress");
    int rc = drps_manifest_get_count(p, "epoch", path, &out->epoch, err);
    if (rc == 0) rc = drps_manifest_get_count(p, "step", path, &out->part.step, err);
    if (rc == 0) rc = drps_manifest_get_count(p, "samples", path, &out->part.samples, err);
    if (rc == 0) rc = drps_manifest_get_real(p, "loss_sum", path, &out->part.loss, err);
    if (rc == 0) rc = drps_manifest_get_count(p, "ns", path, &out->part.ns, err);
    if (rc == 0) rc = read_intercept(j, path, &out->part.intercept, err);
    if (rc < 0) return rc;
    const struct drps_bound bounds[] = {
        {"epoch", out->epoch, 1, EPOCHS_MOST, "what a run may have"}};
    return drps_manifest_check(bounds, 1, path, err);
}

static int read_best(const json_t *j, const char *path, struct drps_state *out,
                     struct drps_err *err)
{
    const json_t *b = json_object_get(j, "best");
    int rc = drps_manifest_get_count(b, "epoch", path, &out->best_epoch, err);
    if (rc == 0) rc = drps_manifest_get_hex(b, "content", path, &out->best_content, err);
    out->best_score = INFINITY;
    if (rc == 0 && !json_is_null(json_object_get(b, "loss")))
        rc = drps_manifest_get_real(b, "loss", path, &out->best_score, err);
    if (rc < 0) return rc;
    const struct drps_bound bounds[] = {
        {"epoch of the best loss", out->best_epoch, 0, out->epoch - 1, "the epochs that are done"}};
    return drps_manifest_check(bounds, 1, path, err);
}

static int read_epochs(const json_t *j, const char *path, struct drps_state *out,
                       struct drps_err *err)
{
    const json_t *list = json_object_get(j, "done");
    int rc = 0;
    if (json_array_size(list) != out->epoch - 1)
        return drps_err_set(err, DRPS_E_CORRUPT, "%s: results of %zu epochs, %llu are due", path,
                            json_array_size(list), (unsigned long long)(out->epoch - 1));
    out->done = calloc(out->epoch, sizeof(*out->done));
    if (!out->done) return drps_err_set(err, -ENOMEM, "no memory for the results of epochs");
    for (uint64_t i = 0; i + 1 < out->epoch && rc == 0; i++)
        rc = drps_epoch_from_json(json_array_get(list, i), path, &out->done[i], err);
    return rc;
}

int drps_state_from_json(const json_t *j, const char *path, struct drps_state *out,
                         struct drps_err *err)
{
    memset(out, 0, sizeof(*out));
    int rc = read_options(j, path, out, err);
    if (rc == 0) rc = read_progress(j, path, out, err);
    if (rc == 0) rc = read_best(j, path, out, err);
    if (rc == 0) rc = read_epochs(j, path, out, err);
    if (rc == 0 && json_object_get(j, "changed"))
        rc = drps_manifest_get_text(j, "changed", path, out->changed, sizeof(out->changed), err);
    if (rc == 0 && drps_optim_is_newton(out->optim.kind))
        rc = drps_newton_from_json(json_object_get(j, "newton"), path, &out->optim, &out->newton,
                                   err);
    if (rc == 0 && drps_optim_is_newton(out->optim.kind) && out->newton.pass != out->epoch)
        rc = drps_err_set(err, DRPS_E_CORRUPT, "%s: pass %llu in epoch %llu", path,
                          (unsigned long long)out->newton.pass, (unsigned long long)out->epoch);
    if (rc < 0) drps_state_destroy(out);
    return rc;
}

void drps_state_destroy(struct drps_state *s)
{
    free(s->done);
    memset(s, 0, sizeof(*s));
}
