/* What predicting and recommending into files came to, as JSON. */
#include "api/report/drps_files_json.h"

#include <math.h>

#include "api/report/drps_json.h"
#include "base/drps_size.h"
#include "base/folder/drps_manifest.h"

/* ---- Prediction ---- */

static json_t *curve_to_json(const struct drps_calibration_curve *c)
{
    json_t *j = json_object(), *bins = json_array();
    for (size_t i = 0; i < c->n; i++) {
        const struct drps_calibration_bin *b = &c->bins[i];
        drps_manifest_append(&bins, json_pack("{s:f, s:f, s:f, s:f, s:f}", "from", b->least, "to",
                                              b->most, "predicted", b->predicted, "observed",
                                              b->observed, "samples", b->weight));
    }
    drps_manifest_put(&j, "error", drps_json_real(c->error));
    drps_manifest_put(&j, "log_loss", drps_json_real(c->loss));
    drps_manifest_put(&j, "bins", bins);
    return j;
}

json_t *drps_predict_json(const struct drps_predict_options *o, const struct drps_predict_result *r)
{
    json_t *j = json_object();
    drps_manifest_put(&j, "test_samples", drps_json_count(r->samples));
    drps_manifest_put(&j, "test_nnz", drps_json_count(r->nnz));
    drps_manifest_put(&j, "test_unseen", drps_json_count(r->unseen));
    drps_manifest_put(&j, "skipped_lines", drps_json_count(r->skipped_lines));
    drps_manifest_put(&j, "blank_lines", drps_json_count(r->blank_lines));
    drps_manifest_put(&j, "seconds", drps_json_real(r->seconds));
    drps_manifest_put(&j, "peak_rss_bytes", drps_json_count(drps_memory_peak()));
    if (o->metrics) {
        drps_manifest_put(&j, "test_loss", drps_json_real(r->quality.loss));
        if (!isnan(r->perplexity))
            drps_manifest_put(&j, "test_perplexity", drps_json_real(r->perplexity));
        drps_manifest_put(&j, "test_auc", drps_json_real(r->quality.auc));
        drps_manifest_put(&j, "test_accuracy", drps_json_real(r->quality.accuracy));
        if (r->quality.unknown)
            drps_manifest_put(&j, "test_unknown_labels", drps_json_count(r->quality.unknown));
        drps_manifest_put(&j, "test_rmse", drps_json_real(r->quality.rmse));
    }
    if (r->before.n) drps_manifest_put(&j, "before_calibration", curve_to_json(&r->before));
    if (r->curve.n) drps_manifest_put(&j, "calibration", curve_to_json(&r->curve));
    return j;
}

/* ---- Recommendation ---- */

static json_t *test_json(const struct drps_recommend_options *o, const struct drps_evaluation *e)
{
    json_t *j = json_object();
    drps_manifest_put(&j, "n", drps_json_count(o->n ? o->n : DRPS_RECOMMEND_DEFAULT));
    drps_manifest_put(&j, "users", drps_json_count(e->users));
    drps_manifest_put(&j, "items", drps_json_count(e->items));
    drps_manifest_put(&j, "missing", drps_json_count(e->missing));
    drps_manifest_put(&j, "precision", drps_json_real(e->precision));
    drps_manifest_put(&j, "recall", drps_json_real(e->recall));
    drps_manifest_put(&j, "ndcg", drps_json_real(e->ndcg));
    drps_manifest_put(&j, "map", drps_json_real(e->map));
    return j;
}

json_t *drps_recommend_json(const struct drps_recommend_options *o,
                            const struct drps_recommend_result *r)
{
    json_t *j = json_object();
    drps_manifest_put(&j, "queries", drps_json_count(r->queries));
    drps_manifest_put(&j, "items", drps_json_count(r->items));
    drps_manifest_put(&j, "recommended", drps_json_count(r->recommended));
    drps_manifest_put(&j, "few", drps_json_count(r->few));
    drps_manifest_put(&j, "unknown_names", drps_json_count(r->unknown_names));
    drps_manifest_put(&j, "ratings", drps_json_count(r->ratings));
    drps_manifest_put(&j, "unknown_ratings", drps_json_count(r->unknown_ratings));
    drps_manifest_put(&j, "skipped_lines", drps_json_count(r->skipped_lines));
    drps_manifest_put(&j, "item_passes", drps_json_count(r->item_passes));
    drps_manifest_put(&j, "item_bytes", drps_json_count(r->item_bytes));
    drps_manifest_put(&j, "query_bytes", drps_json_count(r->query_bytes));
    if (o->test_n) drps_manifest_put(&j, "test", test_json(o, &r->test));
    drps_manifest_put(&j, "exact_scores", drps_json_count(r->exact));
    drps_manifest_put(&j, "products", json_string(r->products ? r->products : ""));
    drps_manifest_put(&j, "product_seconds", drps_json_real(r->product_seconds));
    drps_manifest_put(&j, "seconds", drps_json_real(r->seconds));
    drps_manifest_put(&j, "peak_rss_bytes", drps_json_count(drps_memory_peak()));
    return j;
}
