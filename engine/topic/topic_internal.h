/* What the sources of engine/topic/ share. Private to it. */
#ifndef DRPS_ENGINE_TOPIC_INTERNAL_H
#define DRPS_ENGINE_TOPIC_INTERNAL_H

#include "engine/topic/drps_topic.h"

enum { TOPIC_VISIT_ROWS = 64 };

struct drps_topic {
    struct drps_topic_options options;
    size_t topics;  /* J */
    double *state;  /* own: [2 J + 2][J], as drps_topic_state() says */
    double *a, *g;  /* in state: [J][J] */
    double *sums;   /* in state: enum topic_sum */
    double *m, *h;  /* own: [J][J] M and B'B of a and g, unless stale */
    double *work;   /* own: [J][J] */
    double *change; /* own: as drps_topic_changes() says */
    double *gram;   /* own: [J (J + 1) / 2] */
    double *member; /* own: [members][4 J] */
    float *rows;    /* own: [TOPIC_VISIT_ROWS][1 + J] */
    int stale;      /* a or g have changed since m and h were made */
    int is_scorer;  /* rows have b, and m is not there */

    /* Documents of this step whose codes are not solved: sample seeds[i] begins the topic
     * topic_of_seed(t, first_seed + i). */
    size_t *seeds; /* own: [J] */
    size_t first_seed, seeds_n;
};

enum topic_sum { SUM_SQUARES, SUM_CODES, SUM_BEGUN };

/* The k-th of n nearly equal parts of 0 .. count. */
static inline size_t topic_part(size_t count, unsigned k, unsigned n)
{
    return count / n * k + count % n * k / n;
}

/* Returns the topic that the i-th of this rank's documents begins which begin one; J or more: none.
 */
static inline size_t topic_of_seed(const struct drps_topic *t, size_t i)
{
    const struct drps_topic_options *o = &t->options;
    if (!o->workers) return i;
    return o->worker < o->workers ? i * o->workers + o->worker : t->topics;
}

/* Returns the place of row i, column j, j >= i, in an upper triangle. */
static inline size_t topic_triangle(size_t n, size_t i, size_t j)
{
    return i * n - i * (i + 1) / 2 + j;
}

/* Where the changes of the sums are. */
static inline double *topic_sums_of(const struct drps_topic *t)
{
    return t->change + 2 * drps_topic_gram_n(t->options.topics);
}

/* The J numbers behind the first float of a row. */
static inline const float *topic_code(const struct drps_topic *t, const float *rows, size_t row)
{
    return rows + row * (t->topics + 1) + 1;
}

static inline int topic_is_document(const struct drps_topic *t, const float *rows, size_t row)
{
    return rows[row * (t->topics + 1)] != 0;
}

/* Returns |d|^2 of a sample. */
double topic_squares(const struct drps_batch *b, size_t sample);

/* m = (a + rho I)^-1, where a is positive semidefinite but for rounding. `work` [J][J] is
 * overwritten. */
void topic_inverse(size_t topics, const double *a, double rho, double *m, double *work);

/* Minimise a'ha / 2 - p'a + l1 |a|_1 over a >= 0 by coordinate descent from `a`, until a sweep
 * brings less than a share of `scale`. ha [J] is h a at the end. */
void topic_solve(size_t topics, const double *h, const double *p, double l1, double scale,
                 double *a, double *ha);

/* The phase in which documents are coded: those of the member. */
void topic_code_documents(struct drps_topic *t, const struct drps_topic_step *step,
                          unsigned member);

/* The phases after that. */
void topic_change_words(struct drps_topic *t, const struct drps_topic_step *step, unsigned member);
void topic_change_squares(struct drps_topic *t, const struct drps_topic_step *step,
                          unsigned member);
void topic_add_squares(struct drps_topic *t, unsigned member, unsigned members);

#endif
