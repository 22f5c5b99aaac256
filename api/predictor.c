/* A model in use: what engine/predict/ serves, as programs see it. */
#include "api/predictor.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "api/report/drps_json.h"
#include "api/watch.h"

enum { EXPLAIN_USUAL = 10 };

int drps_predictor_open(const char *model, uint64_t memory_bytes, struct drps_predictor **out,
                        struct drps_err *err)
{
    struct drps_err own = DRPS_ERR_INIT;
    err = watch_err(err, &own);
    if (out) *out = NULL;
    if (!out || !model)
        return drps_err_set(err, DRPS_E_CONFIG, "a model's folder, and a place for it, are needed");
    struct drps_predictor *p = calloc(1, sizeof(*p));
    if (!p) return drps_err_set(err, -ENOMEM, "no memory to open %s", model);
    p->has_lock = pthread_mutex_init(&p->lock, NULL) == 0;
    int rc = p->has_lock ? drps_serving_open(model, memory_bytes, &p->serving, err)
                         : drps_err_set(err, -ENOMEM, "no memory to open %s", model);
    if (rc == 0) rc = drps_json_text(json_deep_copy(drps_serving_json(p->serving)), &p->json, err);
    if (rc < 0) {
        drps_predictor_close(p);
        return rc;
    }
    *out = p;
    return 0;
}

void drps_predictor_close(struct drps_predictor *p)
{
    if (!p) return;
    drps_serving_close(p->serving);
    if (p->has_lock) (void)pthread_mutex_destroy(&p->lock);
    predictor_items_free(&p->items);
    free(p->json);
    free(p);
}

const char *drps_predictor_json(const struct drps_predictor *p)
{
    return p ? p->json : NULL;
}

size_t drps_predictor_outputs(const struct drps_predictor *p)
{
    return p ? drps_serving_outputs(p->serving) : 0;
}

const char *drps_predictor_class(const struct drps_predictor *p, size_t i)
{
    const struct drps_classes *classes = p ? drps_serving_info(p->serving)->classes : NULL;
    return classes && i < drps_classes_count(classes) ? drps_classes_name(classes, i) : NULL;
}

uint64_t drps_predictor_reads(const struct drps_predictor *p, uint64_t *bytes_out)
{
    if (bytes_out) *bytes_out = 0;
    return p ? drps_serving_reads(p->serving, bytes_out) : 0;
}

/* ---- Scores ---- */

static int refuse_nothing(struct drps_err *err)
{
    return drps_err_set(err, DRPS_E_CONFIG,
                        "a predictor, samples and a place for the result are needed");
}

static int check_what(enum drps_score what, struct drps_err *err)
{
    if (what == DRPS_SCORE_USUAL || what == DRPS_SCORE_RAW) return 0;
    return drps_err_set(err, DRPS_E_CONFIG, "there is no score of kind %d", (int)what);
}

int drps_predictor_score(struct drps_predictor *p, const struct drps_matrix *m,
                         enum drps_score what, double *scores, struct drps_err *err)
{
    size_t n;
    if (!p || !m || (!scores && m->samples)) return refuse_nothing(err);
    int rc = check_what(what, err);
    if (rc < 0) return rc;
    const struct drps_serving_input in = {.matrix = m};
    return drps_serving_score(p->serving, &in, what == DRPS_SCORE_RAW, scores, m->samples, &n, err);
}

int drps_predictor_score_text(struct drps_predictor *p, const char *text, size_t bytes,
                              enum drps_score what, double *scores, size_t most, size_t *n_out,
                              struct drps_err *err)
{
    size_t n = 0;
    if (n_out) *n_out = 0;
    if (!p || (!text && bytes) || (!scores && most)) return refuse_nothing(err);
    int rc = check_what(what, err);
    if (rc < 0) return rc;
    const struct drps_serving_input in = {.text = text, .bytes = bytes};
    double none;
    rc = drps_serving_score(p->serving, &in, what == DRPS_SCORE_RAW, scores ? scores : &none, most,
                            &n, err);
    if (n_out) *n_out = rc < 0 ? 0 : n;
    return rc;
}

static int explain(struct drps_predictor *p, const struct drps_serving_input *in, size_t most,
                   char **json_out, struct drps_err *err)
{
    struct drps_err own = DRPS_ERR_INIT;
    return drps_serving_explain(p->serving, in, most ? most : EXPLAIN_USUAL, json_out,
                                watch_err(err, &own));
}

int drps_predictor_explain(struct drps_predictor *p, const struct drps_matrix *m, size_t most,
                           char **json_out, struct drps_err *err)
{
    if (json_out) *json_out = NULL;
    if (!p || !m || !json_out) return refuse_nothing(err);
    return explain(p, &(struct drps_serving_input){.matrix = m}, most, json_out, err);
}

int drps_predictor_explain_text(struct drps_predictor *p, const char *text, size_t bytes,
                                size_t most, char **json_out, struct drps_err *err)
{
    if (json_out) *json_out = NULL;
    if (!p || (!text && bytes) || !json_out) return refuse_nothing(err);
    return explain(p, &(struct drps_serving_input){.text = text, .bytes = bytes}, most, json_out,
                   err);
}

/* ---- Rows ---- */

struct visit {
    drps_row_visitor of_program;
    void *ctx;
    size_t dim;
};

static int visit_row(void *ctx, const struct drps_readout_row *row, struct drps_err *err)
{
    const struct visit *v = ctx;
    const struct drps_row seen = {.table = row->table->name,
                                  .name = row->name,
                                  .name_bytes = row->name_bytes,
                                  .params = row->params,
                                  .dim = v->dim};
    (void)err; /* what the program returns is no failure */
    return v->of_program(v->ctx, &seen);
}

int drps_predictor_rows(struct drps_predictor *p, drps_row_visitor visit, void *ctx,
                        struct drps_err *err)
{
    if (!p || !visit) return refuse_nothing(err);
    struct visit v = {visit, ctx, drps_serving_info(p->serving)->model.dim};
    return drps_serving_rows(p->serving, visit_row, &v, err);
}

int drps_predictor_row(struct drps_predictor *p, const char *name, float *params, size_t most,
                       size_t *dim_out, struct drps_err *err)
{
    if (dim_out) *dim_out = 0;
    if (!p || !name || (most && !params)) return refuse_nothing(err);
    const size_t dim = drps_serving_info(p->serving)->model.dim;
    if (dim_out) *dim_out = dim;
    if (most && most < dim)
        return drps_err_set(err, -ERANGE, "a row has %zu parameters, and there is room for %zu",
                            dim, most);
    float *own = malloc(dim * sizeof(*own));
    if (!own) return drps_err_set(err, -ENOMEM, "no memory for a row");
    int rc = drps_serving_row(p->serving, name, own, err);
    if (rc == 0 && most) memcpy(params, own, dim * sizeof(*own));
    free(own);
    return rc;
}
