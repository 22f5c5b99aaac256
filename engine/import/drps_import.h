/*
 * Models of other programs become models of drps, which predict what those do.
 *
 *   liblinear  the text that LIBLINEAR's train writes: logistic regression of two labels becomes
 * lor, support vector machines svm, regression lir; several labels svm with these as names of
 * classes, whatever the solver. Features are numbers from 1; the bias becomes the intercept vw the
 * text of Vowpal Wabbit's --invert_hash, which has names; that of --readable_model has hashes
 * alone, and is refused. Linear models only: lor if its link is logistic, else lir, or what `algo`
 * says libffm     the file of libffm's ffm-train, binary, as built with SSE, or the text of earlier
 *              versions: becomes ffm without an intercept and with weights of 0
 *
 * Memory: a line of text, or a row; and for names of vw a sort on disk.
 */
#ifndef DRPS_ENGINE_IMPORT_IMPORT_H
#define DRPS_ENGINE_IMPORT_IMPORT_H

#include <stdint.h>

#include "base/drps_io.h"
#include "base/drps_log.h"

/* Zero means default. All is borrowed. */
struct drps_import_options {
    const char *input;       /* the other program's file. Required; no pipe */
    const char *model_path;  /* folder of the model. Required */
    const char *format;      /* one of drps_import_formats(); default: by the first bytes */
    const char *algo;        /* of vw: lor, lir or svm */
    const float *labels;     /* [2] the smaller and the larger label of the data, for metrics: where
                                the file does not have them; default: -1 and 1 */
    int replace;             /* an existing model of that name is replaced at the end */
    const char *model_store; /* engine; default: the preferred one of this build */
    uint64_t memory_bytes;   /* of the whole process; default: half of what it may use */
    const struct drps_log *log;
};

struct drps_import_result {
    const char *format, *algo; /* static */
    uint64_t rows, model_bytes, content;
    double seconds;
};

/* Names, NULL-terminated: liblinear vw libffm. */
const char *const *drps_import_formats(void);

/*
 * Make the model, whole or not at all. DRPS_E_FORMAT: file:line, what is wrong there;
 * DRPS_E_CONFIG: the file is of a kind that drps has not, a pipe,
 * or says itself what an option says; DRPS_E_MEMORY_BUDGET; -EEXIST: there is a model of that name;
 * -ENOSPC; DRPS_E_INTERRUPTED by io->stop.
 */
DRPS_MUST_CHECK
int drps_import_run(const struct drps_io *io, const struct drps_import_options *options,
                    struct drps_import_result *result, struct drps_err *err);

#endif
