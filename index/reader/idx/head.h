/*
 * The header of an IDX file: which numbers follow, and how many. Private to index/reader/idx/.
 *
 *   offset  bytes    what
 *   0       2        0
 *   2       1        type of the numbers: 0x08 unsigned byte, 0x09 signed byte, 0x0b 2 bytes, 0x0c
 *                    4 bytes, 0x0d float, 0x0e double
 *   3       1        dimensions, D: 1 to 4
 *   4       4 each   size of each; the first is how many items there are
 *   4 + 4D           the numbers, those of the last dimension beside each other
 * Sizes and numbers are big-endian. Source: http://yann.lecun.com/exdb/mnist
 */
#ifndef DRPS_INDEX_READER_IDX_HEAD_H
#define DRPS_INDEX_READER_IDX_HEAD_H

#include "index/reader/idx/bytes.h"

enum {
    DRPS_IDX_U8 = 0x08,
    DRPS_IDX_I8 = 0x09,
    DRPS_IDX_I16 = 0x0b,
    DRPS_IDX_I32 = 0x0c,
    DRPS_IDX_F32 = 0x0d,
    DRPS_IDX_F64 = 0x0e,
};
enum {
    DRPS_IDX_DIMENSIONS = 4,      /* most of a file */
    DRPS_IDX_NUMBERS = 1 << 28,   /* most of an item */
    DRPS_IDX_SHAPE_BYTES = 4 * 14 /* of a shape as text */
};

struct drps_idx_head {
    unsigned type, dimensions;
    uint32_t sizes[DRPS_IDX_DIMENSIONS];
    size_t each;       /* numbers of an item */
    size_t item_bytes; /* below 2^31 */
    uint64_t items;    /* as many as sizes[0] */
    uint64_t end;      /* the byte behind the last item */
};

/* 1: a file that begins so is an IDX file. */
int drps_idx_looks(const char *head, size_t n);

/* Read the header. DRPS_E_FORMAT: "F: byte 2: ..." */
DRPS_MUST_CHECK
int drps_idx_head_read(struct drps_bytes *b, struct drps_idx_head *h, struct drps_err *err);

/* The file has ended within its items, or goes on behind them: DRPS_E_FORMAT. */
int drps_idx_cut(const struct drps_bytes *b, const struct drps_idx_head *h, struct drps_err *err);
DRPS_MUST_CHECK
int drps_idx_end(struct drps_bytes *b, const struct drps_idx_head *h, struct drps_err *err);

/* The sizes of an item as "28 x 28". */
const char *drps_idx_shape(const struct drps_idx_head *h, char out[DRPS_IDX_SHAPE_BYTES]);

static inline int drps_idx_is_real(unsigned type)
{
    return type == DRPS_IDX_F32 || type == DRPS_IDX_F64;
}

/* The number at p. */
double drps_idx_number(unsigned type, const uint8_t *p);

#endif
