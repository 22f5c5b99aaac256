/*
 * The store that keeps every row in memory: the bound that the stores on disk are measured against.
 * A row's frame is its id, so opening a step costs nothing. It needs all rows to fit the memory.
 */
#include "storage/drps_marks.h"
#include "storage/drps_open_steps.h"
#include "storage/drps_row_shape.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/drps_alloc.h"

enum {
    INIT_THREADS = 4,
    INIT_BYTES = 1 << 20, /* rows are created, and visited, in pieces of this size */
};

struct resident {
    const struct drps_store_ops *ops;
    char *rows;
    size_t bytes;
    uint64_t n_rows;
    size_t row_bytes;
    struct drps_open_steps steps;
    struct drps_marks marks;
};

/* Rows still to be created, shared by the threads that create them. */
struct creation {
    const struct drps_store_config *config;
    char *rows;
    uint64_t piece;
    _Atomic uint64_t
        next; /* relaxed: it only hands out numbers; joining the threads publishes the rows */
};

struct creator {
    struct creation *creation;
    pthread_t thread;
    int rc; /* this and the text are read once the thread has ended */
    struct drps_err failure;
};

static uint64_t piece_rows(size_t row_bytes)
{
    return row_bytes < INIT_BYTES ? INIT_BYTES / row_bytes : 1;
}

/* Create pieces while there are any; the first failure ends the work of all threads. */
static void *create_rows(void *arg)
{
    struct creator *by = arg;
    struct creation *c = by->creation;
    const struct drps_store_config *config = c->config;
    for (;;) {
        uint64_t first = atomic_fetch_add_explicit(&c->next, c->piece, memory_order_relaxed);
        if (first >= config->rows) return NULL;
        uint64_t left = config->rows - first;
        size_t n = (size_t)(left < c->piece ? left : c->piece);
        by->rc = config->init(config->init_ctx, first, n,
                              c->rows + (size_t)first * config->row_bytes, &by->failure);
        if (by->rc < 0) {
            atomic_store_explicit(&c->next, config->rows, memory_order_relaxed);
            return NULL;
        }
    }
}

static int create_all(const struct drps_store_config *config, char *rows, struct drps_err *err)
{
    struct creation c = {.config = config, .rows = rows, .piece = piece_rows(config->row_bytes)};
    struct creator by[INIT_THREADS];
    int n = 0, rc = 0;
    for (int i = 0; i < INIT_THREADS; i++)
        by[i] = (struct creator){.creation = &c, .failure = DRPS_ERR_INIT};
    while (n < INIT_THREADS - 1 && (uint64_t)(n + 1) * c.piece < config->rows &&
           pthread_create(&by[n].thread, NULL, create_rows, &by[n]) == 0)
        n++; /* fewer threads than wished for: the others do more */
    create_rows(&by[n]);
    for (int i = 0; i <= n; i++) {
        if (i < n) (void)pthread_join(by[i].thread, NULL); /* cannot fail for a thread of ours */
        if (by[i].rc < 0 && rc == 0) rc = drps_err_set(err, by[i].rc, "%s", by[i].failure.text);
    }
    return rc;
}

static int resident_memory_need(const struct drps_store_config *config, uint64_t *least_out,
                                uint64_t *most_out, struct drps_err *err)
{
    uint64_t bytes = 0;
    int rc = drps_row_shape(config, &bytes, err);
    *least_out = *most_out = bytes;
    return rc;
}

static void resident_close(struct drps_store *base)
{
    struct resident *st = (struct resident *)base;
    if (!st) return;
    drps_pages_free(st->rows, st->bytes);
    drps_marks_destroy(&st->marks);
    free(st);
}

static int resident_open(const struct drps_store_config *config, struct drps_store **st_out,
                         struct drps_err *err)
{
    *st_out = NULL;
    uint64_t bytes = 0;
    struct drps_open_steps steps;
    int rc = drps_row_shape(config, &bytes, err);
    if (rc == 0) rc = drps_open_steps_init(&steps, config->open_steps, err);
    if (rc < 0) return rc;
    if (config->memory_bytes && config->memory_bytes < bytes)
        return drps_err_set(err, DRPS_E_MEMORY_BUDGET,
                            "all rows in memory take %llu bytes, %llu are allowed",
                            (unsigned long long)bytes, (unsigned long long)config->memory_bytes);
    struct resident *st = calloc(1, sizeof(*st));
    if (!st) return drps_err_set(err, -ENOMEM, "handle of the row store");
    st->ops = &drps_store_resident;
    st->bytes = (size_t)bytes;
    st->n_rows = config->rows;
    st->row_bytes = config->row_bytes;
    st->steps = steps;
    st->steps.scans_open = config->scans_open;
    rc = drps_marks_init(&st->marks, config, err);
    if (rc == 0) {
        st->rows = drps_pages_new(st->bytes);
        rc = st->rows
                 ? create_all(config, st->rows, err)
                 : drps_err_set(err, -ENOMEM, "%llu bytes for all rows", (unsigned long long)bytes);
    }
    if (rc < 0) {
        resident_close((struct drps_store *)st);
        return rc;
    }
    *st_out = (struct drps_store *)st;
    return 0;
}

static int resident_step_open(struct drps_store *base, uint64_t step, const uint32_t *ids, size_t n,
                              struct drps_rows *rows_out, struct drps_err *err)
{
    struct resident *st = (struct resident *)base;
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

static int resident_step_close(struct drps_store *base, uint64_t step, int changed,
                               struct drps_err *err)
{
    struct resident *st = (struct resident *)base;
    int rc = drps_open_steps_close(&st->steps, step, err);
    if (rc == 0) drps_marks_close(&st->marks, step, changed);
    return rc;
}

static int visit_run(const struct resident *st, uint64_t first, uint64_t end, drps_row_visit visit,
                     void *ctx, struct drps_err *err)
{
    const uint64_t piece = piece_rows(st->row_bytes);
    int rc = 0;
    for (; first < end && !rc; first += piece)
        rc = visit(ctx, first, (size_t)(end - first < piece ? end - first : piece),
                   st->rows + (size_t)first * st->row_bytes, err);
    return rc;
}

static int resident_scan(struct drps_store *base, size_t bytes, drps_row_visit visit, void *ctx,
                         struct drps_err *err)
{
    struct resident *st = (struct resident *)base;
    (void)bytes; /* all of each row is there */
    int rc = drps_open_steps_scan(&st->steps, err);
    return rc < 0 ? rc : visit_run(st, 0, st->n_rows, visit, ctx, err);
}

static int resident_scan_changed(struct drps_store *base, drps_row_visit visit, void *ctx,
                                 struct drps_err *err)
{
    struct resident *st = (struct resident *)base;
    uint64_t first, end = 0;
    int rc = drps_open_steps_none(&st->steps, err);
    while (!rc && drps_marks_next(&st->marks, end, &first, &end))
        rc = visit_run(st, first, end, visit, ctx, err);
    return rc;
}

static void resident_forget_changes(struct drps_store *base)
{
    drps_marks_clear(&((struct resident *)base)->marks);
}

static void resident_stats(struct drps_store *base, struct drps_store_stats *out)
{
    const struct resident *st = (const struct resident *)base;
    *out = (struct drps_store_stats){.steps = st->steps.opened, .pool_bytes = st->bytes};
}

const struct drps_store_ops drps_store_resident = {
    .name = "resident",
    .memory_need = resident_memory_need,
    .open = resident_open,
    .step_open = resident_step_open,
    .step_close = resident_step_close,
    .scan = resident_scan,
    .scan_changed = resident_scan_changed,
    .forget_changes = resident_forget_changes,
    .stats = resident_stats,
    .close = resident_close,
};
