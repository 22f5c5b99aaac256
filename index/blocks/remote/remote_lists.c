/*
 * Lists of the batches of rows, of all shards: each sends those of its own batches, and these are
 * put one behind the other.
 */
#include "index/blocks/remote/remote_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"

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
    int rc = drps_remote_receive_head(c, shard, &h, err);
    if (rc < 0) return rc;
    if (h.value > (uint64_t)n * c->counts.batches || h.bytes != (n + h.value) * sizeof(uint32_t))
        return drps_remote_broken(c, shard,
                                  drps_err_set(err, DRPS_E_CORRUPT, "no lists of batches"), err);
    out->words = drps_array_new((size_t)(n + h.value), sizeof(*out->words));
    if (!out->words)
        return drps_remote_broken(c, shard, drps_err_set(err, -ENOMEM, "no memory for lists"), err);
    rc = drps_remote_receive(c, shard, out->words, h.bytes, err);
    for (size_t i = 0; rc == 0 && i < n; i++)
        sum += out->words[i];
    if (rc == 0 && sum != h.value)
        rc = drps_remote_broken(c, shard,
                                drps_err_set(err, DRPS_E_CORRUPT, "lists of other lengths"), err);
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

int drps_remote_lists(struct counts *t, const uint32_t *rows, size_t n, uint64_t memory_bytes,
                      struct access *out, struct drps_err *err)
{
    struct remote_counts *c = remote_of(t);
    struct part_lists *parts = calloc(c->link->peers, sizeof(*parts));
    uint64_t sum = 0;

    *out = (struct access){0};
    if (!parts) return drps_err_set(err, -ENOMEM, "no memory for lists of %zu rows", n);
    int rc = drps_remote_tell(c, REMOTE_LISTS, memory_bytes, rows, n * sizeof(*rows), err);
    if (rc == 0) rc = drps_remote_settle(c, err);
    for (unsigned k = 0; k < c->link->peers && !c->broken; k++) { /* all answers are received */
        int one = receive_lists(c, k, n, &parts[k], rc < 0 ? NULL : err);
        sum += parts[k].batches;
        if (rc == 0) rc = one;
    }
    if (rc == 0) rc = drps_access_new((uint32_t)n, t->batches, sum, memory_bytes, out, err);
    if (rc == 0) {
        join_lists(parts, c->link->peers, n, out);
        if (check_lists(out) < 0)
            rc = drps_err_set(err, DRPS_E_CORRUPT, "shards sent lists of batches that are none");
    }
    if (rc < 0) drps_access_free(out);
    for (unsigned k = 0; k < c->link->peers; k++)
        free(parts[k].words);
    free(parts);
    return rc;
}
