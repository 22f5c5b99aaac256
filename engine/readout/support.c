/* Scores the batches of the plan as training does, and counts entries of the rows that are asked
 * for. */
#include "engine/readout/drps_support.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"
#include "base/drps_find.h"
#include "index/walk/drps_walk.h"

struct measure {
    struct drps_readout *r;
    const struct drps_model *model;
    const struct drps_top_choice *choice;
    struct drps_walk walk; /* own */
    float *params, *scores;
    void *scratch;
    double *bends;    /* own: [outputs] second derivatives of a sample */
    uint32_t *wanted; /* own: [wanted_n] rows, increasing; the intercept, where there is one */
    size_t wanted_n;
    uint32_t *place;        /* own: [max_batch_rows] 1 + place in `wanted`; 0: it is not */
    uint64_t *counts;       /* own: [wanted_n] */
    double *sums;           /* own: [wanted_n][lists] of x^2 times the derivative */
    double squares, weight; /* of residuals; of samples */
};

uint64_t drps_support_memory(const struct drps_plan_info *plan, const struct drps_model *model,
                             const struct drps_top_choice *choice)
{
    const uint64_t rows = choice->lists * (uint64_t)choice->most + 1;
    return drps_walk_memory(plan) +
           plan->max_batch_rows * (model->dim * sizeof(float) + sizeof(uint32_t)) +
           plan->max_batch_samples * model->outputs * sizeof(float) +
           drps_model_scratch_bytes(model, (size_t)plan->max_batch_samples,
                                    (size_t)plan->max_batch_rows) +
           rows * (sizeof(uint32_t) + sizeof(uint64_t) + choice->lists * sizeof(double)) +
           model->outputs * sizeof(double);
}

static int by_number(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

static void list_wanted(struct measure *m, const struct drps_top_weights *w)
{
    size_t n = 0, kept = 0;
    if (m->model->has_bias) m->wanted[n++] = 0;
    for (size_t k = 0; k < w->lists; k++)
        for (size_t i = 0; i < w->n[k]; i++)
            m->wanted[n++] = w->of[k * w->most + i].row;
    qsort(m->wanted, n, sizeof(*m->wanted), by_number);
    for (size_t i = 0; i < n; i++)
        if (!kept || m->wanted[kept - 1] != m->wanted[i]) m->wanted[kept++] = m->wanted[i];
    m->wanted_n = kept;
}

/* Returns 1 + the place of a row in what is wanted, or 0. */
static uint32_t place_of(const struct measure *m, uint32_t row)
{
    const size_t at = drps_count_below(m->wanted, m->wanted_n, row);
    return at < m->wanted_n && m->wanted[at] == row ? (uint32_t)at + 1 : 0;
}

static int begin(struct measure *m, const struct drps_plan *plan, const struct drps_top_weights *w,
                 struct drps_err *err)
{
    const struct drps_plan_info *info = &plan->info;
    const size_t room = w->lists * w->most + 1, rows = (size_t)info->max_batch_rows;
    if (strcmp(info->id, m->r->info->plan_id) != 0 || info->rows != m->r->info->rows ||
        info->dim != m->model->dim)
        return drps_err_set(err, DRPS_E_CONFIG, "the model is not of %s: %s", plan->dir,
                            strcmp(m->r->info->plan_id, DRPS_MODEL_IMPORTED) == 0
                                ? "it was imported, and has no plan"
                                : "it was trained from another plan, whose samples are others");
    if (drps_model_ranks(m->model))
        return drps_err_set(
            err, DRPS_E_CONFIG,
            "the samples of algorithm %s are choices with items drawn against them: "
            "neither counts nor errors are known",
            drps_algo_name(m->model->algo));
    if (m->model->layers.n)
        return drps_err_set(err, DRPS_E_CONFIG,
                            "a net's score is no sum of its features' weights, so that their "
                            "errors are not known");
    int rc = drps_walk_open(&m->walk, plan, err);
    if (rc < 0) return rc;
    m->params = drps_array_new(rows * m->model->dim, sizeof(*m->params));
    m->scores =
        drps_array_new((size_t)info->max_batch_samples * m->model->outputs, sizeof(*m->scores));
    m->scratch = drps_array_new(
        drps_model_scratch_bytes(m->model, (size_t)info->max_batch_samples, rows), 1);
    m->bends = drps_array_new(m->model->outputs, sizeof(*m->bends));
    m->wanted = drps_array_new(room, sizeof(*m->wanted));
    m->place = drps_array_new(rows, sizeof(*m->place));
    m->counts = calloc(room, sizeof(*m->counts));
    m->sums = calloc(room * w->lists, sizeof(*m->sums));
    if (!m->params || !m->scores || !m->scratch || !m->bends || !m->wanted || !m->place ||
        !m->counts || !m->sums)
        return drps_err_set(err, -ENOMEM, "no memory to count samples of %zu features", room);
    list_wanted(m, w);
    return 0;
}

static void end(struct measure *m)
{
    drps_walk_close(&m->walk);
    free(m->params);
    free(m->scores);
    free(m->scratch);
    free(m->bends);
    free(m->wanted);
    free(m->place);
    free(m->counts);
    free(m->sums);
}

/* Computes the second derivatives of the loss by the scores of a sample. */
static void bend(struct measure *m, const float *scores, float label, double weight)
{
    const size_t n = m->model->outputs;
    if (m->model->loss == DRPS_LOSS_SOFTMAX) {
        drps_softmax_probabilities(scores, n, m->bends);
        for (size_t c = 0; c < n; c++)
            m->bends[c] *= 1 - m->bends[c];
        return;
    }
    for (size_t c = 0; c < n; c++)
        m->bends[c] = (double)NAN;
    if (m->model->loss == DRPS_LOSS_LOGISTIC) {
        const double p = 1 / (1 + exp(-(double)scores[0]));
        m->bends[0] = p * (1 - p);
    } else if (m->model->loss == DRPS_LOSS_SQUARED) {
        const double residual = (double)scores[0] - (double)label;
        m->bends[0] = 1; /* divided by the mean square in the end */
        m->squares += weight * residual * residual;
        m->weight += weight;
    }
}

static void add(struct measure *m, uint32_t place, double x, double weight)
{
    double *sums = m->sums + (place - 1) * (size_t)m->choice->lists;
    m->counts[place - 1]++;
    for (size_t k = 0; k < m->choice->lists; k++)
        sums[k] += weight * x * x * m->bends[m->choice->column + k];
}

static void add_batch(struct measure *m, const struct drps_batch *b, const uint32_t *rows)
{
    for (size_t i = 0; i < b->rows; i++)
        m->place[i] = place_of(m, rows[i]);
    for (size_t s = 0; s < b->samples; s++) {
        const double weight = b->weights ? (double)b->weights[s] : 1;
        bend(m, m->scores + s * m->model->outputs, b->labels[s], weight);
        if (m->model->has_bias) add(m, place_of(m, 0), 1, weight);
        const size_t last = drps_batch_start(b, s + 1);
        for (size_t j = drps_batch_start(b, s); j < last; j++) {
            const uint32_t place = m->place[drps_batch_local(b, j)];
            if (place) add(m, place, (double)drps_batch_value(b, j), weight);
        }
    }
}

static int walk(struct measure *m, const struct drps_plan_info *info, struct drps_err *err)
{
    uint64_t samples = 0;
    int rc = 0;
    for (uint64_t step = 0; step < info->batches && rc == 0; step++) {
        const uint32_t *rows;
        struct drps_batch b;
        rc = drps_walk_read(&m->walk, step, &b, &rows, err);
        if (rc == 0) rc = drps_modeldir_gather(m->r->md, rows, b.rows, m->params, err);
        if (rc < 0) return rc;
        drps_model_predict(m->model, &b, 0, b.samples, m->params, m->scores, m->scratch);
        add_batch(m, &b, rows);
        samples += b.samples;
    }
    if (rc == 0 && samples != info->samples)
        return drps_err_set(err, DRPS_E_CORRUPT,
                            "%s: batches have %" PRIu64 " samples, plan.json says %" PRIu64,
                            m->walk.plan->dir, samples, info->samples);
    return rc;
}

/* Returns the standard error of weight k of the row at `place`; NaN where values were divided by
 * their sample's length, which is not known here. */
static double error_of(const struct measure *m, uint32_t place, size_t k)
{
    double information = m->sums[(place - 1) * (size_t)m->choice->lists + k];
    if (m->model->loss == DRPS_LOSS_SQUARED) information /= m->squares / m->weight;
    return information > 0 && !m->model->normalized ? 1 / sqrt(information) : (double)NAN;
}

static int fill(const struct measure *m, struct drps_top_weights *w, struct drps_support *out,
                struct drps_err *err)
{
    out->errors = drps_array_new(w->lists, sizeof(*out->errors));
    if (!out->errors) return drps_err_set(err, -ENOMEM, "no memory for errors of weights");
    out->samples = m->walk.plan->info.samples;
    for (size_t k = 0; k < w->lists; k++) {
        out->errors[k] = m->model->has_bias ? error_of(m, place_of(m, 0), k) : (double)NAN;
        for (size_t i = 0; i < w->n[k]; i++) {
            struct drps_top_weight *of = &w->of[k * w->most + i];
            const uint32_t place = place_of(m, of->row);
            of->samples = m->counts[place - 1];
            of->error = error_of(m, place, k);
        }
    }
    return 0;
}

int drps_support_measure(struct drps_readout *r, const struct drps_plan *plan,
                         const struct drps_top_choice *choice, struct drps_top_weights *w,
                         struct drps_support *out, struct drps_err *err)
{
    struct measure m = {.r = r, .model = &r->info->model, .choice = choice};
    *out = (struct drps_support){.samples = 0};
    int rc = begin(&m, plan, w, err);
    if (rc == 0) rc = walk(&m, &plan->info, err);
    if (rc == 0) rc = fill(&m, w, out, err);
    end(&m);
    return rc;
}
