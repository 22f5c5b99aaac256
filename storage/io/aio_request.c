/* One request: how far it has come, what is left of it, and how long to wait when it is refused. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "storage/io/aio_internal.h"

enum {
    STALLS_MAX = 1000,  /* calls in a row that move nothing before one gives up */
    PAUSE_NS = 16000,   /* after the first refusal; twice as long after the next ... */
    PAUSE_DOUBLINGS = 8 /* ... up to 4 ms */
};

void drps_aio_note(struct drps_aio *aio, const char *fmt, ...)
{
    char *why = aio->about.why;
    size_t used = strlen(why);
    va_list ap;
    if (used) used += (size_t)snprintf(why + used, sizeof(aio->about.why) - used, "; ");
    if (used >= sizeof(aio->about.why)) return;
    va_start(ap, fmt);
    (void)vsnprintf(why + used, sizeof(aio->about.why) - used, fmt, ap); /* a cut text will do */
    va_end(ap);
}

static int finish(struct drps_aio_request *s, int result)
{
    s->result = result;
    return 1;
}

int drps_aio_advance(const struct drps_aio *aio, struct drps_aio_request *s, int64_t got)
{
    if (got == -EINTR || got == -EAGAIN) return ++s->stalls < STALLS_MAX ? 0 : finish(s, (int)got);
    if (got < 0) return finish(s, (int)got);
    int too_short = s->write ? -EIO : DRPS_E_CORRUPT;
    if (got == 0) return finish(s, too_short);
    uint32_t moved = s->moved + (uint32_t)got;
    if (moved == s->bytes) return finish(s, 0);
    /* O_DIRECT goes on at aligned bytes only: what came after the last of them is moved again. */
    uint32_t next = aio->about.direct ? moved - moved % aio->align : moved;
    if (next > s->moved) {
        s->moved = next;
        s->stalls = 0;
        return 0;
    }
    if (++s->stalls < STALLS_MAX) return 0;
    s->moved = moved; /* a file that ends inside an aligned piece ends here */
    return finish(s, too_short);
}

struct drps_aio_part drps_aio_rest(const struct drps_aio_request *s)
{
    if (!s->pieces)
        return (struct drps_aio_part){.buf = s->buf + s->moved, .bytes = s->bytes - s->moved};
    const struct iovec *piece = s->pieces;
    size_t at = s->moved;
    for (; at >= piece->iov_len; piece++)
        at -= piece->iov_len;
    const unsigned left = s->pieces_n - (unsigned)(piece - s->pieces);
    if (!at && left > 1)
        return (struct drps_aio_part){
            .bytes = s->bytes - s->moved, .pieces = piece, .pieces_n = left};
    return (struct drps_aio_part){.buf = (char *)piece->iov_base + at,
                                  .bytes = (uint32_t)(piece->iov_len - at)};
}

/* ---- Requests that pass by the seam's calls ---- */

/* The request for a part, which may need `one` for its only piece. */
static struct drps_io_request request_of(const struct drps_aio *aio,
                                         const struct drps_aio_request *s,
                                         const struct drps_aio_part *part, struct iovec *one)
{
    *one = (struct iovec){.iov_base = part->buf, .iov_len = part->bytes};
    return (struct drps_io_request){.fd = aio->fd,
                                    .write = s->write,
                                    .n = part->pieces ? (int)part->pieces_n : 1,
                                    .pieces = part->pieces ? part->pieces : one,
                                    .bytes = part->bytes,
                                    .offset = s->offset + s->moved};
}

struct drps_aio_part drps_aio_asked(const struct drps_aio *aio, const struct drps_aio_request *s)
{
    struct iovec one;
    struct drps_aio_part part = drps_aio_rest(s);
    if (!aio->io->ops->asked) return part;
    const struct drps_io_request r = request_of(aio, s, &part, &one);
    const size_t may = aio->io->ops->asked(aio->io->ctx, &r);
    if (may >= part.bytes) return part;
    const size_t first = r.pieces->iov_len; /* a transfer may be shorter still */
    return (struct drps_aio_part){.buf = r.pieces->iov_base,
                                  .bytes = (uint32_t)(may < first ? may : first)};
}

int64_t drps_aio_told(const struct drps_aio *aio, const struct drps_aio_request *s, int got)
{
    struct iovec one;
    if (!aio->io->ops->told) return got;
    const struct drps_aio_part part = drps_aio_rest(s);
    const struct drps_io_request r = request_of(aio, s, &part, &one);
    return aio->io->ops->told(aio->io->ctx, &r, got);
}

/*
 * Nothing tells when the kernel has room again, if nothing of ours is under way: so this is a
 * back-off, and not how one thread waits for another. A signal that ends it early does no harm.
 */
void drps_aio_pause(int refusals)
{
    const int doublings = refusals < PAUSE_DOUBLINGS ? refusals : PAUSE_DOUBLINGS;
    const struct timespec t = {.tv_nsec = (long)PAUSE_NS << doublings};
    (void)clock_nanosleep(CLOCK_MONOTONIC, 0, &t, NULL);
}
