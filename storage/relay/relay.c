/* The relay store as the engine's thread sees it: opening it, and running steps. The window thread
 * moves the rows; relay.h has the idea. */
#include "storage/relay/relay.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"
#include "base/drps_checksum.h"
#include "base/drps_clock.h"
#include "storage/relay/drps_relay.h"
#include "storage/relay/save.h"

enum { LOOK_AHEAD = 3 }; /* of chunks to read ahead, a store that is looked at has one in so many */

/* ---- Memory ---- */

static int check_shape(const struct drps_store_config *c, struct drps_err *err)
{
    if (!c->row_bytes || c->row_bytes % 4 || c->row_bytes > UINT32_MAX)
        return drps_err_set(err, -EINVAL, "rows of %zu bytes: not a multiple of 4", c->row_bytes);
    if (!c->rows || c->rows > UINT32_MAX || c->rows > UINT64_MAX / 8 / (c->row_bytes + 64))
        return drps_err_set(err, -EINVAL, "%llu rows of %zu bytes", (unsigned long long)c->rows,
                            c->row_bytes);
    return 0;
}

/* The least memory with which so many rows can be in memory. */
static uint64_t memory_for(const struct drps_store_config *c, uint64_t rows)
{
    struct drps_relay_share share;
    drps_relay_share(0, c->rows, c->row_bytes, c->seek_bytes, &share);
    const uint64_t rest = rows * share.row_bytes;
    uint64_t memory = rest + share.buffer_bytes;
    for (;;) { /* the buffers' part grows with the whole */
        drps_relay_share(memory, c->rows, c->row_bytes, c->seek_bytes, &share);
        if (share.budget_bytes >= rows * share.row_bytes) return memory;
        memory = rest + share.buffer_bytes;
    }
}

static int relay_memory_need(const struct drps_store_config *config, uint64_t *least_out,
                             uint64_t *most_out, struct drps_err *err)
{
    *least_out = *most_out = 0;
    int rc = check_shape(config, err);
    if (rc < 0) return rc;
    uint64_t rows = 2 * (uint64_t)config->step.rows; /* two steps: a window each */
    if (config->windows) rows = config->windows->working_rows;
    if (rows > config->rows) rows = config->rows;
    *least_out = memory_for(config, rows);
    const uint64_t sure = config->windows ? 0 : drps_relay_sure_bytes(config);
    if (sure > *least_out) *least_out = sure;
    struct drps_relay_share share;
    for (; config->windows; *least_out += *least_out / 8) { /* until the windows fit, too */
        drps_relay_share(*least_out, config->rows, config->row_bytes, config->seek_bytes, &share);
        if (drps_relay_fits(&share, config->windows->windows)) break;
        if (*least_out > UINT64_MAX / 2)
            return drps_err_set(err, DRPS_E_MEMORY_BUDGET, "%u windows are too many",
                                config->windows->windows);
    }
    *most_out = memory_for(config, config->rows);
    return 0;
}

/* ---- Opening and closing ---- */

static void free_distances(struct drps_use_distances *w)
{
    free(w->marks);
    free(w->far);
}

static void relay_close(struct drps_store *base)
{
    struct drps_relay *st = (struct drps_relay *)base;
    if (!st) return;
    drps_window_thread_stop(st);
    drps_runs_close(st->runs);
    drps_relay_restore_end(st);
    drps_pages_free(st->rows, st->rows_bytes);
    for (int i = 0; i < 2; i++) {
        free(st->open[i].frame);
        if (st->looking) st->open[i].next.far = NULL; /* borrowed */
        free_distances(&st->open[i].next);
    }
    free(st->path);
    free(st->free_frames);
    drps_waiting_free(st->waiting);
    free(st->leaving);
    free(st->order);
    free(st->picked);
    free(st->ids);
    free_distances(&st->prev);
    free(st->counts);
    free(st->parts);
    free(st->index);
    free(st->window_stats);
    if (st->alive) {
        (void)pthread_cond_destroy(&st->wake);
        (void)pthread_cond_destroy(&st->news);
        (void)pthread_mutex_destroy(&st->lock);
    }
    free(st);
}

static int check_config(const struct drps_store_config *c, struct drps_err *err)
{
    const struct drps_window_source *s = c->windows;
    int rc = check_shape(c, err);
    if (rc < 0) return rc;
    if (!s || !s->windows || !s->epochs || !s->read || s->windows > UINT32_MAX / 4 ||
        s->max_rows > s->working_rows || s->working_rows > c->rows)
        return drps_err_set(err, -EINVAL, "the relay store needs the plan's windows");
    return 0;
}

/* An array with a number for each row of a window. */
static uint32_t *row_numbers(const struct drps_relay *st)
{
    return drps_array_new(st->source.max_rows + DRPS_PICK_ROOM, sizeof(uint32_t));
}

static int make_distances(const struct drps_relay *st, struct drps_use_distances *w)
{
    w->marks = drps_array_new(DRPS_DISTANCE_WORDS(st->source.max_rows), sizeof(*w->marks));
    w->far = row_numbers(st);
    return w->marks && w->far ? 0 : -ENOMEM;
}

/* Rows in frames; or, of a store that is looked at, which ones they are. */
static int allocate_rows(struct drps_relay *st)
{
    if (st->looking) {
        st->restore->ids = drps_array_new((size_t)st->frames, sizeof(*st->restore->ids));
        return st->restore->ids ? 0 : -ENOMEM;
    }
    st->rows_bytes = (size_t)st->frames * st->config.row_bytes;
    st->rows = drps_pages_new(st->rows_bytes);
    return st->rows ? 0 : -ENOMEM;
}

/* Distances of an open window. A store that is looked at compares their marks alone. */
static int allocate_next(struct drps_relay *st, struct drps_use_distances *w)
{
    if (!st->looking) return make_distances(st, w);
    w->marks = drps_array_new(DRPS_DISTANCE_WORDS(st->source.max_rows), sizeof(*w->marks));
    w->far = st->order;
    return w->marks ? 0 : -ENOMEM;
}

static int allocate(struct drps_relay *st)
{
    const size_t words = (size_t)(st->frames + 63) / 64;
    st->order = row_numbers(st);
    st->free_frames = calloc(words + 1, sizeof(*st->free_frames));
    for (int i = 0; i < 2; i++) {
        st->open[i].frame = row_numbers(st);
        if (allocate_next(st, &st->open[i].next) < 0 || !st->open[i].frame) return -ENOMEM;
    }
    st->picked = row_numbers(st);
    st->ids = row_numbers(st);
    st->leaving = row_numbers(st);
    st->waiting = drps_waiting_new(st->source.windows, st->frames, st->source.max_rows);
    st->counts = drps_array_new(st->source.windows + 2, sizeof(*st->counts));
    st->parts = drps_array_new(st->source.windows + 2, sizeof(*st->parts));
    st->window_stats = calloc(st->source.windows, sizeof(*st->window_stats));
    if (make_distances(st, &st->prev) < 0 || allocate_rows(st) < 0 || !st->free_frames ||
        !st->order || !st->picked || !st->ids || !st->leaving || !st->waiting || !st->counts ||
        !st->parts || !st->window_stats)
        return -ENOMEM;
    for (uint64_t f = 0; f < st->frames; f++)
        st->free_frames[f / 64] |= UINT64_C(1) << f % 64;
    st->free_n = st->frames;
    return 0;
}

/* The run file of a save gets its name in the store's folder. */
static int link_saved(struct drps_relay *st, struct drps_err *err)
{
    if (!st->restore) return 0;
    char *saved = drps_saved_runs_path(st->config.saved_dir);
    int rc = saved ? drps_relay_link(st->config.io, saved, st->path, err)
                   : drps_err_set(err, -ENOMEM, "no memory for the rows on disk");
    st->linked = rc == 0;
    free(saved);
    return rc;
}

static int open_runs(struct drps_relay *st, struct drps_err *err)
{
    st->path = drps_saved_runs_path(st->looking ? st->config.saved_dir : st->config.dir);
    if (!st->path) return drps_err_set(err, -ENOMEM, "no memory for the rows on disk");
    const struct drps_runs_config config = {
        .io = st->config.io,
        .path = st->path,
        .saved = st->restore ? &st->restore->saved : NULL,
        .looking = st->looking,
        .row_bytes = st->config.row_bytes,
        .chunk_bytes = st->layout.chunk_bytes,
        .file_chunks = st->layout.file_chunks,
        .runs = st->layout.runs,
        .spare = st->layout.spare,
        .run_bytes = st->spill_rows * st->config.row_bytes,
        .ahead = st->looking ? st->layout.ahead / LOOK_AHEAD + 1 : st->layout.ahead,
        .behind = st->layout.behind,
        .write_chunks = st->layout.write_chunks,
        .threads_only = st->config.no_uring,
    };
    int rc = st->looking ? 0 : link_saved(st, err);
    return rc == 0 ? drps_runs_open(&config, &st->runs, err) : rc;
}

static void describe(struct drps_relay *st)
{
    struct drps_aio_about about;
    drps_runs_about(st->runs, &about);
    strncpy(st->stats.io_engine, about.engine, sizeof(st->stats.io_engine) - 1); /* zeroed before */
    memcpy(st->stats.io_remark, about.why, sizeof(about.why));
    st->stats.direct = about.direct;
    st->stats.chunk_bytes = st->layout.chunk_bytes;
    st->stats.write_bytes = st->layout.chunk_bytes * st->layout.write_chunks;
    st->stats.runs = st->layout.runs;
    st->stats.seek_bytes = st->config.seek_bytes;
    st->stats.pool_bytes = st->rows_bytes;
}

/* A window source that sums up what is read of another one with use distances. */
struct summed {
    const struct drps_window_source *inner;
    struct drps_summer *sum; /* own */
    uint64_t steps;          /* of these windows */
};

static int read_summed(void *ctx, uint32_t w, struct drps_store_window *out, uint32_t *rows,
                       struct drps_use_distances *next, struct drps_use_distances *prev,
                       struct drps_err *err)
{
    struct summed *s = ctx;
    int rc = s->inner->read(s->inner->ctx, w, out, rows, next, prev, err);
    if (rc < 0 || !next) return rc;
    const uint64_t head[] = {out->first_step, out->steps, out->n, next->n_far};
    drps_summer_add(s->sum, head, sizeof(head));
    drps_summer_add(s->sum, next->marks, (out->n + 63) / 64 * sizeof(*next->marks));
    drps_summer_add(s->sum, next->far, next->n_far * sizeof(*next->far));
    s->steps += out->steps;
    return rc;
}

static int no_memory_to_count(struct drps_err *err)
{
    return drps_err_set(err, -ENOMEM, "no memory to count the rows that move");
}

/* Read all windows: sum them up, and count the rows that leave each of them for which other. */
static int survey(struct drps_relay *st, struct drps_moves *moves, struct drps_err *err)
{
    struct summed s = {.inner = &st->source, .sum = drps_summer_new()};
    struct drps_window_source source = st->source;
    source.ctx = &s;
    source.read = read_summed;
    if (!s.sum || drps_moves_init(moves, source.windows, st->share.buffer_bytes) < 0) {
        drps_summer_free(s.sum);
        return no_memory_to_count(err);
    }
    int rc = drps_moves_read(moves, &source, st->frames, &st->prev, err);
    st->windows_sum = drps_summer_value(s.sum);
    st->epoch_steps = s.steps;
    drps_summer_free(s.sum);
    return rc;
}

static int choose_layout(struct drps_relay *st, const struct drps_moves *moves,
                         struct drps_err *err)
{
    struct drps_spill_plan plan;
    int rc =
        drps_relay_plan_spills(&st->config, st->share.buffer_bytes, moves, st->frames, &plan, err);
    if (rc == -ENOMEM) return no_memory_to_count(err);
    st->stats.rows_sent = plan.rows_sent;
    st->spill_rows = plan.spill_rows;
    st->layout = plan.layout;
    return rc;
}

/* Counts use the memory of the buffers meanwhile. */
static int find_layout(struct drps_relay *st, struct drps_err *err)
{
    struct drps_moves moves = {0};
    int rc = survey(st, &moves, err);
    if (rc == 0) rc = choose_layout(st, &moves, err);
    drps_moves_destroy(&moves);
    return rc;
}

/* Find the window that has config.first_step. */
static int find_first_window(struct drps_relay *st, struct drps_err *err)
{
    uint64_t before = 0; /* steps */
    for (uint32_t w = 0; w < st->source.windows; w++) {
        struct drps_store_window head;
        int rc = st->source.read(st->source.ctx, w, &head, NULL, NULL, NULL, err);
        if (rc < 0) return rc;
        st->first_window = w;
        st->left_out = st->config.first_step - before;
        if (st->left_out < head.steps) return 0;
        before += head.steps;
    }
    return drps_err_set(err, -EINVAL, "training begins with step %llu of an epoch that has %llu",
                        (unsigned long long)st->config.first_step, (unsigned long long)before);
}

/* Find out where in which window the store begins. */
static int find_begin(struct drps_relay *st, struct drps_err *err)
{
    int rc = st->config.saved_dir ? drps_relay_restore_begin(st, err) : 0;
    if (rc == 0) rc = find_first_window(st, err);
    if (rc == 0 && st->restore) drps_relay_restore_first(st);
    return rc;
}

/* All windows up to the end of the last epoch, with those that were there before a save. */
static uint64_t windows_to_run(const struct drps_relay *st)
{
    return st->current + st->source.windows * st->source.epochs -
           drps_relay_number(st, st->current);
}

static int open_parts(struct drps_relay *st, struct drps_err *err)
{
    int rc = find_begin(st, err);
    if (rc < 0) return rc;
    drps_relay_share_of(&st->config, &st->share);
    const uint64_t need = st->source.working_rows * st->share.row_bytes;
    if (need > st->share.budget_bytes)
        return drps_err_set(err, DRPS_E_MEMORY_BUDGET,
                            "two windows hold %llu rows: the store needs %llu bytes, %llu are "
                            "allowed",
                            (unsigned long long)st->source.working_rows,
                            (unsigned long long)memory_for(&st->config, st->source.working_rows),
                            (unsigned long long)st->config.memory_bytes);
    st->frames = drps_relay_frames(&st->share, st->source.working_rows, st->config.rows);
    if (allocate(st) < 0)
        return drps_err_set(err, -ENOMEM, "no memory for %llu rows of %zu bytes",
                            (unsigned long long)st->frames, st->config.row_bytes);
    rc = find_layout(st, err);
    if (rc == 0 && st->restore) rc = drps_relay_restore_place(st, err);
    if (rc < 0) return rc;
    st->all_windows = windows_to_run(st);
    rc = open_runs(st, err);
    if (rc == 0 && st->restore) rc = drps_relay_restore_rows(st, err);
    if (rc == 0) rc = drps_relay_reserve_scan(st, err);
    if (rc < 0 || st->looking) return rc;
    drps_relay_restore_end(st);
    describe(st);
    return drps_window_thread_start(st, err);
}

/* A failed opening leaves the folder as it was. */
static void unlink_runs(const struct drps_relay *st)
{
    if (st->linked) (void)st->config.io->ops->unlink(st->config.io->ctx, st->path);
}

static int open_store(const struct drps_store_config *config, int looking,
                      struct drps_relay **st_out, struct drps_err *err)
{
    *st_out = NULL;
    struct drps_open_steps steps;
    int rc = check_config(config, err);
    if (rc == 0) rc = drps_open_steps_init(&steps, config->open_steps, err);
    if (rc < 0) return rc;
    struct drps_relay *st = calloc(1, sizeof(*st));
    if (!st) return drps_err_set(err, -ENOMEM, "handle of the row store");
    st->ops = &drps_store_relay;
    st->config = *config;
    st->source = *config->windows;
    st->steps = steps;
    st->steps.scans_open = config->scans_open;
    drps_picker_init(&st->picker);
    (void)pthread_mutex_init(&st->lock,
                             NULL); /* glibc: these cannot fail with default attributes */
    (void)pthread_cond_init(&st->news, NULL);
    (void)pthread_cond_init(&st->wake, NULL);
    st->alive = 1;
    st->looking = looking;
    rc = open_parts(st, err);
    if (rc < 0) {
        unlink_runs(st);
        relay_close((struct drps_store *)st);
        return rc;
    }
    *st_out = st;
    return 0;
}

static int relay_open(const struct drps_store_config *config, struct drps_store **st_out,
                      struct drps_err *err)
{
    struct drps_relay *st;
    int rc = open_store(config, 0, &st, err);
    *st_out = (struct drps_store *)st;
    return rc;
}

int drps_relay_scan_saved(const struct drps_store_config *config, size_t bytes,
                          drps_row_visit visit, void *ctx, struct drps_err *err)
{
    struct drps_relay *st;
    int rc = open_store(config, 1, &st, err);
    if (rc == 0) rc = drps_relay_scan(st, bytes, visit, ctx, err);
    relay_close((struct drps_store *)st);
    return rc;
}

/* ---- Steps ---- */

static int failed(const struct drps_relay *st, struct drps_err *err)
{
    if (!st->failure.code) return 0;
    return drps_err_set(err, st->failure.code, "%s", st->failure.text);
}

/* Wait until window q is open. */
static int await_window(struct drps_relay *st, uint64_t q, struct drps_err *err)
{
    (void)pthread_mutex_lock(&st->lock);
    st->asked = q + 1;
    if (st->ready <= q && !st->failure.code) {
        const uint64_t start = drps_clock_ns();
        while (st->ready <= q && !st->failure.code)
            (void)pthread_cond_wait(&st->news, &st->lock);
        const uint64_t stall = drps_clock_ns() - start;
        st->stats.stall_ns += stall;
        st->stats.stalled_steps++;
        st->window_stats[drps_relay_number(st, q)].stall_ns += stall;
    }
    int rc = failed(st, err);
    (void)pthread_mutex_unlock(&st->lock);
    return rc;
}

/* Enter the window that begins with the next step. The window thread opens it once the second
 * window before it is left: until then a caller would wait for steps that it has to close itself.
 */
static int enter_window(struct drps_relay *st, struct drps_err *err)
{
    const uint64_t q = st->entered;
    if (q - st->current == 2) return -EAGAIN;
    int rc = await_window(st, q, err);
    if (rc < 0) return rc;
    const uint64_t steps = st->open[q % 2].head.steps - (q ? 0 : st->left_out);
    st->begin[q % 2] = st->end;
    st->left_open[q % 2] = steps;
    st->end += steps;
    st->entered++;
    return 0;
}

/* Whether enter_window() would return without waiting: nothing else in a step waits. */
static int relay_step_ready(struct drps_store *base)
{
    struct drps_relay *st = (struct drps_relay *)base;
    const uint64_t q = st->entered;
    if (st->steps.opened < st->end || q == st->all_windows || q - st->current == 2) return 1;
    (void)pthread_mutex_lock(&st->lock);
    const int ready = st->ready > q || st->failure.code;
    st->tell = !ready;
    (void)pthread_mutex_unlock(&st->lock);
    return ready;
}

/* Windows are left in their order, each when all of its steps have closed. */
static void leave_windows(struct drps_relay *st)
{
    (void)pthread_mutex_lock(&st->lock);
    while (st->current < st->entered && !st->left_open[st->current % 2])
        st->current++;
    st->left = st->current;
    (void)pthread_cond_signal(&st->wake);
    (void)pthread_mutex_unlock(&st->lock);
}

/* The frames of the rows in n slots of the window that was entered last, to st->index. */
static int find_frames(struct drps_relay *st, const uint32_t *slots, size_t n, struct drps_err *err)
{
    const struct drps_relay_window *win = &st->open[(st->entered - 1) % 2];
    if (n && slots[n - 1] >= win->head.n) /* increasing: the last is the largest */
        return drps_err_set(err, -EINVAL, "step %llu needs row %u of the %zu of its window",
                            (unsigned long long)st->steps.opened, slots[n - 1], win->head.n);
    if (drps_array_reserve(&st->index, &st->index_cap, n, sizeof(*st->index)) < 0)
        return drps_err_set(err, -ENOMEM, "index of %zu rows", n);
    const uint32_t *restrict frame = win->frame;
    uint32_t *restrict index = st->index;
    for (size_t i = 0; i < n; i++)
        index[i] = frame[slots[i]];
    return 0;
}

static int relay_step_open(struct drps_store *base, uint64_t step, const uint32_t *slots, size_t n,
                           struct drps_rows *rows_out, struct drps_err *err)
{
    struct drps_relay *st = (struct drps_relay *)base;
    *rows_out = (struct drps_rows){0};
    int rc = drps_open_steps_check(&st->steps, step, err);
    if (rc < 0) return rc;
    if (step == st->end && st->entered == st->all_windows)
        return drps_err_set(err, -EINVAL, "step %llu opened, there are %llu",
                            (unsigned long long)step, (unsigned long long)st->end);
    if (step == st->end) rc = enter_window(st, err);
    if (rc == 0) rc = find_frames(st, slots, n, err);
    if (rc < 0) return rc;
    drps_open_steps_add(&st->steps);
    *rows_out = (struct drps_rows){
        .base = st->rows, .stride = st->config.row_bytes, .index = st->index, .n = n};
    return 0;
}

static int relay_step_close(struct drps_store *base, uint64_t step, int changed,
                            struct drps_err *err)
{
    struct drps_relay *st = (struct drps_relay *)base;
    (void)changed; /* every row of a window moves on, changed or not */
    int rc = drps_open_steps_close(&st->steps, step, err);
    if (rc < 0) return rc;
    const uint64_t last = st->entered - 1;
    const uint64_t q = step >= st->begin[last % 2] ? last : last - 1;
    if (--st->left_open[q % 2] == 0) leave_windows(st);
    return 0;
}

static int relay_scan(struct drps_store *base, size_t bytes, drps_row_visit visit, void *ctx,
                      struct drps_err *err)
{
    struct drps_relay *st = (struct drps_relay *)base;
    int rc = drps_open_steps_scan(&st->steps, err);
    if (rc < 0) return rc;
    rc = drps_relay_stand_still(st, err);
    if (rc == 0) rc = drps_relay_scan(st, bytes, visit, ctx, err);
    drps_relay_go_on(st);
    return rc;
}

static int relay_save(struct drps_store *base, const char *dir, unsigned *save_out,
                      struct drps_err *err)
{
    struct drps_relay *st = (struct drps_relay *)base;
    *save_out = 0;
    int rc = drps_open_steps_none(&st->steps, err);
    if (rc < 0) return rc;
    rc = drps_relay_stand_still(st, err);
    if (rc == 0) rc = drps_relay_save(st, dir, err);
    drps_relay_go_on(st);
    if (rc >= 0) *save_out = (unsigned)rc;
    return rc < 0 ? rc : 0;
}

static void relay_forget(struct drps_store *base, unsigned save)
{
    struct drps_relay *st = (struct drps_relay *)base;
    if (drps_relay_stand_still(st, NULL) == 0) /* after a failure only close is left */
        drps_runs_unpin(st->runs, save);
    drps_relay_go_on(st);
}

static void relay_stats(struct drps_store *base, struct drps_store_stats *out)
{
    struct drps_relay *st = (struct drps_relay *)base;
    (void)pthread_mutex_lock(&st->lock);
    *out = st->stats;
    out->windows_ahead = st->ready > st->asked ? st->ready - st->asked : 0;
    (void)pthread_mutex_unlock(&st->lock);
    out->steps = st->steps.opened;
    drps_runs_stats(st->runs, &out->io);
}

static void relay_window_stats(struct drps_store *base, struct drps_window_stats *out)
{
    struct drps_relay *st = (struct drps_relay *)base;
    (void)pthread_mutex_lock(&st->lock);
    memcpy(out, st->window_stats, st->source.windows * sizeof(*out));
    (void)pthread_mutex_unlock(&st->lock);
}

const struct drps_store_ops drps_store_relay = {
    .name = "relay",
    .by_slot = 1,
    .memory_need = relay_memory_need,
    .open = relay_open,
    .step_open = relay_step_open,
    .step_close = relay_step_close,
    .step_ready = relay_step_ready,
    .scan = relay_scan,
    .save = relay_save,
    .forget = relay_forget,
    .stats = relay_stats,
    .window_stats = relay_window_stats,
    .close = relay_close,
};
