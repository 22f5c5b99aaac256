/*
 * A warm start: training begins with the rows of an earlier run, for another plan or the same one.
 * Rows are matched by table and name; a row that the earlier run did not have is fresh.
 *
 * The earlier run is a model (its parameters) or a folder of checkpoints (rows with the optimizer's
 * state, of all ranks that wrote them; where the optimizer is another one, parameters alone). A
 * model beside which the checkpoints of its end lie stands for these. It must have the same
 * algorithm, loss and number of factors.
 *
 * Passes, all of them sequential, where D is the bytes of the rows that are taken over and R those
 * of all rows of the plan (of this rank):
 *
 *   check     the earlier rows are read
 *   join      its dictionary is read in the order of keys, and each name looked up in the plan's,
 *             which has the same order; where fields have other numbers or names another hash seed,
 *             its names are hashed anew and sorted first. Pairs (earlier row, row) are sorted by
 *             earlier row: 24 bytes each on disk, if they are more than a quarter of the memory
 *   gather    the earlier rows are read once more, and appended to the piece of rows that they
 *             belong to: D is written
 *   put       piece after piece is made in memory, half of it: fresh rows, over which those of its
 *             file are put: D is read, R is written
 *
 * R is a checkpoint's rows.rec, from which the store then reads rows that are used first. Memory:
 * memory_bytes. Shared inside engine/.
 */
#ifndef DRPS_ENGINE_WARM_WARM_H
#define DRPS_ENGINE_WARM_WARM_H

#include <stdint.h>

#include "base/drps_log.h"
#include "engine/checkpoint/drps_checkpoint.h"
#include "engine/step/drps_server.h"
#include "index/plan/drps_plan.h"

struct drps_warm; /* opaque: an earlier run, open, and found to fit */

struct drps_warm_options {
    const struct drps_io *io;
    const char *from;              /* folder of a model, or of the checkpoints of all ranks */
    const struct drps_plan *part;  /* this rank's, or the whole plan of one worker */
    const struct drps_plan *whole; /* NULL: it is opened beside the rank's part */
    const struct drps_log *log;
    int no_state; /* 1: parameters alone, whatever lies there */
};

/* What was found. */
struct drps_warm_found {
    uint64_t rows; /* of the whole plan, that the earlier run had */
    uint64_t all;  /* of the whole plan */
    uint64_t left; /* of the earlier run, that the plan does not have */
    int state;     /* 1: with the optimizer's state */
};

/*
 * Open an earlier run; of checkpoints the newest that is whole on all ranks is read to its end, and
 * a damaged one is told of and left out. Everything of `o` is borrowed until drps_warm_close().
 * DRPS_E_CONFIG: it is neither, or does not fit the plan, or this rank has no names.rec of the
 * whole plan; DRPS_E_CORRUPT.
 */
DRPS_MUST_CHECK
int drps_warm_open(const struct drps_warm_options *o, struct drps_warm **w_out,
                   struct drps_err *err);
void drps_warm_close(struct drps_warm *w); /* NULL-safe */

/* A number that is the same for the same parameters (and state, and progress), never 0. */
uint64_t drps_warm_id(const struct drps_warm *w);

/* Returns 1: the earlier run is a model that has a calibration, which is not of the new model. */
int drps_warm_is_calibrated(const struct drps_warm *w);

/*
 * Make the rows of the part, as `server` (initialised, not open) has them, in the folder `dir`,
 * which is made, and also has what is in between meanwhile. *cp_out: the rows, open, to be closed
 * by the caller. The earlier run is no longer of use then, but to be closed. Errors name what is
 * damaged; DRPS_E_MEMORY_BUDGET says how much would do; DRPS_E_INTERRUPTED by io->stop.
 */
DRPS_MUST_CHECK
int drps_warm_make(struct drps_warm *w, const struct drps_server *server, const char *dir,
                   uint64_t memory_bytes, struct drps_checkpoint **cp_out,
                   struct drps_warm_found *out, struct drps_err *err);

/* Returns the bytes of disk that drps_warm_make() takes at most for so many rows. */
uint64_t drps_warm_space(uint64_t rows, uint64_t row_bytes);

/* The folder of checkpoints that may lie beside a model, a new string (free() it); NULL when memory
 * is gone. */
char *drps_warm_state_path(const char *model);

/* What a checkpoint's manifest says of its rows, as its member DRPS_WARM_MEMBER, so that another
 * plan can begin with them: a json_t object, own; NULL when memory is gone. `whole` (NULL: unknown)
 * is the plan that `part` is of. */
#define DRPS_WARM_MEMBER "of"
void *drps_warm_describe(const struct drps_plan *part, const struct drps_plan *whole);

#endif
