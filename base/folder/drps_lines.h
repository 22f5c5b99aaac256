/* Lines of a text file, one after another, in bounded memory. */
#ifndef DRPS_BASE_FOLDER_LINES_H
#define DRPS_BASE_FOLDER_LINES_H

#include <stddef.h>
#include <stdint.h>

#include "base/drps_io.h"

enum { DRPS_LINES_BYTES = 128 * 1024 }; /* memory, and more than the longest line has */

struct drps_line {
    uint64_t number;  /* from 1 */
    uint64_t offset;  /* of the text in the file */
    const char *text; /* [n], without blanks at both ends, never empty; behind it a line end or a
                         blank, and 64 more bytes that may be read: for drps_number_float() */
    size_t n;
};

/* Gets a line, borrowed; a result other than 0 ends the reading, and is its result. */
typedef int (*drps_line_visit)(void *ctx, const struct drps_line *line, struct drps_err *err);

/* A path as texts tell it. */
const char *drps_lines_name(const char *path);

/* Read all lines of a file or pipe; "-" is stdin. DRPS_E_FORMAT: one is too long. A UTF-8 byte
 * order mark in front does not count. */
DRPS_MUST_CHECK
int drps_lines_read(const struct drps_io *io, const char *path, drps_line_visit visit, void *ctx,
                    struct drps_err *err);

#endif
