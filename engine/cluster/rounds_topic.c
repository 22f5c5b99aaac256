/*
 * Rounds of a topic model: each rank has the sums of all documents and words. After a training
 * round the rank's server tells its worker that the rows are stepped, and the workers add up what
 * the round changes of the sums. A rank without rows, or without documents, changes less of them.
 */
#include "base/drps_clock.h"
#include "engine/cluster/rounds_internal.h"
#include "net/drps_allreduce.h"

/* Returns the bytes that a rank sends in a round. */
static uint64_t round_bytes(const struct drps_plan_info *info, uint32_t rank)
{
    return drps_net_allreduce_bytes(DRPS_NET_RING, info->ranks.count, rank,
                                    drps_rounds_sums_n(info), DRPS_NET_FLOAT64);
}

static uint32_t rank_before(const struct drps_plan_ranks *ranks)
{
    return (ranks->rank + ranks->count - 1) % ranks->count;
}

size_t drps_rounds_sums_n(const struct drps_plan_info *info)
{
    const struct drps_algorithm *a = drps_algorithm_find(info->algo);
    return a && drps_algorithm_is_topic(a) ? drps_topic_changes_n(info->factors) : 0;
}

void drps_rounds_forecast_sums(const struct drps_plan_info *info, uint64_t epochs,
                               struct drps_rounds_bytes *out)
{
    const uint64_t rounds = epochs * info->batches;
    out->sent += rounds * round_bytes(info, info->ranks.rank);
    out->received += rounds * round_bytes(info, rank_before(&info->ranks));
}

int drps_rounds_tell_stepped(struct drps_rounds *r, struct drps_err *err)
{
    const struct drps_net_send send = {.to = r->rank,
                                       .part = DRPS_NET_WORKER,
                                       .type = DRPS_MESSAGE_STEPPED,
                                       .round = r->server.round};
    return drps_net_send(r->o.net, &send, r->o.wait_ms, err);
}

/* Wait until the rows of this rank are stepped. */
static int take_stepped(struct drps_rounds *r, struct drps_err *err)
{
    struct drps_net_message *m;
    if (!rounds_serves(r)) return 0;
    int rc = drps_rounds_take(r, DRPS_NET_WORKER, r->rank, r->worker.round, &m, err);
    if (rc < 0) return rc;
    if (m->type != DRPS_MESSAGE_STEPPED)
        return drps_rounds_unexpected(m, DRPS_MESSAGE_STEPPED, 0, err);
    drps_net_message_free(m);
    return 0;
}

int drps_rounds_add_sums(struct drps_rounds *r, struct drps_err *err)
{
    struct rounds_worker *w = &r->worker;
    struct drps_topic *topic = r->o.server->topic;
    const struct drps_plan_info *info = &r->o.plan->info;
    const struct drps_net_allreduce sum = {.values = drps_topic_changes(topic),
                                           .n = drps_rounds_sums_n(info),
                                           .type = DRPS_NET_FLOAT64,
                                           .way = DRPS_NET_RING,
                                           .round = w->round};
    int rc = take_stepped(r, err);
    if (rc == 0) rc = drps_net_allreduce(r->o.net, &sum, r->o.wait_ms, err);
    if (rc < 0) return rc;
    drps_topic_apply(topic);
    rounds_count_sent(r, &w->sent, DRPS_TRAFFIC_SUMS, (r->rank + 1) % r->ranks, 0,
                      round_bytes(info, r->rank));
    w->traffic.received += round_bytes(info, rank_before(&info->ranks));
    return 0;
}
