/* Arrays of several types become numbers, and a matrix is checked row by row. */
#include "index/reader/matrix/drps_matrix_rows.h"

#include <float.h>
#include <math.h>

double drps_array_real(const struct drps_array *a, uint64_t i)
{
    switch (a->type) {
    case DRPS_F32:
        return (double)((const float *)a->data)[i];
    case DRPS_F64:
        return ((const double *)a->data)[i];
    default:
        return (double)drps_array_integer(a, i);
    }
}

int64_t drps_array_integer(const struct drps_array *a, uint64_t i)
{
    switch (a->type) {
    case DRPS_I32:
        return ((const int32_t *)a->data)[i];
    case DRPS_I64:
        return ((const int64_t *)a->data)[i];
    case DRPS_U8:
        return ((const uint8_t *)a->data)[i];
    default:
        return 0; /* drps_matrix_check() refuses others where integers are needed */
    }
}

int drps_array_has_integers(const struct drps_array *a)
{
    return a->type == DRPS_I32 || a->type == DRPS_I64 || a->type == DRPS_U8;
}

/* ---- What does not take looking at entries ---- */

static int is_indices(const struct drps_array *a)
{
    return a->type == DRPS_I32 || a->type == DRPS_I64;
}

static int is_reals(const struct drps_array *a)
{
    return a->type == DRPS_F32 || a->type == DRPS_F64;
}

static int is_numbers(const struct drps_array *a)
{
    return is_reals(a) || drps_array_has_integers(a);
}

static int refuse(const char *what, const char *why, struct drps_err *err)
{
    return drps_err_set(err, DRPS_E_CONFIG, "the matrix: %s %s", what, why);
}

int drps_matrix_check(const struct drps_matrix *m, struct drps_err *err)
{
    static const char integers[] = "must be an array of 32 or 64 bit integers";
    static const char reals[] = "must be an array of 32 or 64 bit floats";
    if (!m) return drps_err_set(err, DRPS_E_CONFIG, "there is no matrix");
    if (!m->starts.data || !is_indices(&m->starts)) return refuse("starts", integers, err);
    if (m->indices.data && !is_indices(&m->indices)) return refuse("indices", integers, err);
    if (m->fields.data && !is_indices(&m->fields)) return refuse("fields", integers, err);
    if (m->values.data && !is_reals(&m->values)) return refuse("values", reals, err);
    if (m->weights.data && !is_reals(&m->weights)) return refuse("weights", reals, err);
    if (m->labels.data && !is_numbers(&m->labels))
        return refuse("labels", "have a type that there is not", err);
    if (m->samples > INT64_MAX / 8 || m->columns > INT64_MAX)
        return refuse("its shape", "is larger than any memory", err);
    if (!m->indices.data && (m->entries || drps_array_integer(&m->starts, m->samples) > 0))
        return refuse("indices", "are missing", err);
    return 0;
}

/* ---- Rows ---- */

/* How many entries there are; those of `starts` where the caller does not say it. */
static uint64_t entries_of(const struct drps_matrix *m)
{
    const int64_t last = drps_array_integer(&m->starts, m->samples);
    return m->entries ? m->entries : last > 0 ? (uint64_t)last : 0;
}

int drps_matrix_row(const struct drps_matrix *m, uint64_t i, uint64_t *first_out, uint64_t *n_out,
                    struct drps_err *err)
{
    const int64_t from = drps_array_integer(&m->starts, i),
                  to = drps_array_integer(&m->starts, i + 1);
    *first_out = *n_out = 0;
    if (from < 0 || to < from || (uint64_t)to > entries_of(m))
        return drps_err_set(err, DRPS_E_FORMAT,
                            "the matrix: sample %llu goes from entry %lld to %lld; starts must not "
                            "decrease, and there are %llu entries",
                            (unsigned long long)i, (long long)from, (long long)to,
                            (unsigned long long)entries_of(m));
    *first_out = (uint64_t)from;
    *n_out = (uint64_t)(to - from);
    return 0;
}

int drps_matrix_entry(const struct drps_matrix *m, uint64_t i, uint64_t k, uint64_t *column_out,
                      float *value_out, struct drps_err *err)
{
    const int64_t column = drps_array_integer(&m->indices, k);
    const double value = m->values.data ? drps_array_real(&m->values, k) : 1;
    *column_out = (uint64_t)column;
    *value_out = (float)value;
    if (column < 0 || (uint64_t)column >= m->columns)
        return drps_err_set(err, DRPS_E_FORMAT,
                            "the matrix: sample %llu has column %lld; there are %llu columns, "
                            "from 0",
                            (unsigned long long)i, (long long)column,
                            (unsigned long long)m->columns);
    if (!isfinite(*value_out))
        return drps_err_set(err, DRPS_E_FORMAT,
                            "the matrix: sample %llu, column %lld: the value %g is no number that "
                            "a float can hold",
                            (unsigned long long)i, (long long)column, value);
    return 0;
}
