/*
 * Training: a plan is executed step by step and leaves a model.
 *
 * A step is one batch. In a training step a worker pulls the batch's rows into a dense array,
 * computes the gradient there, and pushes it; the server, which holds the rows, steps them. An
 * evaluation step pulls and predicts. An epoch is all training steps, then all evaluation steps, in
 * the plan's order, so that whoever reads ahead (plan files, row stores) knows what comes.
 */
#ifndef DRPS_ENGINE_H
#define DRPS_ENGINE_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "base/drps_budget.h"
#include "base/drps_err.h"
#include "base/drps_log.h"
#include "base/drps_remarks.h"
#include "base/monitor/drps_monitor_out.h"
#include "engine/model/drps_callbacks.h"
#include "engine/model/drps_decay.h"
#include "engine/model/drps_metrics.h"
#include "engine/model/drps_optim.h"
#include "engine/newton/drps_newton.h"
#include "index/plan/drps_plan.h"
#include "index/plan/drps_window.h"
#include "index/price/drps_limit.h"
#include "sched/drps_sched.h"
#include "sched/drps_stale.h"
#include "storage/drps_iostat.h"
#include "storage/drps_store.h"

enum {
    DRPS_TRAIN_THREADS_MAX = 64,
    DRPS_TRAIN_NAME_BYTES = 16,
    DRPS_TRAIN_DEVICE_BYTES = 96,
    DRPS_TRAIN_CHANGED_BYTES = 2048
};

/* One epoch, as it ended. Disk numbers are those of the row store; the plan's files are counted on
 * their own. */
struct drps_epoch {
    uint64_t epoch;           /* from 1 */
    double seconds;           /* training and evaluation; writing a candidate model is not in it */
    double samples_per_s;     /* training samples a second of the training steps; of several ranks
                                 all samples, until the last rank is done */
    double train_loss;        /* mean over samples, each before the step that used it */
    struct drps_quality test; /* samples 0 and NaN without held-out samples */
    uint64_t reads, writes, read_bytes, written_bytes, seeks;
    uint64_t requests, moved_bytes; /* of the device, both ways; 0: the store does not say */
    uint64_t plan_read_bytes;
    double hit_share;         /* blocks that were in memory already; NaN for a resident store */
    double stall_share;       /* of `seconds`: training waited for rows */
    double plan_wait_seconds; /* of `seconds`: training waited for the plan's files; 0 where a
                                 checkpoint tells of the epoch */
    int is_newton;            /* 1: a pass of a quasi-Newton method: */
    struct drps_newton_pass newton;
};

/* Seconds by phase. Reading ahead, and a store's own threads, run beside these. */
struct drps_phases {
    double plan;                  /* waiting for the plan's files and decoding them */
    double wait_store;            /* until the rows of a step are in memory */
    double gather, compute, step; /* training steps: pull, gradients, push */
    double evaluate;
    double hand_over; /* where rows circulate: copying ranges, and waiting for them */
    double export;    /* writing models */
};

struct drps_train_progress {
    uint64_t epoch, epochs; /* epoch from 1 */
    uint64_t step, steps;   /* of this epoch, evaluation included */
    int evaluates;          /* the training steps are done */
    double seconds;         /* since this epoch began */
    double samples_per_s;   /* so far in this epoch */
    double train_loss;      /* mean so far in this epoch; NAN: this rank has no samples */
    uint64_t first_step;    /* of this epoch, that this run did: not 0 where it goes on in one */
    uint64_t samples;       /* that this run has trained in this epoch */
};

/* One rank of several that run a plan for as many. */
struct drps_train_ranks {
    struct drps_net *net;          /* borrowed; opened with drps_train_net_options() */
    const struct drps_plan *whole; /* rank 0: the plan that the parts are of. Others: NULL */
    uint32_t wait_ms;              /* for a message that is due; 0: 600,000 */
    int here;                      /* 1: all ranks are on this machine */
};

/* A training batch of one of several ranks, as its worker comes to it. */
enum drps_batch_moment {
    DRPS_BATCH_BEGINS, /* its parameters are not asked for yet (bsp: not received) */
    DRPS_BATCH_PULLED, /* they are there */
    DRPS_BATCH_DONE,   /* its gradients are sent, and the scheduler knows */
};
struct drps_train_batch {
    uint32_t rank;  /* of the worker */
    uint32_t share; /* the worker whose batch it is by the plan: another one if it was claimed */
    uint64_t step;  /* of the epoch */
    enum drps_batch_moment moment;
};

/* How often a run writes a checkpoint. */
struct drps_checkpoint_every {
    enum {
        DRPS_CHECKPOINT_USUAL, /* 5 minutes, longer where they would take over 1 % of the time */
        DRPS_CHECKPOINT_NEVER,
        DRPS_CHECKPOINT_SECONDS,
        DRPS_CHECKPOINT_BATCHES, /* training batches of a worker, over all epochs */
        DRPS_CHECKPOINT_EPOCHS,
    } unit;
    uint64_t n; /* of these; at least 1 */
};

/* What is sent of the gradients that go to other ranks; the rest is kept and added to the
 * row's next one (engine/cluster/filters/drps_push.h). Zero: all of them as they are. */
struct drps_push_options {
    int on;        /* 1: what follows counts; values that are zero are not sent then */
    uint32_t bits; /* of a value: 32, 16 or 8; 0: 32 */
    /* A value of less than phi / (1 + decay ln t), by size, in training batch t of a worker, from
     * 1, is held back with this chance. */
    double phi, decay, chance;
    double top; /* share of a message's values, the largest, that is sent at most; 0: all */
    /* All that is kept is sent in each flush-th epoch of the run, and in its last; 0: 1;
     * UINT32_MAX, more than a run has: in the last alone. Needs a plan in which rows have slots of
     * their own, as fewer than 32 bits do of a value of rows that are sent whole, 16 or 8; 0: 32.
     * What these round away is kept, in the last epoch too, and never sent then. */
    uint32_t flush, whole_bits;
};

/* What pushes to other ranks came to. */
struct drps_push_counts {
    uint64_t plain_bytes, sent_bytes; /* as they were, and as they were sent */
    uint64_t rows, whole_rows;        /* of these, sent whole: they may not wait any longer */
    uint64_t whole_bytes, kept_bytes; /* of sent_bytes: values of whole rows, and of others */
    uint64_t values;                  /* of the other rows */
    uint64_t zero, below, beyond;     /* not sent: zeros, below the threshold, not of the largest */
    uint64_t left_rows;               /* when training ended something was kept of so many rows, */
    double left_sum;                  /* the sizes of it in all */
};

/* What servers send of the parameters that workers of other ranks pull in training; under bsp as
 * engine/cluster/published/drps_published.h says. Zero: all of them as they are. */
struct drps_pull_options {
    int on;        /* 1: what follows counts; rows of which a worker has a copy are not sent then */
    uint32_t bits; /* of a value: 32, 16 or (bsp) 8; 0: 32 */
    /* bsp; all 0: no filter. After training round t, from 1, a row is as changed if one of its
     * values differs from what was sent of it last by psi / (1 + decay ln t) times that value, or
     * times eps if that is more. */
    double psi, decay, eps;
};
#define DRPS_PULL_EPS 1 /* what eps is, unless a user knows better */

/* What pulls of other ranks came to in training, of rows that were not made by their workers. */
struct drps_pull_counts {
    uint64_t plain_bytes, sent_bytes; /* as they were, and as they were sent, marks included */
    uint64_t rows;
    uint64_t unchanged, below; /* of these, not sent: as the worker has them, changed too little */
};

/* A checkpoint, as a run that writes it or goes on from it sees it. */
struct drps_train_cut {
    uint64_t number;
    uint64_t epoch, step; /* the epoch under way, from 1, and how many of its batches are done */
    int resumed;          /* 1: the run goes on from it; 0: it has just written it */
};

/* A pilot: a trial of options. It trains and evaluates one epoch, or less, and
 * leaves neither a model nor checkpoints, nor anything else; where `resume` finds something to go
 * on from, or nothing to do, it trains nothing, and the result says that (engine/cluster/target/).
 */
struct drps_train_pilot {
    int on;
    int of_filters;  /* 1: the plan must be one in which traffic can be filtered */
    uint64_t rounds; /* training batches of each worker, at most; if that is less than an epoch,
                        nothing is evaluated. 0: an epoch */
};

/* What tells which of two epochs is better, on test samples: the smaller loss or root mean square
 * error, the larger AUC or accuracy. */
enum drps_metric {
    DRPS_METRIC_USUAL, /* not asked for: loss */
    DRPS_METRIC_LOSS,
    DRPS_METRIC_AUC,
    DRPS_METRIC_RMSE,
    DRPS_METRIC_ACCURACY,
    DRPS_METRIC_RECALL, /* this and the next: implicit feedback, of the first ten */
    DRPS_METRIC_NDCG,
    DRPS_METRICS
};
const char *drps_metric_name(enum drps_metric metric);         /* that of usual is loss's */
int drps_metric_find(const char *name, enum drps_metric *out); /* 1: there is one of this name */

/* Returns what the metric says of test samples: less is better. NaN: it says nothing. */
double drps_metric_score(enum drps_metric metric, const struct drps_quality *q);

struct drps_timing;

/* Zero means default. Everything is borrowed until drps_train_run() returns. */
/*
 * How the gradient of a round gets to where rows are stepped (docs/matrices.md). With all but
 * servers each rank has all rows, with the optimizer's state, in memory, and steps them itself.
 */
enum drps_exchange {
    DRPS_EXCHANGE_SERVERS, /* to the rows' servers, from which parameters come back */
    DRPS_EXCHANGE_VECTORS, /* each rank sends all others its sufficient vectors, */
    DRPS_EXCHANGE_ROWS,    /* or the rows of its gradient that are not zero; */
    DRPS_EXCHANGE_DENSE,   /* or all of it is summed by an all-reduce */
    DRPS_EXCHANGE_AUTO     /* the way that sends the fewest bytes, by the plan */
};
enum { DRPS_EXCHANGES = DRPS_EXCHANGE_AUTO }; /* ways to choose from */

/* How the own parameters of a net, which are the rows that every batch has, and their gradients get
 * from rank to rank in rounds (docs/nets.md). The model is the same. */
enum drps_common_exchange {
    DRPS_COMMON_AUTO,    /* sums, or vectors, where ranks can and that takes less time */
    DRPS_COMMON_SERVERS, /* to and from the server that has the rows */
    DRPS_COMMON_SUMS,    /* every rank has a copy, and they add up gradients by an all-reduce */
    DRPS_COMMON_VECTORS  /* the same, but gradients of layers, where that is fewer bytes, are
                            sent as what they are made of */
};

/* Which of a batch's sufficient vectors are sent. */
enum drps_sv_rule {
    DRPS_SV_JMCSS,  /* those that the others say least of */
    DRPS_SV_RANDOM, /* any */
    DRPS_SV_PROJECT /* as jmcss, projected: what is left wrong is added to the next batch */
};

/* To which of the other ranks a rank sends its vectors in a round. */
enum drps_multicast_rule { DRPS_MULTICAST_RANDOM, DRPS_MULTICAST_ROBIN, DRPS_MULTICAST_FIXED };

/*
 * Replicas that need not be the same, of exchange vectors; zeros, under bsp: each round's vectors
 * go to all, and replicas are the same. Else replicas are averaged at the end of each epoch, so
 * that there is one model.
 */
struct drps_train_multicast {
    uint32_t to; /* how many ranks a rank sends to in a round; 0: all */
    enum drps_multicast_rule rule;
    double loss;      /* for experiments: share of pairs of ranks whose link is broken in a round */
    uint64_t average; /* rounds after which replicas are averaged, too; 0: none */
    uint64_t rotate;  /* rounds after which each replica moves to the next rank; 0: never */
    uint64_t late;    /* rounds that vectors may come late (ssp), at most DRPS_LATE_MOST; 0: bsp */
};
enum { DRPS_LATE_MOST = 4 };

/* Options that zero, or their default, may mean. */
enum {
    DRPS_ASKED_L1 = 1,
    DRPS_ASKED_L2 = 2, /* topics refuse one of 0 */
    DRPS_ASKED_SEED = 4,
    DRPS_ASKED_SYNC = 8,
    DRPS_ASKED_LR_STALE = 16
};

/* What computes: the processor, a device of CUDA, or that where one is there that can
 * (docs/device.md).
 */
enum drps_train_device { DRPS_TRAIN_CPU, DRPS_TRAIN_CUDA, DRPS_TRAIN_AUTO };

struct drps_train_options {
    const char *command;    /* how the run was asked for, as model.json keeps it; below
                               DRPS_COMMAND_BYTES, without control characters. NULL: not kept */
    const char *model_path; /* the model's folder, made by this run (of several ranks by rank 0; the
                               others keep their rows beside it meanwhile). Required */
    const struct drps_train_ranks *ranks; /* NULL: a plan for one worker */
    int replace; /* an existing model of that name is replaced at the end */

    /* Checkpoints, and going on from one: engine/checkpoint/drps_checkpoint.h. Of asynchronous
     * rounds they are written between epochs alone. */
    struct drps_checkpoint_every checkpoint_every;
    const char *checkpoint_dir;     /* where all ranks' checkpoints lie; default: beside the model,
                                       "<model_path>.checkpoint" */
    int checkpoint_rows;            /* 1: all rows are written at each checkpoint; 0: a store saves
                                       itself, or files whose rows have not changed are those of the
                                       checkpoint before */
    uint64_t checkpoint_part_bytes; /* of rows in a file, about; default 1 MiB, or more where there
                                       would be too many files */
    int checkpoint_vectors;        /* 1: exchange of vectors, or one process with a model of several
                                      classes and all rows in memory: what is applied in each round is
                                      logged beside a checkpoint (engine/checkpoint/vectors/), and is
                                      durable as often as checkpoint_every says, by default each 10
                                      seconds; checkpoints are written when the log is as large */
    uint64_t checkpoint_log_bytes; /* and has at least so many bytes, of each rank, about; default
                                      16 MiB, which are soon restored */
    int keep_checkpoints; /* 1: they stay when the model is written, with one after the last
                             epoch, so that more epochs can follow */
    int resume;    /* 1: go on from the newest checkpoint that all ranks have; where there is none,
                      begin anew. What of the options has its default value is then that of the
                      interrupted run; replaces a model that it left */
    int resume_at; /* 1: go on after round resume_round of the run, counted over its epochs, which
                      checkpoints of vectors still cover */
    uint64_t resume_round;
    unsigned asked; /* DRPS_ASKED_...: options that were asked for, also where the value is that
                       of the default, which else is as the interrupted run has it */
    /* Where training begins anew, it begins with this model or this folder of checkpoints, of
     * whichever plan. Checkpoints give parameters and the optimizer's state; a model gives its
     * parameters, and the state where its checkpoints were kept. Rows that neither has are fresh.
     * NULL: all rows are fresh. */
    const char *from;
    /* A file that gets the rows in which the model differs from that of `from`
     * (engine/delta/drps_delta.h). NULL: none is written. */
    const char *delta;
    int no_state;          /* 1: parameters of `from` alone, the optimizer begins anew */
    uint64_t epochs;       /* default 1; of a quasi-Newton method, which ends by itself, 100 */
    const char *optimizer; /* sgd, adagrad, ftrl, adam, or a quasi-Newton method: lbfgs, bfgs, dfp,
                              sr1, broyden; default: the algorithm's (drps_algorithm.h) */
    uint32_t pairs;        /* lbfgs: steps that it remembers; default DRPS_OPTIM_PAIRS */
    float tolerance;       /* quasi-Newton: end when the gradient's norm is this share of the first
                              one; default 1e-5 */
    float lr;     /* default: adagrad's of the algorithm, ftrl 0.1, adam 0.001; sgd, which steps a
                     sum over the batch: 1 / (entries of a sample + 1) / samples of a
                     round, without the last where it steps a mean */
    float l1, l2; /* default 0; of topics l2 1 */
    float eps;    /* adagrad: added to the sum of squares; default: the algorithm's,
                     or else the optimizer's own; adam: added to the root; default 1e-8 */
    float beta1, beta2; /* adam: above 0, at most DRPS_OPTIM_BETAS_MOST; default 0.9, 0.999 */
    float init_scale;   /* of factors; default 0.1 / sqrt(factors), of ffm 0.5 / sqrt(factors) */
    uint64_t seed;      /* of initial factors */
    int local_steps;    /* 1: the batch's samples step one after the other on a copy of its rows */
    uint64_t patience;  /* stop after this many epochs that were no better on held-out samples and
                           keep the best; 0: off */
    enum drps_metric metric;  /* of patience: which epoch is better */
    enum drps_decay lr_decay; /* not of ftrl, which has its own */
    int batch_mean; /* 1: what steps is the mean over a batch's samples, of several workers that of
                       their means; l1 and l2 count 1 / (samples of a full batch) for each sample */
    const char *store; /* auto, resident, relay, or an engine (block store on it): file, rocksdb,
                          leveldb; default auto: resident if all rows fit, else relay. On a device:
                          where rows are that it has no room for; no engine then */
    const char *evict; /* which block a full pool gives up: farthest (default), clock, lru */
    const char *model_store; /* engine that the model is written with; default: the preferred one of
                                this build */
    uint64_t memory_bytes;   /* of the whole process; default: half of what this process may use */
    uint64_t seek_bytes;     /* that the disk moves in the time of a request, as
                                drps_disk_seek_bytes() finds them; default: the disk is asked,
                                unless the model is small */
    int no_keep; /* 1: a resident store reads the plan's batches in each epoch, also where
                    they would fit the memory */
    enum drps_train_device device;
    const char *device_library;   /* a file with kernels; default: that which is installed */
    uint64_t device_memory_bytes; /* of the device; default: nearly all that is free there */
    unsigned threads;             /* that compute, at most DRPS_TRAIN_THREADS_MAX; default 1 */
    int one_by_one;               /* 1: batches that the plan has side by side are trained one after
                                     another, too, each by all threads */
    int prefetch_steps;           /* of the block store; 0: its default */
    enum drps_sched_mode sync;    /* of several ranks: when a worker starts its next batch; default
                                     bsp: all together */
    uint64_t staleness;           /* ssp, wsp: labels that a worker may be ahead of the slowest;
                                     default: drps_sched_defaults() */
    struct drps_sched_tuning wsp; /* wsp: numbers in place of the defaults */
    enum drps_stale lr_stale;     /* asp, ssp, wsp, with servers: what the rate is divided by for
                                     gradients that are stale; sgd and adagrad, whole gradients alone */
    int no_overlap; /* 1: parameters of a batch travel only when it is the batch's turn,
                       not while the one before is computed, and logs of vectors are
                       written between batches; bsp: results are the same */
    int no_fresh;   /* 1: parameters that nobody has trained are sent, too */
    int no_claim;   /* 1: not bsp: a worker executes its own batches alone */
    /* Of several ranks. Training stops, and writes checkpoints, between epochs alone then. */
    struct drps_push_options push;
    struct drps_pull_options pull;
    int pull_cached; /* 1: ssp, sgd or adagrad: a worker uses its copies of other ranks' rows while
                        they have what the bound asks for; the plan has residual slots */
    enum drps_exchange exchange; /* models with several scores a sample; bsp, or asp and wsp of
                                    vectors; default: servers */
    enum drps_common_exchange common;
    uint32_t sv_count; /* vectors: how many of a batch's are sent; 0: all */
    enum drps_sv_rule sv_rule;
    struct drps_train_multicast multicast;
    const struct drps_callbacks *callbacks; /* in place of the plan's loss:
                                               engine/model/drps_callbacks.h. NULL: none */
    int no_hand_on; /* 1: rows go to their servers after each batch, also where the plan says that
                       they stay with workers */
    struct drps_train_pilot pilot;
    const struct drps_timing
        *emulate; /* for measurements: the computation of rank r's i-th training batch takes at
                     least as long as that of worker r's i-th iteration there. May be NULL */
    const atomic_int
        *stop; /* non-zero: end after the current step and write the model so far. May be NULL */
    const struct drps_log *log;
    struct drps_monitor_options metrics; /* where numbers to watch are shown while the run lasts
                                            (docs/metrics.md) */

    void (*on_epoch)(void *ctx,
                     const struct drps_epoch *epoch); /* on the calling thread. May be NULL */
    void (*on_progress)(
        void *ctx,
        const struct drps_train_progress *progress); /* some times a second. May be NULL */
    void (*on_write)(void *ctx, const char *what, uint64_t bytes,
                     uint64_t all_bytes); /* how far the writing of parameters is, and then of the
                                             model; `what` is a text for people. Often. May be NULL
                                           */
    void (*on_batch)(void *ctx, const struct drps_train_batch *batch);  /* several ranks; on the
                                   threads that call drps_train_run(), of all ranks of this process.
                                   May be NULL */
    void (*on_checkpoint)(void *ctx, const struct drps_train_cut *cut); /* on the calling thread, of
                                each rank: training goes on from this one, or it is whole on all
                                ranks. May be NULL */
    void *ctx;
};

/* 1: exchange of vectors without rounds: a rank computes a batch when the scheduler says so, and
 * applies what others send as it comes. */
static inline int drps_replicas_go_apart(const struct drps_train_options *o)
{
    return o->exchange == DRPS_EXCHANGE_VECTORS && o->sync != DRPS_SCHED_BSP;
}

/* Returns whether replicas of that many ranks may differ within an epoch. */
static inline int drps_replicas_differ(const struct drps_train_options *o, uint32_t ranks)
{
    const struct drps_train_multicast *m = &o->multicast;
    return (m->to && m->to + 1 < ranks) || m->loss > 0 || m->late || drps_replicas_go_apart(o);
}

/* Training batches whose computation was emulated, and how well. */
struct drps_train_emulated {
    uint64_t iterations;
    uint64_t overruns; /* of these: the real computation took longer than it should */
    uint64_t emulated_ns, computed_ns; /* sums: what they should take, what was really computed */
    uint64_t late_ns; /* sum: how much later than that they ended, overruns included */
};

/*
 * What ranks send to each other in the rounds of training and evaluation, by kind. A kind that does
 * not travel has rows, and no bytes. New kinds are added before the last one, and get a name in
 * engine/cluster/traffic/ranks_json.c.
 */
enum drps_traffic_kind {
    DRPS_TRAFFIC_PULLED,    /* parameters, when the worker waits for them */
    DRPS_TRAFFIC_AHEAD,     /* parameters, before it does */
    DRPS_TRAFFIC_PUSHED,    /* gradients */
    DRPS_TRAFFIC_HANDED,    /* rows that circulate, or that workers have for some rounds */
    DRPS_TRAFFIC_MARKS,     /* which rows a message has; no rows of its own */
    DRPS_TRAFFIC_FRESH,     /* parameters that nobody has trained: made by the worker, not sent */
    DRPS_TRAFFIC_UNCHANGED, /* parameters of which the worker has a copy: not sent */
    DRPS_TRAFFIC_BELOW,     /* the same that have changed since, by too little */
    DRPS_TRAFFIC_SUMS,      /* of all documents, or of gradients of common rows; no rows */
    DRPS_TRAFFIC_EXCHANGED, /* what gradients are made of, between ranks that have all rows */
    DRPS_TRAFFIC_CACHED,  /* parameters of which an asynchronous worker has a copy: not asked for */
    DRPS_TRAFFIC_VECTORS, /* what gradients of a net's layers are made of; no rows */
    DRPS_TRAFFIC_BATCHES, /* batches for the worker of another rank; no rows */
    DRPS_TRAFFIC_KINDS
};
struct drps_traffic_sum {
    uint64_t rows, bytes;
};

/* How one rank fared. */
struct drps_train_rank {
    uint64_t sent_bytes, received_bytes; /* parameters and gradients, to and from other ranks */
    struct drps_traffic_sum sent[DRPS_TRAFFIC_KINDS]; /* the same, marks and batches too */
    /* What the plan says of sent_bytes and received_bytes, for whole epochs, less rows that were
     * fresh, with vectors of layers as they were sent: it does not know how many zeros they
     * have. */
    uint64_t forecast_sent_bytes, forecast_received_bytes;
    uint64_t
        other_sent_bytes; /* the rest: start, metrics, the model's rows, marks of rows sent ahead */
    uint64_t peak_rss_bytes;
    uint64_t read_bytes, written_bytes; /* by its store, on its disk */
    struct drps_push_counts push;       /* 0 where pushes are not filtered */
    struct drps_pull_counts pull;       /* of its server; 0 where pulls are not filtered */
    double waiting_seconds;             /* for which its worker waited for parameters, and for
                                           the scheduler */
    double waiting_share;               /* of the time of all steps */
    double network_seconds; /* of them, its worker waited for messages, and for other ranks that had
                               not sent them yet, but not for the scheduler */
    double store_seconds; /* a step of its server, or of asynchronous rounds any, waited for rows */
    double compute_seconds; /* training: gradients, those of others' vectors too, which without
                               rounds are made beside its own; and of rounds alone, else 0: */
    double reduce_seconds;  /* from its worker's gradient until its server has stepped its rows, and
                               with them the gradients of all */
    double broadcast_seconds; /* from then on until its worker has the next parameters */

    /* The rest is of asynchronous rounds, 0 for bsp. */
    uint64_t iterations;  /* training batches that its worker executed */
    uint64_t claimed;     /* of these, of other workers' shares */
    uint64_t ahead_asked; /* batches whose parameters its worker asked for before it was their turn,
                           */
    uint64_t ahead_used;  /* those of them that it computed with these parameters, */
    uint64_t ahead_there; /* those for whose parameters it did not wait, */
    uint64_t ahead_bytes; /* and bytes from other ranks that were there when they were handed out */
    double held_seconds;  /* its worker waited for the scheduler */
    double lag_mean;      /* labels ahead of the slowest worker, over its starts */
    uint64_t lag_max;
    double stale_mean; /* batches of others that were done during one of its own */
    uint64_t stale_max;
    uint64_t stale[DRPS_SCHED_STALE_BINS]; /* its batches by that: 0, 1, 2 to 3, 4 to 7, ... */
    struct drps_train_emulated emulated;
};

/*
 * Bytes from rank to rank: of rank i to rank k at [i * ranks + k]. Of jobs with more ranks than
 * DRPS_TRAIN_LINKS_MOST there are none.
 */
enum { DRPS_TRAIN_LINKS_MOST = 128 };
struct drps_train_links {
    uint64_t *sent;     /* own: of all kinds */
    uint64_t *forecast; /* own: what the plan says of the epochs that were completed: of
                           parameters, gradients and rows that circulate, less rows that were
                           fresh */
};

/* How gradients were exchanged, and why. */
struct drps_train_exchange {
    enum drps_exchange way;
    int chosen;                              /* 1: by itself, */
    int fits;                                /* and all ranks have room for all rows */
    enum drps_exchange fewest;               /* the way of fewest bytes */
    uint64_t forecast_bytes[DRPS_EXCHANGES]; /* of all ranks, in the training of an epoch, by way;
                                                0: that cannot be taken */
};

/* Full and lstm layers of a net whose gradients go as vectors, ascending: 0 to all of them. */
struct drps_outer_layer {
    uint32_t layer; /* its number in the net; of the text it is in this line */
    uint32_t line;
    uint32_t w, N;  /* floats of its vectors: of full those of its input, and of the layer; of lstm
                       those of its input and of the layer together, and of its gates */
    uint64_t first; /* its matrices, w N floats, among those of the net */
};
struct drps_outer_choice {
    uint32_t n;
    struct drps_outer_layer layers[DRPS_LAYERS_MOST];
};

/* How gradients of a net's own parameters were exchanged. */
struct drps_train_common {
    uint64_t floats;                  /* that it has; 0: no net, or one rank, or no rounds */
    enum drps_common_exchange way;    /* never auto */
    struct drps_outer_choice vectors; /* of sums there are none */
};

struct drps_train_result {
    char store[DRPS_TRAIN_NAME_BYTES]; /* resident, relay, file, rocksdb, leveldb */
    char model_store[DRPS_TRAIN_NAME_BYTES];
    char device[DRPS_TRAIN_DEVICE_BYTES]; /* that computed, by name; empty: the processor */
    int device_emulated;                  /* 1: an emulation for tests */
    struct drps_optim optim;
    uint64_t rows;
    uint64_t model_bytes;                     /* of parameters */
    uint64_t row_bytes;                       /* with the optimizer's state */
    double constant_loss, test_constant_loss; /* of the plan: of the score that is best for all
                                                 training samples; NaN: it does not say */
    int has_perplexity;          /* 1: of a net that reads sequences, whose losses are of a token */
    struct drps_remarks remarks; /* on what went wrong in learning; of several ranks at rank 0 */
    uint64_t content;            /* XXH3 over all parameters in placed order; of several ranks known
                                    to rank 0 alone */
    struct drps_budget memory;   /* who was given how much */
    uint64_t peak_rss_bytes;
    double seconds;
    struct drps_phases phases;
    struct drps_epoch *epochs; /* own: [epochs_n] complete epochs */
    size_t epochs_n;
    /* The epoch whose parameters the model holds, from 1. 0: those of an unfinished epoch. */
    uint64_t best_epoch;
    enum drps_newton_end newton_end;
    int stopped_early; /* a quasi-Newton method has ended by itself, patience ran out, or training
                          diverged after best_epoch */
    uint64_t diverged_epoch; /* in which a loss, or a parameter, was no finite number; 0: none */
    int published;           /* the model is written, here */
    char
        *kept; /* own: the folder that holds what was trained, where that is no model; NULL: none */
    int interrupted;
    uint64_t steps; /* done in the epoch that was interrupted */
    int already;    /* there was nothing to resume: the model of the plan is whole. Of the rest only
                       `content` is filled in */
    uint64_t resumed_epoch, resumed_step; /* where the run went on: the epoch, from 1, and batches
                                             of it that were done; 0: it began anew. Counters are
                                             of what this run did */
    /* Options of learning in which the run, or one that it goes on from, went on otherwise than it
     * had begun, and from where on: a line each. Empty: none. */
    char changed[DRPS_TRAIN_CHANGED_BYTES];
    double first_step_seconds; /* from the start until the first step was done; NaN: none was */
    struct drps_train_from {
        uint64_t rows; /* of all ranks, that began as options->from has them */
        uint64_t all;  /* rows there are; 0: the run did not begin with those of an earlier one */
        uint64_t left; /* of the earlier one, that the plan does not have */
        int state;     /* 1: with the optimizer's state */
    } from;
    struct drps_train_delta {
        uint64_t rows;  /* that differ from those of `from` */
        uint64_t fresh; /* rows that `from` does not have */
        uint64_t bytes; /* of the file; 0: none is written */
    } delta;
    struct drps_train_checkpoints {
        uint64_t n, failed, bytes;  /* that this rank has written, that could not be */
        double seconds;             /* that training stood still for them */
        uint64_t rounds, log_bytes; /* of vectors, that this rank has logged */
    } checkpoints;
    struct drps_store_stats store_stats;
    struct drps_window_stats *windows; /* own: [windows_n] of an epoch, summed over epochs; relay */
    size_t windows_n;
    struct drps_process_io process_io; /* what the kernel counted, from start to end of the run */
    uint64_t plan_read_bytes;
    double plan_wait_seconds;
    enum drps_evict_rule evict;                 /* of the block store */
    struct drps_epoch_seconds forecast_seconds; /* of an epoch, by the plan's speeds, without
                                                   messages of other ranks; 0: none are known */
    struct drps_epoch_limit limit; /* of the epochs after the run's first one, or of that alone; of
                                      one process with a relay store whose disk was measured, here
                                      or for the plan */
    struct drps_forecast forecast; /* of one epoch with the pool that the block store had */
    struct drps_forecast_requests forecast_requests; /* of blocks in a file; 0 for other stores */
    uint64_t claim_steps; /* asynchronous rounds: steps of the windows that batches are claimed in;
                             0: bsp */
    struct drps_train_emulated emulated; /* sums over all ranks */
    struct drps_train_rank *ranks; /* own: [ranks_n]; NULL: one worker. What is not of ranks or of
                                      an epoch is this rank's own */
    size_t ranks_n;
    struct drps_train_links links;       /* between them; NULL: none */
    struct drps_train_exchange exchange; /* zero: servers, as nothing else was asked for */
    struct drps_train_common common;     /* of a net */
    int has_forecast;
};

/* What a run needs of options->memory_bytes, of each rank. */
struct drps_train_needs {
    uint64_t least_bytes;     /* drps_train_run() refuses less */
    uint64_t all_rows_bytes;  /* the least with which all rows stay in memory; 0: options->store is
                                 none that does so */
    int fits;                 /* options->memory_bytes is enough */
    int keeps_all_rows;       /* with it all rows stay in memory */
    uint64_t held_rows_bytes; /* a relay store: how many bytes of rows, of row_bytes as the plan has
                                 them, are in memory with it, about; 0: other stores */
};

/* Find that out without training: of a plan for one worker, or of the part of one of several.
 * Errors as drps_train_run(), but for the memory, the disk and the net. */
DRPS_MUST_CHECK
int drps_train_needs(const struct drps_plan *plan, const struct drps_train_options *options,
                     struct drps_train_needs *out, struct drps_err *err);

struct drps_net_options;

/* Fill in what the messages of a job depend on, but for rank and job_id, which are the caller's.
 * `part` is the plan of a rank. */
void drps_train_net_options(const struct drps_plan *part, struct drps_net_options *out);

/* *lr_out is the learning rate that a run with these options has. DRPS_E_CONFIG: the optimizer has
 * none; or as drps_train_check(). */
DRPS_MUST_CHECK
int drps_train_rate(const struct drps_plan *plan, const struct drps_train_options *options,
                    float *lr_out, struct drps_err *err);

/* Whether the options fit the plan, or a rank's part, and each other, as far as drps_train_run()
 * sees without reading more than the manifest: before any of several ranks is started. Returns 0 or
 * DRPS_E_CONFIG, DRPS_E_CORRUPT. */
DRPS_MUST_CHECK
int drps_train_check(const struct drps_plan *plan, const struct drps_train_options *options,
                     struct drps_err *err);

/*
 * Train and write options->model_path, whole or not at all. *result is filled as far as the run
 * came, also on errors; drps_train_result_free() it. Where a run fails once parameters are whole on
 * disk (of the last epoch; with patience of the best one), they stay in a folder beside the model:
 * result->kept, for drps_publish_run(). Returns 0, or among others:
 *   DRPS_E_CONFIG         options do not fit the plan or this build; or there is a checkpoint of a
 *                         run that has not ended, and they say neither resume nor replace
 *   DRPS_E_MEMORY_BUDGET  with the breakdown and the number that would do; nothing was started
 *   DRPS_E_INTERRUPTED    options->stop was set; the model of the steps done was written (with
 *                         patience: of the best epoch, if one was complete). Less than an epoch
 *                         does not replace a model (result->kept), and without a step nothing is
 *                         written
 *   -ERANGE               a loss or a parameter is no finite number; err names epoch and step, or
 *                         row; nothing was written
 * Where training diverges after an epoch that patience has chosen, it returns 0: the model is that
 * of the best epoch, and result->diverged_epoch says when.
 */
DRPS_MUST_CHECK
int drps_train_run(const struct drps_plan *plan, const struct drps_train_options *options,
                   struct drps_train_result *result, struct drps_err *err);
void drps_train_result_free(struct drps_train_result *result);

#endif
