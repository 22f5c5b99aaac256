/*
 * Incremental checkpoints of sufficient vectors. Where a matrix changes by vectors alone, these are
 * far smaller than its rows: beside a checkpoint of the rows (engine/checkpoint/) lies a log of
 * what was applied to them in each round since. Any round that is logged can be restored, bit for
 * bit: from the rows, to which the log's rounds are applied once more.
 *
 *   ROOT/rank-R/N/              checkpoint N: all rows, with their state, after some round
 *   ROOT/rank-R/N/vectors.log   the rounds that followed it; not there: none did
 *
 * A round whose vectors would take no fewer bytes than the rows that they change is logged as these
 * rows. When the log has become as large as the rows, or long to replay, a new checkpoint is due;
 * older ones go when it is durable. docs/formats.md describes the log.
 *
 * Source: Xie et al., "Orpheus", section 3.3.2. Shared inside engine/. Not thread-safe.
 */
#ifndef DRPS_ENGINE_CHECKPOINT_VECTORS_VECTOR_LOG_H
#define DRPS_ENGINE_CHECKPOINT_VECTORS_VECTOR_LOG_H

#include "engine/checkpoint/drps_checkpoint.h"
#include "engine/model/drps_vectors.h"

/* A matrix in memory: [rows][row_bytes], each row `dim` floats, then the optimizer's state. */
struct drps_matrix_shape {
    uint64_t rows; /* fits 32 bits */
    size_t row_bytes;
    uint32_t dim; /* of a u; 1 or more */
};

/* What was applied to the matrix in one round. */
struct drps_vector_round {
    uint64_t number; /* one more than that of the round before */
    uint32_t n;
    const struct drps_vectors *batches; /* [n] own and received, in the order of application */
    const uint32_t *sources;            /* [n] ranks that they came from */
    /* 1: rows changed that no batch names, as when replicas are averaged; all rows are logged. */
    int all_rows;
    /* Borrowed: what the caller wants to know again when the round is restored; logged with it. */
    const void *note;
    uint32_t note_bytes; /* at most DRPS_VECTOR_NOTE_MOST */
};
enum { DRPS_VECTOR_NOTE_MOST = 1 << 16 };

/*
 * Apply the batches of a round to the matrix, as when it was trained: the same bits must come of
 * it, and no row may change that no batch names. A round that was logged as rows has no batches
 * here: the matrix has its rows already. Returns 0 or a code with err set, which ends the
 * restoring.
 */
typedef int (*drps_vector_apply)(void *ctx, const struct drps_vector_round *round, void *matrix,
                                 struct drps_err *err);

/* ---- Writing ---- */

struct drps_vector_log; /* opaque: the log that belongs to the newest checkpoint */

/* Zero is the default. */
struct drps_vector_log_options {
    uint64_t buffer_bytes; /* rounds are held until they have so many, then synced; 0: 4 MiB */
    uint64_t replay_ns;    /* a checkpoint is due when applying all that is logged has taken longer;
                              0: however long */
    int background;        /* 1: a thread makes rounds durable that are flushed, or fill the buffer,
                              while others are added; 0: the caller waits. The log is the same */
    uint64_t keep;         /* checkpoints that are kept, 1 to DRPS_CHECKPOINT_LIST_MOST; 0: 1 */
};

/*
 * Write a checkpoint of the matrix as it is after `round`, with the number after the newest one's,
 * and begin an empty log. `manifest` (borrowed) is what drps_checkpoint_commit() is given; a member
 * "vectors" is added to what is written. The checkpoints are borrowed until close. On a failure all
 * is as before; only older checkpoints that cannot be removed stay beside the new one (the error
 * says which).
 */
DRPS_MUST_CHECK
int drps_vector_log_begin(const struct drps_checkpoints *c, const struct drps_matrix_shape *shape,
                          const struct drps_vector_log_options *options, uint64_t round,
                          const void *matrix, const json_t *manifest,
                          struct drps_vector_log **log_out, struct drps_err *err);

/*
 * Go on after `round`, which drps_vector_log_restore() has given: later rounds and checkpoints are
 * removed. Errors as those of restoring.
 */
DRPS_MUST_CHECK
int drps_vector_log_resume(const struct drps_checkpoints *c,
                           const struct drps_vector_log_options *options, uint64_t round,
                           struct drps_vector_log **log_out, struct drps_err *err);

/* Have `manifest` say that it is of rows after `round`, of a matrix with so many floats in a u: for
 * a checkpoint that the caller writes. -ENOMEM, without a text. */
DRPS_MUST_CHECK
int drps_vector_log_describe(json_t *manifest, uint64_t round, uint32_t dim);

/*
 * Log after `round` beside checkpoint `number`, whose manifest has been described so: its own
 * round, or one that its log has. What the log has of later rounds is cut off. Checkpoints are
 * written and removed by the caller: options->keep is not read. Errors as those of restoring.
 */
DRPS_MUST_CHECK
int drps_vector_log_open(const struct drps_checkpoints *c, uint64_t number,
                         const struct drps_vector_log_options *options, uint64_t round,
                         struct drps_vector_log **log_out, struct drps_err *err);

/*
 * Log a round, whose vectors have been applied to `matrix` in `apply_ns`. It is copied, and durable
 * after the next sync, which may be this call's. -EINVAL: the number is not the next, or vectors
 * have another dim, or the note is too long; -ENOMEM: the round is not logged. On another failure
 * it is, but not durable: the next sync tries again.
 */
DRPS_MUST_CHECK
int drps_vector_log_add(struct drps_vector_log *log, const struct drps_vector_round *round,
                        const void *matrix, uint64_t apply_ns, struct drps_err *err);

/*
 * Begin to make all rounds durable, and wait for those that were flushed before. The next flush or
 * sync says whether it has succeeded; after a failure it is tried again. Without options.background
 * this is drps_vector_log_sync().
 */
DRPS_MUST_CHECK
int drps_vector_log_flush(struct drps_vector_log *log, struct drps_err *err);

/* Make all rounds durable. After a failure it may be called again. */
DRPS_MUST_CHECK
int drps_vector_log_sync(struct drps_vector_log *log, struct drps_err *err);

/* 1: the log is as large as the rows, or takes too long to replay. */
int drps_vector_log_due(const struct drps_vector_log *log);

/* Sync the log, then write a checkpoint of the matrix after the last round, as begin() does, and
 * log after it from now on. On a failure before it is durable the log goes on as before. */
DRPS_MUST_CHECK
int drps_vector_log_snapshot(struct drps_vector_log *log, const void *matrix,
                             const json_t *manifest, struct drps_err *err);

struct drps_vector_log_stats {
    uint64_t round;      /* the last one */
    uint64_t snapshots;  /* written by this object */
    uint64_t rows_bytes; /* of their files of rows */
    uint64_t log_bytes;  /* logged by this object */
    uint64_t as_vectors; /* rounds logged as vectors, and as rows */
    uint64_t as_rows;
};
void drps_vector_log_stats(const struct drps_vector_log *log, struct drps_vector_log_stats *out);

/* What was not synced is lost. NULL-safe. */
void drps_vector_log_close(struct drps_vector_log *log);

/* Bytes that a round takes in the log as vectors, and as `rows` rows of a matrix. */
uint64_t drps_vector_log_bytes(const struct drps_matrix_shape *shape,
                               const struct drps_vector_round *round);
uint64_t drps_vector_log_rows_bytes(const struct drps_matrix_shape *shape, uint64_t rows);

/* ---- Reading ---- */

/*
 * The rounds that can be restored: from the oldest checkpoint's to the last whole one of the newest
 * log. What power cut off is no whole round. DRPS_E_NOT_FOUND: there is no checkpoint.
 * DRPS_E_CORRUPT: stored bytes are damaged; the text names the file and the place. Damage of what
 * the last sync has written cannot be told from a write that power cut off.
 */
DRPS_MUST_CHECK
int drps_vector_log_covered(const struct drps_checkpoints *c, uint64_t *first_out,
                            uint64_t *last_out, struct drps_err *err);

/*
 * Have in `matrix` what it was after `round`; UINT64_MAX: the last one. *round_out is the round.
 * DRPS_E_NOT_FOUND: it is not covered. DRPS_E_CONFIG: the checkpoint is of a matrix of another
 * shape. DRPS_E_CORRUPT as above, or what `apply` returns. The matrix is of use after success only.
 */
DRPS_MUST_CHECK
int drps_vector_log_restore(const struct drps_checkpoints *c, const struct drps_matrix_shape *shape,
                            uint64_t round, drps_vector_apply apply, void *ctx, void *matrix,
                            uint64_t *round_out, struct drps_err *err);

/* The same of one open checkpoint: its rows, then the rounds of its log up to `round`. */
DRPS_MUST_CHECK
int drps_vector_log_replay(const struct drps_io *io, struct drps_checkpoint *cp,
                           const struct drps_matrix_shape *shape, uint64_t round,
                           drps_vector_apply apply, void *ctx, void *matrix, uint64_t *round_out,
                           struct drps_err *err);

/* 1: the checkpoint is of a matrix whose vectors are logged. */
int drps_vector_log_is_of(const struct drps_checkpoint *cp);

/* Read and check the log of one open checkpoint, if it has one, but not its rows. It has rounds
 * *first_out .. *last_out; where it is damaged, those before the damage. */
DRPS_MUST_CHECK
int drps_vector_log_verify(const struct drps_io *io, const struct drps_checkpoint *cp,
                           uint64_t *first_out, uint64_t *last_out, struct drps_err *err);

#endif
