/*
 * The phase that parses: text to samples in spools, with provisional ids (index/samples/). What the
 * labels are decides whether the model classifies, and so which losses fit; how many samples there
 * are decides the batch size.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"
#include "base/drps_size.h"
#include "index/ranks/drps_placement.h"
#include "index/run/run.h"

enum { MIN_BATCH = 100 };

/* ---- Labels ---- */

static int no_memory(size_t classes, struct drps_err *err)
{
    return drps_err_set(err, -ENOMEM, "no memory for %zu classes", classes);
}

/* Puts classes into their order; labels become their numbers. */
static int number_classes(struct index_run *r, struct drps_err *err)
{
    const size_t n = drps_classes_count(r->classes);
    uint32_t *to;
    int rc = drps_classes_sort(r->classes, &to, err);
    if (rc < 0) return rc;
    r->label_of = drps_array_new(n, sizeof(*r->label_of));
    for (size_t i = 0; r->label_of && i < n; i++)
        r->label_of[i] = (float)to[i];
    free(to);
    return r->label_of ? 0 : no_memory(n, err);
}

/* Where several machines read, the labels in this one's spools are the numbers that it gave to
 * classes while it read: label_of is put into the order of these. */
static int number_own_classes(struct index_run *r, struct drps_err *err)
{
    if (!r->class_of || !r->label_of) return 0;
    float *own = drps_array_new(r->own_classes, sizeof(*own));
    if (!own) return no_memory(r->own_classes, err);
    for (size_t i = 0; i < r->own_classes; i++)
        own[i] = r->label_of[r->class_of[i]];
    free(r->label_of);
    r->label_of = own;
    return 0;
}

/* Classes are those of training and of tests: how many there are is how many floats a row has. */
static int settle_classes(struct index_run *r, struct drps_err *err)
{
    struct drps_plan_info *info = r->info;
    r->classes = r->parsed.classes; /* moved */
    r->parsed.classes = NULL;
    const size_t n = drps_classes_count(r->classes);
    int rc = drps_run_check_classes(r, err);
    if (rc < 0) return rc;
    if (n < DRPS_CLASSES_LEAST && r->layers.has_sequences)
        return drps_err_set(err, DRPS_E_FORMAT,
                            "the only token that follows another is %s: a net learns of two or "
                            "more; give it more text",
                            drps_classes_name(r->classes, 0));
    if (n < DRPS_CLASSES_LEAST)
        return drps_err_set(err, DRPS_E_FORMAT,
                            "every label is %s: the algorithm %s needs two classes or more (check "
                            "the label column)",
                            drps_classes_name(r->classes, 0), r->options.algo);
    info->classification = 1;
    info->classes = r->classes;
    info->dim = (uint32_t)n;
    info->row_bytes = info->dim * sizeof(float) * 2;
    return number_classes(r, err);
}

static int too_many_labels(const struct index_run *r, int either, struct drps_err *err)
{
    const struct read_samples *p = &r->parsed;
    const float *v = p->labels.values;
    char where[400] = "...";
    if (p->third_line)
        (void)snprintf(where, sizeof(where), "first in %.300s:%llu, ...",
                       r->options.inputs[p->third_input], (unsigned long long)p->third_line);
    return drps_err_set(err, DRPS_E_FORMAT,
                        "more than two distinct labels (%g, %g, %g%s%s): the algorithm %s needs "
                        "exactly two; for classes use the algorithm mlr, for numbers lir%s",
                        (double)v[0], (double)v[1], (double)v[2], p->third_line ? " " : ", ", where,
                        r->options.algorithm->name, either ? " or the task regression" : "");
}

/* Classification of numbers wants exactly two; the smaller one becomes -1, the larger +1. */
static int settle_numbers(struct index_run *r, struct drps_err *err)
{
    const struct label_set *set = &r->parsed.labels;
    const struct drps_algorithm *a = r->options.algorithm;
    const char *task = r->options.task ? r->options.task : "auto";
    const int either = a->labels == DRPS_LABELS_EITHER;
    const int wanted = a->labels == DRPS_LABELS_CLASSES ||
                       a->labels == DRPS_LABELS_CLASSES_OR_NAMES ||
                       (either && strcmp(task, "classification") == 0);

    r->info->classification = wanted || (either && strcmp(task, "auto") == 0 && set->n == 2);
    if (!r->info->classification) return 0;
    if (set->n == 1)
        return drps_err_set(err, DRPS_E_FORMAT,
                            "every training label is %g: classification needs two classes (check "
                            "the label column, or "
                            "use the algorithm lir)",
                            (double)set->values[0]);
    if (set->n != 2) return too_many_labels(r, either, err);
    r->info->label_negative = fminf(set->values[0], set->values[1]);
    r->info->label_positive = fmaxf(set->values[0], set->values[1]);
    const struct label_set *test = &r->parsed.test_labels;
    for (size_t i = 0; i < test->n; i++)
        if (test->values[i] != r->info->label_negative &&
            test->values[i] != r->info->label_positive)
            return drps_err_set(err, DRPS_E_FORMAT,
                                "a test sample has the label %g; training has only %g and %g",
                                (double)test->values[i], (double)r->info->label_negative,
                                (double)r->info->label_positive);
    return 0;
}

/* Whole numbers may be classes; others are hardly meant so. */
static int check_number_classes(const struct index_run *r, const float *numbers, size_t n,
                                struct drps_err *err)
{
    size_t i = 0;
    while (i < n && numbers[i] == floorf(numbers[i]))
        i++;
    if (i == n || !r->layers.n) return 0;
    return drps_err_set(err, DRPS_E_FORMAT,
                        "labels are %zu numbers, such as %g, and a net with `full classes` takes "
                        "each for a class: for numbers choose the task regression, or write `full "
                        "1` into a net of your own; for classes take names, or whole numbers",
                        n, (double)numbers[i]);
}

/* Classes whose names are numbers: two of them are labels like any others. */
static int settle_number_classes(struct index_run *r, struct drps_err *err)
{
    struct read_samples *p = &r->parsed;
    const size_t n = drps_classes_count(p->classes);
    float *numbers = drps_array_new(n, sizeof(*numbers));
    if (!numbers) return no_memory(n, err);
    for (size_t i = 0; i < n; i++) {
        numbers[i] = drps_reader_label_number(drps_classes_name(p->classes, i));
        const struct label_set one = {1, {numbers[i]}, {p->in_training[i]}};
        const int trained = drps_exact_value(&p->in_training[i]) > 0;
        drps_label_set_merge(trained ? &p->labels : &p->test_labels, &one);
    }
    if (p->labels.n > 2) {
        const int rc = check_number_classes(r, numbers, n, err);
        free(numbers);
        return rc < 0 ? rc : settle_classes(r, err);
    }
    r->label_of = numbers; /* moved */
    return settle_numbers(r, err);
}

static int settle_labels(struct index_run *r, struct drps_err *err)
{
    if (!r->parsed.classes) return r->base ? drps_run_take_labels(r, err) : settle_numbers(r, err);
    return r->parsed.read_as == DRPS_READER_NUMBERS ? settle_number_classes(r, err)
                                                    : settle_classes(r, err);
}

/* How many fields there are is how many times the factors a row has. */
static int settle_fields(struct index_run *r, struct drps_err *err)
{
    struct drps_plan_info *info = r->info;
    if (!drps_algorithm_has_fields(drps_algorithm_find(r->options.algo))) return 0;
    info->field_count = r->parsed.field_count ? r->parsed.field_count : 1;
    int rc = r->base ? drps_run_take_fields(r, err) : 0;
    if (rc == 0)
        rc = drps_algorithm_check_hashing(r->options.algorithm, &info->hashing, info->field_count,
                                          err);
    if (rc < 0) return rc;
    info->dim = drps_algorithm_field_dim(info->factors, info->field_count);
    if (!info->dim)
        return drps_err_set(err, DRPS_E_CONFIG,
                            "%u fields of %u factors are more than the %d numbers that a row may "
                            "have: use fewer factors, or number fields from 0 without gaps",
                            info->field_count, info->factors, DRPS_DIM_MAX);
    info->row_bytes = info->dim * sizeof(float) * 2;
    return 0;
}

/* The plan has the text, and says which of the other losses it is. */
static int settle_text(struct index_run *r, struct drps_err *err)
{
    struct drps_plan_info *info = r->info;
    struct drps_expr e;
    int rc = drps_expr_parse(&e, r->options.loss, r->options.outputs > 0, err);
    if (rc < 0) return rc;
    const enum drps_loss loss = drps_algorithm_text_loss(&e, drps_plan_label_classes(info));
    (void)snprintf(info->loss, sizeof(info->loss), "%s", drps_loss_name(loss));
    (void)snprintf(info->expression, sizeof(info->expression), "%s", e.text);
    return 0;
}

static int settle_loss(struct index_run *r, struct drps_err *err)
{
    if (drps_algorithm_has_text(r->options.algorithm)) return settle_text(r, err);
    const struct drps_algorithm *a = r->options.algorithm;
    const int classes = drps_plan_label_classes(r->info);
    enum drps_loss loss = drps_algorithm_loss(a, classes);
    const char *name = r->options.loss ? r->options.loss : drps_loss_name(loss);
    const int fits = drps_loss_find(name, &loss) && drps_algorithm_has_loss(a, loss) &&
                     drps_loss_is_classification(loss) == r->info->classification &&
                     (!drps_algorithm_is_net(a) || (loss == DRPS_LOSS_SOFTMAX) == (classes > 1));
    if (!fits)
        return drps_err_set(err, DRPS_E_CONFIG,
                            "the loss %s does not fit the algorithm %s with these labels", name,
                            a->name);
    (void)snprintf(r->info->loss, sizeof(r->info->loss), "%s", name);
    return 0;
}

/* ---- Batch size ---- */

/* Text that runs on is cut to a length, which plans of other text have, too; of lines the longest
 * one counts. */
static void settle_sequences(struct index_run *r)
{
    const struct drps_reader_options *o = &r->options.reader;
    if (!r->parsed.sequences) return;
    r->info->sequences = (struct drps_plan_sequences){.most = r->parsed.longest, .lines = 1};
    if (!o->sequence_lines) r->info->sequences = (struct drps_plan_sequences){.most = o->sequence};
}

/* Batches have whole sequences, so many of a usual length. Behind these is room for the longest,
 * as a batch ends where that might not fit: else a single long line makes all batches small. */
static uint64_t batch_of_sequences(const struct index_run *r)
{
    enum { USUAL = 20 };
    const struct read_samples *p = &r->parsed;
    const struct drps_plan_sequences *s = &r->info->sequences;
    const uint64_t length = s->lines ? (p->samples - 1) / p->sequences + 1 : s->most;
    return (USUAL - 1) * length + s->most;
}

static int check_batch_size(const struct index_run *r, struct drps_err *err)
{
    const struct drps_plan_sequences *s = &r->info->sequences;
    const uint64_t size = r->info->batch_size;
    if (size >= s->most) return 0;
    return drps_err_set(err, DRPS_E_CONFIG,
                        "batches of %llu samples, and a sequence has up to %u, which stay "
                        "together: use batches of %u samples or more%s",
                        (unsigned long long)size, s->most, s->most,
                        s->lines ? "" : ", or shorter sequences");
}

static int choose_batch_size(struct index_run *r, struct drps_err *err)
{
    double percent = r->options.batch_percent > 0 ? r->options.batch_percent : 0.01;
    uint64_t size = r->options.batch_size;
    const uint64_t sequence = r->info->sequences.most;
    if (!size && sequence && !(r->options.batch_percent > 0)) size = batch_of_sequences(r);
    if (!size) {
        size = (uint64_t)((double)r->info->samples * percent / 100);
        if (size < MIN_BATCH) size = MIN_BATCH;
        if (size < sequence) size = sequence;
    }
    r->info->batch_size = size;
    int rc = check_batch_size(r, err);
    if (rc < 0) return rc;
    /* Indexes of the record files: 16 bytes a batch, two at a time, doubling as they grow. */
    enum { STEP_BYTES = 96 };
    const uint64_t draws = r->options.implicit.draws ? r->options.implicit.draws : 1;
    const uint64_t least = sequence ? size - sequence + 1 : size; /* samples of a batch */
    uint64_t steps = (r->info->samples * draws + r->info->test_samples) / least + 2;
    if (steps * STEP_BYTES <= r->options.memory_bytes / 2) return 0;
    return drps_err_set(err, DRPS_E_MEMORY_BUDGET,
                        "%llu batches of %llu samples are too many for the memory limit: use "
                        "larger batches, or a limit of %llu MiB",
                        (unsigned long long)steps, (unsigned long long)size,
                        (unsigned long long)(steps * STEP_BYTES * 2 >> 20) + 1);
}

/* ---- The phase ---- */

/* Where several machines read, adds up what each has read: from here on the numbers of samples, the
 * labels and the classes are those of all machines. */
static int read_of_all(struct index_run *r, struct drps_err *err)
{
    r->own_classes = drps_classes_count(r->parsed.classes);
    r->train_of = drps_array_new(r->parts_n, sizeof(*r->train_of));
    r->test_of = drps_array_new(r->parts_n, sizeof(*r->test_of));
    if (!r->train_of || !r->test_of)
        return drps_err_set(err, -ENOMEM, "no memory for %u ranks", r->parts_n);
    int rc = drps_together_read(r->options.ranks, &r->parsed, &r->class_of, r->train_of, r->test_of,
                                err);
    for (uint32_t i = 0; i < r->parts_n && rc == 0 && !r->options.ranks->rank; i++)
        if (!r->train_of[i] && strcmp(r->options.samples, "kept") == 0)
            drps_log(r->options.log, DRPS_LOG_WARN,
                     "rank %u has read no training sample, so that its worker only waits for the "
                     "others: give it files, or have samples dealt",
                     i);
    return rc;
}

/* Where several machines make the plan, says how many bytes this one will send to the others. */
static int forecast_sent(struct index_run *r, struct drps_err *err)
{
    const struct together_forecast f = {.dict = r->parsed.dict,
                                        .train_of = r->train_of,
                                        .test_of = r->test_of,
                                        .nnz = r->parsed.nnz + r->parsed.test_nnz,
                                        .batch_size = r->info->batch_size,
                                        .kept = drps_run_places_samples(&r->options),
                                        .homes = drps_placement_renumbers(r->options.partition),
                                        .seed = r->info->seed};
    struct swap_ranks *ranks = r->options.ranks;
    char size[32];
    int rc = drps_together_forecast(ranks, &f, &ranks->forecast_bytes, err);
    if (rc < 0 || !ranks->forecast_bytes) return rc;
    ranks->forecast_bytes += ranks->sent_bytes;
    drps_log(r->options.log, DRPS_LOG_INFO,
             "rank %u will send about %s to the others while the plan is made", ranks->rank,
             drps_size_format(ranks->forecast_bytes, size, sizeof(size)));
    return 0;
}

int drps_phase_parse(struct index_run *r, struct drps_err *err)
{
    struct drps_plan_info *info = r->info;
    struct read_samples *p = &r->parsed;

    int rc = drps_read_samples(r->io, &r->progress, r->scratch, p, err);
    if (rc == 0 && r->options.ranks) rc = read_of_all(r, err);
    if (rc < 0) return rc;
    if (!p->samples && p->below)
        return drps_err_set(err, DRPS_E_FORMAT,
                            "no training sample is a choice: the ratings of all %llu lines are too "
                            "small",
                            (unsigned long long)p->below);
    if (!p->samples && r->options.reader.sequence_lines)
        return drps_err_set(err, DRPS_E_FORMAT,
                            "no line of the training text has two tokens, and so there is no token "
                            "that follows: give lines of two tokens or more");
    if (!p->samples)
        return drps_err_set(
            err, DRPS_E_FORMAT, "the input holds no %ssample%s: nothing to train on",
            p->test_samples ? "training " : "", p->weightless ? " of a weight above 0" : "");
    if (r->options.tests_n && !p->test_samples)
        return drps_err_set(err, DRPS_E_FORMAT, "the test input holds no sample");
    rc = settle_labels(r, err);
    if (rc == 0) rc = settle_loss(r, err);
    if (rc == 0) rc = drps_run_weigh_classes(r, err);
    if (rc == 0) rc = number_own_classes(r, err);
    if (rc == 0) rc = settle_fields(r, err);
    if (rc == 0) rc = drps_run_settle_net(r, err);
    if (rc == 0 && r->base) rc = drps_run_check_dim(r, err);
    if (rc < 0) return rc;
    settle_sequences(r);
    info->samples = p->samples;
    info->test_samples = p->test_samples;
    info->nnz = p->nnz;
    info->string_names = p->string_names && !info->hashing.bits && !info->numbers;
    info->fields_n = p->fields_n;
    memcpy(info->label_column, p->label_column, sizeof(info->label_column));
    info->separator = strcmp(p->format, "csv") == 0 ? r->options.reader.csv_separator : '\0';
    info->headless = p->headless;
    r->fields = p->fields; /* moved */
    r->fields_n = p->fields_n;
    p->fields = NULL;
    (void)snprintf(info->format, sizeof(info->format), "%s", p->format);
    r->result->input_bytes = p->bytes;
    r->result->input_lines = p->lines;
    r->result->skipped_lines = p->skipped;
    r->result->weightless = p->weightless;
    r->result->replayed = p->replayed;
    info->negatives.below = p->below;
    rc = choose_batch_size(r, err);
    return rc == 0 && r->options.ranks ? forecast_sent(r, err) : rc;
}
