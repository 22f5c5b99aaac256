/*
 * Pairs of blocks that batches touch together, of all shards: each sends its own as a sorted list,
 * and these lists are merged as they come.
 */
#include "index/blocks/remote/remote_internal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/drps_alloc.h"

struct stream {
    unsigned shard;
    uint64_t left; /* pairs not yet received */
    size_t at, n;
    struct block_pair_count buf[8192];
};

/* Makes stream->buf[stream->at] the next pair, if there is one. */
static int stream_fill(struct remote_counts *c, struct stream *s, struct drps_err *err)
{
    const size_t most = sizeof(s->buf) / sizeof(s->buf[0]);
    if (s->at < s->n || !s->left) return 0;
    s->at = 0;
    s->n = s->left < most ? (size_t)s->left : most;
    s->left -= s->n;
    int rc = drps_remote_receive(c, s->shard, s->buf, s->n * sizeof(s->buf[0]), err);
    if (rc < 0) s->n = s->left = 0;
    return rc;
}

static int comes_before(const struct block_pair_count *x, const struct block_pair_count *y)
{
    return x->a != y->a ? x->a < y->a : x->b < y->b;
}

/* The least pair of all streams with its counts added up; 0: there is none. */
static int next_pair(struct remote_counts *c, struct stream *streams, struct block_pair_count *out,
                     struct drps_err *err)
{
    const struct block_pair_count *least = NULL;
    for (unsigned i = 0; i < c->link->peers; i++) {
        struct stream *s = &streams[i];
        int rc = stream_fill(c, s, err);
        if (rc < 0) return rc;
        if (s->at < s->n && (!least || comes_before(&s->buf[s->at], least))) least = &s->buf[s->at];
    }
    if (!least) return 0;
    *out = (struct block_pair_count){least->a, least->b, 0};
    for (unsigned i = 0; i < c->link->peers; i++) {
        struct stream *s = &streams[i];
        if (s->at < s->n && s->buf[s->at].a == out->a && s->buf[s->at].b == out->b)
            out->count += s->buf[s->at++].count;
    }
    return 1;
}

/* The heads of all answers. *sum: pairs of all shards, whether they are sent or not. */
static int open_streams(struct remote_counts *c, struct stream *streams, uint64_t *sum,
                        struct drps_err *err)
{
    int rc = 0;
    *sum = 0;
    for (unsigned i = 0; i < c->link->peers; i++) {
        struct drps_err *say = rc < 0 ? NULL : err;
        struct remote_head h = {0};
        streams[i].shard = i;
        int one = drps_remote_receive_head(c, i, &h, say);
        if (one == 0 && h.bytes != h.value * sizeof(struct block_pair_count))
            one = drps_remote_broken(c, i, drps_err_set(say, DRPS_E_CORRUPT, "no list of pairs"),
                                     say);
        if (one == 0) streams[i].left = h.value;
        *sum += h.value;
        if (rc == 0) rc = one;
    }
    return rc;
}

/* Receive and count all pairs, and keep up to `most` of them. */
static int merge_streams(struct remote_counts *c, struct stream *streams,
                         struct block_pair_count *pairs, size_t most, size_t *n_out,
                         struct drps_err *err)
{
    struct block_pair_count pair;
    size_t n = 0;
    int more;
    while ((more = next_pair(c, streams, &pair, err)) > 0) {
        if (pair.a >= pair.b || pair.b >= c->counts.blocks) {
            c->broken =
                drps_err_set(err, DRPS_E_CORRUPT, "a shard sent the pair %u, %u", pair.a, pair.b);
            return c->broken;
        }
        if (n < most) pairs[n] = pair;
        n++;
    }
    *n_out = n;
    return more;
}

int drps_remote_pairs(struct counts *t, const uint32_t *with, size_t with_n, uint64_t memory_bytes,
                      struct block_pair_count **pairs_out, size_t *n_out, struct drps_err *err)
{
    struct remote_counts *c = remote_of(t);
    struct stream *streams = calloc(c->link->peers, sizeof(*streams));
    struct block_pair_count *pairs = NULL;
    if (c->link->ranks) memory_bytes /= 2; /* the rest is for the answer of rank 0's own share */
    uint64_t sum, most = memory_bytes / sizeof(*pairs);
    size_t n = 0;

    *pairs_out = NULL;
    *n_out = 0;
    if (!streams) return drps_err_set(err, -ENOMEM, "no memory to merge pairs of blocks");
    int rc = with ? drps_remote_tell(c, REMOTE_PAIRS_WITH, memory_bytes, with,
                                     with_n * sizeof(*with), err)
                  : drps_remote_tell(c, REMOTE_PAIRS_ALL, memory_bytes, NULL, 0, err);
    if (rc == 0) rc = drps_remote_settle(c, err);
    if (rc < 0) goto out;
    rc = open_streams(c, streams, &sum, err);
    if (most > sum) most = sum;
    if (rc == 0 && !(pairs = drps_array_new((size_t)most, sizeof(*pairs))))
        rc = drps_err_set(err, -ENOMEM, "no memory for %" PRIu64 " pairs of blocks", most);
    int merged =
        merge_streams(c, streams, pairs, pairs ? (size_t)most : 0, &n, rc < 0 ? NULL : err);
    *n_out = rc < 0 ? (size_t)sum : n; /* a shard had too many: as many as they may be */
    if (rc == 0) rc = merged;
    if (rc == 0 && n > most)
        rc = drps_err_set(err, DRPS_E_MEMORY_BUDGET,
                          "%zu pairs of blocks are used together, there is room for %" PRIu64, n,
                          most);
    if (rc == 0) {
        *pairs_out = pairs;
        pairs = NULL;
    }
out:
    free(pairs);
    free(streams);
    return rc;
}
