/* Weights of waiting, and the rate for stale gradients, as JSON. */
#include "engine/checkpoint/drps_waiting_json.h"

#include "base/folder/drps_manifest.h"
#include "engine/drps_engine.h"

/* One weight of waiting: where it is, and what it may be. */
struct weight {
    const char *key;
    int *has;
    double *value;
    int is_share; /* above 0, at most 1; else at least 0 */
};
enum { WEIGHTS = 3 };

static void list_weights(struct drps_sched_tuning *t, struct weight out[WEIGHTS])
{
    const struct weight all[WEIGHTS] = {{"lambda", &t->has_lambda, &t->lambda, 0},
                                        {"ema", &t->has_ema, &t->ema, 1},
                                        {"patience", &t->has_patience, &t->patience, 0}};
    for (size_t i = 0; i < WEIGHTS; i++)
        out[i] = all[i];
}

static json_t *weights_to_json(const struct drps_sched_tuning *tuning)
{
    struct drps_sched_tuning t = *tuning;
    struct weight all[WEIGHTS];
    json_t *j = json_object();
    list_weights(&t, all);
    for (size_t i = 0; i < WEIGHTS; i++)
        if (*all[i].has) drps_manifest_put(&j, all[i].key, json_real(*all[i].value));
    return j;
}

void drps_waiting_put(json_t **j, const struct drps_sched_tuning *wsp, enum drps_stale stale)
{
    if (drps_sched_is_tuned(wsp)) drps_manifest_put(j, "wsp", weights_to_json(wsp));
    if (stale) drps_manifest_put(j, "lr_stale", json_string(drps_stale_name(stale)));
}

static int read_weight(const json_t *wsp, const char *path, const struct weight *w,
                       struct drps_err *err)
{
    if (!json_object_get(wsp, w->key)) return 0;
    int rc = drps_manifest_get_real(wsp, w->key, path, w->value, err);
    if (rc < 0) return rc;
    *w->has = 1;
    if (w->is_share ? *w->value > 0 && *w->value <= 1 : *w->value >= 0) return 0;
    return drps_err_set(err, DRPS_E_CORRUPT, "%s: \"%s\" of wsp is %g", path, w->key, *w->value);
}

static int read_stale(const json_t *j, const char *path, enum drps_stale *out, struct drps_err *err)
{
    char name[DRPS_TRAIN_NAME_BYTES];
    if (!json_object_get(j, "lr_stale")) return 0;
    int rc = drps_manifest_get_text(j, "lr_stale", path, name, sizeof(name), err);
    if (rc < 0 || drps_stale_find(name, out)) return rc;
    return drps_err_set(err, DRPS_E_CORRUPT, "%s: there is no rate '%s' for stale gradients", path,
                        name);
}

int drps_waiting_get(const json_t *j, const char *path, struct drps_sched_tuning *wsp_out,
                     enum drps_stale *stale_out, struct drps_err *err)
{
    struct weight all[WEIGHTS];
    const json_t *wsp = json_object_get(j, "wsp");
    int rc = 0;
    *wsp_out = (struct drps_sched_tuning){0};
    *stale_out = DRPS_STALE_SAME;
    list_weights(wsp_out, all);
    for (size_t i = 0; wsp && i < WEIGHTS && rc == 0; i++)
        rc = read_weight(wsp, path, &all[i], err);
    return rc == 0 ? read_stale(j, path, stale_out, err) : rc;
}
