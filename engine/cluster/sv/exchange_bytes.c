/* How many bytes each way to exchange gradients takes, by the plan. */
#include <inttypes.h>
#include <string.h>

#include "engine/cluster/sv/drps_exchange.h"
#include "engine/cluster/sv/average.h"
#include "engine/cluster/sv/message.h"
#include "index/plan/codec/drps_list.h"
#include "index/plan/drps_steps.h"
#include "net/drps_allreduce.h"

static const char *const names[] = {[DRPS_EXCHANGE_SERVERS] = "servers",
                                    [DRPS_EXCHANGE_VECTORS] = "vectors",
                                    [DRPS_EXCHANGE_ROWS] = "rows",
                                    [DRPS_EXCHANGE_DENSE] = "dense",
                                    [DRPS_EXCHANGE_AUTO] = "auto"};

const char *drps_exchange_name(enum drps_exchange way)
{
    return names[way];
}

/* About what some of the samples take: what they are is not known before. */
static void take_share(struct sv_message *m, uint32_t select)
{
    const double share = (double)select / (double)m->n;
    m->n = select;
    m->list.bytes = (size_t)((double)m->list.bytes * share);
    m->body.bytes = (size_t)((double)m->body.bytes * share);
}

/* The messages of a round, to each of the others. */
static int add_round(struct steps *numbers, struct steps *bodies, uint64_t step, uint32_t select,
                     const struct sv_message *shape, struct drps_exchange_bytes *out,
                     struct drps_err *err)
{
    struct sv_message m = *shape;
    struct drps_piece list;
    const void *body;
    int rc = drps_steps_record(numbers, step, &list.data, &list.bytes, err);
    if (rc == 0) rc = drps_steps_record(bodies, step, &body, &m.body.bytes, err);
    if (rc < 0) return rc;
    if (list.bytes < sizeof(uint32_t))
        return drps_err_set(err, DRPS_E_CORRUPT,
                            DRPS_FILE_NUMBERS ": record %" PRIu64 " is too short", step);
    m.n = drps_batch_samples(body, m.body.bytes);
    m.list = list;
    if (select && select < m.n) take_share(&m, select);
    out->of[DRPS_EXCHANGE_VECTORS] += sv_message_bytes(&m);
    m.n = drps_list_count(list.data);
    m.list = list;
    m.is_sparse = 1;
    m.body.bytes = 0;
    out->of[DRPS_EXCHANGE_ROWS] += sv_message_bytes(&m);
    return 0;
}

/* A ring's, in an epoch: of the rank at this place. */
static uint64_t ring_bytes(const struct drps_plan_info *info, uint32_t place)
{
    const uint64_t values = drps_exchange_rows(info) * (info->dim + 1);
    return info->batches * drps_net_allreduce_bytes(DRPS_NET_RING, info->ranks.count, place, values,
                                                    DRPS_NET_FLOAT32);
}

void drps_exchange_to(const struct drps_plan_ranks *ranks, enum drps_exchange way,
                      const struct drps_exchange_bytes *bytes, uint64_t *to_out)
{
    const uint32_t next = (ranks->rank + 1) % ranks->count;
    for (uint32_t r = 0; r < ranks->count; r++)
        to_out[r] = way != DRPS_EXCHANGE_DENSE ? bytes->of[way] / (ranks->count - 1)
                    : r == next                ? bytes->of[way]
                                               : 0;
    to_out[ranks->rank] = 0;
}

uint64_t drps_exchange_received(const struct drps_plan_info *info, enum drps_exchange way,
                                const struct drps_exchange_bytes *bytes,
                                const struct drps_exchange_bytes *all_bytes)
{
    const struct drps_plan_ranks *ranks = &info->ranks;
    if (way == DRPS_EXCHANGE_DENSE)
        return ring_bytes(info, (ranks->rank + ranks->count - 1) % ranks->count);
    return (all_bytes->of[way] - bytes->of[way]) / (ranks->count - 1);
}

/* How many ranks get a rank's vectors in a round, on average. */
static double receivers_of(const struct drps_plan_ranks *ranks,
                           const struct drps_train_multicast *m)
{
    return (m->to ? m->to : ranks->count - 1) * (1 - m->loss);
}

/* Multiples of `every` among the rounds after which something is done, which are the last of each
 * epoch, too, if `ends`. */
static uint64_t times(uint64_t batches, uint64_t first, uint64_t epochs, uint64_t every, int ends)
{
    uint64_t n = 0;
    for (uint64_t e = first; e < first + epochs; e++) {
        const uint64_t end = (e + 1) * batches;
        if (every) n += end / every - e * batches / every;
        if (ends) n += !every || end % every != 0;
    }
    return n;
}

uint64_t drps_exchange_meeting_bytes(const struct drps_plan_info *info, size_t row_bytes,
                                     const struct drps_train_options *options, uint64_t first,
                                     uint64_t epochs, uint32_t place)
{
    const struct drps_train_multicast *m = &options->multicast;
    const uint64_t rows = drps_exchange_rows(info);
    if (!drps_replicas_differ(options, info->ranks.count)) return 0;
    const uint64_t averages = times(info->batches, first, epochs, m->average, 1);
    uint64_t moves = 0; /* not where replicas are averaged instead */
    for (uint64_t end = info->batches, t = m->rotate; m->rotate; t += m->rotate) {
        if (t > (first + epochs) * end) break;
        moves += t > first * end && t % end != 0 && (!m->average || t % m->average != 0);
    }
    return averages * replica_average_bytes(rows, row_bytes, info->ranks.count, place) +
           moves * rows * row_bytes;
}

int drps_exchange_forecast(const struct drps_plan *part, int touches,
                           const struct drps_train_options *options,
                           struct drps_exchange_bytes *out, struct drps_err *err)
{
    const struct drps_plan_info *info = &part->info;
    const struct drps_plan_ranks *ranks = &info->ranks;
    const struct sv_message shape = {.dim = info->dim, .has_touches = touches};
    const uint64_t steps = info->batches + info->eval_batches, row = info->dim * sizeof(float);
    struct steps *numbers = NULL, *bodies = NULL;
    memset(out, 0, sizeof(*out));
    int rc = drps_steps_open(part->io, part->dir, DRPS_FILE_NUMBERS, DRPS_KIND_NUMBERS, steps,
                             1 << 20, &numbers, err);
    if (rc == 0)
        rc = drps_steps_open(part->io, part->dir, DRPS_FILE_DATA, DRPS_KIND_DATA, steps, 1 << 20,
                             &bodies, err);
    for (uint64_t t = 0; t < info->batches && rc == 0; t++)
        rc = add_round(numbers, bodies, t, options->sv_count, &shape, out, err);
    drps_steps_close(numbers);
    drps_steps_close(bodies);
    out->of[DRPS_EXCHANGE_VECTORS] = (uint64_t)((double)out->of[DRPS_EXCHANGE_VECTORS] *
                                                    receivers_of(ranks, &options->multicast) +
                                                .5);
    if (drps_algorithm_has_sample_rows(drps_plan_algorithm(info)))
        out->of[DRPS_EXCHANGE_VECTORS] = 0; /* whose gradient is no outer product */
    out->of[DRPS_EXCHANGE_ROWS] *= ranks->count - 1;
    out->of[DRPS_EXCHANGE_SERVERS] =
        ranks->served_rows * row + ranks->pulled_rows * (row + (touches ? sizeof(uint32_t) : 0));
    out->of[DRPS_EXCHANGE_DENSE] = ring_bytes(info, ranks->rank);
    return rc;
}

int drps_exchange_choose(const struct drps_cluster *c, int fits, struct drps_exchange_bytes *bytes,
                         enum drps_exchange *fewest_out, int *fits_out, struct drps_err *err)
{
    struct {
        struct drps_exchange_bytes bytes;
        uint64_t fits;
    } all[DRPS_PLAN_WORKERS_MAX], mine = {*bytes, (uint64_t)fits};
    struct drps_exchange_bytes sum = {{0}};
    int rc = drps_net_gather(c->net, &mine, sizeof(mine), all, c->wait_ms, err);
    if (rc < 0) return rc;
    *fits_out = 1;
    for (uint32_t r = 0; r < c->count; r++) {
        *fits_out &= all[r].fits != 0;
        for (int way = 0; way < DRPS_EXCHANGES; way++)
            sum.of[way] += all[r].bytes.of[way];
    }
    *fewest_out = DRPS_EXCHANGE_SERVERS;
    for (int way = 0; way < DRPS_EXCHANGES; way++)
        if (sum.of[way] && sum.of[way] < sum.of[*fewest_out]) *fewest_out = (enum drps_exchange)way;
    *bytes = sum;
    return 0;
}
