/* Saving a relay store: a second name of the run file, and records of what is in memory; save.h
 * has the idea. */
#include "storage/relay/save.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"

static int add(struct drps_recwriter *w, const void *data, size_t bytes, struct drps_err *err)
{
    const struct drps_piece piece = {.data = data, .bytes = bytes};
    return drps_recwriter_add(w, &piece, 1, err);
}

void drps_saved_describe(const struct drps_relay *st, struct drps_saved_shape *out)
{
    *out = (struct drps_saved_shape){
        .version = DRPS_SAVED_VERSION,
        .memory_bytes = st->config.memory_bytes,
        .buffer_bytes = st->config.buffer_bytes,
        .seek_bytes = st->config.seek_bytes,
        .config_chunk_bytes = st->config.chunk_bytes,
        .scan_bytes = st->config.scan_bytes,
        .rows = st->config.rows,
        .row_bytes = st->config.row_bytes,
        .frames = st->frames,
        .windows = st->source.windows,
        .windows_sum = st->windows_sum,
        .chunk_bytes = st->layout.chunk_bytes,
        .runs = st->layout.runs,
    };
}

static int save_shape(const struct drps_relay *st, struct drps_recwriter *w, struct drps_err *err)
{
    struct drps_saved_shape shape;
    drps_saved_describe(st, &shape);
    const struct drps_saved_place place = {
        .epoch_step = (st->config.first_step + st->steps.opened) % st->epoch_steps,
        .first_window = st->first_window,
        .closing = st->closing,
        .current = st->current,
        .ready = st->ready,
    };
    int rc = add(w, &shape, sizeof(shape), err);
    return rc == 0 ? add(w, &place, sizeof(place), err) : rc;
}

static int save_frames(struct drps_relay *st, struct drps_recwriter *w, struct drps_err *err)
{
    int rc =
        add(w, st->free_frames, (size_t)(st->frames + 63) / 64 * sizeof(*st->free_frames), err);
    for (uint64_t q = st->closing; q < st->ready && rc == 0; q++) {
        const struct drps_relay_window *win = &st->open[q % 2];
        rc = add(w, win->frame, win->head.n * sizeof(*win->frame), err);
    }
    for (uint32_t v = 0; v < st->source.windows && rc == 0; v++) {
        const size_t n = (size_t)drps_waiting_count(st->waiting, v);
        drps_waiting_take(st->waiting, v, 0, st->order); /* as scratch: all rows of a window */
        rc = add(w, st->order, n * sizeof(*st->order), err);
    }
    return rc;
}

/* Write a record of n rows, unless that is none. */
static int save_run(const struct drps_relay *st, struct drps_recwriter *w, const char *rows,
                    size_t n, struct drps_err *err)
{
    return n ? add(w, rows, n * st->config.row_bytes, err) : 0;
}

static int save_rows(const struct drps_relay *st, struct drps_recwriter *w, struct drps_err *err)
{
    const size_t most = drps_saved_record_rows(st), row_bytes = st->config.row_bytes;
    char *room = drps_array_new(most, row_bytes);
    size_t n = 0;
    int rc = room ? 0 : drps_err_set(err, -ENOMEM, "no memory to save %zu rows at a time", most);
    for (uint64_t f = 0; f < st->frames && rc == 0; f++) {
        if (drps_relay_is_free(st, f)) continue;
        memcpy(room + n++ * row_bytes, st->rows + (size_t)f * row_bytes, row_bytes);
        if (n < most) continue;
        rc = save_run(st, w, room, n, err);
        n = 0;
    }
    if (rc == 0) rc = save_run(st, w, room, n, err);
    free(room);
    return rc;
}

static int write_records(struct drps_relay *st, const char *path, struct drps_err *err)
{
    struct drps_recwriter *w;
    int rc = drps_recwriter_open(st->config.io, path, DRPS_KIND_SAVED_RELAY, &w, err);
    if (rc < 0) return rc;
    rc = save_shape(st, w, err);
    if (rc == 0) rc = drps_runs_save(st->runs, w, err);
    if (rc == 0) rc = save_frames(st, w, err);
    if (rc == 0) rc = save_rows(st, w, err);
    if (rc == 0) rc = drps_recwriter_finish(w, err);
    drps_recwriter_close(w);
    return rc;
}

int drps_relay_link(const struct drps_io *io, const char *from, const char *to,
                    struct drps_err *err)
{
    int rc = io->ops->link(io->ctx, from, to);
    if (rc >= 0) return 0;
    if (rc == -EXDEV || rc == -EPERM || rc == -EMLINK || rc == -ENOSYS) rc = -ENOTSUP;
    return drps_err_set(err, rc, "%s cannot be a second name of %s: %s", to, from,
                        drps_err_name(rc));
}

int drps_relay_save(struct drps_relay *st, const char *dir, struct drps_err *err)
{
    char *runs = drps_saved_runs_path(dir), *records = drps_saved_records_path(dir);
    int rc = runs && records ? drps_relay_link(st->config.io, st->path, runs, err)
                             : drps_err_set(err, -ENOMEM, "no memory for the name of a file");
    if (rc == 0) rc = drps_relay_end_run(st, err);
    if (rc == 0) rc = drps_runs_save_begin(st->runs, err);
    if (rc == 0) rc = write_records(st, records, err);
    if (rc == 0) rc = drps_runs_pin(st->runs, err);
    free(runs);
    free(records);
    return rc;
}
