/*
 * The rounds of a rank that exchanges sufficient vectors, as a log beside its checkpoints
 * (engine/checkpoint/vectors/). A checkpoint has the rows of the rank's own server, and so has its
 * log: of each batch that is applied, the rank's own and those of others, all u, and the entries of
 * its samples in those rows. The intercept is a feature of each sample, with the value 1. One
 * process without ranks has all rows; its round is a step, in which each thread applies a batch.
 *
 * A restored round is stepped as it was in training, by the same functions in the same order, and
 * so gives the same bits. Shared inside engine/train/. Not thread-safe.
 *
 * Source: Xie et al., "Orpheus", section 3.3.2.
 */
#ifndef DRPS_ENGINE_TRAIN_VECTORS_ROUND_LOG_H
#define DRPS_ENGINE_TRAIN_VECTORS_ROUND_LOG_H

#include "engine/checkpoint/drps_state.h"
#include "engine/checkpoint/vectors/drps_vector_log.h"
#include "engine/cluster/sv/drps_exchange.h"
#include "engine/step/drps_server.h"
#include "engine/step/drps_worker.h"

/* ---- What is noted with each round ---- */

struct drps_round_note {
    uint64_t samples; /* of this epoch, by this rank, up to this round */
    double loss;      /* their sum */
    uint64_t ns;
    const struct drps_epoch *done; /* in the first round of an epoch the results of the one before;
                                      else NULL */
};

/* In a new buffer (free() it) of *bytes_out; NULL: memory is gone. */
void *drps_round_note_write(const struct drps_round_note *note, uint32_t *bytes_out);

/* *done gets the results, if there are any, to which note->done points then. DRPS_E_CORRUPT. */
DRPS_MUST_CHECK
int drps_round_note_read(const void *bytes, size_t n, struct drps_round_note *note,
                         struct drps_epoch *done, struct drps_err *err);

/* ---- Logging ---- */

struct drps_round_log; /* opaque */

struct drps_round_log_job {
    const struct drps_plan_info *info; /* of the rank's part */
    const struct drps_server *server;  /* which rows are the rank's own, and their size */
    uint32_t batches;                  /* of a round, at most: ranks, or threads */
    uint64_t buffer_bytes;             /* see drps_vector_log_options, as for the next */
    int background;
    uint64_t least_bytes; /* of a log beside which a checkpoint is due; 0: 16 MiB */
};

/* What the job points to is borrowed until it is freed. Nothing is logged before it is opened. */
DRPS_MUST_CHECK
int drps_round_log_new(const struct drps_round_log_job *job, struct drps_round_log **out,
                       struct drps_err *err);
void drps_round_log_free(struct drps_round_log *l); /* NULL-safe; what was not synced is lost */

/* From now on rounds after `round` are logged beside checkpoint `number`, as drps_vector_log_open()
 * does; what was open is closed. */
DRPS_MUST_CHECK
int drps_round_log_open(struct drps_round_log *l, const struct drps_checkpoints *c, uint64_t number,
                        uint64_t round, struct drps_err *err);
/* Rounds are not logged until it is opened again. */
void drps_round_log_close(struct drps_round_log *l);
int drps_round_log_is_open(const struct drps_round_log *l);

/* An `applied` of drps_exchange_job: a batch of the round under way. */
int drps_round_log_take(void *l, const struct drps_exchange_applied *applied, struct drps_err *err);

/* The batches of a step of one process, whose worker keeps slopes and is done with it: of all its
 * threads, of rows ids [batch->rows]. */
DRPS_MUST_CHECK
int drps_round_log_take_step(struct drps_round_log *l, const struct drps_worker *worker,
                             const uint32_t *ids, struct drps_err *err);

/* The round's end. `replica`: all rows after it. Errors as drps_vector_log_add(). */
DRPS_MUST_CHECK
int drps_round_log_end(struct drps_round_log *l, uint64_t round, const void *replica,
                       const struct drps_round_note *note, struct drps_err *err);

/* As drps_vector_log_flush() and drps_vector_log_sync(). */
DRPS_MUST_CHECK
int drps_round_log_flush(struct drps_round_log *l, struct drps_err *err);
DRPS_MUST_CHECK
int drps_round_log_sync(struct drps_round_log *l, struct drps_err *err);

/* 1: the logs of all ranks together have become as large as all rows, and each has least_bytes,
 * about: a checkpoint is due. All ranks, which apply the same vectors, find the same. */
int drps_round_log_due(const struct drps_round_log *l);

/* The checkpoint could not be written: it is due again when the logs have grown by as much. */
void drps_round_log_put_off(struct drps_round_log *l);

/* Rounds and bytes that were logged so far. */
void drps_round_log_counts(const struct drps_round_log *l, uint64_t *rounds_out,
                           uint64_t *bytes_out);

/* Returns the memory that it takes, with so many batches of a round. */
uint64_t drps_round_log_memory(const struct drps_plan_info *info, uint32_t batches);

/* ---- Restoring ---- */

struct drps_round_replay {
    const struct drps_server *server; /* model and optimizer, as they are in training */
    int touches;                      /* the optimizer needs them */
    uint64_t rows;                    /* own */
    uint64_t batches;                 /* of an epoch */
    struct drps_epoch *done; /* [epochs] filled in by notes of rounds, as far as they say */
    uint64_t epochs;
    struct drps_round_note last; /* of the last round; its `done` is NULL */
};

/* Returns the memory that restoring takes beside the rows. */
uint64_t drps_round_replay_memory(uint64_t rows, uint32_t dim);

/* All own rows as they are after `round`, [rows][row_bytes]: the checkpoint's, then its log. Errors
 * as drps_vector_log_replay(). */
DRPS_MUST_CHECK
int drps_round_replay(struct drps_round_replay *r, const struct drps_io *io,
                      struct drps_checkpoint *cp, uint64_t round, void *matrix,
                      struct drps_err *err);

#endif
