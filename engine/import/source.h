/* What the formats of an import have in common. Private to engine/import/. */
#ifndef DRPS_ENGINE_IMPORT_SOURCE_H
#define DRPS_ENGINE_IMPORT_SOURCE_H

#include "base/folder/drps_lines.h"
#include "engine/import/drps_import.h"
#include "engine/publish/drps_modeldir.h"
#include "engine/publish/drps_params.h"
#include "index/plan/drps_names_writer.h"
#include "index/reader/text/drps_number.h"

/* An import under way. */
struct import {
    const struct drps_import_options *o;
    struct drps_io io;
    struct drps_modeldir_info info; /* filled in by look() */
    struct drps_classes *classes;   /* own: info.classes */
    void *own;                      /* of the source: free(), after its end() */
    struct drps_params *params;     /* rows go there in order */
    struct names_writer *names;     /* names go there by key */
    const char *scratch;            /* folder for a sort */
    uint64_t sort_bytes;            /* memory for it */
};

/* Each call reads the file anew. */
struct import_source {
    const char *name;
    /* Read what the file says of the model, and count its rows. */
    int (*look)(struct import *m, struct drps_err *err);
    /* Write all rows to m->params, the intercept first, where there is one. */
    int (*rows)(struct import *m, struct drps_err *err);
    /* Write the names of all rows but the intercept to m->names. */
    int (*names)(struct import *m, struct drps_err *err);
    void (*end)(struct import *m); /* free what m->own owns, which may be NULL; NULL: nothing */
};

extern const struct import_source import_liblinear, import_vw, import_libffm;

/* Make m->info that of a model with these terms: rows behind the intercept, if there is one, are
 * the algorithm's table. */
DRPS_MUST_CHECK
int import_describe(struct import *m, const struct drps_model_terms *terms, uint64_t rows,
                    int has_bias, struct drps_err *err);

/* Names that are numbers first, first + 1, ... of rows row, row + 1, ... [n]. */
DRPS_MUST_CHECK
int import_number_names(struct import *m, uint64_t first, uint32_t row, uint64_t n,
                        struct drps_err *err);

/* DRPS_E_FORMAT: "file:line: text". */
int import_bad(const struct import *m, uint64_t line, const char *what, struct drps_err *err);

/* Read a number and the blanks behind it; returns what follows, or NULL: there is none. */
const char *import_number(const char *p, const char *end, float *v_out);

#endif
