/* Lines of a text file, one after another, in bounded memory. Private to engine/recommend/input/.
 */
#ifndef DRPS_ENGINE_RECOMMEND_INPUT_LINES_H
#define DRPS_ENGINE_RECOMMEND_INPUT_LINES_H

#include <stddef.h>
#include <stdint.h>

#include "base/drps_io.h"

enum { DRPS_LINES_BYTES = 128 * 1024 }; /* memory, and more than the longest line has */

/* Gets a line without its end and without blanks at both ends, never empty; a negative result ends
 * the reading. */
typedef int (*drps_line_visit)(void *ctx, uint64_t line, const char *text, size_t n,
                               struct drps_err *err);

/* A path as texts tell it. */
const char *drps_lines_name(const char *path);

/* Read all lines of a file or pipe; "-" is stdin. DRPS_E_FORMAT: one is too long. A UTF-8 byte
 * order mark in front does not count. */
DRPS_MUST_CHECK
int drps_lines_read(const struct drps_io *io, const char *path, drps_line_visit visit, void *ctx,
                    struct drps_err *err);

#endif
