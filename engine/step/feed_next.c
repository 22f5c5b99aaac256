/*
 * Batches are taken from the streams in order, decoded and checked. Bodies are used where their
 * stream's threads unpacked them; row lists are unpacked here, which takes some microseconds a
 * batch: less than it would cost to have a thread do it.
 */
#include "engine/step/feed_internal.h"

#include <errno.h>

#include "base/drps_alloc.h"

/* ---- Checks against the numbers of the plan ---- */

/* A rank without samples has a batch of none, and one without rows none of the batch's. */
static int check_share(const struct drps_feed *feed, const struct drps_batch *b,
                       struct drps_err *err)
{
    const struct drps_plan_ranks *ranks = &feed->plan->info.ranks;
    if (b->samples && !drps_rank_trains(ranks, ranks->rank))
        return drps_err_set(err, DRPS_E_CORRUPT, "a batch of %zu samples on rank %u, without any",
                            b->samples, ranks->rank);
    for (uint32_t r = ranks->servers; r < ranks->count; r++)
        if (feed->shares[r])
            return drps_err_set(err, DRPS_E_CORRUPT, "%u rows of rank %u, which has none",
                                feed->shares[r], r);
    return 0;
}

/* No batch has more rows than the largest, and a rank without samples has none. */
static int check_parts(const struct drps_feed *feed, const size_t *part, struct drps_err *err)
{
    const struct drps_plan_info *info = &feed->plan->info;
    for (uint32_t r = 0; r < info->ranks.count; r++) {
        const uint64_t most = drps_rank_trains(&info->ranks, r) ? info->max_batch_rows : 0;
        if (part[r + 1] - part[r] > most)
            return drps_err_set(err, DRPS_E_CORRUPT,
                                "%zu rows of the batch of rank %u, at most %llu",
                                part[r + 1] - part[r], r, (unsigned long long)most);
    }
    return 0;
}

/* ---- Records, taken and decoded ---- */

/* The next record of a file, borrowed until the next call. Returns 1: the files hold as many as the
 * training asks for. */
static int next_record(struct drps_feed *feed, unsigned file, const void **record, size_t *bytes,
                       struct drps_err *err)
{
    const int rc = drps_recstream_next(feed->stream[file], record, bytes, err);
    if (rc) return rc;
    return drps_err_set(err, DRPS_E_CORRUPT, "its files ended before the training");
}

/* Unpack a row list into ids [max_round_rows]. */
static int unpack_list(const struct drps_feed *feed, const struct drps_piece *list, uint32_t *ids,
                       size_t *n_out, struct drps_err *err)
{
    const uint64_t most = feed->plan->info.ranks.max_round_rows;
    *n_out = list->bytes >= 4 ? drps_list_count(list->data) : 0;
    if (*n_out > most)
        return drps_err_set(err, DRPS_E_CORRUPT,
                            "a list of %zu rows, " DRPS_FILE_MANIFEST " says at most %llu", *n_out,
                            (unsigned long long)most);
    return drps_list_decode(list->data, list->bytes, ids, NULL, err);
}

static int decode_body(const struct drps_feed *feed, const struct drps_piece *body,
                       struct drps_batch *out, struct drps_err *err)
{
    int rc = drps_batch_decode_unpacked(body->data, body->bytes, out, err);
    return rc == 0 ? drps_plan_check_batch(&feed->plan->info, out, err) : rc;
}

/* Get the next record of a file as a piece. */
static int next_piece(struct drps_feed *feed, unsigned file, struct drps_piece *out,
                      struct drps_err *err)
{
    const int rc = next_record(feed, file, &out->data, &out->bytes, err);
    return rc < 0 ? rc : 0;
}

/* Unpack the next row list into ids [max_round_rows]. Returns 1. */
static int next_list(struct drps_feed *feed, uint32_t *ids, size_t *n_out, struct drps_err *err)
{
    struct drps_piece list;
    int rc = next_piece(feed, LISTS, &list, err);
    if (rc == 0) rc = unpack_list(feed, &list, ids, n_out, err);
    return rc < 0 ? rc : 1;
}

static int next_body(struct drps_feed *feed, struct drps_batch *out, struct drps_err *err)
{
    struct drps_piece body;
    int rc = next_piece(feed, BODIES, &body, err);
    return rc == 0 ? decode_body(feed, &body, out, err) : rc;
}

/* Adds to the error which step of the plan it is about. */
static int at_step(const struct drps_feed *feed, uint64_t step, struct drps_err *err)
{
    return drps_err_context(err, "%s: step %llu", feed->plan->dir, (unsigned long long)step);
}

/* Ends each call: counts the step, or says where it failed. */
static int taken(const struct drps_feed *feed, uint64_t *at, int rc, struct drps_err *err)
{
    if (rc < 0) {
        (void)at_step(feed, *at, err);
        return rc;
    }
    *at = *at + 1 < feed->steps ? *at + 1 : 0;
    return 0;
}

/* ---- What an epoch adds up to ---- */

/* Step sizes are made of these numbers: an epoch has them, or the plan would train another model
 * than its batches. */
static int check_seen(const struct drps_feed *feed, struct drps_err *err)
{
    const struct drps_plan_info *info = &feed->plan->info;
    const struct seen *seen = &feed->seen;
    if (seen->samples == info->samples && seen->nnz == info->nnz &&
        seen->largest == info->max_batch_samples)
        return 0;
    return drps_err_set(err, DRPS_E_CORRUPT,
                        "batches of at most %llu samples have %llu samples with %llu entries in "
                        "training, " DRPS_FILE_MANIFEST
                        " says %llu, %llu and %llu: make the plan anew",
                        (unsigned long long)seen->largest, (unsigned long long)seen->samples,
                        (unsigned long long)seen->nnz, (unsigned long long)info->max_batch_samples,
                        (unsigned long long)info->samples, (unsigned long long)info->nnz);
}

/* Adds up the heads of as many batches as an epoch has: each of its steps, from any one on. Of
 * several ranks each sees its own batches alone. */
static int see_body(struct drps_feed *feed, const struct drps_piece *body, struct drps_err *err)
{
    struct seen *seen = &feed->seen;
    if (seen->steps == feed->steps || feed->plan->info.ranks.count > 1) return 0;
    const uint64_t samples = drps_batch_samples(body->data, body->bytes);
    if (samples > seen->largest) seen->largest = samples;
    if (feed->at < feed->plan->info.batches) {
        seen->samples += samples;
        seen->nnz += drps_batch_entries(body->data, body->bytes);
    }
    return ++seen->steps == feed->steps ? check_seen(feed, err) : 0;
}

/* ---- Batches in order ---- */

int drps_feed_take(struct drps_feed *feed, struct drps_feed_raw *out, struct drps_err *err)
{
    out->step = feed->at;
    int rc = next_piece(feed, BODIES, &out->body, err);
    if (rc == 0) rc = see_body(feed, &out->body, err);
    if (rc == 0) rc = next_piece(feed, LISTS, &out->list, err);
    return taken(feed, &feed->at, rc, err);
}

int drps_feed_keeps(const struct drps_feed *feed)
{
    return feed->keep;
}

/* Threads that train lanes side by side step the rows that entries name, and never the intercept's:
 * no entry has that. */
static int check_intercept(const struct drps_batch *b, struct drps_err *err)
{
    for (size_t j = 0; j < b->nnz; j++)
        if (!drps_batch_local(b, j))
            return drps_err_set(err, DRPS_E_CORRUPT, "an entry has the intercept, its row 0");
    return 0;
}

int drps_feed_decode(const struct drps_feed *feed, const struct drps_feed_raw *raw, uint32_t *ids,
                     struct drps_feed_batch *out, struct drps_err *err)
{
    size_t listed = 0;

    out->ids = ids;
    int rc = decode_body(feed, &raw->body, &out->body, err);
    if (rc == 0) rc = unpack_list(feed, &raw->list, ids, &listed, err);
    if (rc == 0 && out->body.rows != listed)
        rc = drps_err_set(err, DRPS_E_CORRUPT, "its body counts %zu rows, its row list %zu",
                          out->body.rows, listed);
    if (rc == 0) rc = drps_plan_check_list(&feed->plan->info, ids, listed, feed->common, err);
    if (rc == 0 && feed->common && out->body.stratum) rc = check_intercept(&out->body, err);
    if (rc < 0) (void)at_step(feed, raw->step, err);
    return rc;
}

int drps_feed_next(struct drps_feed *feed, struct drps_feed_batch *out, struct drps_err *err)
{
    struct drps_feed_raw raw;
    int rc = drps_feed_take(feed, &raw, err);
    return rc == 0 ? drps_feed_decode(feed, &raw, feed->ids, out, err) : rc;
}

int drps_feed_next_share(struct drps_feed *feed, struct drps_feed_share *out, struct drps_err *err)
{
    const void *record;
    size_t bytes;
    int rc = next_body(feed, &out->body, err);
    if (rc == 0) rc = next_record(feed, SHARES, &record, &bytes, err);
    if (rc > 0)
        rc = drps_shares_decode(record, bytes, feed->plan->info.ranks.count, out->body.rows,
                                feed->shares, err);
    if (rc == 0) rc = check_share(feed, &out->body, err);
    out->shares = feed->shares;
    return taken(feed, &feed->at, rc, err);
}

/* Each worker's rows of the server begin with those that all batches have, which are the server's
 * first ones. */
static int check_common(const struct drps_feed *feed, const struct feed_union *u, uint32_t common,
                        struct drps_err *err)
{
    for (uint32_t r = 0; common && r < feed->plan->info.ranks.count; r++) {
        const size_t first = u->part[r], rows = u->part[r + 1] - first;
        if (rows && (rows < common || u->positions[first + common - 1] != common - 1))
            return drps_err_set(err, DRPS_E_CORRUPT,
                                "the batch of rank %u does not begin with the %u rows that all "
                                "batches have",
                                r, common);
    }
    return 0;
}

int drps_feed_next_union(struct drps_feed *feed, struct drps_feed_union *out, struct drps_err *err)
{
    const struct drps_plan_ranks *ranks = &feed->plan->info.ranks;
    const uint32_t common = drps_plan_own_common_rows(&feed->plan->info, feed->common);
    struct feed_union *u = &feed->unions[feed->union_n++ % 2];
    const void *record;
    size_t bytes;
    int rc = next_list(feed, u->ids, &out->n, err);
    if (rc > 0)
        rc = drps_plan_check_list(&feed->plan->info, u->ids, out->n, out->n ? common : 0, err);
    if (rc == 0) rc = next_record(feed, POSITIONS, &record, &bytes, err);
    if (rc > 0)
        rc = drps_positions_decode(record, bytes, ranks->count, out->n, ranks->max_round_uses,
                                   u->positions, u->part, err);
    if (rc == 0) rc = check_parts(feed, u->part, err);
    if (rc == 0) rc = check_common(feed, u, common, err);
    out->ids = u->ids;
    out->positions = u->positions;
    out->part = u->part;
    return taken(feed, &feed->list_at, rc, err);
}

/* ---- Batches on their way to other ranks ---- */

uint64_t drps_feed_record_bytes(const struct drps_plan_info *info)
{
    return info->max_body_bytes + drps_list_encode_bound(info->ranks.count);
}

static int read_record(struct drps_feed *feed, unsigned file, uint64_t step, struct drps_piece *out,
                       struct drps_err *err)
{
    struct drps_recfile *f = feed->file[file];
    const uint64_t bytes = drps_recfile_run_bytes(f, step, 1);
    if (drps_array_reserve(&feed->record[file], &feed->record_cap[file], (size_t)bytes, 1) < 0)
        return drps_err_set(err, -ENOMEM, "a record of %llu bytes", (unsigned long long)bytes);
    int rc = drps_recfile_read(f, step, 1, feed->record[file], err);
    feed->record_bytes += bytes;
    feed->record_calls++;
    *out = (struct drps_piece){(const char *)feed->record[file] +
                                   drps_recfile_offset_in_run(f, step, step),
                               drps_recfile_bytes(f, step)};
    return rc;
}

int drps_feed_read_record(struct drps_feed *feed, uint64_t step, struct drps_feed_record *out,
                          struct drps_err *err)
{
    int rc = read_record(feed, BODIES, step, &out->body, err);
    return rc == 0 ? read_record(feed, SHARES, step, &out->shares, err) : rc;
}

int drps_feed_decode_body(const struct drps_feed *feed, const struct drps_piece *body, void *room,
                          struct drps_batch *out, struct drps_err *err)
{
    size_t bytes = (size_t)feed->plan->info.max_body_bytes;
    int rc = drps_batch_unpack(body->data, body->bytes, room, bytes, &bytes, err);
    if (rc == 0) rc = drps_batch_decode_unpacked(room, bytes, out, err);
    return rc == 0 ? drps_plan_check_batch(&feed->plan->info, out, err) : rc;
}

int drps_feed_decode_record(struct drps_feed *feed, uint32_t rank, uint64_t step,
                            const struct drps_feed_record *record, struct drps_feed_share *out,
                            struct drps_err *err)
{
    out->shares = feed->shares;
    if (!feed->plain) feed->plain = drps_array_new((size_t)feed->plan->info.max_body_bytes, 1);
    if (!feed->plain) return drps_err_set(err, -ENOMEM, "no memory for a batch of another rank");
    int rc = drps_feed_decode_body(feed, &record->body, feed->plain, &out->body, err);
    if (rc == 0)
        rc = drps_shares_decode(record->shares.data, record->shares.bytes,
                                feed->plan->info.ranks.count, out->body.rows, feed->shares, err);
    if (rc == 0) rc = check_share(feed, &out->body, err);
    if (rc < 0) (void)drps_err_context(err, "step %llu of rank %u", (unsigned long long)step, rank);
    return rc;
}
