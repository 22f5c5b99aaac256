/*
 * Questions to all shards and their answers, over a link (remote_wire.h has the messages). A
 * failure names the shard; after one that leaves a shard out of step, nothing can be asked any
 * more.
 */
#include "index/blocks/remote/remote_internal.h"

#include <errno.h>
#include <inttypes.h>

#include "base/drps_alloc.h"

/* Puts before the text of a failure which of the link's peers it is of. */
static void name_peer(const struct drps_remote_link *link, unsigned shard, struct drps_err *err)
{
    (void)(link->ranks ? drps_err_context(err, "rank %u", shard)
                       : drps_err_context(err, "shard %u of %u", shard + 1, link->peers));
}

void drps_remote_name_lost(const struct drps_remote_link *link, unsigned shard,
                           struct drps_err *err)
{
    if (!link->ranks) name_peer(link, shard, err);
}

int drps_remote_broken(struct remote_counts *c, unsigned shard, int rc, struct drps_err *err)
{
    c->broken = rc;
    name_peer(c->link, shard, err);
    return rc;
}

static int lost(struct remote_counts *c, unsigned shard, int rc, struct drps_err *err)
{
    c->broken = rc;
    drps_remote_name_lost(c->link, shard, err);
    return rc;
}

/* ---- Questions, to all shards ---- */

int drps_remote_tell(struct remote_counts *c, enum remote_op op, uint64_t value,
                     const void *payload, uint64_t bytes, struct drps_err *err)
{
    const struct remote_head h = {(int32_t)op, value, bytes};
    int rc = 0;

    if (c->broken) return drps_err_set(err, c->broken, "a shard has failed before");
    for (unsigned shard = 0; shard < c->link->peers && rc == 0; shard++) {
        rc = remote_send(c->link, shard, &h, payload, err);
        if (rc < 0) rc = lost(c, shard, rc, err);
    }
    return rc;
}

/* ---- Answers ---- */

int drps_remote_receive(struct remote_counts *c, unsigned shard, void *bytes, uint64_t n,
                        struct drps_err *err)
{
    int rc = n ? c->link->ops->receive(c->link, shard, bytes, (size_t)n, err) : 0;
    return rc < 0 ? lost(c, shard, rc, err) : 0;
}

static int receive_failure(struct remote_counts *c, unsigned shard, const struct remote_head *h,
                           struct drps_err *err)
{
    char text[sizeof(err->text)] = "";
    if (h->what > 0 || h->bytes >= sizeof(text))
        return drps_remote_broken(
            c, shard, drps_err_set(err, DRPS_E_CORRUPT, "no answer: code %" PRId32, h->what), err);
    int rc = drps_remote_receive(c, shard, text, h->bytes, err);
    if (rc < 0) return rc;
    /* What ends the shard's process does not end this one as though it had been interrupted. */
    rc = drps_err_set(err, h->what == DRPS_E_INTERRUPTED ? DRPS_E_PEER : h->what, "%s", text);
    name_peer(c->link, shard, err);
    return rc;
}

int drps_remote_receive_head(struct remote_counts *c, unsigned shard, struct remote_head *h,
                             struct drps_err *err)
{
    uint8_t head[REMOTE_HEAD_BYTES];
    int rc = drps_remote_receive(c, shard, head, sizeof(head), err);
    if (rc < 0) return rc;
    *h = remote_head_get(head);
    return h->what ? receive_failure(c, shard, h, err) : 0;
}

int drps_remote_settle(struct remote_counts *c, struct drps_err *err)
{
    struct remote_head h;
    int rc = 0;
    for (; c->owed && rc == 0; c->owed--)
        for (unsigned shard = 0; shard < c->link->peers && rc == 0; shard++) {
            rc = drps_remote_receive_head(c, shard, &h, err);
            if (rc == 0 && h.bytes)
                rc = drps_remote_broken(
                    c, shard, drps_err_set(err, DRPS_E_CORRUPT, "no answer to a merge"), err);
        }
    if (rc < 0) c->broken = rc;
    return rc;
}

int drps_remote_gather(struct remote_counts *c, remote_combine *add, void *out, size_t n,
                       size_t size, struct drps_err *err)
{
    struct remote_head h;
    int rc = drps_remote_settle(c, err);

    if (rc < 0) return rc;
    if (drps_array_reserve(&c->part, &c->part_cap, n * size, 1))
        return drps_remote_broken(c, 0, drps_err_set(err, -ENOMEM, "no memory for %zu numbers", n),
                                  err);
    for (unsigned shard = 0; shard < c->link->peers; shard++) {
        struct drps_err *say = rc < 0 ? NULL : err;
        int one = drps_remote_receive_head(c, shard, &h, say);
        if (one == 0 && h.bytes != n * size)
            one = drps_remote_broken(
                c, shard,
                drps_err_set(say, DRPS_E_CORRUPT, "%" PRIu64 " bytes, not %zu", h.bytes, n * size),
                say);
        if (one == 0) one = drps_remote_receive(c, shard, c->part, h.bytes, say);
        if (one == 0 && add) add(c, out, n);
        if (rc == 0) rc = one;
    }
    return rc;
}
