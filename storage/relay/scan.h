/*
 * All rows in placed order, without disturbing them. Private to storage/relay/.
 *
 * Rows lie in frames and in runs, in the order of windows; so they are split among partitions of
 * the placed ids in a file, the scan file, and each partition is then put together in memory and
 * visited: two sequential passes over the rows. Runs are only looked at, so that training can go
 * on.
 *
 *     scan_file.c     partitions of the file, and a buffer for each
 *     scan_windows.c  rows in memory and on their way to windows, to their partitions
 *     scan.c          partitions, visited one after another
 *
 * The store's window thread must be idle meanwhile: its scratch arrays are used. So is the memory
 * of the runs, where that is enough (run_layout.h): what is not needed to look at them while rows
 * are split, then all of it.
 */
#ifndef DRPS_RELAY_SCAN_H
#define DRPS_RELAY_SCAN_H

#include <string.h>

#include "storage/relay/relay.h"

struct drps_scan_part {
    uint64_t begin, room; /* bytes: where it begins in the file, and what it may come to */
    uint64_t written;     /* bytes of it in the file */
    size_t used;          /* bytes of its buffer */
};

/* Entries of one size, split among parts of the file through a buffer each. */
struct drps_scan_split {
    size_t n, entry_bytes;
    size_t buffer_bytes;          /* whole entries */
    struct drps_scan_part *parts; /* own: [n] */
    char *buffers;                /* borrowed: [n][buffer_bytes] */
};

struct drps_scan {
    struct drps_relay *st;
    char *path; /* own */
    int fd;
    size_t shown;                /* bytes of each row */
    int grown;                   /* 1: the file has more room than what was set aside for it */
    uint64_t part_rows;          /* of a partition */
    struct drps_scan_split rows; /* to partitions: placed id, what is shown of the row */
    char *row;                   /* own: one row */

    /* Memory, of which a half is for a partition that is put together. */
    int lent;        /* 1: by the runs */
    char *own;       /* own, where it is not */
    size_t half;     /* bytes */
    char *room;      /* [part_rows] a partition's rows */
    uint64_t *there; /* bit i: row i of the partition at hand is in the room */
    char *entries;   /* what is read of it */
};

/* ---- scan_file.c ---- */

/* Open the scan file, with no entries, and with room for `bytes` of each row. drps_scan_end() is
 * the caller's, also after a failure. -ENOSPC: the disk has no room. */
DRPS_MUST_CHECK
int drps_scan_begin(struct drps_scan *sc, struct drps_relay *st, size_t bytes,
                    struct drps_err *err);
/* Give room back beyond what was set aside, and all memory. */
DRPS_MUST_CHECK
int drps_scan_end(struct drps_scan *sc, struct drps_err *err);

/* Get the memory for buffers, while runs are looked at; then that for partitions. -ENOMEM. */
DRPS_MUST_CHECK
int drps_scan_take_buffers(struct drps_scan *sc, struct drps_err *err);
void drps_scan_take_room(struct drps_scan *sc);

/* Write what the buffer of part p holds, or all buffers. DRPS_E_CORRUPT: a part would have more
 * than its room. */
DRPS_MUST_CHECK
int drps_scan_write_part(const struct drps_scan *sc, size_t p, struct drps_err *err);
DRPS_MUST_CHECK
int drps_scan_write(const struct drps_scan *sc, struct drps_err *err);

/* Put row `id` into its partition. */
DRPS_MUST_CHECK
static inline int drps_scan_put(struct drps_scan *sc, uint32_t id, const char *row,
                                struct drps_err *err)
{
    const size_t p = (size_t)(id / sc->part_rows);
    struct drps_scan_part *part = &sc->rows.parts[p];
    int rc = part->used == sc->rows.buffer_bytes ? drps_scan_write_part(sc, p, err) : 0;
    if (rc < 0) return rc;
    char *at = sc->rows.buffers + p * sc->rows.buffer_bytes + part->used;
    part->used += sc->rows.entry_bytes;
    memcpy(at, &id, sizeof(id));
    memcpy(at + sizeof(id), row, sc->rows.entry_bytes - sizeof(id));
    return 0;
}

/* ---- scan_windows.c ---- */

/* Put the rows of the two open windows, and those on their way to others, while runs are looked at.
 */
DRPS_MUST_CHECK
int drps_scan_windows(struct drps_scan *sc, struct drps_err *err);

#endif
