/* Moves rows through pieces of pinned memory. */
#include "storage/device/move.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"
#include "storage/device/drps_device_rows.h"

enum { IN, OUT, DIGIT_BITS = 11, DIGITS = 1 << DIGIT_BITS };

/* ---- Memory ---- */

static size_t with_frame(size_t row_bytes)
{
    return row_bytes + sizeof(uint32_t);
}

uint64_t mover_host_bytes(size_t row_bytes, uint64_t rows)
{
    return pieces_memory(with_frame(row_bytes), rows) +
           (uint64_t)pieces_rows(with_frame(row_bytes), rows) * sizeof(uint64_t);
}

uint64_t drps_device_rows_moving(size_t row_bytes, uint64_t rows)
{
    return pieces_memory(with_frame(row_bytes), rows);
}

int mover_open(struct mover *m, const struct drps_device_use *use, size_t row_bytes, uint64_t rows,
               struct drps_err *err)
{
    m->use = *use;
    m->row_bytes = row_bytes;
    m->piece_rows = pieces_rows(with_frame(row_bytes), rows);
    m->order = drps_array_new(m->piece_rows, sizeof(*m->order));
    if (!m->order) return drps_err_set(err, -ENOMEM, "no memory to move rows");
    int rc = pieces_open(&m->use, with_frame(row_bytes), rows, &m->in, err);
    if (rc == 0) rc = pieces_open(&m->use, with_frame(row_bytes), rows, &m->out, err);
    for (int i = 0; i < 2 * PIECES && rc == 0; i++) {
        void *memory = NULL;
        rc = DRPS_DEVICE_CALL(&m->use, err, alloc, m->piece_rows * with_frame(row_bytes), &memory);
        m->staging[i / PIECES][i % PIECES] = memory;
    }
    return rc;
}

void mover_close(struct mover *m)
{
    if (m->use.ops) {
        for (int i = 0; i < 2 * PIECES; i++)
            m->use.ops->release(m->use.dev, m->staging[i / PIECES][i % PIECES]);
        pieces_close(&m->use, &m->in);
        pieces_close(&m->use, &m->out);
    }
    free(m->order);
}

static char *at_place(const struct mover *m, uint32_t place)
{
    return m->below.base + (size_t)place * m->below.stride;
}

/* Where the rows of a piece begin, behind its frames. */
static size_t rows_at(const struct mover *m)
{
    return m->piece_rows * sizeof(uint32_t);
}

/* ---- In ---- */

static int load_piece(struct mover *m, const uint32_t *places, const uint32_t *frames, size_t n,
                      struct drps_err *err)
{
    struct drps_device_use *use = &m->use;
    const unsigned k = m->in.used % PIECES;
    char *pinned = m->in.pinned[k], *staging = m->staging[IN][k];
    const size_t bytes = n * m->row_bytes;
    int rc = m->in.used++ >= PIECES ? DRPS_DEVICE_CALL(use, err, wait, EVENT_IN + k) : 0;
    if (rc < 0) return rc;
    for (size_t i = 0; i < n; i++)
        memcpy(pinned + rows_at(m) + i * m->row_bytes, at_place(m, places[i]), m->row_bytes);
    memcpy(pinned, frames, n * sizeof(*frames));
    rc = DRPS_DEVICE_CALL(use, err, upload, DRPS_DEVICE_ROWS_IN, staging, pinned,
                          rows_at(m) + bytes);
    if (rc == 0)
        rc = DRPS_DEVICE_CALL(use, err, scatter, DRPS_DEVICE_ROWS_IN, &m->rows,
                              (const uint32_t *)(void *)staging, n, m->row_bytes,
                              staging + rows_at(m));
    return rc < 0 ? rc : DRPS_DEVICE_CALL(use, err, mark, DRPS_DEVICE_ROWS_IN, EVENT_IN + k);
}

int mover_load(struct mover *m, const uint32_t *places, const uint32_t *frames, size_t n,
               struct drps_err *err)
{
    int rc = 0;
    for (size_t i = 0; i < n && rc == 0; i += m->piece_rows) {
        const size_t some = n - i < m->piece_rows ? n - i : m->piece_rows;
        rc = load_piece(m, places + i, frames + i, some, err);
    }
    return rc;
}

/* ---- Out ---- */

/* Asks for the rows in frames [n], which piece k gets. */
static int ask_piece(struct mover *m, unsigned k, size_t n, struct drps_err *err)
{
    struct drps_device_use *use = &m->use;
    char *pinned = m->out.pinned[k], *staging = m->staging[OUT][k];
    int rc = DRPS_DEVICE_CALL(use, err, upload, DRPS_DEVICE_ROWS_OUT, staging, pinned,
                              n * sizeof(uint32_t));
    if (rc == 0)
        rc = DRPS_DEVICE_CALL(use, err, gather, DRPS_DEVICE_ROWS_OUT, &m->rows,
                              (const uint32_t *)(void *)staging, n, m->row_bytes,
                              staging + rows_at(m));
    if (rc == 0)
        rc = DRPS_DEVICE_CALL(use, err, download, DRPS_DEVICE_ROWS_OUT, pinned + rows_at(m),
                              staging + rows_at(m), n * m->row_bytes);
    if (rc == 0) rc = DRPS_DEVICE_CALL(use, err, mark, DRPS_DEVICE_ROWS_OUT, EVENT_OUT + k);
    return rc;
}

/* Sorts words by their upper halves, digit by digit. */
static void sort_piece(uint64_t *words, uint64_t *room, size_t n)
{
    for (int shift = 32; shift < 64; shift += DIGIT_BITS) {
        size_t first[DIGITS + 1] = {0};
        for (size_t i = 0; i < n; i++)
            first[(words[i] >> shift) % DIGITS + 1]++;
        for (size_t d = 0; d < DIGITS; d++)
            first[d + 1] += first[d];
        for (size_t i = 0; i < n; i++)
            room[first[(words[i] >> shift) % DIGITS]++] = words[i];
        memcpy(words, room, n * sizeof(*words));
    }
}

static int ask_moved(struct mover *m, unsigned k, uint64_t *moved, size_t n, struct drps_err *err)
{
    uint32_t *frames = (uint32_t *)(void *)m->out.pinned[k];
    sort_piece(moved, m->order, n);
    for (size_t i = 0; i < n; i++)
        frames[i] = (uint32_t)moved[i];
    return ask_piece(m, k, n, err);
}

static int store_piece(struct mover *m, unsigned k, const uint64_t *moved, size_t n,
                       struct drps_err *err)
{
    const char *from = m->out.pinned[k] + rows_at(m);
    int rc = DRPS_DEVICE_CALL(&m->use, err, wait, EVENT_OUT + k);
    for (size_t i = 0; i < n && rc == 0; i++)
        memcpy(at_place(m, (uint32_t)(moved[i] >> 32)), from + i * m->row_bytes, m->row_bytes);
    return rc;
}

int mover_store(struct mover *m, uint64_t *moved, size_t n, struct drps_err *err)
{
    const size_t each = m->piece_rows;
    int rc = n ? ask_moved(m, 0, moved, n < each ? n : each, err) : 0;
    for (size_t i = 0; i < n && rc == 0; i += each) {
        const unsigned k = (unsigned)(i / each % PIECES);
        const size_t next = i + each, some = n - i < each ? n - i : each;
        if (next < n)
            rc = ask_moved(m, (k + 1) % PIECES, moved + next, n - next < each ? n - next : each,
                           err);
        if (rc == 0) rc = store_piece(m, k, moved + i, some, err);
    }
    return rc;
}
