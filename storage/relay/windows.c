/*
 * Opening and closing windows: where rows are in memory, and where they wait for their next use.
 * Both are done by the window thread (window_thread.c); relay.h has the idea.
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
 * Items are sorted by counting. Many are sorted in quarters that are gone through side by side: the
 * next item of each quarter, often of the same distance as the one before, need not wait for the
 * others. Few have not the same distance often, and fewer counts stay in the processor's cache.
 */
enum { QUARTERS = DRPS_RELAY_QUARTERS, MANY = 16 /* for each distance */ };

static int are_many(const struct drps_relay *st, size_t n)
{
    return n / MANY >= st->source.windows;
}

static void count_few(struct drps_relay *st, const uint32_t *distance, size_t n)
{
    memset(st->counts, 0, (st->source.windows + 2) * sizeof(*st->counts));
    for (size_t i = 0; i < n; i++)
        st->counts[distance[i]]++;
}

static void count_many(struct drps_relay *st, const uint32_t *distance, size_t n)
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

/* counts[d] becomes the number of items with distance d, 1 .. K. */
static void count_distances(struct drps_relay *st, const uint32_t *distance, size_t n)
{
    if (are_many(st, n))
        count_many(st, distance, n);
    else
        count_few(st, distance, n);
}

static void sort_few(struct drps_relay *st, const uint32_t *distance, const uint32_t *item,
                     size_t n)
{
    for (size_t i = 0; i < n; i++)
        st->order[st->counts[distance[i]]++] = item[i];
}

static void sort_many(struct drps_relay *st, const uint32_t *distance, const uint32_t *item,
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

/* Put items into st->order, by distance; counts[d], the position of the first item of distance d,
 * becomes the position after its last. */
static void sort_items(struct drps_relay *st, const uint32_t *distance, const uint32_t *item,
                       size_t n)
{
    if (are_many(st, n))
        sort_many(st, distance, item, n);
    else
        sort_few(st, distance, item, n);
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

/* How many of the slots in st->order get their rows from where: first those whose rows arrive from
 * the disk, then those whose rows waited in memory, then those whose rows no window has used yet.
 */
struct comers {
    size_t arriving, waiting, created;
};

/* Put the slots in st->picked into st->order: rows that were used longest ago come first, which is
 * the order in which they came to wait; then those that no window has used. */
static int order_comers(struct drps_relay *st, uint64_t q, size_t n, struct comers *c_out,
                        struct drps_err *err)
{
    const uint32_t windows = st->source.windows;
    const uint32_t known = q < windows ? (uint32_t)q : windows; /* the longest use distance yet */
    const uint64_t waiting = drps_waiting_count(st->waiting, drps_relay_number(st, q));
    uint32_t at = 0, left;
    count_distances(st, st->prev.far, n);
    for (uint32_t d = known; d > 1; d--) {
        const uint32_t rows = st->counts[d];
        st->counts[d] = at;
        at += rows;
    }
    left = at;
    for (uint32_t d = 1; d <= windows; d++) { /* none of distance 1 but in the first window */
        if (d > 1 && d <= known) continue;
        const uint32_t rows = st->counts[d];
        st->counts[d] = at;
        at += rows;
    }
    if (left < waiting) return contradiction(q, "rows wait that are not used", err);
    *c_out = (struct comers){
        .arriving = left - (size_t)waiting, .waiting = (size_t)waiting, .created = n - left};
    sort_items(st, st->prev.far, st->picked, n);
    return 0;
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

/* Put the frames of the slots in st->order into st->picked: rows that waited are where they were,
 * the others get free frames in order. */
static int place_comers(struct drps_relay *st, struct drps_relay_window *win,
                        const struct comers *c, struct drps_err *err)
{
    const uint32_t w = drps_relay_number(st, win->q);
    const size_t n = c->arriving + c->waiting + c->created, others = n - c->waiting;
    uint32_t *restrict picked = st->picked;
    drps_waiting_take(st->waiting, w, 1, picked + c->arriving);
    int rc = drps_relay_make_room(st, win->q, others, err);
    if (rc < 0) return rc;
    st->free_n -= others;
    if (take_free_frames(st, c->arriving, picked) != c->arriving ||
        take_free_frames(st, c->created, picked + c->arriving + c->waiting) != c->created)
        return contradiction(win->q, "too many rows", err);
    const uint32_t *restrict order = st->order;
    uint32_t *restrict frame = win->frame;
    for (size_t i = 0; i < n; i++)
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
    const size_t first = c->arriving + c->waiting;
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

static int fetch_arrivals(struct drps_relay *st, uint64_t q, const struct comers *c,
                          struct drps_err *err)
{
    int rc = 0;
    if (c->arriving) rc = drps_runs_take(st->runs, q, st->rows, st->picked, c->arriving, err);
    return rc == 0 ? drps_runs_taken(st->runs, q, err) : rc;
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
    st->stats.merged_bytes = drps_runs_merged_bytes(st->runs);
    (void)pthread_mutex_unlock(&st->lock);
}

int drps_relay_open_window(struct drps_relay *st, uint64_t q, struct drps_err *err)
{
    const uint64_t start = drps_clock_ns();
    const uint32_t w = drps_relay_number(st, q);
    struct drps_relay_window *win = &st->open[q % 2];
    struct drps_window_stats stats = {0};
    const uint64_t spilled = st->spilled;

    uint32_t *ids = q < st->source.windows ? st->ids : NULL; /* later, nothing is created */
    int rc = st->source.read(st->source.ctx, w, &win->head, ids, &win->next, &st->prev, err);
    if (rc < 0) return rc;
    win->q = q;
    if (!q) mark_all(&st->prev, win->head.n, st->source.windows);
    const size_t staying = list_staying(st, q);
    if (st->prev.n_far + staying != win->head.n)
        return contradiction(q, "rows stay that are not used", err);
    keep_frames(st, win);
    struct comers c = {0};
    rc = order_comers(st, q, st->prev.n_far, &c, err);
    if (rc == 0) rc = place_comers(st, win, &c, err);
    if (rc < 0) return rc;
    if (c.created && !ids) return contradiction(q, "it has rows that no window has had", err);
    rc = create_rows(st, win, &c, err);
    if (rc == 0) rc = fetch_arrivals(st, q, &c, err);
    if (rc < 0) return rc;
    stats.rows = win->head.n;
    stats.created = c.created;
    stats.arrived = c.arriving;
    stats.kept = stats.rows - stats.created - stats.arrived;
    stats.read_bytes = stats.arrived * st->config.row_bytes;
    stats.written_bytes = (st->spilled - spilled) * st->config.row_bytes;
    stats.open_ns = drps_clock_ns() - start;
    keep_stats(st, w, &stats);
    return 0;
}

/* ---- Closing ---- */

/* Rows that are used again within an epoch wait where they are. The frames of those that are used
 * once an epoch go to st->order. */
static int wait_leavers(struct drps_relay *st, const struct drps_relay_window *win, uint32_t w,
                        size_t *once_out, struct drps_err *err)
{
    const size_t n =
        drps_pick(&st->picker, win->next.marks, win->head.n, 1, win->frame, st->picked);
    return drps_waiting_add_each(st->waiting, w, win->next.far, st->picked, n, st->order, once_out,
                                 err);
}

/* The n rows in st->order go to the queue, unless there is memory for them; then they wait, too.
 * Sets how many bytes were written. */
static int queue_leavers(struct drps_relay *st, uint64_t q, size_t n, uint64_t *bytes_out,
                         struct drps_err *err)
{
    if (!n) return 0;
    if (st->frames == st->config.rows || !drps_relay_queues(st->free_n, st->frames))
        return drps_waiting_add(st->waiting, drps_relay_number(st, q), st->order, n, err);
    int rc = drps_runs_queue(st->runs, q + st->source.windows, st->rows, st->order, n, err);
    drps_relay_free_frames(st, st->order, n);
    *bytes_out = n * st->config.row_bytes;
    return rc;
}

int drps_relay_close_window(struct drps_relay *st, uint64_t q, struct drps_err *err)
{
    const uint64_t start = drps_clock_ns();
    const uint32_t w = drps_relay_number(st, q);
    struct drps_window_stats stats = {0};
    size_t once = 0;
    int rc = wait_leavers(st, &st->open[q % 2], w, &once, err);
    if (rc == 0) rc = queue_leavers(st, q, once, &stats.written_bytes, err);
    if (rc < 0) return rc;
    stats.close_ns = drps_clock_ns() - start;
    keep_stats(st, w, &stats);
    return 0;
}
