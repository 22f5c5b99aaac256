/* Opening a relay store from what was saved: everything read is checked before it is used; save.h
 * has the idea. */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"
#include "storage/relay/save.h"
#include "storage/relay/scan.h"

/* ---- What it is, and where ---- */

static int read_shape(struct drps_saved *r, struct drps_saved_shape *shape,
                      struct drps_saved_place *place, struct drps_err *err)
{
    int rc = drps_saved_read(r, shape, sizeof(*shape), "sizes", err);
    if (rc == 0 && shape->version != DRPS_SAVED_VERSION)
        rc = drps_err_set(err, DRPS_E_VERSION,
                          "%s has version %llu; this program reads %d: go on without it", r->path,
                          (unsigned long long)shape->version, DRPS_SAVED_VERSION);
    if (rc == 0) rc = drps_saved_read(r, place, sizeof(*place), "steps", err);
    return rc;
}

int drps_relay_saved_about(const struct drps_io *io, const char *dir, struct drps_relay_saved *out,
                           struct drps_err *err)
{
    struct drps_saved_shape shape;
    struct drps_saved_place place;
    struct drps_saved r;
    *out = (struct drps_relay_saved){0};
    int rc = drps_saved_open(&r, io, dir, err);
    if (rc == 0) rc = read_shape(&r, &shape, &place, err);
    drps_saved_close(&r);
    if (rc < 0) return rc;
    *out = (struct drps_relay_saved){
        .rows = shape.rows,
        .row_bytes = shape.row_bytes,
        .memory_bytes = shape.memory_bytes,
        .buffer_bytes = shape.buffer_bytes,
        .seek_bytes = shape.seek_bytes,
        .chunk_bytes = shape.config_chunk_bytes,
        .scan_bytes = shape.scan_bytes,
        .windows = shape.windows,
        .epoch_step = place.epoch_step,
    };
    return 0;
}

int drps_relay_verify_saved(const struct drps_io *io, const char *dir, struct drps_err *err)
{
    struct drps_relay_saved about;
    int rc = drps_relay_saved_about(io, dir, &about, err);
    return rc == 0 ? drps_runs_verify_saved(io, dir, 2, err) : rc; /* after shape and place */
}

/* Windows closing and closing + 1 are open, or the first alone; steps are in one of these, or the
 * next one is about to be entered. */
static int check_place(const struct drps_relay *st, struct drps_err *err)
{
    const struct drps_saved_place *p = &st->restore->place;
    if (p->first_window < st->source.windows && p->closing < UINT64_MAX / 4 &&
        p->current >= p->closing && p->current <= p->ready && p->ready > p->closing &&
        p->ready <= p->closing + 2)
        return 0;
    return drps_saved_wrong(&st->restore->saved, "steps", err);
}

int drps_relay_restore_begin(struct drps_relay *st, struct drps_err *err)
{
    st->restore = calloc(1, sizeof(*st->restore));
    if (!st->restore) return drps_err_set(err, -ENOMEM, "no memory to restore the row store");
    int rc = drps_saved_open(&st->restore->saved, st->config.io, st->config.saved_dir, err);
    if (rc == 0)
        rc = read_shape(&st->restore->saved, &st->restore->shape, &st->restore->place, err);
    if (rc < 0) return rc;
    const struct drps_saved_shape *shape = &st->restore->shape;
    if (shape->rows != st->config.rows || shape->row_bytes != st->config.row_bytes ||
        shape->windows != st->source.windows)
        return drps_err_set(err, DRPS_E_CONFIG,
                            "%s has %llu rows of %llu bytes in %llu windows, not %llu of %zu in %u",
                            st->restore->saved.path, (unsigned long long)shape->rows,
                            (unsigned long long)shape->row_bytes,
                            (unsigned long long)shape->windows, (unsigned long long)st->config.rows,
                            st->config.row_bytes, st->source.windows);
    if (st->looking) st->config.first_step = st->restore->place.epoch_step;
    if (st->config.first_step != st->restore->place.epoch_step)
        return drps_err_set(err, DRPS_E_CONFIG, "%s was saved before step %llu, not %llu",
                            st->restore->saved.path,
                            (unsigned long long)st->restore->place.epoch_step,
                            (unsigned long long)st->config.first_step);
    return check_place(st, err);
}

static int check_shape(const struct drps_relay *st, struct drps_err *err)
{
    static const struct {
        const char *name;
        size_t at;
    } same[] = {
        {"rows in memory", offsetof(struct drps_saved_shape, frames)},
        {"checksum of windows", offsetof(struct drps_saved_shape, windows_sum)},
        {"bytes of a chunk", offsetof(struct drps_saved_shape, chunk_bytes)},
        {"runs", offsetof(struct drps_saved_shape, runs)},
    };
    struct drps_saved_shape now;
    drps_saved_describe(st, &now);
    for (size_t i = 0; i < sizeof(same) / sizeof(*same); i++) {
        uint64_t saved, here;
        memcpy(&saved, (const char *)&st->restore->shape + same[i].at, sizeof(saved));
        memcpy(&here, (const char *)&now + same[i].at, sizeof(here));
        if (saved != here)
            return drps_err_set(err, DRPS_E_CONFIG,
                                "%s is of a store with other memory or another plan (%s: %llu, "
                                "not %llu)",
                                st->restore->saved.path, same[i].name, (unsigned long long)saved,
                                (unsigned long long)here);
    }
    return 0;
}

void drps_relay_restore_first(struct drps_relay *st)
{
    st->restore->window = st->first_window;
    st->restore->done = st->left_out;
    st->first_window = (uint32_t)st->restore->place.first_window;
    st->left_out = 0;
}

int drps_relay_restore_place(struct drps_relay *st, struct drps_err *err)
{
    const struct drps_restore *r = st->restore;
    const struct drps_saved_place *p = &r->place;
    struct drps_store_window head;
    int rc = check_shape(st, err);
    if (rc == 0) rc = st->source.read(st->source.ctx, r->window, &head, NULL, NULL, NULL, err);
    if (rc < 0) return rc;
    if (drps_relay_number(st, p->current) != r->window || (r->done && p->current == p->ready))
        return drps_saved_wrong(&r->saved, "steps", err);
    st->closing = p->closing;
    st->ready = p->ready;
    st->current = st->left = st->entered = p->current;
    if (!r->done) return 0;
    st->entered++;
    st->end = st->left_open[p->current % 2] = head.steps - r->done;
    return 0;
}

/* ---- Frames ---- */

/* Frames that hold a row, as lists claim them. */
struct claims {
    struct drps_relay *st;
    uint64_t *seen; /* own: bit f: a list has frame f */
    uint64_t n;
};

static int claim(struct claims *c, const uint32_t *frames, size_t n, struct drps_err *err)
{
    for (size_t i = 0; i < n; i++) {
        const uint32_t f = frames[i];
        if (f >= c->st->frames || drps_relay_is_free(c->st, f) || c->seen[f / 64] >> f % 64 & 1)
            return drps_saved_wrong(&c->st->restore->saved, "frames", err);
        c->seen[f / 64] |= UINT64_C(1) << f % 64;
    }
    c->n += n;
    return 0;
}

static int read_free(struct drps_relay *st, struct drps_err *err)
{
    const size_t words = (size_t)(st->frames + 63) / 64;
    const uint64_t beyond = st->frames % 64 ? UINT64_MAX << st->frames % 64 : 0;
    int rc = drps_saved_read(&st->restore->saved, st->free_frames, words * sizeof(*st->free_frames),
                             "free frames", err);
    if (rc == 0 && st->free_frames[words - 1] & beyond)
        rc = drps_saved_wrong(&st->restore->saved, "free frames", err);
    return rc;
}

/* Rows of window q that the window before it has, too, are in the same frames. */
static int check_staying(struct drps_relay *st, uint64_t q, struct drps_err *err)
{
    const struct drps_relay_window *before = &st->open[(q + 1) % 2], *win = &st->open[q % 2];
    const size_t n =
        drps_pick(&st->picker, before->next.marks, before->head.n, 0, before->frame, st->order);
    const size_t m = drps_pick(&st->picker, st->prev.marks, win->head.n, 0, win->frame, st->picked);
    if (n == m && memcmp(st->order, st->picked, n * sizeof(*st->order)) == 0) return 0;
    return drps_saved_wrong(&st->restore->saved, "frames", err);
}

static int read_window(struct claims *c, uint64_t q, struct drps_err *err)
{
    struct drps_relay *st = c->st;
    struct drps_relay_window *win = &st->open[q % 2];
    size_t n = 0;
    win->q = q;
    int rc = st->source.read(st->source.ctx, drps_relay_number(st, q), &win->head, NULL, &win->next,
                             &st->prev, err);
    if (rc == 0)
        rc = drps_saved_read_entries(&st->restore->saved, win->frame, sizeof(*win->frame),
                                     st->source.max_rows, &n, "frames of a window", err);
    if (rc < 0) return rc;
    if (n != win->head.n) return drps_saved_wrong(&st->restore->saved, "frames of a window", err);
    if (q == st->closing) return claim(c, win->frame, n, err);
    rc = check_staying(st, q, err);
    n = drps_pick(&st->picker, st->prev.marks, win->head.n, 1, win->frame, st->picked);
    return rc == 0 ? claim(c, st->picked, n, err) : rc;
}

static int read_waiting(struct claims *c, uint32_t w, struct drps_err *err)
{
    struct drps_relay *st = c->st;
    size_t n = 0;
    int rc = drps_saved_read_entries(&st->restore->saved, st->order, sizeof(*st->order),
                                     st->source.max_rows, &n, "rows that wait", err);
    if (rc == 0) rc = claim(c, st->order, n, err);
    return rc == 0 ? drps_waiting_add(st->waiting, w, st->order, n, err) : rc;
}

static int read_frames(struct claims *c, struct drps_err *err)
{
    struct drps_relay *st = c->st;
    uint64_t unused = 0;
    int rc = read_free(st, err);
    for (uint64_t q = st->closing; q < st->ready && rc == 0; q++)
        rc = read_window(c, q, err);
    for (uint32_t w = 0; w < st->source.windows && rc == 0; w++)
        rc = read_waiting(c, w, err);
    for (uint64_t f = 0; f < st->frames && rc == 0; f++)
        unused += (uint64_t)drps_relay_is_free(st, f);
    st->free_n = unused;
    if (rc == 0 && c->n + unused != st->frames)
        rc = drps_saved_wrong(&st->restore->saved, "frames", err);
    return rc;
}

/* ---- Rows ---- */

/* Read the record of the next n rows, those of the frames from `first` on that are not free.
 * Returns the frame after the last of them in *first. */
static int read_run(struct drps_relay *st, uint64_t *first, size_t n, char *room,
                    drps_saved_visit visit, void *ctx, struct drps_err *err)
{
    const size_t row_bytes = st->config.row_bytes;
    int rc = drps_saved_read(&st->restore->saved, room, n * row_bytes, "rows", err);
    for (size_t i = 0; i < n && rc == 0; ++*first)
        if (!drps_relay_is_free(st, *first)) rc = visit(ctx, *first, room + i++ * row_bytes, err);
    return rc;
}

int drps_relay_restore_visit(struct drps_relay *st, drps_saved_visit visit, void *ctx,
                             struct drps_err *err)
{
    const size_t most = drps_saved_record_rows(st);
    char *room = drps_array_new(most + 2, st->config.row_bytes); /* its end rounded up to 8 */
    uint64_t frame = 0;
    int rc = room ? 0 : drps_err_set(err, -ENOMEM, "no memory to read %zu rows", most);
    for (uint64_t left = st->restore->in_frames; left && rc == 0;) {
        const size_t now = left < most ? (size_t)left : most;
        rc = read_run(st, &frame, now, room, visit, ctx, err);
        left -= now;
    }
    if (rc == 0 && st->restore->saved.at != drps_recfile_count(st->restore->saved.file))
        rc = drps_saved_wrong(&st->restore->saved, "more records than are due", err);
    free(room);
    return rc;
}

/* A drps_saved_visit: the row goes to its frame. */
static int keep_row(void *ctx, uint64_t frame, const char *row, struct drps_err *err)
{
    const struct drps_relay *st = ctx;
    (void)err;
    memcpy(st->rows + (size_t)frame * st->config.row_bytes, row, st->config.row_bytes);
    return 0;
}

int drps_relay_restore_rows(struct drps_relay *st, struct drps_err *err)
{
    struct claims c = {.st = st, .seen = calloc((size_t)st->frames / 64 + 1, sizeof(*c.seen))};
    int rc = c.seen ? 0 : drps_err_set(err, -ENOMEM, "no memory to restore the row store");
    if (rc == 0) rc = read_frames(&c, err);
    st->restore->in_frames = c.n;
    if (rc == 0 && !st->looking) rc = drps_relay_restore_visit(st, keep_row, st, err);
    free(c.seen);
    return rc;
}

void drps_relay_restore_end(struct drps_relay *st)
{
    if (!st->restore) return;
    drps_saved_close(&st->restore->saved);
    free(st->restore->ids);
    free(st->restore);
    st->restore = NULL;
}
