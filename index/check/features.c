/* Features by themselves: whether one is the same in all samples, and whether one alone decides the
 * label. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/drps_alloc.h"
#include "index/check/check_internal.h"

/* A feature, in the n training samples that have it. In the others its value is 0. */
struct feature {
    uint64_t n;
    float low[2], high[2]; /* its values: with its first sample's class, with others; of numbers all
                              are in the first */
    union {
        struct {
            uint64_t same; /* samples of that class */
            float label;
        } of_class;
        struct {
            double x, xx, xy; /* sums of values, squares, values times labels less their mean */
        } of_number;
    };
};

static const double WRONG_SHARE = 0.01, CORRELATION = 0.9999;
/* A variance that is less of the mean's square is what rounding leaves. */
static const double ROUNDING = 1e-9;

size_t features_row_bytes(void)
{
    return sizeof(struct feature);
}

int features_init(struct features *f, const struct drps_plan_info *info, struct drps_err *err)
{
    *f = (struct features){.info = info, .wrong = UINT64_MAX};
    f->decided = calloc(drps_classes_count(info->classes) + 1, 1);
    return f->decided ? 0 : drps_err_set(err, -ENOMEM, "no memory for classes");
}

void features_free(struct features *f)
{
    free(f->of_row);
    free(f->decided);
    f->of_row = NULL;
    f->decided = NULL;
}

int features_begin(struct features *f, uint64_t first, uint64_t end, struct drps_err *err)
{
    f->first = first;
    f->end = end;
    free(f->of_row);
    f->of_row = calloc((size_t)(end - first) + 1, sizeof(*f->of_row));
    return f->of_row ? 0
                     : drps_err_set(err, -ENOMEM, "no memory for counts of %llu features",
                                    (unsigned long long)(end - first));
}

/* ---- Counting ---- */

static void widen(struct feature *f, int other, int is_first, float value)
{
    if (is_first || value < f->low[other]) f->low[other] = value;
    if (is_first || value > f->high[other]) f->high[other] = value;
}

static void add_class(struct feature *f, float value, float label)
{
    if (!f->n) f->of_class.label = label;
    const int other = label < f->of_class.label || label > f->of_class.label;
    widen(f, other, other ? f->n == f->of_class.same : !f->n, value);
    f->n++;
    f->of_class.same += !other;
}

static void add_number(struct feature *f, float value, double label)
{
    const double x = (double)value;
    widen(f, 0, !f->n, value);
    f->n++;
    f->of_number.x += x;
    f->of_number.xx += x * x;
    f->of_number.xy += x * label;
}

void features_add(struct features *f, const struct drps_batch *b, const uint32_t *rows)
{
    const double mean = f->info->label_mean;
    for (size_t s = 0; s < b->samples; s++) {
        const size_t end = drps_batch_start(b, s + 1);
        for (size_t j = drps_batch_start(b, s); j < end; j++) {
            const uint64_t row = rows[drps_batch_local(b, j)];
            if (row < f->first || row >= f->end) continue;
            struct feature *of_row = &f->of_row[row - f->first];
            if (f->info->classification)
                add_class(of_row, drps_batch_value(b, j), b->labels[s]);
            else
                add_number(of_row, drps_batch_value(b, j), (double)b->labels[s] - mean);
        }
    }
}

/* ---- Judging ---- */

static int is_constant(const struct feature *f, uint64_t samples, int classes)
{
    if (f->n != samples || f->high[0] > f->low[0]) return 0;
    if (!classes || f->of_class.same == f->n) return 1;
    return f->low[1] == f->high[1] && f->low[0] == f->low[1];
}

/* Whether values of one side, with the zeros of samples that do not have the feature, are all
 * smaller than those of the other. */
static int is_apart(const struct feature *f, uint64_t same_all, uint64_t others_all)
{
    const uint64_t others = f->n - f->of_class.same;
    const float low0 = f->of_class.same < same_all ? fminf(f->low[0], 0) : f->low[0];
    const float high0 = f->of_class.same < same_all ? fmaxf(f->high[0], 0) : f->high[0];
    float low1 = f->low[1], high1 = f->high[1];
    if (!others) {
        low1 = high1 = 0;
    } else if (others < others_all) {
        low1 = fminf(low1, 0);
        high1 = fmaxf(high1, 0);
    }
    return high0 < low1 || high1 < low0;
}

static uint64_t count_of(const struct drps_label_sums *labels, float label)
{
    if (labels->classes) return (uint64_t)labels->of_class[(size_t)label];
    return (uint64_t)(label > 0 ? labels->positive : labels->n - labels->positive);
}

/* Returns how many samples it gets wrong: whether they are of its first sample's class. UINT64_MAX:
 * too many. */
static uint64_t wrong_class(const struct feature *f, const struct drps_label_sums *labels)
{
    const uint64_t same_all = count_of(labels, f->of_class.label);
    const uint64_t others_all = (uint64_t)labels->n - same_all;
    const uint64_t smaller = same_all < others_all ? same_all : others_all;
    const uint64_t wrong = f->n - f->of_class.same + same_all - f->of_class.same;
    if (smaller < DRPS_CHECK_LEAST) return UINT64_MAX;
    if ((double)wrong <= WRONG_SHARE * (double)smaller) return wrong;
    return is_apart(f, same_all, others_all) ? 0 : UINT64_MAX;
}

/* 0: the label is a line of its values, nearly; else UINT64_MAX. `less` is what labels were counted
 * less. */
static uint64_t wrong_number(const struct feature *f, const struct drps_label_sums *labels,
                             double less)
{
    const double n = labels->n, mean = f->of_number.x / n, shift = labels->sum / n;
    const double x = f->of_number.xx / n - mean * mean;
    const double y = labels->squares / n - shift * shift;
    const double xy = f->of_number.xy / n - mean * (labels->origin + shift - less);
    if (f->n < DRPS_CHECK_LEAST || !(x > ROUNDING * mean * mean) || !(y > 0)) return UINT64_MAX;
    return xy * xy >= CORRELATION * CORRELATION * x * y ? 0 : UINT64_MAX;
}

static void judge(struct features *f, uint64_t row, const struct drps_label_sums *labels)
{
    const struct feature *of_row = &f->of_row[row - f->first];
    const int classes = f->info->classification;
    if (!of_row->n) return;
    if (is_constant(of_row, f->info->samples, classes)) {
        if (!f->constants++) f->first_constant = row;
        return;
    }
    const uint64_t wrong =
        classes ? wrong_class(of_row, labels) : wrong_number(of_row, labels, f->info->label_mean);
    if (wrong == UINT64_MAX) return;
    f->deciding++;
    if (labels->classes) f->decided[(size_t)of_row->of_class.label] = 1;
    if (wrong >= f->wrong) return;
    f->wrong = wrong;
    f->best = row;
}

void features_end(struct features *f, const struct drps_label_sums *labels)
{
    const uint64_t common = drps_plan_common_rows(f->info);
    for (uint64_t row = f->first > common ? f->first : common; row < f->end; row++)
        judge(f, row, labels);
}

uint64_t features_deciding(const struct features *f)
{
    const size_t classes = drps_classes_count(f->info->classes);
    size_t decided = 0;
    for (size_t c = 0; c < classes; c++)
        decided += f->decided[c];
    return classes && decided + 1 < classes ? 0 : f->deciding;
}
