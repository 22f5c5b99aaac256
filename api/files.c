/* Scoring and recommending into files, and what a folder is. */
#include "api/drps.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "api/report/drps_files_json.h"
#include "api/report/drps_json.h"
#include "api/settings.h"
#include "api/watch.h"
#include "engine/publish/drps_modeldir.h"
#include "index/forecast/drps_plan_forecast.h"

static int refuse_stdout(const char *output, struct drps_err *err)
{
    if (!output || strcmp(output, "-") != 0) return 0;
    return drps_err_set(err, DRPS_E_CONFIG,
                        "the output needs a file: standard output is the program's own");
}

/* ---- Prediction ---- */

static void tell_scored(void *ctx, const struct drps_predict_progress *s)
{
    const int of_bytes = s->input_bytes > 0; /* nobody knows yet how many samples there are */
    struct drps_watch_progress p = {.phase = "predict",
                                    .unit = of_bytes ? "bytes" : "samples",
                                    .done = of_bytes ? s->read_bytes : s->samples,
                                    .total = s->input_bytes,
                                    .samples_per_s = (double)NAN,
                                    .train_loss = (double)NAN};
    watch_progress(ctx, &p);
}

static int check_predict(struct drps_predict_settings *o, const char *const *files, size_t n,
                         struct drps_err *err)
{
    struct drps_err bad = DRPS_ERR_INIT;
    struct drps_values v = drps_settings_values(&bad);
    const struct drps_predict_options *p = &o->predict;
    for (size_t i = 0; i < n; i++) {
        if (!files || !files[i]) drps_value_bad(&v, "file %zu has no path", i + 1);
        if (!bad.code) drps_value_add(&v, &o->inputs, files[i]);
    }
    if (!p->output && !p->calibrate && !p->curve_bins)
        drps_value_bad(&v, "the output needs a file, unless a {calibration} is measured or made");
    drps_predict_settings_check(o, &v);
    drps_predict_settings_complete(o);
    return bad.code ? drps_err_set(err, bad.code, "%s", bad.text) : 0;
}

int drps_predict_files(const struct drps_settings *s, const char *model, const char *const *files,
                       size_t n, const char *output, const struct drps_watch *watch,
                       char **json_out, struct drps_err *err)
{
    struct drps_err own = DRPS_ERR_INIT;
    struct drps_predict_settings o;
    struct drps_predict_result result = {0};
    struct watch w;
    err = watch_err(err, &own);
    if (json_out) *json_out = NULL;
    if (!model) return drps_err_set(err, DRPS_E_CONFIG, "no model: name its folder");
    watch_begin(&w, watch);
    int rc = drps_settings_of_predict(s, &o, err);
    o.predict.model = model;
    o.predict.output = output;
    o.predict.stop = w.stop;
    o.predict.log = &w.log;
    o.predict.on_progress = tell_scored;
    o.predict.ctx = &w;
    if (rc == 0) rc = refuse_stdout(output, err);
    if (rc == 0) rc = check_predict(&o, files, n, err);
    if (rc == 0) rc = drps_predict_run(drps_io_os(), &o.predict, &result, err);
    if (rc == 0 && json_out)
        rc = drps_json_text(drps_predict_json(&o.predict, &result), json_out, err);
    free(result.curve.bins);
    free(result.before.bins);
    drps_predict_settings_free(&o);
    return rc;
}

/* ---- Recommendation ---- */

static void tell_recommended(void *ctx, const struct drps_recommend_progress *r)
{
    static const char *const phases[] = {[DRPS_RECOMMEND_NAMES] = "names",
                                         [DRPS_RECOMMEND_SEEN] = "seen",
                                         [DRPS_RECOMMEND_SCORES] = "scores"};
    static const char *const units[] = {[DRPS_RECOMMEND_NAMES] = "",
                                        [DRPS_RECOMMEND_SEEN] = "ratings",
                                        [DRPS_RECOMMEND_SCORES] = "pairs"};
    struct drps_watch_progress p = {.phase = phases[r->phase],
                                    .unit = units[r->phase],
                                    .done = r->done,
                                    .total = r->total,
                                    .samples_per_s = (double)NAN,
                                    .train_loss = (double)NAN};
    watch_progress(ctx, &p);
}

int drps_recommend_files(const struct drps_settings *s, const char *model, const char *output,
                         const struct drps_watch *watch, char **json_out, struct drps_err *err)
{
    struct drps_err own = DRPS_ERR_INIT, bad = DRPS_ERR_INIT;
    struct drps_values v = drps_settings_values(&bad);
    struct drps_recommend_settings o;
    struct drps_recommend_result result;
    struct watch w;
    err = watch_err(err, &own);
    if (json_out) *json_out = NULL;
    if (!model) return drps_err_set(err, DRPS_E_CONFIG, "no model: name its folder");
    watch_begin(&w, watch);
    int rc = drps_settings_of_recommend(s, &o, err);
    o.recommend.model = model;
    o.recommend.output = output;
    drps_recommend_settings_check(&o, &v);
    if (!output && !o.test.n)
        drps_value_bad(&v, "the output needs a file, unless a {test} is evaluated");
    drps_recommend_settings_complete(&o);
    if (!output) o.recommend.output = "-"; /* where no line is written */
    o.recommend.stop = w.stop;
    o.recommend.log = &w.log;
    o.recommend.on_progress = tell_recommended;
    o.recommend.ctx = &w;
    if (rc == 0) rc = refuse_stdout(output, err);
    if (rc == 0 && bad.code) rc = drps_err_set(err, bad.code, "%s", bad.text);
    if (rc == 0) rc = drps_recommend_run(drps_io_os(), &o.recommend, &result, err);
    if (rc == 0 && json_out)
        rc = drps_json_text(drps_recommend_json(&o.recommend, &result), json_out, err);
    drps_recommend_settings_free(&o);
    return rc;
}

/* ---- What a folder is ---- */

static int describe_plan(const char *path, char **json_out, struct drps_err *err)
{
    struct drps_plan *plan;
    int rc = drps_plan_open(drps_io_os(), path, &plan, err);
    if (rc == 0) rc = drps_plan_complete_forecast(plan, NULL, err);
    if (rc == 0) rc = drps_json_text(json_incref(plan->json), json_out, err);
    drps_plan_close(plan);
    return rc;
}

int drps_describe(const char *plan_or_model, char **json_out, struct drps_err *err)
{
    struct drps_err own = DRPS_ERR_INIT, none = DRPS_ERR_INIT;
    struct drps_modeldir *md;
    err = watch_err(err, &own);
    if (json_out) *json_out = NULL;
    if (!plan_or_model || !json_out)
        return drps_err_set(err, DRPS_E_CONFIG,
                            "a folder and a place for its description are needed");
    int rc = drps_modeldir_open(drps_io_os(), plan_or_model, 0, &md, &none);
    if (rc == 0) rc = drps_json_text(json_deep_copy(drps_modeldir_json(md)), json_out, err);
    drps_modeldir_close(md);
    if (none.code && rc != DRPS_E_NOT_FOUND) return drps_err_set(err, rc, "%s", none.text);
    if (rc != DRPS_E_NOT_FOUND) return rc;
    none = (struct drps_err)DRPS_ERR_INIT;
    rc = describe_plan(plan_or_model, json_out, &none);
    if (rc == DRPS_E_NOT_FOUND)
        return drps_err_set(err, rc, "%s is neither a plan nor a model", plan_or_model);
    return rc < 0 ? drps_err_set(err, rc, "%s", none.text) : 0;
}

/* ---- The library ---- */

const char *drps_version(void)
{
    return DRPS_VERSION;
}

void drps_free(char *text)
{
    free(text);
}
