/*
 * Fuzz target of logs of vectors: whatever a log says, restoring gives an error, or the matrix
 * after a round, the same each time, and checking it says the same. Input: byte 0, bit 0: the rest
 * is the file. Else it is rounds, which are signed: bits 1 and 2 of a byte are the kind, the others
 * how far its number is from the next one; two bytes of length; the payload.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_checksum.h"
#include "base/drps_endian.h"
#include "engine/checkpoint/vectors/drps_vector_log.h"
#include "engine/checkpoint/vectors/frame.h"
#include "support/base_plans.h"
#include "support/edited.h"
#include "support/fuzz_check.h"
#include "support/scratch.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
const char *__asan_default_options(void);

/* A log may ask for more memory than there is: that is an error like any other. */
const char *__asan_default_options(void)
{
    return "allocator_may_return_null=1";
}

enum { ROWS = 6, DIM = 2, ROW_BYTES = 12, FIRST = 4, FILE_BYTES = 1 << 17 };
static const struct drps_matrix_shape shape = {ROWS, ROW_BYTES, DIM};

/* A checkpoint, made once; its log is another for each input. */
static const struct drps_checkpoints *place(void)
{
    static struct drps_checkpoints c;
    struct drps_err err = DRPS_ERR_INIT;
    const struct drps_vector_log_options o = {0};
    const char matrix[ROWS * ROW_BYTES] = {0};
    struct drps_vector_log *log;
    if (c.dir) return &c;
    json_t *manifest = json_object();
    const char *root = scratch_path(base_scratch(), "all");
    CHECK_OK(drps_checkpoints_init(&c, drps_io_os(), root, 0, &err));
    CHECK_OK(drps_vector_log_begin(&c, &shape, &o, FIRST, matrix, manifest, &log, &err));
    drps_vector_log_close(log);
    json_decref(manifest);
    return &c;
}

/* ---- The log ---- */

struct file {
    unsigned char *bytes; /* [FILE_BYTES] */
    size_t n;
};

static void put_frame(struct file *f, uint32_t kind, uint64_t round, const void *payload,
                      size_t bytes)
{
    const struct frame frame = {.kind = kind,
                                .round = round,
                                .offset = f->n,
                                .synced = f->n,
                                .bytes = bytes,
                                .checksum = drps_checksum(payload, bytes)};
    const size_t all = FRAME_HEAD_BYTES + (size_t)frame_padded(bytes);
    if (all > FILE_BYTES - f->n) return;
    memset(f->bytes + f->n, 0, all);
    frame_encode(&frame, f->bytes + f->n);
    if (bytes) memcpy(f->bytes + f->n + FRAME_HEAD_BYTES, payload, bytes);
    f->n += all;
}

static void put_rounds(struct file *f, struct script *s)
{
    unsigned char begin[24];
    uint64_t round = FIRST;
    drps_put_u64(begin, ROWS);
    drps_put_u64(begin + 8, ROW_BYTES);
    drps_put_u64(begin + 16, DIM);
    put_frame(f, FRAME_BEGIN, FIRST, begin, sizeof(begin));
    while (s->left) {
        const uint8_t what = script_byte(s);
        const size_t want = (size_t)script_number(s, 2), n = want < s->left ? want : s->left;
        round += 1 + (what >> 3);
        put_frame(f, what >> 1 & 3, round, s->at, n);
        s->at += n;
        s->left -= n;
    }
}

static void write_log(const struct drps_checkpoints *c, struct script *s)
{
    char path[SCRATCH_PATH_BYTES];
    struct file f = {.bytes = malloc(FILE_BYTES)};
    CHECK(f.bytes);
    (void)snprintf(path, sizeof(path), "%s/1/vectors.log", c->dir);
    if (script_byte(s) & 1)
        scratch_write(path, s->at, s->left);
    else {
        put_rounds(&f, s);
        scratch_write(path, f.bytes, f.n);
    }
    free(f.bytes);
}

/* ---- Reading it ---- */

/* Uses all that a round has. */
static int apply(void *ctx, const struct drps_vector_round *round, void *matrix,
                 struct drps_err *err)
{
    uint32_t *rounds = ctx;
    (void)err;
    ++*rounds;
    for (uint32_t i = 0; i < round->note_bytes; i++)
        *(char *)matrix ^= ((const char *)round->note)[i];
    for (uint32_t b = 0; b < round->n; b++) {
        const struct drps_vectors *v = &round->batches[b];
        for (uint32_t i = 0; i < v->n; i++)
            for (uint32_t e = v->first[i]; e < v->first[i + 1]; e++)
                for (uint32_t k = 0; k < v->dim; k++) {
                    char *cell = (char *)matrix + (size_t)v->ids[e] * ROW_BYTES + k * 4;
                    const uint32_t bits = drps_get_u32(cell), u = drps_get_u32(&v->u[i * DIM + k]);
                    drps_put_u32(cell, bits + u * drps_get_u32(&v->values[e]) + round->sources[b]);
                }
    }
    return 0;
}

static int restore(const struct drps_checkpoints *c, uint64_t round, char *matrix,
                   uint64_t *round_out, struct drps_err *err)
{
    uint32_t rounds = 0;
    int rc = drps_vector_log_restore(c, &shape, round, apply, &rounds, matrix, round_out, err);
    if (rc == 0) CHECK(*round_out >= FIRST && rounds == *round_out - FIRST);
    return rc;
}

/* The round is the last one, and comes back when it is asked for. */
static void check_again(const struct drps_checkpoints *c, uint64_t round, const char *matrix)
{
    struct drps_err err = DRPS_ERR_INIT;
    uint64_t got, first, last;
    char *again = malloc((size_t)ROWS * ROW_BYTES);
    CHECK(again);
    CHECK_OK(restore(c, round, again, &got, &err));
    CHECK(got == round && memcmp(matrix, again, (size_t)ROWS * ROW_BYTES) == 0);
    CHECK_OK(drps_vector_log_covered(c, &first, &last, &err));
    CHECK(first == FIRST && last == round);
    CHECK(restore(c, round + 1, again, &got, &err) == DRPS_E_NOT_FOUND);
    free(again);
}

static int verify(const struct drps_checkpoints *c, uint64_t *rounds, struct drps_err *err)
{
    struct drps_checkpoint *cp;
    CHECK(drps_checkpoint_open(c, 1, &cp, err) == 0);
    uint64_t first, last;
    const int rc = drps_vector_log_verify(drps_io_os(), cp, &first, &last, err);
    CHECK(first == FIRST && last >= first);
    *rounds = last - first;
    drps_checkpoint_close(cp);
    return rc;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct script s = {data, size};
    const struct drps_checkpoints *c = place();
    struct drps_err err = DRPS_ERR_INIT, verified = DRPS_ERR_INIT;
    uint64_t got, rounds;
    char *matrix = malloc((size_t)ROWS * ROW_BYTES);
    CHECK(matrix);
    write_log(c, &s);
    const int rc = restore(c, UINT64_MAX, matrix, &got, &err);
    fuzz_show("vector log", rc, rc < 0 ? err.text : got > FIRST ? "rounds" : "none");
    CHECK(rc == 0 ? !err.text[0] : rc == DRPS_E_CORRUPT && err.text[0]);
    CHECK(verify(c, &rounds, &verified) == rc);
    if (rc == 0) CHECK(rounds == got - FIRST);
    if (rc == 0) check_again(c, got, matrix);
    free(matrix);
    return 0;
}

#ifdef DRPS_FUZZ_MAIN
#include "support/fuzz_main.h"
#endif
