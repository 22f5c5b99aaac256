#include "api/data.h"

#include <stdio.h>

static uint64_t draw(uint64_t i)
{
    i = (i + 1) * UINT64_C(0x9e3779b97f4a7c15);
    i ^= i >> 29;
    i *= UINT64_C(0xbf58476d1ce4e5b9);
    return i ^ i >> 32;
}

void data_make(struct data *d)
{
    size_t at = 0;
    for (size_t i = 0; i < DATA_SAMPLES; i++) {
        const size_t n = 1 + draw(i) % (DATA_MOST - 1);
        double sum = 0;
        d->starts[i] = (int64_t)at;
        for (size_t k = 0; k < n; k++) {
            const size_t step = i % 10 == 4 && k == 1 ? 0 : k; /* some have a column twice */
            const size_t column = (draw(1000 + i) + step * 5) % DATA_COLUMNS;
            d->indices[at] = (int64_t)column;
            d->values[at] = (double)(1 + draw(7 * i + k) % 16) / 4;
            if (i % 7 == 3 && k == 1) d->values[at] = 0;
            sum += d->values[at] * (double)((int)(column % 5) - 2);
            at++;
        }
        d->labels[i] = (int32_t)(sum > 2 ? 2 : sum > -1 ? 1 : 0);
        d->two[i] = sum > 0;
        d->reals[i] = sum / 8;
        d->weights[i] = (float)(1 + i % 3) / 2;
    }
    d->starts[DATA_SAMPLES] = (int64_t)at;
    for (size_t i = 0; i <= DATA_SAMPLES; i++)
        d->starts32[i] = (int32_t)d->starts[i];
    for (size_t k = 0; k < at; k++) {
        d->indices32[k] = (int32_t)d->indices[k];
        d->values32[k] = (float)d->values[k];
    }
    for (int c = 0; c < DATA_COLUMNS; c++)
        d->fields[c] = c % 3;
}

struct drps_matrix data_matrix(const struct data *d, enum data_kind kind, int narrow)
{
    struct drps_matrix m = {.samples = DATA_SAMPLES, .columns = DATA_COLUMNS};
    m.starts = narrow ? (struct drps_array){d->starts32, DRPS_I32}
                      : (struct drps_array){d->starts, DRPS_I64};
    m.indices = narrow ? (struct drps_array){d->indices32, DRPS_I32}
                       : (struct drps_array){d->indices, DRPS_I64};
    m.values = narrow ? (struct drps_array){d->values32, DRPS_F32}
                      : (struct drps_array){d->values, DRPS_F64};
    if (kind == DATA_RATINGS) return m;
    m.labels = kind == DATA_REALS ? (struct drps_array){d->reals, DRPS_F64}
               : kind == DATA_TWO ? (struct drps_array){d->two, DRPS_U8}
                                  : (struct drps_array){d->labels, DRPS_I32};
    if (kind == DATA_FIELDS) m.fields = (struct drps_array){d->fields, DRPS_I32};
    return m;
}

static int label_text(const struct data *d, enum data_kind kind, size_t i, char *to, size_t room)
{
    if (kind == DATA_REALS) return snprintf(to, room, "%.17g", d->reals[i]);
    return snprintf(to, room, "%d", kind == DATA_TWO ? d->two[i] : d->labels[i]);
}

size_t data_text(const struct data *d, enum data_kind kind, char text[DATA_TEXT])
{
    size_t n = 0;
    for (size_t i = 0; i < DATA_SAMPLES; i++) {
        if (kind != DATA_RATINGS) n += (size_t)label_text(d, kind, i, text + n, DATA_TEXT - n);
        for (int64_t k = d->starts[i]; k < d->starts[i + 1]; k++) {
            const int column = (int)d->indices[k];
            if (kind == DATA_RATINGS)
                n += (size_t)snprintf(text + n, DATA_TEXT - n, "%zu %d %g\n", i, column,
                                      d->values[k]);
            else if (kind == DATA_FIELDS)
                n += (size_t)snprintf(text + n, DATA_TEXT - n, " %d:%d:%g", d->fields[column],
                                      column, d->values[k]);
            else
                n += (size_t)snprintf(text + n, DATA_TEXT - n, " %d:%g", column, d->values[k]);
        }
        if (kind != DATA_RATINGS) text[n++] = '\n';
    }
    return n;
}
