/* A run that a program watches: messages, progress, and the wish to stop. Private to api/. */
#ifndef DRPS_API_WATCH_H
#define DRPS_API_WATCH_H

#include <stdatomic.h>

#include "api/drps.h"
#include "base/drps_io.h"
#include "base/drps_log.h"

struct watch {
    const struct drps_watch *given; /* borrowed; NULL: nobody watches */
    atomic_int own;                 /* the wish to stop, where the program has no flag */
    atomic_int *stop;               /* that, or the program's */
    struct drps_log log;            /* pass &w->log on */
    uint64_t begin_ns, told_ns;
    const char *phase; /* that was told last */
};

void watch_begin(struct watch *w, const struct drps_watch *given);

/* Tell how far the run is, some times a second, and whenever a phase begins; fills in `seconds`. */
void watch_progress(struct watch *w, struct drps_watch_progress *p);

/* What a callback has returned: non-zero is a wish to stop. */
void watch_answer(struct watch *w, int answer);

/* `err`, or *own where the program wants no text. */
static inline struct drps_err *watch_err(struct drps_err *err, struct drps_err *own)
{
    return err ? err : own;
}

#endif
