/*
 * Reading a plan's records a step at a time, and scratch files for what comes out in another order
 * than it is stored. Shared inside index/.
 *
 * Whoever looks for next uses walks the steps backwards: so the records are read in runs in either
 * direction, and what such a walk produces (last step first) goes through a scratch file, which is
 * read back in any order.
 */
#ifndef DRPS_INDEX_PLAN_STEPS_H
#define DRPS_INDEX_PLAN_STEPS_H

#include <stddef.h>
#include <stdint.h>

#include "base/drps_err.h"
#include "base/drps_io.h"
#include "base/record/drps_recfile.h"

/* The records of one file, one a step, read in runs: forwards or backwards, as asked. Own; one
 * thread. */
struct steps;

/* Opens dir/name, which must hold `count` records. buffer_bytes is cut to 64 KiB .. 4 MiB. */
DRPS_MUST_CHECK
int drps_steps_open(const struct drps_io *io, const char *dir, const char *name, uint32_t kind,
                    uint64_t count, uint64_t buffer_bytes, struct steps **st_out,
                    struct drps_err *err);
void drps_steps_close(struct steps *st);

/* Record s, borrowed until the next call. This is where work on steps looks at io->stop. */
DRPS_MUST_CHECK
int drps_steps_record(struct steps *st, uint64_t s, const void **record_out, size_t *bytes_out,
                      struct drps_err *err);

/* Record s as a list of rows below `rows`, borrowed until the next call. */
DRPS_MUST_CHECK
int drps_steps_rows(struct steps *st, uint64_t s, uint64_t rows, const uint32_t **list_out,
                    size_t *n_out, struct drps_err *err);

/* Put "file: record s: " before the text of a failure, but not of an interruption; returns its
 * code.
 */
int drps_steps_fault(const struct steps *st, uint64_t s, struct drps_err *err);

/* A record file that is written, read back in any order, and gone. Zero it first. */
struct steps_scratch {
    const struct drps_io *io;
    char *path; /* own */
    struct drps_recwriter *writer;
    struct drps_recfile *file;
    void *buf; /* own: what drps_steps_scratch_read() filled */
    size_t cap;
};
DRPS_MUST_CHECK
int drps_steps_scratch_begin(struct steps_scratch *s, const struct drps_io *io, const char *dir,
                             const char *name, struct drps_err *err);
/* Turn from writing the scratch file to reading it. */
DRPS_MUST_CHECK
int drps_steps_scratch_turn(struct steps_scratch *s, struct drps_err *err);
/* Records first, first + stride ... (n of them) one after another in s->buf; piece i is set to
 * record i of these. */
DRPS_MUST_CHECK
int drps_steps_scratch_read(struct steps_scratch *s, uint64_t first, uint64_t stride, size_t n,
                            struct drps_piece *pieces, struct drps_err *err);
void drps_steps_scratch_end(struct steps_scratch *s);

#endif
