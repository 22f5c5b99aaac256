/*
 * Bodies are used where the stream put them; row lists are unpacked. Both streams have threads of
 * their own, so what is left here is some microseconds a batch: less than it would cost to have a
 * thread do it.
 */
#include "engine/feed.h"

#include <errno.h>
#include <stdlib.h>

#include "base/drps_alloc.h"
#include "base/drps_recstream.h"

enum {
    DATA_DEPTH = 3,
    DATA_READERS = 2,
    ROWS_DEPTH = 6,
    ROWS_READERS = 3,
    ROWS_SHARE = 4
}; /* row lists take a quarter of the bodies' buffers */

struct drps_feed {
    const struct drps_plan *plan;
    int has_bias;
    struct drps_recfile *data, *rows;
    struct drps_recstream *bodies, *lists;
    uint32_t *ids;  /* own: [max_batch_rows] of the batch at hand */
    uint64_t steps; /* of an epoch */
    uint64_t at;    /* step of the next batch, within its epoch */
};

static int check_counts(const struct drps_feed *feed, struct drps_err *err)
{
    uint64_t bodies = drps_recfile_count(feed->data);
    uint64_t lists = drps_recfile_count(feed->rows);
    if (bodies == feed->steps && lists == feed->steps) return 0;
    return drps_err_set(err, DRPS_E_CORRUPT,
                        "%s: plan.json counts %llu steps, but there are %llu bodies of batches and "
                        "%llu row lists: make the plan anew",
                        feed->plan->dir, (unsigned long long)feed->steps,
                        (unsigned long long)bodies, (unsigned long long)lists);
}

int drps_feed_open(const struct drps_plan *plan, int has_bias, struct drps_feed **feed_out,
                   struct drps_err *err)
{
    *feed_out = NULL;
    struct drps_feed *feed = calloc(1, sizeof(*feed));
    if (!feed) return drps_err_set(err, -ENOMEM, "no memory to read %s", plan->dir);
    feed->plan = plan;
    feed->has_bias = has_bias;
    feed->steps = plan->info.batches + plan->info.eval_batches;
    int rc = drps_plan_file(plan, "data.rec", DRPS_KIND_DATA, &feed->data, err);
    if (rc == 0) rc = drps_plan_file(plan, "rows.rec", DRPS_KIND_ROWS, &feed->rows, err);
    if (rc == 0) rc = check_counts(feed, err);
    if (rc < 0) {
        drps_feed_close(feed);
        return rc;
    }
    *feed_out = feed;
    return 0;
}

int drps_feed_use_slots(struct drps_feed *feed, const char *dir, struct drps_err *err)
{
    char *path = drps_path_join(dir, "slots.rec");
    if (!path) return drps_err_set(err, -ENOMEM, "no memory to read %s/slots.rec", dir);
    drps_recfile_close(feed->rows);
    feed->rows = NULL;
    int rc = drps_recfile_open(feed->plan->io, path, DRPS_KIND_SLOTS, &feed->rows, err);
    free(path);
    return rc == 0 ? check_counts(feed, err) : rc;
}

void drps_feed_go_direct(struct drps_feed *feed)
{
    drps_recfile_go_direct(feed->data);
    drps_recfile_go_direct(feed->rows);
}

void drps_feed_close(struct drps_feed *feed)
{
    if (!feed) return;
    drps_recstream_close(feed->bodies);
    drps_recstream_close(feed->lists);
    drps_recfile_close(feed->data);
    drps_recfile_close(feed->rows);
    free(feed->ids);
    free(feed);
}

static struct drps_recstream_options data_options(const struct drps_feed *feed,
                                                  uint64_t buffer_bytes)
{
    return (struct drps_recstream_options){.count = feed->steps,
                                           .buffer_bytes = buffer_bytes,
                                           .depth = DATA_DEPTH,
                                           .readers = DATA_READERS};
}

static struct drps_recstream_options rows_options(const struct drps_feed *feed,
                                                  uint64_t buffer_bytes)
{
    return (struct drps_recstream_options){.count = feed->steps,
                                           .buffer_bytes = buffer_bytes / ROWS_SHARE,
                                           .depth = ROWS_DEPTH,
                                           .readers = ROWS_READERS};
}

uint64_t drps_feed_memory(const struct drps_feed *feed, uint64_t buffer_bytes)
{
    const struct drps_recstream_options data = data_options(feed, buffer_bytes);
    const struct drps_recstream_options rows = rows_options(feed, buffer_bytes);
    const uint64_t index =
        2 * feed->steps * 24; /* of the record files: offset, size and checksum of each record */
    return index + drps_recstream_memory(feed->data, &data) +
           drps_recstream_memory(feed->rows, &rows) +
           feed->plan->info.max_batch_rows * sizeof(*feed->ids);
}

int drps_feed_start(struct drps_feed *feed, uint64_t epochs, uint64_t buffer_bytes,
                    struct drps_err *err)
{
    struct drps_recstream_options data = data_options(feed, buffer_bytes);
    struct drps_recstream_options rows = rows_options(feed, buffer_bytes);
    data.passes = rows.passes = epochs;
    int rc = drps_recstream_open(feed->data, &data, &feed->bodies, err);
    if (rc == 0) rc = drps_recstream_open(feed->rows, &rows, &feed->lists, err);
    if (rc < 0) return rc;
    feed->ids = drps_array_new(feed->plan->info.max_batch_rows, sizeof(*feed->ids));
    return feed->ids ? 0 : drps_err_set(err, -ENOMEM, "no memory for the rows of a batch");
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

static int check_batch(const struct drps_feed *feed, const struct drps_feed_batch *batch,
                       size_t listed, struct drps_err *err)
{
    const struct drps_plan_info *info = &feed->plan->info;
    const struct drps_batch *b = &batch->body;
    if (b->rows != listed)
        return drps_err_set(err, DRPS_E_CORRUPT, "its body counts %zu rows, its row list %zu",
                            b->rows, listed);
    if (b->samples > info->max_batch_samples)
        return drps_err_set(err, DRPS_E_CORRUPT, "%zu samples, plan.json says at most %llu",
                            b->samples, (unsigned long long)info->max_batch_samples);
    if (listed && batch->ids[listed - 1] >= info->rows)
        return drps_err_set(err, DRPS_E_CORRUPT, "row %u of %llu", batch->ids[listed - 1],
                            (unsigned long long)info->rows);
    if (feed->has_bias && (!listed || batch->ids[0] != 0))
        return drps_err_set(err, DRPS_E_CORRUPT,
                            "its row list does not begin with the intercept, row 0");
    return check_samples(b, err);
}

/* Unpack the next row list into feed->ids. Returns 1, or 0 when there is none. */
static int next_list(struct drps_feed *feed, size_t *n_out, struct drps_err *err)
{
    const void *record;
    size_t bytes;
    const uint64_t most = feed->plan->info.max_batch_rows;
    int rc = drps_recstream_next(feed->lists, &record, &bytes, err);
    if (rc <= 0) return rc;
    *n_out = bytes >= 4 ? drps_list_count(record) : 0;
    if (*n_out > most)
        return drps_err_set(err, DRPS_E_CORRUPT, "a list of %zu rows, plan.json says at most %llu",
                            *n_out, (unsigned long long)most);
    rc = drps_list_decode(record, bytes, feed->ids, NULL, err);
    return rc < 0 ? rc : 1;
}

int drps_feed_next(struct drps_feed *feed, struct drps_feed_batch *out, struct drps_err *err)
{
    const void *body;
    size_t bytes, listed = 0;

    out->ids = feed->ids;
    int rc = drps_recstream_next(feed->bodies, &body, &bytes, err);
    if (rc > 0) rc = next_list(feed, &listed, err);
    if (rc == 0) rc = drps_err_set(err, DRPS_E_CORRUPT, "its files ended before the training");
    if (rc > 0) rc = drps_batch_decode(body, bytes, &out->body, err);
    if (rc == 0) rc = check_batch(feed, out, listed, err);
    if (rc < 0) {
        (void)drps_err_context(err, "%s: step %llu", feed->plan->dir, (unsigned long long)feed->at);
        return rc;
    }
    feed->at = feed->at + 1 < feed->steps ? feed->at + 1 : 0;
    return 0;
}

void drps_feed_stats(struct drps_feed *feed, struct drps_feed_stats *out)
{
    struct drps_recstream_stats data = {0}, rows = {0};
    if (feed->bodies) drps_recstream_stats(feed->bodies, &data);
    if (feed->lists) drps_recstream_stats(feed->lists, &rows);
    *out = (struct drps_feed_stats){.read_bytes = data.read_bytes + rows.read_bytes,
                                    .read_calls = data.read_calls + rows.read_calls,
                                    .wait_ns = data.wait_ns + rows.wait_ns};
}
