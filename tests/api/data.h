/* The same samples as a matrix and as text, for tests of the library. */
#ifndef DRPS_TESTS_API_DATA_H
#define DRPS_TESTS_API_DATA_H

#include "api/drps.h"

enum { DATA_SAMPLES = 240, DATA_COLUMNS = 40, DATA_MOST = 8, DATA_TEXT = 1 << 16 };

/* Samples in memory, with every array. */
struct data {
    int64_t starts[DATA_SAMPLES + 1];
    int64_t indices[DATA_SAMPLES * DATA_MOST];
    double values[DATA_SAMPLES * DATA_MOST];
    int32_t starts32[DATA_SAMPLES + 1], indices32[DATA_SAMPLES * DATA_MOST];
    float values32[DATA_SAMPLES * DATA_MOST], weights[DATA_SAMPLES];
    uint8_t two[DATA_SAMPLES]; /* labels of two classes */
    int32_t labels[DATA_SAMPLES], fields[DATA_COLUMNS];
    double reals[DATA_SAMPLES]; /* labels, too */
};

enum data_kind { DATA_TWO, DATA_CLASSES, DATA_REALS, DATA_FIELDS, DATA_RATINGS };

/* Fill in numbers that floats and texts of nine digits hold. */
void data_make(struct data *d);

/* The matrix of the kind; `narrow`: arrays of 32 bits. */
struct drps_matrix data_matrix(const struct data *d, enum data_kind kind, int narrow);

/* The text of the kind into a file; returns how many bytes it has. */
size_t data_text(const struct data *d, enum data_kind kind, char text[DATA_TEXT]);

#endif
