/* Access counts that are the sums of those of several shards, each in a process of its own. */
#include "index/blocks/remote/drps_remote.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"
#include "index/blocks/remote/remote_wire.h"

struct remote_counts {
    struct counts counts;
    struct drps_remote_link *link; /* own */
    void *part;                    /* own: an answer, before it is added up */
    size_t part_cap;
    unsigned owed; /* answers to merges, which come before all others */
    int broken;    /* a code: a shard is gone, or out of step */
};
enum { OWED_MOST = 64 };

static struct remote_counts *remote_of(struct counts *t)
{
    return (struct remote_counts *)t;
}

/* Puts before the text of a failure which of the link's peers it is of. */
static void name_peer(const struct drps_remote_link *link, unsigned shard, struct drps_err *err)
{
    (void)(link->ranks ? drps_err_context(err, "rank %u", shard)
                       : drps_err_context(err, "shard %u of %u", shard + 1, link->peers));
}

void remote_name_lost(const struct drps_remote_link *link, unsigned shard, struct drps_err *err)
{
    if (!link->ranks) name_peer(link, shard, err);
}

/* Names the shard; nothing can be asked any more. */
static int broken(struct remote_counts *c, unsigned shard, int rc, struct drps_err *err)
{
    c->broken = rc;
    name_peer(c->link, shard, err);
    return rc;
}

static int lost(struct remote_counts *c, unsigned shard, int rc, struct drps_err *err)
{
    c->broken = rc;
    remote_name_lost(c->link, shard, err);
    return rc;
}

/* ---- Questions, to all shards ---- */

static int tell(struct remote_counts *c, enum remote_op op, uint64_t value, const void *payload,
                uint64_t bytes, struct drps_err *err)
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

static int receive(struct remote_counts *c, unsigned shard, void *bytes, uint64_t n,
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
        return broken(c, shard,
                      drps_err_set(err, DRPS_E_CORRUPT, "no answer: code %" PRId32, h->what), err);
    int rc = receive(c, shard, text, h->bytes, err);
    if (rc < 0) return rc;
    /* What ends the shard's process does not end this one as though it had been interrupted. */
    rc = drps_err_set(err, h->what == DRPS_E_INTERRUPTED ? DRPS_E_PEER : h->what, "%s", text);
    name_peer(c->link, shard, err);
    return rc;
}

/* The head of an answer; a failure that the shard reports is received whole. */
static int receive_head(struct remote_counts *c, unsigned shard, struct remote_head *h,
                        struct drps_err *err)
{
    uint8_t head[REMOTE_HEAD_BYTES];
    int rc = receive(c, shard, head, sizeof(head), err);
    if (rc < 0) return rc;
    *h = remote_head_get(head);
    return h->what ? receive_failure(c, shard, h, err) : 0;
}

/* Adds the answer in c->part to what out has. */
typedef void combine(const struct remote_counts *c, void *out, size_t n);

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

/* Answers to merges; a shard in which one has failed is out of step. */
static int settle(struct remote_counts *c, struct drps_err *err)
{
    struct remote_head h;
    int rc = 0;
    for (; c->owed && rc == 0; c->owed--)
        for (unsigned shard = 0; shard < c->link->peers && rc == 0; shard++) {
            rc = receive_head(c, shard, &h, err);
            if (rc == 0 && h.bytes)
                rc = broken(c, shard, drps_err_set(err, DRPS_E_CORRUPT, "no answer to a merge"),
                            err);
        }
    if (rc < 0) c->broken = rc;
    return rc;
}

/* Answers of n numbers of `size` bytes from every shard; the first failure is told, the rest is
 * received all the same. */
static int gather(struct remote_counts *c, combine *add, void *out, size_t n, size_t size,
                  struct drps_err *err)
{
    struct remote_head h;
    int rc = settle(c, err);

    if (rc < 0) return rc;
    if (drps_array_reserve(&c->part, &c->part_cap, n * size, 1))
        return broken(c, 0, drps_err_set(err, -ENOMEM, "no memory for %zu numbers", n), err);
    for (unsigned shard = 0; shard < c->link->peers; shard++) {
        struct drps_err *say = rc < 0 ? NULL : err;
        int one = receive_head(c, shard, &h, say);
        if (one == 0 && h.bytes != n * size)
            one = broken(
                c, shard,
                drps_err_set(say, DRPS_E_CORRUPT, "%" PRIu64 " bytes, not %zu", h.bytes, n * size),
                say);
        if (one == 0) one = receive(c, shard, c->part, h.bytes, say);
        if (one == 0 && add) add(c, out, n);
        if (rc == 0) rc = one;
    }
    return rc;
}

/* ---- Operations ---- */

static int remote_counts(struct counts *t, uint32_t *count_out, struct drps_err *err)
{
    memset(count_out, 0, t->blocks * sizeof(*count_out));
    int rc = tell(remote_of(t), REMOTE_COUNTS, 0, NULL, 0, err);
    if (rc < 0) return rc;
    return gather(remote_of(t), add_u32, count_out, t->blocks, sizeof(*count_out), err);
}

static int remote_signatures(struct counts *t, uint64_t *sig_out, struct drps_err *err)
{
    memset(sig_out, 0, t->blocks * sizeof(*sig_out));
    int rc = tell(remote_of(t), REMOTE_SIGNATURES, 0, NULL, 0, err);
    if (rc < 0) return rc;
    return gather(remote_of(t), add_u64, sig_out, t->blocks, sizeof(*sig_out), err);
}

static int remote_minhash(struct counts *t, uint64_t salt, uint32_t *min_out, struct drps_err *err)
{
    memset(min_out, 0xff, t->blocks * sizeof(*min_out));
    int rc = tell(remote_of(t), REMOTE_MINHASH, salt, NULL, 0, err);
    if (rc < 0) return rc;
    return gather(remote_of(t), least_u32, min_out, t->blocks, sizeof(*min_out), err);
}

static int remote_cocounts(struct counts *t, const struct block_pair *pairs, size_t n,
                           uint32_t *count_out, struct drps_err *err)
{
    int rc = 0;
    for (size_t first = 0; first < n && rc == 0; first += REMOTE_PAIRS) {
        const size_t m = n - first < REMOTE_PAIRS ? n - first : REMOTE_PAIRS;
        memset(count_out + first, 0, m * sizeof(*count_out));
        rc = tell(remote_of(t), REMOTE_COCOUNTS, 0, pairs + first, m * sizeof(*pairs), err);
        if (rc == 0)
            rc = gather(remote_of(t), add_u32, count_out + first, m, sizeof(*count_out), err);
    }
    return rc;
}

static int remote_pair_work(struct counts *t, uint64_t *work_out, struct drps_err *err)
{
    *work_out = 0;
    int rc = tell(remote_of(t), REMOTE_PAIR_WORK, 0, NULL, 0, err);
    return rc < 0 ? rc : gather(remote_of(t), add_u64, work_out, 1, sizeof(*work_out), err);
}

static int remote_merge(struct counts *t, const struct block_pair *pairs, size_t n,
                        struct drps_err *err)
{
    struct remote_counts *c = remote_of(t);
    int rc = tell(c, REMOTE_MERGE, 0, pairs, n * sizeof(*pairs), err);
    if (rc < 0) return rc;
    c->owed++; /* the next question need not wait */
    return c->owed < OWED_MOST ? 0 : settle(c, err);
}

static int remote_groups(struct counts *t, const uint8_t *group, struct drps_err *err)
{
    int rc = tell(remote_of(t), REMOTE_GROUPS, 0, group, t->blocks, err);
    return rc < 0 ? rc : gather(remote_of(t), NULL, NULL, 0, 1, err);
}

static int remote_reset(struct counts *t, struct drps_err *err)
{
    int rc = tell(remote_of(t), REMOTE_RESET, 0, NULL, 0, err);
    return rc < 0 ? rc : gather(remote_of(t), NULL, NULL, 0, 1, err);
}

/* ---- Pairs: sorted lists that are merged as they come ---- */

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
    int rc = receive(c, s->shard, s->buf, s->n * sizeof(s->buf[0]), err);
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
        int one = receive_head(c, i, &h, say);
        if (one == 0 && h.bytes != h.value * sizeof(struct block_pair_count))
            one = broken(c, i, drps_err_set(say, DRPS_E_CORRUPT, "no list of pairs"), say);
        if (one == 0) streams[i].left = h.value;
        *sum += h.value;
        if (rc == 0) rc = one;
    }
    return rc;
}

/* Up to `most` pairs are kept, all are received and counted. */
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

static int remote_pairs(struct counts *t, const uint32_t *with, size_t with_n,
                        uint64_t memory_bytes, struct block_pair_count **pairs_out, size_t *n_out,
                        struct drps_err *err)
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
    int rc = with ? tell(c, REMOTE_PAIRS_WITH, memory_bytes, with, with_n * sizeof(*with), err)
                  : tell(c, REMOTE_PAIRS_ALL, memory_bytes, NULL, 0, err);
    if (rc == 0) rc = settle(c, err);
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

/* ---- Lists: those of the shards one behind the other ---- */

/* A shard's answer: how many batches each row has, and which. Own. */
struct part_lists {
    uint32_t *words;
    uint64_t batches;
};

static int receive_lists(struct remote_counts *c, unsigned shard, size_t n, struct part_lists *out,
                         struct drps_err *err)
{
    struct remote_head h = {0};
    uint64_t sum = 0;
    int rc = receive_head(c, shard, &h, err);
    if (rc < 0) return rc;
    if (h.value > (uint64_t)n * c->counts.batches || h.bytes != (n + h.value) * sizeof(uint32_t))
        return broken(c, shard, drps_err_set(err, DRPS_E_CORRUPT, "no lists of batches"), err);
    out->words = drps_array_new((size_t)(n + h.value), sizeof(*out->words));
    if (!out->words)
        return broken(c, shard, drps_err_set(err, -ENOMEM, "no memory for lists"), err);
    rc = receive(c, shard, out->words, h.bytes, err);
    for (size_t i = 0; rc == 0 && i < n; i++)
        sum += out->words[i];
    if (rc == 0 && sum != h.value)
        rc = broken(c, shard, drps_err_set(err, DRPS_E_CORRUPT, "lists of other lengths"), err);
    out->batches = h.value;
    return rc;
}

static void join_lists(const struct part_lists *parts, unsigned shards, size_t n,
                       struct access *out)
{
    for (unsigned k = 0; k < shards; k++)
        for (size_t i = 0; i < n; i++)
            out->start[i + 1] += parts[k].words[i];
    for (size_t i = 0; i < n; i++)
        out->start[i + 1] += out->start[i];
    for (unsigned k = 0; k < shards; k++) {
        const uint32_t *batch = parts[k].words + n;
        for (size_t i = 0; i < n; i++) { /* start[i] is where the next shard's begin */
            const size_t count = parts[k].words[i];
            memcpy(out->batch + out->start[i], batch, count * sizeof(*batch));
            out->start[i] += count;
            batch += count;
        }
    }
    memmove(out->start + 1, out->start, n * sizeof(*out->start)); /* they are ends, by now */
    out->start[0] = 0;
}

/* Shards have runs of batches one behind the other: so each row's list is strictly increasing. */
static int check_lists(const struct access *a)
{
    for (uint32_t row = 0; row < a->rows; row++)
        for (uint64_t i = a->start[row]; i < a->start[row + 1]; i++)
            if (a->batch[i] >= a->batches || (i > a->start[row] && a->batch[i] <= a->batch[i - 1]))
                return DRPS_E_CORRUPT;
    return 0;
}

static int remote_lists(struct counts *t, const uint32_t *rows, size_t n, uint64_t memory_bytes,
                        struct access *out, struct drps_err *err)
{
    struct remote_counts *c = remote_of(t);
    struct part_lists *parts = calloc(c->link->peers, sizeof(*parts));
    uint64_t sum = 0;

    *out = (struct access){0};
    if (!parts) return drps_err_set(err, -ENOMEM, "no memory for lists of %zu rows", n);
    int rc = tell(c, REMOTE_LISTS, memory_bytes, rows, n * sizeof(*rows), err);
    if (rc == 0) rc = settle(c, err);
    for (unsigned k = 0; k < c->link->peers && !c->broken; k++) { /* all answers are received */
        int one = receive_lists(c, k, n, &parts[k], rc < 0 ? NULL : err);
        sum += parts[k].batches;
        if (rc == 0) rc = one;
    }
    if (rc == 0) rc = access_new((uint32_t)n, t->batches, sum, memory_bytes, out, err);
    if (rc == 0) {
        join_lists(parts, c->link->peers, n, out);
        if (check_lists(out) < 0)
            rc = drps_err_set(err, DRPS_E_CORRUPT, "shards sent lists of batches that are none");
    }
    if (rc < 0) access_free(out);
    for (unsigned k = 0; k < c->link->peers; k++)
        free(parts[k].words);
    free(parts);
    return rc;
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
    .pairs = remote_pairs,
    .merge = remote_merge,
    .pair_work = remote_pair_work,
    .reset = remote_reset,
    .lists = remote_lists,
    .close = remote_close,
};

static int wait_until_ready(struct remote_counts *c, struct drps_err *err)
{
    int rc = 0;
    for (unsigned shard = 0; shard < c->link->peers && rc == 0; shard++) {
        struct remote_head h;
        rc = receive_head(c, shard, &h, err);
        if (rc == 0 && h.bytes)
            rc = broken(c, shard, drps_err_set(err, DRPS_E_CORRUPT, "it is not ready"), err);
        if (rc == 0 && h.value & 1) c->counts.streamed = 1;
        if (rc == 0 && shard == 0 && c->link->ranks) c->counts.access_bytes = h.value >> 1;
    }
    return rc;
}

int remote_over(struct drps_remote_link *link, uint32_t blocks, uint32_t batches,
                struct counts **t_out, struct drps_err *err)
{
    *t_out = NULL;
    struct remote_counts *c = calloc(1, sizeof(*c));
    if (!c) {
        link->ops->close(link);
        return drps_err_set(err, -ENOMEM, "no memory for what several ranks count");
    }
    c->counts = (struct counts){
        .ops = &remote_ops, .blocks = blocks, .batches = batches, .stop = link->stop};
    c->link = link;
    int rc = wait_until_ready(c, err);
    if (rc == 0)
        *t_out = &c->counts;
    else
        remote_close(&c->counts);
    return rc;
}
