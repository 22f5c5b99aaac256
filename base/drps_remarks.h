/* Sentences that a run has for its user, of what goes wrong in learning and what to do: logged as
 * warnings when they are made, and kept for whoever reports. */
#ifndef DRPS_REMARKS_H
#define DRPS_REMARKS_H

#include <stddef.h>

#include "base/drps_log.h"

enum { DRPS_REMARKS_MOST = 16, DRPS_REMARK_BYTES = 512 };

struct drps_remarks {
    size_t n;
    char text[DRPS_REMARKS_MOST][DRPS_REMARK_BYTES];
};

/* Add one, formatted as by printf(), and log it. Of more than there is room for the last are logged
 * alone. */
void drps_remark(struct drps_remarks *r, const struct drps_log *log, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

#endif
