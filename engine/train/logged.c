/*
 * Checkpoints of vectors: a run that logs what its ranks apply in each round, beside checkpoints of
 * rows that are written when the logs have become as large. Each rank logs on its own. All go on
 * from the last round that each of them can restore; only checkpoints are written together.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/drps_alloc.h"
#include "base/drps_clock.h"
#include "engine/publish/drps_model_files.h"
#include "engine/train/job.h"

enum { SYNC_SECONDS = 10 }; /* where the options do not say */

uint64_t drps_job_round(const struct drps_job *job, uint64_t epoch, uint64_t step)
{
    return (epoch - 1) * job->plan->info.batches + step;
}

/* ---- Where the run goes on ---- */

struct drps_job_span drps_job_span(const struct drps_job *job, const struct drps_state *state,
                                   uint64_t last_round)
{
    const int evaluated = state->epoch > 1 && !state->part.step;
    const uint64_t first = 2 * drps_job_round(job, state->epoch, state->part.step);
    struct drps_job_span span = {first + (uint64_t)evaluated, 2 * last_round};
    if (span.last < span.first) span.last = span.first;
    return span;
}

/* The last place up to `most` that is in some span: 1, or 0. */
static int find_place(const struct drps_job_span *spans, size_t n, uint64_t most,
                      uint64_t *place_out, size_t *which_out)
{
    for (size_t i = 0; i < n; i++) {
        const struct drps_job_span *s = &spans[i];
        if (most < s->first) continue;
        uint64_t place = most < s->last ? most : s->last;
        if (place != s->first) place &= ~UINT64_C(1); /* logs have rounds alone */
        *place_out = place;
        *which_out = i;
        return 1;
    }
    return 0;
}

/* What each rank says of where it can go on. */
struct offer {
    uint64_t has, place;   /* the last one up to what was asked for */
    uint64_t first, last;  /* rounds that it has */
    uint64_t asked, round; /* by options: whether, and which */
};

/* The least offer of all ranks; *same_out: all are that. Rounds that all have to *low, *high. */
static int compare_offers(const struct drps_job *job, const struct offer *mine, struct offer *least,
                          int *same_out, struct drps_err *err)
{
    const uint32_t n = job->ranks ? job->cluster.count : 1;
    struct offer *all = calloc(n, sizeof(*all));
    if (!all) return drps_err_set(err, -ENOMEM, "no memory for %u ranks", n);
    all[0] = *mine;
    int rc = job->ranks ? drps_net_gather(job->cluster.net, mine, sizeof(*mine), all,
                                          job->cluster.wait_ms, err)
                        : 0;
    *least = all[0];
    *same_out = 1;
    for (uint32_t r = 1; r < n && rc == 0; r++) {
        if (all[r].asked != all[0].asked || all[r].round != all[0].round)
            rc = drps_err_set(err, DRPS_E_CONFIG,
                              "rank %u was started to resume after another round than rank 0: give "
                              "all ranks the same",
                              r);
        *same_out &= all[r].has == all[0].has && all[r].place == all[0].place;
        if (all[r].first > least->first) least->first = all[r].first;
        if (all[r].last < least->last) least->last = all[r].last;
        if (all[r].has < least->has) least->has = 0;
        if (all[r].place < least->place) least->place = all[r].place;
    }
    free(all);
    return rc;
}

static int not_covered(const struct drps_job *job, const struct offer *of, struct drps_err *err)
{
    const unsigned long long round = job->options->resume_round;
    const char *dir = job->checkpoints.place.root;
    if (of->first > of->last)
        return drps_err_set(err, DRPS_E_NOT_FOUND,
                            "round %llu is not covered by %s, which holds no round that all ranks "
                            "have",
                            round, dir);
    return drps_err_set(err, DRPS_E_NOT_FOUND,
                        "round %llu is not covered by %s: rounds %" PRIu64 " to %" PRIu64 " are",
                        round, dir, of->first, of->last);
}

int drps_job_agree_on_place(const struct drps_job *job, const struct drps_job_span *spans, size_t n,
                            uint64_t *place_out, size_t *which_out, struct drps_err *err)
{
    const struct drps_train_options *o = job->options;
    const uint64_t wanted = o->resume_at && o->resume_round < UINT64_MAX / 2 ? 2 * o->resume_round + 1
                                                                             : UINT64_MAX;
    struct offer mine = {.first = n ? spans[n - 1].first / 2 : UINT64_MAX,
                         .last = n ? spans[0].last / 2 : 0,
                         .asked = o->resume_at != 0,
                         .round = o->resume_round};
    struct offer least = {.place = wanted};
    int same = 0, rc = 0;
    do {
        mine.has = (uint64_t)find_place(spans, n, least.place, &mine.place, which_out);
        rc = compare_offers(job, &mine, &least, &same, err);
    } while (rc == 0 && !same && least.has);
    *place_out = mine.place;
    if (rc < 0) return rc;
    if (o->resume_at && (!least.has || mine.place / 2 != o->resume_round))
        return not_covered(job, &least, err);
    return least.has != 0;
}

int drps_job_take_place(struct drps_job *job, const struct drps_job_span *span, uint64_t place,
                        struct drps_err *err)
{
    struct drps_job_checkpoints *c = &job->checkpoints;
    struct drps_state *s = &c->state;
    const uint64_t batches = job->plan->info.batches, round = place / 2;
    c->round = round;
    c->replays = place != span->first;
    if (!c->replays) return 0;
    const uint64_t epoch = (round - 1) / batches + 1;
    struct drps_epoch *done = realloc(s->done, epoch * sizeof(*done));
    if (!done) return drps_err_set(err, -ENOMEM, "no memory for the results of epochs");
    for (uint64_t i = s->epoch - 1; i < epoch; i++)
        done[i] = (struct drps_epoch){0};
    s->done = done;
    s->epoch = epoch;
    s->part = (struct drps_epoch_part){.step = round - (epoch - 1) * batches};
    return 0;
}

/* ---- Replaying ---- */

/* The rounds have said all that the state lacks. */
static int take_replay(struct drps_job *job, const struct drps_round_replay *r,
                       struct drps_err *err)
{
    struct drps_state *s = &job->checkpoints.state;
    for (uint64_t e = 1; e < s->epoch; e++)
        if (s->done[e - 1].epoch != e)
            return drps_err_set(err, DRPS_E_CORRUPT, "%s: the log has no results of epoch %" PRIu64,
                                drps_checkpoint_dir(job->checkpoints.from), e);
    s->part.samples = r->last.samples;
    s->part.loss = r->last.loss;
    s->part.ns = r->last.ns;
    return s->part.samples <= job->plan->info.samples
               ? 0
               : drps_err_set(err, DRPS_E_CORRUPT, "%s: the log contradicts its plan",
                              drps_checkpoint_dir(job->checkpoints.from));
}

/* Writes the rows as a checkpoint of the run's own, which takes the place of `from`. */
static int put_copy(struct drps_job *job, const struct drps_store_config *config,
                    const void *matrix, struct drps_err *err)
{
    struct drps_job_checkpoints *c = &job->checkpoints;
    struct drps_checkpoint_writer *w;
    uint64_t bytes;
    char *root = drps_path_join(job->store_dir, DRPS_MODEL_SAVED);
    json_t *manifest = json_object();
    int rc = root && manifest ? drps_checkpoints_init(&c->copy, job->plan->io, root, 0, err)
                              : drps_err_set(err, -ENOMEM, "no memory to restore a round");
    if (rc == 0) rc = drps_checkpoint_begin(&c->copy, 1, config->rows, config->row_bytes, &w, err);
    if (rc == 0) {
        rc = drps_checkpoint_add(w, 0, (size_t)config->rows, matrix, err);
        if (rc == 0)
            rc = drps_checkpoint_commit(w, manifest, &bytes, err);
        else
            drps_checkpoint_abort(w);
    }
    json_decref(manifest);
    free(root);
    if (rc < 0) return rc;
    drps_checkpoint_close(c->from);
    c->from = NULL;
    return drps_checkpoint_open(&c->copy, 1, &c->from, err);
}

int drps_job_replay(struct drps_job *job, const struct drps_store_config *config,
                    struct drps_err *err)
{
    struct drps_job_checkpoints *c = &job->checkpoints;
    struct drps_round_replay r = {.server = &job->server,
                                  .touches = job->worker_size.touches,
                                  .rows = config->rows,
                                  .batches = job->plan->info.batches,
                                  .done = c->state.done,
                                  .epochs = c->state.epoch - 1};
    if (!c->replays) return 0;
    void *matrix = drps_array_new((size_t)config->rows, config->row_bytes);
    if (!matrix) return drps_err_set(err, -ENOMEM, "no memory to restore a round");
    int rc = drps_round_replay(&r, job->plan->io, c->from, c->round, matrix, err);
    if (rc == 0) rc = take_replay(job, &r, err);
    if (rc == 0) rc = put_copy(job, config, matrix, err);
    free(matrix);
    return rc;
}

/* ---- Logging ---- */

int drps_job_new_log(struct drps_job *job, struct drps_err *err)
{
    const struct drps_round_log_job log = {.info = &job->plan->info, .server = &job->server};
    return job->options->checkpoint_vectors ? drps_round_log_new(&log, &job->log, err) : 0;
}

/* What is logged from now on would not follow on what is durable. */
static void give_up(struct drps_job *job, const struct drps_err *why)
{
    drps_round_log_close(job->log);
    job->result->checkpoints.failed++;
    drps_log(job->options->log, DRPS_LOG_WARN,
             "vectors are not logged until the next checkpoint, training goes on: %s", why->text);
}

void drps_job_log_after(struct drps_job *job, uint64_t number, const struct drps_state *state)
{
    struct drps_job_checkpoints *c = &job->checkpoints;
    struct drps_err why = DRPS_ERR_INIT;
    c->synced_round = drps_job_round(job, state->epoch, state->part.step);
    c->synced_ns = drps_clock_ns();
    if (drps_round_log_open(job->log, &c->place, number, c->synced_round, &why) < 0)
        give_up(job, &why);
}

int drps_job_begin_log(struct drps_job *job, struct drps_err *err)
{
    const struct drps_job_checkpoints *c = &job->checkpoints;
    uint64_t without = 1;
    if (!job->log) return 0;
    if (c->logged) {
        drps_job_log_after(job, c->from_number, &c->state);
        without = !drps_round_log_is_open(job->log);
    }
    int rc = job->ranks ? drps_cluster_least(&job->cluster, &without, err) : 0;
    return rc == 0 && without ? drps_job_checkpoint(job, c->state.epoch, &c->state.part, err) : rc;
}

void drps_job_sync_log(struct drps_job *job)
{
    struct drps_err why = DRPS_ERR_INIT;
    const uint64_t start = drps_clock_ns();
    if (drps_round_log_sync(job->log, &why) < 0) give_up(job, &why);
    job->result->checkpoints.seconds += drps_seconds_since(start);
}

static int is_sync_due(const struct drps_job *job, uint64_t round)
{
    const struct drps_job_checkpoints *c = &job->checkpoints;
    const struct drps_checkpoint_every *every = &job->options->checkpoint_every;
    const uint64_t rounds = round - c->synced_round, second = UINT64_C(1000000000);
    switch (every->unit) {
    case DRPS_CHECKPOINT_BATCHES:
        return rounds >= every->n;
    case DRPS_CHECKPOINT_EPOCHS:
        return rounds / job->plan->info.batches >= every->n;
    case DRPS_CHECKPOINT_SECONDS:
        return (drps_clock_ns() - c->synced_ns) / second >= every->n;
    default:
        return (drps_clock_ns() - c->synced_ns) / second >= SYNC_SECONDS;
    }
}

/* Makes the log durable, which is told as a checkpoint is. */
static void sync_now(struct drps_job *job, uint64_t epoch, uint64_t step)
{
    struct drps_job_checkpoints *c = &job->checkpoints;
    const struct drps_train_cut cut = {.number = c->newest, .epoch = epoch, .step = step};
    drps_job_sync_log(job);
    c->synced_round = drps_job_round(job, epoch, step);
    c->synced_ns = drps_clock_ns();
    if (drps_round_log_is_open(job->log) && job->options->on_checkpoint)
        job->options->on_checkpoint(job->options->ctx, &cut);
}

int drps_job_end_round(void *ctx, uint64_t epoch, const struct drps_epoch_part *done,
                       struct drps_err *err)
{
    struct drps_job *job = ctx;
    struct drps_err why = DRPS_ERR_INIT;
    const struct drps_train_result *r = job->result;
    const uint64_t round = drps_job_round(job, epoch, done->step);
    const struct drps_round_note note = {.samples = done->samples,
                                         .loss = done->loss,
                                         .ns = done->ns,
                                         .done = done->step == 1 && r->epochs_n
                                                     ? &r->epochs[r->epochs_n - 1]
                                                     : NULL};
    (void)err; /* a log that cannot be written ends no run */
    if (drps_round_log_end(job->log, round, drps_exchange_replica(job->exchange), &note, &why) < 0)
        give_up(job, &why);
    if (is_sync_due(job, round)) sync_now(job, epoch, done->step);
    /* After an epoch's last round it waits until the epoch is evaluated. */
    return done->step < job->plan->info.batches && drps_round_log_due(job->log);
}
