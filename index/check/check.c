/* The walk over a plan's batches, and the sentences on what was found (drps_check.h). */
#include "index/check/drps_check.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"
#include "index/check/check_internal.h"
#include "index/plan/drps_names.h"
#include "index/walk/drps_walk.h"

enum { NAME_BYTES = 128 };
static const double COPIES_TELL = 0.01; /* of test samples: fewer are not worth a word */
static const double COPIES_MANY = 0.5, IN_STEP = 0.8;
static const double MORE_THAN_CHANCE = 1.5;

struct walk {
    const struct drps_plan *plan;
    struct drps_walk batches; /* own */
    struct drps_label_sums labels;
    struct features features;
    struct copies copies;
    uint64_t samples, test_samples; /* seen in the first slice */
};

/* ---- Batches ---- */

static int walk_tests(struct walk *w, struct drps_err *err)
{
    const struct drps_plan_info *info = &w->plan->info;
    const uint32_t *rows;
    struct drps_batch b;
    int rc = 0;
    for (uint64_t s = 0; s < info->eval_batches && rc == 0; s++) {
        rc = drps_walk_read(&w->batches, info->batches + s, &b, &rows, err);
        if (rc == 0) rc = copies_add(&w->copies, &b, rows, err);
        if (rc == 0 && !w->copies.slice) w->test_samples += b.samples;
    }
    return rc;
}

static void add_labels(struct walk *w, const struct drps_batch *b)
{
    for (size_t i = 0; i < b->samples; i++)
        drps_label_sums_add(&w->labels, 0, b->labels[i], 1);
}

/* `counts_labels`: in the first slice alone. */
static int walk_training(struct walk *w, int counts_labels, int of_features, struct drps_err *err)
{
    const struct drps_plan_info *info = &w->plan->info;
    const uint32_t *rows;
    struct drps_batch b;
    int rc = 0;
    for (uint64_t s = 0; s < info->batches && rc == 0; s++) {
        rc = drps_walk_read(&w->batches, s, &b, &rows, err);
        if (rc < 0) break;
        if (counts_labels) add_labels(w, &b);
        w->samples += counts_labels ? b.samples : 0;
        if (of_features) features_add(&w->features, &b, rows);
        if (info->test_samples) copies_look(&w->copies, &b, rows);
    }
    return rc;
}

/* ---- Slices ---- */

static uint64_t slices_of(uint64_t bytes, uint64_t room)
{
    return bytes ? (bytes - 1) / room + 1 : 1;
}

static int walk_slice(struct walk *w, uint32_t slice, uint32_t slices, int of_features,
                      struct drps_err *err)
{
    const struct drps_plan_info *info = &w->plan->info;
    const uint64_t size = (info->rows + slices - 1) / slices, first = slice * size;
    const uint64_t end = first + size < info->rows ? first + size : info->rows;
    int rc = copies_begin(&w->copies, slice, slices, info->test_samples, err);
    if (rc == 0 && of_features)
        rc = features_begin(&w->features, first < end ? first : end, end, err);
    if (rc == 0) rc = walk_tests(w, err);
    if (rc == 0) rc = walk_training(w, !slice, of_features, err);
    if (rc == 0 && (w->samples != info->samples || w->test_samples != info->test_samples))
        rc = drps_err_set(err, DRPS_E_CORRUPT, "%s has other samples than its plan.json says",
                          w->plan->dir);
    if (rc < 0) return rc;
    drps_label_sums_settle(&w->labels);
    if (of_features) features_end(&w->features, &w->labels);
    copies_end(&w->copies);
    return 0;
}

static int walk_all(struct walk *w, uint64_t memory_bytes, struct drps_check *out,
                    struct drps_err *err)
{
    const struct drps_plan_info *info = &w->plan->info;
    const uint64_t rows = out->of_features ? info->rows * features_row_bytes() : 0;
    const uint64_t of_rows = slices_of(rows, memory_bytes / 2 + 1);
    const uint64_t of_tests = slices_of(copies_bytes(info->test_samples), memory_bytes / 2 + 1);
    const uint64_t slices = of_rows > of_tests ? of_rows : of_tests;
    int rc = 0;
    w->copies.early = info->test_samples;
    for (uint64_t i = 0; i < slices && rc == 0; i++)
        rc = walk_slice(w, (uint32_t)i, (uint32_t)slices, out->of_features, err);
    out->passes = (unsigned)slices;
    return rc;
}

static int walk_open(struct walk *w, const struct drps_plan *plan, struct drps_err *err)
{
    const struct drps_plan_info *info = &plan->info;
    enum drps_loss loss = DRPS_LOSS_CODING;
    (void)drps_loss_find(info->loss, &loss);
    *w = (struct walk){.plan = plan};
    int rc = drps_label_sums_init(&w->labels, loss, drps_classes_count(info->classes), err);
    if (rc == 0) rc = features_init(&w->features, info, err);
    return rc == 0 ? drps_walk_open(&w->batches, plan, err) : rc;
}

static void walk_close(struct walk *w)
{
    drps_walk_close(&w->batches);
    drps_label_sums_destroy(&w->labels);
    features_free(&w->features);
    copies_free(&w->copies);
}

/* ---- Names ---- */

struct naming {
    const struct drps_plan *plan;
    uint32_t row;
    char *out; /* [NAME_BYTES] */
};

static int note_name(void *ctx, uint64_t key, uint32_t row, unsigned field, const char *text,
                     size_t bytes, struct drps_err *err)
{
    const struct naming *n = ctx;
    const struct drps_plan_info *info = &n->plan->info;
    const char *of = text && field < info->fields_n ? n->plan->fields[field] : "";
    (void)err;
    if (row != n->row) return 0;
    if (text)
        (void)snprintf(n->out, NAME_BYTES, "%s%s%.*s", of, *of && bytes ? "=" : "",
                       (int)(bytes < NAME_BYTES ? bytes : NAME_BYTES), text);
    else
        (void)snprintf(n->out, NAME_BYTES, "%llu", (unsigned long long)key);
    return 1;
}

/* Writes the name of a row's feature. */
static int name_row(const struct drps_plan *plan, uint64_t row, char out[NAME_BYTES],
                    struct drps_err *err)
{
    struct naming n = {.plan = plan, .row = (uint32_t)row, .out = out};
    struct drps_names *names;
    (void)snprintf(out, NAME_BYTES, "of row %llu", (unsigned long long)row);
    int rc = drps_names_open(plan->io, plan->dir, &names, err);
    if (rc == 0) rc = drps_names_scan(names, note_name, &n, err);
    drps_names_close(names);
    return rc < 0 ? rc : 0;
}

/* ---- Sentences ---- */

static int remark_constants(const struct walk *w, struct drps_check *c, const struct drps_log *log,
                            struct drps_err *err)
{
    char name[NAME_BYTES];
    if (!c->constants) return 0;
    int rc = name_row(w->plan, w->features.first_constant, name, err);
    if (rc == 0 && c->constants == 1)
        drps_remark(&c->remarks, log,
                    "feature %s is the same in every training sample: nothing can be learnt from "
                    "it; leave it out",
                    name);
    else if (rc == 0)
        drps_remark(&c->remarks, log,
                    "%llu features are the same in every training sample, first feature %s: "
                    "nothing can be learnt from them; leave them out",
                    (unsigned long long)c->constants, name);
    return rc;
}

static int remark_deciding(const struct walk *w, struct drps_check *c, const struct drps_log *log,
                           struct drps_err *err)
{
    char name[NAME_BYTES], others[64] = "", right[64] = "";
    if (!c->deciding) return 0;
    int rc = name_row(w->plan, w->features.best, name, err);
    if (rc < 0) return rc;
    if (c->deciding > 1)
        (void)snprintf(others, sizeof(others), " (%llu more do, too)",
                       (unsigned long long)c->deciding - 1);
    if (w->plan->info.classification && c->wrong)
        (void)snprintf(right, sizeof(right), ", but for %llu of %llu samples",
                       (unsigned long long)c->wrong, (unsigned long long)c->samples);
    else if (w->plan->info.classification)
        (void)snprintf(right, sizeof(right), " of all %llu samples",
                       (unsigned long long)c->samples);
    drps_remark(&c->remarks, log,
                "feature %s alone decides the label%s%s: it may be made of the label, and will not "
                "be there when the model is used; leave it out unless it is known before the label",
                name, right, others);
    return 0;
}

/* Copies that are more than what few features bring about: test samples were taken from training,
 * or most samples are there twice, so that copies grow with the number of training samples. Where
 * they are alike by chance, more training samples bring few more. */
static int are_too_many(const struct drps_check *c)
{
    const double n = (double)c->test_samples, few = (double)c->copies_of_few;
    const double all = (double)c->copies, times = (double)c->samples / n;
    if (all < COPIES_TELL * n) return 0;
    if (few > MORE_THAN_CHANCE * (double)c->copies_in_test) return 1;
    return all > COPIES_MANY * n && all > MORE_THAN_CHANCE * few && all > IN_STEP * times * few;
}

static void remark_copies(struct drps_check *c, const struct drps_log *log)
{
    if (!c->test_samples || !are_too_many(c)) return;
    drps_remark(&c->remarks, log,
                "%llu of %llu test samples (%.1f %%) are in training, too, with the same features "
                "and label: test losses will be too good; take them out of one of both",
                (unsigned long long)c->copies, (unsigned long long)c->test_samples,
                100 * (double)c->copies / (double)c->test_samples);
}

static int finish(const struct walk *w, struct drps_check *out, const struct drps_log *log,
                  struct drps_err *err)
{
    out->constants = w->features.constants;
    out->deciding = features_deciding(&w->features);
    out->wrong = out->deciding ? w->features.wrong : 0;
    out->copies = w->copies.copies;
    out->copies_of_few = w->copies.copies_of_few;
    out->copies_in_test = w->copies.copies_in_test;
    int rc = remark_constants(w, out, log, err);
    if (rc == 0) rc = remark_deciding(w, out, log, err);
    if (rc == 0) remark_copies(out, log);
    return rc;
}

int drps_check_plan(const struct drps_plan *plan, uint64_t memory_bytes, const struct drps_log *log,
                    struct drps_check *out, struct drps_err *err)
{
    const struct drps_plan_info *info = &plan->info;
    const struct drps_algorithm *a = drps_plan_algorithm(info);
    struct walk w;
    *out = (struct drps_check){.samples = info->samples, .test_samples = info->test_samples};
    if (drps_plan_shape(info) != DRPS_PLAN_ONE)
        return drps_err_set(err, DRPS_E_CONFIG,
                            "%s is dealt to several workers: check the plan for one that it is "
                            "made of",
                            plan->dir);
    out->of_features =
        a && !info->numbers && !drps_algorithm_rates(a) && !drps_algorithm_has_sample_rows(a);
    int rc = walk_open(&w, plan, err);
    if (rc == 0) rc = walk_all(&w, memory_bytes ? memory_bytes : DRPS_CHECK_MEMORY, out, err);
    if (rc == 0) rc = finish(&w, out, log, err);
    walk_close(&w);
    return rc;
}
