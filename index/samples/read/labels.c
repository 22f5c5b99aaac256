/* Which labels were read: their distinct values, or classes. */
#include <errno.h>
#include <stdlib.h>

#include "index/plan/drps_algorithm.h"
#include "index/samples/read/read.h"

/* Returns where the label's weights are added up. */
static struct drps_exact *find_label(struct label_set *set, float label)
{
    size_t i = 0;
    while (i < set->n && i < 2 && set->values[i] != label)
        i++;
    if (i == set->n) set->values[set->n++] = label;
    return &set->weights[i];
}

void drps_label_set_add(struct label_set *set, float label, double weight)
{
    drps_exact_add(find_label(set, label), weight);
}

void drps_label_set_merge(struct label_set *set, const struct label_set *from)
{
    for (size_t i = 0; i < from->n; i++)
        drps_exact_merge(find_label(set, from->values[i]), &from->weights[i]);
}

int drps_read_open_classes(const struct drps_index_options *o, struct read_samples *p,
                           struct drps_err *err)
{
    const struct drps_algorithm *a = o->algorithm;
    const struct drps_classes *base = o->base_plan ? o->base_plan->info.classes : NULL;
    if (!drps_algorithm_takes_names(a) || (o->base_plan && !base)) return 0;
    const int named = a->labels == DRPS_LABELS_NAMES || base;
    p->read_as = named ? DRPS_READER_NAMES : DRPS_READER_AS_FIRST;
    p->classes = base ? drps_classes_copy(base) : drps_classes_new();
    p->in_training = calloc(DRPS_CLASSES_MOST, sizeof(*p->in_training));
    return p->classes && p->in_training ? 0 : drps_err_set(err, -ENOMEM, "no memory for classes");
}

void drps_read_drop_classes(struct read_samples *p)
{
    drps_classes_free(p->classes);
    free(p->in_training);
    p->classes = NULL;
    p->in_training = NULL;
}
