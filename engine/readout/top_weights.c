/* Fills a heap for each list while rows are read, and then looks up the names of the rows that are
 * left. */
#include "engine/readout/drps_top_weights.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"

struct search {
    const struct drps_readout *r;
    const struct drps_top_choice *choice;
    struct drps_top_weights *out;
    struct drps_best *heaps;         /* own: [lists][most] */
    struct drps_top_weight **by_row; /* own: [found], sorted by row */
    uint32_t *rows;                  /* own: [found] of these, each once */
    size_t found, rows_n;
    size_t next; /* of by_row, which has no name yet */
};

static int no_memory(const struct drps_top_choice *c, struct drps_err *err)
{
    return drps_err_set(err, -ENOMEM, "no memory for %zu weights of %u lists", c->most, c->lists);
}

/* ---- Alike ---- */

static double dot(const float *u, const float *v, size_t n)
{
    double sum = 0;
    for (size_t k = 0; k < n; k++)
        sum += (double)u[k] * (double)v[k];
    return sum;
}

/* Returns the cosine of two rows' factors; NaN: one has none. */
static double cosine(const struct drps_model *m, const float *a, const float *b)
{
    const size_t n = m->dim - 1;
    return dot(a + 1, b + 1, n) / sqrt(dot(a + 1, a + 1, n) * dot(b + 1, b + 1, n));
}

static void offer_alike(struct search *s, uint32_t row, const float *params)
{
    const struct drps_top_choice *c = s->choice;
    const double score = cosine(&s->r->info->model, params, c->like);
    if (row != c->like_row && isfinite(score))
        (void)drps_best_offer(s->heaps, &s->out->n[0], c->most, (struct drps_best){score, row});
}

/* ---- The largest ---- */

static int offer_rows(void *ctx, uint64_t first, size_t n, const float *params,
                      struct drps_err *err)
{
    struct search *s = ctx;
    const struct drps_top_choice *c = s->choice;
    const struct drps_model *m = &s->r->info->model;
    (void)err;
    for (size_t i = 0; i < n; i++) {
        const float *row = params + i * m->dim;
        if (first + i < drps_model_common_rows(m) || drps_readout_is_sample(s->r, first + i))
            continue;
        if (c->like) {
            offer_alike(s, (uint32_t)(first + i), row);
            continue;
        }
        for (uint32_t k = 0; k < c->lists; k++) {
            const double v = (double)row[c->column + k], score = c->either_sign ? fabs(v) : v;
            if (score > 0)
                (void)drps_best_offer(s->heaps + k * c->most, &s->out->n[k], c->most,
                                      (struct drps_best){score, (uint32_t)(first + i)});
        }
    }
    return 0;
}

/* ---- Their names ---- */

static int by_row(const void *a, const void *b)
{
    const struct drps_top_weight *const *x = a, *const *y = b;
    return (*x)->row < (*y)->row ? -1 : (*x)->row > (*y)->row;
}

static int list_rows(struct search *s, struct drps_err *err)
{
    const struct drps_top_choice *c = s->choice;
    const size_t room = c->lists * c->most;
    s->by_row = drps_array_new(room, sizeof(struct drps_top_weight *));
    s->rows = drps_array_new(room, sizeof(*s->rows));
    if (!s->by_row || !s->rows) return no_memory(c, err);
    for (size_t k = 0; k < c->lists; k++) {
        drps_best_sort(s->heaps + k * c->most, s->out->n[k]);
        for (size_t i = 0; i < s->out->n[k]; i++) {
            struct drps_top_weight *w = &s->out->of[k * c->most + i];
            w->row = s->heaps[k * c->most + i].row;
            s->by_row[s->found++] = w;
        }
    }
    qsort(s->by_row, s->found, sizeof(struct drps_top_weight *), by_row);
    for (size_t i = 0; i < s->found; i++)
        if (!i || s->by_row[i]->row != s->by_row[i - 1]->row)
            s->rows[s->rows_n++] = s->by_row[i]->row;
    return 0;
}

static float norm_of(const struct drps_model *m, const float *params)
{
    return m->factors ? (float)sqrt(dot(params + 1, params + 1, m->dim - 1)) : 0;
}

static double per_unit(const struct drps_reader_field *field, float value)
{
    if (field && field->is_log) return (double)NAN;
    return (double)value / (field ? field->unit : 1);
}

/* A row may be in several lists. */
static int fill(void *ctx, const struct drps_readout_row *row, struct drps_err *err)
{
    struct search *s = ctx;
    const struct drps_top_choice *c = s->choice;
    for (; s->next < s->found && s->by_row[s->next]->row == row->row; s->next++) {
        struct drps_top_weight *w = s->by_row[s->next];
        const size_t list = (size_t)(w - s->out->of) / c->most;
        w->value = c->like ? (float)cosine(&s->r->info->model, row->params, c->like)
                           : row->params[c->column + list];
        w->norm = norm_of(&s->r->info->model, row->params);
        w->per_unit = per_unit(row->field, w->value);
        w->table = row->table->name;
        w->name_bytes = row->name_bytes;
        w->name = malloc(row->name_bytes + 1);
        if (!w->name) return no_memory(c, err);
        memcpy(w->name, row->name, row->name_bytes);
        w->name[row->name_bytes] = '\0';
    }
    return 0;
}

int drps_top_weights_find(struct drps_readout *r, const struct drps_top_choice *choice,
                          struct drps_top_weights *out, struct drps_err *err)
{
    struct search s = {.r = r, .choice = choice, .out = out};
    size_t room;
    *out = (struct drps_top_weights){.lists = choice->lists, .most = choice->most};
    if (__builtin_mul_overflow((size_t)choice->lists, choice->most, &room))
        return no_memory(choice, err);
    out->of = calloc(room, sizeof(*out->of));
    out->n = calloc(choice->lists, sizeof(*out->n));
    s.heaps = drps_array_new(room, sizeof(*s.heaps));
    int rc = out->of && out->n && s.heaps ? 0 : no_memory(choice, err);
    if (rc == 0) rc = drps_readout_params(r, offer_rows, &s, err);
    if (rc == 0) rc = list_rows(&s, err);
    if (rc == 0 && s.rows_n) rc = drps_readout_rows(r, s.rows, s.rows_n, fill, &s, err);
    free(s.heaps);
    free(s.by_row);
    free(s.rows);
    return rc;
}

void drps_top_weights_destroy(struct drps_top_weights *w)
{
    for (size_t i = 0; w->of && i < w->lists * w->most; i++)
        free(w->of[i].name);
    free(w->of);
    free(w->n);
    memset(w, 0, sizeof(*w));
}
