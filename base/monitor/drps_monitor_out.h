/*
 * Where numbers to watch (drps_monitor.h) are shown: a file that is written anew each second, a
 * port that answers HTTP, or both.
 */
#ifndef DRPS_BASE_MONITOR_OUT_H
#define DRPS_BASE_MONITOR_OUT_H

#include <stdint.h>

#include "base/monitor/drps_monitor.h"

/* The file in the folder that a job works in, for those who do not know where else to look. */
#define DRPS_MONITOR_FILE "metrics.prom"
#define DRPS_MONITOR_FILE_NEXT DRPS_MONITOR_FILE ".next" /* while it is written */

/* Where; all zero: nowhere. Texts are borrowed. */
struct drps_monitor_options {
    const char *file;    /* NULL: none */
    const char *address; /* of the port: numbers of IPv4 or IPv6; NULL: 127.0.0.1 */
    uint32_t port;       /* 0: none */
    int in_folder;       /* 1: into DRPS_MONITOR_FILE of the folder that the job works in, too */
};

struct drps_monitor_file; /* opaque: a file that follows a monitor, by a thread of its own */

/*
 * Write the numbers to `path` now, and again each second: to "<path>.next", which is renamed, so
 * that readers see a whole file. A file that is there already by one of these names must be one of
 * these. The monitor is borrowed until close. A write that fails later is made again a second
 * after.
 * -EEXIST: something else has the name; -ENOENT, -EACCES and others: it cannot be written.
 */
DRPS_MUST_CHECK
int drps_monitor_file_open(struct drps_monitor *m, const char *path, struct drps_monitor_file **out,
                           struct drps_err *err);

/* The same of DRPS_MONITOR_FILE in the folder `dir`. */
DRPS_MUST_CHECK
int drps_monitor_file_open_in(struct drps_monitor *m, const char *dir,
                              struct drps_monitor_file **out, struct drps_err *err);

/* Write the last state and end; `remove` 1: the file goes instead. NULL-safe. */
void drps_monitor_file_close(struct drps_monitor_file *file, int remove);

struct drps_monitor_port; /* opaque: a port that answers GET /metrics, by a thread of its own */

/*
 * Listen. A client that is slow, or asks for anything else, costs nobody anything: few are served
 * at a time, in little memory, and none that is silent for ten seconds. The monitor is borrowed
 * until close. -EADDRINUSE, -EADDRNOTAVAIL, -EACCES: of the port or the address; DRPS_E_CONFIG: the
 * address is none, or this build has no HTTP.
 */
DRPS_MUST_CHECK
int drps_monitor_port_open(struct drps_monitor *m, const char *address, uint32_t port,
                           struct drps_monitor_port **out, struct drps_err *err);
void drps_monitor_port_close(struct drps_monitor_port *port); /* NULL-safe */

/* The places of one monitor. */
struct drps_monitor_out {
    struct drps_monitor_file *file;
    struct drps_monitor_port *port;
};

/*
 * Open what the options ask for, but for the folder. Of several ranks each has a file of its own,
 * "run.rank-1.prom" for "run.prom"; on one machine (`shared` 1) also a port of its own: the one
 * that is given and its rank. What was opened when this fails is closed.
 */
DRPS_MUST_CHECK
int drps_monitor_out_open(struct drps_monitor *m, const struct drps_monitor_options *options,
                          uint32_t rank, uint32_t ranks, int shared, struct drps_monitor_out *out,
                          struct drps_err *err);
void drps_monitor_out_close(struct drps_monitor_out *out); /* idempotent; zeros too */

#endif
