/*
 * The rows of a scan that are in memory, or in runs on their way to windows. Which rows these are,
 * and in which order, the records of windows say; scan.h has the idea.
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

/* Put the ids of those rows of window q that have left a closed window into st->order, in the order
 * in which they come. Returns how many they are. */
static size_t list_coming(struct drps_relay *st, uint64_t q, size_t n)
{
    uint32_t at = 0;
    memset(st->counts, 0, (st->source.windows + 2) * sizeof(*st->counts));
    for (size_t i = 0; i < st->prev.n_far; i++)
        st->counts[st->prev.far[i]]++;
    for (uint32_t d = st->source.windows; d > 1; d--) {
        const uint32_t rows = d <= q && q - d < st->closing ? st->counts[d] : 0;
        st->counts[d] = rows ? at : UINT32_MAX;
        at += rows;
    }
    st->counts[1] = UINT32_MAX;
    (void)drps_pick(&st->picker, st->prev.marks, n, 1, st->ids, st->picked);
    for (size_t i = 0; i < st->prev.n_far; i++) {
        uint32_t *to = &st->counts[st->prev.far[i]];
        if (*to != UINT32_MAX) st->order[(*to)++] = st->picked[i];
    }
    return at;
}

/* Put the first n rows in st->order, which are in runs. */
static int scan_runs(struct drps_scan *sc, uint64_t q, size_t n, struct drps_err *err)
{
    static const uint32_t here = 0;
    struct drps_relay *st = sc->st;
    int rc = drps_runs_prefetch(st->runs, q, err);
    for (size_t i = 0; i < n && rc == 0; i++) {
        rc = drps_runs_take(st->runs, q, sc->row, &here, 1, err);
        if (rc == 0) rc = drps_scan_put(sc, st->order[i], sc->row, err);
    }
    return rc == 0 ? drps_runs_taken(st->runs, q, err) : rc;
}

/* Put the rows on their way to window q. */
static int scan_coming(struct drps_scan *sc, uint64_t q, struct drps_err *err)
{
    struct drps_relay *st = sc->st;
    const uint32_t w = drps_relay_number(st, q);
    struct drps_store_window head;
    int rc = st->source.read(st->source.ctx, w, &head, st->ids, NULL, &st->prev, err);
    if (rc < 0) return rc;
    const size_t coming = list_coming(st, q, head.n);
    const size_t waiting = (size_t)drps_waiting_count(st->waiting, w);
    if (coming < waiting)
        return drps_err_set(err, DRPS_E_CORRUPT,
                            "window %u: %zu rows should wait in memory, not %zu: the plan's "
                            "windows contradict each other; make the plan anew",
                            w, coming, waiting);
    rc = scan_runs(sc, q, coming - waiting, err);
    drps_waiting_take(st->waiting, w, 0, st->picked);
    for (size_t i = 0; i < waiting && rc == 0; i++)
        rc = put_frame(sc, st->order[coming - waiting + i], st->picked[i], err);
    return rc;
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
