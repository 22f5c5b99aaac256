/* The thread that brings rows to the device, window by window, and makes room for them. */
#include "storage/device/tiered.h"

#include "base/drps_clock.h"

/* ---- A window has ended ---- */

/* The rows of window `number` wait for the next window that uses them. */
static void let_wait(struct tiered *st, uint64_t number)
{
    const struct window *w = tiered_window(st, number);
    size_t far = 0;
    for (size_t i = 0; i < w->n; i++)
        if (w->next.marks[i / 64] >> i % 64 & 1)
            frames_wait(&st->frames, st->frames.frame_of[w->places[i]],
                        number + w->next.far[far++]);
}

static uint64_t moved_word(uint32_t place, uint32_t frame)
{
    return (uint64_t)place << 32 | frame;
}

/* The rows of window `number` that the next window does not use go back to the store below. */
static int give_back(struct tiered *st, uint64_t number, struct drps_err *err)
{
    const struct window *w = tiered_window(st, number);
    size_t n = 0;
    for (size_t i = 0; i < w->n; i++) {
        const uint32_t frame = st->frames.frame_of[w->places[i]];
        if (frames_held_for(&st->frames, frame, number))
            st->leaving[n++] = moved_word(w->places[i], frame);
    }
    int rc = mover_store(&st->mover, st->leaving, n, err);
    if (rc < 0) return rc;
    for (size_t i = 0; i < n; i++)
        frames_leave(&st->frames, (uint32_t)st->leaving[i]);
    st->fetch_left += n;
    return st->below_ops->step_close(st->below, number, 1, err);
}

/* Window `number` has ended: rows are written below once all of its steps are computed. */
static int end_window(struct tiered *st, uint64_t number, struct drps_err *err)
{
    int rc = DRPS_DEVICE_CALL(&st->mover.use, err, after, DRPS_DEVICE_ROWS_OUT,
                              EVENT_ENDED + (unsigned)(number % 2));
    if (rc < 0) return rc;
    if (tiered_has_disk(st)) return give_back(st, number, err);
    let_wait(st, number);
    return 0;
}

/* ---- A window begins ---- */

/* The window is a step of the store below, which says where its rows have their places. */
static int open_below(struct tiered *st, uint64_t number, struct drps_err *err)
{
    struct window *w = tiered_window(st, number);
    struct drps_rows rows;
    int rc = st->below_ops->step_open(st->below, number, st->slots, w->n, &rows, err);
    for (size_t i = 0; i < w->n && rc == 0; i++)
        w->places[i] = rows.index[i];
    st->mover.below = rows;
    return rc;
}

static int begin_window(struct tiered *st, uint64_t number, struct drps_err *err)
{
    struct window *w = tiered_window(st, number);
    struct drps_store_window head;
    const int has_disk = tiered_has_disk(st);
    frames_come_to(&st->frames, number);
    int rc = st->source->read(st->source->ctx, tiered_of_epoch(st, number), &head,
                              has_disk ? NULL : w->places, has_disk ? NULL : &w->next, NULL, err);
    if (rc < 0) return rc;
    w->n = head.n;
    w->last_step = head.first_step + head.steps - 1;
    return has_disk ? open_below(st, number, err) : 0;
}

/* ---- Its rows come ---- */

/* Frees frames for so many rows of window `number`. */
static int make_room(struct tiered *st, uint64_t number, size_t needed, struct drps_err *err)
{
    size_t n = 0;
    while (st->frames.n_free < needed) {
        const uint32_t frame = frames_take_farthest(&st->frames, number);
        if (frame == FRAMES_NONE)
            return drps_err_set(err, DRPS_E_CORRUPT,
                                "two windows have more rows than the plan says: make it anew");
        st->leaving[n++] = moved_word(st->frames.place_of[frame], frame);
    }
    st->fetch_left += n;
    return mover_store(&st->mover, st->leaving, n, err);
}

/* Lists the places of the window's rows that are not on the device. Returns how many they are. */
static size_t find_coming(struct tiered *st, uint64_t number)
{
    const struct window *w = tiered_window(st, number);
    size_t n = 0;
    for (size_t i = 0; i < w->n; i++)
        if (st->frames.frame_of[w->places[i]] == FRAMES_NONE) st->coming[n++] = w->places[i];
    return n;
}

static void hold(struct tiered *st, uint64_t number)
{
    const struct window *w = tiered_window(st, number);
    for (size_t i = 0; i < w->n; i++)
        frames_hold(&st->frames, st->frames.frame_of[w->places[i]], number);
}

static int load(struct tiered *st, uint64_t number, struct drps_err *err)
{
    const size_t n = find_coming(st, number);
    int rc = make_room(st, number, n, err);
    if (rc < 0) return rc;
    for (size_t i = 0; i < n; i++)
        st->arriving[i] = frames_put(&st->frames, st->coming[i]);
    if (tiered_has_disk(st)) hold(st, number);
    st->fetch_came = n;
    rc = mover_load(&st->mover, st->coming, st->arriving, n, err);
    return rc < 0 ? rc
                  : DRPS_DEVICE_CALL(&st->mover.use, err, mark, DRPS_DEVICE_ROWS_IN,
                                     EVENT_LOADED + (unsigned)(number % 2));
}

static int fetch(struct tiered *st, uint64_t number, struct drps_err *err)
{
    st->fetch_n = st->fetch_came = st->fetch_left = 0;
    int rc = number >= WINDOWS_HELD ? end_window(st, number - WINDOWS_HELD, err) : 0;
    if (rc == 0) rc = begin_window(st, number, err);
    if (rc == 0) rc = load(st, number, err);
    st->fetch_n = tiered_window(st, number)->n;
    return rc;
}

/* ---- The thread, and who waits for it ---- */

static void *fetch_windows(void *arg)
{
    struct tiered *st = arg;
    (void)pthread_mutex_lock(&st->lock);
    while (!st->stop && st->rc == 0) {
        if (st->ready == st->wanted) {
            (void)pthread_cond_wait(&st->changed, &st->lock);
            continue;
        }
        const uint64_t number = st->ready;
        (void)pthread_mutex_unlock(&st->lock);
        const int rc = fetch(st, number, &st->failure);
        (void)pthread_mutex_lock(&st->lock);
        st->rc = rc;
        st->ready++;
        st->kept += st->fetch_n - st->fetch_came;
        st->came += st->fetch_came;
        st->left += st->fetch_left;
        (void)pthread_cond_broadcast(&st->changed);
    }
    (void)pthread_mutex_unlock(&st->lock);
    return NULL;
}

static uint64_t of_all(const struct tiered *st, uint64_t windows)
{
    return windows < st->all_windows ? windows : st->all_windows;
}

int tiered_wait(struct tiered *st, uint64_t windows, struct drps_err *err)
{
    const uint64_t start = drps_clock_ns(), n = of_all(st, windows);
    (void)pthread_mutex_lock(&st->lock);
    const int waits = st->ready < n && st->rc == 0;
    while (st->ready < n && st->rc == 0)
        (void)pthread_cond_wait(&st->changed, &st->lock);
    const int rc = st->rc;
    (void)pthread_mutex_unlock(&st->lock);
    const uint64_t waited = waits ? drps_clock_ns() - start : 0;
    st->stall_ns += waited;
    st->stalled += (uint64_t)waits;
    if (st->waited_ns && n) st->waited_ns[tiered_of_epoch(st, n - 1)] += waited;
    return rc < 0 ? drps_err_set(err, rc, "%s", st->failure.text) : 0;
}

void tiered_want(struct tiered *st, uint64_t windows)
{
    (void)pthread_mutex_lock(&st->lock);
    st->wanted = of_all(st, windows);
    (void)pthread_cond_broadcast(&st->changed);
    (void)pthread_mutex_unlock(&st->lock);
}

int tiered_start(struct tiered *st, struct drps_err *err)
{
    st->wanted = 1;
    const int rc = -pthread_create(&st->thread, NULL, fetch_windows, st);
    st->has_thread = rc == 0;
    return rc == 0 ? 0 : drps_err_set(err, rc, "a thread that fetches rows: %s", drps_err_name(rc));
}

void tiered_stop(struct tiered *st)
{
    if (!st->has_thread) return;
    (void)pthread_mutex_lock(&st->lock);
    st->stop = 1;
    (void)pthread_cond_broadcast(&st->changed);
    (void)pthread_mutex_unlock(&st->lock);
    (void)pthread_join(st->thread, NULL); /* cannot fail for a thread of ours */
    st->has_thread = 0;
}

/* ---- Everything back ---- */

int tiered_bring_down(struct tiered *st, struct drps_err *err)
{
    const size_t most = st->source->max_rows;
    size_t n = 0;
    int rc = 0;
    for (uint32_t f = 0; f < st->frames.n && rc == 0; f++) {
        if (!frames_has_row(&st->frames, f)) continue;
        st->leaving[n++] = moved_word(st->frames.place_of[f], f);
        if (n < most) continue;
        rc = mover_store(&st->mover, st->leaving, n, err);
        n = 0;
    }
    return rc < 0 ? rc : mover_store(&st->mover, st->leaving, n, err);
}
