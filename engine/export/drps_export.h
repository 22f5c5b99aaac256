/*
 * A model's parameters as a file that other programs read, from models of any size.
 *
 *   text   a line a row: name, then the row's floats, tabs between them
 *   csv    the same with commas, below a head: feature, weight, f1, f2, ...; of named classes their
 *          names in place of weight
 *   npy    float32 [rows][dim] of NumPy, and FILE.names: a line a row with its name
 *
 *   onnx   a graph that predicts (engine/export/onnx.c has it), of linear models, matrices, fm and
 *          lmf below 2 GiB, and FILE.names: a line a feature, in the order of the graph's rows,
 *          without the intercept
 *
 * Rows are in the model's order, the intercept first; rows of training samples are left out. Floats
 * have nine digits, which give them back. Names are those of engine/readout/drps_readout.h; a tab,
 * a line end or a backslash in one becomes \t, \n, \r or \\ but in csv, which has quotes.
 */
#ifndef DRPS_ENGINE_EXPORT_EXPORT_H
#define DRPS_ENGINE_EXPORT_EXPORT_H

#include <stdint.h>

#include "base/drps_io.h"

/* Zero means default. All is borrowed. */
struct drps_export_options {
    const char *model;     /* folder that drps-train made. Required */
    const char *output;    /* file to write, "-" for stdout. Required. It appears when it is
                              complete, and lies outside of the model */
    const char *as;        /* one of drps_export_kinds(); default: by the name's end, else text */
    int replace;           /* an existing output is replaced at the end */
    uint64_t memory_bytes; /* of the whole process; default: half of what it may use, at most 1 GiB
                            */
};

struct drps_export_result {
    uint64_t rows;  /* written */
    uint32_t dim;   /* floats of each */
    const char *as; /* one of the kinds; static */
    int hashed;     /* 1: names are numbers of bins */
};

/* Names of the kinds, NULL-terminated: text csv npy onnx. */
const char *const *drps_export_kinds(void);

/*
 * Returns 0, or among others DRPS_E_NOT_FOUND (no model there), DRPS_E_CORRUPT, DRPS_E_CONFIG (a
 * kind that this model or output cannot have), -EEXIST, DRPS_E_MEMORY_BUDGET, DRPS_E_INTERRUPTED by
 * the io's stop. Then the output is as it was before; of npy and onnx it may be gone where it is
 * replaced, if a disk fails at the very end.
 */
DRPS_MUST_CHECK
int drps_export_run(const struct drps_io *io, const struct drps_export_options *options,
                    struct drps_export_result *result, struct drps_err *err);

#endif
