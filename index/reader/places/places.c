/* Numbers by place: which data have them, and entries with fields that become such. */
#include <stdlib.h>
#include <string.h>

#include "index/plan/codec/drps_dense.h"
#include "index/plan/drps_algorithm.h"
#include "index/reader/drps_parse.h"
#include "index/reader/matrix/drps_matrix_rows.h"

enum { ONE_IN = 16 }; /* numbers that are not 0, for which places pay; a bit each tells zeros */

/* 1: each column of features is one number. */
static int are_numbers(const struct drps_reader *r)
{
    for (size_t i = 0; i < r->n_fields; i++) {
        struct drps_reader_field field;
        drps_reader_field(r->fields[i], &field);
        if (!field.is_number) return 0;
    }
    return r->n_fields > 0;
}

/* A matrix in which nearly all numbers are 0 is smaller without them. */
static int is_full(const struct drps_matrix *m, uint32_t columns)
{
    const uint64_t last = (uint64_t)drps_array_integer(&m->starts, m->samples);
    const uint64_t entries = m->entries ? m->entries : last;
    return m->samples && columns && entries / m->samples >= columns / ONE_IN;
}

static int fits(const struct drps_reader *r)
{
    if (r->options.matrix)
        return r->field_count > DRPS_FIELD_MAX + 1 || is_full(r->options.matrix, r->field_count);
    return drps_reader_has_columns(r->format->name) && are_numbers(r);
}

/* How many places there are, but of idx, whose files say it. Where data are not made to have as
 * many as others, each column has one, also those that a model does not know. */
static uint32_t count_places(const struct drps_reader *r)
{
    const int as_fits = r->options.numbers == DRPS_READER_AS_FITS;
    if (as_fits && drps_reader_has_columns(r->format->name)) return (uint32_t)r->n_fields;
    if (r->options.field_count) return r->options.field_count;
    return r->options.matrix ? r->field_count : (uint32_t)r->n_fields;
}

int drps_numbers_settle(struct drps_reader *r, struct drps_err *err)
{
    const enum drps_reader_numbers numbers = r->options.numbers;
    if (numbers == DRPS_READER_SPARSE || !r->options.one_feature || !r->options.fields) return 0;
    if (r->format == &drps_format_idx || (numbers == DRPS_READER_AS_FITS && !fits(r))) return 0;
    r->numbers_each = count_places(r);
    if (r->numbers_each && r->numbers_each <= DRPS_DENSE_MOST) return 0;
    return drps_err_set(err, DRPS_E_CONFIG, "%s: samples of %u numbers: there may be 1 to %d",
                        r->chunks.in.name, r->numbers_each, DRPS_DENSE_MOST);
}

/* Several entries of one field are added up, as a net adds them. */
static void place_sample(struct drps_reader *r, struct drps_samples *out, size_t i)
{
    float *numbers = out->numbers + i * (size_t)r->numbers_each;
    memset(numbers, 0, r->numbers_each * sizeof(*numbers));
    for (size_t j = out->starts[i]; j < out->starts[i + 1]; j++) {
        const uint16_t field = out->fields[j];
        if (field >= r->field_count) r->field_count = field + 1u;
        if (field < r->numbers_each) numbers[field] += out->values[j];
    }
}

void drps_numbers_place(struct drps_reader *r, struct drps_samples *out)
{
    for (size_t i = 0; i < out->n; i++)
        place_sample(r, out, i);
    memset(out->starts, 0, (out->n + 1) * sizeof(*out->starts));
    if (r->n_fields > r->field_count) r->field_count = (uint32_t)r->n_fields;
}
