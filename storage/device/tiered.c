/* Opening the store of tiers, its steps, and its scans; tiered.h has the idea. */
#include "storage/device/tiered.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"
#include "storage/device/drps_device_rows.h"
#include "storage/drps_row_shape.h"

/* ---- Opening and closing ---- */

static void close_store(struct drps_store *base)
{
    struct tiered *st = (struct tiered *)base;
    if (!st) return;
    tiered_stop(st);
    mover_close(&st->mover);
    if (st->use.ops) st->use.ops->release(st->use.dev, st->memory);
    if (st->below) st->below_ops->close(st->below);
    frames_destroy(&st->frames);
    for (int i = 0; i < WINDOWS_HELD; i++) {
        free(st->windows[i].places);
        free(st->windows[i].next.marks);
        free(st->windows[i].next.far);
    }
    free(st->slots);
    free(st->coming);
    free(st->arriving);
    free(st->leaving);
    free(st->index);
    free(st->waited_ns);
    (void)pthread_cond_destroy(&st->changed);
    (void)pthread_mutex_destroy(&st->lock);
    free(st);
}

/* What only one of the two kinds needs. Returns 0 when memory is gone. */
static int make_kind(struct tiered *st, size_t most)
{
    int has = 1;
    if (tiered_has_disk(st)) {
        st->slots = drps_array_new(most, sizeof(*st->slots));
        st->waited_ns = calloc(st->source->windows, sizeof(*st->waited_ns));
        for (size_t i = 0; i < most && st->slots; i++)
            st->slots[i] = (uint32_t)i;
        return st->slots && st->waited_ns;
    }
    for (int i = 0; i < WINDOWS_HELD; i++) {
        struct drps_use_distances *next = &st->windows[i].next;
        next->marks = drps_array_new(DRPS_DISTANCE_WORDS(most), sizeof(*next->marks));
        next->far = drps_array_new(most, sizeof(*next->far));
        has = has && next->marks && next->far;
    }
    return has;
}

static int make_arrays(struct tiered *st, struct drps_err *err)
{
    const size_t most = st->source->max_rows ? st->source->max_rows : 1;
    int has = make_kind(st, most);
    for (int i = 0; i < WINDOWS_HELD; i++) {
        st->windows[i].places = drps_array_new(most, sizeof(*st->windows[i].places));
        has = has && st->windows[i].places;
    }
    st->coming = drps_array_new(most, sizeof(*st->coming));
    st->arriving = drps_array_new(most, sizeof(*st->arriving));
    st->leaving = drps_array_new(most, sizeof(*st->leaving));
    st->index = drps_array_new(most, sizeof(*st->index));
    if (has && st->coming && st->arriving && st->leaving && st->index) return 0;
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
    st->all_windows = st->source->windows * st->source->epochs - st->first_window;
    if (step < st->epoch_steps) return 0;
    return drps_err_set(err, -EINVAL, "an epoch has no step %llu", (unsigned long long)step);
}

/* ---- The store below ---- */

/* A window of the source as a step, which is all of a window of the store below. */
static int read_as_step(void *ctx, uint32_t w, struct drps_store_window *out, uint32_t *rows,
                        struct drps_use_distances *next, struct drps_use_distances *prev,
                        struct drps_err *err)
{
    const struct drps_window_source *source = ((const struct tiered *)ctx)->source;
    int rc = source->read(source->ctx, w, out, rows, next, prev, err);
    out->first_step = w;
    out->steps = 1;
    return rc;
}

static int open_relay(struct tiered *st, const struct drps_store_config *config,
                      struct drps_err *err)
{
    struct drps_store_config below = *config;
    st->below_source = *st->source;
    st->below_source.ctx = st;
    st->below_source.read = read_as_step;
    below.open_steps = WINDOWS_HELD;
    below.scans_open = 1;
    below.mark_rows = 0;
    below.memory_bytes = drps_tiered_below_bytes(config);
    below.windows = &st->below_source;
    below.epoch_steps = st->source->windows;
    below.first_step = st->first_window;
    return st->below_ops->open(&below, &st->below, err);
}

/* Its rows have their places for good: a step without rows, which stays open, tells where. */
static int open_resident(struct tiered *st, const struct drps_store_config *config,
                         struct drps_err *err)
{
    struct drps_store_config below = *config;
    below.open_steps = 1;
    below.scans_open = 1;
    below.mark_rows = 0;
    below.memory_bytes = 0;
    int rc = st->below_ops->open(&below, &st->below, err);
    return rc < 0 ? rc : st->below_ops->step_open(st->below, 0, NULL, 0, &st->mover.below, err);
}

static uint64_t places_below(const struct tiered *st)
{
    struct drps_store_stats below;
    st->below_ops->stats(st->below, &below);
    return below.pool_bytes / st->row_bytes;
}

/* ---- Frames ---- */

/* Above relay no row stays beyond its window. */
static uint64_t frames_of(const struct tiered *st, const struct drps_store_config *config)
{
    const uint64_t most = st->source->working_rows;
    return tiered_has_disk(st) && most < config->device_frames ? most : config->device_frames;
}

static int open_frames(struct tiered *st, const struct drps_store_config *config,
                       struct drps_err *err)
{
    const uint64_t n = frames_of(st, config);
    void *memory = NULL;
    if (n > UINT32_MAX || n < st->source->working_rows)
        return drps_err_set(err, DRPS_E_MEMORY_BUDGET,
                            "two windows have %llu rows, and the device has room for %llu",
                            (unsigned long long)st->source->working_rows, (unsigned long long)n);
    int rc = frames_init(&st->frames, places_below(st), (uint32_t)n, st->source->windows, err);
    if (rc == 0) rc = mover_open(&st->mover, &st->use, st->row_bytes, st->n_rows, err);
    if (rc == 0) rc = DRPS_DEVICE_CALL(&st->use, err, alloc, (size_t)n * st->row_bytes, &memory);
    st->memory = memory;
    st->mover.rows = (struct drps_device_rows){memory, st->row_bytes};
    return rc;
}

static int open_kind(const struct drps_store_ops *ops, const struct drps_store_ops *below_ops,
                     const struct drps_store_config *config, struct drps_store **st_out,
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
    st->ops = ops;
    st->below_ops = below_ops;
    st->use = *config->device;
    st->source = config->windows;
    st->n_rows = config->rows;
    st->row_bytes = config->row_bytes;
    st->steps = steps;
    (void)pthread_mutex_init(&st->lock, NULL); /* cannot fail without attributes */
    (void)pthread_cond_init(&st->changed, NULL);
    rc = make_arrays(st, err);
    if (rc == 0) rc = find_first(st, config->first_step, err);
    if (rc == 0)
        rc = tiered_has_disk(st) ? open_relay(st, config, err) : open_resident(st, config, err);
    if (rc == 0) rc = open_frames(st, config, err);
    if (rc == 0) rc = tiered_start(st, err);
    if (rc < 0)
        close_store((struct drps_store *)st);
    else
        *st_out = (struct drps_store *)st;
    return rc;
}

static int open_over_resident(const struct drps_store_config *config, struct drps_store **st_out,
                              struct drps_err *err)
{
    return open_kind(&drps_store_tiered, &drps_store_resident, config, st_out, err);
}

static int open_over_relay(const struct drps_store_config *config, struct drps_store **st_out,
                           struct drps_err *err)
{
    return open_kind(&drps_store_tiered_disk, &drps_store_relay, config, st_out, err);
}

/* ---- Steps ---- */

/* The next step is the first one of window `number`: its rows must have come, and those of the one
 * after it may. */
static int open_window(struct tiered *st, uint64_t number, struct drps_err *err)
{
    struct drps_device_use *use = &st->use;
    if (number == st->all_windows)
        return drps_err_set(err, -EINVAL, "a step is opened behind the last of %llu windows",
                            (unsigned long long)number);
    int rc = number ? DRPS_DEVICE_CALL(use, err, mark, DRPS_DEVICE_COMPUTE,
                                       EVENT_ENDED + (unsigned)((number + 1) % 2))
                    : 0;
    if (rc == 0) rc = tiered_wait(st, number + 1, err);
    if (rc == 0)
        rc = DRPS_DEVICE_CALL(use, err, after, DRPS_DEVICE_COMPUTE,
                              EVENT_LOADED + (unsigned)(number % 2));
    if (rc < 0) return rc;
    st->window = number;
    st->opened = number + 1;
    tiered_want(st, number + 2);
    return 0;
}

/* Where the row is that a step names; FRAMES_NONE: nowhere. */
static uint32_t frame_named(struct tiered *st, uint32_t id)
{
    const struct window *w = tiered_window(st, st->window);
    if (!tiered_has_disk(st)) return id < st->n_rows ? st->frames.frame_of[id] : FRAMES_NONE;
    return id < w->n ? st->frames.frame_of[w->places[id]] : FRAMES_NONE;
}

static int find_frames(struct tiered *st, const uint32_t *ids, size_t n, struct drps_err *err)
{
    if (n > st->source->max_rows)
        return drps_err_set(err, -EINVAL, "a step of %zu rows, its window has at most %zu", n,
                            st->source->max_rows);
    for (size_t i = 0; i < n; i++) {
        st->index[i] = frame_named(st, ids[i]);
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
                         st->epoch_step == tiered_window(st, st->window)->last_step + 1 ||
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

static int scan(struct drps_store *base, size_t bytes, drps_row_visit visit, void *ctx,
                struct drps_err *err)
{
    struct tiered *st = (struct tiered *)base;
    struct drps_device_use *use = &st->use;
    int rc = drps_open_steps_none(&st->steps, err);
    if (rc == 0) rc = tiered_wait(st, st->opened + 1, err); /* the thread has no more to do */
    if (rc == 0) rc = DRPS_DEVICE_CALL(use, err, mark, DRPS_DEVICE_COMPUTE, EVENT_COMPUTED);
    if (rc == 0) rc = DRPS_DEVICE_CALL(use, err, after, DRPS_DEVICE_ROWS_OUT, EVENT_COMPUTED);
    if (rc == 0)
        rc = DRPS_DEVICE_CALL(use, err, after, DRPS_DEVICE_ROWS_OUT,
                              EVENT_LOADED + (unsigned)(st->opened % 2));
    if (rc == 0) rc = tiered_bring_down(st, err);
    return rc < 0 ? rc : st->below_ops->scan(st->below, bytes, visit, ctx, err);
}

/* ---- Statistics ---- */

/* What the store below has done, and what has moved between it and the device. */
static void stats(struct drps_store *base, struct drps_store_stats *out)
{
    struct tiered *st = (struct tiered *)base;
    st->below_ops->stats(st->below, out);
    (void)pthread_mutex_lock(&st->lock);
    out->steps = st->steps.opened;
    out->stall_ns = st->stall_ns;
    out->stalled_steps = st->stalled;
    out->windows = st->opened;
    out->windows_ahead = st->ready > st->opened ? st->ready - st->opened : 0;
    out->tiers = (struct drps_tier_stats){.device_bytes = st->frames.n * st->row_bytes,
                                          .rows_kept = st->kept,
                                          .rows_in = st->came,
                                          .rows_out = st->left};
    (void)pthread_mutex_unlock(&st->lock);
}

static void window_stats(struct drps_store *base, struct drps_window_stats *out)
{
    struct tiered *st = (struct tiered *)base;
    st->below_ops->window_stats(st->below, out);
    for (uint32_t w = 0; w < st->source->windows; w++)
        out[w].stall_ns = st->waited_ns[w]; /* training did, and not who brings rows */
}

const struct drps_store_ops drps_store_tiered = {
    .name = "tiered",
    .memory_need = tiered_memory_need,
    .open = open_over_resident,
    .step_open = step_open,
    .step_close = step_close,
    .scan = scan,
    .stats = stats,
    .close = close_store,
};

const struct drps_store_ops drps_store_tiered_disk = {
    .name = "tiered-disk",
    .by_slot = 1,
    .memory_need = tiered_disk_memory_need,
    .open = open_over_relay,
    .step_open = step_open,
    .step_close = step_close,
    .scan = scan,
    .stats = stats,
    .window_stats = window_stats,
    .close = close_store,
};
