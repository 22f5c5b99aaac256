/*
 * Bodies are used where their stream's threads unpacked them; row lists are unpacked here. What is
 * left is some microseconds a batch: less than it would cost to have a thread do it.
 */
#include "engine/step/drps_feed.h"

#include <errno.h>
#include <stdlib.h>

#include "base/drps_alloc.h"
#include "base/record/drps_recstream.h"
#include "index/plan/drps_round.h"

enum {
    PLACES_LEAST = 2,  /* of unpacked bodies: the one in use and the next */
    PLACES_MOST = 16,  /* who unpacks may be kept from a processor for some batches' time */
    PLACES_TENTHS = 6, /* at most, of what bodies may take */
    BODIES_DEPTH_LEAST = 3,
    BODIES_DEPTH_MOST = 16,
    BODIES_READERS = 3,
    BODIES_TENTHS = 6, /* of a buffer, each request: many small ones cost more processor time */
    LISTS_DEPTH = 4,
    LISTS_READERS = 2,
    SMALL_DEPTH = 6, /* shares and positions */
    SMALL_READERS = 3,
    SMALL_SHARE = 4,
};

/* Bodies and shares are the worker's, row lists and positions the server's. */
enum { BODIES, LISTS, SHARES, POSITIONS, FILES };

static const struct {
    const char *name;
    uint32_t kind;
    int of_ranks; /* only a rank's plan has it */
} files[FILES] = {{"data.rec", DRPS_KIND_DATA, 0},
                  {"rows.rec", DRPS_KIND_ROWS, 0},
                  {"shares.rec", DRPS_KIND_SHARES, 1},
                  {"positions.rec", DRPS_KIND_POSITIONS, 1}};

struct drps_feed {
    const struct drps_plan *plan;
    int has_bias;
    unsigned files; /* that this plan has: the first two, or all */
    struct drps_recfile *file[FILES];
    struct drps_recstream *stream[FILES];
    uint32_t *ids;       /* own: [max_round_rows] of the row list at hand */
    uint32_t *positions; /* own: [max_round_uses], of a rank */
    uint32_t shares[DRPS_PLAN_WORKERS_MAX];
    size_t part[DRPS_PLAN_WORKERS_MAX + 1];
    void *record[FILES]; /* own: a batch's records, read on their own */
    void *plain;         /* own: [max_body_bytes] a body that came from another rank, unpacked */
    size_t record_cap[FILES];
    uint64_t record_bytes, record_calls; /* so read: by the server's thread */
    uint64_t steps;                      /* of an epoch */
    double lists_share;                  /* of the bytes of bodies and row lists */
    int keep;
    uint64_t at, list_at; /* step of the next batch, and row list, within its epoch */
    struct seen {
        uint64_t samples, nnz, largest; /* of training; samples of the largest batch */
        int whole;                      /* an epoch has gone by */
    } seen;
};

static uint64_t clamp(uint64_t v, uint64_t least, uint64_t most)
{
    return v < least ? least : v > most ? most : v;
}

static int check_counts(const struct drps_feed *feed, struct drps_err *err)
{
    for (unsigned i = 0; i < feed->files; i++)
        if (drps_recfile_count(feed->file[i]) != feed->steps)
            return drps_err_set(
                err, DRPS_E_CORRUPT,
                "%s: plan.json counts %llu steps, but %s has %llu: make the plan anew",
                feed->plan->dir, (unsigned long long)feed->steps, files[i].name,
                (unsigned long long)drps_recfile_count(feed->file[i]));
    return 0;
}

int drps_feed_open(const struct drps_plan *plan, int has_bias, struct drps_feed **feed_out,
                   struct drps_err *err)
{
    int rc = 0;
    *feed_out = NULL;
    struct drps_feed *feed = calloc(1, sizeof(*feed));
    if (!feed) return drps_err_set(err, -ENOMEM, "no memory to read %s", plan->dir);
    feed->plan = plan;
    feed->has_bias = has_bias;
    feed->files = plan->info.ranks.workers > 1 ? FILES : SHARES;
    feed->steps = plan->info.batches + plan->info.eval_batches;
    for (unsigned i = 0; i < feed->files && rc == 0; i++)
        rc = drps_plan_file(plan, files[i].name, files[i].kind, &feed->file[i], err);
    if (rc == 0) rc = check_counts(feed, err);
    if (rc < 0) {
        drps_feed_close(feed);
        return rc;
    }
    const double lists = (double)drps_recfile_file_bytes(feed->file[LISTS]);
    feed->lists_share = lists / (lists + (double)drps_recfile_file_bytes(feed->file[BODIES]));
    *feed_out = feed;
    return 0;
}

int drps_feed_use_slots(struct drps_feed *feed, const char *dir, struct drps_err *err)
{
    char *path = drps_path_join(dir, "slots.rec");
    if (!path) return drps_err_set(err, -ENOMEM, "no memory to read %s/slots.rec", dir);
    drps_recfile_close(feed->file[LISTS]);
    feed->file[LISTS] = NULL;
    int rc = drps_recfile_open(feed->plan->io, path, DRPS_KIND_SLOTS, &feed->file[LISTS], err);
    free(path);
    return rc == 0 ? check_counts(feed, err) : rc;
}

void drps_feed_go_direct(struct drps_feed *feed)
{
    for (unsigned i = 0; i < feed->files; i++)
        drps_recfile_go_direct(feed->file[i]);
}

void drps_feed_close(struct drps_feed *feed)
{
    if (!feed) return;
    for (unsigned i = 0; i < FILES; i++) {
        drps_recstream_close(feed->stream[i]);
        drps_recfile_close(feed->file[i]);
        free(feed->record[i]);
    }
    free(feed->ids);
    free(feed->positions);
    free(feed->plain);
    free(feed);
}

/* ---- How far ahead ---- */

/* Of a buffer of so many bytes each: what all bodies and row lists that are read ahead may take. */
static uint64_t ahead_bytes(uint64_t buffer_bytes)
{
    return buffer_bytes * 9 / 2;
}

/* Row lists and bodies get room for as many batches. */
static uint64_t lists_bytes(const struct drps_feed *feed, uint64_t buffer_bytes)
{
    return (uint64_t)((double)ahead_bytes(buffer_bytes) * feed->lists_share);
}

static struct drps_recstream_options lists_options(const struct drps_feed *feed,
                                                   uint64_t buffer_bytes)
{
    return (struct drps_recstream_options){
        .buffer_bytes = lists_bytes(feed, buffer_bytes) / LISTS_DEPTH,
        .depth = LISTS_DEPTH,
        .readers = LISTS_READERS,
    };
}

/* Not many are unpacked, so that most of the room is for packed ones: in a few batches' time a disk
 * with other work answers, a processor does. */
static struct drps_recstream_options bodies_options(const struct drps_feed *feed,
                                                    uint64_t buffer_bytes)
{
    const uint64_t bytes = ahead_bytes(buffer_bytes) - lists_bytes(feed, buffer_bytes);
    const uint64_t plain = feed->plan->info.max_body_bytes;
    struct drps_recstream_options o = {
        .count = feed->steps, /* of which it reads the largest */
        .buffer_bytes = buffer_bytes * BODIES_TENTHS / 10,
        .depth = 1,
        .readers = BODIES_READERS,
        .unpack = drps_batch_unpack,
        .plain_bytes = plain,
        .plain_records = (unsigned)clamp(plain ? bytes * PLACES_TENTHS / 10 / plain : 0,
                                         PLACES_LEAST, PLACES_MOST),
    };
    const uint64_t one = drps_recstream_memory(feed->file[BODIES], &o);
    o.depth = 2;
    const uint64_t each = drps_recstream_memory(feed->file[BODIES], &o) - one;
    o.depth = (unsigned)clamp(bytes > one ? 1 + (bytes - one) / each : 0, BODIES_DEPTH_LEAST,
                              BODIES_DEPTH_MOST);
    return o;
}

static struct drps_recstream_options small_options(uint64_t buffer_bytes)
{
    return (struct drps_recstream_options){
        .buffer_bytes = buffer_bytes / SMALL_SHARE, .depth = SMALL_DEPTH, .readers = SMALL_READERS};
}

static struct drps_recstream_options stream_options(const struct drps_feed *feed, unsigned i,
                                                    uint64_t buffer_bytes, int keep)
{
    struct drps_recstream_options o = i == BODIES  ? bodies_options(feed, buffer_bytes)
                                      : i == LISTS ? lists_options(feed, buffer_bytes)
                                                   : small_options(buffer_bytes);
    o.count = feed->steps;
    o.keep = keep;
    return o;
}

uint64_t drps_feed_memory(const struct drps_feed *feed, uint64_t buffer_bytes, int keep)
{
    const struct drps_plan_ranks *ranks = &feed->plan->info.ranks;
    const uint64_t index = feed->files * feed->steps *
                           24; /* of the record files: offset, size and checksum of each record */
    uint64_t sum =
        index + (ranks->max_round_rows + ranks->max_round_uses) * sizeof(*feed->positions);
    for (unsigned i = 0; i < feed->files; i++) {
        const struct drps_recstream_options options = stream_options(feed, i, buffer_bytes, keep);
        sum += drps_recstream_memory(feed->file[i], &options);
    }
    return sum;
}

int drps_feed_start(struct drps_feed *feed, uint64_t epochs, uint64_t buffer_bytes, int keep,
                    struct drps_err *err)
{
    const struct drps_plan_ranks *ranks = &feed->plan->info.ranks;
    int rc = 0;
    feed->keep = keep;
    for (unsigned i = 0; i < feed->files && rc == 0; i++) {
        struct drps_recstream_options options = stream_options(feed, i, buffer_bytes, keep);
        options.passes = epochs;
        rc = drps_recstream_open(feed->file[i], &options, &feed->stream[i], err);
    }
    if (rc < 0) return rc;
    feed->ids = drps_array_new(ranks->max_round_rows, sizeof(*feed->ids));
    feed->positions = drps_array_new(ranks->max_round_uses, sizeof(*feed->positions));
    if (feed->ids && feed->positions) return 0;
    return drps_err_set(err, -ENOMEM, "no memory for the rows of a batch");
}

/* A sample's rows are distinct, so it cannot have more entries than there are rows. */
static int check_samples(const struct drps_batch *b, struct drps_err *err)
{
    size_t most = b->samples ? b->per_sample : 0;
    if (b->starts)
        for (size_t s = most = 0; s < b->samples; s++)
            if (b->starts[s + 1] - b->starts[s] > most) most = b->starts[s + 1] - b->starts[s];
    if (most <= b->rows) return 0;
    return drps_err_set(err, DRPS_E_CORRUPT, "a sample of %zu entries among %zu rows", most,
                        b->rows);
}

static int check_body(const struct drps_feed *feed, const struct drps_batch *b,
                      struct drps_err *err)
{
    const struct drps_plan_info *info = &feed->plan->info;
    if (b->samples > info->max_batch_samples)
        return drps_err_set(err, DRPS_E_CORRUPT, "%zu samples, plan.json says at most %llu",
                            b->samples, (unsigned long long)info->max_batch_samples);
    if (b->rows > info->max_batch_rows)
        return drps_err_set(err, DRPS_E_CORRUPT, "%zu rows, plan.json says at most %llu", b->rows,
                            (unsigned long long)info->max_batch_rows);
    if (b->stratum && (info->lanes < 2 || b->lane >= info->lanes))
        return drps_err_set(err, DRPS_E_CORRUPT, "lane %u of a stratum, plan.json says %llu lanes",
                            b->lane, (unsigned long long)info->lanes);
    return check_samples(b, err);
}

/* `bias_first`: the list must begin with the intercept. */
static int check_list(const struct drps_feed *feed, const uint32_t *ids, size_t n, int bias_first,
                      struct drps_err *err)
{
    const struct drps_plan_info *info = &feed->plan->info;
    if (n && ids[n - 1] >= info->rows)
        return drps_err_set(err, DRPS_E_CORRUPT, "row %u of %llu", ids[n - 1],
                            (unsigned long long)info->rows);
    if (bias_first && (!n || ids[0] != 0))
        return drps_err_set(err, DRPS_E_CORRUPT,
                            "its row list does not begin with the intercept, row 0");
    return 0;
}

/* The next record of a file. Returns 1. */
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
        return drps_err_set(err, DRPS_E_CORRUPT, "a list of %zu rows, plan.json says at most %llu",
                            *n_out, (unsigned long long)most);
    return drps_list_decode(list->data, list->bytes, ids, NULL, err);
}

static int decode_body(const struct drps_feed *feed, const struct drps_piece *body,
                       struct drps_batch *out, struct drps_err *err)
{
    int rc = drps_batch_decode_unpacked(body->data, body->bytes, out, err);
    return rc == 0 ? check_body(feed, out, err) : rc;
}

/* The next record of a file. */
static int next_piece(struct drps_feed *feed, unsigned file, struct drps_piece *out,
                      struct drps_err *err)
{
    const int rc = next_record(feed, file, &out->data, &out->bytes, err);
    return rc < 0 ? rc : 0;
}

/* Unpack the next row list into feed->ids. Returns 1. */
static int next_list(struct drps_feed *feed, size_t *n_out, struct drps_err *err)
{
    struct drps_piece list;
    int rc = next_piece(feed, LISTS, &list, err);
    if (rc == 0) rc = unpack_list(feed, &list, feed->ids, n_out, err);
    return rc < 0 ? rc : 1;
}

static int next_body(struct drps_feed *feed, struct drps_batch *out, struct drps_err *err)
{
    struct drps_piece body;
    int rc = next_piece(feed, BODIES, &body, err);
    return rc == 0 ? decode_body(feed, &body, out, err) : rc;
}

/* Where it failed. */
static int at_step(const struct drps_feed *feed, uint64_t step, struct drps_err *err)
{
    return drps_err_context(err, "%s: step %llu", feed->plan->dir, (unsigned long long)step);
}

/* The end of each call: count, or say where it failed. */
static int taken(const struct drps_feed *feed, uint64_t *at, int rc, struct drps_err *err)
{
    if (rc < 0) {
        (void)at_step(feed, *at, err);
        return rc;
    }
    *at = *at + 1 < feed->steps ? *at + 1 : 0;
    return 0;
}

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
                        "training, plan.json says %llu, %llu and %llu: make the plan anew",
                        (unsigned long long)seen->largest, (unsigned long long)seen->samples,
                        (unsigned long long)seen->nnz, (unsigned long long)info->max_batch_samples,
                        (unsigned long long)info->samples, (unsigned long long)info->nnz);
}

/* The heads of the first epoch's batches. */
static int see_body(struct drps_feed *feed, const struct drps_piece *body, struct drps_err *err)
{
    struct seen *seen = &feed->seen;
    if (seen->whole) return 0;
    const uint64_t samples = drps_batch_samples(body->data, body->bytes);
    if (samples > seen->largest) seen->largest = samples;
    if (feed->at < feed->plan->info.batches) {
        seen->samples += samples;
        seen->nnz += drps_batch_entries(body->data, body->bytes);
    }
    seen->whole = feed->at + 1 == feed->steps;
    return seen->whole ? check_seen(feed, err) : 0;
}

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
    if (rc == 0) rc = check_list(feed, ids, listed, feed->has_bias, err);
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
        rc = drps_shares_decode(record, bytes, feed->plan->info.ranks.workers, out->body.rows,
                                feed->shares, err);
    out->shares = feed->shares;
    return taken(feed, &feed->at, rc, err);
}

int drps_feed_next_union(struct drps_feed *feed, struct drps_feed_union *out, struct drps_err *err)
{
    const struct drps_plan_ranks *ranks = &feed->plan->info.ranks;
    const void *record;
    size_t bytes;
    int rc = next_list(feed, &out->n, err);
    if (rc > 0)
        rc =
            check_list(feed, feed->ids, out->n, feed->has_bias && !ranks->first_row && out->n, err);
    if (rc == 0) rc = next_record(feed, POSITIONS, &record, &bytes, err);
    if (rc > 0)
        rc = drps_positions_decode(record, bytes, ranks->workers, out->n, ranks->max_round_uses,
                                   feed->positions, feed->part, err);
    out->ids = feed->ids;
    out->positions = feed->positions;
    out->part = feed->part;
    return taken(feed, &feed->list_at, rc, err);
}

/* ---- Batches on their way to other ranks ---- */

uint64_t drps_feed_record_bytes(const struct drps_plan_info *info)
{
    return info->max_body_bytes + drps_list_encode_bound(info->ranks.workers);
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

int drps_feed_decode_record(struct drps_feed *feed, uint32_t rank, uint64_t step,
                            const struct drps_feed_record *record, struct drps_feed_share *out,
                            struct drps_err *err)
{
    out->shares = feed->shares;
    size_t bytes = (size_t)feed->plan->info.max_body_bytes;
    if (!feed->plain) feed->plain = drps_array_new(bytes, 1);
    if (!feed->plain) return drps_err_set(err, -ENOMEM, "no memory for a batch of another rank");
    int rc =
        drps_batch_unpack(record->body.data, record->body.bytes, feed->plain, bytes, &bytes, err);
    if (rc == 0) rc = drps_batch_decode_unpacked(feed->plain, bytes, &out->body, err);
    if (rc == 0) rc = check_body(feed, &out->body, err);
    if (rc == 0)
        rc = drps_shares_decode(record->shares.data, record->shares.bytes,
                                feed->plan->info.ranks.workers, out->body.rows, feed->shares, err);
    if (rc < 0) (void)drps_err_context(err, "step %llu of rank %u", (unsigned long long)step, rank);
    return rc;
}

void drps_feed_stats(struct drps_feed *feed, struct drps_feed_stats *out)
{
    *out = (struct drps_feed_stats){.read_bytes = feed->record_bytes,
                                    .read_calls = feed->record_calls};
    for (unsigned i = 0; i < feed->files; i++) {
        struct drps_recstream_stats s = {0};
        if (feed->stream[i]) drps_recstream_stats(feed->stream[i], &s);
        out->read_bytes += s.read_bytes;
        out->read_calls += s.read_calls;
        out->wait_ns += s.wait_ns;
    }
}
