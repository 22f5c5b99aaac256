/*
 * Pieces of samples from a matrix: some thousands of rows at a time, copied into the arrays that
 * text is parsed into. What follows (merging, classes, weights) is shared with the formats.
 */

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"
#include "index/plan/codec/drps_dense.h"
#include "index/plan/drps_algorithm.h"
#include "index/reader/matrix/drps_matrix_rows.h"
#include "index/reader/drps_parse.h"

enum {
    PIECE_SAMPLES = 1 << 14,
    PIECE_SHARE = 4,   /* of the memory that a piece takes at most */
    NUMBER_BYTES = 24, /* of a number as text */
};

static int is_ratings(const struct drps_reader *r)
{
    return r->format == &drps_format_ratings;
}

/* How many fields there may be. Those of numbers by place are as many as the numbers; whether it is
 * these is known once the fields were looked at. */
static int64_t fields_most(const struct drps_reader *r)
{
    const int dense = r->options.one_feature && r->options.numbers != DRPS_READER_SPARSE;
    return dense ? (int64_t)DRPS_DENSE_MOST : (int64_t)DRPS_FIELD_MAX + 1;
}

/* The field of a column; 0 where there are none. */
static int take_field(const struct drps_reader *r, uint64_t column, uint32_t *field_out,
                      struct drps_err *err)
{
    const struct drps_array *fields = &r->options.matrix->fields;
    const int64_t field = fields->data ? drps_array_integer(fields, column) : 0;
    *field_out = (uint32_t)field;
    if (field >= 0 && field < fields_most(r)) return 0;
    return drps_err_set(
        err, DRPS_E_FORMAT, "the matrix: column %llu has field %lld; fields are from 0 to %lld",
        (unsigned long long)column, (long long)field, (long long)fields_most(r) - 1);
}

/* Fields of all columns count, although the last ones may have no entry. */
static int count_fields(struct drps_reader *r, struct drps_err *err)
{
    const struct drps_matrix *m = r->options.matrix;
    uint32_t field;
    for (uint64_t column = 0; m->fields.data && column < m->columns; column++) {
        const int rc = take_field(r, column, &field, err);
        if (rc < 0) return rc;
        if (field >= r->field_count) r->field_count = field + 1u;
    }
    return 0;
}

int drps_matrix_source_open(struct drps_reader *r, struct drps_err *err)
{
    const struct drps_matrix *m = r->options.matrix;
    int rc = drps_matrix_check(m, err);
    if (rc < 0) return rc;
    if (r->options.skip_bad_lines)
        return drps_err_set(err, DRPS_E_CONFIG,
                            "a matrix has no lines that could be skipped: what is wrong is told");
    if (is_ratings(r) && (m->weights.data || m->labels.data || m->fields.data))
        return drps_err_set(err, DRPS_E_CONFIG,
                            "a matrix of ratings has users, items and ratings alone: leave out "
                            "labels, weights and fields");
    if (!is_ratings(r) && !m->labels.data && !r->options.label_optional)
        return drps_err_set(err, DRPS_E_CONFIG, "the matrix has no labels to learn from");
    return r->options.one_feature ? count_fields(r, err) : 0;
}

/* ---- Room ---- */

/* Bytes of an entry in a piece; where numbers are known by their place, of a number. */
static size_t entry_bytes(const struct drps_reader *r)
{
    const size_t feature = sizeof(uint64_t) + sizeof(float);
    if (r->numbers_each) return sizeof(float);
    if (is_ratings(r)) return 2 * (feature + sizeof(struct drps_name) + NUMBER_BYTES);
    return feature + (r->options.fields ? sizeof(uint16_t) : 0);
}

/* The rows of the next piece, and their entries. */
static int choose_rows(const struct drps_reader *r, size_t *rows_out, size_t *entries_out,
                       struct drps_err *err)
{
    const struct drps_matrix *m = r->options.matrix;
    const uint64_t most = r->options.memory_bytes / PIECE_SHARE / entry_bytes(r);
    uint64_t entries = 0, first, n;
    size_t rows = 0;
    while (rows < PIECE_SAMPLES && r->row + rows < m->samples) {
        int rc = drps_matrix_row(m, r->row + rows, &first, &n, err);
        if (rc < 0) return rc;
        if (r->numbers_each) n = r->numbers_each;
        if (entries + n > most) break;
        entries += n;
        rows++;
    }
    if (!rows && r->row < m->samples)
        return drps_err_set(err, DRPS_E_MEMORY_BUDGET,
                            "sample %llu of the matrix has %llu entries, and %llu fit: give the "
                            "reader more memory",
                            (unsigned long long)r->row, (unsigned long long)n,
                            (unsigned long long)most);
    *rows_out = rows;
    *entries_out = (size_t)entries;
    return 0;
}

static void drop_unused(const struct drps_reader *r, struct drps_samples *out)
{
    const struct drps_matrix *m = r->options.matrix;
    if (!m->weights.data) {
        free(out->weights);
        out->weights = NULL;
        out->weight_cap = 0;
    }
    if (!is_ratings(r)) {
        free(out->names);
        out->names = NULL;
        out->name_cap = 0;
    }
    if (!r->options.fields) {
        free(out->fields);
        out->fields = NULL;
        out->field_cap = 0;
    }
}

static int make_room(const struct drps_reader *r, struct drps_samples *out, size_t rows,
                     size_t entries, struct drps_err *err)
{
    const size_t samples = is_ratings(r) ? entries : rows;
    const size_t numbers = r->numbers_each ? entries : 0;
    const size_t features = is_ratings(r) ? 2 * entries : entries - numbers;
    const size_t names = is_ratings(r) ? features : 0;
    int failed = 0;
    drop_unused(r, out); /* the piece may come from another reader */
    failed |= drps_array_reserve(&out->labels, &out->label_cap, samples, sizeof(*out->labels));
    failed |= drps_array_reserve(&out->lines, &out->line_cap, samples, sizeof(*out->lines));
    failed |= drps_array_reserve(&out->starts, &out->start_cap, samples + 1, sizeof(*out->starts));
    failed |= drps_array_reserve(&out->keys, &out->key_cap, features, sizeof(*out->keys));
    failed |= drps_array_reserve(&out->values, &out->value_cap, features, sizeof(*out->values));
    failed |= drps_array_reserve(&out->numbers, &out->number_cap, numbers, sizeof(*out->numbers));
    if (r->options.matrix->weights.data)
        failed |=
            drps_array_reserve(&out->weights, &out->weight_cap, samples, sizeof(*out->weights));
    if (r->options.fields)
        failed |= drps_array_reserve(&out->fields, &out->field_cap, features, sizeof(*out->fields));
    if (names)
        failed |= drps_array_reserve(&out->names, &out->name_cap, names, sizeof(*out->names));
    if (names) failed |= drps_array_reserve(&out->made, &out->made_cap, names * NUMBER_BYTES, 1);
    return failed ? drps_err_set(err, -ENOMEM, "no memory for %zu entries of a matrix", entries)
                  : 0;
}

/* ---- Samples ---- */

static int bad_number(const struct drps_reader *r, const char *what, double value,
                      struct drps_err *err)
{
    return drps_err_set(err, DRPS_E_FORMAT,
                        "the matrix: sample %llu: the %s %g is no number that a float can hold%s",
                        (unsigned long long)r->row, what, value,
                        value < 0 && strcmp(what, "weight") == 0 ? ", or is negative" : "");
}

/* A label as the number that a text would be read as, or as the number of the class of that text.
 */
static int take_label(struct drps_reader *r, struct drps_parse *ps, float *label_out,
                      struct drps_err *err)
{
    const struct drps_array *labels = &r->options.matrix->labels;
    const double label = labels->data ? drps_array_real(labels, r->row) : 0;
    char text[NUMBER_BYTES + 8];
    *label_out = (float)label;
    if (!isfinite(*label_out)) return bad_number(r, "label", label, err);
    if (!labels->data) return 0; /* prediction */
    (void)drps_parse_names(r, 1);
    if (!drps_reads_classes(&r->options)) return 0;
    const int n =
        drps_array_has_integers(labels)
            ? snprintf(text, sizeof(text), "%lld", (long long)drps_array_integer(labels, r->row))
            : snprintf(text, sizeof(text), labels->type == DRPS_F32 ? "%.9g" : "%.17g", label);
    if (drps_parse_class(r, ps, text, text + n, label_out) == 0) return 0;
    return drps_err_set(err, DRPS_E_FORMAT, "the matrix: sample %llu: %s",
                        (unsigned long long)r->row, ps->bad_why);
}

static int take_weight(const struct drps_reader *r, struct drps_parse *ps, struct drps_err *err)
{
    const struct drps_array *weights = &r->options.matrix->weights;
    const double weight = weights->data ? drps_array_real(weights, r->row) : 1;
    ps->weight = (float)weight;
    if (!isfinite(ps->weight) || weight < 0) return bad_number(r, "weight", weight, err);
    return 0;
}

static int take_features(const struct drps_reader *r, struct drps_parse *ps, int *disorder,
                         struct drps_err *err)
{
    const struct drps_matrix *m = r->options.matrix;
    struct drps_samples *out = ps->out;
    uint64_t first, n, before = 0;
    const size_t begin = ps->nnz;
    uint32_t field = 0;
    int rc = drps_matrix_row(m, r->row, &first, &n, err);
    for (uint64_t k = first; rc == 0 && k < first + n; k++) {
        const size_t at = ps->nnz;
        rc = drps_matrix_entry(m, r->row, k, &out->keys[at], &out->values[at], err);
        if (rc == 0 && r->options.fields) rc = take_field(r, out->keys[at], &field, err);
        if (r->options.fields) out->fields[at] = (uint16_t)field;
        *disorder |= (out->keys[at] <= before) & (at != begin);
        before = out->keys[at];
        ps->nnz += out->values[at] != 0;
    }
    return rc;
}

/* Several columns of one field are added up. */
static int take_numbers(const struct drps_reader *r, struct drps_parse *ps, struct drps_err *err)
{
    const struct drps_matrix *m = r->options.matrix;
    float *numbers = drps_numbers_next(ps, r->numbers_each), value;
    uint64_t first, n, column;
    uint32_t field;
    int rc = drps_matrix_row(m, r->row, &first, &n, err);
    memset(numbers, 0, r->numbers_each * sizeof(*numbers));
    for (uint64_t k = first; rc == 0 && k < first + n; k++) {
        rc = drps_matrix_entry(m, r->row, k, &column, &value, err);
        if (rc == 0) rc = take_field(r, column, &field, err);
        if (rc == 0 && field < r->numbers_each) numbers[field] += value;
    }
    return rc;
}

static int take_sample(struct drps_reader *r, struct drps_parse *ps, struct drps_err *err)
{
    int disorder = 0;
    float label;
    int rc = r->numbers_each ? take_numbers(r, ps, err) : take_features(r, ps, &disorder, err);
    if (rc == 0) rc = take_label(r, ps, &label, err);
    if (rc == 0) rc = take_weight(r, ps, err);
    if (rc < 0) return rc;
    ps->line = r->lines + ps->ended + 1;
    if (drps_parse_sample(ps, label, disorder) == 0) return 0;
    return drps_err_set(err, DRPS_E_FORMAT, "the matrix: sample %llu: %s",
                        (unsigned long long)r->row, ps->bad_why);
}

static void name_of(struct drps_parse *ps, uint32_t field, uint64_t number)
{
    const int n = snprintf(ps->made, NUMBER_BYTES, "%llu", (unsigned long long)number);
    drps_parse_name(ps, field, ps->made, (size_t)n, 1);
    ps->made += n;
}

/* Each entry of a user's row is a sample. */
static int take_ratings(const struct drps_reader *r, struct drps_parse *ps, struct drps_err *err)
{
    const struct drps_matrix *m = r->options.matrix;
    uint64_t first, n, item;
    float rating;
    int rc = drps_matrix_row(m, r->row, &first, &n, err);
    for (uint64_t k = first; rc == 0 && k < first + n; k++) {
        rc = drps_matrix_entry(m, r->row, k, &item, &rating, err);
        if (rc < 0) break;
        name_of(ps, 0, r->row);
        name_of(ps, 1, item);
        ps->line = r->lines + ps->ended + 1;
        rc = drps_parse_sample(ps, rating, 0);
    }
    return rc;
}

static int next_piece(struct drps_reader *r, struct drps_samples *out, struct drps_err *err)
{
    struct drps_parse ps = {.out = out,
                            .seed = r->options.hash_seed,
                            .weight = 1,
                            .keep_weightless = r->options.keep_weightless};
    size_t rows = 0, entries = 0;
    int rc = choose_rows(r, &rows, &entries, err);
    if (rc == 0) rc = make_room(r, out, rows, entries, err);
    if (rc < 0) return rc;
    out->starts[0] = 0;
    out->input = 0;
    out->numbers_each = r->numbers_each;
    ps.made = out->made;
    for (size_t i = 0; i < rows && rc == 0; i++) {
        rc = is_ratings(r) ? take_ratings(r, &ps, err) : take_sample(r, &ps, err);
        r->row++;
    }
    r->weightless += ps.weightless;
    r->lines += ps.ended;
    out->all_ones = drps_all_ones(out->values, out->starts[out->n]);
    return rc;
}

int drps_matrix_source_next(struct drps_reader *r, struct drps_samples *out, struct drps_err *err)
{
    out->n = 0;
    out->all_ones = 1;
    while (out->n == 0 && r->row < r->options.matrix->samples) {
        const int stopped =
            r->options.stop && atomic_load_explicit(r->options.stop, memory_order_relaxed);
        int rc = stopped ? drps_err_set(err, DRPS_E_INTERRUPTED, "interrupted")
                         : next_piece(r, out, err);
        if (rc < 0) out->n = 0;
        if (rc < 0) return rc;
    }
    return out->n > 0;
}
