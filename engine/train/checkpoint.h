/* A run's checkpoints: writing them while it trains, and going on from one. Private to
 * engine/train/. */
#ifndef DRPS_ENGINE_TRAIN_CHECKPOINT_H
#define DRPS_ENGINE_TRAIN_CHECKPOINT_H

#include "engine/checkpoint/drps_checkpoint.h"
#include "engine/checkpoint/drps_state.h"
#include "storage/relay/drps_relay.h"

struct drps_job;
struct drps_store_config;
enum { DRPS_STORE_SAVES_MOST = 4 }; /* the newest two, the one being written, and those before */

/* A checkpoint in which the store has saved itself: what it names stays on disk until the store is
 * told to forget it. */
struct drps_job_save {
    uint64_t number; /* of the checkpoint; 0: none */
    unsigned save;
};

/* Part of the job. */
struct drps_job_checkpoints {
    struct drps_checkpoints place;
    struct drps_checkpoint *from; /* own: the run goes on from it; NULL: it began anew */
    uint64_t from_number;
    uint64_t read;           /* the number of the one whose rows `from` reads */
    struct drps_state state; /* own: what it says; else of a run that has not begun */
    uint64_t next, newest;   /* number of the next one; of the newest that this run may go on from,
                                0: none */
    uint64_t before;         /* of the one before that; 0: none, or it is not known */
    int marks_rows;          /* 1: the store marks the rows that change */
    int shares_rows;      /* 1: the newest has all rows but for those that the store has marked as
                             changed, and the next one may share their files */
    uint64_t linked_best; /* the epoch whose parameters the newest one has; 0: none */
    int told_failure;     /* that one could not be written */
    int begins_over;      /* anew, beside checkpoints of an earlier run */
    int logged;           /* 1: vectors are logged beside `from`, */
    uint64_t round;       /* up to this round, and more */
    int replays;          /* 1: the run goes on from that one, and not from `from` itself */
    int begins_with_own;  /* a warm start with the checkpoints that lie where the run's will */
    struct drps_job_save saves[DRPS_STORE_SAVES_MOST];
    struct drps_relay_saved saved; /* of a store in `from`: what it was opened with */
    int continues;                 /* 1: the run's store goes on from that */
    int copies;                    /* 1: its rows are copied out */
    struct drps_checkpoints copy;  /* rows that were copied out of such a store, in the run's own
                                      folder; zero: none */
    uint64_t due_step;  /* counted from the first epoch; UINT64_MAX: steps do not count */
    uint64_t due_epoch; /* after it; UINT64_MAX: epochs do not count */
    uint64_t due_ns;    /* the clock; UINT64_MAX: time does not count */
    uint64_t synced_round, synced_ns; /* up to where, and when, the log of vectors was flushed */
    uint64_t told_round;              /* up to where it is known to be durable */
};

/* Fill in the state of the job where this is done of the epoch. What it owns is the job's. */
void drps_job_state(const struct drps_job *job, uint64_t epoch, const struct drps_epoch_part *done,
                    struct drps_state *s);

/*
 * Find where the run goes on, of several ranks together with them, and settle what the options
 * leave open as the checkpoint has it. Before the model is settled. DRPS_E_CONFIG: there is a
 * checkpoint of a run that has not ended, and the options do not say what to do with it; or it does
 * not fit plan and options. -EBUSY: another run uses the folder, which is this run's until its end.
 */
DRPS_MUST_CHECK
int drps_job_find_checkpoint(struct drps_job *job, struct drps_err *err);

/* Places that a run can go on from: a checkpoint, and the rounds that are logged after it. Twice
 * the round, and 1 more where the epoch that ends with it is evaluated, too. */
struct drps_job_span {
    uint64_t first, last;
};

/* The span of a checkpoint of this state, alone or with rounds up to last_round. */
struct drps_job_span drps_job_span(const struct drps_job *job, const struct drps_state *state,
                                   uint64_t last_round);

/*
 * Called by all ranks together: the last place that all have, or that of options->resume_round.
 * spans [n], newest first; n may be 0. Returns 1, and which of them it is in, or 0: there is none.
 * DRPS_E_NOT_FOUND: the round is not covered.
 */
DRPS_MUST_CHECK
int drps_job_agree_on_place(const struct drps_job *job, const struct drps_job_span *spans, size_t n,
                            uint64_t *place_out, size_t *which_out, struct drps_err *err);

/* The place becomes that of the run: where it is after the checkpoint's own, its state lacks the
 * results of epochs and the sums of the one under way until rounds are replayed. */
DRPS_MUST_CHECK
int drps_job_take_place(struct drps_job *job, const struct drps_job_span *span, uint64_t place,
                        struct drps_err *err);

/* Put the rounds that are logged after the checkpoint to its rows, into a copy of them; the folder
 * of the run's store is there, and empty. */
DRPS_MUST_CHECK
int drps_job_replay(struct drps_job *job, const struct drps_store_config *config,
                    struct drps_err *err);

/* Room to log rounds, and how they get there; before ranks exchange vectors. */
DRPS_MUST_CHECK
int drps_job_new_log(struct drps_job *job, struct drps_err *err);

/* Before the first step: go on with the log beside the checkpoint. Returns 1 on all ranks where
 * some rank has none: then a checkpoint is due, which gets one. */
DRPS_MUST_CHECK
int drps_job_begin_log(struct drps_job *job, struct drps_err *err);

/* Have rounds logged beside checkpoint `number`, which is of this state. */
void drps_job_log_after(struct drps_job *job, uint64_t number, const struct drps_state *state);

/* Make what is logged durable. Where that fails, rounds are not logged any more until the next
 * checkpoint, which all ranks write after the epoch; a warning says so. */
void drps_job_sync_log(struct drps_job *job);

/* The loop's end_round(). */
DRPS_MUST_CHECK
int drps_job_end_round(void *job, uint64_t epoch, const struct drps_epoch_part *done,
                       struct drps_err *err);

/* How many rounds are done in this state. */
uint64_t drps_job_round(const struct drps_job *job, uint64_t epoch, uint64_t step);

/* The model's name with a suffix, in a new string (free() it); NULL when memory is gone. */
char *drps_job_beside(const struct drps_job *job, const char *suffix);

/* The checkpoint's rows must be the run's: once model and optimizer are settled. */
DRPS_MUST_CHECK
int drps_job_check_rows(const struct drps_job *job, struct drps_err *err);

/* Where the checkpoint holds a store: find out whether the run's store goes on from it, or its rows
 * are copied out. */
DRPS_MUST_CHECK
int drps_job_look_at_saved(struct drps_job *job, const struct drps_store_config *config,
                           struct drps_err *err);

/* Returns the bytes of disk that the copy takes: what more it takes while it is made, too, where
 * that exceeds what the run takes `beside` it later. */
uint64_t drps_job_copy_space(const struct drps_job *job, uint64_t beside);

/* Copy them out. The folder of the run's store is there, and empty; nothing is opened yet. */
DRPS_MUST_CHECK
int drps_job_use_saved(struct drps_job *job, const struct drps_store_config *config,
                       struct drps_err *err);

/* Have the store note which rows change, for checkpoints that share files with the one before; the
 * first may share them with that which the run goes on from. */
void drps_job_mark_rows(struct drps_job *job, struct drps_store_config *config);

/* The store goes on from the checkpoint: it keeps what that names, and what the one before does,
 * until they are removed. */
void drps_job_remember_saves(struct drps_job *job);

/* Before the first step: results of the epochs before, the best epoch's parameters; what is newer
 * than the checkpoint is removed. A run that begins anew leaves a mark, so that nobody takes the
 * checkpoints of an earlier one for its own. */
DRPS_MUST_CHECK
int drps_job_take_up(struct drps_job *job, struct drps_err *err);

/* The first clock and step at which a checkpoint is due, into the loop; `epoch` begins or goes on.
 */
void drps_job_arm(struct drps_job *job, uint64_t epoch);

/* One was written, or could not be, when so many steps of the epoch were done, and took so long:
 * when the next one is due. */
void drps_job_set_due(struct drps_job *job, uint64_t epoch, uint64_t step, uint64_t took_ns);

/* Whether one is due after an epoch, as rank 0 says to all. */
DRPS_MUST_CHECK
int drps_job_due_after(struct drps_job *job, uint64_t epoch, int *due_out, struct drps_err *err);

/* Write a checkpoint now; the loop's pause(). A failure is a warning, unless ranks are lost. */
DRPS_MUST_CHECK
int drps_job_checkpoint(void *job, uint64_t epoch, const struct drps_epoch_part *done,
                        struct drps_err *err);

/* At the end: how many could not be written, where that was more than one. The first is told of
 * when it fails, those after it are only counted. */
void drps_job_remark_failed(const struct drps_job *job);

/* The model is written: checkpoints go, unless the options keep them; and where a run was resumed,
 * what killed ones have kept of the same parameters. */
void drps_job_clear(struct drps_job *job);

void drps_job_close_checkpoints(struct drps_job *job);

#endif
