/* Opening and closing: replicas are filled from the stores of all ranks. */
#include "engine/cluster/sv/exchange_internal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"

/* How vectors are chosen; count 0: all are sent. */
static struct drps_select_options selection_of(const struct drps_train_options *options)
{
    static const enum drps_select_rule rules[] = {[DRPS_SV_JMCSS] = DRPS_SELECT_JMCSS,
                                                  [DRPS_SV_RANDOM] = DRPS_SELECT_RANDOM,
                                                  [DRPS_SV_PROJECT] = DRPS_SELECT_PROJECT};
    return (struct drps_select_options){.rule = rules[options->sv_rule],
                                        .count = options->sv_count};
}

uint64_t drps_exchange_rows(const struct drps_plan_info *info)
{
    uint64_t rows = 0;
    for (size_t i = 0; i < info->tables_n; i++)
        rows += info->tables[i].rows;
    return rows;
}

/* Rows of a round, of all ranks together. */
static uint64_t most_rows(const struct drps_plan_info *info)
{
    const uint64_t uses = info->ranks.count * info->max_batch_rows;
    const uint64_t rows = drps_exchange_rows(info);
    return uses < rows ? uses : rows;
}

/* What a thread makes gradients in. */
static uint64_t room_bytes(const struct drps_plan_info *info, int touches)
{
    const uint64_t a_row = info->dim * sizeof(float) + (touches ? sizeof(uint32_t) : 0);
    return info->max_batch_rows * a_row + info->max_body_bytes;
}

uint64_t drps_exchange_memory(const struct drps_plan_info *info, size_t row_bytes, int touches,
                              enum drps_exchange way, const struct drps_train_options *options)
{
    const struct drps_select_options select = selection_of(options);
    const uint64_t rows = drps_exchange_rows(info), count = info->ranks.count;
    const uint64_t a_row = info->dim * sizeof(float) + (touches ? sizeof(uint32_t) : 0);
    const uint64_t lists = count * info->max_batch_rows * sizeof(uint32_t);
    const uint64_t sums = most_rows(info) * (a_row + 2 * sizeof(uint32_t));
    /* Ranks that do not wait for each other in each round fill the queues. */
    const uint64_t of_each =
        drps_replicas_differ(options, info->ranks.count) ? DRPS_CLUSTER_QUEUE : 2;
    const uint64_t messages = (of_each * count + 2) * drps_cluster_exchange_bytes(info);
    const uint64_t dense = rows * (info->dim + 1) * sizeof(float);
    /* A room more, and batches of one share on their way to each other rank. */
    const uint64_t apart = drps_replicas_go_apart(options)
                               ? room_bytes(info, touches) + count * drps_feed_record_bytes(info)
                               : 0;
    return rows * row_bytes + lists + sums + room_bytes(info, touches) + apart +
           (way == DRPS_EXCHANGE_DENSE ? dense : messages) + chosen_memory(info, &select, rows);
}

static int open_room(struct gradient_room *room, const struct drps_plan_info *info,
                     struct drps_err *err)
{
    const size_t rows = (size_t)info->max_batch_rows;
    room->grads = drps_array_new(rows, info->dim * sizeof(*room->grads));
    room->touches = drps_array_new(rows, sizeof(*room->touches));
    room->plain = drps_array_new((size_t)info->max_body_bytes, 1);
    if (room->grads && room->touches && room->plain) return 0;
    return drps_err_set(err, -ENOMEM, "no memory for a gradient");
}

static void close_room(struct gradient_room *room)
{
    free(room->grads);
    free(room->touches);
    free(room->plain);
}

static int allocate(struct drps_exchanging *x, struct drps_err *err)
{
    const struct drps_plan_info *info = &x->job.plan->info;
    const size_t rows = (size_t)info->max_batch_rows;
    const size_t dense =
        x->job.way == DRPS_EXCHANGE_DENSE ? (size_t)drps_exchange_rows(info) * (x->dim + 1) : 0;
    int missing = 0;
    x->parts = calloc(x->ranks, sizeof(*x->parts));
    for (uint32_t r = 0; x->parts && r < x->ranks; r++) {
        x->parts[r].ids = drps_array_new(rows, sizeof(*x->parts[r].ids));
        missing |= !x->parts[r].ids;
    }
    x->dense = drps_array_new(dense, sizeof(*x->dense));
    if (missing || !x->parts || !x->dense)
        return drps_err_set(err, -ENOMEM, "no memory for the gradients of a round");
    int rc = open_room(&x->room, info, err);
    return rc == 0 && x->apart ? open_room(&x->taking, info, err) : rc;
}

/* Which rows each rank's server has; they must be all. */
static int find_ranges(const struct drps_exchanging *x, struct drps_row_range *own,
                       struct drps_err *err)
{
    const struct drps_row_range mine = {x->job.server->first_row, x->job.plan->info.rows};
    uint64_t end = 0;
    int rc = drps_net_gather(x->job.net, &mine, sizeof(mine), own, x->job.wait_ms, err);
    for (uint32_t r = 0; r < x->ranks && rc == 0; r++) {
        if (own[r].first != end || own[r].rows > x->replica.rows - end)
            rc = drps_err_set(err, DRPS_E_PROTO, "the rows of rank %" PRIu32 " begin with %" PRIu64,
                              r, own[r].first);
        end += own[r].rows;
    }
    if (rc == 0 && end != x->replica.rows)
        rc = drps_err_set(err, DRPS_E_PROTO, "ranks have %" PRIu64 " of %" PRIu64 " rows", end,
                          x->replica.rows);
    return rc;
}

static int open_all(struct drps_exchanging *x, struct drps_err *err)
{
    const struct drps_plan *plan = x->job.plan;
    const struct drps_plan_info *info = &plan->info;
    const struct drps_select_options select = selection_of(x->job.train);
    struct drps_row_range *own = calloc(x->ranks, sizeof(*own));
    if (!own) return drps_err_set(err, -ENOMEM, "no memory for %" PRIu32 " ranks", x->ranks);
    int rc = allocate(x, err);
    if (rc == 0)
        rc = sums_open(&x->sums, (size_t)most_rows(info), x->dim, x->job.worker->has_touches, err);
    if (rc == 0) rc = replica_open(&x->replica, x->job.server, drps_exchange_rows(info), err);
    if (rc == 0)
        rc = drps_steps_open(plan->io, plan->dir, DRPS_FILE_NUMBERS, DRPS_KIND_NUMBERS,
                             info->batches + info->eval_batches, 1 << 18, &x->numbers, err);
    if (rc == 0 && x->job.slots)
        rc = drps_steps_open(plan->io, plan->dir, DRPS_FILE_ROWS, DRPS_KIND_ROWS,
                             info->batches + info->eval_batches, 1 << 18, &x->lists, err);
    if (rc == 0 && select.count) rc = chosen_open(&x->chosen, info, &select, x->replica.rows, err);
    if (rc == 0) rc = find_ranges(x, own, err);
    if (rc == 0) rc = replica_fill(&x->replica, x->job.net, own, x->job.wait_ms, err);
    free(own);
    return rc;
}

static struct receivers receivers_of(const struct drps_train_options *train, uint32_t ranks)
{
    const struct drps_train_multicast *m = &train->multicast;
    return (struct receivers){.ranks = ranks,
                              .to = m->to ? m->to : ranks - 1,
                              .rule = m->rule,
                              .loss = m->loss,
                              .seed = train->seed};
}

int drps_exchange_open(const struct drps_exchange_job *job, struct drps_exchanging **out,
                       struct drps_err *err)
{
    struct drps_exchanging *x = calloc(1, sizeof(*x));
    *out = NULL;
    if (!x) return drps_err_set(err, -ENOMEM, "no memory for replicas");
    x->job = *job;
    x->rank = job->plan->info.ranks.rank;
    x->ranks = job->plan->info.ranks.count;
    x->dim = job->plan->info.dim;
    x->round = job->first_round;
    x->apart = drps_replicas_go_apart(job->train);
    x->receivers = receivers_of(job->train, x->ranks);
    const int failed = pthread_mutex_init(&x->lock, NULL);
    if (failed) {
        free(x);
        return drps_err_set(err, -failed, "no lock for replicas: %s", strerror(failed));
    }
    int rc = open_all(x, err);
    if (rc < 0) {
        drps_exchange_close(x);
        return rc;
    }
    *out = x;
    return 0;
}

void drps_exchange_close(struct drps_exchanging *x)
{
    if (!x) return;
    for (uint32_t r = 0; x->parts && r < x->ranks; r++) {
        drps_net_message_free(x->parts[r].message);
        free(x->parts[r].ids);
    }
    drps_steps_close(x->numbers);
    drps_steps_close(x->lists);
    chosen_close(&x->chosen);
    drps_shared_buffer_release(x->sent);
    drps_shared_buffer_release(x->lending);
    replica_close(&x->replica);
    sums_close(&x->sums);
    close_room(&x->room);
    close_room(&x->taking);
    free(x->parts);
    free(x->dense);
    (void)pthread_mutex_destroy(&x->lock); /* cannot fail: nobody holds it */
    free(x);
}
