/* All places of a monitor, and their names for each rank. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/monitor/drps_monitor_out.h"

/* "run.rank-1.prom" for "run.prom"; "run.rank-1" for "run". */
static char *rank_file(const char *file, uint32_t rank)
{
    const char *name = strrchr(file, '/');
    const char *dot = strrchr(name ? name : file, '.');
    const size_t stem =
        dot && dot != (name ? name + 1 : file) ? (size_t)(dot - file) : strlen(file);
    char *path;
    return asprintf(&path, "%.*s.rank-%u%s", (int)stem, file, rank, file + stem) < 0 ? NULL : path;
}

static int open_file(struct drps_monitor *m, const char *file, uint32_t rank, uint32_t ranks,
                     struct drps_monitor_out *out, struct drps_err *err)
{
    char *path = ranks > 1 ? rank_file(file, rank) : strdup(file);
    int rc = path ? drps_monitor_file_open(m, path, &out->file, err)
                  : drps_err_set(err, -ENOMEM, "no memory for a path");
    free(path);
    return rc;
}

int drps_monitor_out_open(struct drps_monitor *m, const struct drps_monitor_options *o,
                          uint32_t rank, uint32_t ranks, int shared, struct drps_monitor_out *out,
                          struct drps_err *err)
{
    *out = (struct drps_monitor_out){0};
    int rc = o->port ? drps_monitor_port_open(m, o->address, o->port + (shared ? rank : 0),
                                              &out->port, err)
                     : 0;
    if (rc == 0 && o->file) rc = open_file(m, o->file, rank, ranks, out, err);
    if (rc < 0) drps_monitor_out_close(out);
    return rc;
}

void drps_monitor_out_close(struct drps_monitor_out *out)
{
    drps_monitor_port_close(out->port);
    drps_monitor_file_close(out->file, 0);
    *out = (struct drps_monitor_out){0};
}
