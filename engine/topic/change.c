/* What new codes change: sums of codes and of their squares, words' rows, and the squares of
 * these. */
#include <string.h>

#include "base/kernel/drps_level.h"
#include "engine/topic/topic_internal.h"

/* ---- Sums over documents ---- */

/* Adds code code', with the sign, to an upper triangle. */
static void add_code(size_t n, const float *code, double sign, double *a)
{
    for (size_t i = 0; i < n; a += n - i++)
        for (size_t j = i; code[i] != 0 && j < n; j++)
            a[j - i] += sign * ((double)code[i] * (double)code[j]);
}

static void change_sums(struct drps_topic *t, const struct drps_topic_step *step)
{
    const size_t n = t->topics;
    double *sums = topic_sums_of(t);
    memset(t->change, 0, drps_topic_changes_n(t->options.topics) * sizeof(*t->change));
    for (size_t s = 0; s < step->batch->samples; s++) {
        const size_t own = drps_batch_sample_row(step->batch, s);
        if (own == step->batch->rows) continue;
        const float *old = topic_code(t, step->before, own);
        const float *new = topic_code(t, step->after, own);
        if (!topic_is_document(t, step->before, own))
            sums[SUM_SQUARES] += topic_squares(step->batch, s);
        if (memcmp(old, new, n * sizeof(*new)) == 0) continue;
        add_code(n, new, 1, t->change);
        add_code(n, old, -1, t->change);
        for (size_t j = 0; j < n; j++)
            sums[SUM_CODES] += (double)new[j] - (double)old[j];
    }
}

/* ---- Words ---- */

/* A sample's part of the sums of words' rows [first, last). */
static void add_words(const struct drps_topic *t, const struct drps_topic_step *step, size_t sample,
                      size_t first, size_t last, const double *change)
{
    const struct drps_batch *b = step->batch;
    const size_t n = t->topics, end = drps_batch_start(b, sample + 1);
    for (size_t e = drps_batch_start(b, sample); e < end; e++) {
        const size_t row = drps_batch_local(b, e);
        const double d = (double)drps_batch_value(b, e);
        if (row < first || row >= last || d == 0) continue;
        float *to = step->after + row * (n + 1) + 1;
        for (size_t j = 0; j < n; j++)
            to[j] += (float)(d * change[j]);
    }
}

/* Returns 0 where the code stays as it was. */
static int change_of(const struct drps_topic *t, const struct drps_topic_step *step, size_t sample,
                     double *change)
{
    const size_t own = drps_batch_sample_row(step->batch, sample);
    if (own == step->batch->rows) return 0;
    const float *old = topic_code(t, step->before, own), *new = topic_code(t, step->after, own);
    int any = 0;
    for (size_t j = 0; j < t->topics; j++) {
        change[j] = (double)new[j] - (double)old[j];
        any |= new[j] != old[j];
    }
    return any;
}

/* Rows get what they are after the step, the store's too. */
static void put_rows(const struct drps_topic *t, const struct drps_topic_step *step, size_t first,
                     size_t last)
{
    const size_t dim = t->topics + 1;
    for (size_t row = first; row < last; row++) {
        float *after = step->after + row * dim;
        const float *before = step->before + row * dim;
        for (size_t j = 1; !topic_is_document(t, step->after, row) && j < dim; j++)
            after[j] += before[j];
        memcpy(drps_row_at(step->rows, row), after, dim * sizeof(*after));
    }
}

DRPS_KERNEL(void, topic_change_words,
            (struct drps_topic * t, const struct drps_topic_step *step, unsigned member),
            (t, step, member))
{
    const unsigned members = t->options.members;
    const size_t first = topic_part(step->batch->rows, member, members);
    const size_t last = topic_part(step->batch->rows, member + 1, members);
    double *change = t->member + (size_t)member * 4 * t->topics;
    if (!member) change_sums(t, step);
    for (size_t s = 0; s < step->batch->samples; s++)
        if (change_of(t, step, s, change)) add_words(t, step, s, first, last, change);
    if (step->rows) put_rows(t, step, first, last);
}

/* ---- Squares of words' rows: c c' grows by x y' + y x', of the change x and the mean y ---- */

/* Adds every `members`-th row of x y' of a word to t->work, from row `member` on. */
static void add_square(struct drps_topic *t, const float *old, const float *new, unsigned member,
                       unsigned members)
{
    const size_t n = t->topics;
    double *mean = t->member + (size_t)member * 4 * n;
    if (memcmp(old, new, n * sizeof(*new)) == 0) return;
    for (size_t j = 0; j < n; j++)
        mean[j] = ((double)old[j] + (double)new[j]) / 2;
    for (size_t i = member; i < n; i += members) {
        const double x = (double)new[i] - (double)old[i];
        for (size_t j = 0; x != 0 && j < n; j++)
            t->work[i * n + j] += x * mean[j];
    }
}

/* The member's rows of the sum over all words, in t->work. */
DRPS_KERNEL(void, topic_change_squares,
            (struct drps_topic * t, const struct drps_topic_step *step, unsigned member),
            (t, step, member))
{
    const size_t n = t->topics;
    const unsigned members = t->options.members;
    for (size_t i = member; i < n; i += members)
        memset(t->work + i * n, 0, n * sizeof(*t->work));
    for (size_t row = 0; row < step->batch->rows; row++)
        if (!topic_is_document(t, step->after, row))
            add_square(t, topic_code(t, step->before, row), topic_code(t, step->after, row), member,
                       members);
}

DRPS_KERNEL(void, topic_add_squares, (struct drps_topic * t, unsigned member, unsigned members),
            (t, member, members))
{
    const size_t n = t->topics;
    double *g = t->change + drps_topic_gram_n(t->options.topics);
    for (size_t i = member; i < n; i += members)
        for (size_t j = i; j < n; j++)
            g[topic_triangle(n, i, j)] = t->work[i * n + j] + t->work[j * n + i];
}

/* ---- Rows of several ranks ---- */

DRPS_KERNEL(void, drps_topic_change_rows,
            (struct drps_topic * t, const struct drps_rows *rows, size_t n, const float *changes),
            (t, rows, n, changes))
{
    const size_t topics = t->topics, dim = topics + 1;
    memset(t->work, 0, topics * topics * sizeof(*t->work));
    for (size_t row = 0; row < n; row++, changes += dim) {
        float *to = drps_row_at(rows, row), *old = t->rows;
        if (changes[0] != 0) { /* a document's */
            memcpy(to, changes, dim * sizeof(*to));
            continue;
        }
        memcpy(old, to, dim * sizeof(*old));
        for (size_t j = 1; j < dim; j++)
            to[j] += changes[j];
        add_square(t, old + 1, to + 1, 0, 1);
    }
    topic_add_squares(t, 0, 1);
}
