/* The object, the phases of a step, and what comes out of it. */
#include "engine/topic/drps_topic.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/topic/topic_internal.h"

/* ---- The object ---- */

uint64_t drps_topic_state_rows(uint32_t topics)
{
    return 2 * (uint64_t)topics + 2; /* the sums have room, also of two topics */
}

size_t drps_topic_state_row_bytes(uint32_t topics)
{
    return topics * sizeof(double);
}

uint64_t drps_topic_memory(const struct drps_topic_options *options)
{
    const uint64_t n = options->topics;
    return (5 * n * n + 2 * n + drps_topic_gram_n(options->topics) +
            drps_topic_changes_n(options->topics) + 4 * n * options->members) *
               sizeof(double) +
           TOPIC_VISIT_ROWS * (n + 1) * sizeof(float) + n * sizeof(size_t) +
           sizeof(struct drps_topic);
}

static int make_arrays(struct drps_topic *t, struct drps_err *err)
{
    const size_t n = t->topics;
    t->state = calloc((size_t)drps_topic_state_rows(t->options.topics) * n, sizeof(*t->state));
    t->m = calloc(n * n, sizeof(*t->m));
    t->h = calloc(n * n, sizeof(*t->h));
    t->work = calloc(n * n, sizeof(*t->work));
    t->change = calloc(drps_topic_changes_n(t->options.topics), sizeof(*t->change));
    t->gram = calloc(drps_topic_gram_n(t->options.topics), sizeof(*t->gram));
    t->member = calloc(4 * n * t->options.members, sizeof(*t->member));
    t->rows = calloc(TOPIC_VISIT_ROWS * (n + 1), sizeof(*t->rows));
    t->seeds = calloc(n, sizeof(*t->seeds));
    if (!t->state || !t->m || !t->h || !t->work || !t->change || !t->gram || !t->member ||
        !t->rows || !t->seeds)
        return drps_err_set(err, -ENOMEM, "no memory for %zu topics", n);
    t->a = t->state;
    t->g = t->a + n * n;
    t->sums = t->g + n * n;
    return 0;
}

int drps_topic_open(const struct drps_topic_options *options, struct drps_topic **topic_out,
                    struct drps_err *err)
{
    *topic_out = NULL;
    struct drps_topic *t = calloc(1, sizeof(*t));
    if (!t) return drps_err_set(err, -ENOMEM, "no memory for %u topics", options->topics);
    t->options = *options;
    t->topics = options->topics;
    t->stale = 1;
    int rc = make_arrays(t, err);
    if (rc < 0)
        drps_topic_close(t);
    else
        *topic_out = t;
    return rc;
}

void drps_topic_close(struct drps_topic *t)
{
    if (!t) return;
    free(t->state);
    free(t->m);
    free(t->h);
    free(t->work);
    free(t->change);
    free(t->gram);
    free(t->member);
    free(t->rows);
    free(t->seeds);
    free(t);
}

double *drps_topic_state(struct drps_topic *t)
{
    return t->state;
}

/* 1: n x n numbers that a sum of squares can be. */
static int is_square_sum(const double *a, size_t n)
{
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < n; j++)
            if (!isfinite(a[i * n + j]) || (i == j && !(a[i * n + i] >= 0))) return 0;
    return 1;
}

int drps_topic_restore(struct drps_topic *t, const char *path, struct drps_err *err)
{
    const double *s = t->sums;
    t->stale = 1;
    if (is_square_sum(t->a, t->topics) && is_square_sum(t->g, t->topics) &&
        isfinite(s[SUM_SQUARES]) && s[SUM_SQUARES] >= 0 && isfinite(s[SUM_CODES]) &&
        s[SUM_BEGUN] >= 0 && s[SUM_BEGUN] <= (double)t->topics)
        return 0;
    return drps_err_set(err, DRPS_E_CORRUPT, "%s: sums that no run of %zu topics comes to", path,
                        t->topics);
}

/* ---- The phases ---- */

/* Documents with words begin the rank's topics, one after another. */
static void find_seeds(struct drps_topic *t, const struct drps_topic_step *step)
{
    const struct drps_batch *b = step->batch;
    t->first_seed = (size_t)t->sums[SUM_BEGUN];
    t->seeds_n = 0;
    for (size_t s = 0; step->after && s < b->samples; s++) {
        const size_t own = drps_batch_sample_row(b, s);
        const size_t entries = drps_batch_start(b, s + 1) - drps_batch_start(b, s);
        if (topic_of_seed(t, t->first_seed + t->seeds_n) >= t->topics) break;
        if (own == b->rows || entries < 2 || topic_is_document(t, step->before, own)) continue;
        t->seeds[t->seeds_n++] = s;
    }
    t->sums[SUM_BEGUN] = (double)(t->first_seed + t->seeds_n);
}

/* The member's rows of the product of x and y into `out`; y is symmetric but for rounding. */
static void multiply(const struct drps_topic *t, const double *x, const double *y, double *out,
                     unsigned member)
{
    const size_t n = t->topics;
    for (size_t i = member; i < n; i += t->options.members) {
        memset(out + i * n, 0, n * sizeof(*out));
        for (size_t k = 0; k < n; k++)
            for (size_t j = 0; j < n; j++)
                out[i * n + j] += x[i * n + k] * y[k * n + j];
    }
}

static void begin(struct drps_topic *t, const struct drps_topic_step *step, unsigned member)
{
    const size_t dim = t->topics + 1, rows = step->batch->rows;
    const unsigned members = t->options.members;
    const size_t first = topic_part(rows, member, members);
    const size_t last = topic_part(rows, member + 1, members);
    if (step->after) memset(step->after + first * dim, 0, (last - first) * dim * sizeof(float));
    if (member) return;
    find_seeds(t, step);
    if (t->stale) topic_inverse(t->topics, t->a, t->options.rho, t->m, t->work);
}

/* ---- What the step changes is taken up ---- */

/* The member's rows of A and G; member 0 takes the sums. */
static void apply(struct drps_topic *t, unsigned member, unsigned members)
{
    const size_t n = t->topics;
    const double *g = t->change + drps_topic_gram_n(t->options.topics), *sums = topic_sums_of(t);
    for (size_t i = member; i < n; i += members)
        for (size_t j = 0; j < n; j++) {
            const size_t at = i < j ? topic_triangle(n, i, j) : topic_triangle(n, j, i);
            t->a[i * n + j] += t->change[at];
            t->g[i * n + j] += g[at];
        }
    if (member) return;
    t->sums[SUM_SQUARES] += sums[SUM_SQUARES];
    t->sums[SUM_CODES] += sums[SUM_CODES];
    t->stale = 1;
}

double *drps_topic_changes(struct drps_topic *t)
{
    return t->change;
}

void drps_topic_apply(struct drps_topic *t)
{
    apply(t, 0, 1);
}

void drps_topic_work(struct drps_topic *t, const struct drps_topic_step *step, unsigned phase,
                     unsigned member)
{
    switch (phase) {
    case 0:
        begin(t, step, member);
        break;
    case 1:
        if (t->stale) multiply(t, t->g, t->m, t->work, member);
        break;
    case 2:
        if (t->stale) multiply(t, t->m, t->work, t->h, member);
        break;
    case 3:
        topic_code_documents(t, step, member);
        break;
    case 4:
        if (!member) t->stale = 0;
        if (step->after) topic_change_words(t, step, member);
        break;
    case 5:
        if (step->rows) topic_change_squares(t, step, member);
        break;
    case 6:
        if (step->rows) topic_add_squares(t, member, t->options.members);
        break;
    default:
        if (step->rows) apply(t, member, t->options.members);
        break;
    }
}

/* ---- Results ---- */

static void renew(struct drps_topic *t)
{
    const unsigned members = t->options.members;
    if (!t->stale) return;
    topic_inverse(t->topics, t->a, t->options.rho, t->m, t->work);
    for (unsigned k = 0; k < members; k++)
        multiply(t, t->g, t->m, t->work, k);
    for (unsigned k = 0; k < members; k++)
        multiply(t, t->m, t->work, t->h, k);
    t->stale = 0;
}

double drps_topic_objective(struct drps_topic *t)
{
    double trace = 0;
    renew(t);
    for (size_t i = 0; i < t->topics * t->topics; i++)
        trace += t->m[i] * t->g[i];
    return (t->sums[SUM_SQUARES] - trace) / 2 + t->options.l1 * t->sums[SUM_CODES];
}

const double *drps_topic_gram(struct drps_topic *t)
{
    double *to = t->gram;
    renew(t);
    for (size_t i = 0; i < t->topics; i++)
        for (size_t j = i; j < t->topics; j++)
            *to++ = t->h[i * t->topics + j];
    return t->gram;
}

static void show_row(const struct drps_topic *t, const float *row, float *out)
{
    const size_t n = t->topics;
    double *b = t->member;
    memcpy(out, row, (n + 1) * sizeof(*out));
    if (row[0] != 0) return; /* a document's */
    memset(b, 0, n * sizeof(*b));
    for (size_t k = 0; k < n; k++)
        for (size_t j = 0; row[1 + k] != 0 && j < n; j++)
            b[j] += (double)row[1 + k] * t->m[k * n + j];
    for (size_t j = 0; j < n; j++)
        out[1 + j] = (float)b[j];
}

int drps_topic_visit_dictionary(void *ctx, uint64_t first, size_t n, const void *rows,
                                struct drps_err *err)
{
    const struct drps_topic_visit *v = ctx;
    struct drps_topic *t = v->topic;
    const float *row = rows;
    renew(t);
    for (size_t i = 0; i < n; i += TOPIC_VISIT_ROWS) {
        const size_t run = n - i < TOPIC_VISIT_ROWS ? n - i : TOPIC_VISIT_ROWS;
        for (size_t k = 0; k < run; k++, row += t->topics + 1)
            show_row(t, row, t->rows + k * (t->topics + 1));
        int rc = v->visit(v->ctx, first + i, run, t->rows, err);
        if (rc) return rc;
    }
    return 0;
}

/* ---- A finished model ---- */

int drps_topic_open_scorer(const struct drps_topic_options *options, const double *gram,
                           const char *path, struct drps_topic **topic_out, struct drps_err *err)
{
    int rc = drps_topic_open(options, topic_out, err);
    if (rc < 0) return rc;
    struct drps_topic *t = *topic_out;
    const size_t n = t->topics;
    t->is_scorer = 1;
    t->stale = 0;
    for (size_t i = 0; i < n; i++)
        for (size_t j = i; j < n; j++)
            t->h[i * n + j] = t->h[j * n + i] = *gram++;
    if (is_square_sum(t->h, n)) return 0;
    drps_topic_close(t);
    *topic_out = NULL;
    return drps_err_set(err, DRPS_E_CORRUPT, "%s: products of topics that no dictionary has", path);
}
