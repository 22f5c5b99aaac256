/* One training run, as its parts see it. Private to engine/. */
#ifndef DRPS_JOB_H
#define DRPS_JOB_H

#include "engine/drps_engine.h"
#include "engine/feed.h"
#include "engine/memory.h"
#include "engine/server.h"
#include "engine/timeline.h"
#include "engine/worker.h"

struct drps_job {
    const struct drps_plan *plan; /* borrowed, as are the next two */
    const struct drps_train_options *options;
    struct drps_train_result *result;
    struct drps_memory memory;
    struct drps_server server;
    struct drps_worker worker;
    struct drps_feed *feed;
    struct drps_uses *uses;
    struct drps_timeline timeline;
    uint32_t *block_first; /* own: [blocks + 1]; NULL with a resident store */
    struct drps_metrics *metrics;
    struct drps_stage stage;
    const struct drps_kv_ops *model_kv;
    uint64_t progress_ns;                                       /* when progress was last told */
    uint64_t step_ns, wait_ns, plan_ns, evaluate_ns, export_ns; /* time by phase */
    uint64_t begin_ns;                                          /* of the run */
    struct drps_process_io io_before;
};

/* 1: the user asked to stop. */
static inline int drps_job_stopping(const struct drps_job *job)
{
    const atomic_int *stop = job->options->stop;
    return stop &&
           atomic_load_explicit(stop, memory_order_relaxed); /* a flag: it publishes nothing */
}

/*
 * Train and evaluate one epoch (number `epoch`, from 1) into *out. DRPS_E_INTERRUPTED with
 * job->result->steps set when the user stopped it between two steps; -ERANGE when the loss is no
 * number.
 */
DRPS_MUST_CHECK
int drps_job_epoch(struct drps_job *job, uint64_t epoch, struct drps_epoch *out,
                   struct drps_err *err);

/* Write the rows as they are now to the stage, in place of what was written before. */
DRPS_MUST_CHECK
int drps_job_export(struct drps_job *job, struct drps_err *err);

/* Close the store, complete the model and give it its name. */
DRPS_MUST_CHECK
int drps_job_publish(struct drps_job *job, struct drps_err *err);

#endif
