/*
 * A job that is cut off from power at each of its calls in turn, until it comes to its end. After
 * each cut what may be found is looked at: nothing that was not durable, everything, and some of it
 * by several seeds. A test is faster with support/no_sync.c among its sources.
 *
 * tests/engine/train/test_train_power.c does so with whole training runs: its job is power_train()
 * on the twin's I/O, and what looks at the folder trains again in it. A second cut is a new struct
 * power on the folder that was found, as in tests/base/folder/test_stage_power.c.
 */
#ifndef DRPS_TESTS_POWER_CUTS_H
#define DRPS_TESTS_POWER_CUTS_H

#include "engine/drps_engine.h"
#include "support/power.h"
#include "support/scratch.h"

enum { POWER_SEEDS = 64 };

/* What was found after one cut. */
struct power_after {
    const char *disk; /* the folder; may be changed, and is removed afterwards */
    int done;         /* the job had returned 0: what it promises is durable */
    long cut;         /* the call at which the power went; 0: after the last one */
    uint64_t choice;  /* an enum disk_choice or a seed */
};

struct power_case {
    void *ctx;
    /* Put into a new folder what is there, and durable, before the job. May be NULL. */
    void (*before)(void *ctx, const char *disk);
    /* Returns 0 or a negative code; not 0 only where the power went. */
    int (*job)(void *ctx, const struct drps_io *io, const char *disk);
    void (*after)(void *ctx, const struct power_after *a);
    const struct drps_io *inner; /* below the twin; NULL: the operating system's */
    int over_uring;              /* 1: requests go to io_uring, and there are some */
    unsigned calls;              /* at which the power goes: POWER_x | ... */
    unsigned seeds;              /* for each cut, beside nothing and everything; at most
                                    POWER_SEEDS. What is found twice is looked at once */
};

/* Returns how many calls there were to cut at; a build with sanitizers cuts at each third. Fails
 * the running test with the cut and the seed. */
long power_each_cut(struct scratch *s, const struct power_case *c);

/* Fails the running test; says at which cut, and what was found. */
#define power_fail(a, ...)                                                                         \
    do {                                                                                           \
        print_error("cut %ld, choice %#llx%s: ", (a)->cut, (unsigned long long)(a)->choice,        \
                    (a)->done ? ", the job was done" : "");                                        \
        fail_msg(__VA_ARGS__);                                                                     \
    } while (0)

/* Make the folder `to` a copy of `from`. */
void power_copy(const char *from, const char *to);

/* "<dir>/<name>" in `path`, of SCRATCH_PATH_BYTES; returns it. */
char *power_path(const char *dir, const char *name, char *path);

/* Train the plan (a folder) into options->model_path, all of it through `io`. Returns what
 * drps_train_run() returns; `content_out` may be NULL. */
int power_train(const struct drps_io *io, const char *plan,
                const struct drps_train_options *options, uint64_t *content_out,
                struct drps_err *err);

#endif
