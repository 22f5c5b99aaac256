/* Requests of the runs are handed over and waited for here; the writing or the reading part is told
 * what has finished. The file grows here, too. */
#include <errno.h>

#include "storage/relay/runs/runs_internal.h"

/* Tags below DRPS_RUNS_WRITES are of writes, the others of reads. */
static void finished(struct drps_runs *r, uint32_t tag)
{
    if (tag < DRPS_RUNS_WRITES)
        r->written(r, tag);
    else
        r->came(r, tag - DRPS_RUNS_WRITES);
}

int drps_runs_submit(struct drps_runs *r, struct drps_err *err)
{
    if (!r->pending_n) return 0;
    const size_t n = r->pending_n;
    r->pending_n = 0;
    return drps_aio_submit(r->aio, r->pending, n, err);
}

int drps_runs_reap(struct drps_runs *r, unsigned least, struct drps_err *err)
{
    uint32_t tags[64];
    size_t n = 0;
    int rc = drps_aio_wait(r->aio, least, tags, sizeof(tags) / sizeof(tags[0]), &n, err);
    if (rc < 0) return rc;
    for (size_t i = 0; i < n; i++)
        finished(r, tags[i]);
    return 0;
}

int drps_runs_await_one(struct drps_runs *r, struct drps_err *err)
{
    int rc = drps_runs_submit(r, err);
    if (rc == 0 && !drps_aio_under_way(r->aio)) rc = r->flush(r, err);
    if (rc < 0) return rc;
    if (!drps_aio_under_way(r->aio))
        return drps_err_set(err, -EINVAL, "%s: all chunks of memory are taken", r->config.path);
    return drps_runs_reap(r, 1, err);
}

int drps_runs_await_all(struct drps_runs *r, struct drps_err *err)
{
    int rc = drps_runs_submit(r, err);
    while (rc == 0 && drps_aio_under_way(r->aio))
        rc = drps_runs_reap(r, 1, err);
    return rc == 0 ? drps_runs_reap(r, 0, err) : rc;
}

int drps_runs_grow(struct drps_runs *r, uint64_t chunks, struct drps_err *err)
{
    if (chunks <= r->map.n) return 0;
    if (chunks >= DRPS_NO_CHUNK || chunks > INT64_MAX / r->config.chunk_bytes)
        return drps_err_set(err, -ENOSPC, "%s: %llu chunks of %zu bytes are too many",
                            r->config.path, (unsigned long long)chunks, r->config.chunk_bytes);
    int rc = drps_aio_grow(r->aio, chunks * r->config.chunk_bytes, err);
    if (rc == 0 && drps_chunk_map_grow(&r->map, chunks) < 0)
        rc = drps_err_set(err, -ENOMEM, "no memory for a map of %llu chunks",
                          (unsigned long long)chunks);
    return rc;
}
