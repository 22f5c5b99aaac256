/*
 * The feed's files: opened, and read ahead by streams whose depth follows from the memory that is
 * given. The streams' threads also unpack the bodies of batches.
 */
#include "engine/step/feed_internal.h"

#include <errno.h>
#include <stdlib.h>

#include "base/drps_alloc.h"

enum {
    UNPACKED_LEAST = 2,  /* of unpacked bodies: the one in use and the next */
    UNPACKED_MOST = 16,  /* who unpacks may be kept from a processor for some batches' time */
    UNPACKED_TENTHS = 6, /* at most, of what bodies may take */
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

static const struct {
    const char *name;
    uint32_t kind;
    int of_ranks; /* only a rank's plan has it */
} files[FILES] = {{DRPS_FILE_DATA, DRPS_KIND_DATA, 0},
                  {DRPS_FILE_ROWS, DRPS_KIND_ROWS, 0},
                  {DRPS_FILE_SHARES, DRPS_KIND_SHARES, 1},
                  {DRPS_FILE_POSITIONS, DRPS_KIND_POSITIONS, 1}};

static uint64_t clamp(uint64_t v, uint64_t least, uint64_t most)
{
    return v < least ? least : v > most ? most : v;
}

static int check_counts(const struct drps_feed *feed, struct drps_err *err)
{
    for (unsigned i = 0; i < feed->files; i++)
        if (drps_recfile_count(feed->file[i]) != feed->steps)
            return drps_err_set(err, DRPS_E_CORRUPT,
                                "%s: " DRPS_FILE_MANIFEST
                                " counts %llu steps, but %s has %llu: make the plan anew",
                                feed->plan->dir, (unsigned long long)feed->steps, files[i].name,
                                (unsigned long long)drps_recfile_count(feed->file[i]));
    return 0;
}

int drps_feed_open(const struct drps_plan *plan, uint32_t common, struct drps_feed **feed_out,
                   struct drps_err *err)
{
    int rc = 0;
    *feed_out = NULL;
    struct drps_feed *feed = calloc(1, sizeof(*feed));
    if (!feed) return drps_err_set(err, -ENOMEM, "no memory to read %s", plan->dir);
    feed->plan = plan;
    feed->common = common;
    feed->files = drps_plan_shape(&plan->info) == DRPS_PLAN_PART ? FILES : SHARES;
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
    char *path = drps_path_join(dir, DRPS_FILE_SLOTS);
    if (!path) return drps_err_set(err, -ENOMEM, "no memory to read %s/" DRPS_FILE_SLOTS, dir);
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
    for (int i = 0; i < 2; i++) {
        free(feed->unions[i].ids);
        free(feed->unions[i].positions);
    }
    free(feed->plain);
    free(feed);
}

/* ---- How far ahead ---- */

/* Bytes that all bodies and row lists that are read ahead may take, with buffers of buffer_bytes.
 */
static uint64_t ahead_bytes(uint64_t buffer_bytes)
{
    return buffer_bytes * 9 / 2;
}

/* The row lists' part of that: there is room for as many of them as of bodies. */
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

/* Few bodies are unpacked at a time, so that most of the room is for packed ones: a processor is
 * back within some batches' time, a disk with other work may take longer. */
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
        .plain_records = (unsigned)clamp(plain ? bytes * UNPACKED_TENTHS / 10 / plain : 0,
                                         UNPACKED_LEAST, UNPACKED_MOST),
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
    const uint64_t unions = feed->files == FILES ? 2 : 0;
    uint64_t sum = index + ((1 + unions) * ranks->max_round_rows + unions * ranks->max_round_uses) *
                               sizeof(*feed->ids);
    for (unsigned i = 0; i < feed->files; i++) {
        const struct drps_recstream_options options = stream_options(feed, i, buffer_bytes, keep);
        sum += drps_recstream_memory(feed->file[i], &options);
    }
    return sum;
}

int drps_feed_start(struct drps_feed *feed, uint64_t first, uint64_t epochs, uint64_t buffer_bytes,
                    int keep, struct drps_err *err)
{
    const struct drps_plan_ranks *ranks = &feed->plan->info.ranks;
    int rc = 0;
    feed->keep = keep;
    feed->at = feed->list_at = first;
    for (unsigned i = 0; i < feed->files && rc == 0; i++) {
        struct drps_recstream_options options = stream_options(feed, i, buffer_bytes, keep);
        options.passes = epochs;
        options.begin = first;
        rc = drps_recstream_open(feed->file[i], &options, &feed->stream[i], err);
    }
    if (rc < 0) return rc;
    feed->ids = drps_array_new(ranks->max_round_rows, sizeof(*feed->ids));
    rc = feed->ids ? 0 : -ENOMEM;
    for (int i = 0; i < 2 && feed->files == FILES && rc == 0; i++) {
        struct feed_union *u = &feed->unions[i];
        u->ids = drps_array_new(ranks->max_round_rows, sizeof(*u->ids));
        u->positions = drps_array_new(ranks->max_round_uses, sizeof(*u->positions));
        if (!u->ids || !u->positions) rc = -ENOMEM;
    }
    return rc == 0 ? 0 : drps_err_set(err, rc, "no memory for the rows of a batch");
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
