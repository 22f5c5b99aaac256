/* Restoring: the rows of a checkpoint, and the rounds of its log once more. */
#include <errno.h>
#include <stdlib.h>

#include "base/drps_endian.h"
#include "engine/checkpoint/drps_checkpoint_files.h"
#include "engine/checkpoint/vectors/log_reader.h"
#include "engine/checkpoint/vectors/payload.h"

/* Rounds on their way from a log to a matrix, or only being checked. */
struct replay {
    struct log_reader log;
    struct drps_matrix_shape shape;
    struct payload_round *room; /* own */
    drps_vector_apply apply;    /* NULL: rounds are only checked, and matrix is NULL */
    void *ctx, *matrix;
};

static int replay_open(struct replay *p, const struct drps_io *io, const char *path,
                       const struct snapshot *s, struct drps_err *err)
{
    p->shape = s->shape;
    p->room = payload_round_new(&s->shape);
    if (!p->room) return drps_err_set(err, -ENOMEM, "no memory to read %s", path);
    int rc = log_reader_open(&p->log, io, path, s, err);
    if (rc == 0) return 0;
    payload_round_free(p->room);
    return rc;
}

static void replay_close(struct replay *p)
{
    log_reader_close(&p->log);
    payload_round_free(p->room);
}

/* A round's payload ends with what the caller noted. */
static int split_note(const struct replay *p, const struct frame *f, size_t *bytes_out,
                      struct drps_vector_round *round, struct drps_err *err)
{
    const uint32_t n = f->bytes >= ROUND_HEAD_BYTES ? drps_get_u32(p->log.payload + 4) : 0;
    if (n > DRPS_VECTOR_NOTE_MOST || n > f->bytes)
        return drps_err_set(err, DRPS_E_CORRUPT, "a note of %u bytes does not fit its round", n);
    *bytes_out = (size_t)f->bytes - n;
    round->number = f->round;
    round->note = p->log.payload + *bytes_out;
    round->note_bytes = n;
    return 0;
}

static int replay_round(struct replay *p, const struct frame *f, struct drps_err *err)
{
    struct drps_vector_round round = {.n = 0};
    const struct drps_vector_round *vectors;
    size_t bytes = 0;
    int rc = split_note(p, f, &bytes, &round, err);
    if (rc == 0 && f->kind == FRAME_ROWS)
        rc = payload_get_rows(&p->shape, p->log.payload, bytes, p->matrix, err);
    if (rc == 0 && f->kind == FRAME_VECTORS) {
        rc = payload_get_vectors(p->room, f->round, p->log.payload, bytes, &vectors, err);
        if (rc == 0) {
            round.n = vectors->n;
            round.batches = vectors->batches;
            round.sources = vectors->sources;
        }
    }
    return rc == 0 && p->apply ? p->apply(p->ctx, &round, p->matrix, err) : rc;
}

/* 1: a round; 0: there is none. */
static int replay_next(struct replay *p, struct drps_err *err)
{
    struct frame f;
    int rc = drps_io_stopped(p->log.io, err);
    if (rc == 0) rc = log_reader_next(&p->log, &f, err);
    if (rc <= 0) return rc;
    rc = replay_round(p, &f, err);
    if (rc < 0)
        return drps_err_context(err, "%s: round %llu, at byte %llu", p->log.path,
                                (unsigned long long)f.round, (unsigned long long)f.offset);
    return 1;
}

/* Up to `round`, or the last one. */
static int replay_to(struct replay *p, uint64_t round, struct drps_err *err)
{
    int rc = 1;
    while (rc == 1 && p->log.round < round)
        rc = replay_next(p, err);
    return rc < 0 ? rc : 0;
}

/* ---- Restoring ---- */

static int check_shape(const struct drps_checkpoint *cp, const struct drps_matrix_shape *has,
                       const struct drps_matrix_shape *want, struct drps_err *err)
{
    if (has->rows == want->rows && has->row_bytes == want->row_bytes && has->dim == want->dim)
        return 0;
    return drps_err_set(err, DRPS_E_CONFIG,
                        "%s is of a matrix of %llu rows of %zu bytes and %u parameters, not of "
                        "%llu of %zu and %u",
                        drps_checkpoint_dir(cp), (unsigned long long)has->rows, has->row_bytes,
                        has->dim, (unsigned long long)want->rows, want->row_bytes, want->dim);
}

static int replay_log(struct replay *p, const struct drps_io *io, const struct drps_checkpoint *cp,
                      const struct snapshot *s, uint64_t round, uint64_t *round_out,
                      struct drps_err *err)
{
    char *path = drps_path_join(drps_checkpoint_dir(cp), DRPS_CHECKPOINT_VECTORS);
    int rc = path ? replay_open(p, io, path, s, err)
                  : drps_err_set(err, -ENOMEM, "no memory to read a log");
    *round_out = s->round;
    if (rc == 0) {
        rc = replay_to(p, round, err);
        *round_out = p->log.round;
        replay_close(p);
    }
    free(path);
    if (rc == 0 && round != UINT64_MAX && *round_out < round)
        rc = drps_err_set(
            err, DRPS_E_NOT_FOUND, "round %llu is not covered by %s: the last one there is %llu",
            (unsigned long long)round, drps_checkpoint_dir(cp), (unsigned long long)*round_out);
    return rc;
}

int drps_vector_log_replay(const struct drps_io *io, struct drps_checkpoint *cp,
                           const struct drps_matrix_shape *shape, uint64_t round,
                           drps_vector_apply apply, void *ctx, void *matrix, uint64_t *round_out,
                           struct drps_err *err)
{
    struct replay p = {.apply = apply, .ctx = ctx, .matrix = matrix};
    struct snapshot s;
    int rc = snapshot_read(cp, 0, &s, err);
    *round_out = 0;
    if (rc == 0) rc = check_shape(cp, &s.shape, shape, err);
    if (rc == 0) rc = drps_checkpoint_read(cp, 0, (size_t)shape->rows, matrix, err);
    return rc == 0 ? replay_log(&p, io, cp, &s, round, round_out, err) : rc;
}

int drps_vector_log_restore(const struct drps_checkpoints *c, const struct drps_matrix_shape *shape,
                            uint64_t round, drps_vector_apply apply, void *ctx, void *matrix,
                            uint64_t *round_out, struct drps_err *err)
{
    struct drps_checkpoint *cp;
    struct snapshot s;
    *round_out = 0;
    int rc = snapshot_open(c, round, &cp, &s, err);
    if (rc == 0)
        rc = drps_vector_log_replay(c->io, cp, shape, round, apply, ctx, matrix, round_out, err);
    drps_checkpoint_close(cp);
    return rc;
}

/* ---- What there is ---- */

int drps_vector_log_covered(const struct drps_checkpoints *c, uint64_t *first_out,
                            uint64_t *last_out, struct drps_err *err)
{
    struct replay p = {.apply = NULL};
    struct drps_checkpoint *cp;
    struct snapshot s;
    *first_out = *last_out = 0;
    int rc = snapshot_open(c, UINT64_MAX, &cp, &s, err);
    if (rc == 0) rc = replay_log(&p, c->io, cp, &s, UINT64_MAX, last_out, err);
    drps_checkpoint_close(cp);
    return rc < 0 ? rc : snapshot_first(c, first_out, err);
}

int drps_vector_log_verify(const struct drps_io *io, const struct drps_checkpoint *cp,
                           uint64_t *first_out, uint64_t *last_out, struct drps_err *err)
{
    struct replay p = {.apply = NULL};
    struct snapshot s;
    int rc = snapshot_read(cp, 0, &s, err);
    *first_out = *last_out = rc == 0 ? s.round : 0;
    return rc == 0 ? replay_log(&p, io, cp, &s, UINT64_MAX, last_out, err) : rc;
}
