/*
 * The use distances of windows against each other. Two epochs of windows go by, and a table holds
 * for each row its last window and the next use that was given there. When a row comes again in the
 * second epoch, both distances must be that from the one window to the other.
 */
#include "index/verify/verify.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/drps_alloc.h"

struct use {
    uint32_t window, next;
};

struct verifier {
    struct verify *check;
    struct steps *windows;
    struct drps_window window;
    struct use *table; /* [slice_rows] */
    uint64_t slice_rows;
};

static void add_wrong(const struct verifier *v, uint32_t k, size_t i, const struct use *last,
                      uint32_t distance)
{
    const struct drps_window *w = &v->window;
    drps_findings_add(v->check->found,
                      "%s/" DRPS_FILE_WINDOWS ": record %" PRIu32 ": row %" PRIu32
                      " was used last %" PRIu32 " windows before, in record %" PRIu32
                      "; it says %" PRIu32 ", and record %" PRIu32 " that it is used next %" PRIu32
                      " windows on",
                      v->check->plan->dir, k, w->rows[i], distance, last->window, w->prev[i],
                      last->window, last->next);
}

/* Row i of window k, used last as the table says. */
static void check_use(const struct verifier *v, uint32_t k, size_t i, const struct use *last)
{
    const struct drps_window *w = &v->window;
    uint32_t distance = k - last->window; /* modulo 2^32 */
    if (k <= last->window) distance += w->windows;
    if (w->prev[i] != distance || last->next != distance) add_wrong(v, k, i, last, distance);
}

/* `known`: the table has the epoch before; else rows of it may not be set. */
static void check_window(struct verifier *v, uint32_t k, uint64_t first, int known)
{
    const struct drps_window *w = &v->window;
    for (size_t i = 0; i < w->n; i++) {
        if (w->rows[i] - first >= v->slice_rows) continue; /* also those before: they wrap */
        struct use *last = &v->table[w->rows[i] - first];
        if (known) check_use(v, k, i, last);
        *last = (struct use){k, w->next[i]};
    }
}

static int check_slice(struct verifier *v, uint64_t first, int known, uint64_t *done,
                       uint64_t total, struct drps_err *err)
{
    const uint64_t windows = v->check->info->windows;
    int rc = 0;
    for (uint64_t k = 0; k < windows && rc == 0; k++) {
        rc = drps_verify_window(v->windows, k, &v->window, err);
        if (rc < 0) return rc;
        check_window(v, (uint32_t)k, first, known);
        drps_verify_reach(v->check, ++*done, total);
    }
    return rc;
}

static int check_slices(struct verifier *v, struct drps_err *err)
{
    const struct drps_plan_info *info = v->check->info;
    const uint64_t slices = drps_verify_slices(info->rows);
    uint64_t done = 0;
    int rc = 0;
    for (uint64_t i = 0; i < 2 * slices && rc == 0; i++)
        rc = check_slice(v, i / 2 * v->slice_rows, i % 2 != 0, &done, 2 * slices * info->windows,
                         err);
    return drps_findings_take(v->check->found, rc, err);
}

int drps_verify_distances(struct verify *check, struct drps_err *err)
{
    const uint64_t rows = check->info->rows;
    struct verifier v = {.check = check};
    v.slice_rows = rows < VERIFY_SLICE_ROWS ? rows : VERIFY_SLICE_ROWS;
    v.table = drps_array_new((size_t)v.slice_rows, sizeof(*v.table));
    int rc = v.table
                 ? 0
                 : drps_err_set(err, -ENOMEM, "no memory to verify the windows of %" PRIu64 " rows",
                                v.slice_rows);
    if (rc == 0) rc = drps_verify_open(check, DRPS_FILE_WINDOWS, &v.windows, err);
    if (rc == 0) rc = check_slices(&v, err);
    drps_steps_close(v.windows);
    drps_window_free(&v.window);
    free(v.table);
    return rc;
}
