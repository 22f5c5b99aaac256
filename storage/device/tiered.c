/*
 * Rows in three tiers: those of two neighbouring windows are in the memory of a device, with others
 * that are used again soon; the rest is in a store below, in memory. A thread of the store's own
 * brings the rows of the next window while this one is trained: where it needs frames, the rows
 * leave that are used again last. Which these are the plan's windows say
 * (index/plan/drps_window.h); nothing is guessed.
 *
 * While window w is open, the thread fetches window w + 1. It may take the frames of rows that no
 * one of the two has: these were used in window w - 1 at the latest, whose steps are all given to
 * the device by then, and an event tells when they are computed.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"
#include "base/drps_clock.h"
#include "storage/device/frames.h"
#include "storage/device/move.h"
#include "storage/drps_open_steps.h"
#include "storage/drps_row_shape.h"

enum { WINDOWS_HELD = 3 };

/* A window that is being fetched, is open, or has just ended. */
struct window {
    size_t n;
    uint32_t *rows;                 /* own: [max_rows] */
    struct drps_use_distances next; /* own arrays */
    uint64_t last_step;             /* of the epoch */
};

struct tiered {
    const struct drps_store_ops *ops;
    struct drps_device_use use; /* of the thread that trains */
    const struct drps_store_ops *below_ops;
    struct drps_store *below; /* own */
    char *memory;             /* own: the frames */
    uint64_t n_rows, epoch_step, epoch_steps;
    size_t row_bytes;
    struct frames frames;
    struct mover mover;
    const struct drps_window_source *source;
    uint32_t first_window; /* of the epoch, with which the store begins */
    struct window windows[WINDOWS_HELD];
    uint32_t *ids, *arriving; /* own: [max_rows] rows that come, and their frames */
    uint64_t *leaving;        /* own: [max_rows] */
    uint32_t *index;          /* own: [max_rows] frames of the open step */
    struct drps_open_steps steps;
    uint64_t window, opened; /* the window of the step opened last; windows opened */
    uint64_t stall_ns, stalled;

    pthread_t thread;
    int has_thread;
    pthread_mutex_t lock; /* of what follows */
    pthread_cond_t changed;
    uint64_t ready, wanted;       /* windows that are fetched, and that may be */
    uint64_t kept, arrived, left; /* rows of windows that were there already; that came and left */
    int stop, rc;
    struct drps_err failure;
};

/* ---- Fetching a window: the store's own thread ---- */

static struct window *window_at(struct tiered *st, uint64_t number)
{
    return &st->windows[number % WINDOWS_HELD];
}

static int read_window(struct tiered *st, uint64_t number, struct drps_err *err)
{
    struct window *w = window_at(st, number);
    struct drps_store_window head;
    const uint32_t of_epoch = (uint32_t)((st->first_window + number) % st->source->windows);
    int rc = st->source->read(st->source->ctx, of_epoch, &head, w->rows, &w->next, NULL, err);
    if (rc < 0) return rc;
    w->n = head.n;
    w->last_step = head.first_step + head.steps - 1;
    return 0;
}

/* The rows of a window that has ended wait for the next one that uses them. */
static void let_wait(struct tiered *st, uint64_t number)
{
    const struct window *w = window_at(st, number);
    size_t far = 0;
    for (size_t i = 0; i < w->n; i++)
        if (w->next.marks[i / 64] >> i % 64 & 1)
            frames_wait(&st->frames, st->frames.frame_of[w->rows[i]], number + w->next.far[far++]);
}

/* Makes room for so many rows of window `number`. */
static int make_room(struct tiered *st, uint64_t number, size_t needed, struct drps_err *err)
{
    size_t n = 0;
    while (st->frames.n_free < needed) {
        const uint32_t frame = frames_take_farthest(&st->frames, number);
        if (frame == FRAMES_NONE)
            return drps_err_set(err, DRPS_E_CORRUPT,
                                "two windows have more rows than the plan says: make it anew");
        st->leaving[n++] = (uint64_t)st->frames.row_of[frame] << 32 | frame;
    }
    return mover_store(&st->mover, st->leaving, n, err);
}

/* All rows of the window that are not there. */
static size_t find_arriving(struct tiered *st, uint64_t number)
{
    const struct window *w = window_at(st, number);
    size_t n = 0;
    for (size_t i = 0; i < w->n; i++)
        if (st->frames.frame_of[w->rows[i]] == FRAMES_NONE) st->ids[n++] = w->rows[i];
    return n;
}

static int fetch(struct tiered *st, uint64_t number, struct drps_err *err)
{
    struct drps_device_use *use = &st->mover.use;
    int rc = 0;
    if (number >= 2) {
        let_wait(st, number - 2);
        rc = DRPS_DEVICE_CALL(use, err, after, DRPS_DEVICE_ROWS_OUT,
                              EVENT_ENDED + (unsigned)(number % 2));
    }
    frames_come_to(&st->frames, number);
    if (rc == 0) rc = read_window(st, number, err);
    if (rc < 0) return rc;
    const size_t n = find_arriving(st, number);
    rc = make_room(st, number, n, err);
    for (size_t i = 0; i < n && rc == 0; i++)
        st->arriving[i] = frames_put(&st->frames, st->ids[i]);
    if (rc == 0) rc = mover_load(&st->mover, st->ids, st->arriving, n, err);
    return rc < 0 ? rc
                  : DRPS_DEVICE_CALL(use, err, mark, DRPS_DEVICE_ROWS_IN,
                                     EVENT_LOADED + (unsigned)(number % 2));
}

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
        st->kept += window_at(st, number)->n - (st->mover.rows_in - st->arrived);
        st->arrived = st->mover.rows_in;
        st->left = st->mover.rows_out;
        (void)pthread_cond_broadcast(&st->changed);
    }
    (void)pthread_mutex_unlock(&st->lock);
    return NULL;
}

/* Waits until so many windows are fetched. */
static int wait_for(struct tiered *st, uint64_t windows, struct drps_err *err)
{
    const uint64_t start = drps_clock_ns();
    (void)pthread_mutex_lock(&st->lock);
    const int waits = st->ready < windows && st->rc == 0;
    while (st->ready < windows && st->rc == 0)
        (void)pthread_cond_wait(&st->changed, &st->lock);
    const int rc = st->rc;
    (void)pthread_mutex_unlock(&st->lock);
    st->stall_ns += waits ? drps_clock_ns() - start : 0;
    st->stalled += (uint64_t)waits;
    return rc < 0 ? drps_err_set(err, rc, "%s", st->failure.text) : 0;
}

static void want(struct tiered *st, uint64_t windows)
{
    (void)pthread_mutex_lock(&st->lock);
    st->wanted = windows;
    (void)pthread_cond_broadcast(&st->changed);
    (void)pthread_mutex_unlock(&st->lock);
}

/* ---- Opening ---- */

static int memory_need(const struct drps_store_config *config, uint64_t *least_out,
                       uint64_t *most_out, struct drps_err *err)
{
    int rc = drps_store_resident.memory_need(config, least_out, most_out, err);
    if (rc < 0) return rc;
    /* Frames are at most as many as rows, windows as steps; and what is kept of windows. */
    const uint64_t of_window = 5 * sizeof(uint32_t) + sizeof(uint64_t);
    *least_out += frames_memory(config->rows, config->device_frames, config->epoch_steps) +
                  mover_host_bytes(config->row_bytes, config->rows) +
                  config->device_frames * (WINDOWS_HELD + 1) * of_window;
    *most_out = *least_out;
    return 0;
}

static void close_store(struct drps_store *base)
{
    struct tiered *st = (struct tiered *)base;
    if (!st) return;
    if (st->has_thread) {
        (void)pthread_mutex_lock(&st->lock);
        st->stop = 1;
        (void)pthread_cond_broadcast(&st->changed);
        (void)pthread_mutex_unlock(&st->lock);
        (void)pthread_join(st->thread, NULL); /* cannot fail for a thread of ours */
    }
    mover_close(&st->mover);
    if (st->use.ops) st->use.ops->release(st->use.dev, st->memory);
    if (st->below) st->below_ops->close(st->below);
    frames_destroy(&st->frames);
    for (int i = 0; i < WINDOWS_HELD; i++) {
        free(st->windows[i].rows);
        free(st->windows[i].next.marks);
        free(st->windows[i].next.far);
    }
    free(st->ids);
    free(st->arriving);
    free(st->leaving);
    free(st->index);
    (void)pthread_cond_destroy(&st->changed);
    (void)pthread_mutex_destroy(&st->lock);
    free(st);
}

static int make_arrays(struct tiered *st, struct drps_err *err)
{
    const size_t most = st->source->max_rows ? st->source->max_rows : 1;
    int has = 1;
    for (int i = 0; i < WINDOWS_HELD; i++) {
        struct window *w = &st->windows[i];
        w->rows = drps_array_new(most, sizeof(*w->rows));
        w->next.marks = drps_array_new(DRPS_DISTANCE_WORDS(most), sizeof(*w->next.marks));
        w->next.far = drps_array_new(most, sizeof(*w->next.far));
        has = has && w->rows && w->next.marks && w->next.far;
    }
    st->ids = drps_array_new(most, sizeof(*st->ids));
    st->arriving = drps_array_new(most, sizeof(*st->arriving));
    st->leaving = drps_array_new(most, sizeof(*st->leaving));
    st->index = drps_array_new(most, sizeof(*st->index));
    if (has && st->ids && st->arriving && st->leaving && st->index) return 0;
    return drps_err_set(err, -ENOMEM, "no memory for windows of %zu rows", most);
}

/* Finds the window in which the store begins, and how many steps an epoch has. */
static int find_first(struct tiered *st, uint64_t step, struct drps_err *err)
{
    struct drps_store_window head;
    st->epoch_step = step;
    for (uint32_t w = 0; w < st->source->windows; w++) {
        int rc = st->source->read(st->source->ctx, w, &head, NULL, NULL, NULL, err);
        if (rc < 0) return rc;
        if (head.first_step <= step) st->first_window = w;
        st->epoch_steps = head.first_step + head.steps;
    }
    if (step < st->epoch_steps) return 0;
    return drps_err_set(err, -EINVAL, "an epoch has no step %llu", (unsigned long long)step);
}

static int open_below(struct tiered *st, const struct drps_store_config *config,
                      struct drps_err *err)
{
    struct drps_store_config below = *config;
    below.open_steps = 1;
    below.mark_rows = 0;
    below.memory_bytes = 0;
    st->below_ops = &drps_store_resident;
    return st->below_ops->open(&below, &st->below, err);
}

static int open_frames(struct tiered *st, const struct drps_store_config *config,
                       struct drps_err *err)
{
    const uint64_t n = config->device_frames;
    void *memory = NULL;
    if (n > UINT32_MAX || n < st->source->working_rows)
        return drps_err_set(err, DRPS_E_MEMORY_BUDGET,
                            "two windows have %llu rows, and the device has room for %llu",
                            (unsigned long long)st->source->working_rows, (unsigned long long)n);
    int rc = frames_init(&st->frames, st->n_rows, (uint32_t)n, st->source->windows, err);
    if (rc == 0) rc = mover_open(&st->mover, &st->use, st->row_bytes, st->n_rows, err);
    if (rc == 0) rc = DRPS_DEVICE_CALL(&st->use, err, alloc, (size_t)n * st->row_bytes, &memory);
    st->memory = memory;
    st->mover.rows = (struct drps_device_rows){memory, st->row_bytes};
    st->mover.below_ops = st->below_ops;
    st->mover.below = st->below;
    return rc;
}

static int start_thread(struct tiered *st, struct drps_err *err)
{
    st->wanted = 1;
    const int rc = -pthread_create(&st->thread, NULL, fetch_windows, st);
    st->has_thread = rc == 0;
    return rc == 0 ? 0 : drps_err_set(err, rc, "a thread that fetches rows: %s", drps_err_name(rc));
}

static int open_store(const struct drps_store_config *config, struct drps_store **st_out,
                      struct drps_err *err)
{
    struct drps_open_steps steps;
    uint64_t bytes;
    *st_out = NULL;
    int rc = drps_row_shape(config, &bytes, err);
    if (rc == 0) rc = drps_open_steps_init(&steps, 1, err);
    if (rc < 0) return rc;
    struct tiered *st = calloc(1, sizeof(*st));
    if (!st) return drps_err_set(err, -ENOMEM, "handle of the row store");
    st->ops = &drps_store_tiered;
    st->use = *config->device;
    st->source = config->windows;
    st->n_rows = config->rows;
    st->row_bytes = config->row_bytes;
    st->steps = steps;
    (void)pthread_mutex_init(&st->lock, NULL); /* cannot fail without attributes */
    (void)pthread_cond_init(&st->changed, NULL);
    rc = make_arrays(st, err);
    if (rc == 0) rc = find_first(st, config->first_step, err);
    if (rc == 0) rc = open_below(st, config, err);
    if (rc == 0) rc = open_frames(st, config, err);
    if (rc == 0) rc = start_thread(st, err);
    if (rc < 0)
        close_store((struct drps_store *)st);
    else
        *st_out = (struct drps_store *)st;
    return rc;
}

/* ---- Steps ---- */

/* The next step is the first one of window `number`: its rows must have come, and those of the one
 * after it may. */
static int open_window(struct tiered *st, uint64_t number, struct drps_err *err)
{
    struct drps_device_use *use = &st->use;
    int rc = number ? DRPS_DEVICE_CALL(use, err, mark, DRPS_DEVICE_COMPUTE,
                                       EVENT_ENDED + (unsigned)((number + 1) % 2))
                    : 0;
    if (rc == 0) rc = wait_for(st, number + 1, err);
    if (rc == 0)
        rc = DRPS_DEVICE_CALL(use, err, after, DRPS_DEVICE_COMPUTE,
                              EVENT_LOADED + (unsigned)(number % 2));
    if (rc < 0) return rc;
    st->window = number;
    st->opened = number + 1;
    want(st, number + 2);
    return 0;
}

static int find_frames(struct tiered *st, const uint32_t *ids, size_t n, struct drps_err *err)
{
    if (n > st->source->max_rows)
        return drps_err_set(err, -EINVAL, "a step of %zu rows, its window has at most %zu", n,
                            st->source->max_rows);
    for (size_t i = 0; i < n; i++) {
        st->index[i] = ids[i] < st->n_rows ? st->frames.frame_of[ids[i]] : FRAMES_NONE;
        if (st->index[i] == FRAMES_NONE)
            return drps_err_set(err, -EINVAL, "a step needs row %u, which its window does not have",
                                ids[i]);
    }
    return 0;
}

static int step_open(struct drps_store *base, uint64_t step, const uint32_t *ids, size_t n,
                     struct drps_rows *rows_out, struct drps_err *err)
{
    struct tiered *st = (struct tiered *)base;
    *rows_out = (struct drps_rows){0};
    int rc = drps_open_steps_check(&st->steps, step, err);
    const int is_first = !st->opened ||
                         st->epoch_step == window_at(st, st->window)->last_step + 1 ||
                         (!st->epoch_step && step);
    if (rc == 0 && is_first) rc = open_window(st, st->opened, err);
    if (rc == 0) rc = find_frames(st, ids, n, err);
    if (rc < 0) return rc;
    st->epoch_step = st->epoch_step + 1 < st->epoch_steps ? st->epoch_step + 1 : 0;
    drps_open_steps_add(&st->steps);
    *rows_out =
        (struct drps_rows){.base = st->memory, .stride = st->row_bytes, .index = st->index, .n = n};
    return 0;
}

static int step_close(struct drps_store *base, uint64_t step, int changed, struct drps_err *err)
{
    struct tiered *st = (struct tiered *)base;
    (void)changed; /* rows are written below when they leave, whether they are changed or not */
    return drps_open_steps_close(&st->steps, step, err);
}

/* ---- Scans ---- */

/* A scan of the store below, over whose rows those in the device's memory are laid. */
struct overlay {
    struct tiered *st;
    drps_row_visit visit;
    void *ctx;
    char *rows; /* own: a copy of what is shown below, [cap] */
    size_t cap;
    uint32_t *frames, *places; /* own: [cap] rows of it that are on the device, and where */
};

static int lay_over(void *ctx, uint64_t first, size_t n, const void *rows, struct drps_err *err)
{
    const struct overlay *o = ctx;
    const size_t row_bytes = o->st->row_bytes;
    (void)err;
    for (size_t i = 0; i < n; i++)
        memcpy(o->rows + o->places[first + i] * row_bytes, (const char *)rows + i * row_bytes,
               row_bytes);
    return 0;
}

static int grow(struct overlay *o, size_t n, struct drps_err *err)
{
    if (n <= o->cap) return 0;
    free(o->rows);
    free(o->frames);
    free(o->places);
    o->rows = drps_array_new(n, o->st->row_bytes);
    o->frames = drps_array_new(n, sizeof(*o->frames));
    o->places = drps_array_new(n, sizeof(*o->places));
    o->cap = n;
    if (o->rows && o->frames && o->places) return 0;
    return drps_err_set(err, -ENOMEM, "no memory to visit %zu rows", n);
}

static int visit_overlaid(void *ctx, uint64_t first, size_t n, const void *rows,
                          struct drps_err *err)
{
    struct overlay *o = ctx;
    struct tiered *st = o->st;
    size_t on_device = 0;
    int rc = grow(o, n, err);
    if (rc < 0) return rc;
    memcpy(o->rows, rows, n * st->row_bytes);
    for (size_t i = 0; i < n; i++) {
        const uint32_t frame = st->frames.frame_of[first + i];
        if (frame == FRAMES_NONE) continue;
        o->frames[on_device] = frame;
        o->places[on_device++] = (uint32_t)i;
    }
    rc = mover_read(&st->mover, o->frames, on_device, lay_over, o, err);
    return rc < 0 ? rc : o->visit(o->ctx, first, n, o->rows, err);
}

static int scan(struct drps_store *base, size_t bytes, drps_row_visit visit, void *ctx,
                struct drps_err *err)
{
    struct tiered *st = (struct tiered *)base;
    struct drps_device_use *use = &st->use;
    struct overlay o = {.st = st, .visit = visit, .ctx = ctx};
    (void)bytes; /* all of each row is there */
    int rc = drps_open_steps_none(&st->steps, err);
    if (rc == 0) rc = wait_for(st, st->opened + 1, err); /* the thread has no more to do */
    if (rc == 0) rc = DRPS_DEVICE_CALL(use, err, mark, DRPS_DEVICE_COMPUTE, EVENT_COMPUTED);
    if (rc == 0) rc = DRPS_DEVICE_CALL(use, err, after, DRPS_DEVICE_ROWS_OUT, EVENT_COMPUTED);
    if (rc == 0)
        rc = DRPS_DEVICE_CALL(use, err, after, DRPS_DEVICE_ROWS_OUT,
                              EVENT_LOADED + (unsigned)(st->opened % 2));
    if (rc == 0) rc = st->below_ops->scan(st->below, 0, visit_overlaid, &o, err);
    free(o.rows);
    free(o.frames);
    free(o.places);
    return rc;
}

static void stats(struct drps_store *base, struct drps_store_stats *out)
{
    struct tiered *st = (struct tiered *)base;
    (void)pthread_mutex_lock(&st->lock);
    *out = (struct drps_store_stats){.steps = st->steps.opened,
                                     .stall_ns = st->stall_ns,
                                     .stalled_steps = st->stalled,
                                     .windows = st->opened,
                                     .rows_kept = st->kept,
                                     .rows_arrived = st->arrived,
                                     .rows_sent = st->left,
                                     .pool_bytes = st->frames.n * st->row_bytes};
    (void)pthread_mutex_unlock(&st->lock);
}

const struct drps_store_ops drps_store_tiered = {
    .name = "tiered",
    .memory_need = memory_need,
    .open = open_store,
    .step_open = step_open,
    .step_close = step_close,
    .scan = scan,
    .stats = stats,
    .close = close_store,
};
