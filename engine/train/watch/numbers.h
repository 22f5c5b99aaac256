/* The numbers of a training run: numbers.c has their names. Private to engine/train/watch/. */
#ifndef DRPS_ENGINE_TRAIN_WATCH_NUMBERS_H
#define DRPS_ENGINE_TRAIN_WATCH_NUMBERS_H

#include "base/monitor/drps_monitor.h"
#include "engine/train/watch/drps_watch.h"

/* Metrics with one number. */
enum watch_number {
    WATCH_RANKS,
    WATCH_EPOCH,
    WATCH_EPOCHS,
    WATCH_EPOCH_STEPS,
    WATCH_EPOCH_STEPS_DONE,
    WATCH_STEPS,
    WATCH_STEPS_LEFT,
    WATCH_SAMPLES,
    WATCH_LOSS,
    WATCH_EPOCH_LOSS,
    WATCH_TEST_LOSS,
    WATCH_LEARNING_RATE,
    WATCH_MODEL_BYTES,
    WATCH_MEMORY_LIMIT,
    WATCH_PLAN_BYTES,
    WATCH_WINDOWS,
    WATCH_WINDOWS_AHEAD,
    WATCH_STEPS_AHEAD,
    WATCH_CHECKPOINTS,
    WATCH_CHECKPOINT_FAILURES,
    WATCH_CHECKPOINT_BYTES,
    WATCH_CHECKPOINT_SECONDS,
    WATCH_NUMBERS
};

/* Metrics with a number for each of a few values of a label. */
enum watch_group {
    WATCH_PHASE,         /* by drps_watch_phase */
    WATCH_TEST_QUALITY,  /* auc, accuracy, rmse, recall, ndcg */
    WATCH_PHASE_SECONDS, /* as struct drps_phases has them */
    WATCH_WAITING,       /* plan, rows, ranks */
    WATCH_STORE_BYTES,   /* this and the next four: read, write */
    WATCH_STORE_REQUESTS,
    WATCH_DEVICE_BYTES,
    WATCH_DEVICE_REQUESTS,
    WATCH_STORE_BLOCKS, /* needed, hit, created, evicted */
    WATCH_GROUPS
};
enum { WATCH_VALUES = 9 }; /* of a label, with the NULL that ends them */

/* Histograms of latencies, each of reading and of writing. */
enum watch_histogram { WATCH_STORE_LATENCY, WATCH_DEVICE_LATENCY, WATCH_HISTOGRAMS };

extern const struct drps_monitor_metric watch_numbers[WATCH_NUMBERS];
extern const struct watch_group_metric {
    struct drps_monitor_metric metric;
    const char *values[WATCH_VALUES];
} watch_groups[WATCH_GROUPS];
extern const struct drps_monitor_metric watch_histograms[WATCH_HISTOGRAMS];

/* Numbers of which there are as many as parts, or peers. */
extern const struct drps_monitor_metric watch_store, watch_memory, watch_sent_bytes,
    watch_received_bytes, watch_sent_messages, watch_received_messages;

#endif
