/* Requests of the streams are handed over and waited for here; the writing or the reading part is
 * told what has finished. */
#include <errno.h>

#include "storage/relay/streams/streams_internal.h"

/* Tags below DRPS_STREAMS_WRITES are of writes, the others of reads. */
static void finished(struct drps_streams *s, uint32_t tag)
{
    if (tag < DRPS_STREAMS_WRITES)
        s->written(s, tag);
    else
        s->came(s, tag - DRPS_STREAMS_WRITES);
}

int drps_streams_submit(struct drps_streams *s, struct drps_err *err)
{
    if (!s->pending_n) return 0;
    const size_t n = s->pending_n;
    s->pending_n = 0;
    return drps_aio_submit(s->aio, s->pending, n, err);
}

int drps_streams_reap(struct drps_streams *s, unsigned least, struct drps_err *err)
{
    uint32_t tags[64];
    size_t n = 0;
    int rc = drps_aio_wait(s->aio, least, tags, sizeof(tags) / sizeof(tags[0]), &n, err);
    if (rc < 0) return rc;
    for (size_t i = 0; i < n; i++)
        finished(s, tags[i]);
    return 0;
}

int drps_streams_await_one(struct drps_streams *s, struct drps_err *err)
{
    int rc = drps_streams_submit(s, err);
    if (rc == 0 && !drps_aio_under_way(s->aio)) rc = s->flush(s, err);
    if (rc < 0) return rc;
    if (!drps_aio_under_way(s->aio))
        return drps_err_set(err, -EINVAL, "%s: all %zu chunks of memory are taken", s->config.path,
                            s->buffers_n);
    return drps_streams_reap(s, 1, err);
}
