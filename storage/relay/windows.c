/*
 * Opening and closing windows: where rows are in memory, and which stream carries them on. Both are
 * done by the window thread (window_thread.c); relay.h has the idea.
 *
 * What is done for every slot of a window is done eight slots at a time (pick.h). Only rows that do
 * not stay are counted and sorted.
 */
#include <errno.h>
#include <string.h>

#include "base/drps_clock.h"
#include "storage/relay/relay.h"

static int contradiction(uint64_t q, const char *what, struct drps_err *err)
{
    return drps_err_set(err, DRPS_E_CORRUPT,
                        "window %llu: %s: the plan's windows contradict each other; make the plan "
                        "anew",
                        (unsigned long long)q, what);
}

/* ---- Sorting by use distance ---- */

/*
 * Items are sorted by counting, in quarters that are gone through side by side: the next item of
 * each quarter, often of the same distance as the one before, need not wait for the others.
 */
enum { QUARTERS = DRPS_RELAY_QUARTERS };

/* counts[d] becomes the number of items with distance d, 1 .. K. */
static void count_distances(struct drps_relay *st, const uint32_t *distance, size_t n)
{
    uint32_t(*restrict parts)[QUARTERS] = st->parts;
    const size_t quarter = n / QUARTERS;
    memset(parts, 0, (st->source.windows + 2) * sizeof(*parts));
    for (size_t i = 0; i < quarter; i++)
        for (size_t k = 0; k < QUARTERS; k++)
            parts[distance[k * quarter + i]][k]++;
    for (size_t i = QUARTERS * quarter; i < n; i++)
        parts[distance[i]][QUARTERS - 1]++;
    for (size_t d = 0; d < st->source.windows + 2; d++) {
        st->counts[d] = 0;
        for (size_t k = 0; k < QUARTERS; k++)
            st->counts[d] += parts[d][k];
    }
}

/* Put items into st->order, by distance; counts[d], the position of the first item of distance d,
 * becomes the position after its last. */
static void sort_items(struct drps_relay *st, const uint32_t *distance, const uint32_t *item,
                       size_t n)
{
    uint32_t(*restrict parts)[QUARTERS] = st->parts;
    uint32_t *restrict order = st->order;
    const size_t quarter = n / QUARTERS;
    for (size_t d = 0; d < st->source.windows + 2; d++)
        for (size_t k = 0; k < QUARTERS; k++) {
            const uint32_t first = st->counts[d];
            st->counts[d] += parts[d][k];
            parts[d][k] = first;
        }
    for (size_t i = 0; i < quarter; i++)
        for (size_t k = 0; k < QUARTERS; k++)
            order[parts[distance[k * quarter + i]][k]++] = item[k * quarter + i];
    for (size_t i = QUARTERS * quarter; i < n; i++)
        order[parts[distance[i]][QUARTERS - 1]++] = item[i];
}

/* ---- Opening ---- */

/* Put the frames of the rows of window q - 1 that window q uses, too, into st->order, in slot
 * order. Returns how many they are. */
static size_t list_staying(struct drps_relay *st, uint64_t q)
{
    const struct drps_relay_window *before = &st->open[(q + 1) % 2];
    if (!q) return 0;
    return drps_pick(&st->picker, before->next.marks, before->head.n, 0, before->frame, st->order);
}

/* All rows of the first window are new: none has stayed. */
static void mark_all(struct drps_use_distances *distances, size_t n, uint32_t windows)
{
    for (size_t i = 0; i < DRPS_DISTANCE_WORDS(n); i++)
        distances->marks[i] = UINT64_MAX;
    for (size_t i = 0; i < n; i++)
        distances->far[i] = windows;
    distances->n_far = n;
}

/* Rows that stayed keep the frames that list_staying() found. The slots of all others go to
 * st->picked, their distances are st->prev.far. */
static void keep_frames(struct drps_relay *st, struct drps_relay_window *win)
{
    const uint64_t *marks = st->prev.marks;
    drps_pick_spread(&st->picker, marks, win->head.n, 0, st->order, win->frame);
    (void)drps_pick_positions(&st->picker, marks, win->head.n, 1, st->picked);
}

/* How many of the slots in st->order get their rows from where: first those of rows that were held,
 * then those whose rows arrive by stream, then those whose rows no window has used yet. */
struct comers {
    size_t held, arriving, created;
};

/* Put the slots in st->picked into st->order: rows that were held, then those that arrive, each
 * with the longest use distance first, which is the order in which they left. */
static struct comers order_comers(struct drps_relay *st, uint64_t q, size_t n)
{
    const uint32_t windows = st->source.windows;
    const uint32_t known = q < windows ? (uint32_t)q : windows; /* the longest use distance yet */
    struct comers c = {0, 0, 0};
    uint32_t at = 0;
    count_distances(st, st->prev.far, n);
    for (int held = 1; held >= 0; held--)
        for (uint32_t d = known; d > 1; d--) {
            if (drps_relay_held(st, q - d, d) != held) continue;
            const uint32_t rows = st->counts[d];
            *(held ? &c.held : &c.arriving) += rows;
            st->counts[d] = at;
            at += rows;
        }
    c.created = n - c.held - c.arriving;
    for (uint32_t d = 1; d <= windows; d++) { /* none of distance 1 but in the first window */
        if (d > 1 && d <= known) continue;
        const uint32_t rows = st->counts[d];
        st->counts[d] = at;
        at += rows;
    }
    sort_items(st, st->prev.far, st->picked, n);
    return c;
}

/* Take the first n free frames, in order. Returns how many there were. */
static size_t take_free_frames(struct drps_relay *st, size_t n, uint32_t *restrict list)
{
    const size_t words = (size_t)(st->frames + 63) / 64;
    size_t k = 0;
    for (size_t i = 0; i < words && k < n; i++) {
        uint64_t word = st->free_frames[i];
        for (; word && k < n; word &= word - 1)
            list[k++] = (uint32_t)(i * 64) + (uint32_t)__builtin_ctzll(word);
        st->free_frames[i] = word;
    }
    return k;
}

/* Put the frames of the slots in st->order into st->picked: rows that were held are where they
 * were, the others get free frames in order, so that a stream's rows come to lie in order. */
static int place_comers(struct drps_relay *st, struct drps_relay_window *win,
                        const struct comers *c, struct drps_err *err)
{
    const uint32_t w = drps_relay_number(st, win->q);
    const size_t others = c->arriving + c->created;
    if (drps_held_rows_count(st->held_rows, w) != c->held)
        return contradiction(win->q, "rows are held that are not used", err);
    drps_held_rows_take(st->held_rows, w, 1, st->picked);
    if (take_free_frames(st, others, st->picked + c->held) != others)
        return contradiction(win->q, "too many rows", err);
    const uint32_t *restrict order = st->order, *restrict picked = st->picked;
    uint32_t *restrict frame = win->frame;
    for (size_t i = 0; i < c->held + others; i++)
        frame[order[i]] = picked[i];
    return 0;
}

static char *row_in(const struct drps_relay *st, uint32_t frame)
{
    return st->rows + (size_t)frame * st->config.row_bytes;
}

/* Create the rows that no window has used yet, which are the last of st->order. They are asked for
 * in the order of their ids, as they may be read from a file. */
static int create_rows(struct drps_relay *st, const struct drps_relay_window *win,
                       const struct comers *c, struct drps_err *err)
{
    const size_t first = c->held + c->arriving;
    const size_t words = DRPS_DISTANCE_WORDS(win->head.n);
    uint64_t *marks = st->prev.marks; /* which are not needed any more */
    int rc = 0;
    if (!c->created) return 0;
    memset(marks, 0, words * sizeof(*marks));
    for (size_t i = first; i < first + c->created; i++)
        marks[st->order[i] / 64] |= UINT64_C(1) << st->order[i] % 64;
    for (size_t i = 0; i < words; i++)
        for (uint64_t word = marks[i]; word && rc == 0; word &= word - 1) {
            const size_t slot = i * 64 + (size_t)__builtin_ctzll(word);
            rc = st->config.init(st->config.init_ctx, st->ids[slot], 1,
                                 row_in(st, win->frame[slot]), err);
        }
    return rc;
}

static int fetch_arrivals(struct drps_relay *st, uint32_t w, const struct comers *c,
                          struct drps_err *err)
{
    const size_t n = c->arriving;
    const uint64_t bytes = (uint64_t)n * st->config.row_bytes;
    if (drps_streams_bytes(st->streams, w) != bytes)
        return drps_err_set(err, DRPS_E_CORRUPT,
                            "window %u: %llu bytes of rows arrived, %llu are due: the plan's "
                            "windows contradict each other; make the plan anew",
                            w, (unsigned long long)drps_streams_bytes(st->streams, w),
                            (unsigned long long)bytes);
    int rc = drps_streams_begin(st->streams, w, 0, err);
    if (rc == 0)
        rc = drps_streams_take_rows(st->streams, st->rows, st->config.row_bytes,
                                    st->picked + c->held, n, err);
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
    int rc = st->source.read(st->source.ctx, w, &win->head, ids, &win->next, &st->prev, err);
    if (rc < 0) return rc;
    win->q = q;
    if (!q) mark_all(&st->prev, win->head.n, st->source.windows);
    const size_t staying = list_staying(st, q);
    if (st->prev.n_far + staying != win->head.n)
        return contradiction(q, "rows stay that are not used", err);
    keep_frames(st, win);
    const struct comers c = order_comers(st, q, st->prev.n_far);
    rc = place_comers(st, win, &c, err);
    if (rc < 0) return rc;
    if (c.created && !ids) return contradiction(q, "it has rows that no window has had", err);
    rc = create_rows(st, win, &c, err);
    if (rc == 0) rc = fetch_arrivals(st, w, &c, err);
    if (rc < 0) return rc;
    stats.rows = win->head.n;
    stats.created = c.created;
    stats.arrived = c.arriving;
    stats.kept = stats.rows - stats.created - stats.arrived;
    stats.read_bytes = stats.arrived * st->config.row_bytes;
    stats.open_ns = drps_clock_ns() - start;
    keep_stats(st, w, &stats);
    return 0;
}

/* ---- Closing ---- */

/* The end of the windows that window w sends to directly: those of its group and of the next. */
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

/* Put the frames of leaving rows into st->order, by use distance; counts[d] becomes the end of
 * distance d. Returns how many rows leave. */
static size_t order_leavers(struct drps_relay *st, const struct drps_relay_window *win)
{
    const size_t n =
        drps_pick(&st->picker, win->next.marks, win->head.n, 1, win->frame, st->picked);
    count_distances(st, win->next.far, n);
    uint32_t at = 0;
    for (uint32_t d = 2; d <= st->source.windows; d++) {
        const uint32_t rows = st->counts[d];
        st->counts[d] = at;
        at += rows;
    }
    sort_items(st, win->next.far, st->picked, n);
    return n;
}

/* A group's stream gets, from each window, how many rows go to each of the group's windows, and
 * then the rows. Append the counts of window w. */
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
        st->group_rows[group] += n;
        rc = drps_streams_append(st->streams, windows + group, &n, sizeof(n), err);
    }
    return rc;
}

/* Rows up to the hold limit stay where they are, in the lists of held rows. Sets how many do. */
static int hold_leavers(struct drps_relay *st, uint32_t w, size_t *held_out, struct drps_err *err)
{
    int rc = 0;
    st->counts[1] = 0; /* where distance 2 begins */
    for (uint32_t d = 2; d <= st->hold_limit[w] && rc == 0; d++) {
        const uint32_t first = st->counts[d - 1];
        rc = drps_held_rows_add(st->held_rows, (w + d) % st->source.windows, st->order + first,
                                st->counts[d] - first, err);
    }
    *held_out = st->counts[st->hold_limit[w]];
    return rc;
}

static int send_leavers(struct drps_relay *st, uint32_t w, struct drps_err *err)
{
    const uint32_t windows = st->source.windows;
    uint32_t group = UINT32_MAX;
    int rc = 0;
    for (uint32_t d = st->hold_limit[w] + 1; d <= windows && rc == 0; d++) {
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

/* Pass a group's stream on to the streams of its windows. */
static int split_group(struct drps_relay *st, uint32_t group, struct drps_err *err)
{
    const uint32_t span = st->layout.span;
    const uint32_t stream = st->source.windows + group;
    uint64_t left = drps_streams_bytes(st->streams, stream);
    (void)pthread_mutex_lock(&st->lock);
    st->stats.regrouped_bytes += left;
    (void)pthread_mutex_unlock(&st->lock);
    st->group_rows[group] = 0;
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
    size_t held = 0;
    int rc = 0;

    if (st->layout.span && w % st->layout.span == 0)
        rc = split_group(st, (w / st->layout.span + 1) % st->layout.groups, err);
    if (rc < 0) return rc;
    const size_t leavers = order_leavers(st, win);
    rc = hold_leavers(st, w, &held, err);
    if (rc == 0) rc = send_leavers(st, w, err);
    if (rc == 0) rc = drps_streams_flush(st->streams, err);
    if (rc < 0) return rc;
    for (size_t i = held; i < leavers; i++)
        st->free_frames[st->order[i] / 64] |= UINT64_C(1) << st->order[i] % 64;
    stats.written_bytes = (leavers - held) * st->config.row_bytes;
    stats.close_ns = drps_clock_ns() - start;
    keep_stats(st, w, &stats);
    return 0;
}
