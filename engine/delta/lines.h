/* Lines of a delta (drps_delta.h). Private to engine/delta/. */
#ifndef DRPS_ENGINE_DELTA_LINES_H
#define DRPS_ENGINE_DELTA_LINES_H

#include <stddef.h>
#include <stdint.h>

#include "base/folder/drps_textfile.h"
#include "engine/publish/drps_modeldir.h"

struct delta_name {
    const struct drps_modeldir_info *info; /* of its model, borrowed; NULL: the intercept */
    uint64_t key;
    unsigned field;
    size_t at, bytes; /* its text in that of all names; of string names */
};

/* A row: `text` is that of all names, params [dim]. */
DRPS_MUST_CHECK
int delta_write_line(struct drps_textfile *f, const struct delta_name *name, const char *text,
                     const float *params, uint32_t dim, struct drps_err *err);

/* "# " and the text, at most 250 bytes of it. */
DRPS_MUST_CHECK
int delta_write_comment(struct drps_textfile *f, struct drps_err *err, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

#endif
