/* Writing names.rec (index/plan/drps_names.h has the layout and reads it). Shared inside index/. */
#ifndef DRPS_INDEX_PLAN_NAMES_WRITER_H
#define DRPS_INDEX_PLAN_NAMES_WRITER_H

#include <stddef.h>
#include <stdint.h>

#include "base/drps_io.h"

struct names_writer;

DRPS_MUST_CHECK
int drps_names_writer_open(const struct drps_io *io, const char *dir, int strings,
                           struct names_writer **w_out, struct drps_err *err);
/* Keys strictly increasing. text is ignored for numeric names. */
DRPS_MUST_CHECK
int drps_names_writer_add(struct names_writer *w, uint64_t key, uint32_t row, unsigned field,
                          const char *text, size_t bytes, struct drps_err *err);
DRPS_MUST_CHECK
int drps_names_writer_finish(struct names_writer *w, struct drps_err *err);
void drps_names_writer_close(struct names_writer *w);

#endif
