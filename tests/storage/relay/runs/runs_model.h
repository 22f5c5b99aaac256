/*
 * Runs, and beside them plain lists in memory that say which rows each window must get. A row is
 * its number, again and again. Every helper fails the running cmocka test when rows are not those.
 */
#ifndef DRPS_TESTS_RUNS_MODEL_H
#define DRPS_TESTS_RUNS_MODEL_H

#include <stddef.h>
#include <stdint.h>

#include "storage/relay/runs/runs_internal.h"
#include "support/scratch.h"

enum { MODEL_WINDOWS = 6000, MODEL_ROWS = 200 };

/* Numbers of rows, in their order. */
struct model_list {
    uint64_t *rows; /* own */
    size_t n, cap;
};

struct model {
    struct drps_runs *runs;
    struct drps_runs_config config;
    struct scratch *scratch;
    struct random_source rng;
    struct model_list queue[MODEL_WINDOWS], others[MODEL_WINDOWS];
    char *rows;      /* own: [MODEL_ROWS][row_bytes] */
    uint64_t made;   /* rows, ever */
    uint64_t window; /* that is taken from next */
    size_t done;     /* rows of it that were taken */
    uint64_t delay;  /* the queue's rows are used so many windows later; 0: it has none */
    uint64_t reach;  /* the others' at most so many */
    size_t run_rows; /* of a run, about */
    unsigned saves;  /* so far */
    int pinned;      /* 1: the save that it was opened from has not been let go of */
};

/* Defaults, for a file in the scratch folder. */
struct drps_runs_config model_config(struct scratch *scratch);

void model_begin(struct model *m, struct scratch *scratch, uint64_t seed,
                 const struct drps_runs_config *c);
void model_end(struct model *m);

/* Write a run, or rows to the queue. */
int model_run(struct model *m, struct drps_err *err);
int model_queue(struct model *m, struct drps_err *err);

/* Take all rows of the next window; sometimes a run is written in between. */
int model_take(struct model *m, struct drps_err *err);

/* Look at the rows of some windows. */
int model_look(struct model *m, struct drps_err *err);

/* Save to folder "save<n>" and pin it; its path is valid as scratch_path()'s. */
int model_save(struct model *m, const char **dir_out, struct drps_err *err);
/* Close runs and go on from a save of this moment. */
int model_reopen(struct model *m, const char *dir, int looking, struct drps_err *err);

/* Some windows: rows leave and come, all of it is looked at or saved now and then. */
int model_windows(struct model *m, uint64_t n, struct drps_err *err);

#endif
