/*
 * Training that is broken off and goes on: small plans for one worker, runs that end at any change
 * of a file or before a batch, the checkpoints that they leave, and the comparison with a run that
 * was not disturbed.
 */
#ifndef DRPS_TESTS_TRAIN_RUNS_H
#define DRPS_TESTS_TRAIN_RUNS_H

#include <stdatomic.h>
#include <stdint.h>

#include "engine/checkpoint/drps_checkpoint.h"
#include "engine/drps_engine.h"
#include "support/scratch.h"

/* ---- Any run ---- */

extern const struct drps_log quiet; /* warnings are dropped */

/* <s>/plan: 500 training and 90 evaluation samples of 400 features in batches of 20, and windows as
 * small as they can be. */
struct drps_plan *train_plan(struct scratch *s, const char *algo, uint32_t factors);

/* drps_train_run(); the test fails when it fails, and names `what`. */
void train_well(const struct drps_plan *plan, const struct drps_train_options *o,
                struct drps_train_result *r, const char *what);

/* drps_train_run() fails with `code`, and its message has `says` in it. */
void train_refused(const struct drps_plan *plan, const struct drps_train_options *o, int code,
                   const char *says);

/* Train until the k-th change of a file fails, and all that follow, as if the power were gone. With
 * an even k half of the bytes are written, if it is a write. Returns 1 if the run came to its end
 * before that. */
int train_until(const struct drps_plan *plan, const struct drps_train_options *o, long k);

/* How many changes of files a run makes until the model is whole and nothing else is left. */
long train_changes(const struct drps_plan *plan, const struct drps_train_options *o);

/* The same parameters, and the same losses in all epochs; a failure names `what` and `k`. */
void train_check_same(const struct drps_train_result *got, const struct drps_train_result *want,
                      const char *what, long k);

/* Returns the intercept of a model with rows of `dim` floats. */
float train_intercept(const char *model, size_t dim);

/* Remove what is there at this path, if anything is. */
void train_remove(const char *path);

/* The numbers of a rank's checkpoints in the folder `root`, the newest first; returns how many. */
size_t train_checkpoints(const char *root, uint32_t rank,
                         uint64_t numbers[DRPS_CHECKPOINT_LIST_MOST]);

/* ---- A run that stops before a batch ---- */

struct stopper {
    atomic_int stop;
    uint32_t rank;
    long left; /* batches of this rank until it stops */
};

/* Let runs with these options stop as `s` says, which must outlive them; or as nobody says. */
void stop_by(struct drps_train_options *o, struct stopper *s);
void stop_by_nobody(struct drps_train_options *o);

/* ---- A run that is to go on ---- */

enum { JOB_EPOCHS = 3 };

struct train_job {
    struct scratch s;
    struct drps_plan *plan;                                          /* own */
    char model[SCRATCH_PATH_BYTES], checkpoints[SCRATCH_PATH_BYTES]; /* <s>/model... */
    struct drps_train_options o;   /* JOB_EPOCHS epochs, a checkpoint every 7 batches */
    struct drps_train_result want; /* own: of a run that was not disturbed */
};

/* The relay store gets the least memory with which it takes the plan: with more, all rows would be
 * in one window. */
struct train_job *job_begin(const char *algo, uint32_t factors, const char *store);
void job_end(struct train_job *j);

/* Run with other options, not disturbed: j->want is what this run gives. */
void job_want(struct train_job *j, const struct drps_train_options *o);

/* Remove what runs have left. */
void job_clear(struct train_job *j);

/* train_until(), where nothing was before; the test fails if the run comes to its end. Returns how
 * many checkpoints are left, and their numbers. */
size_t job_break_off(struct train_job *j, const struct drps_train_options *o, long k,
                     uint64_t numbers[DRPS_CHECKPOINT_LIST_MOST]);

/* Break off a run that had written two checkpoints or more. */
void job_leave_checkpoints(struct train_job *j, const struct drps_train_options *o);

/* Go on, and check that the model is j->want's and that nothing else is left. Returns the epoch
 * that it went on from; 0: it began anew, or the model was whole already. */
uint64_t job_resume(struct train_job *j, struct drps_train_options o, const char *what, long k);

#endif
