/* Copying rows from and to frames, in pieces of a register; rowcopy.h has the idea. */
#include "storage/relay/runs/rowcopy.h"

#include <string.h>

enum {
    LINE = 64,   /* of the cache */
    PIECE = 32,  /* bytes of a row, a register */
    AHEAD = 12,  /* rows */
    LARGE = 512, /* bytes of a row: in larger ones the processor sees by itself what comes next */
};

/* Copy n >= PIECE bytes in pieces; the last piece overlaps the one before it. */
static inline void copy_row(char *restrict to, const char *restrict from, size_t n)
{
    const size_t last = n - PIECE;
    for (size_t i = 0; i < last; i += PIECE)
        memcpy(to + i, from + i, PIECE);
    memcpy(to + last, from + last, PIECE);
}

static inline void prefetch_to_read(const char *row, size_t n)
{
    for (size_t i = 0; i < n; i += LINE)
        __builtin_prefetch(row + i, 0);
    __builtin_prefetch(row + n - 1, 0);
}

static inline void prefetch_to_write(const char *row, size_t n)
{
    for (size_t i = 0; i < n; i += LINE)
        __builtin_prefetch(row + i, 1);
    __builtin_prefetch(row + n - 1, 1);
}

static int in_pieces(size_t row_bytes)
{
    return row_bytes >= PIECE && row_bytes <= LARGE;
}

/* Rows of 8 bytes are copied by an instruction or two where the compiler knows their size. */

void drps_rowcopy_gather(char *to, const char *base, size_t row_bytes, const uint32_t *frames,
                         size_t n, size_t now)
{
    if (row_bytes == 8) {
        for (size_t i = 0; i < now; i++)
            memcpy(to + i * 8, base + (size_t)frames[i] * 8, 8);
    } else if (in_pieces(row_bytes)) {
        for (size_t i = 0; i < now; i++) {
            if (i + AHEAD < n) prefetch_to_read(base + frames[i + AHEAD] * row_bytes, row_bytes);
            copy_row(to + i * row_bytes, base + frames[i] * row_bytes, row_bytes);
        }
    } else {
        for (size_t i = 0; i < now; i++)
            memcpy(to + i * row_bytes, base + frames[i] * row_bytes, row_bytes);
    }
}

void drps_rowcopy_scatter(const char *from, char *base, size_t row_bytes, const uint32_t *frames,
                          size_t n, size_t now)
{
    if (row_bytes == 8) {
        for (size_t i = 0; i < now; i++)
            memcpy(base + (size_t)frames[i] * 8, from + i * 8, 8);
    } else if (in_pieces(row_bytes)) {
        for (size_t i = 0; i < now; i++) {
            if (i + AHEAD < n) prefetch_to_write(base + frames[i + AHEAD] * row_bytes, row_bytes);
            copy_row(base + frames[i] * row_bytes, from + i * row_bytes, row_bytes);
        }
    } else {
        for (size_t i = 0; i < now; i++)
            memcpy(base + frames[i] * row_bytes, from + i * row_bytes, row_bytes);
    }
}
