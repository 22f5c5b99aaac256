/* Names of the numbers, and what they mean, as docs/metrics.md has them. */
#include "engine/train/watch/numbers.h"

#define COUNTER(name, label, help)                                                                 \
    {                                                                                              \
        (name), (help), (label), DRPS_MONITOR_COUNTER                                              \
    }
#define GAUGE(name, label, help)                                                                   \
    {                                                                                              \
        (name), (help), (label), DRPS_MONITOR_GAUGE                                                \
    }
#define HISTOGRAM(name, label, help)                                                               \
    {                                                                                              \
        (name), (help), (label), DRPS_MONITOR_HISTOGRAM                                            \
    }

const struct drps_monitor_metric watch_numbers[WATCH_NUMBERS] = {
    [WATCH_RANKS] = GAUGE("drps_train_ranks", NULL, "Ranks of the job."),
    [WATCH_EPOCH] = GAUGE("drps_train_epoch", NULL, "Epoch under way, from 1."),
    [WATCH_EPOCHS] = GAUGE("drps_train_epochs", NULL, "Epochs to train, at most."),
    [WATCH_EPOCH_STEPS] =
        GAUGE("drps_train_epoch_steps", NULL, "Batches of an epoch, those of test samples too."),
    [WATCH_EPOCH_STEPS_DONE] =
        GAUGE("drps_train_epoch_steps_done", NULL, "Batches done of the epoch under way."),
    [WATCH_STEPS] = COUNTER("drps_train_steps_total", NULL,
                            "Batches that this run has done, those of test samples too."),
    [WATCH_STEPS_LEFT] =
        GAUGE("drps_train_steps_left", NULL, "Batches to do until the last epoch is done."),
    [WATCH_SAMPLES] = COUNTER("drps_train_samples_total", NULL,
                              "Training samples that this rank has trained in this run."),
    [WATCH_LOSS] = GAUGE("drps_train_loss", NULL,
                         "Mean training loss of the epoch under way, of this rank's samples so "
                         "far, each before the step that used it."),
    [WATCH_EPOCH_LOSS] = GAUGE("drps_train_epoch_loss", NULL,
                               "Mean training loss of the last whole epoch, of all ranks."),
    [WATCH_TEST_LOSS] =
        GAUGE("drps_train_test_loss", NULL, "Loss of the test samples after the last whole epoch."),
    [WATCH_LEARNING_RATE] =
        GAUGE("drps_train_learning_rate", NULL, "Learning rate of the epoch under way."),
    [WATCH_MODEL_BYTES] = GAUGE("drps_train_model_bytes", NULL,
                                "Parameters of the whole model, without the optimizer's state."),
    [WATCH_MEMORY_LIMIT] = GAUGE("drps_memory_limit_bytes", NULL, "Memory that this rank may use."),
    [WATCH_PLAN_BYTES] =
        COUNTER("drps_plan_read_bytes_total", NULL, "Bytes read of the plan's files."),
    [WATCH_WINDOWS] = COUNTER("drps_store_windows_total", NULL,
                              "Stores relay, tiered and tiered-disk: windows that were opened."),
    [WATCH_WINDOWS_AHEAD] = GAUGE("drps_store_windows_ahead", NULL,
                                  "Stores relay, tiered and tiered-disk: windows whose rows are "
                                  "there before training has come to them."),
    [WATCH_STEPS_AHEAD] =
        GAUGE("drps_store_steps_ahead", NULL,
              "Stores of blocks: batches whose rows are in memory before training has come to "
              "them."),
    [WATCH_CHECKPOINTS] =
        COUNTER("drps_checkpoints_total", NULL, "Checkpoints that this run has written."),
    [WATCH_CHECKPOINT_FAILURES] =
        COUNTER("drps_checkpoint_failures_total", NULL, "Checkpoints that could not be written."),
    [WATCH_CHECKPOINT_BYTES] =
        COUNTER("drps_checkpoint_bytes_total", NULL, "Bytes written to checkpoints."),
    [WATCH_CHECKPOINT_SECONDS] = COUNTER("drps_checkpoint_seconds_total", NULL,
                                         "Time that training stood still for checkpoints."),
};

const struct watch_group_metric watch_groups[WATCH_GROUPS] = {
    [WATCH_PHASE] = {GAUGE("drps_train_phase", "phase", "1 for what the run does now, else 0."),
                     {"prepare", "train", "evaluate", "write", "end"}},
    [WATCH_TEST_QUALITY] = {GAUGE("drps_train_test_quality", "metric",
                                  "Quality on the test samples after the last whole epoch."),
                            {"auc", "accuracy", "rmse", "recall@10", "ndcg@10"}},
    [WATCH_PHASE_SECONDS] = {COUNTER("drps_train_phase_seconds_total", "phase",
                                     "Time of this run by what it was spent on."),
                             {"plan", "wait_store", "gather", "compute", "step", "evaluate",
                              "hand_over", "export"}},
    [WATCH_WAITING] = {COUNTER("drps_train_waiting_seconds_total", "cause",
                               "Time that training waited: for the plan's files, for rows from the "
                               "store, for other ranks."),
                       {"plan", "rows", "ranks"}},
    [WATCH_STORE_BYTES] = {COUNTER("drps_store_bytes_total", "op",
                                   "Bytes of rows that the row store has read and written."),
                           {"read", "write"}},
    [WATCH_STORE_REQUESTS] = {COUNTER("drps_store_requests_total", "op",
                                      "Calls by which the row store has read and written."),
                              {"read", "write"}},
    [WATCH_DEVICE_BYTES] = {COUNTER("drps_device_bytes_total", "op",
                                    "Store file: bytes that its requests to the disk have moved."),
                            {"read", "write"}},
    [WATCH_DEVICE_REQUESTS] = {COUNTER("drps_device_requests_total", "op",
                                       "Store file: requests to the disk."),
                               {"read", "write"}},
    [WATCH_STORE_BLOCKS] = {COUNTER("drps_store_blocks_total", "what",
                                    "Stores of blocks: uses of blocks, those that were in memory, "
                                    "blocks made there, blocks that left it."),
                            {"needed", "hit", "created", "evicted"}},
};

const struct drps_monitor_metric watch_histograms[WATCH_HISTOGRAMS] = {
    [WATCH_STORE_LATENCY] =
        HISTOGRAM("drps_store_request_seconds", "op", "How long the row store's calls took."),
    [WATCH_DEVICE_LATENCY] = HISTOGRAM("drps_device_request_seconds", "op",
                                       "Store file: how long its requests to the disk took."),
};

const struct drps_monitor_metric watch_store =
    GAUGE("drps_train_store", "store", "1 for the store where rows live.");
const struct drps_monitor_metric watch_memory =
    GAUGE("drps_memory_bytes", "part", "Memory that was set aside, by what it is for.");
const struct drps_monitor_metric watch_sent_bytes =
    COUNTER("drps_net_sent_bytes_total", "peer", "Bytes of messages to another rank.");
const struct drps_monitor_metric watch_received_bytes =
    COUNTER("drps_net_received_bytes_total", "peer", "Bytes of messages from another rank.");
const struct drps_monitor_metric watch_sent_messages =
    COUNTER("drps_net_sent_messages_total", "peer", "Messages to another rank.");
const struct drps_monitor_metric watch_received_messages =
    COUNTER("drps_net_received_messages_total", "peer", "Messages from another rank.");
