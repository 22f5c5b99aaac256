/* What all ranks have counted while they made batches (drps_together.h). */
#include "index/together/drps_together.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* What a rank tells of its labels. Its message is struct together_batches; then, for training and
 * for evaluation, this struct and the weight of each class. */
struct labels {
    struct drps_exact weights, labels, squared, positives;
    double origin;
    uint64_t first;
};

static void raise(uint64_t *most, uint64_t value)
{
    if (value > *most) *most = value;
}

static int send_labels(struct swap *s, uint32_t to, const struct drps_label_sums *l,
                       struct drps_err *err)
{
    const struct labels sent = {l->weights,   l->labels, l->squared,
                                l->positives, l->origin, l->first};
    int rc = drps_swap_put(s, to, &sent, sizeof(sent), err);
    if (rc == 0 && l->classes)
        rc = drps_swap_put(s, to, l->of_classes, l->classes * sizeof(*l->of_classes), err);
    return rc;
}

static int send_all(struct swap *s, const struct swap_ranks *ranks,
                    const struct together_batches *mine, const struct drps_label_sums labels[2],
                    struct drps_err *err)
{
    int rc = 0;
    for (uint32_t to = 0; to < ranks->count && rc == 0; to++) {
        rc = drps_swap_put(s, to, mine, sizeof(*mine), err);
        for (int i = 0; i < 2 && rc == 0; i++)
            rc = send_labels(s, to, &labels[i], err);
    }
    return rc == 0 ? drps_swap_end(s, err) : rc;
}

static void add_batches(struct together_batches *sum, const struct together_batches *more)
{
    sum->ones += more->ones;
    sum->test_unseen += more->test_unseen;
    raise(&sum->max_batch_samples, more->max_batch_samples);
    raise(&sum->max_batch_rows, more->max_batch_rows);
    raise(&sum->max_batch_nnz, more->max_batch_nnz);
    raise(&sum->max_body_bytes, more->max_body_bytes);
    if (more->most > sum->most) sum->most = more->most;
    sum->weighted |= more->weighted;
}

static int is_sound(const struct drps_label_sums *l)
{
    int sound = drps_exact_is_sound(&l->weights) && drps_exact_is_sound(&l->labels) &&
                drps_exact_is_sound(&l->squared) && drps_exact_is_sound(&l->positives) &&
                isfinite(l->origin);
    for (size_t c = 0; c < l->classes && sound; c++)
        sound = drps_exact_is_sound(&l->of_classes[c]);
    return sound;
}

/* The labels of one rank, added to those of ranks before it; `more` has room for them. */
static int take_labels(struct swap *s, uint32_t from, struct drps_label_sums *more,
                       struct drps_label_sums *sum, struct drps_err *err)
{
    struct labels l;
    int rc = drps_swap_take(s, from, &l, sizeof(l), err);
    if (rc == 0 && more->classes)
        rc = drps_swap_take(s, from, more->of_classes, more->classes * sizeof(*more->of_classes),
                            err);
    if (rc < 0) return rc;
    more->weights = l.weights;
    more->labels = l.labels;
    more->squared = l.squared;
    more->positives = l.positives;
    more->origin = l.origin;
    more->first = l.first;
    if (!is_sound(more)) return drps_swap_fault(from, "sums of labels that make no sense", err);
    drps_label_sums_merge(sum, more);
    return 0;
}

static int take_all(struct swap *s, const struct swap_ranks *ranks, struct together_batches *sums,
                    struct drps_label_sums labels[2], struct drps_err *err)
{
    struct drps_label_sums more = {0};
    int rc = drps_label_sums_init(&more, labels[0].loss, labels[0].classes, err);
    for (int i = 0; i < 2 && rc == 0; i++) {
        const struct drps_label_sums was = labels[i];
        drps_label_sums_destroy(&labels[i]);
        rc = drps_label_sums_init(&labels[i], was.loss, was.classes, err);
        labels[i].items = was.items;
    }
    memset(sums, 0, sizeof(*sums));
    for (uint32_t from = 0; from < ranks->count && rc == 0; from++) {
        struct together_batches one;
        rc = drps_swap_take(s, from, &one, sizeof(one), err);
        if (rc == 0) add_batches(sums, &one);
        for (int i = 0; i < 2 && rc == 0; i++)
            rc = take_labels(s, from, &more, &labels[i], err);
    }
    drps_label_sums_destroy(&more);
    return rc;
}

int drps_together_sum_batches(struct swap_ranks *ranks, struct together_batches *sums,
                              struct drps_label_sums labels[2], struct drps_err *err)
{
    struct swap *s = NULL;
    int rc = drps_swap_open(ranks, &s, err);
    if (rc == 0) rc = send_all(s, ranks, sums, labels, err);
    if (rc == 0) rc = take_all(s, ranks, sums, labels, err);
    if (rc == 0) rc = drps_swap_all_taken(s, err);
    drps_swap_close(s);
    return rc;
}
