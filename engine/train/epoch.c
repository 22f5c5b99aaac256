/* The steps of one epoch: training, then evaluation. */
#include "engine/train/epoch.h"

#include <errno.h>
#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "base/drps_clock.h"

enum { PROGRESS_NS = 100000000 };

/* Counters at the start of an epoch. */
struct mark {
    uint64_t start_ns;
    struct drps_store_stats store;
    struct drps_feed_stats feed;
};

enum { STOPPED = 1, PAUSED = 2 }; /* how steps may end, before the epoch does */

/* The epoch under way. */
struct run {
    struct drps_epoch_loop *loop;
    uint64_t epoch;
    uint64_t start_ns;
    uint64_t step, steps;               /* of the epoch */
    uint64_t samples;                   /* trained */
    uint64_t first_step, first_samples; /* of the epoch, that were done before this run began */
    double loss;                        /* their sum; on a device, of those that have come back */
    uint64_t losses;                    /* training steps of the epoch whose losses are in it */
    uint64_t trained_ns;                /* when training ended */
    uint64_t now_ns;                    /* when the last step ended */
    int asked;                          /* of several ranks: this one has asked all to pause */
    uint64_t diverged_at; /* of several ranks: the step, from 1, whose loss was no finite number
                             here; the ranks stop soon after. 0: none */
};

static void set_mark(struct drps_epoch_loop *loop, struct mark *mark)
{
    loop->server->ops->stats(loop->server->store, &mark->store);
    drps_feed_stats(loop->feed, &mark->feed);
    mark->start_ns = drps_clock_ns();
}

/* The mean loss of the epoch's samples so far. A device's losses come some batches late: batches
 * without one are taken to be like the others. */
static double loss_so_far(const struct run *run)
{
    const struct drps_epoch_loop *loop = run->loop;
    const uint64_t trained = run->step < loop->train_steps ? run->step : loop->train_steps;
    if (!run->samples || (loop->device && !run->losses)) return NAN;
    const double loss = run->loss / drps_plan_weight_of(loop->info, run->samples);
    return loop->device ? loss * (double)trained / (double)run->losses : loss;
}

static struct drps_train_progress progress_of(const struct run *run, uint64_t now)
{
    const struct drps_epoch_loop *loop = run->loop;
    return (struct drps_train_progress){
        .epoch = run->epoch,
        .epochs = loop->options->epochs,
        .step =
            run->step < run->steps ? run->step : run->steps, /* one may do more than its share */
        .steps = run->steps,
        .evaluates = run->step >= loop->train_steps,
        .seconds = (double)(now - run->start_ns) * 1e-9,
        .samples_per_s = (double)run->samples / ((double)(now - run->start_ns) * 1e-9),
        .train_loss = loss_so_far(run),
        .first_step = run->first_step,
        .samples = run->samples - run->first_samples,
    };
}

static void tell_progress(struct run *run, uint64_t now)
{
    struct drps_epoch_loop *loop = run->loop;
    const struct drps_train_options *o = loop->options;
    run->now_ns = now;
    if (!loop->first_ns) loop->first_ns = now;
    if ((!o->on_progress && !loop->watch) || now - loop->progress_ns < PROGRESS_NS) return;
    loop->progress_ns = now;
    const struct drps_train_progress p = progress_of(run, now);
    if (o->on_progress) o->on_progress(o->ctx, &p);
    if (loop->watch) loop->watch(loop->pause_ctx, &p);
}

/* What is watched is right when the steps have ended, however they did. */
static void tell_end(const struct run *run)
{
    const struct drps_train_progress p = progress_of(run, drps_clock_ns());
    if (run->loop->watch) run->loop->watch(run->loop->pause_ctx, &p);
}

/* What is done, for the one who pauses. Evaluation changes nothing and begins anew. */
static struct drps_epoch_part done_part(const struct run *run, uint64_t now)
{
    const uint64_t train = run->loop->train_steps;
    return (struct drps_epoch_part){.step = run->step < train ? run->step : train,
                                    .samples = run->samples,
                                    .loss = run->loss,
                                    .ns = now - run->start_ns,
                                    .intercept = run->loop->server->intercept_due};
}

/* A training step is done: who logs it is told. Returns PAUSED where a pause is due. */
static int end_round(struct run *run, struct drps_err *err)
{
    const struct drps_epoch_loop *loop = run->loop;
    const struct drps_epoch_part done = done_part(run, run->now_ns);
    if (!loop->end_round) return 0;
    int rc = loop->end_round(loop->pause_ctx, run->epoch, &done, err);
    return rc == 1 ? PAUSED : rc;
}

/* Next batch and its rows; the time of both. Returns the clock in *now_out. */
static int open_step(struct drps_epoch_loop *loop, struct drps_feed_batch *batch, uint64_t *now_out,
                     struct drps_err *err)
{
    const uint64_t start = drps_clock_ns();
    int rc = loop->batch_cache ? drps_batch_cache_next(loop->batch_cache, batch, err)
                               : drps_feed_next(loop->feed, batch, err);
    if (rc < 0) return rc;
    const uint64_t read = drps_clock_ns();
    rc = drps_server_open_step(loop->server, batch->ids, batch->body.rows, err);
    *now_out = drps_clock_ns();
    loop->plan_ns += read - start;
    loop->wait_ns += *now_out - read;
    return rc;
}

static int not_finite(const struct run *run, uint64_t step, struct drps_err *err)
{
    const double lr = (double)run->loop->server->optim.lr;
    if (run->loop->server->topic)
        return drps_err_set(err, -ERANGE,
                            "in epoch %llu, step %llu, a document's objective is no finite number: "
                            "scale the data's values",
                            (unsigned long long)run->epoch, (unsigned long long)step);
    if (run->loop->worker->why.code)
        return drps_err_set(
            err, -ERANGE, "the training loss is no finite number in epoch %llu, step %llu, %s",
            (unsigned long long)run->epoch, (unsigned long long)step, run->loop->worker->why.text);
    return drps_err_set(
        err, -ERANGE,
        "the training loss is no finite number in epoch %llu, step %llu: training diverged; "
        "try a smaller learning rate (it is %g, try %g)",
        (unsigned long long)run->epoch, (unsigned long long)step, lr, lr / 10);
}

/* A loss that is no finite number ends one process here; several ranks when all know of it: see
 * agree_on_divergence(). */
static int diverged(struct run *run, struct drps_err *err)
{
    if (run->loop->server->newton) return 0; /* its step was too long: it makes a shorter one */
    if (run->loop->server->topic) return 0;  /* the objective says so when the epoch ends */
    if (!run->loop->cluster) return not_finite(run, run->step, err);
    if (!run->diverged_at) run->diverged_at = run->step;
    return 0;
}

/* ---- Steps: 0, or STOPPED when the user asked to stop before it ---- */

static int is_asked_to_stop(const struct drps_epoch_loop *loop)
{
    const atomic_int *stop = loop->options->stop;
    return stop &&
           atomic_load_explicit(stop, memory_order_relaxed); /* a flag: it publishes nothing */
}

/* Some ranks stop between epochs: see begins(). */
static int stopping(const struct drps_epoch_loop *loop)
{
    return !loop->whole_epochs && is_asked_to_stop(loop);
}

/* A step that hands rows over, open since then. */
static int hand_over(struct run *run, const struct drps_batch *step, uint64_t opened,
                     struct drps_err *err)
{
    struct drps_epoch_loop *loop = run->loop;
    int rc = drps_circulation_step(loop->circulation, step, &loop->server->rows, err);
    if (rc == 0)
        rc = drps_server_close_step(loop->server, (step->hand_over & DRPS_ARRIVES) != 0, err);
    const uint64_t end = drps_clock_ns();
    loop->hand_ns += end - opened;
    run->step++;
    tell_progress(run, end);
    return rc;
}

static int train_step(struct run *run, struct drps_err *err)
{
    struct drps_epoch_loop *loop = run->loop;
    struct drps_feed_batch batch;
    uint64_t now;

    if (stopping(loop)) return STOPPED;
    int rc = open_step(loop, &batch, &now, err);
    if (rc < 0) return rc;
    if (batch.body.hand_over) return hand_over(run, &batch.body, now, err);
    const uint64_t before = loop->worker->gather_ns + loop->worker->compute_ns;
    const double loss = drps_worker_train(loop->worker, &batch.body);
    if (run->step + 1 == loop->train_steps) drps_intercept_end(loop->server, &loop->server->rows);
    rc = drps_server_close_step(loop->server, 1, err);
    if (rc < 0) return rc;
    const uint64_t end = drps_clock_ns();
    loop->step_ns += end - now - (loop->worker->gather_ns + loop->worker->compute_ns - before);
    run->step++;
    run->samples += batch.body.samples;
    run->loss += loss;
    rc = isfinite(loss) ? 0 : diverged(run, err);
    tell_progress(run, end);
    return rc == 0 ? end_round(run, err) : rc;
}

/* Takes the losses of batches that the device has computed, but for the last `left`. */
static int take_losses(struct run *run, unsigned left, struct drps_err *err)
{
    struct drps_epoch_loop *loop = run->loop;
    double loss;
    const uint64_t start = drps_clock_ns();
    int rc = drps_device_worker_take(loop->device, left, &loss, err);
    for (; rc == 1; rc = drps_device_worker_take(loop->device, left, &loss, err)) {
        run->loss += loss;
        run->losses++;
        if (!isfinite(loss)) return not_finite(run, run->losses, err);
    }
    loop->worker->compute_ns += drps_clock_ns() - start;
    return rc;
}

/* The same step on a device: its loss comes some steps later, and those of all once training ends.
 */
static int give_step(struct run *run, struct drps_err *err)
{
    struct drps_epoch_loop *loop = run->loop;
    struct drps_feed_batch batch;
    uint64_t now;

    if (stopping(loop)) return STOPPED;
    int rc = open_step(loop, &batch, &now, err);
    if (rc == 0) rc = drps_device_worker_train(loop->device, run->step, &batch.body, err);
    if (rc == 0) rc = drps_server_close_step(loop->server, 1, err);
    if (rc < 0) return rc;
    loop->worker->gather_ns += drps_clock_ns() - now;
    run->step++;
    run->samples += batch.body.samples;
    rc = take_losses(run, run->step == loop->train_steps ? 0 : DRPS_DEVICE_UNDER_WAY, err);
    tell_progress(run, drps_clock_ns());
    return rc;
}

/* Trains several batches of one stratum, where train_step() trains one. */
static int train_steps(struct run *run, struct drps_err *err)
{
    struct drps_epoch_loop *loop = run->loop;
    struct drps_stratum_done done;

    if (stopping(loop)) return STOPPED;
    const uint64_t start = drps_clock_ns();
    const uint64_t before = loop->worker->gather_ns + loop->worker->compute_ns + loop->hand_ns;
    int rc = drps_stratum_train(loop->stratum, loop->train_steps - run->step, &done, err);
    if (rc < 0) return rc;
    const uint64_t end = drps_clock_ns();
    loop->plan_ns += done.plan_ns;
    loop->wait_ns += done.wait_ns;
    loop->step_ns += end - start - done.plan_ns - done.wait_ns -
                     (loop->worker->gather_ns + loop->worker->compute_ns + loop->hand_ns - before);
    for (size_t i = 0; i < done.n; i++) {
        run->step++;
        run->samples += done.batch[i].samples;
        run->loss += done.batch[i].loss;
        if (!isfinite(done.batch[i].loss)) rc = diverged(run, err);
        if (rc < 0) return rc;
    }
    tell_progress(run, end);
    return 0;
}

/* A test batch that has scores. The first whose loss is no finite number is told of. */
static void judge(const struct run *run, const struct drps_batch *batch)
{
    struct drps_worker *worker = run->loop->worker;
    drps_metrics_add(run->loop->metrics, worker->scores, batch->labels, batch->weights,
                     batch->samples);
    if (drps_metrics_is_finite(run->loop->metrics)) return;
    if (drps_worker_explain(worker, batch) < 0)
        (void)drps_err_context(&worker->why, "test batch %llu",
                               (unsigned long long)(run->step - run->loop->train_steps + 1));
}

static int evaluate_step(struct run *run, struct drps_err *err)
{
    struct drps_epoch_loop *loop = run->loop;
    struct drps_feed_batch batch;
    uint64_t now;

    if (stopping(loop)) return STOPPED;
    int rc = open_step(loop, &batch, &now, err);
    if (rc < 0) return rc;
    if (batch.body.hand_over) return hand_over(run, &batch.body, now, err);
    if (loop->device)
        rc = drps_device_worker_predict(loop->device, run->step, &batch.body, loop->worker->scores,
                                        err);
    else
        drps_worker_predict(loop->worker, &batch.body);
    if (rc < 0) return rc;
    judge(run, &batch.body);
    rc = drps_server_close_step(loop->server, 0, err);
    const uint64_t end = drps_clock_ns();
    loop->evaluate_ns += end - now;
    run->step++;
    tell_progress(run, end);
    return rc;
}

/* The worker's part of a step of several ranks; of asynchronous rounds returns 1 after the last
 * one. All ranks must hear of a loss that is no finite number: see agree_on_divergence(). */
static int ranks_step(struct run *run, int training, struct drps_err *err)
{
    struct drps_epoch_loop *loop = run->loop;
    const uint64_t start = drps_clock_ns();
    struct drps_round round;

    int rc = training && loop->async ? drps_async_work(loop->async, &round, err)
             : training && loop->exchange
                 ? drps_exchange_work(loop->exchange, run->step, &round, err)
                 : drps_rounds_work(loop->rounds, &round, err);
    if (rc) return rc;
    const struct drps_batch *batch = round.batch;
    if (!training) judge(run, batch);
    const uint64_t end = drps_clock_ns();
    const uint64_t rest = end - start - round.plan_ns - round.wait_ns;
    loop->plan_ns += round.plan_ns;
    loop->wait_ns += round.wait_ns;
    if (training)
        loop->step_ns += rest - round.compute_ns; /* which the worker counts */
    else
        loop->evaluate_ns += rest;
    run->step++;
    run->samples += training ? batch->samples : 0;
    run->loss += round.loss;
    if (!isfinite(round.loss) && !run->diverged_at) run->diverged_at = run->step;
    tell_progress(run, end);
    return 0;
}

static double share(double part, double whole)
{
    return whole > 0 ? part / whole : NAN;
}

static uint64_t requests(const struct drps_iostat *io)
{
    return io->reads + io->writes;
}

static uint64_t moved_bytes(const struct drps_iostat *io)
{
    return io->read_bytes + io->written_bytes;
}

static int finish(const struct run *run, const struct mark *from, uint64_t trained_ns,
                  struct drps_epoch *out, struct drps_err *err)
{
    struct drps_epoch_loop *loop = run->loop;
    struct mark to;
    set_mark(loop, &to);

    const double seconds = (double)(to.start_ns - from->start_ns) * 1e-9;
    const uint64_t needed = to.store.blocks_needed - from->store.blocks_needed;
    struct drps_cluster_sums sums = {
        .samples = run->samples, .loss_sum = run->loss, .train_ns = trained_ns - from->start_ns};
    *out = (struct drps_epoch){
        .epoch = run->epoch,
        .seconds = seconds,
        .test = {.loss = NAN, .auc = NAN, .accuracy = NAN, .rmse = NAN, .recall = NAN, .ndcg = NAN},
        .reads = to.store.io.reads - from->store.io.reads,
        .writes = to.store.io.writes - from->store.io.writes,
        .read_bytes = to.store.io.read_bytes - from->store.io.read_bytes,
        .written_bytes = to.store.io.written_bytes - from->store.io.written_bytes,
        .seeks = to.store.io.seeks - from->store.io.seeks,
        .requests = requests(&to.store.device.io) - requests(&from->store.device.io),
        .moved_bytes = moved_bytes(&to.store.device.io) - moved_bytes(&from->store.device.io),
        .plan_read_bytes = to.feed.read_bytes - from->feed.read_bytes,
        .hit_share = share((double)(to.store.blocks_hit - from->store.blocks_hit), (double)needed),
        .stall_share = (double)(to.store.stall_ns - from->store.stall_ns) * 1e-9 / seconds,
        .plan_wait_seconds = (double)(to.feed.wait_ns - from->feed.wait_ns) * 1e-9,
    };
    int rc = 0;
    if (loop->cluster)
        rc = drps_cluster_epoch(loop->cluster, &sums, loop->metrics, out, err);
    else if (loop->metrics)
        drps_metrics_result(loop->metrics, &out->test);
    out->samples_per_s = (double)sums.samples / ((double)sums.train_ns * 1e-9);
    out->train_loss = sums.loss_sum / drps_plan_weight_of(loop->info, sums.samples);
    return rc;
}

/* Several ranks, all of which have stopped, or are through: -ERANGE on all if one has diverged. */
static int agree_on_divergence(const struct run *run, struct drps_err *err)
{
    uint64_t step = run->diverged_at;
    if (!run->loop->cluster) return 0;
    int rc = drps_cluster_least(run->loop->cluster, &step, err);
    return rc == 0 && step ? not_finite(run, step, err) : rc;
}

/* ---- Pausing ---- */

/* Whether a pause is due after the last step. A pause after the last training step, or between
 * evaluation steps, is left to the end of the epoch. */
static int is_due(const struct run *run)
{
    const struct drps_epoch_loop *loop = run->loop;
    return loop->pause && run->step < loop->train_steps &&
           (run->step >= loop->pause_step || run->now_ns >= loop->pause_ns);
}

/* What was read and written from one mark to the other does not count from `from` on. */
static void leave_out(struct mark *from, const struct mark *begin, const struct mark *end)
{
    const struct drps_iostat *a = &begin->store.io, *b = &end->store.io;
    struct drps_iostat *io = &from->store.io;
    io->reads += b->reads - a->reads;
    io->writes += b->writes - a->writes;
    io->seeks += b->seeks - a->seeks;
    io->read_bytes += b->read_bytes - a->read_bytes;
    io->written_bytes += b->written_bytes - a->written_bytes;
}

/* Calls pause(); the clocks and the counts of the epoch stand still meanwhile. */
static int pause_run(struct run *run, struct mark *from, struct drps_err *err)
{
    struct drps_epoch_loop *loop = run->loop;
    const uint64_t start = drps_clock_ns();
    const struct drps_epoch_part done = done_part(run, start);
    struct mark begin, end;
    set_mark(loop, &begin);
    int rc = loop->pause(loop->pause_ctx, run->epoch, &done, err);
    set_mark(loop, &end);
    leave_out(from, &begin, &end);
    const uint64_t took = drps_clock_ns() - start;
    run->start_ns += took;
    from->start_ns += took;
    if (run->trained_ns) run->trained_ns += took;
    run->asked = 0;
    return rc;
}

/* ---- All steps ---- */

/* The steps up to `end`. Returns STOPPED, or PAUSED where one process runs them. */
static int run_steps(struct run *run, uint64_t end, struct drps_err *err)
{
    struct drps_epoch_loop *loop = run->loop;
    while (run->step < end) {
        const int training = run->step < loop->train_steps;
        int rc = loop->rounds    ? ranks_step(run, training, err)
                 : !training     ? evaluate_step(run, err)
                 : loop->device  ? give_step(run, err)
                 : loop->stratum ? train_steps(run, err)
                                 : train_step(run, err);
        if (rc) return rc;
        if (run->step == loop->train_steps && training && !loop->rounds)
            run->trained_ns = drps_clock_ns();
        if (loop->end_round || !is_due(run)) continue;
        if (!loop->rounds) return PAUSED;
        if (!run->asked++) drps_rounds_pause(loop->rounds);
    }
    return 0;
}

static int run_rounds(struct run *run, struct drps_err *err)
{
    struct drps_rounds *rounds = run->loop->rounds;
    if (run->step == run->steps) return 0;
    const int training = run->step < run->loop->train_steps;
    int rc = drps_rounds_begin(rounds, run->step, err);
    if (rc == 0) rc = run_steps(run, run->steps, err);
    rc = drps_rounds_end(rounds, rc, err);
    if (training) run->trained_ns = drps_rounds_trained_ns(rounds);
    if (rc != STOPPED || drps_rounds_stopped(rounds)) return rc;
    if (run->loop->pause) return PAUSED;
    return drps_err_set(err, DRPS_E_PROTO,
                        "a rank pauses within epoch %llu, which filters do not allow",
                        (unsigned long long)run->epoch);
}

/* How many batches a worker executes is known at the end; together they are those of all steps. */
static int train_async(struct run *run, struct drps_err *err)
{
    struct drps_epoch_loop *loop = run->loop;
    const uint32_t workers = loop->cluster->part->info.ranks.workers;
    int rc = drps_async_begin(loop->async, err);
    while (rc == 0)
        rc = ranks_step(run, 1, err);
    rc = drps_async_end(loop->async, rc, err);
    run->trained_ns = drps_clock_ns();
    run->step = rc ? (drps_async_done(loop->async) + workers - 1) / workers : loop->train_steps;
    return rc;
}

/* Each rank has all rows. Returns PAUSED where a pause is due. */
static int train_exchanging(struct run *run, struct drps_err *err)
{
    struct drps_epoch_loop *loop = run->loop;
    int rc = 0;
    while (run->step < loop->train_steps && rc == 0) {
        rc = ranks_step(run, 1, err);
        if (rc == 0) rc = end_round(run, err);
    }
    run->trained_ns = drps_clock_ns();
    return rc;
}

/* The steps of the epoch that are left. */
static int run_rest(struct run *run, struct drps_err *err)
{
    const struct drps_epoch_loop *loop = run->loop;
    int rc = loop->async && run->step < loop->train_steps ? train_async(run, err) : 0;
    if (rc == 0 && loop->exchange) rc = train_exchanging(run, err);
    if (rc == 0) rc = loop->rounds ? run_rounds(run, err) : run_steps(run, run->steps, err);
    const int taken = rc >= 0 && loop->device ? take_losses(run, 0, err) : 0;
    return taken < 0 ? taken : rc;
}

static void begin_run(struct run *run, const struct drps_epoch_part *begin, struct mark *from)
{
    set_mark(run->loop, from);
    from->start_ns -= begin->ns;
    run->start_ns = from->start_ns;
    run->step = begin->step;
    run->samples = begin->samples;
    run->loss = begin->loss;
    run->losses = begin->step;
    run->loop->server->intercept_due = begin->intercept;
    run->first_step = begin->step;
    run->first_samples = begin->samples;
    if (run->step == run->loop->train_steps) run->trained_ns = drps_clock_ns();
}

/* All ranks stop before the same epoch, as some of them want. */
static int begins(const struct run *run, struct drps_err *err)
{
    uint64_t stop = run->loop->whole_epochs && is_asked_to_stop(run->loop);
    if (!run->loop->whole_epochs) return 0;
    int rc = drps_cluster_least(run->loop->cluster, &stop, err);
    return rc == 0 && stop ? STOPPED : rc;
}

int drps_epoch_run(struct drps_epoch_loop *loop, uint64_t epoch,
                   const struct drps_epoch_part *begin, struct drps_epoch *out,
                   struct drps_err *err)
{
    struct run run = {.loop = loop, .epoch = epoch, .steps = loop->train_steps + loop->eval_steps};
    struct mark from;

    memset(out, 0, sizeof(*out));
    begin_run(&run, begin, &from);
    if (loop->metrics) drps_metrics_reset(loop->metrics);
    drps_err_clear(&loop->worker->why);
    int rc = begins(&run, err);
    if (rc == 0) rc = run_rest(&run, err);
    while (rc == PAUSED) {
        rc = pause_run(&run, &from, err);
        if (rc == 0) rc = run_rest(&run, err);
    }
    const int stopped = rc == STOPPED;
    tell_end(&run);
    if (rc >= 0) rc = agree_on_divergence(&run, err);
    if (rc == 0 && stopped) {
        loop->stopped_at = run.step;
        loop->stopped = done_part(&run, drps_clock_ns());
        return DRPS_E_INTERRUPTED;
    }
    return rc < 0 ? rc : finish(&run, &from, run.trained_ns, out, err);
}
