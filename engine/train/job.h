/* One training run, which job.c leads from options to model through prepare.c, start.c, epoch.c,
 * results.c and export.c. Private to engine/train/. */
#ifndef DRPS_ENGINE_TRAIN_JOB_H
#define DRPS_ENGINE_TRAIN_JOB_H

#include "engine/cluster/async/drps_async.h"
#include "engine/cluster/sv/drps_exchange.h"
#include "engine/cluster/drps_cluster.h"
#include "engine/cluster/drps_rounds.h"
#include "engine/drps_engine.h"
#include "engine/publish/drps_trained.h"
#include "engine/step/drps_batch_cache.h"
#include "engine/step/drps_feed.h"
#include "engine/step/drps_server.h"
#include "engine/step/drps_timeline.h"
#include "engine/step/drps_windows.h"
#include "engine/step/drps_worker.h"
#include "engine/step/device/drps_device_worker.h"
#include "engine/train/checkpoint.h"
#include "engine/train/device/drps_on_device.h"
#include "engine/train/drps_memory.h"
#include "engine/train/epoch.h"
#include "engine/train/space.h"
#include "engine/train/vectors/drps_round_log.h"
#include "engine/train/watch/drps_watch.h"
#include "engine/warm/drps_warm.h"

/* Bytes of rows; for fewer, asking the disk takes too long. */
enum { DRPS_JOB_PROBE_LEAST = 64 << 20 };

struct drps_job {
    const struct drps_plan *plan;  /* borrowed, as are the next three; a rank's part */
    const struct drps_plan *whole; /* whose model is written here; NULL: by another rank */
    const struct drps_train_options *options; /* = &settled while a run trains */
    struct drps_train_options settled;        /* with what a checkpoint has settled */
    struct drps_train_result *result;
    struct drps_job_checkpoints checkpoints;
    struct drps_warm *warm;       /* an earlier run that the rows are to come from; NULL: none */
    struct drps_io warm_io;       /* that it is read with: ends where the run is to end */
    struct drps_checkpoint *rows; /* own: the rows that were made of it */
    double best_score; /* of epochs so far, by the metric; less is better; infinite: none */
    int can_go_on;     /* 1: interrupted, and a checkpoint of that moment is written */
    struct drps_memory memory;
    struct drps_optim asked; /* settled; the server's has the rate of the epoch, and what l1 and l2
                                are in a mean over a batch */
    struct drps_server server;
    struct drps_newton *newton;               /* own; NULL: no quasi-Newton method */
    struct drps_topic *topic;                 /* own; NULL: no topic model */
    struct drps_on_device device;             /* own; closed last */
    struct drps_device_worker *device_worker; /* own; NULL: the processor computes */
    struct drps_worker worker;
    struct drps_worker_size worker_size;
    struct drps_feed *feed;
    struct drps_batch_cache *batch_cache; /* NULL: batches are decoded when they are trained */
    struct drps_epoch_loop loop;          /* over the three above */
    int ranks;                            /* there are several: */
    struct drps_cluster cluster;
    struct drps_rounds *rounds;           /* NULL: rows circulate */
    struct drps_circulation *circulation; /* NULL: they do not */
    struct drps_push *push;               /* own; NULL: gradients are sent as they are */
    struct drps_pull *pull;               /* the same of parameters */
    struct drps_handing *handing;         /* own, as is lending; NULL: rows are not handed on */
    struct drps_lending *lending;
    void *intercept;        /* own: of rank 0, where rows circulate; or NULL */
    enum drps_exchange way; /* settled: never auto */
    struct drps_exchange_bytes exchange_bytes, all_exchange_bytes; /* of this rank, and of all */
    struct drps_exchanging *exchange;                              /* NULL: way is servers */
    struct drps_round_log *log;          /* own; NULL: vectors are not logged */
    struct drps_async *async;            /* NULL: bsp, as of the next one */
    struct drps_async_listener listener; /* that the store tells */
    struct drps_stratum *stratum;        /* NULL: one batch after another */
    struct drps_uses *uses;
    struct drps_timeline timeline;
    uint32_t *block_first;                   /* own: [blocks + 1]; NULL without a block store */
    struct drps_windows *windows;            /* NULL without a relay store */
    struct drps_windows *device_windows;     /* NULL: all rows are on the device, or none */
    struct drps_window_source window_source; /* of one of the two */
    struct drps_metrics *metrics;
    struct drps_watch *watch; /* own; NULL: nobody watches */
    struct drps_stage stage;
    struct drps_trained trained; /* in the stage, until it has a name of its own; whole */
    char *store_dir;             /* own: of the store's files, in the stage */
    const struct drps_kv_ops *model_kv;
    struct drps_forecast_disk disk; /* for the forecast of a block store */
    struct drps_disk_pace pace;     /* of a relay store's disk; zero: not measured */
    uint64_t begin_ns;              /* of the run */
    uint64_t export_ns;             /* writing models */
    struct drps_process_io io_before;
};

/* ---- The beginning ---- */

/* 1: the run goes on where all steps of its epoch are done, but for the results of the epoch. */
static inline int drps_job_is_over(const struct drps_job *job)
{
    const struct drps_plan_info *info = &job->plan->info;
    return job->checkpoints.state.part.step == info->batches + info->eval_batches;
}

/* The epochs of which steps are left; one that is begun in the middle counts. At least one, though
 * nothing may be left to do. */
static inline uint64_t drps_job_epochs_left(const struct drps_job *job)
{
    const uint64_t epoch = job->checkpoints.state.epoch + (uint64_t)drps_job_is_over(job);
    const uint64_t epochs = job->options->epochs;
    return epoch < epochs ? epochs - epoch + 1 : 1;
}

/* The step at which the first of them begins. */
static inline uint64_t drps_job_first_step(const struct drps_job *job)
{
    return drps_job_is_over(job) ? 0 : job->checkpoints.state.part.step;
}

/* What a checkpoint has beside rows: sums of a topic model; or what of gradients is held back
 * between two epochs of a run of such filters. 0 slots: nothing. */
static inline struct drps_checkpoint_held drps_job_held(const struct drps_job *job,
                                                        const struct drps_push_options *push)
{
    const struct drps_plan_info *info = &job->plan->info;
    const struct drps_algorithm *a = drps_algorithm_find(info->algo);
    if (a && drps_algorithm_is_topic(a))
        return (struct drps_checkpoint_held){drps_topic_state_rows(info->factors),
                                             drps_topic_state_row_bytes(info->factors)};
    if (job->options->sv_rule == DRPS_SV_PROJECT)
        return (struct drps_checkpoint_held){drps_exchange_rows(info), info->dim * sizeof(float)};
    if (!push->on || !drps_push_needs_own_slots(push)) return (struct drps_checkpoint_held){0};
    return (struct drps_checkpoint_held){info->ranks.residual_slots, info->dim * sizeof(float)};
}

/* Returns how many batches a round has at most that is logged. */
uint32_t drps_job_logged_batches(const struct drps_job *job);

/* Settle model and optimizer and open the files of the plan: what the split of memory depends on.
 * *config and *parts are filled in and borrow the job's. */
DRPS_MUST_CHECK
int drps_job_prepare_parts(struct drps_job *job, struct drps_store_config *config,
                           struct drps_memory_parts *parts, struct drps_err *err);

/* Check the options, settle model and optimizer, open the files of the plan and split the memory;
 * *config is what the store gets. Nothing is written (prepare.c). */
DRPS_MUST_CHECK
int drps_job_prepare(struct drps_job *job, struct drps_store_config *config, struct drps_err *err);

/* Make the stage, and remove what a killed run has left of one. Ranks that write no model have one
 * of their own beside it, which is never committed. */
DRPS_MUST_CHECK
int drps_job_begin_stage(struct drps_job *job, struct drps_err *err);

/* Remove what a rank that was lost has left of its stage, if that lies here; not if it is in use.
 */
void drps_job_clear_stage(const struct drps_job *job, uint32_t rank);

/* Make the stage and start all parts; what is started when this fails is the caller's to stop
 * (start.c). */
DRPS_MUST_CHECK
int drps_job_start(struct drps_job *job, struct drps_store_config *config, struct drps_err *err);

/* Cut windows with buffers that suit the disk; where these are too large, with buffers that suit
 * any disk; and at last with as little for buffers as is sure to do, which drps_memory_split() has
 * asked for (fit_windows.c). */
DRPS_MUST_CHECK
int drps_job_fit_windows(struct drps_job *job, struct drps_store_config *config,
                         struct drps_err *err);

/* Open windows for this share of the memory. Returns 1 if they fit, 0 if they do not. */
DRPS_MUST_CHECK
int drps_job_try_windows(struct drps_job *job, const struct drps_store_config *config,
                         const struct drps_relay_share *share, struct drps_err *err);

/* Open the windows of the store that the checkpoint holds, and set *config as it was (saved.c). */
DRPS_MUST_CHECK
int drps_job_open_saved_windows(struct drps_job *job, struct drps_store_config *config,
                                struct drps_err *err);

/* ---- A warm start: engine/train/warm.c ---- */

/* Open options->from, unless the run goes on from a checkpoint; all ranks have the same one. */
DRPS_MUST_CHECK
int drps_job_open_from(struct drps_job *job, struct drps_err *err);

/* Make the rows that training begins with, in the stage. Before the store is open. */
DRPS_MUST_CHECK
int drps_job_make_rows(struct drps_job *job, struct drps_err *err);

/* Returns the bytes of disk that they take meanwhile. */
uint64_t drps_job_rows_space(const struct drps_job *job);

void drps_job_close_rows(struct drps_job *job);

/* Refuse what drps_job_write_delta() cannot do; and, once the model is whole, write what has
 * changed since the one that the run began with, where that is asked for. */
DRPS_MUST_CHECK
int drps_job_check_delta(const struct drps_job *job, struct drps_err *err);
DRPS_MUST_CHECK
int drps_job_write_delta(struct drps_job *job, struct drps_err *err);

/* ---- The end: engine/train/export.c ---- */

/* Set room aside for all that training leaves, where this process writes the model. */
DRPS_MUST_CHECK
int drps_job_begin_export(struct drps_job *job, struct drps_err *err);

/* -ENOSPC: the disk has too little for the run; `reserved`: for what comes after all room that can
 * be was set aside. */
DRPS_MUST_CHECK
int drps_job_check_space(const struct drps_job *job, const struct drps_store_config *config,
                         int reserved, struct drps_err *err);

/* Room that was to be set aside was not there: err gets what all of it comes to at
 * most, or at least where nobody knows. */
void drps_job_say_space(const struct drps_job *job, const struct drps_store_config *config,
                        struct drps_err *err);

/*
 * Write the parameters as they are now, after `epoch`; of several ranks to the disk of rank 0. What
 * was written before stays until these are whole. -ERANGE, on all ranks: a value is no finite
 * number; err names it.
 */
DRPS_MUST_CHECK
int drps_job_export(struct drps_job *job, uint64_t epoch, struct drps_err *err);

/*
 * The run has come to `rc`: what was exported last becomes the model, or, where that fails or the
 * run had failed, is kept in a folder that err and result->kept name; not where a rank was lost, as
 * such a run goes on from its checkpoints. The store is closed.
 */
DRPS_MUST_CHECK
int drps_job_conclude(struct drps_job *job, int rc, struct drps_err *err);

/* ---- Results ---- */

/* What the store, the feed and the worker counted; before they are closed. */
void drps_job_collect(struct drps_job *job);

/* What is watched becomes what it is now: a drps_epoch_loop.watch, of the job. */
void drps_job_watch(void *job, const struct drps_train_progress *progress);

/* How this rank fared goes to all ranks, and theirs come here. */
DRPS_MUST_CHECK
int drps_job_collect_ranks(struct drps_job *job, struct drps_err *err);

/* Fill in the forecast of an epoch, to stand beside what was measured; none without a whole epoch.
 */
void drps_job_forecast(struct drps_job *job);

/* What the whole process took so far: for the manifest, and again at the very end. */
void drps_job_measure(struct drps_job *job);

#endif
