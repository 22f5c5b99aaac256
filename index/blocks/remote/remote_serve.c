/* A shard's side: questions in, answers of its own counts out. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"
#include "index/blocks/remote/drps_remote.h"
#include "index/blocks/remote/remote_wire.h"

struct server {
    struct drps_remote_link *link;
    struct counts *counts;
    uint64_t most_bytes;     /* of lists or pairs in an answer */
    struct remote_head head; /* of the question */
    void *in;                /* own: [head.bytes] its payload */
    size_t in_cap;
    void *out; /* own: the payload of the answer, */
    size_t out_cap;
    struct block_pair_count *pairs; /* own: or these */
};

/* ---- Questions that are not what they should be ---- */

static int nonsense(const struct server *s, struct drps_err *err)
{
    return drps_err_set(err, DRPS_E_CORRUPT, "question %" PRId32 " with %" PRIu64 " bytes",
                        s->head.what, s->head.bytes);
}

static int are_pairs(const struct server *s)
{
    const struct block_pair *pairs = s->in;
    const size_t n = (size_t)s->head.bytes / sizeof(*pairs);
    if (s->head.bytes % sizeof(*pairs)) return 0;
    for (size_t i = 0; i < n; i++)
        if (pairs[i].a >= pairs[i].b || pairs[i].b >= s->counts->blocks) return 0;
    return 1;
}

static int are_increasing(const uint32_t *v, size_t n, uint64_t limit)
{
    for (size_t i = 0; i < n; i++)
        if (v[i] >= limit || (i > 0 && v[i] <= v[i - 1])) return 0;
    return 1;
}

/* ---- Answers ---- */

/* Make room for an answer. What follows returns the bytes of its answer in *bytes. */
static int room(struct server *s, uint64_t bytes, struct drps_err *err)
{
    if (drps_array_reserve(&s->out, &s->out_cap, (size_t)bytes, 1))
        return drps_err_set(err, -ENOMEM, "no memory to answer with %" PRIu64 " bytes", bytes);
    return 0;
}

static int answer_blocks(struct server *s, uint64_t *bytes, struct drps_err *err)
{
    const struct counts_ops *ops = s->counts->ops;
    *bytes = (uint64_t)s->counts->blocks * (s->head.what == REMOTE_SIGNATURES ? 8 : 4);
    if (s->head.bytes) return nonsense(s, err);
    int rc = room(s, *bytes, err);
    if (rc < 0) return rc;
    if (s->head.what == REMOTE_COUNTS) return ops->counts(s->counts, s->out, err);
    if (s->head.what == REMOTE_SIGNATURES) return ops->signatures(s->counts, s->out, err);
    return ops->minhash(s->counts, s->head.value, s->out, err);
}

static int answer_cocounts(struct server *s, uint64_t *bytes, struct drps_err *err)
{
    const size_t n = (size_t)s->head.bytes / sizeof(struct block_pair);
    *bytes = n * sizeof(uint32_t);
    if (n > REMOTE_PAIRS || !are_pairs(s)) return nonsense(s, err);
    int rc = room(s, *bytes, err);
    return rc < 0 ? rc : s->counts->ops->cocounts(s->counts, s->in, n, s->out, err);
}

static int answer_pairs(struct server *s, uint64_t *bytes, uint64_t *n_out, struct drps_err *err)
{
    const uint32_t *with = s->head.what == REMOTE_PAIRS_WITH ? s->in : NULL;
    const size_t with_n = (size_t)s->head.bytes / sizeof(*with);
    const uint64_t most_bytes = s->head.value < s->most_bytes ? s->head.value : s->most_bytes;
    size_t n = 0;

    if (s->head.bytes != (with ? with_n * sizeof(*with) : 0) ||
        !are_increasing(with, with ? with_n : 0, s->counts->blocks))
        return nonsense(s, err);
    int rc =
        s->counts->ops->pairs(s->counts, with, with ? with_n : 0, most_bytes, &s->pairs, &n, err);
    *n_out = n;
    *bytes = (uint64_t)n * sizeof(*s->pairs);
    return rc;
}

static int answer_lists(struct server *s, uint64_t *bytes, uint64_t *n_out, struct drps_err *err)
{
    const size_t n = (size_t)s->head.bytes / sizeof(uint32_t);
    const uint64_t most_bytes = s->head.value < s->most_bytes ? s->head.value : s->most_bytes;
    struct access lists;

    if (s->head.bytes % sizeof(uint32_t) || !are_increasing(s->in, n, s->counts->blocks))
        return nonsense(s, err);
    int rc = s->counts->ops->lists(s->counts, s->in, n, most_bytes, &lists, err);
    if (rc < 0) return rc;
    *n_out = lists.start[n];
    *bytes = (n + *n_out) * sizeof(uint32_t);
    rc = room(s, *bytes, err);
    uint32_t *out = s->out;
    for (size_t i = 0; rc == 0 && i < n; i++)
        out[i] = (uint32_t)(lists.start[i + 1] - lists.start[i]);
    if (rc == 0) memcpy(out + n, lists.batch, (size_t)*n_out * sizeof(*out));
    drps_access_free(&lists);
    return rc;
}

static int answer_rest(struct server *s, uint64_t *bytes, struct drps_err *err)
{
    const struct counts_ops *ops = s->counts->ops;
    const uint64_t n = s->head.bytes / sizeof(struct block_pair);
    int rc = room(s, sizeof(uint64_t), err);
    if (rc < 0) return rc;
    if (s->head.what == REMOTE_MERGE && are_pairs(s) && n <= s->counts->blocks / 2)
        return ops->merge(s->counts, s->in, (size_t)n, err);
    if (s->head.what == REMOTE_GROUPS && s->head.bytes == s->counts->blocks)
        return ops->groups(s->counts, s->in, err);
    if (s->head.what == REMOTE_RESET && !s->head.bytes) return ops->reset(s->counts, err);
    if (s->head.what == REMOTE_PAIR_WORK && !s->head.bytes) {
        *bytes = sizeof(uint64_t);
        return ops->pair_work(s->counts, s->out, err);
    }
    return nonsense(s, err);
}

/* ---- The conversation ---- */

static int reply(struct drps_remote_link *link, const struct drps_err *failure, uint64_t value,
                 const void *payload, uint64_t bytes, struct drps_err *err)
{
    if (failure->code) {
        payload = failure->text;
        bytes = strlen(failure->text);
    }
    return remote_send(link, 0, &(struct remote_head){failure->code, value, bytes}, payload, err);
}

static int answer(struct server *s, struct drps_err *err)
{
    struct drps_err failure = DRPS_ERR_INIT;
    uint64_t bytes = 0, value = 0;
    int pairs = 0, rc;

    switch (s->head.what) {
    case REMOTE_COUNTS:
    case REMOTE_SIGNATURES:
    case REMOTE_MINHASH:
        rc = answer_blocks(s, &bytes, &failure);
        break;
    case REMOTE_COCOUNTS:
        rc = answer_cocounts(s, &bytes, &failure);
        break;
    case REMOTE_PAIRS_ALL:
    case REMOTE_PAIRS_WITH:
        pairs = 1;
        rc = answer_pairs(s, &bytes, &value, &failure);
        break;
    case REMOTE_LISTS:
        rc = answer_lists(s, &bytes, &value, &failure);
        break;
    default:
        rc = answer_rest(s, &bytes, &failure);
    }
    failure.code = rc;
    rc = reply(s->link, &failure, value, pairs ? (void *)s->pairs : s->out, bytes, err);
    free(s->pairs);
    s->pairs = NULL;
    return rc;
}

/* The next question, with its payload. */
static int receive(struct server *s, struct drps_err *err)
{
    uint8_t head[REMOTE_HEAD_BYTES];
    int rc = s->link->ops->receive(s->link, 0, head, sizeof(head), err);
    if (rc < 0) return rc;
    s->head = remote_head_get(head);
    const uint64_t most =
        (uint64_t)s->counts->blocks * 8 + REMOTE_PAIRS * sizeof(struct block_pair);
    if (s->head.what <= 0 || s->head.what >= REMOTE_OPS || s->head.bytes > most)
        return nonsense(s, err);
    if (drps_array_reserve(&s->in, &s->in_cap, (size_t)s->head.bytes, 1))
        return drps_err_set(err, -ENOMEM, "no memory for a question");
    if (!s->head.bytes) return 0;
    return s->link->ops->receive(s->link, 0, s->in, (size_t)s->head.bytes, err);
}

int drps_remote_serve(struct drps_remote_link *link, struct counts *t,
                      const struct drps_err *failure, uint64_t most_bytes, struct drps_err *err)
{
    struct server s = {.link = link, .counts = t, .most_bytes = most_bytes};
    const uint64_t ready = t ? t->access_bytes << 1 | (unsigned)t->streamed : 0;
    int rc = reply(link, failure, ready, NULL, 0, err);
    if (rc == 0 && failure->code) rc = failure->code;
    while (rc == 0) {
        rc = receive(&s, err);
        if (rc == 0) rc = answer(&s, err);
    }
    free(s.in);
    free(s.out);
    return rc;
}
