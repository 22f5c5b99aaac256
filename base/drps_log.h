/* Messages for people, on a sink that the program chooses. Libraries log only where an error is
 * handled. */
#ifndef DRPS_LOG_H
#define DRPS_LOG_H

enum drps_log_level { DRPS_LOG_ERROR, DRPS_LOG_WARN, DRPS_LOG_INFO, DRPS_LOG_DEBUG };

/* Which messages are logged, and where they go. */
struct drps_log {
    enum drps_log_level level; /* messages above this level are dropped */
    void (*sink)(void *ctx, enum drps_log_level level,
                 const char *text); /* any thread; NULL: stderr */
    void *ctx;
};

/* Log a message, formatted as by printf(). `log` may be NULL: then errors and warnings go to
 * stderr. */
void drps_log(const struct drps_log *log, enum drps_log_level level, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

#endif
