/*
 * A model read row by row, each row with its name and its parameters, in bounded memory, however
 * large the model is.
 *
 * The dictionary is sorted by key, and rows are numbered otherwise. So rows are visited in slices
 * whose names fit the memory that is given: the dictionary is read once for each slice, front to
 * back, and then the slice's rows are read in order. There are no scratch files.
 *
 * A name is the number of a feature whose name is one; "column=text" of a category, "column" of a
 * number, "user=17" of a user, "(intercept)" of the intercept, "(net 7)" of row 7 of a net's, of
 * Vowpal Wabbit's text the feature as it is. Rows of training samples ("doc", "own") have no name
 * of the data's and are passed over.
 * Shared inside engine/ and with tools/.
 */
#ifndef DRPS_ENGINE_READOUT_READOUT_H
#define DRPS_ENGINE_READOUT_READOUT_H

#include <stddef.h>
#include <stdint.h>

#include "engine/publish/drps_modeldir.h"
#include "index/reader/drps_reader.h"

#define DRPS_READOUT_INTERCEPT "(intercept)"

struct drps_readout {
    struct drps_modeldir *md;              /* borrowed, with its rows open */
    const struct drps_modeldir_info *info; /* of md */
    uint64_t names_bytes;                  /* for names of a slice, at most about */
    struct drps_reader_field *fields;      /* own: [info->fields_n] */
    int has_units;                         /* some column's numbers are scaled */
    unsigned char *samples; /* own: a bit a row: a training sample's; NULL: there are none */
    uint64_t samples_n;
    char *text; /* own: the name made last */
    size_t text_cap;
};

/* Least of names_bytes. */
enum { DRPS_READOUT_NAMES_LEAST = 1 << 20 };

/*
 * Open the rows of a model that was opened without them, and the readout, within the memory of the
 * whole process (0: half of what it may use, at most 1 GiB) less `other_bytes` of the caller's.
 * DRPS_E_MEMORY_BUDGET says how much would do. Close *r in either case.
 */
DRPS_MUST_CHECK
int drps_readout_open_within(struct drps_modeldir *md, uint64_t memory_bytes, uint64_t other_bytes,
                             struct drps_readout *r, struct drps_err *err);

/* Where training samples have rows the dictionary is read for them, and they take a bit a row.
 * -ENOMEM, DRPS_E_CORRUPT; close it in either case. */
DRPS_MUST_CHECK
int drps_readout_open(struct drps_modeldir *md, uint64_t names_bytes, struct drps_readout *r,
                      struct drps_err *err);
void drps_readout_close(struct drps_readout *r); /* zeroed too */

/* Make the name of a feature: `text` [bytes] in `field`, or NULL and a key that is a number.
 * *name_out is borrowed until the next name is made. -ENOMEM. */
DRPS_MUST_CHECK
int drps_readout_name(struct drps_readout *r, uint64_t key, unsigned field, const char *text,
                      size_t bytes, const char **name_out, size_t *n_out, struct drps_err *err);

struct drps_readout_row {
    uint32_t row;
    const struct drps_table *table;
    const char *name; /* [name_bytes], any bytes; borrowed, as are params, until visit returns */
    size_t name_bytes;
    const struct drps_reader_field *field; /* NULL: the name is a number, or the intercept's */
    const float *params;                   /* [dim] */
};

/* A non-zero result ends the visit. */
typedef int (*drps_readout_visit)(void *ctx, const struct drps_readout_row *row,
                                  struct drps_err *err);

/*
 * Visit rows [n], strictly increasing, in that order; rows NULL: all of the model. Rows of training
 * samples are left out. DRPS_E_CORRUPT: a row has no name, or what the database says;
 * DRPS_E_MEMORY_BUDGET: one name is longer than what is given; DRPS_E_INTERRUPTED by the io's stop.
 */
DRPS_MUST_CHECK
int drps_readout_rows(struct drps_readout *r, const uint32_t *rows, size_t n,
                      drps_readout_visit visit, void *ctx, struct drps_err *err);

/* Find the row of that name, as names are made here; its parameters [dim] into params. Reads the
 * dictionary. DRPS_E_NOT_FOUND: there is none. */
DRPS_MUST_CHECK
int drps_readout_find(struct drps_readout *r, const char *name, uint32_t *row_out, float *params,
                      struct drps_err *err);

/* Visit the parameters of all rows in order, without names: params [n][dim] of rows first and up;
 * those of training samples, too. */
typedef int (*drps_readout_params_visit)(void *ctx, uint64_t first, size_t n, const float *params,
                                         struct drps_err *err);
DRPS_MUST_CHECK
int drps_readout_params(struct drps_readout *r, drps_readout_params_visit visit, void *ctx,
                        struct drps_err *err);

/* 1: the row is a training sample's. */
static inline int drps_readout_is_sample(const struct drps_readout *r, uint64_t row)
{
    return r->samples && (r->samples[row / 8] >> row % 8 & 1);
}

#endif
