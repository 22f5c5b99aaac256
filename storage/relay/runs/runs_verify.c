/* Reads a saved relay store without opening it: every record, and every chunk of the run file
 * that the records name, against their checksums. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#include "base/drps_alloc.h"
#include "base/drps_checksum.h"
#include "storage/relay/runs/runs_saved.h"

enum { CHUNK_BYTES_MOST = 1 << 30 };

struct verify {
    const struct drps_io *io;
    struct drps_saved saved;
    char *path; /* own: of the run file */
    int fd;
    struct drps_runs_sizes sizes;
    char *chunk; /* own: [sizes.chunk_bytes] */
};

static int verify_chunk(struct verify *v, const struct drps_runs_saved_chunk *e,
                        struct drps_err *err)
{
    if (e->chunk >= v->sizes.chunks || !e->bytes || e->bytes > v->sizes.chunk_bytes)
        return drps_saved_wrong(&v->saved, "chunks of runs", err);
    const uint64_t at = e->chunk * v->sizes.chunk_bytes;
    int rc = drps_io_stopped(v->io, err);
    if (rc == 0) rc = drps_io_read_at(v->io, v->fd, v->chunk, e->bytes, at, v->path, err);
    if (rc < 0 || drps_checksum(v->chunk, e->bytes) == e->sum) return rc;
    return drps_err_set(err, DRPS_E_CORRUPT, "%s: the bytes from %llu on are damaged", v->path,
                        (unsigned long long)at);
}

static int verify_chunks(struct verify *v, struct drps_err *err)
{
    struct drps_runs_saved_chunk *entries = drps_array_new(DRPS_RUNS_ENTRIES, sizeof(*entries));
    int rc = entries ? 0 : drps_err_set(err, -ENOMEM, "no memory to read %s", v->path);
    for (uint64_t left = v->sizes.listed; left && rc == 0;) {
        const size_t now = drps_runs_entries(left);
        rc = drps_saved_read(&v->saved, entries, now * sizeof(*entries), "chunks of runs", err);
        for (size_t i = 0; i < now && rc == 0; i++)
            rc = verify_chunk(v, &entries[i], err);
        left -= now;
    }
    free(entries);
    return rc;
}

/* Every record is read once more, whatever is in it. */
static int verify_records(struct verify *v, struct drps_err *err)
{
    struct drps_recfile *f = v->saved.file;
    int rc = 0;
    for (uint64_t i = 0; i < drps_recfile_count(f) && rc == 0; i++) {
        char *record = drps_array_new((size_t)drps_recfile_run_bytes(f, i, 1) / 8 + 1, 8);
        rc = record ? drps_io_stopped(v->io, err)
                    : drps_err_set(err, -ENOMEM, "no memory to read %s", v->saved.path);
        if (rc == 0) rc = drps_recfile_read(f, i, 1, record, err);
        free(record);
    }
    return rc;
}

static int open_runs(struct verify *v, const char *dir, uint64_t skipped, struct drps_err *err)
{
    v->saved.at = skipped;
    int rc = drps_saved_read(&v->saved, &v->sizes, sizeof(v->sizes), "sizes of runs", err);
    if (rc == 0 &&
        (!v->sizes.chunk_bytes || v->sizes.chunk_bytes > CHUNK_BYTES_MOST ||
         v->sizes.chunks > INT64_MAX / v->sizes.chunk_bytes || v->sizes.saved > UINT32_MAX))
        rc = drps_saved_wrong(&v->saved, "sizes of runs", err);
    if (rc < 0) return rc;
    v->saved.at += 1 + (v->sizes.saved + DRPS_RUNS_ENTRIES - 1) / DRPS_RUNS_ENTRIES;
    v->path = drps_saved_runs_path(dir);
    v->chunk = drps_array_new((size_t)v->sizes.chunk_bytes, 1);
    if (!v->path || !v->chunk) return drps_err_set(err, -ENOMEM, "no memory to read %s", dir);
    return drps_io_open(v->io, v->path, O_RDONLY, &v->fd, err);
}

int drps_runs_verify_saved(const struct drps_io *io, const char *dir, uint64_t skipped,
                           struct drps_err *err)
{
    struct verify v = {.io = io, .fd = -1};
    int rc = drps_saved_open(&v.saved, io, dir, err);
    if (rc == 0) rc = verify_records(&v, err);
    if (rc == 0) rc = open_runs(&v, dir, skipped, err);
    if (rc == 0) rc = verify_chunks(&v, err);
    drps_io_close(io, v.fd);
    drps_saved_close(&v.saved);
    free(v.path);
    free(v.chunk);
    return rc;
}
