/* Values of JSON results. Shared with tools/. */
#ifndef DRPS_API_JSON_H
#define DRPS_API_JSON_H

#include <stdint.h>

#include <jansson.h>

#include "base/drps_err.h"

/* NULL when memory is gone. NaN and infinities are null; counts end at 2^63 - 1. */
json_t *drps_json_real(double value);
json_t *drps_json_count(uint64_t value);

/* 17 digits: every double reads back as itself. */
#define DRPS_JSON_FLAGS (JSON_INDENT(2) | JSON_REAL_PRECISION(17))

/* *text_out becomes the text of `root` (moved; NULL when memory was gone while it was built), own:
 * free(). text_out NULL: it is not wanted. -ENOMEM. */
DRPS_MUST_CHECK
int drps_json_text(json_t *root, char **text_out, struct drps_err *err);

#endif
