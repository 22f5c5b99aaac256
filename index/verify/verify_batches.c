/* Batches: bodies by themselves, and against the row lists that they index. */
#include "index/verify/verify.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"
#include "index/plan/drps_algorithm.h"
#include "index/plan/drps_batch.h"

/* ---- A body by itself ---- */

int drps_verify_bodies_open(struct verify *v, struct verify_bodies *b, struct drps_err *err)
{
    b->plain = drps_array_new((size_t)v->info->max_body_bytes, 1);
    if (!b->plain)
        return drps_err_set(err, -ENOMEM, "no memory for a batch of %" PRIu64 " bytes",
                            v->info->max_body_bytes);
    return drps_verify_open(v, DRPS_FILE_DATA, &b->file, err);
}

void drps_verify_bodies_close(struct verify_bodies *b)
{
    drps_steps_close(b->file);
    free(b->plain);
    free(b->used);
}

static int all_finite(const float *x, size_t n)
{
    int finite = 1;
    for (size_t i = 0; i < n; i++)
        finite &= isfinite(x[i]) != 0;
    return finite;
}

static int numbers_are_finite(const struct drps_batch *b)
{
    const struct drps_dense *d = &b->numbers;
    if (d->floats) return all_finite(d->floats, b->samples * (size_t)d->each);
    return all_finite(d->levels, d->levels_n);
}

static int labels_fit(const struct drps_plan_info *info, const struct drps_batch *b)
{
    const float classes = (float)drps_classes_count(info->classes); /* of nets not the dim */
    if (!info->classification) return all_finite(b->labels, b->samples);
    for (size_t i = 0; info->classes && i < b->samples; i++)
        if (!(b->labels[i] >= 0) || b->labels[i] >= classes ||
            b->labels[i] != (float)(uint32_t)b->labels[i])
            return 0;
    for (size_t i = 0; !info->classes && i < b->samples; i++)
        if (b->labels[i] != 1 && b->labels[i] != -1) return 0;
    return 1;
}

/* A sample's entries are in the order of their rows. */
static int entries_are_sorted(const struct drps_batch *b)
{
    for (size_t s = 0; s < b->samples; s++)
        for (size_t j = drps_batch_start(b, s) + 1; j < drps_batch_start(b, s + 1); j++)
            if (drps_batch_local(b, j) < drps_batch_local(b, j - 1)) return 0;
    return 1;
}

/* Every row has an entry, but for those that all batches have, which are the first and have none.
 */
static int check_used(const struct drps_plan_info *info, struct verify_bodies *v,
                      const struct drps_batch *b, struct drps_err *err)
{
    const size_t fixed = b->rows ? drps_plan_common_rows(info) : 0;
    if (b->hand_over && drps_plan_circulates(info)) return 0;
    if (b->rows > b->nnz + fixed)
        return drps_err_set(err, DRPS_E_CORRUPT, "%zu rows, but %zu entries", b->rows, b->nnz);
    if (drps_array_reserve(&v->used, &v->used_cap, b->rows + 1, 1))
        return drps_err_set(err, -ENOMEM, "no memory for %zu rows", b->rows);
    memset(v->used, 0, b->rows + 1);
    for (size_t j = 0; j < b->nnz; j++)
        v->used[drps_batch_local(b, j)] = 1;
    for (size_t i = fixed; i < b->rows; i++)
        if (!v->used[i])
            return drps_err_set(err, DRPS_E_CORRUPT, "no entry has row %zu of its %zu", i, b->rows);
    for (size_t i = 0; i < fixed && i < b->rows; i++)
        if (v->used[i])
            return drps_err_set(err, DRPS_E_CORRUPT, "an entry has row %zu, which all batches have",
                                i);
    return 0;
}

/* A training sample has one row of its own, which no other has, where the algorithm has such; a
 * held-out one has none. */
static int check_sample_rows(const struct drps_plan_info *info, struct verify_bodies *v,
                             const struct drps_batch *b, int eval, struct drps_err *err)
{
    const struct drps_algorithm *a = drps_plan_algorithm(info);
    if (!a || !drps_algorithm_has_sample_rows(a)) return 0;
    if (drps_array_reserve(&v->used, &v->used_cap, b->rows + 1, 1))
        return drps_err_set(err, -ENOMEM, "no memory for %zu rows", b->rows);
    memset(v->used, 0, b->rows + 1);
    for (size_t s = 0; s < b->samples; s++) {
        size_t own = 0;
        for (size_t j = drps_batch_start(b, s); j < drps_batch_start(b, s + 1); j++)
            own += drps_batch_value(b, j) == 0;
        if (own != (eval ? 0 : 1))
            return drps_err_set(err, DRPS_E_CORRUPT, "sample %zu has %zu rows of its own", s, own);
        if (eval) continue;
        const size_t row = drps_batch_sample_row(b, s);
        if (v->used[row]++)
            return drps_err_set(err, DRPS_E_CORRUPT, "sample %zu has the own row of another", s);
    }
    for (size_t j = 0; j < b->nnz; j++)
        if (v->used[drps_batch_local(b, j)] && drps_batch_value(b, j) != 0)
            return drps_err_set(err, DRPS_E_CORRUPT, "a sample's own row is a feature's, too");
    return 0;
}

/* Checks that each sample has one user, one item that was chosen, and numbered items drawn against
 * it. */
static int roles_fit(const struct drps_batch *b)
{
    for (size_t s = 0; s < b->samples; s++) {
        const size_t start = drps_batch_start(b, s), n = drps_batch_start(b, s + 1) - start;
        unsigned char seen[DRPS_ROLE_NEGATIVE + DRPS_NEGATIVES_MOST] = {0};
        if (n <= DRPS_ROLE_NEGATIVE || n > sizeof(seen) || !b->fields) return 0;
        for (size_t j = start; j < start + n; j++)
            if (b->fields[j] >= n || seen[b->fields[j]]++) return 0;
    }
    return 1;
}

static int check_body(const struct drps_plan_info *info, struct verify_bodies *v,
                      const struct drps_batch *b, int eval, struct drps_err *err)
{
    if (!labels_fit(info, b))
        return drps_err_set(err, DRPS_E_CORRUPT, "a label is %s",
                            info->classes          ? "no class"
                            : info->classification ? "neither -1 nor 1"
                                                   : "no number");
    if (b->weights && !(info->weights.most > 0))
        return drps_err_set(err, DRPS_E_CORRUPT, "weights in a plan without");
    if (b->nnz && b->field_count != drps_plan_entry_fields(info))
        return drps_err_set(err, DRPS_E_CORRUPT, "entries of %u fields, where the plan has %u",
                            b->field_count, drps_plan_entry_fields(info));
    if (b->samples && b->numbers.each != drps_plan_numbers_each(info))
        return drps_err_set(err, DRPS_E_CORRUPT, "samples of %u numbers, where the plan has %u",
                            b->numbers.each, drps_plan_numbers_each(info));
    if (!numbers_are_finite(b))
        return drps_err_set(err, DRPS_E_CORRUPT, "a number of a sample is none");
    if (info->negatives.each && !roles_fit(b))
        return drps_err_set(err, DRPS_E_CORRUPT,
                            "a sample is not a user, an item and what is drawn against it");
    if (b->values && !all_finite(b->values, b->nnz))
        return drps_err_set(err, DRPS_E_CORRUPT, "a value is no number");
    int rc = check_sample_rows(info, v, b, eval, err);
    if (rc < 0) return rc;
    if (!entries_are_sorted(b))
        return drps_err_set(err, DRPS_E_CORRUPT, "entries that are not in the order of their rows");
    if (b->stratum && !info->lanes)
        return drps_err_set(err, DRPS_E_CORRUPT, "stratum %" PRIu32 " in a plan without lanes",
                            b->stratum);
    return check_used(info, v, b, err);
}

static void raise(uint64_t *most, uint64_t value)
{
    if (value > *most) *most = value;
}

static void add_to_sums(struct verify_sums *s, const struct drps_batch *b, size_t bytes, int eval)
{
    *(eval ? &s->eval_samples : &s->samples) += b->samples;
    *(eval ? &s->eval_entries : &s->entries) += b->nnz;
    raise(&s->max_samples, b->samples);
    raise(&s->max_rows, b->rows);
    raise(&s->max_entries, b->nnz);
    raise(&s->max_body_bytes, bytes);
    for (size_t i = 0; i < b->samples; i++) {
        const double weight = b->weights ? (double)b->weights[i] : 1;
        *(eval ? &s->eval_weight : &s->weight) += weight;
        if (!eval && weight > s->most_weight) s->most_weight = weight;
    }
}

int drps_verify_body(struct verify *v, struct verify_bodies *bodies, uint64_t step,
                     size_t *rows_out, struct drps_err *err)
{
    struct drps_batch b;
    const void *record;
    size_t bytes;
    int rc = drps_steps_record(bodies->file, step, &record, &bytes, err);
    if (rc < 0) return rc;
    rc = drps_batch_unpack(record, bytes, bodies->plain, (size_t)v->info->max_body_bytes, &bytes,
                           err);
    if (rc == 0) rc = drps_batch_decode_unpacked(bodies->plain, bytes, &b, err);
    if (rc == 0) rc = check_body(v->info, bodies, &b, step >= v->info->batches, err);
    if (rc < 0) return drps_steps_fault(bodies->file, step, err);
    add_to_sums(&v->sums, &b, bytes, step >= v->info->batches);
    *rows_out = b.rows;
    return 0;
}

/* ---- Against the row lists ---- */

static int check_step(struct verify *v, struct verify_bodies *bodies, struct steps *lists,
                      uint64_t step, struct drps_err *err)
{
    const uint32_t *list;
    size_t rows, n;
    int rc = drps_verify_body(v, bodies, step, &rows, err);
    if (rc == 0) rc = drps_steps_rows(lists, step, v->info->rows, &list, &n, err);
    if (rc < 0) return rc;
    if (rows != n)
        (void)drps_err_set(err, DRPS_E_CORRUPT,
                           "%zu rows, but the batch in " DRPS_FILE_DATA " has %zu", n, rows);
    else if (drps_plan_check_list(v->info, list, n, n ? drps_plan_common_rows(v->info) : 0, err) ==
             0)
        return 0;
    return drps_steps_fault(lists, step, err);
}

/* Sums of weights differ in their last digits by the order in which they were made. */
static void check_weights(struct verify *v, const struct verify_sums *s)
{
    const struct drps_plan_weights *w = &v->info->weights;
    enum { DIGITS = 1000000000 };
    if (!(w->most > 0) ||
        (s->most_weight == w->most && fabs(s->weight - w->sum) <= w->sum / DIGITS &&
         fabs(s->eval_weight - w->test_sum) <= w->test_sum / DIGITS))
        return;
    drps_findings_add(v->found,
                      "%s/" DRPS_FILE_MANIFEST
                      ": weights sum to %.9g, of evaluation to %.9g, and are %.9g at most; the "
                      "files have %.9g, %.9g and %.9g",
                      v->plan->dir, w->sum, w->test_sum, w->most, s->weight, s->eval_weight,
                      s->most_weight);
}

void drps_verify_sums(struct verify *v, const struct verify_sums *s)
{
    const struct drps_plan_info *i = v->info;
    const struct verify_number numbers[] = {
        {"samples", s->samples, i->samples, 0},
        {"test_samples", s->eval_samples, i->test_samples, 0},
        {"nnz", s->entries, i->nnz, 0},
        {"test_nnz", s->eval_entries, i->test_nnz, 0},
        {"max_batch_samples", s->max_samples, i->max_batch_samples, 0},
        {"max_batch_rows", s->max_rows, i->max_batch_rows, 0},
        {"max_batch_nnz", s->max_entries, i->max_batch_nnz, 0},
        {"max_body_bytes", s->max_body_bytes, i->max_body_bytes, 0},
    };
    drps_verify_numbers(v, numbers, sizeof(numbers) / sizeof(*numbers));
    check_weights(v, s);
}

int drps_verify_batches(struct verify *v, struct drps_err *err)
{
    const uint64_t before = v->found->problems;
    struct verify_bodies bodies = {0};
    struct steps *lists = NULL;
    int rc = drps_verify_bodies_open(v, &bodies, err);
    if (rc == 0) rc = drps_verify_open(v, DRPS_FILE_ROWS, &lists, err);
    for (uint64_t s = 0; s < v->steps && rc == 0; s++) {
        rc = drps_findings_take(v->found, check_step(v, &bodies, lists, s, err), err);
        drps_verify_reach(v, s + 1, v->steps);
    }
    const int all = drps_plan_shape(v->info) == DRPS_PLAN_ONE; /* else the ranks' are added up */
    if (rc == 0 && all && v->found->problems == before) drps_verify_sums(v, &v->sums);
    drps_verify_bodies_close(&bodies);
    drps_steps_close(lists);
    return rc;
}
