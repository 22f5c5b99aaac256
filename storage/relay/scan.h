/*
 * All rows in placed order, without disturbing them. Private to storage/relay/.
 *
 * Rows lie in frames and in streams, in the order of windows; so they are split among partitions of
 * the placed ids in a file, the scan file, and each partition is then put together in memory and
 * visited: two sequential passes over the rows. Streams are only read, so that training can go on.
 *
 *     scan_file.c     parts of the file, and a buffer for each
 *     scan_streams.c  streams of a store, or of a saved one
 *     scan_windows.c  rows in memory and in windows' streams, to their partitions
 *     scan_groups.c   rows in groups' streams, to theirs
 *     scan.c          partitions, visited one after another
 *
 * The store's window thread must be idle meanwhile: its scratch arrays are used.
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
    char *buffers;                /* [n][buffer_bytes] */
};

struct drps_scan {
    struct drps_relay *st;
    char *path; /* own */
    int fd;
    size_t shown;                /* bytes of each row */
    int grown;                   /* 1: the file has more room than what was set aside for it */
    uint64_t part_rows;          /* of a partition */
    struct drps_scan_split rows; /* to partitions: placed id, what is shown of the row */
    struct drps_scan_split ids;  /* to groups: placed ids in the order of the group's stream */
    uint64_t *since; /* own: [groups] the first window whose rows are in the group's stream */
    char *buffers;   /* own: of `rows` */
    char *room;      /* own: a partition's rows; before these, the buffers of `ids` */
    size_t room_bytes;
    uint64_t *there; /* own: bit i: row i of the partition at hand is in the room */
    char *row;       /* own: one row */
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

/* Write what the buffer of part p holds, or all buffers. DRPS_E_CORRUPT: a part would have more
 * than its room. */
DRPS_MUST_CHECK
int drps_scan_write_part(const struct drps_scan *sc, struct drps_scan_split *split, size_t p,
                         struct drps_err *err);
DRPS_MUST_CHECK
int drps_scan_write(const struct drps_scan *sc, struct drps_scan_split *split,
                    struct drps_err *err);

/* Returns room for the next entry of part p, which the caller fills at once; NULL and *rc_out on
 * failure. */
static inline char *drps_scan_next_entry(const struct drps_scan *sc, struct drps_scan_split *split,
                                         size_t p, int *rc_out, struct drps_err *err)
{
    struct drps_scan_part *part = &split->parts[p];
    *rc_out = part->used == split->buffer_bytes ? drps_scan_write_part(sc, split, p, err) : 0;
    if (*rc_out < 0) return NULL;
    char *at = split->buffers + p * split->buffer_bytes + part->used;
    part->used += split->entry_bytes;
    return at;
}

/* Put row `id` into its partition. */
DRPS_MUST_CHECK
static inline int drps_scan_put(struct drps_scan *sc, uint32_t id, const char *row,
                                struct drps_err *err)
{
    int rc;
    char *at = drps_scan_next_entry(sc, &sc->rows, (size_t)(id / sc->part_rows), &rc, err);
    if (!at) return rc;
    memcpy(at, &id, sizeof(id));
    memcpy(at + sizeof(id), row, sc->rows.entry_bytes - sizeof(id));
    return 0;
}

/* ---- scan_streams.c ---- */

/* Returns the bytes that a stream has. */
uint64_t drps_scan_stream_bytes(const struct drps_relay *st, size_t stream);

/* Begin to read a stream, and read the next n bytes of it. */
DRPS_MUST_CHECK
int drps_scan_begin_stream(struct drps_relay *st, size_t stream, struct drps_err *err);
DRPS_MUST_CHECK
int drps_scan_read(struct drps_relay *st, void *bytes, size_t n, struct drps_err *err);

/* Put the next row of the stream that is read, which is row `id`. */
DRPS_MUST_CHECK
int drps_scan_take(struct drps_scan *sc, uint32_t id, struct drps_err *err);

/* End the reading of a stream. rc 0: of all `taken` bytes that were due; it must hold no more. Else
 * what failed meanwhile, which is returned. */
DRPS_MUST_CHECK
int drps_scan_end_stream(struct drps_relay *st, size_t stream, uint64_t taken, int rc,
                         struct drps_err *err);

/* ---- scan_windows.c ---- */

/* Put the rows of the two open windows, those held, and those in windows' streams. */
DRPS_MUST_CHECK
int drps_scan_windows(struct drps_scan *sc, struct drps_err *err);

/* How many of a window's far rows have each use distance, to st->counts. */
void drps_scan_count(struct drps_relay *st, const struct drps_use_distances *distances);

/* The ids in st->ids [n] of these rows to st->order: those of distance d from position
 * st->counts[d] on, which becomes the position after the last; none where st->counts[d] is
 * UINT32_MAX. */
void drps_scan_order_ids(struct drps_relay *st, const struct drps_use_distances *distances,
                         size_t n);

/* ---- scan_groups.c ---- */

/* Put the rows in groups' streams. */
DRPS_MUST_CHECK
int drps_scan_groups(struct drps_scan *sc, struct drps_err *err);

#endif
