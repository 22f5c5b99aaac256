/* Reading the records of a saved store in their order. */
#include "storage/relay/runs/drps_saved.h"

#include <errno.h>
#include <stdlib.h>

char *drps_saved_records_path(const char *dir)
{
    return drps_path_join(dir, "relay.rec");
}

char *drps_saved_runs_path(const char *dir)
{
    return drps_path_join(dir, "runs");
}

int drps_saved_open(struct drps_saved *r, const struct drps_io *io, const char *dir,
                    struct drps_err *err)
{
    *r = (struct drps_saved){.path = drps_saved_records_path(dir)};
    if (!r->path) return drps_err_set(err, -ENOMEM, "no memory for the name of a file");
    return drps_recfile_open(io, r->path, DRPS_KIND_SAVED_RELAY, &r->file, err);
}

void drps_saved_close(struct drps_saved *r)
{
    drps_recfile_close(r->file);
    free(r->path);
    *r = (struct drps_saved){0};
}

int drps_saved_wrong(const struct drps_saved *r, const char *what, struct drps_err *err)
{
    return drps_err_set(err, DRPS_E_CORRUPT,
                        "%s: %s cannot be those of a saved store: go on from another checkpoint",
                        r->path, what);
}

int drps_saved_read_entries(struct drps_saved *r, void *buf, size_t entry_bytes, size_t most,
                            size_t *n_out, const char *what, struct drps_err *err)
{
    *n_out = 0;
    if (r->at >= drps_recfile_count(r->file)) return drps_saved_wrong(r, what, err);
    const uint64_t bytes = drps_recfile_bytes(r->file, r->at);
    if (bytes % entry_bytes || bytes / entry_bytes > most) return drps_saved_wrong(r, what, err);
    *n_out = (size_t)(bytes / entry_bytes);
    return drps_recfile_read(r->file, r->at++, 1, buf, err);
}

int drps_saved_read(struct drps_saved *r, void *buf, size_t bytes, const char *what,
                    struct drps_err *err)
{
    size_t n;
    int rc = drps_saved_read_entries(r, buf, bytes, 1, &n, what, err);
    if (rc < 0 || n) return rc;
    return drps_saved_wrong(r, what, err);
}
