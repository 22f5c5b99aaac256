/* A message is put together and handed to the sink that the program chose. */
#include "base/drps_log.h"

#include <stdarg.h>
#include <stdio.h>

void drps_log(const struct drps_log *log, enum drps_log_level level, const char *fmt, ...)
{
    enum drps_log_level limit = log ? log->level : DRPS_LOG_WARN;
    if (level > limit) return;
    char text[2048];
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, ap); /* a cut message is still a message */
    va_end(ap);
    if (log && log->sink)
        log->sink(log->ctx, level, text);
    else
        (void)fprintf(stderr, "%s%s\n", level == DRPS_LOG_WARN ? "warning: " : "", text);
}
