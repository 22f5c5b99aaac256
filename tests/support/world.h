/*
 * Plans of one random data set for whole runs of several ranks in this process, and for one worker
 * to compare them with.
 */
#ifndef DRPS_TESTS_WORLD_H
#define DRPS_TESTS_WORLD_H

#include "engine/cluster/drps_ranks.h"
#include "support/index_case.h"

enum { WORLD_WORKERS = 3 };
#define WORLD_EACH (UINT64_MAX - 1) /* residual slots: each row has one of its own */

struct world {
    struct scratch scratch;
    uint32_t workers;
    uint64_t residual_slots;       /* of each worker, also where a plan is dealt */
    char plan[SCRATCH_PATH_BYTES]; /* for them */
    char one[SCRATCH_PATH_BYTES];  /* for one */
    char model[SCRATCH_PATH_BYTES];
};

/* 900 samples, 200 features. `batch` and `one_batch` are the batch sizes of the two plans. */
struct world *world_begin(const char *algo, enum case_format format, uint64_t batch,
                          uint64_t one_batch, uint64_t seed);
/* world_begin() with another number of samples and features. */
struct world *world_begin_sized(const char *algo, enum case_format format, size_t samples,
                                size_t features, uint64_t batch, uint64_t one_batch, uint64_t seed);
/* 900 samples, 1000 features, a plan for `workers` workers. */
struct world *world_begin_workers(uint32_t workers, const char *algo, enum case_format format,
                                  uint64_t batch, uint64_t one_batch, uint64_t seed);
/* world_begin_workers() for algorithm lor with another number of samples and features, and residual
 * slots. */
struct world *world_begin_few(uint32_t workers, size_t samples, size_t features, uint64_t batch,
                              uint64_t seed);
/* world_begin() with residual slots for each worker. */
struct world *world_begin_residuals(const char *algo, enum case_format format, uint64_t batch,
                                    uint64_t slots, uint64_t seed);
/* The same for so many workers. */
struct world *world_begin_slots(uint32_t workers, const char *algo, enum case_format format,
                                uint64_t batch, uint64_t slots, uint64_t seed);
void world_end(struct world *w);

/* Ranks that a plan may be for, of which some have no rows, and some no samples. */
struct world_ranks {
    uint32_t workers, servers;
    int separate;
    uint32_t ranks;
};

/* Deal the batches of the plan `from` to these ranks, check all that was made, and make it w->plan,
 * for as many workers as there are ranks. */
void world_deal(struct world *w, const char *from, const struct world_ranks *to);

/* Two epochs into w->model. */
struct drps_train_options world_options(const struct world *w);

/* All ranks, over inproc. */
int world_run(const struct world *w, const struct drps_train_options *train,
              struct drps_train_result *result, struct drps_err *err);

/* world_run(); the test fails when it fails. */
void world_train(const struct world *w, const struct drps_train_options *train,
                 struct drps_train_result *result);

/* The least memory_bytes that world_run() takes with this store, by the ranks' own refusals. */
uint64_t world_least_memory(const struct world *w, const struct drps_train_options *train);

/* The plan for one worker; fails the test when it fails. */
void world_run_one(const struct world *w, const struct drps_train_options *train,
                   struct drps_train_result *result);

/* The model is whole, and the result's. */
void world_check_model(const struct world *w, const struct drps_train_result *r);

/* Flip a bit in the middle of a file of rank 1: within a record. */
void world_damage(const struct world *w, const char *name);

#endif
