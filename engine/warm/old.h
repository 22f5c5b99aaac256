/* The rows of an earlier run, and their names. Private to engine/warm/. */
#ifndef DRPS_ENGINE_WARM_OLD_H
#define DRPS_ENGINE_WARM_OLD_H

#include "engine/warm/about.h"
#include "index/plan/drps_names.h"

struct warm_old {
    const struct drps_io *io;   /* borrowed, as are the next two */
    const struct drps_log *log; /* may be NULL */
    const char *path;           /* as the user has named it */
    struct warm_about about;
    char *names_dir;          /* own: the folder of names.rec */
    uint64_t id;              /* of parameters, or of a checkpoint; not 0 */
    struct drps_optim optim;  /* of a checkpoint: its kind and states */
    size_t row_bytes;         /* as it has them: of a model parameters alone */
    struct drps_modeldir *md; /* own; NULL: checkpoints */

    /* Checkpoints of all ranks. */
    char *own_path;                /* own: `path`, where the user has named a model; or NULL */
    char plan[DRPS_PLAN_ID_BYTES]; /* id of the whole plan */
    uint64_t number;
    uint32_t ranks;
    uint64_t *first;            /* own: [ranks + 1] */
    struct drps_checkpoint *cp; /* own: the one that was read last; NULL: none */
    uint32_t at;                /* its rank */
};

/* Errors as drps_warm_open(): `now` is what the plan has. *old is the caller's to close, also after
 * a failure. */
DRPS_MUST_CHECK
int drps_warm_old_open(const struct drps_warm_options *o, const struct warm_about *now,
                       struct warm_old *old, struct drps_err *err);
void drps_warm_old_close(struct warm_old *old);

/* Open the checkpoints in `path`, which old->own_path keeps. *old as of drps_warm_old_open(). */
DRPS_MUST_CHECK
int drps_warm_old_open_state(const struct drps_warm_options *o, const char *path,
                             const struct warm_about *now, struct warm_old *old,
                             struct drps_err *err);

/* All rows of checkpoints, in order. */
DRPS_MUST_CHECK
int drps_warm_old_scan(const struct warm_old *old, drps_row_visit visit, void *ctx,
                       struct drps_err *err);

/* Returns the least memory_bytes that drps_warm_old_begin() takes. */
uint64_t drps_warm_old_least(const struct warm_old *old);

/* Get ready to read rows: checks those of a model. At most memory_bytes from now on. */
DRPS_MUST_CHECK
int drps_warm_old_begin(struct warm_old *old, uint64_t memory_bytes, struct drps_err *err);

/* Rows ids [n], strictly increasing, also from call to call, into rows_out [n][row_bytes]. */
DRPS_MUST_CHECK
int drps_warm_old_read(struct warm_old *old, const uint32_t *ids, size_t n, void *rows_out,
                       struct drps_err *err);

#endif
