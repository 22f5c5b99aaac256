/*
 * The checkpoints that logs belong to: rows of a matrix, and the round after which they are so.
 * Private to engine/checkpoint/vectors/.
 */
#ifndef DRPS_VECTORS_SNAPSHOT_H
#define DRPS_VECTORS_SNAPSHOT_H

#include "engine/checkpoint/vectors/drps_vector_log.h"

/* What a checkpoint says of itself. */
struct snapshot {
    uint64_t number, round;
    struct drps_matrix_shape shape;
};

/* Write s->number; *bytes_out: of its files of rows. The manifest gets a member "vectors". */
DRPS_MUST_CHECK
int snapshot_write(const struct drps_checkpoints *c, const struct snapshot *s, const void *matrix,
                   const json_t *manifest, uint64_t *bytes_out, struct drps_err *err);

/* Of an open checkpoint. DRPS_E_CORRUPT: it says nothing of vectors, or what cannot be. */
DRPS_MUST_CHECK
int snapshot_read(const struct drps_checkpoint *cp, uint64_t number, struct snapshot *out,
                  struct drps_err *err);

/* The least round of a checkpoint, as far as there are whole ones; else it is left as it is. */
DRPS_MUST_CHECK
int snapshot_first(const struct drps_checkpoints *c, uint64_t *round_out, struct drps_err *err);

/* Open the newest checkpoint whose round is not after `round`. DRPS_E_NOT_FOUND: there is none. */
DRPS_MUST_CHECK
int snapshot_open(const struct drps_checkpoints *c, uint64_t round, struct drps_checkpoint **cp_out,
                  struct snapshot *out, struct drps_err *err);

/* The name of a checkpoint's log, in a new string (free() it); NULL when memory is gone. */
char *snapshot_log(const struct drps_checkpoints *c, uint64_t number);

#endif
