/* The scan file: its parts, and the buffers through which entries get there; scan.h has the idea.
 */
#include "storage/relay/scan.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"
#include "base/drps_size.h"

static const char scan_name[] = "scan"; /* there from the start, so that it has room */

static size_t most_of(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* The buffers take `bytes` together, or an entry each if that is more. */
static size_t buffers_init(struct drps_scan_split *split, size_t bytes)
{
    split->buffer_bytes = most_of(bytes / split->n / split->entry_bytes, 1) * split->entry_bytes;
    return split->n * split->buffer_bytes;
}

/* Parts of these numbers of entries, one behind the other, of which the first begins at byte `at`.
 * Returns the byte after the last. */
static uint64_t place_part(const struct drps_scan_split *split, size_t p, uint64_t at,
                           uint64_t entries)
{
    split->parts[p] = (struct drps_scan_part){.begin = at, .room = entries * split->entry_bytes};
    return at + split->parts[p].room;
}

static void lay_out(struct drps_scan *sc)
{
    uint64_t at = 0, left = sc->st->config.rows;
    for (size_t p = 0; p < sc->rows.n; p++, left -= sc->part_rows)
        at = place_part(&sc->rows, p, at, left < sc->part_rows ? left : sc->part_rows);
}

/* How much of each row is shown when `bytes` are asked for. */
static size_t shown(const struct drps_relay *st, size_t bytes)
{
    return bytes && bytes < st->config.row_bytes ? bytes : st->config.row_bytes;
}

/* What the file takes: for each row an entry of its placed id and what is shown of it. */
static uint64_t file_bytes(const struct drps_relay *st, size_t bytes)
{
    return st->config.rows * (shown(st, bytes) + sizeof(uint32_t));
}

static uint64_t set_aside(const struct drps_relay *st)
{
    return file_bytes(st, st->config.scan_bytes);
}

int drps_relay_reserve_scan(const struct drps_relay *st, struct drps_err *err)
{
    char *path = drps_path_join(st->config.dir, scan_name);
    if (!path) return drps_err_set(err, -ENOMEM, "no memory for the name of a file");
    int rc = drps_io_reserve(st->config.io, path, set_aside(st), err);
    free(path);
    return rc;
}

/* Take room for a scan that shows more than one for which room was set aside. */
static int grow(struct drps_scan *sc, struct drps_err *err)
{
    const uint64_t bytes = file_bytes(sc->st, sc->shown);
    char size[32];
    if (bytes <= set_aside(sc->st)) return 0;
    sc->grown = 1; /* in part, if it fails */
    const int rc = drps_io_fallocate(sc->st->config.io, sc->fd, bytes, err);
    if (rc >= 0 || rc == DRPS_E_INTERRUPTED) return rc < 0 ? rc : 0;
    return drps_err_set(err, rc,
                        "no space left for %s, which needs %s while all rows are put in order: %s; "
                        "free some space",
                        sc->path, drps_size_format(bytes, size, sizeof(size)), drps_err_name(rc));
}

static int no_memory(const struct drps_scan *sc, struct drps_err *err)
{
    return drps_err_set(err, -ENOMEM, "no memory to put %llu rows in order",
                        (unsigned long long)sc->st->config.rows);
}

int drps_scan_end(struct drps_scan *sc, struct drps_err *err)
{
    const struct drps_io *io = sc->st->config.io;
    const int rc = sc->grown ? drps_io_resize(io, sc->fd, sc->path, set_aside(sc->st), err) : 0;
    drps_io_close(io, sc->fd);
    free(sc->path);
    free(sc->rows.parts);
    free(sc->own);
    free(sc->row);
    return rc;
}

int drps_scan_begin(struct drps_scan *sc, struct drps_relay *st, size_t bytes, struct drps_err *err)
{
    const size_t row_bytes = st->config.row_bytes;
    *sc = (struct drps_scan){.st = st, .fd = -1, .shown = shown(st, bytes)};
    sc->lent = st->layout.lends && !st->looking;
    sc->half = (size_t)(sc->lent ? drps_runs_lend(st->runs).bytes
                                 : drps_run_layout_scan(st->config.rows, row_bytes)) /
               2;
    sc->part_rows = drps_run_layout_part(sc->half, row_bytes);
    sc->rows.n = (size_t)((st->config.rows - 1) / sc->part_rows + 1);
    sc->rows.entry_bytes = sc->shown + sizeof(uint32_t);
    sc->rows.parts = calloc(sc->rows.n, sizeof(*sc->rows.parts));
    sc->path = drps_path_join(st->config.dir, scan_name);
    sc->row = malloc(row_bytes);
    if (!sc->path || !sc->rows.parts || !sc->row) return no_memory(sc, err);
    lay_out(sc);
    int rc = drps_io_open(st->config.io, sc->path, O_RDWR, &sc->fd, err);
    return rc == 0 ? grow(sc, err) : rc;
}

/* ---- Memory ---- */

int drps_scan_take_buffers(struct drps_scan *sc, struct drps_err *err)
{
    if (sc->lent) {
        const struct drps_runs_lent lent = drps_runs_lend(sc->st->runs);
        (void)buffers_init(&sc->rows, lent.bytes); /* an entry each has room: run_layout.c */
        sc->rows.buffers = lent.at;
        return 0;
    }
    const size_t buffers = buffers_init(&sc->rows, sc->half);
    sc->own = malloc(sc->half + most_of(buffers, sc->half)); /* entries are read there, too */
    if (!sc->own) return no_memory(sc, err);
    sc->rows.buffers = sc->own + sc->half;
    return 0;
}

/* The buffers are empty by now. */
void drps_scan_take_room(struct drps_scan *sc)
{
    char *at = sc->lent ? drps_runs_lend(sc->st->runs).at : sc->own;
    const size_t rows_bytes = (size_t)sc->part_rows * sc->st->config.row_bytes;
    sc->room = at;
    sc->there = (uint64_t *)(void *)(at + (rows_bytes + 7) / 8 * 8);
    sc->entries = at + sc->half;
}

int drps_scan_write_part(const struct drps_scan *sc, size_t p, struct drps_err *err)
{
    const struct drps_scan_split *split = &sc->rows;
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

int drps_scan_write(const struct drps_scan *sc, struct drps_err *err)
{
    int rc = 0;
    for (size_t p = 0; p < sc->rows.n && rc == 0; p++)
        rc = drps_scan_write_part(sc, p, err);
    return rc;
}
