/* A text file or a pipe that drps-gen writes, line by line. Private to tools/gen/. */
#ifndef DRPS_TOOLS_GEN_OUTPUT_H
#define DRPS_TOOLS_GEN_OUTPUT_H

#include <stddef.h>
#include <stdint.h>

#include "base/drps_err.h"

enum { GEN_OUTPUT_BYTES = 1 << 20 };

struct gen_output {
    const char *path; /* borrowed; NULL: standard output */
    int fd;           /* -1: closed */
    int is_file;      /* regular: always ready */
    char *buf;        /* own: GEN_OUTPUT_BYTES, and room for one line more */
    size_t used, cap;
    uint64_t bytes; /* written, without what is in buf */
};

/* Open `path` (borrowed), or standard output, for lines of at most line_bytes. A file that exists
 * is replaced with `force` only. gen_output_abort() it, also on a failure. */
DRPS_MUST_CHECK
int gen_output_open(struct gen_output *out, const char *path, int force, size_t line_bytes,
                    struct drps_err *err);

/* Write what is in buf. DRPS_E_INTERRUPTED: the run is to stop. */
DRPS_MUST_CHECK
int gen_output_flush(struct gen_output *out, struct drps_err *err);

/* Flush and close. */
DRPS_MUST_CHECK
int gen_output_finish(struct gen_output *out, struct drps_err *err);

/* Give up what is still open: an unfinished file would pass for a whole one, so it is removed. */
void gen_output_abort(struct gen_output *out);

#endif
