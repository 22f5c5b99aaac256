/*
 * The runs of one call to a block file: planned, read and written many at a time through a ring of
 * buffers, checked and copied from or to the caller's values.
 */
#include "storage/kv/blockfile.h"

#include <inttypes.h>
#include <string.h>

#include "base/drps_checksum.h"

/* ---- One run ---- */

static char *page_of(const struct drps_blockfile *kv, const struct drps_blockfile_run *t,
                     uint32_t page)
{
    return kv->buffers + t->at + (drps_extents_offset(&kv->extents, page) - t->run.offset);
}

static uint32_t page_bytes(const struct drps_blockfile *kv, uint32_t page)
{
    return drps_extents_sectors(&kv->extents, page) * kv->extents.sector;
}

static uint32_t page_sum(const struct drps_blockfile *kv, const struct drps_blockfile_run *t,
                         uint32_t page)
{
    return (uint32_t)drps_checksum(page_of(kv, t, page), page_bytes(kv, page));
}

static int verify_page(const struct drps_blockfile *kv, const struct drps_blockfile_run *t,
                       uint32_t page, struct drps_err *err)
{
    if (page_sum(kv, t, page) == kv->sum[page]) return 0;
    return drps_err_set(err, DRPS_E_CORRUPT,
                        "%s: the %" PRIu32 " bytes at offset %" PRIu64
                        " are not those that were written (checksum): the disk is failing, or "
                        "something else wrote there; start again",
                        kv->path, page_bytes(kv, page), drps_extents_offset(&kv->extents, page));
}

/* Returns where a value lies in its page. */
static char *value_at(const struct drps_blockfile *kv, const struct drps_blockfile_run *t,
                      uint32_t page, uint32_t key)
{
    return page_of(kv, t, page) +
           drps_extents_between(&kv->extents, drps_extents_first(&kv->extents, page), key);
}

/* Copy the values of a run that was read to the caller. */
static int take_values(const struct drps_blockfile *kv, const struct drps_blockfile_run *t,
                       const struct drps_blockfile_call *c, struct drps_err *err)
{
    uint32_t verified = UINT32_MAX;
    for (size_t i = t->run.key; i < t->run.key + t->run.keys; i++) {
        const size_t k = (size_t)(c->order[i] & UINT32_MAX);
        const uint32_t page = drps_extents_page(&kv->extents, c->keys[k]);
        int rc = page == verified ? 0 : verify_page(kv, t, page, err);
        if (rc < 0) return rc;
        verified = page;
        memcpy(c->out[k], value_at(kv, t, page, c->keys[k]),
               drps_blockfile_value_bytes(kv, c->keys[k]));
    }
    return 0;
}

/* Set the bytes of a page beside the values of the call: what was read if the run was, else zeros.
 */
static int prepare_page(const struct drps_blockfile *kv, const struct drps_blockfile_run *t,
                        uint32_t page, struct drps_err *err)
{
    if (t->run.shared) return verify_page(kv, t, page, err);
    memset(page_of(kv, t, page), 0, page_bytes(kv, page));
    return 0;
}

/* Put the values of the call into the pages of a run. */
static int fill_pages(struct drps_blockfile *kv, const struct drps_blockfile_run *t,
                      const struct drps_blockfile_call *c, struct drps_err *err)
{
    const size_t keys_end = t->run.key + t->run.keys;
    for (size_t k = t->run.key; k < keys_end;) {
        const uint32_t page = drps_extents_page(&kv->extents, c->keys[k]);
        const uint32_t end = drps_extents_first(&kv->extents, page + 1);
        int rc = prepare_page(kv, t, page, err);
        if (rc < 0) return rc;
        for (; k < keys_end && c->keys[k] < end; k++)
            memcpy(value_at(kv, t, page, c->keys[k]), c->in[k],
                   drps_blockfile_value_bytes(kv, c->keys[k]));
        kv->sum[page] = page_sum(kv, t, page);
    }
    return 0;
}

/* ---- All runs of a call ---- */

/* Find room for a run behind the newest one, or at the beginning where the ring ends too early. */
static int find_room(const struct drps_blockfile *kv, uint32_t bytes, size_t *at_out)
{
    if (kv->n == DRPS_BLOCKFILE_DEPTH) return 0;
    if (!kv->n) {
        *at_out = 0;
        return 1;
    }
    const size_t oldest = kv->ring[kv->first].at, at = kv->ring_at;
    *at_out = at > oldest && kv->buffers_bytes - at < bytes ? 0 : at;
    const size_t end = *at_out > oldest ? kv->buffers_bytes : oldest;
    return end - *at_out >= bytes && *at_out + bytes != oldest;
}

static void queue(struct drps_blockfile *kv, struct drps_blockfile_run *t, int write)
{
    t->reads = !write;
    kv->op[kv->ops_n++] = (struct drps_aio_op){.buf = kv->buffers + t->at,
                                               .bytes = t->run.bytes,
                                               .offset = t->run.offset,
                                               .write = write,
                                               .tag = (uint32_t)(t - kv->ring)};
}

/* Plan the next run, unless one is planned. Returns 0 when there are no more. */
static int plan_run(struct drps_blockfile *kv, struct drps_blockfile_call *c)
{
    if (c->run.keys) return 1;
    if (c->next == c->n) return 0;
    if (c->write)
        drps_extents_write_run(&kv->extents, c->keys, c->n, c->next, kv->stored, &c->run);
    else
        drps_extents_read_run(&kv->extents, c->keys, c->order, c->n, c->next, kv->gap_bytes,
                              &c->run);
    c->next += c->run.keys;
    return 1;
}

/* Begin as many runs as there is room for. */
static int begin_runs(struct drps_blockfile *kv, struct drps_blockfile_call *c,
                      struct drps_err *err)
{
    while (plan_run(kv, c)) {
        size_t at;
        if (!find_room(kv, c->run.bytes, &at)) return 0;
        struct drps_blockfile_run *t = &kv->ring[(kv->first + kv->n++) % DRPS_BLOCKFILE_DEPTH];
        *t = (struct drps_blockfile_run){.run = c->run, .at = at, .writes = c->write};
        kv->ring_at = at + c->run.bytes;
        c->run.keys = 0;
        const int fill = c->write && !t->run.shared;
        int rc = fill ? fill_pages(kv, t, c, err) : 0;
        if (rc < 0) return rc;
        queue(kv, t, fill);
    }
    return 0;
}

/* The read or write of a run has finished: do what comes next. */
static int go_on(struct drps_blockfile *kv, struct drps_blockfile_run *t,
                 const struct drps_blockfile_call *c, struct drps_err *err)
{
    if (t->reads && t->writes) {
        int rc = fill_pages(kv, t, c, err);
        if (rc == 0) queue(kv, t, 1);
        return rc;
    }
    t->done = 1;
    return t->reads ? take_values(kv, t, c, err) : 0;
}

static int wait_some(struct drps_blockfile *kv, const struct drps_blockfile_call *c,
                     struct drps_err *err)
{
    uint32_t tags[DRPS_BLOCKFILE_DEPTH];
    size_t n = 0;
    int rc = drps_aio_wait(kv->aio, 1, tags, DRPS_BLOCKFILE_DEPTH, &n, err);
    for (size_t i = 0; i < n && rc == 0; i++)
        rc = go_on(kv, &kv->ring[tags[i]], c, err);
    for (; kv->n && kv->ring[kv->first].done; kv->n--)
        kv->first = (kv->first + 1) % DRPS_BLOCKFILE_DEPTH;
    return rc;
}

/* Wait for all that is under way: after a failure nothing may touch the buffers. */
static void drain(struct drps_blockfile *kv)
{
    uint32_t tags[DRPS_BLOCKFILE_DEPTH];
    size_t n;
    while (drps_aio_under_way(kv->aio) &&
           drps_aio_wait(kv->aio, 1, tags, DRPS_BLOCKFILE_DEPTH, &n, NULL) == 0)
        ;
    kv->n = 0;
    kv->ops_n = 0;
}

int drps_blockfile_move(struct drps_blockfile *kv, struct drps_blockfile_call *c,
                        struct drps_err *err)
{
    int rc = 0;
    while (rc == 0 && (c->next < c->n || c->run.keys || kv->n)) {
        rc = begin_runs(kv, c, err);
        if (rc == 0) rc = drps_aio_submit(kv->aio, kv->op, kv->ops_n, err);
        kv->ops_n = 0;
        if (rc == 0) rc = wait_some(kv, c, err);
    }
    if (rc < 0) drain(kv);
    return rc;
}
