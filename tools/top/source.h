/* Where the numbers of a job are: files in the folder that it works in, files that it was told to
 * write, ports. Private to tools/top/. */
#ifndef DRPS_TOOLS_TOP_SOURCE_H
#define DRPS_TOOLS_TOP_SOURCE_H

#include "tools/top/readings.h"

enum { SOURCE_PAST = 6, SOURCES_MOST = 1024 };

/* One rank. */
struct source {
    char *path;                        /* own: a file; NULL: a port */
    char *host;                        /* own */
    char *port;                        /* own */
    struct readings past[SOURCE_PAST]; /* own: the newest first */
    size_t past_n;
    int is_gone;    /* 1: it was there, and is not any more */
    int has_folder; /* 1: the folder that the job works in is still there */
};

/* All that is looked at. */
struct sources {
    const char *const *names; /* [names_n] borrowed: MODEL, PLAN, FILE or HOST:PORT */
    size_t names_n;
    struct source *list; /* own [n] */
    size_t n, cap;
};

/* Look for what the names stand for, which may come later, and read each anew. 0, -ENOMEM, or what
 * is wrong with a name: DRPS_E_CONFIG. A source that cannot be read is gone, or has not come. */
DRPS_MUST_CHECK
int sources_read(struct sources *s, struct drps_err *err);
void sources_free(struct sources *s);

/* How many are there now. */
size_t sources_alive(const struct sources *s);

/* How many are gone, and their jobs are not: a job removes its numbers before it gives what it has
 * made its name. */
size_t sources_ending(const struct sources *s);

/* The oldest of the last few readings, which rates are taken over; the newest if there is no other.
 */
const struct readings *source_before(const struct source *s);
const struct readings *source_now(const struct source *s); /* NULL: there is none */

#endif
