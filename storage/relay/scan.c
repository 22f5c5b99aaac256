/* Scanning: all rows are written to partitions, and each partition is put in order and visited. */
#include "storage/relay/scan.h"

#include <string.h>

/* Rows of partition p from its entries to the room, in placed order. */
static int place_entries(struct drps_scan *sc, size_t p, const char *entries, size_t bytes,
                         struct drps_err *err)
{
    const size_t row_bytes = sc->st->config.row_bytes;
    const uint64_t first = p * sc->part_rows;
    for (size_t at = 0; at < bytes; at += sc->rows.entry_bytes) {
        uint32_t id;
        memcpy(&id, entries + at, sizeof(id));
        if (id < first || id - first >= sc->part_rows || id >= sc->st->config.rows)
            return drps_err_set(err, DRPS_E_CORRUPT,
                                "%s: row %u in the part of rows %llu on: check the disk", sc->path,
                                id, (unsigned long long)first);
        memcpy(sc->room + (size_t)(id - first) * row_bytes, entries + at + sizeof(id),
               sc->rows.entry_bytes - sizeof(id));
    }
    return 0;
}

/* Visit the rows of one partition: as they were created, unless a window has used them since. */
static int visit_part(struct drps_scan *sc, size_t p, drps_row_visit visit, void *ctx,
                      struct drps_err *err)
{
    const struct drps_store_config *c = &sc->st->config;
    const uint64_t first = p * sc->part_rows;
    const uint64_t left = c->rows - first;
    const size_t n = (size_t)(left < sc->part_rows ? left : sc->part_rows);
    const struct drps_scan_part *part = &sc->rows.parts[p];
    const size_t step = sc->rows.buffer_bytes;

    int rc = c->init(c->init_ctx, first, n, sc->room, err);
    for (uint64_t at = 0; at < part->written && rc == 0; at += step) {
        const uint64_t rest = part->written - at;
        const size_t bytes = rest < step ? (size_t)rest : step;
        rc = drps_io_read_at(c->io, sc->fd, sc->buffers, bytes, part->begin + at, sc->path, err);
        if (rc == 0) rc = place_entries(sc, p, sc->buffers, bytes, err);
    }
    return rc == 0 ? visit(ctx, first, n, sc->room, err) : rc;
}

int drps_relay_scan(struct drps_relay *st, size_t bytes, drps_row_visit visit, void *ctx,
                    struct drps_err *err)
{
    struct drps_scan sc;
    int rc = drps_scan_begin(&sc, st, bytes, err);
    if (rc == 0) rc = drps_scan_windows(&sc, err);
    if (rc == 0) rc = drps_scan_groups(&sc, err);
    if (rc == 0) rc = drps_scan_write(&sc, &sc.rows, err);
    for (size_t p = 0; p < sc.rows.n && rc == 0; p++)
        rc = visit_part(&sc, p, visit, ctx, err);
    const int ended = drps_scan_end(&sc, rc ? NULL : err);
    return rc ? rc : ended;
}
