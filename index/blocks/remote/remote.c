/*
 * Access counts that are the sums, or the least, of those of several shards, each in a process of
 * its own: the operations of struct counts, and opening.
 */
#include "index/blocks/remote/drps_remote.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "index/blocks/counts/drps_stream.h"
#include "index/blocks/remote/remote_internal.h"

enum { OWED_MOST = 64 }; /* merges whose answers are not waited for */

/* ---- How answers are added ---- */

static void add_u32(const struct remote_counts *c, void *out, size_t n)
{
    const uint32_t *part = c->part;
    uint32_t *sum = out;
    for (size_t i = 0; i < n; i++)
        sum[i] += part[i];
}

static void add_u64(const struct remote_counts *c, void *out, size_t n)
{
    const uint64_t *part = c->part;
    uint64_t *sum = out;
    for (size_t i = 0; i < n; i++)
        sum[i] += part[i];
}

static void least_u32(const struct remote_counts *c, void *out, size_t n)
{
    const uint32_t *part = c->part;
    uint32_t *least = out;
    for (size_t i = 0; i < n; i++)
        if (part[i] < least[i]) least[i] = part[i];
}

/* ---- Operations ---- */

static int remote_counts(struct counts *t, uint32_t *count_out, struct drps_err *err)
{
    memset(count_out, 0, t->blocks * sizeof(*count_out));
    int rc = drps_remote_tell(remote_of(t), REMOTE_COUNTS, 0, NULL, 0, err);
    if (rc < 0) return rc;
    return drps_remote_gather(remote_of(t), add_u32, count_out, t->blocks, sizeof(*count_out), err);
}

static int remote_signatures(struct counts *t, uint64_t *sig_out, struct drps_err *err)
{
    memset(sig_out, 0, t->blocks * sizeof(*sig_out));
    int rc = drps_remote_tell(remote_of(t), REMOTE_SIGNATURES, 0, NULL, 0, err);
    if (rc < 0) return rc;
    return drps_remote_gather(remote_of(t), add_u64, sig_out, t->blocks, sizeof(*sig_out), err);
}

static int remote_minhash(struct counts *t, uint64_t salt, uint32_t *min_out, struct drps_err *err)
{
    memset(min_out, 0xff, t->blocks * sizeof(*min_out));
    int rc = drps_remote_tell(remote_of(t), REMOTE_MINHASH, salt, NULL, 0, err);
    if (rc < 0) return rc;
    return drps_remote_gather(remote_of(t), least_u32, min_out, t->blocks, sizeof(*min_out), err);
}

static int remote_cocounts(struct counts *t, const struct block_pair *pairs, size_t n,
                           uint32_t *count_out, struct drps_err *err)
{
    int rc = 0;
    for (size_t first = 0; first < n && rc == 0; first += REMOTE_PAIRS) {
        const size_t m = n - first < REMOTE_PAIRS ? n - first : REMOTE_PAIRS;
        memset(count_out + first, 0, m * sizeof(*count_out));
        rc = drps_remote_tell(remote_of(t), REMOTE_COCOUNTS, 0, pairs + first, m * sizeof(*pairs),
                              err);
        if (rc == 0)
            rc = drps_remote_gather(remote_of(t), add_u32, count_out + first, m, sizeof(*count_out),
                                    err);
    }
    return rc;
}

static int remote_pair_work(struct counts *t, uint64_t *work_out, struct drps_err *err)
{
    *work_out = 0;
    int rc = drps_remote_tell(remote_of(t), REMOTE_PAIR_WORK, 0, NULL, 0, err);
    return rc < 0 ? rc
                  : drps_remote_gather(remote_of(t), add_u64, work_out, 1, sizeof(*work_out), err);
}

static int remote_merge(struct counts *t, const struct block_pair *pairs, size_t n,
                        struct drps_err *err)
{
    struct remote_counts *c = remote_of(t);
    int rc = drps_remote_tell(c, REMOTE_MERGE, 0, pairs, n * sizeof(*pairs), err);
    if (rc < 0) return rc;
    c->owed++; /* the next question need not wait */
    return c->owed < OWED_MOST ? 0 : drps_remote_settle(c, err);
}

static int remote_groups(struct counts *t, const uint8_t *group, struct drps_err *err)
{
    int rc = drps_remote_tell(remote_of(t), REMOTE_GROUPS, 0, group, t->blocks, err);
    return rc < 0 ? rc : drps_remote_gather(remote_of(t), NULL, NULL, 0, 1, err);
}

static int remote_reset(struct counts *t, struct drps_err *err)
{
    int rc = drps_remote_tell(remote_of(t), REMOTE_RESET, 0, NULL, 0, err);
    return rc < 0 ? rc : drps_remote_gather(remote_of(t), NULL, NULL, 0, 1, err);
}

/* ---- Opening ---- */

static void remote_close(struct counts *t)
{
    if (!t) return;
    struct remote_counts *c = remote_of(t);
    c->link->ops->close(c->link);
    free(c->part);
    free(c);
}

static const struct counts_ops remote_ops = {
    .counts = remote_counts,
    .signatures = remote_signatures,
    .minhash = remote_minhash,
    .cocounts = remote_cocounts,
    .groups = remote_groups,
    .pairs = drps_remote_pairs,
    .merge = remote_merge,
    .pair_work = remote_pair_work,
    .reset = remote_reset,
    .lists = drps_remote_lists,
    .close = remote_close,
};

/* A shard has so much memory for accesses: it has room for its part of those of pairs, or rather
 * seven eighths, as parts are not equal. */
static void note_streamed(struct remote_counts *c, uint64_t memory_bytes)
{
    struct counts *t = &c->counts;
    const uint64_t most =
        drps_stream_pair_accesses(t->blocks, t->batches, memory_bytes) / 8 * 7 * c->link->peers;
    if (most < t->pair_accesses) t->pair_accesses = most;
    t->streamed = 1;
}

static int wait_until_ready(struct remote_counts *c, struct drps_err *err)
{
    int rc = 0;
    for (unsigned shard = 0; shard < c->link->peers && rc == 0; shard++) {
        struct remote_head h;
        rc = drps_remote_receive_head(c, shard, &h, err);
        if (rc == 0 && h.bytes)
            rc = drps_remote_broken(c, shard, drps_err_set(err, DRPS_E_CORRUPT, "it is not ready"),
                                    err);
        if (rc == 0 && h.value & 1) note_streamed(c, h.value >> 1);
        if (rc == 0 && shard == 0 && c->link->ranks) c->counts.access_bytes = h.value >> 1;
    }
    return rc;
}

int drps_remote_over(struct drps_remote_link *link, uint32_t blocks, uint32_t batches,
                     struct counts **t_out, struct drps_err *err)
{
    *t_out = NULL;
    struct remote_counts *c = calloc(1, sizeof(*c));
    if (!c) {
        link->ops->close(link);
        return drps_err_set(err, -ENOMEM, "no memory for what several ranks count");
    }
    c->counts = (struct counts){.ops = &remote_ops,
                                .blocks = blocks,
                                .batches = batches,
                                .pair_accesses = UINT64_MAX,
                                .stop = link->stop};
    c->link = link;
    int rc = wait_until_ready(c, err);
    if (rc == 0)
        *t_out = &c->counts;
    else
        remote_close(&c->counts);
    return rc;
}
