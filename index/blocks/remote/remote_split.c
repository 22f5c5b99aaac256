/*
 * Shards that have no rows.rec to read: they are sent the row lists of their batches, and keep
 * them in a rows.rec of their own, where the batches of others are empty.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/drps_alloc.h"
#include "base/drps_size.h"
#include "base/record/drps_recfile.h"
#include "index/blocks/counts/drps_stream.h"
#include "index/blocks/remote/drps_remote.h"
#include "index/blocks/remote/remote_wire.h"
#include "index/plan/drps_batch.h"
#include "index/plan/drps_plan.h"
#include "index/plan/drps_steps.h"

enum {
    READ_BUFFER = 1 << 20,
    BATCH_BYTES = 64,     /* of a counter's memory for each batch there is: lists are found by it */
    FEW_BATCHES = 1 << 14 /* that fit any memory, and are written at once */
};

/* ---- Of whoever asks ---- */

static int deal_lists(struct steps *lists, const struct remote_share *share,
                      struct drps_remote_link *link, unsigned peer, struct drps_err *err)
{
    uint8_t payload[REMOTE_SHARE_BYTES];
    remote_share_put(payload, share);
    int rc = remote_send(link, peer, &(struct remote_head){REMOTE_SHARE, 0, sizeof(payload)},
                         payload, err);
    if (rc < 0) drps_remote_name_lost(link, peer, err);
    for (uint32_t s = share->first; s < share->end && rc == 0; s++) {
        const void *record;
        size_t bytes;
        rc = drps_steps_record(lists, s, &record, &bytes, err);
        if (rc < 0) break;
        rc = remote_send(link, peer, &(struct remote_head){REMOTE_LIST, s, bytes}, record, err);
        if (rc < 0) drps_remote_name_lost(link, peer, err);
    }
    return rc;
}

static int send_shares(const struct access_source *from, struct drps_remote_link *link,
                       struct drps_err *err)
{
    struct remote_share share = {
        .rows = from->rows, .batches = from->batches, .seed = from->seed, .share = from->share};
    struct steps *lists = NULL;
    int rc = drps_steps_open(from->io, from->dir, DRPS_FILE_ROWS, DRPS_KIND_ROWS, from->batches,
                             READ_BUFFER, &lists, err);
    for (unsigned peer = 0; peer < link->peers && rc == 0; peer++) {
        share.first = remote_shard_begin(from->batches, peer, link->peers);
        share.end = remote_shard_begin(from->batches, peer + 1, link->peers);
        rc = deal_lists(lists, &share, link, peer, err);
    }
    drps_steps_close(lists);
    return rc;
}

int drps_remote_split(const struct access_source *from, struct drps_remote_link *link,
                      struct counts **t_out, struct drps_err *err)
{
    *t_out = NULL;
    int rc = send_shares(from, link, err);
    if (rc == 0) return drps_remote_over(link, from->rows, from->batches, t_out, err);
    link->ops->close(link);
    return rc;
}

/* ---- Of a shard ---- */

static int receive_head(struct drps_remote_link *link, int32_t what, uint64_t most_bytes,
                        struct remote_head *out, struct drps_err *err)
{
    uint8_t head[REMOTE_HEAD_BYTES];
    int rc = link->ops->receive(link, 0, head, sizeof(head), err);
    if (rc < 0) return rc;
    *out = remote_head_get(head);
    if (out->what == what && out->bytes <= most_bytes) return 0;
    return drps_err_set(err, DRPS_E_CORRUPT,
                        "message %" PRId32 " with %" PRIu64 " bytes instead of a share of batches",
                        out->what, out->bytes);
}

static int receive_share(struct drps_remote_link *link, struct remote_share *out,
                         struct drps_err *err)
{
    uint8_t payload[REMOTE_SHARE_BYTES];
    struct remote_head head;
    int rc = receive_head(link, REMOTE_SHARE, sizeof(payload), &head, err);
    if (rc == 0 && head.bytes < sizeof(payload))
        rc = drps_err_set(err, DRPS_E_CORRUPT, "half a share of batches");
    if (rc == 0) rc = link->ops->receive(link, 0, payload, sizeof(payload), err);
    if (rc < 0) return rc;
    *out = remote_share_get(payload);
    if (out->first <= out->end && out->end <= out->batches && out->share > 0 && out->share <= 1)
        return 0;
    return drps_err_set(err, DRPS_E_CORRUPT, "batches %u to %u of %u, a share of %g of them",
                        out->first, out->end, out->batches, out->share);
}

/* Whoever asks says how many batches there are: they must suit the memory. */
static int check_batches(const struct remote_share *share, uint64_t memory_bytes,
                         struct drps_err *err)
{
    char allowed[32];
    if (share->batches <= FEW_BATCHES || share->batches <= memory_bytes / BATCH_BYTES) return 0;
    return drps_err_set(err, DRPS_E_MEMORY_BUDGET,
                        "lists of %" PRIu32 " batches are too many for a memory limit of %s",
                        share->batches, drps_size_format(memory_bytes, allowed, sizeof(allowed)));
}

static int add_empty(const struct drps_io *io, struct drps_recwriter *w, uint32_t n,
                     struct drps_err *err)
{
    int rc = 0;
    for (; n && rc == 0; n--) {
        if (n % FEW_BATCHES == 0) rc = drps_io_stopped(io, err);
        if (rc == 0) rc = drps_recwriter_add(w, NULL, 0, err);
    }
    return rc;
}

/* All lists are received, whatever becomes of the file; *failure is what became of it. */
static int receive_lists(struct drps_remote_link *link, const struct remote_share *share,
                         const struct drps_io *io, struct drps_recwriter *w,
                         struct drps_err *failure, struct drps_err *err)
{
    void *record = NULL;
    size_t cap = 0;
    int rc = 0, written = failure->code;
    if (written == 0) written = add_empty(io, w, share->first, failure);
    for (uint32_t s = share->first; s < share->end && rc == 0; s++) {
        struct remote_head head;
        rc = receive_head(link, REMOTE_LIST, drps_list_encode_bound(share->rows), &head, err);
        if (rc == 0 && drps_array_reserve(&record, &cap, (size_t)head.bytes, 1))
            rc = drps_err_set(err, -ENOMEM, "no memory for a list of rows");
        if (rc == 0) rc = link->ops->receive(link, 0, record, (size_t)head.bytes, err);
        if (rc == 0 && written == 0)
            written =
                drps_recwriter_add(w, &(struct drps_piece){record, (size_t)head.bytes}, 1, failure);
    }
    if (rc == 0 && written == 0) written = add_empty(io, w, share->batches - share->end, failure);
    if (rc == 0 && written == 0) written = drps_recwriter_finish(w, failure);
    failure->code = written;
    free(record);
    return rc;
}

/* What the share is counted with; *failure is why it cannot be. */
static int load(struct drps_remote_link *link, const struct drps_remote_counter *counter,
                struct counts **t_out, struct drps_err *failure, struct drps_err *err)
{
    struct remote_share share = {0};
    struct drps_recwriter *w = NULL;
    char *path = drps_path_join(counter->scratch, DRPS_FILE_ROWS);

    if (!path) return drps_err_set(err, -ENOMEM, "no memory for a path");
    int rc = receive_share(link, &share, err);
    if (rc == 0) failure->code = check_batches(&share, counter->memory_bytes, failure);
    if (rc == 0 && failure->code == 0)
        failure->code = drps_recwriter_open(counter->io, path, DRPS_KIND_ROWS, &w, failure);
    if (rc == 0) rc = receive_lists(link, &share, counter->io, w, failure, err);
    drps_recwriter_close(w);
    free(path);
    if (rc < 0 || failure->code) return rc;
    const struct access_source from = {.io = counter->io,
                                       .dir = counter->scratch,
                                       .rows = share.rows,
                                       .batches = share.batches,
                                       .share = share.share,
                                       .seed = share.seed,
                                       .memory_bytes = counter->memory_bytes / 8 * 3,
                                       .stop = counter->io->stop};
    failure->code = drps_counts_make(&from, share.first, share.end, t_out, failure);
    return 0;
}

/* Wait until peer 0, which was told of a failure, has heard and ends the conversation. */
static void wait_for_end(struct drps_remote_link *link)
{
    char byte;
    while (link->ops->receive(link, 0, &byte, 1, NULL) == 0)
        continue;
}

int drps_remote_count(struct drps_remote_link *link, const struct drps_remote_counter *counter,
                      struct drps_err *err)
{
    struct drps_err failure = DRPS_ERR_INIT;
    struct counts *t = NULL;
    int rc = load(link, counter, &t, &failure, err);
    if (rc == 0) rc = drps_remote_serve(link, t, &failure, counter->memory_bytes / 8 * 3, err);
    if (t) t->ops->close(t);
    if (rc == failure.code && rc < 0) {
        wait_for_end(link);
        return drps_err_set(err, rc, "%s", failure.text);
    }
    if (rc != DRPS_E_CLOSED) return rc;
    drps_err_clear(err); /* the end */
    return 0;
}
