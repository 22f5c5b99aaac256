/*
 * The store whose rows are all in the memory of a device: a row's frame is its id. Rows are made on
 * the host and uploaded when the store opens, and downloaded when they are scanned.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "storage/device/pieces.h"
#include "storage/drps_marks.h"
#include "storage/drps_open_steps.h"
#include "storage/drps_row_shape.h"

struct device_store {
    const struct drps_store_ops *ops;
    struct drps_device_use use;
    char *rows; /* own: of the device */
    uint64_t n_rows;
    size_t row_bytes;
    struct pieces in, out;
    struct drps_open_steps steps;
    struct drps_marks marks;
};

/* ---- Opening ---- */

static int memory_need(const struct drps_store_config *config, uint64_t *least_out,
                       uint64_t *most_out, struct drps_err *err)
{
    uint64_t bytes = 0;
    int rc = drps_row_shape(config, &bytes, err);
    *least_out = *most_out = rc == 0 ? pieces_memory(config->row_bytes, config->rows) : 0;
    return rc;
}

static void close_store(struct drps_store *base)
{
    struct device_store *st = (struct device_store *)base;
    if (!st) return;
    if (st->use.ops) {
        pieces_close(&st->use, &st->in);
        pieces_close(&st->use, &st->out);
        st->use.ops->release(st->use.dev, st->rows);
    }
    drps_marks_destroy(&st->marks);
    free(st);
}

/* Makes rows piece by piece, of which one is made while the one before is on its way. */
static int create_all(struct device_store *st, const struct drps_store_config *config,
                      struct drps_err *err)
{
    struct drps_device_use *use = &st->use;
    struct pieces *in = &st->in;
    int rc = 0;
    for (uint64_t first = 0; first < st->n_rows && rc == 0; first += in->rows) {
        const unsigned k = in->used++ % PIECES;
        const uint64_t left = st->n_rows - first;
        const size_t n = left < in->rows ? (size_t)left : in->rows;
        if (in->used > PIECES) rc = DRPS_DEVICE_CALL(use, err, wait, EVENT_IN + k);
        if (rc == 0) rc = config->init(config->init_ctx, first, n, in->pinned[k], err);
        if (rc == 0)
            rc = DRPS_DEVICE_CALL(use, err, upload, DRPS_DEVICE_ROWS_IN,
                                  st->rows + first * st->row_bytes, in->pinned[k],
                                  n * st->row_bytes);
        if (rc == 0) rc = DRPS_DEVICE_CALL(use, err, mark, DRPS_DEVICE_ROWS_IN, EVENT_IN + k);
    }
    for (unsigned k = 0; k < PIECES && k < in->used && rc == 0; k++)
        rc = DRPS_DEVICE_CALL(use, err, wait, EVENT_IN + k);
    return rc;
}

static int open_store(const struct drps_store_config *config, struct drps_store **st_out,
                      struct drps_err *err)
{
    uint64_t bytes = 0;
    struct drps_open_steps steps;
    void *rows = NULL;
    *st_out = NULL;
    int rc = drps_row_shape(config, &bytes, err);
    if (rc == 0) rc = drps_open_steps_init(&steps, config->open_steps, err);
    if (rc < 0) return rc;
    struct device_store *st = calloc(1, sizeof(*st));
    if (!st) return drps_err_set(err, -ENOMEM, "handle of the row store");
    st->ops = &drps_store_device;
    st->use = *config->device;
    st->n_rows = config->rows;
    st->row_bytes = config->row_bytes;
    st->steps = steps;
    rc = drps_marks_init(&st->marks, config, err);
    if (rc == 0) rc = pieces_open(&st->use, st->row_bytes, st->n_rows, &st->in, err);
    if (rc == 0) rc = pieces_open(&st->use, st->row_bytes, st->n_rows, &st->out, err);
    if (rc == 0) {
        rc = DRPS_DEVICE_CALL(&st->use, err, alloc, (size_t)bytes, &rows);
        st->rows = rows;
    }
    if (rc == 0) rc = create_all(st, config, err);
    if (rc < 0)
        close_store((struct drps_store *)st);
    else
        *st_out = (struct drps_store *)st;
    return rc;
}

/* ---- Steps ---- */

static int step_open(struct drps_store *base, uint64_t step, const uint32_t *ids, size_t n,
                     struct drps_rows *rows_out, struct drps_err *err)
{
    struct device_store *st = (struct device_store *)base;
    *rows_out = (struct drps_rows){0};
    int rc = drps_open_steps_check(&st->steps, step, err);
    if (rc < 0) return rc;
    if (n && ids[n - 1] >= st->n_rows) /* increasing: the last is the largest */
        return drps_err_set(err, -EINVAL, "step %llu needs row %u of %llu",
                            (unsigned long long)step, ids[n - 1], (unsigned long long)st->n_rows);
    drps_open_steps_add(&st->steps);
    drps_marks_open(&st->marks, step, ids, n);
    *rows_out = (struct drps_rows){.base = st->rows, .stride = st->row_bytes, .index = ids, .n = n};
    return 0;
}

static int step_close(struct drps_store *base, uint64_t step, int changed, struct drps_err *err)
{
    struct device_store *st = (struct device_store *)base;
    int rc = drps_open_steps_close(&st->steps, step, err);
    if (rc == 0) drps_marks_close(&st->marks, step, changed);
    return rc;
}

/* ---- Scans ---- */

/* Rows [first, end) on their way, piece by piece. */
struct visit {
    uint64_t first, end, asked; /* asked: of these, the rows before it are on their way */
};

static size_t piece_of(const struct device_store *st, uint64_t first, uint64_t end)
{
    return end - first < st->out.rows ? (size_t)(end - first) : st->out.rows;
}

static int ask(struct device_store *st, struct visit *v, struct drps_err *err)
{
    struct drps_device_use *use = &st->use;
    const size_t n = piece_of(st, v->asked, v->end);
    const unsigned k = st->out.used % PIECES;
    if (!n) return 0;
    int rc = DRPS_DEVICE_CALL(use, err, download, DRPS_DEVICE_ROWS_OUT, st->out.pinned[k],
                              st->rows + v->asked * st->row_bytes, n * st->row_bytes);
    if (rc == 0) rc = DRPS_DEVICE_CALL(use, err, mark, DRPS_DEVICE_ROWS_OUT, EVENT_OUT + k);
    st->out.used++;
    v->asked += n;
    return rc;
}

/* Shows rows [first, end), while those behind them come. Ends with all that was asked for there. */
static int visit_run(struct device_store *st, uint64_t first, uint64_t end, drps_row_visit visit,
                     void *ctx, struct drps_err *err)
{
    struct visit v = {first, end, first};
    uint64_t seen = st->out.used;
    int rc = ask(st, &v, err);
    while (rc == 0 && v.first < end) {
        const size_t n = piece_of(st, v.first, end);
        const unsigned k = seen++ % PIECES;
        rc = ask(st, &v, err);
        if (rc == 0) rc = DRPS_DEVICE_CALL(&st->use, err, wait, EVENT_OUT + k);
        if (rc == 0) rc = visit(ctx, v.first, n, st->out.pinned[k], err);
        v.first += n;
    }
    for (; seen < st->out.used; seen++) { /* a visit has ended the scan */
        const int waited = DRPS_DEVICE_CALL(&st->use, err, wait, EVENT_OUT + seen % PIECES);
        if (rc == 0) rc = waited;
    }
    return rc;
}

/* What comes out from now on is as of the last closed step. */
static int begin_scan(struct device_store *st, struct drps_err *err)
{
    struct drps_device_use *use = &st->use;
    int rc = drps_open_steps_none(&st->steps, err);
    if (rc == 0) rc = DRPS_DEVICE_CALL(use, err, mark, DRPS_DEVICE_COMPUTE, EVENT_COMPUTED);
    if (rc == 0) rc = DRPS_DEVICE_CALL(use, err, after, DRPS_DEVICE_ROWS_OUT, EVENT_COMPUTED);
    return rc;
}

static int scan(struct drps_store *base, size_t bytes, drps_row_visit visit, void *ctx,
                struct drps_err *err)
{
    struct device_store *st = (struct device_store *)base;
    (void)bytes; /* all of each row is there */
    int rc = begin_scan(st, err);
    return rc < 0 ? rc : visit_run(st, 0, st->n_rows, visit, ctx, err);
}

static int scan_changed(struct drps_store *base, drps_row_visit visit, void *ctx,
                        struct drps_err *err)
{
    struct device_store *st = (struct device_store *)base;
    uint64_t first, end = 0;
    int rc = begin_scan(st, err);
    while (!rc && drps_marks_next(&st->marks, end, &first, &end))
        rc = visit_run(st, first, end, visit, ctx, err);
    return rc;
}

static void forget_changes(struct drps_store *base)
{
    drps_marks_clear(&((struct device_store *)base)->marks);
}

static void stats(struct drps_store *base, struct drps_store_stats *out)
{
    const struct device_store *st = (const struct device_store *)base;
    *out = (struct drps_store_stats){.steps = st->steps.opened,
                                     .pool_bytes = st->n_rows * st->row_bytes};
}

const struct drps_store_ops drps_store_device = {
    .name = "device",
    .memory_need = memory_need,
    .open = open_store,
    .step_open = step_open,
    .step_close = step_close,
    .scan = scan,
    .scan_changed = scan_changed,
    .forget_changes = forget_changes,
    .stats = stats,
    .close = close_store,
};
