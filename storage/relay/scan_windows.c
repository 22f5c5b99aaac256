/*
 * The rows of a scan that are in memory, or in the streams of windows. Which rows these are, and in
 * which order, the records of windows say; scan.h has the idea.
 */
#include <string.h>

#include "storage/relay/save.h"
#include "storage/relay/scan.h"

/* ---- Rows in frames ---- */

/* Put the row of a frame, which is row `id`; of a saved store, note which row it is. */
static int put_frame(struct drps_scan *sc, uint32_t id, uint32_t frame, struct drps_err *err)
{
    const struct drps_relay *st = sc->st;
    if (!st->looking)
        return drps_scan_put(sc, id, st->rows + (size_t)frame * st->config.row_bytes, err);
    st->restore->ids[frame] = id;
    return 0;
}

/* A drps_saved_visit. */
static int put_saved(void *ctx, uint64_t frame, const char *row, struct drps_err *err)
{
    struct drps_scan *sc = ctx;
    return drps_scan_put(sc, sc->st->restore->ids[frame], row, err);
}

/* ---- Rows of the open windows ---- */

/* Put the rows of window q, which is open: the one that is run, or the next. */
static int scan_open_window(struct drps_scan *sc, uint64_t q, struct drps_err *err)
{
    struct drps_relay *st = sc->st;
    const struct drps_relay_window *win = &st->open[q % 2];
    struct drps_store_window head;
    int rc = st->source.read(st->source.ctx, drps_relay_number(st, q), &head, st->ids, NULL,
                             &st->prev, err);
    for (size_t s = 0; rc == 0 && s < head.n; s++) {
        const int far = st->prev.marks[s / 64] >> s % 64 & 1;
        if (q > st->closing && !far) continue; /* seen with the window before */
        rc = put_frame(sc, st->ids[s], win->frame[s], err);
    }
    return rc;
}

/* ---- Rows on their way to a window ---- */

/* 1: rows that window q uses and that were used last `prev` windows before have left that window.
 */
static int has_arrived(const struct drps_relay *st, uint64_t q, uint32_t prev)
{
    if (prev < 2 || prev > q || q - prev >= st->closing) return 0;
    return 1;
}

/* 1: such rows are in the stream of window q: they were sent there directly, or the stream of its
 * group was passed on to its windows since. */
static int is_in_window_stream(const struct drps_relay *st, uint64_t q, uint32_t prev)
{
    const uint32_t w = drps_relay_number(st, q - prev);
    const uint32_t route = drps_relay_route(st, w, prev);
    if (route < st->source.windows) return 1;
    /* A group's stream is passed on when the first window of the group before it closes. */
    const uint32_t span = st->layout.span;
    const uint32_t group = drps_relay_number(st, q) / span;
    const uint32_t before = (group + st->layout.groups - 1) % st->layout.groups;
    const uint64_t first = q - drps_relay_number(st, q) % span; /* of this pass of the group */
    const uint64_t group_rows = before + 1 == st->layout.groups
                                    ? st->source.windows - (uint64_t)before * span
                                    : span; /* windows of the group before */
    return first >= group_rows && first - group_rows < st->closing;
}

/* 1: such rows are held in memory for window q. */
static int is_held(const struct drps_relay *st, uint64_t q, uint32_t prev)
{
    return has_arrived(st, q, prev) && drps_relay_held(st, q - prev, prev);
}

static int is_in_stream(const struct drps_relay *st, uint64_t q, uint32_t prev)
{
    return has_arrived(st, q, prev) && !drps_relay_held(st, q - prev, prev) &&
           is_in_window_stream(st, q, prev);
}

void drps_scan_count(struct drps_relay *st, const struct drps_use_distances *distances)
{
    memset(st->counts, 0, (st->source.windows + 2) * sizeof(*st->counts));
    for (size_t i = 0; i < distances->n_far; i++)
        st->counts[distances->far[i]]++;
}

void drps_scan_order_ids(struct drps_relay *st, const struct drps_use_distances *distances,
                         size_t n)
{
    (void)drps_pick(&st->picker, distances->marks, n, 1, st->ids, st->picked);
    for (size_t i = 0; i < distances->n_far; i++) {
        uint32_t *at = &st->counts[distances->far[i]];
        if (*at != UINT32_MAX) st->order[(*at)++] = st->picked[i];
    }
}

/* Put the ids of those rows of window q that are where `is_there` says into st->order, in the order
 * in which they left. Returns how many they are. */
static size_t list_arrived(struct drps_relay *st, uint64_t q, size_t n,
                           int (*is_there)(const struct drps_relay *, uint64_t, uint32_t))
{
    uint32_t at = 0;
    drps_scan_count(st, &st->prev);
    for (uint32_t d = st->source.windows; d > 1; d--) {
        const uint32_t rows = st->counts[d] && is_there(st, q, d) ? st->counts[d] : 0;
        st->counts[d] = rows ? at : UINT32_MAX;
        at += rows;
    }
    drps_scan_order_ids(st, &st->prev, n);
    return at;
}

static int scan_stream(struct drps_scan *sc, uint64_t q, size_t n, struct drps_err *err)
{
    struct drps_relay *st = sc->st;
    const uint32_t w = drps_relay_number(st, q);
    const size_t arrived = list_arrived(st, q, n, is_in_stream);
    int rc = drps_scan_begin_stream(st, w, err);
    if (rc < 0) return rc;
    for (size_t i = 0; i < arrived && rc == 0; i++)
        rc = drps_scan_take(sc, st->order[i], err);
    return drps_scan_end_stream(st, w, (uint64_t)arrived * st->config.row_bytes, rc, err);
}

static int scan_held(struct drps_scan *sc, uint64_t q, size_t n, struct drps_err *err)
{
    struct drps_relay *st = sc->st;
    const uint32_t w = drps_relay_number(st, q);
    const size_t held = list_arrived(st, q, n, is_held);
    int rc = 0;
    if (held != drps_held_rows_count(st->held_rows, w))
        return drps_err_set(err, DRPS_E_CORRUPT,
                            "window %u: %zu rows should wait in memory: the plan's windows "
                            "contradict each other; make the plan anew",
                            w, held);
    drps_held_rows_take(st->held_rows, w, 0, st->picked);
    for (size_t i = 0; i < held && rc == 0; i++)
        rc = put_frame(sc, st->order[i], st->picked[i], err);
    return rc;
}

/* Put the rows on their way to window q, held in memory or in its stream. */
static int scan_coming(struct drps_scan *sc, uint64_t q, struct drps_err *err)
{
    struct drps_relay *st = sc->st;
    const uint32_t w = drps_relay_number(st, q);
    struct drps_store_window head;
    if (!drps_scan_stream_bytes(st, w) && !drps_held_rows_count(st->held_rows, w)) return 0;
    int rc = st->source.read(st->source.ctx, w, &head, st->ids, NULL, &st->prev, err);
    if (rc == 0) rc = scan_held(sc, q, head.n, err);
    return rc == 0 ? scan_stream(sc, q, head.n, err) : rc;
}

int drps_scan_windows(struct drps_scan *sc, struct drps_err *err)
{
    struct drps_relay *st = sc->st;
    const uint64_t q = st->closing; /* it and the next one are in memory */
    int rc = 0;
    for (uint64_t i = q; i < st->ready && rc == 0; i++)
        rc = scan_open_window(sc, i, err);
    for (uint64_t i = 0; i < st->source.windows && rc == 0; i++)
        rc = scan_coming(sc, q + 2 + i, err);
    if (rc == 0 && st->looking) rc = drps_relay_restore_visit(st, put_saved, sc, err);
    return rc;
}
