/*
 * Windows and slots against the row lists.
 *
 * Slots: those of a step lead through the window's rows to the step's ids, and every slot is led to
 * by some step; so the window has the rows of its steps and no others. Distances: two epochs of
 * windows go by, and a table holds for each row its last window and the next that was given there.
 * When a row comes again in the second epoch, both must be the distance from the one to the other.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "index/plan/verify.h"

#include "base/drps_alloc.h"
#include "index/plan/drps_steps.h"
#include "index/plan/drps_window.h"

enum { BUFFER_BYTES = 1 << 20, SLICE_ROWS = 1 << 23 };

struct use {
    uint32_t window, next;
};

struct verifier {
    const struct drps_plan_info *info;
    uint64_t steps;
    struct steps *windows, *slots, *rows;
    struct drps_window window;
    uint64_t *seen; /* [seen_cap] a bit a slot of the window */
    size_t seen_cap;
    struct use *table; /* [slice_rows] */
    uint64_t slice_rows;
};

static int read_window(struct verifier *v, uint64_t k, unsigned parts, struct drps_err *err)
{
    const void *record;
    size_t bytes;
    int rc = drps_steps_record(v->windows, k, &record, &bytes, err);
    if (rc < 0) return rc;
    rc = drps_window_decode(record, bytes, parts, &v->window, err);
    if (rc == 0) rc = drps_window_check_front(record, v->window.front_bytes, err);
    return rc < 0 ? drps_steps_fault(v->windows, k, err), rc : 0;
}

/* ---- Slots ---- */

static int check_bounds(const struct verifier *v, uint64_t first_step, struct drps_err *err)
{
    const struct drps_window *w = &v->window;
    uint64_t train = v->info->batches, end = first_step + w->steps;
    if (w->first_step != first_step || w->steps > v->steps - first_step ||
        w->evaluation != (first_step >= train) || (first_step < train && end > train) ||
        w->windows != v->info->windows)
        return drps_err_set(err, DRPS_E_CORRUPT,
                            "%" PRIu64 " steps from %" PRIu64 " on, of %" PRIu32
                            " windows: expected are steps from %" PRIu64 " on, %" PRIu64
                            " windows, and none with both training and evaluation",
                            w->steps, w->first_step, w->windows, first_step, v->info->windows);
    if (w->n && w->rows[w->n - 1] >= v->info->rows)
        return drps_err_set(err, DRPS_E_CORRUPT, "row %" PRIu32 " of %" PRIu64, w->rows[w->n - 1],
                            v->info->rows);
    return 0;
}

/* `slots` is borrowed from one reader, `rows` from the other. */
static int check_slots(struct verifier *v, const uint32_t *slots, size_t slots_n,
                       const uint32_t *rows, size_t n, struct drps_err *err)
{
    if (slots_n != n)
        return drps_err_set(err, DRPS_E_CORRUPT, "%zu slots, but the step has %zu rows", slots_n,
                            n);
    for (size_t i = 0; i < n; i++) {
        if (v->window.rows[slots[i]] != rows[i])
            return drps_err_set(err, DRPS_E_CORRUPT,
                                "slot %" PRIu32 " holds row %" PRIu32 ", the step has row %" PRIu32,
                                slots[i], v->window.rows[slots[i]], rows[i]);
        v->seen[slots[i] / 64] |= UINT64_C(1) << slots[i] % 64;
    }
    return 0;
}

static int check_step(struct verifier *v, uint64_t s, struct drps_err *err)
{
    const uint32_t *slots, *rows;
    size_t slots_n, n;
    int rc = drps_steps_rows(v->slots, s, v->window.n, &slots, &slots_n, err);
    if (rc == 0) rc = drps_steps_rows(v->rows, s, v->info->rows, &rows, &n, err);
    if (rc < 0) return rc;
    rc = check_slots(v, slots, slots_n, rows, n, err);
    return rc < 0 ? drps_steps_fault(v->slots, s, err), rc : 0;
}

/* A slot that no step uses holds a row that stays from the window before to the next one. */
static int check_seen(const struct verifier *v, struct drps_err *err)
{
    const struct drps_window *w = &v->window;
    for (size_t i = 0; i < w->n; i++) {
        if (v->seen[i / 64] >> i % 64 & 1) continue;
        if (w->windows > 1 && w->next[i] == 1 && w->prev[i] == 1) continue;
        return drps_err_set(err, DRPS_E_CORRUPT,
                            "no step has row %" PRIu32 ", and the windows beside it have it not",
                            w->rows[i]);
    }
    return 0;
}

static int check_window(struct verifier *v, uint64_t k, uint64_t first_step, struct drps_err *err)
{
    int rc = read_window(v, k, DRPS_WINDOW_ROWS | DRPS_WINDOW_NEXT | DRPS_WINDOW_PREV, err);
    if (rc < 0) return rc;
    rc = check_bounds(v, first_step, err);
    if (rc < 0) return drps_steps_fault(v->windows, k, err);
    size_t words = v->window.n / 64 + 1;
    if (drps_array_reserve(&v->seen, &v->seen_cap, words, sizeof(*v->seen)))
        return drps_err_set(err, -ENOMEM, "no memory for %zu slots", v->window.n);
    memset(v->seen, 0, words * sizeof(*v->seen));
    for (uint64_t s = first_step; s < first_step + v->window.steps && rc == 0; s++)
        rc = check_step(v, s, err);
    if (rc < 0) return rc;
    rc = check_seen(v, err);
    return rc < 0 ? drps_steps_fault(v->windows, k, err) : 0;
}

static int check_steps(struct verifier *v, struct drps_err *err)
{
    uint64_t step = 0, most = 0;
    int rc = 0;
    for (uint64_t k = 0; k < v->info->windows && rc == 0; k++) {
        rc = check_window(v, k, step, err);
        step += v->window.steps;
        if (v->window.n > most) most = v->window.n;
    }
    if (rc == 0 && (step != v->steps || (v->info->windows && v->window.max_rows != most)))
        rc = drps_err_set(err, DRPS_E_CORRUPT,
                          DRPS_FILE_WINDOWS ": %" PRIu64 " steps of %" PRIu64 ", at most %" PRIu64
                                            " rows where the last window says %" PRIu32,
                          step, v->steps, most, v->window.max_rows);
    return rc;
}

/* ---- Distances ---- */

static int check_distances(struct verifier *v, uint32_t k, uint64_t first, int known,
                           struct drps_err *err)
{
    const struct drps_window *w = &v->window;
    for (size_t i = 0; i < w->n; i++) {
        if (w->rows[i] - first >= v->slice_rows) continue; /* also those before: they wrap */
        struct use *last = &v->table[w->rows[i] - first];
        uint32_t distance = k - last->window; /* modulo 2^32 */
        if (k <= last->window) distance += w->windows;
        if (known && (w->prev[i] != distance || last->next != distance))
            return drps_err_set(err, DRPS_E_CORRUPT,
                                "row %" PRIu32 " was used %" PRIu32
                                " windows ago; stored is %" PRIu32 ", and %" PRIu32 " there",
                                w->rows[i], distance, w->prev[i], last->next);
        *last = (struct use){k, w->next[i]};
    }
    return 0;
}

static int check_slice(struct verifier *v, uint64_t first, struct drps_err *err)
{
    int rc = 0;
    for (int known = 0; known < 2; known++) {
        for (uint64_t k = 0; k < v->info->windows && rc == 0; k++) {
            rc = read_window(v, k, DRPS_WINDOW_ROWS | DRPS_WINDOW_NEXT | DRPS_WINDOW_PREV, err);
            if (rc < 0) return rc;
            rc = check_distances(v, (uint32_t)k, first, known, err);
            if (rc < 0) (void)drps_steps_fault(v->windows, k, err);
        }
    }
    return rc;
}

static int check_uses(struct verifier *v, struct drps_err *err)
{
    int rc = 0;
    v->slice_rows = v->info->rows < SLICE_ROWS ? v->info->rows : SLICE_ROWS;
    v->table = drps_array_new((size_t)v->slice_rows, sizeof(*v->table));
    if (!v->table)
        return drps_err_set(err, -ENOMEM, "no memory to verify the windows of %" PRIu64 " rows",
                            v->slice_rows);
    for (uint64_t first = 0; first < v->info->rows && rc == 0; first += v->slice_rows)
        rc = check_slice(v, first, err);
    return rc;
}

int drps_verify_windows(const struct drps_io *io, const char *dir,
                        const struct drps_plan_info *info, struct drps_err *err)
{
    struct verifier v = {.info = info, .steps = info->batches + info->eval_batches};
    int rc = drps_steps_open(io, dir, DRPS_FILE_WINDOWS, DRPS_KIND_WINDOWS, info->windows,
                             BUFFER_BYTES, &v.windows, err);
    if (rc == 0)
        rc = drps_steps_open(io, dir, DRPS_FILE_SLOTS, DRPS_KIND_SLOTS, v.steps, BUFFER_BYTES,
                             &v.slots, err);
    if (rc == 0)
        rc = drps_steps_open(io, dir, DRPS_FILE_ROWS, DRPS_KIND_ROWS, v.steps, BUFFER_BYTES,
                             &v.rows, err);
    if (rc == 0) rc = check_steps(&v, err);
    if (rc == 0) rc = check_uses(&v, err);
    drps_steps_close(v.windows);
    drps_steps_close(v.slots);
    drps_steps_close(v.rows);
    drps_window_free(&v.window);
    free(v.seen);
    free(v.table);
    return rc;
}
