/* Sentences for the user (drps_remarks.h). */
#include "base/drps_remarks.h"

#include <stdarg.h>
#include <stdio.h>

void drps_remark(struct drps_remarks *r, const struct drps_log *log, const char *fmt, ...)
{
    char text[DRPS_REMARK_BYTES];
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, ap); /* texts are written to fit */
    va_end(ap);
    drps_log(log, DRPS_LOG_WARN, "%s", text);
    if (r->n == DRPS_REMARKS_MOST) return;
    (void)snprintf(r->text[r->n++], DRPS_REMARK_BYTES, "%s", text);
}
