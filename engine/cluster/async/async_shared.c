/* What the parts of asynchronous rounds share: messages, their sizes, how a failure is passed on.
 */
#include "engine/cluster/async/parts.h"

int drps_async_told_failed(struct drps_err *err)
{
    return drps_err_set(err, DRPS_E_CLOSED, "another part of this rank has failed");
}

void drps_async_tell_failed(const struct async_job *job, enum drps_net_part part)
{
    const struct drps_net_send send = {.to = job->rank, .part = part, .type = DRPS_MESSAGE_FAILED};
    const int rc = drps_net_send(job->o.net, &send, job->o.wait_ms, NULL);
    (void)rc; /* that fails when the net has failed, which the part hears itself */
}

int drps_async_receive(const struct async_job *job, enum drps_net_part part, uint32_t timeout_ms,
                       struct drps_net_message **out, struct drps_err *err)
{
    int rc = drps_net_receive(job->o.net, part, DRPS_NET_ANY, timeout_ms, out, err);
    if (rc < 0 || (*out)->type != DRPS_MESSAGE_FAILED || (*out)->from != job->rank) return rc;
    drps_net_message_free(*out);
    *out = NULL;
    return drps_async_told_failed(err);
}

int drps_async_undue(const struct drps_net_message *m, const char *to, struct drps_err *err)
{
    return drps_err_set(err, DRPS_E_PROTO,
                        "rank %u sent the %s message %u of %zu bytes for step %llu of share %u, "
                        "which was not due",
                        m->from, to, m->type, m->bytes, (unsigned long long)m->round, m->tag);
}

struct drps_sched_config drps_async_sched(const struct drps_train_options *train, uint32_t workers)
{
    struct drps_sched_config config = drps_sched_defaults(train->sync, workers);
    if (train->staleness) config.bound = train->staleness;
    drps_sched_tune(&train->wsp, &config);
    return config;
}

uint64_t drps_async_gradient_bytes(const struct async_job *job, uint32_t other, size_t rows)
{
    if (other == job->rank) return sizeof(struct drps_message_here);
    return rows * (job->dim * sizeof(float) + (job->touches ? sizeof(uint32_t) : 0));
}

uint64_t drps_async_part_rows(const struct drps_plan_info *info)
{
    const uint64_t uses = info->ranks.max_round_uses;
    return uses < info->max_batch_rows ? uses : info->max_batch_rows;
}
