/* What was read, from each rank to all (drps_together.h). */
#include "index/together/drps_together.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"

/* What a rank sends first; then, of each class: its weight in training, u32 bytes and its name. */
struct numbers {
    uint64_t samples, test_samples, nnz, test_nnz;
    uint64_t bytes, lines, skipped, weightless, below;
    struct label_set labels, test_labels;
    uint32_t field_count, classes, read_as;
    uint32_t has_classes;
};

static struct numbers numbers_of(const struct read_samples *p)
{
    struct numbers n;
    memset(&n, 0, sizeof(n)); /* holes, too: it is sent */
    n.samples = p->samples;
    n.test_samples = p->test_samples;
    n.nnz = p->nnz;
    n.test_nnz = p->test_nnz;
    n.bytes = p->bytes;
    n.lines = p->lines;
    n.skipped = p->skipped;
    n.weightless = p->weightless;
    n.below = p->below;
    n.labels = p->labels;
    n.test_labels = p->test_labels;
    n.field_count = p->field_count;
    n.classes = (uint32_t)drps_classes_count(p->classes);
    n.read_as = p->read_as;
    n.has_classes = p->classes != NULL;
    return n;
}

static int send_classes(struct swap *s, uint32_t to, const struct read_samples *p,
                        struct drps_err *err)
{
    int rc = 0;
    for (size_t i = 0; i < drps_classes_count(p->classes) && rc == 0; i++) {
        const char *name = drps_classes_name(p->classes, i);
        const uint32_t bytes = (uint32_t)strlen(name);
        rc = drps_swap_put(s, to, &p->in_training[i], sizeof(p->in_training[i]), err);
        if (rc == 0) rc = drps_swap_put(s, to, &bytes, sizeof(bytes), err);
        if (rc == 0) rc = drps_swap_put(s, to, name, bytes, err);
    }
    return rc;
}

static int send_all(struct swap *s, const struct swap_ranks *ranks, const struct read_samples *p,
                    struct drps_err *err)
{
    const struct numbers n = numbers_of(p);
    int rc = 0;
    for (uint32_t to = 0; to < ranks->count && rc == 0; to++) {
        rc = drps_swap_put(s, to, &n, sizeof(n), err);
        if (rc == 0) rc = send_classes(s, to, p, err);
    }
    return rc == 0 ? drps_swap_end(s, err) : rc;
}

/* ---- What came ---- */

static int is_sound(const struct label_set *set)
{
    int sound = set->n <= 3;
    for (size_t i = 0; i < 3 && sound; i++)
        sound = drps_exact_is_sound(&set->weights[i]);
    return sound;
}

static int check_numbers(const struct numbers *n, uint32_t from, const struct read_samples *p,
                         struct drps_err *err)
{
    if (!is_sound(&n->labels) || !is_sound(&n->test_labels) || n->classes > DRPS_CLASSES_MOST ||
        n->field_count > UINT16_MAX + 1u || n->has_classes != (p->classes != NULL))
        return drps_swap_fault(from, "numbers of samples that make no sense", err);
    if (!n->classes || !drps_classes_count(p->classes) || n->read_as == (uint32_t)p->read_as)
        return 0;
    return drps_err_set(err, DRPS_E_FORMAT,
                        "the labels of rank %u are %s, and those of ranks before it are not: all "
                        "inputs must have labels of one kind",
                        from, n->read_as == DRPS_READER_NUMBERS ? "numbers" : "names");
}

static void add_numbers(struct read_samples *p, const struct numbers *n)
{
    p->samples += n->samples;
    p->test_samples += n->test_samples;
    p->nnz += n->nnz;
    p->test_nnz += n->test_nnz;
    p->bytes += n->bytes;
    p->lines += n->lines;
    p->skipped += n->skipped;
    p->weightless += n->weightless;
    p->below += n->below;
    drps_label_set_merge(&p->labels, &n->labels);
    drps_label_set_merge(&p->test_labels, &n->test_labels);
    if (n->field_count > p->field_count) p->field_count = n->field_count;
}

/* Add a class of another rank; *number_out is its number. */
static int take_class(struct swap *s, uint32_t from, struct read_samples *p, int32_t *number_out,
                      struct drps_err *err)
{
    char name[DRPS_CLASS_NAME_BYTES + 1];
    struct drps_exact weight;
    uint32_t bytes = 0;
    int rc = drps_swap_take(s, from, &weight, sizeof(weight), err);
    if (rc == 0) rc = drps_swap_take(s, from, &bytes, sizeof(bytes), err);
    if (rc == 0 && bytes > DRPS_CLASS_NAME_BYTES)
        rc = drps_swap_fault(from, "a class with too long a name", err);
    if (rc == 0) rc = drps_swap_take(s, from, name, bytes, err);
    if (rc < 0) return rc;
    *number_out = drps_classes_add(p->classes, name, bytes);
    if (*number_out < 0)
        return drps_err_set(err, DRPS_E_FORMAT, "of rank %u: a class %s", from,
                            drps_class_fault(*number_out));
    if (!drps_exact_is_sound(&weight))
        return drps_swap_fault(from, "a class with a weight that is none", err);
    drps_exact_merge(&p->in_training[*number_out], &weight);
    return 0;
}

static int take_rank(struct swap *s, uint32_t from, struct read_samples *p, uint32_t *class_of,
                     uint64_t *train_of, uint64_t *test_of, struct drps_err *err)
{
    struct numbers n;
    int rc = drps_swap_take(s, from, &n, sizeof(n), err);
    if (rc == 0) rc = check_numbers(&n, from, p, err);
    if (rc < 0) return rc;
    if (n.classes) p->read_as = (enum drps_reader_labels)n.read_as;
    add_numbers(p, &n);
    train_of[from] = n.samples;
    test_of[from] = n.test_samples;
    for (uint32_t i = 0; i < n.classes && rc == 0; i++) {
        int32_t number = 0;
        rc = take_class(s, from, p, &number, err);
        if (rc == 0 && class_of) class_of[i] = (uint32_t)number;
    }
    return rc;
}

/* Begin with nothing, to which the ranks are added in their order. */
static int forget(struct read_samples *p, struct drps_err *err)
{
    const struct numbers n = numbers_of(p);
    p->samples = p->test_samples = p->nnz = p->test_nnz = 0;
    p->bytes = p->lines = p->skipped = p->weightless = p->below = 0;
    p->labels = p->test_labels = (struct label_set){0};
    p->field_count = 0;
    if (!n.has_classes) return 0;
    drps_classes_free(p->classes);
    p->classes = drps_classes_new();
    memset(p->in_training, 0, DRPS_CLASSES_MOST * sizeof(*p->in_training));
    return p->classes ? 0 : drps_err_set(err, -ENOMEM, "no memory for classes");
}

int drps_together_read(struct swap_ranks *ranks, struct read_samples *p, uint32_t **class_of,
                       uint64_t *train_of, uint64_t *test_of, struct drps_err *err)
{
    const size_t classes = drps_classes_count(p->classes);
    struct swap *s = NULL;
    *class_of = NULL;
    if (p->classes) {
        *class_of = drps_array_new(classes + 1, sizeof(**class_of));
        if (!*class_of) return drps_err_set(err, -ENOMEM, "no memory for %zu classes", classes);
    }
    int rc = drps_swap_open(ranks, &s, err);
    if (rc == 0) rc = send_all(s, ranks, p, err);
    if (rc == 0) rc = forget(p, err);
    for (uint32_t from = 0; from < ranks->count && rc == 0; from++)
        rc = take_rank(s, from, p, from == ranks->rank ? *class_of : NULL, train_of, test_of, err);
    if (rc == 0) rc = drps_swap_all_taken(s, err);
    drps_swap_close(s);
    return rc;
}
