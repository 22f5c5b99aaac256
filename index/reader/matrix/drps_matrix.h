/* Samples that lie in memory as a sparse matrix. A part of the installed drps.h. */
#ifndef DRPS_INDEX_READER_MATRIX_MATRIX_H
#define DRPS_INDEX_READER_MATRIX_MATRIX_H

#include <stdint.h>

enum drps_number { DRPS_F32 = 1, DRPS_F64, DRPS_I32, DRPS_I64, DRPS_U8 };

struct drps_array {
    const void *data; /* borrowed; NULL: there is none */
    enum drps_number type;
};

/*
 * Sample i has the entries starts[i] to starts[i + 1] - 1: column indices[k], value values[k].
 *
 * A column is the feature whose name is its number, from 0: the plan and the model are, byte for
 * byte, those of a libsvm file with these ids (with fields, of a libffm file). As there, entries of
 * value 0 are left out, and those of a column that a sample has twice are added. Of nets that read
 * numbers alone the model is that of such a file, and the plan has numbers by their place, unless
 * nearly all are 0; a field is then below 2^22.
 *
 * Of algorithms of ratings (lmf, bpr, warp, wmf) a row is a user and a column an item, and each
 * entry is a rating, 0 too: users and items are known by their numbers. There are no labels,
 * weights and fields.
 *
 * Nothing is trusted: starts must not decrease, columns must be below `columns`, values, labels and
 * weights must be finite. DRPS_E_FORMAT names the sample where they are not.
 */
struct drps_matrix {
    uint64_t samples, columns;
    struct drps_array starts;  /* [samples + 1] I32 or I64 */
    struct drps_array indices; /* [starts[samples]] I32 or I64 */
    struct drps_array values;  /* [starts[samples]] F32 or F64; none: all are 1 */
    struct drps_array labels;  /* [samples] of any type; not needed where a model scores */
    struct drps_array weights; /* [samples] F32 or F64, not negative; none: all are 1 */
    struct drps_array fields;  /* ffm, net: [columns] I32 or I64, each column's field, from 0 */
    uint64_t entries; /* how many there are in indices and values; 0: starts[samples] is believed */
    void *reserved[4]; /* zero */
};

#endif
