/* Scanning: all rows are written to partitions, and each partition is put in order and visited. */
#include "storage/relay/scan.h"

#include <string.h>

enum { READ_MOST = 1 << 20 }; /* bytes of a request, where an entry has no more */

/* Marks row i of the partition at hand as there. Returns 1 if it was there before. */
static int mark(struct drps_scan *sc, size_t i)
{
    const uint64_t bit = UINT64_C(1) << i % 64;
    const int was = (sc->there[i / 64] & bit) != 0;
    sc->there[i / 64] |= bit;
    return was;
}

static int is_there(const struct drps_scan *sc, size_t i)
{
    return (int)(sc->there[i / 64] >> i % 64 & 1);
}

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
        if (mark(sc, (size_t)(id - first)))
            return drps_err_set(err, DRPS_E_CORRUPT,
                                "%s: row %u appears twice: the plan's windows contradict each "
                                "other; make the plan anew",
                                sc->path, id);
        memcpy(sc->room + (size_t)(id - first) * row_bytes, entries + at + sizeof(id),
               sc->rows.entry_bytes - sizeof(id));
    }
    return 0;
}

/* How much of a partition one request reads. */
static size_t read_bytes(const struct drps_scan *sc)
{
    const size_t room = sc->half, entry = sc->rows.entry_bytes;
    const size_t most = room < READ_MOST ? room : READ_MOST;
    return most < entry ? entry : most / entry * entry;
}

/* The entries of partition p to the room. */
static int read_part(struct drps_scan *sc, size_t p, struct drps_err *err)
{
    const struct drps_scan_part *part = &sc->rows.parts[p];
    const size_t step = read_bytes(sc);
    int rc = 0;
    for (uint64_t at = 0; at < part->written && rc == 0; at += step) {
        const uint64_t rest = part->written - at;
        const size_t bytes = rest < step ? (size_t)rest : step;
        rc = drps_io_read_at(sc->st->config.io, sc->fd, sc->entries, bytes, part->begin + at,
                             sc->path, err);
        if (rc == 0) rc = place_entries(sc, p, sc->entries, bytes, err);
    }
    return rc;
}

/* Creates, among the n rows from `first` on, those that no window has used yet. */
static int create_others(const struct drps_scan *sc, uint64_t first, size_t n, struct drps_err *err)
{
    const struct drps_store_config *c = &sc->st->config;
    int rc = 0;
    for (size_t i = 0, end; i < n && rc == 0; i = end) {
        for (end = i; end < n && !is_there(sc, end);)
            end++;
        if (end > i)
            rc = c->init(c->init_ctx, first + i, end - i, sc->room + i * c->row_bytes, err);
        while (end < n && is_there(sc, end))
            end++;
    }
    return rc;
}

/* Visit the rows of partition p: as the last window left them, or as they are created. */
static int visit_part(struct drps_scan *sc, size_t p, drps_row_visit visit, void *ctx,
                      struct drps_err *err)
{
    const uint64_t first = p * sc->part_rows;
    const uint64_t left = sc->st->config.rows - first;
    const size_t n = (size_t)(left < sc->part_rows ? left : sc->part_rows);
    memset(sc->there, 0, DRPS_DISTANCE_WORDS(n) * sizeof(*sc->there));
    int rc = read_part(sc, p, err);
    if (rc == 0) rc = create_others(sc, first, n, err);
    return rc == 0 ? visit(ctx, first, n, sc->room, err) : rc;
}

/* All rows to their partitions. */
static int split(struct drps_scan *sc, struct drps_err *err)
{
    struct drps_runs *runs = sc->st->runs;
    int rc = drps_relay_end_run(sc->st, err);
    if (rc == 0) rc = drps_runs_look(runs, err);
    if (rc == 0) rc = drps_scan_take_buffers(sc, err);
    if (rc == 0) rc = drps_scan_windows(sc, err);
    if (rc == 0) rc = drps_scan_write(sc, err);
    const int looked = drps_runs_looked(runs, rc ? NULL : err);
    return rc ? rc : looked;
}

int drps_relay_scan(struct drps_relay *st, size_t bytes, drps_row_visit visit, void *ctx,
                    struct drps_err *err)
{
    struct drps_scan sc;
    int rc = drps_scan_begin(&sc, st, bytes, err);
    if (rc == 0) rc = split(&sc, err);
    if (rc == 0) drps_scan_take_room(&sc);
    for (size_t p = 0; p < sc.rows.n && rc == 0; p++)
        rc = visit_part(&sc, p, visit, ctx, err);
    const int ended = drps_scan_end(&sc, rc ? NULL : err);
    return rc ? rc : ended;
}
