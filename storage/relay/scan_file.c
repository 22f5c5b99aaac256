/* The scan file: its parts, and the buffers through which entries get there; scan.h has the idea.
 */
#include "storage/relay/scan.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"

static const char scan_name[] = "scan"; /* there from the start, so that it has room */

void drps_scan_end(struct drps_scan *sc)
{
    drps_io_close(sc->st->config.io, sc->fd);
    free(sc->path);
    free(sc->rows.parts);
    free(sc->ids.parts);
    free(sc->since);
    free(sc->buffers);
    free(sc->room);
    free(sc->row);
}

static size_t most_of(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* n parts, whose buffers take `bytes` together, or an entry each if that is more. */
static void split_init(struct drps_scan_split *split, size_t n, size_t entry_bytes, uint64_t bytes)
{
    *split = (struct drps_scan_split){.n = n, .entry_bytes = entry_bytes};
    if (!n) return;
    split->buffer_bytes = most_of((size_t)(bytes / n / entry_bytes), 1) * entry_bytes;
    split->parts = calloc(n, sizeof(*split->parts));
}

/* The file has the partitions, and behind them the groups' lists. A group's stream has counts, too,
 * so that its rows take less than all of its bytes. */
static void lay_out(struct drps_scan *sc)
{
    const struct drps_relay *st = sc->st;
    uint64_t at = 0;
    for (size_t p = 0; p < sc->rows.n; p++, at += sc->part_rows * sc->rows.entry_bytes)
        sc->rows.parts[p] =
            (struct drps_scan_part){.begin = at, .room = sc->part_rows * sc->rows.entry_bytes};
    for (size_t g = 0; g < sc->ids.n; g++) {
        const uint64_t rows =
            drps_streams_bytes(st->streams, st->source.windows + g) / st->config.row_bytes;
        sc->ids.parts[g] = (struct drps_scan_part){.begin = at, .room = rows * sc->ids.entry_bytes};
        at += sc->ids.parts[g].room;
    }
}

/* An entry has a placed id, and what is shown of its row. */
static size_t entry_bytes(const struct drps_relay *st)
{
    const size_t shown = st->config.scan_bytes ? st->config.scan_bytes : st->config.row_bytes;
    return shown + sizeof(uint32_t);
}

int drps_relay_reserve_scan(const struct drps_relay *st, struct drps_err *err)
{
    char *path = drps_path_join(st->config.dir, scan_name);
    if (!path) return drps_err_set(err, -ENOMEM, "no memory for the name of a file");
    /* Groups' rows have their ids in the file once more. */
    const size_t entry = entry_bytes(st) + (st->layout.groups ? sizeof(uint32_t) : 0);
    int rc = drps_io_reserve(st->config.io, path, st->config.rows * entry, err);
    free(path);
    return rc;
}

int drps_scan_begin(struct drps_scan *sc, struct drps_relay *st, struct drps_err *err)
{
    const size_t row_bytes = st->config.row_bytes;
    const uint64_t half = st->share.scan_bytes / 2;
    const size_t groups = st->layout.groups;
    *sc = (struct drps_scan){.st = st, .fd = -1};
    sc->part_rows = half / row_bytes ? half / row_bytes : 1;
    split_init(&sc->rows, (size_t)((st->config.rows + sc->part_rows - 1) / sc->part_rows),
               entry_bytes(st), half);
    sc->room_bytes = (size_t)sc->part_rows * row_bytes;
    split_init(&sc->ids, groups, sizeof(uint32_t), sc->room_bytes);
    sc->room_bytes = most_of(sc->room_bytes, groups * sc->ids.buffer_bytes);
    sc->path = drps_path_join(st->config.dir, scan_name);
    sc->since = drps_array_new(groups, sizeof(*sc->since));
    sc->buffers = sc->rows.buffers = drps_array_new(sc->rows.n, sc->rows.buffer_bytes);
    sc->room = sc->ids.buffers = malloc(sc->room_bytes);
    sc->row = malloc(row_bytes);
    if (!sc->path || !sc->rows.parts || (groups && !sc->ids.parts) || !sc->since || !sc->buffers ||
        !sc->room || !sc->row)
        return drps_err_set(err, -ENOMEM, "no memory to put %llu rows in order",
                            (unsigned long long)st->config.rows);
    lay_out(sc);
    return drps_io_open(st->config.io, sc->path, O_RDWR, &sc->fd, err);
}

int drps_scan_write_part(const struct drps_scan *sc, struct drps_scan_split *split, size_t p,
                         struct drps_err *err)
{
    struct drps_scan_part *part = &split->parts[p];
    if (part->written + part->used > part->room)
        return drps_err_set(err, DRPS_E_CORRUPT,
                            "%s: rows appear twice: the plan's windows contradict each other; make "
                            "the plan anew",
                            sc->path);
    int rc = drps_io_write_at(sc->st->config.io, sc->fd, split->buffers + p * split->buffer_bytes,
                              part->used, part->begin + part->written, sc->path, err);
    part->written += part->used;
    part->used = 0;
    return rc;
}

int drps_scan_write(const struct drps_scan *sc, struct drps_scan_split *split, struct drps_err *err)
{
    int rc = 0;
    for (size_t p = 0; p < split->n && rc == 0; p++)
        rc = drps_scan_write_part(sc, split, p, err);
    return rc;
}
