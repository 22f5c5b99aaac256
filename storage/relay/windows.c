/* Opening and closing windows: where rows are in memory, and which stream carries them on. */
#include <errno.h>
#include <string.h>

#include "base/drps_clock.h"
#include "storage/relay/relay.h"

/*
 * Which rows stay, arrive and leave is as good as random from slot to slot, so the loops over slots
 * have no branch that depends on it: every slot is counted, and sorted into its bucket, whatever
 * becomes of it.
 */

static int contradiction(uint64_t q, const char *what, struct drps_err *err)
{
    return drps_err_set(err, DRPS_E_CORRUPT,
                        "window %llu: %s: the plan's windows contradict each other; make the plan "
                        "anew",
                        (unsigned long long)q, what);
}

/* ---- Sorting slots by distance ---- */

/* counts[d] becomes the number of slots with distance d, 1 .. K. */
static void count_distances(struct drps_relay *st, const uint32_t *distance, size_t n)
{
    uint32_t *counts = st->counts;
    memset(counts, 0, (st->source.windows + 2) * sizeof(*counts));
    for (size_t s = 0; s < n; s++)
        counts[distance[s]]++;
}

/* Frames into st->order, by distance; counts[d], the place of the first of distance d, becomes the
 * place after its last. */
static void sort_frames(struct drps_relay *st, const uint32_t *distance, const uint32_t *frame,
                        size_t n)
{
    uint32_t *restrict order = st->order, *restrict counts = st->counts;
    for (size_t s = 0; s < n; s++)
        order[counts[distance[s]]++] = frame[s];
}

/* ---- Opening ---- */

/* Frames of the rows of window q - 1 that window q uses, too, in slot order. Returns how many. */
static size_t list_staying(struct drps_relay *st, uint64_t q)
{
    const struct drps_relay_window *before = &st->open[(q + 1) % 2];
    uint32_t *restrict list = st->order;
    size_t k = 0;
    if (!q) return 0;
    for (size_t s = 0; s < before->head.n; s++) {
        list[k] = before->frame[s];
        k += before->next[s] == 1;
    }
    return k;
}

/* The first n vacant frames, in order, which are then taken. Returns how many there were. */
static size_t take_vacant(struct drps_relay *st, size_t n)
{
    const size_t words = (size_t)(st->frames + 63) / 64;
    uint32_t *restrict list = st->vacant_list;
    size_t k = 0;
    for (size_t i = 0; i < words && k < n; i++) {
        uint64_t word = st->vacant[i];
        for (; word && k < n; word &= word - 1)
            list[k++] = (uint32_t)(i * 64) + (uint32_t)__builtin_ctzll(word);
        st->vacant[i] = word;
    }
    return k;
}

/* Give every slot a frame: that of the window before where the row stayed, else a vacant one, so
 * that rows in slot order come to lie in order. */
static int place_slots(struct drps_relay *st, struct drps_relay_window *win, struct drps_err *err)
{
    const size_t n = win->head.n;
    const size_t staying = list_staying(st, win->q);
    const size_t others = n - (win->q ? st->counts[1] : 0);
    if (staying != n - others) return contradiction(win->q, "rows stay that are not used", err);
    if (take_vacant(st, others) != others) return contradiction(win->q, "too many rows", err);

    const uint32_t *restrict prev = st->prev, *restrict kept = st->order;
    const uint32_t *restrict vacant = st->vacant_list;
    uint32_t *restrict frame = win->frame;
    const uint32_t stay = win->q ? 1 : 0; /* no distance is 0 */
    size_t k = 0;
    for (size_t s = 0; s < n; s++) {
        const size_t stays = prev[s] == stay;
        frame[s] = stays ? kept[k] : vacant[s - k];
        k += stays;
    }
    return 0;
}

/* Frames of arriving rows come first in st->order, the longest way first: so they arrive. Then
 * those of rows that no window has used yet, then those of rows that stayed. Returns how many
 * arrive. */
static size_t order_arrivals(struct drps_relay *st, const struct drps_relay_window *win)
{
    const uint32_t windows = st->source.windows;
    const uint32_t known = win->q < windows ? (uint32_t)win->q : windows; /* the longest way yet */
    uint32_t at = 0;
    for (uint32_t i = 0; i < windows; i++) {
        const uint32_t d = i < known ? known - i : i + 1; /* known .. 1, then beyond */
        if (d == 1) continue;
        const uint32_t n = st->counts[d];
        st->counts[d] = at;
        at += n;
    }
    st->counts[1] = at; /* last: they are not needed any more, or (q = 0) all created */
    sort_frames(st, st->prev, win->frame, win->head.n);
    return known > 1 ? st->counts[2] : 0;
}

static char *row_in(const struct drps_relay *st, uint32_t frame)
{
    return st->rows + (size_t)frame * st->config.row_bytes;
}

/* Rows that no window has used yet. Returns how many. */
static size_t create_rows(struct drps_relay *st, const struct drps_relay_window *win)
{
    size_t created = 0;
    if (win->q >= st->source.windows) return 0;
    for (size_t s = 0; s < win->head.n; s++) {
        if (st->prev[s] <= win->q) continue;
        st->config.init(st->config.init_ctx, st->ids[s], 1, row_in(st, win->frame[s]));
        created++;
    }
    return created;
}

static int fetch_arrivals(struct drps_relay *st, uint32_t w, size_t n, struct drps_err *err)
{
    const uint64_t bytes = (uint64_t)n * st->config.row_bytes;
    if (drps_streams_bytes(st->streams, w) != bytes)
        return drps_err_set(err, DRPS_E_CORRUPT,
                            "window %u: %llu bytes of rows arrived, %llu are due: the plan's "
                            "windows contradict each other; make the plan anew",
                            w, (unsigned long long)drps_streams_bytes(st->streams, w),
                            (unsigned long long)bytes);
    int rc = drps_streams_begin(st->streams, w, 0, err);
    if (rc == 0)
        rc = drps_streams_take_rows(st->streams, st->rows, st->config.row_bytes, st->order, n, err);
    if (rc == 0) rc = drps_streams_end(st->streams, err);
    return rc;
}

static void keep_stats(struct drps_relay *st, uint32_t w, const struct drps_window_stats *more)
{
    (void)pthread_mutex_lock(&st->lock);
    struct drps_window_stats *sum = &st->window_stats[w];
    sum->rows += more->rows;
    sum->kept += more->kept;
    sum->arrived += more->arrived;
    sum->created += more->created;
    sum->read_bytes += more->read_bytes;
    sum->written_bytes += more->written_bytes;
    sum->open_ns += more->open_ns;
    sum->close_ns += more->close_ns;
    st->stats.windows += more->open_ns > 0;
    st->stats.rows_kept += more->kept;
    st->stats.rows_arrived += more->arrived;
    st->stats.rows_created += more->created;
    (void)pthread_mutex_unlock(&st->lock);
}

int drps_relay_open_window(struct drps_relay *st, uint64_t q, struct drps_err *err)
{
    const uint64_t start = drps_clock_ns();
    const uint32_t w = drps_relay_number(st, q);
    struct drps_relay_window *win = &st->open[q % 2];
    struct drps_window_stats stats = {0};

    uint32_t *ids = q < st->source.windows ? st->ids : NULL; /* later, nothing is created */
    int rc = st->source.read(st->source.ctx, w, &win->head, ids, win->next, st->prev, err);
    if (rc < 0) return rc;
    win->q = q;
    count_distances(st, st->prev, win->head.n);
    rc = place_slots(st, win, err);
    if (rc < 0) return rc;
    stats.rows = win->head.n;
    stats.created = create_rows(st, win);
    stats.arrived = order_arrivals(st, win);
    stats.kept = stats.rows - stats.created - stats.arrived;
    rc = fetch_arrivals(st, w, (size_t)stats.arrived, err);
    if (rc < 0) return rc;
    stats.read_bytes = stats.arrived * st->config.row_bytes;
    stats.open_ns = drps_clock_ns() - start;
    keep_stats(st, w, &stats);
    return 0;
}

/* ---- Closing ---- */

/* Windows [.., end) may be sent to directly from window w: those of its group and of the next. */
static uint64_t direct_end(const struct drps_relay *st, uint32_t w)
{
    const uint64_t windows = st->source.windows;
    const uint64_t span = st->layout.span;
    const uint64_t group = w / span;
    if (group + 1 == st->layout.groups) return windows + span;
    return (group + 2) * span < windows ? (group + 2) * span : windows;
}

uint32_t drps_relay_route(const struct drps_relay *st, uint32_t w, uint32_t distance)
{
    const uint32_t windows = st->source.windows;
    const uint64_t to = (uint64_t)w + distance;
    if (!st->layout.span || to < direct_end(st, w)) return (uint32_t)(to % windows);
    return windows + (uint32_t)(to % windows) / st->layout.span;
}

/* Frames of leaving rows by distance, then those of rows that stay; counts[d] becomes the end of
 * distance d. Returns how many leave. */
static size_t order_leavers(struct drps_relay *st, const struct drps_relay_window *win)
{
    uint32_t at = 0;
    count_distances(st, win->next, win->head.n);
    for (uint32_t d = 2; d <= st->source.windows; d++) {
        const uint32_t n = st->counts[d];
        st->counts[d] = at;
        at += n;
    }
    st->counts[1] = at;
    sort_frames(st, win->next, win->frame, win->head.n);
    return at;
}

/* A group's stream gets, from each window, how many rows go to each of its windows, then the rows.
 */
static int append_counts(struct drps_relay *st, uint32_t w, uint32_t distance, uint32_t group,
                         struct drps_err *err)
{
    const uint32_t windows = st->source.windows;
    const uint32_t first = group * st->layout.span;
    int rc = 0;
    for (uint32_t i = 0; i < st->layout.span && rc == 0; i++) {
        const uint32_t d = (first + i + windows - w - 1) % windows + 1; /* 1 .. K */
        const int sent = first + i < windows && d >= distance && d <= windows;
        const uint32_t n = sent ? st->counts[d] - st->counts[d - 1] : 0;
        rc = drps_streams_append(st->streams, windows + group, &n, sizeof(n), err);
    }
    return rc;
}

static int send_leavers(struct drps_relay *st, uint32_t w, struct drps_err *err)
{
    const uint32_t windows = st->source.windows;
    uint32_t group = UINT32_MAX;
    int rc = 0;
    st->counts[1] = 0; /* where distance 2 begins */
    for (uint32_t d = 2; d <= windows && rc == 0; d++) {
        const uint32_t first = st->counts[d - 1];
        const uint32_t n = st->counts[d] - first;
        if (!n) continue;
        const uint32_t to = drps_relay_route(st, w, d);
        if (to >= windows && to != group) {
            group = to;
            rc = append_counts(st, w, d, group - windows, err);
        }
        if (rc == 0)
            rc = drps_streams_append_rows(st->streams, to, st->rows, st->config.row_bytes,
                                          st->order + first, n, err);
    }
    return rc;
}

/* Copy n bytes from the stream being read to the end of another one. */
static int pass_on(struct drps_relay *st, uint32_t to, uint64_t n, struct drps_err *err)
{
    while (n) {
        const char *at;
        size_t left;
        int rc = drps_streams_peek(st->streams, &at, &left, err);
        if (rc == 0 && !left) rc = contradiction(to, "a group's rows end early", err);
        const size_t now = n < left ? (size_t)n : left;
        if (rc == 0) rc = drps_streams_append(st->streams, to, at, now, err);
        if (rc == 0) rc = drps_streams_skip(st->streams, now, err);
        if (rc < 0) return rc;
        n -= now;
    }
    return 0;
}

static int deal_out(struct drps_relay *st, uint32_t group, struct drps_err *err)
{
    const uint32_t span = st->layout.span;
    const uint32_t stream = st->source.windows + group;
    uint64_t left = drps_streams_bytes(st->streams, stream);
    (void)pthread_mutex_lock(&st->lock);
    st->stats.regrouped_bytes += left;
    (void)pthread_mutex_unlock(&st->lock);
    int rc = drps_streams_begin(st->streams, stream, 0, err);
    while (rc == 0 && left) {
        rc = drps_streams_take(st->streams, st->counts, span * sizeof(uint32_t), err);
        left -= span * sizeof(uint32_t);
        for (uint32_t i = 0; i < span && rc == 0; i++) {
            const uint64_t bytes = (uint64_t)st->counts[i] * st->config.row_bytes;
            if (bytes > left) return contradiction(group, "a group's rows end early", err);
            rc = pass_on(st, group * span + i, bytes, err);
            left -= bytes;
        }
    }
    return rc == 0 ? drps_streams_end(st->streams, err) : rc;
}

int drps_relay_close_window(struct drps_relay *st, uint64_t q, struct drps_err *err)
{
    const uint64_t start = drps_clock_ns();
    const uint32_t w = drps_relay_number(st, q);
    const struct drps_relay_window *win = &st->open[q % 2];
    struct drps_window_stats stats = {0};
    int rc = 0;

    if (st->layout.span && w % st->layout.span == 0)
        rc = deal_out(st, (w / st->layout.span + 1) % st->layout.groups, err);
    if (rc < 0) return rc;
    const size_t leavers = order_leavers(st, win);
    rc = send_leavers(st, w, err);
    if (rc == 0) rc = drps_streams_flush(st->streams, err);
    if (rc < 0) return rc;
    for (size_t i = 0; i < leavers; i++)
        st->vacant[st->order[i] / 64] |= UINT64_C(1) << st->order[i] % 64;
    stats.written_bytes = leavers * st->config.row_bytes;
    stats.close_ns = drps_clock_ns() - start;
    keep_stats(st, w, &stats);
    return 0;
}
