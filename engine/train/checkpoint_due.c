/* When a checkpoint is due: after some time, batches or epochs. The loop is told at which clock and
 * step of its epoch it pauses. */
#include "base/drps_clock.h"
#include "engine/train/job.h"

enum {
    USUAL_SECONDS = 300, /* between checkpoints, where the options do not say */
    COST_SHARE = 100,    /* the usual time is at least this many times what the last one took */
};

static uint64_t later(uint64_t ns, uint64_t more)
{
    return ns > UINT64_MAX - more ? UINT64_MAX : ns + more;
}

/* Sets when the next one is due; `took_ns`: the last one's time. Of several ranks rank 0 decides.
 */
static void choose(struct drps_job *job, uint64_t epoch, uint64_t step, uint64_t took_ns)
{
    struct drps_job_checkpoints *c = &job->checkpoints;
    const struct drps_checkpoint_every *every = &job->options->checkpoint_every;
    const uint64_t steps = (epoch - 1) * job->plan->info.batches + step;
    const uint64_t second = UINT64_C(1000000000);
    uint64_t wait = UINT64_MAX;
    c->due_step = c->due_epoch = c->due_ns = UINT64_MAX;
    if (job->ranks && job->cluster.rank) return;
    switch (every->unit) {
    case DRPS_CHECKPOINT_USUAL:
        wait = USUAL_SECONDS * second;
        if (took_ns > wait / COST_SHARE) wait = took_ns * COST_SHARE;
        break;
    case DRPS_CHECKPOINT_SECONDS:
        wait = every->n * second;
        break;
    case DRPS_CHECKPOINT_BATCHES:
        c->due_step = later(steps, every->n);
        break;
    case DRPS_CHECKPOINT_EPOCHS:
        c->due_epoch = later(epoch - 1, every->n);
        break;
    case DRPS_CHECKPOINT_NEVER:
        break;
    }
    c->due_ns = later(drps_clock_ns(), wait);
}

/* The loop counts the steps of one epoch. */
static void arm_loop(struct drps_job *job, uint64_t epoch)
{
    const struct drps_job_checkpoints *c = &job->checkpoints;
    struct drps_epoch_loop *loop = &job->loop;
    const uint64_t before = (epoch - 1) * job->plan->info.batches;
    loop->pause_ns = c->due_ns;
    loop->pause_step = c->due_step == UINT64_MAX ? UINT64_MAX
                       : c->due_step > before    ? c->due_step - before
                                                 : 0;
}

void drps_job_arm(struct drps_job *job, uint64_t epoch)
{
    struct drps_job_checkpoints *c = &job->checkpoints;
    if (!c->due_ns) choose(job, epoch, c->state.part.step, 0); /* the first time */
    arm_loop(job, epoch);
}

void drps_job_set_due(struct drps_job *job, uint64_t epoch, uint64_t step, uint64_t took_ns)
{
    choose(job, epoch, step, took_ns);
    arm_loop(job, epoch);
}

int drps_job_due_after(struct drps_job *job, uint64_t epoch, int *due_out, struct drps_err *err)
{
    const struct drps_job_checkpoints *c = &job->checkpoints;
    const int last = epoch >= job->options->epochs || job->result->stopped_early;
    uint64_t due = epoch >= c->due_epoch || epoch * job->plan->info.batches >= c->due_step ||
                   drps_clock_ns() >= c->due_ns;
    if (job->log) /* beside which checkpoints are written as it grows; the best epoch is in none */
        due = !drps_round_log_is_open(job->log) || drps_round_log_due(job->log) ||
              job->result->best_epoch == epoch;
    if (last) due = job->options->keep_checkpoints != 0;
    int rc = job->ranks ? drps_cluster_least(&job->cluster, &due, err) : 0;
    *due_out = due != 0;
    return rc;
}
