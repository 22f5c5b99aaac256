/*
 * Checkpoints: folders from which training goes on after a crash. Each rank has its own:
 *
 *   ROOT/rank-R/N/checkpoint.json   what the caller says of the cut, and a checksum of that
 *   ROOT/rank-R/N/rows/00000.rec    rows of the rank, with the optimizer's state, in placed order:
 *                                   the first part of them; then 00001.rec ... A part in which no
 *                                   row has changed may be a second name for the one of before
 *   ROOT/rank-R/N/store/            in place of rows: what a row store has saved of itself, for
 *                                   a store of that kind to go on from (drps_store_ops.save)
 *   ROOT/rank-R/N/held.rec          what its worker holds back of gradients over epochs, if it does
 *   ROOT/rank-R/N/best.bin          parameters of the best epoch so far, where there is one
 *   ROOT/rank-0/N/names.rec         the plan's dictionary, so that the rows have names without it
 *   ROOT/rank-R/N.begun             an empty file: a run began anew beside checkpoints of an
 * earlier one, and its own have the numbers from N on ROOT/rank-R/lock                of the run
 * that uses them
 *
 * N counts 1, 2, 3, ... A checkpoint is written aside, synced, and then gets its name: a folder
 * that has the name is whole. docs/formats.md describes the files. Shared inside engine/.
 */
#ifndef DRPS_ENGINE_CHECKPOINT_CHECKPOINT_H
#define DRPS_ENGINE_CHECKPOINT_CHECKPOINT_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "base/drps_io.h"
#include "base/folder/drps_stage.h"
#include "base/record/drps_recfile.h"

enum { DRPS_CHECKPOINT_VERSION = 2, DRPS_CHECKPOINT_LIST_MOST = 8 };
#define DRPS_CHECKPOINT_KIND "drps-checkpoint"
#define DRPS_KIND_CHECKPOINT_ROWS DRPS_REC_KIND('C', 'K', 'P', 'T')
#define DRPS_KIND_CHECKPOINT_HELD DRPS_REC_KIND('H', 'E', 'L', 'D')

/* ---- The checkpoints of a rank ---- */

struct drps_checkpoints {
    const struct drps_io *io; /* borrowed */
    char *root;               /* own */
    char *dir;                /* own: root/rank-R */
    uint64_t part_bytes;      /* of rows in a part that is written, about; 0, as
                                 drps_checkpoints_init() has it: the usual size */
    char *lock;               /* own: root/rank-R/lock */
    int lock_fd;              /* -1: not locked */
};

/* Nothing is made or looked at yet. -ENOMEM. */
DRPS_MUST_CHECK
int drps_checkpoints_init(struct drps_checkpoints *c, const struct drps_io *io, const char *root,
                          uint32_t rank, struct drps_err *err);
/* Zeroed too. It unlocks, and then removes folders that are empty, but no checkpoint. */
void drps_checkpoints_destroy(struct drps_checkpoints *c);

/* Make the folder of the rank, and keep other runs from it until it is destroyed, or the process
 * ends. -EBUSY: another run uses it; err says which. */
DRPS_MUST_CHECK
int drps_checkpoints_lock(struct drps_checkpoints *c, struct drps_err *err);

/* The numbers of the newest checkpoints, newest first: at most DRPS_CHECKPOINT_LIST_MOST. Only
 * their names are looked at. A folder that is not there holds none. */
DRPS_MUST_CHECK
int drps_checkpoints_list(const struct drps_checkpoints *c, uint64_t *numbers, size_t *n_out,
                          struct drps_err *err);

/* Have the checkpoints before `number` belong to an earlier run than the one that begins now. That
 * lasts, also when the power goes, until checkpoint `number` is removed. */
DRPS_MUST_CHECK
int drps_checkpoints_begin_run(const struct drps_checkpoints *c, uint64_t number,
                               struct drps_err *err);

/* The least number that a checkpoint of the newest run can have: where it began anew; else 1. */
DRPS_MUST_CHECK
int drps_checkpoints_first(const struct drps_checkpoints *c, uint64_t *first_out,
                           struct drps_err *err);

/* Remove checkpoint `number`, and what a killed run left of it; then the folder of the rank and the
 * root, if they are empty. No error where there is none.
 * -EEXIST: it is not ours, or no longer whole, and stays. */
DRPS_MUST_CHECK
int drps_checkpoints_remove(const struct drps_checkpoints *c, uint64_t number,
                            struct drps_err *err);

/* Remove all checkpoints of the rank but those whose numbers are first .. last, and number `also`
 * (0: none), then its folder and the root, if they are empty. All that can be is removed; the first
 * error is returned. */
DRPS_MUST_CHECK
int drps_checkpoints_keep(const struct drps_checkpoints *c, uint64_t first, uint64_t last,
                          uint64_t also, struct drps_err *err);

/* ---- Writing ---- */

struct drps_checkpoint_writer; /* opaque */

/* Begin checkpoint `number`, of so many rows. What has that number is replaced at the end. Either
 * the rows follow, or a store saves itself. */
DRPS_MUST_CHECK
int drps_checkpoint_begin(const struct drps_checkpoints *c, uint64_t number, uint64_t rows,
                          size_t row_bytes, struct drps_checkpoint_writer **w_out,
                          struct drps_err *err);

/* Rows of a part, but for the last, that such a checkpoint has. */
uint64_t drps_checkpoint_part_rows(const struct drps_checkpoints *c, uint64_t rows,
                                   size_t row_bytes);

/* Parts whose rows do not come are those of checkpoint `number`, which has as many rows in parts of
 * the same size: second names for the files, or copies where the file system has no such thing.
 * Before the first row. */
DRPS_MUST_CHECK
int drps_checkpoint_take_rows(struct drps_checkpoint_writer *w, uint64_t number,
                              struct drps_err *err);

/* A drps_row_visit: `w` is the writer. All rows, or those of whole parts, in placed order. -ENOENT:
 * a part that does not come is not there. */
DRPS_MUST_CHECK
int drps_checkpoint_add(void *w, uint64_t first, size_t n, const void *rows, struct drps_err *err);

/* Make the folder in which a store saves itself, in place of rows; borrowed until commit or abort.
 */
DRPS_MUST_CHECK
int drps_checkpoint_make_store(struct drps_checkpoint_writer *w, const char **dir_out,
                               struct drps_err *err);

/* Give it the file best.bin: `from` is copied. */
DRPS_MUST_CHECK
int drps_checkpoint_add_best(struct drps_checkpoint_writer *w, const char *from,
                             struct drps_err *err);
/* Give it the best.bin of checkpoint `number`, by a second name for the same file. */
DRPS_MUST_CHECK
int drps_checkpoint_link_best(struct drps_checkpoint_writer *w, uint64_t number,
                              struct drps_err *err);

/* Give it the file names.rec, which never changes: a second name for the file `from`, or for that
 * of checkpoint `before` (0: there is none), or a copy where the file system has no such thing. */
DRPS_MUST_CHECK
int drps_checkpoint_add_names(struct drps_checkpoint_writer *w, const char *from, uint64_t before,
                              struct drps_err *err);

/* What a worker holds back of gradients: a row for each residual slot. */
struct drps_checkpoint_held {
    uint64_t slots; /* 0: it holds nothing back, and there is no file */
    size_t row_bytes;
};

/* Give it the file held.rec: rows [slots][row_bytes] are copied. */
DRPS_MUST_CHECK
int drps_checkpoint_add_held(struct drps_checkpoint_writer *w,
                             const struct drps_checkpoint_held *held, const void *rows,
                             struct drps_err *err);

/* Write `manifest` (borrowed; what describes the files is put into it), sync all and give it its
 * name. *bytes_out: of rows that were written. Errors as drps_checkpoint_add(). On a failure the
 * checkpoints are as before. The writer is freed in any case. */
DRPS_MUST_CHECK
int drps_checkpoint_commit(struct drps_checkpoint_writer *w, json_t *manifest, uint64_t *bytes_out,
                           struct drps_err *err);
void drps_checkpoint_abort(struct drps_checkpoint_writer *w); /* NULL-safe */

/* ---- Reading ---- */

struct drps_checkpoint; /* opaque: one open checkpoint */

/*
 * Open checkpoint `number`. DRPS_E_CORRUPT, DRPS_E_VERSION, -ENOENT: it is damaged, of another
 * version, or not whole. The rows are checked when they are read.
 */
DRPS_MUST_CHECK
int drps_checkpoint_open(const struct drps_checkpoints *c, uint64_t number,
                         struct drps_checkpoint **cp_out, struct drps_err *err);
void drps_checkpoint_close(struct drps_checkpoint *cp); /* NULL-safe */

/* What commit() was given; borrowed until close. The caller checks what it takes from it. */
const json_t *drps_checkpoint_manifest(const struct drps_checkpoint *cp);
const char *drps_checkpoint_dir(const struct drps_checkpoint *cp);
const char *drps_checkpoint_path(const struct drps_checkpoint *cp); /* of the manifest */
uint64_t drps_checkpoint_rows(const struct drps_checkpoint *cp);
size_t drps_checkpoint_row_bytes(const struct drps_checkpoint *cp);

/* The folder in which a store has saved itself, borrowed until close; NULL: there are rows. */
const char *drps_checkpoint_store(const struct drps_checkpoint *cp);

/* How many parts they are in, the rows of each but the last, and the file of one, in a new string
 * (free() it), NULL when memory is gone. */
uint64_t drps_checkpoint_parts(const struct drps_checkpoint *cp);
uint64_t drps_checkpoint_records(const struct drps_checkpoint *cp); /* of all parts */
uint64_t drps_checkpoint_rows_of_part(const struct drps_checkpoint *cp);
char *drps_checkpoint_part(const struct drps_checkpoint *cp, uint64_t part);

/*
 * Read rows of checkpoint `number` from now on, which has as many: those of the one that is open
 * may be removed then. All else that is known of it stays. On a failure all is as before. Other
 * threads may read meanwhile.
 */
DRPS_MUST_CHECK
int drps_checkpoint_follow(struct drps_checkpoint *cp, const struct drps_checkpoints *c,
                           uint64_t number, struct drps_err *err);

/* Read all rows, and what is held back, to know that they can be read. DRPS_E_INTERRUPTED by
 * io->stop. Of a store that has saved itself nothing is read. */
DRPS_MUST_CHECK
int drps_checkpoint_verify(struct drps_checkpoint *cp, struct drps_err *err);

/* What of gradients it holds, and all of it into rows_out [slots][row_bytes]. */
const struct drps_checkpoint_held *drps_checkpoint_held(const struct drps_checkpoint *cp);
DRPS_MUST_CHECK
int drps_checkpoint_read_held(const struct drps_checkpoint *cp, void *rows_out,
                              struct drps_err *err);

/* Rows first .. first + n - 1 into rows_out, row_bytes apart. Any thread. There are rows. */
DRPS_MUST_CHECK
int drps_checkpoint_read(struct drps_checkpoint *cp, uint64_t first, size_t n, void *rows_out,
                         struct drps_err *err);

#endif
