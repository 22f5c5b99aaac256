/*
 * Slots and windows against the row lists. The slots of a step lead through the window's rows to
 * the step's rows, and every slot is led to by some step, but for rows that only stay: so the
 * window has the rows of its steps and no others.
 */
#include "index/verify/verify.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"

struct verifier {
    struct verify *check;
    const struct drps_plan_info *info;
    struct steps *windows, *slots, *rows;
    struct drps_window window;
    uint64_t *seen; /* [seen_cap] a bit a slot of the window */
    size_t seen_cap;
    struct {
        uint64_t steps, rows, kept, max_rows, pair_rows;
        uint64_t before, arriving; /* rows of the window before; of the first one, that arrive */
    } sum;
};

int drps_verify_window(struct steps *windows, uint64_t k, struct drps_window *window,
                       struct drps_err *err)
{
    enum { ALL = DRPS_WINDOW_ROWS | DRPS_WINDOW_NEXT | DRPS_WINDOW_PREV };
    const void *record;
    size_t bytes;
    int rc = drps_steps_record(windows, k, &record, &bytes, err);
    if (rc < 0) return rc;
    rc = drps_window_decode(record, bytes, ALL, window, err);
    if (rc == 0) rc = drps_window_check_front(record, window->front_bytes, err);
    return rc < 0 ? drps_steps_fault(windows, k, err) : 0;
}

static int check_bounds(const struct verifier *v, uint64_t first_step, struct drps_err *err)
{
    const struct drps_window *w = &v->window;
    uint64_t train = v->info->batches, end = first_step + w->steps;
    if (w->first_step != first_step || w->steps > v->check->steps - first_step ||
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

static void raise(uint64_t *most, uint64_t value)
{
    if (value > *most) *most = value;
}

/* Two neighbours together have the rows of the one and those that arrive in the other. */
static void add_to_sums(struct verifier *v, uint64_t k)
{
    const struct drps_window *w = &v->window;
    if (k == 0) v->sum.arriving = w->arriving;
    raise(&v->sum.pair_rows, k == 0 ? w->n : v->sum.before + w->arriving);
    raise(&v->sum.max_rows, w->n);
    v->sum.steps += w->steps;
    v->sum.rows += w->n;
    v->sum.kept += w->n - w->leaving;
    v->sum.before = w->n;
}

static int check_window(struct verifier *v, uint64_t k, struct drps_err *err)
{
    const uint64_t first_step = v->sum.steps;
    int rc = drps_verify_window(v->windows, k, &v->window, err);
    if (rc < 0) return rc;
    rc = check_bounds(v, first_step, err);
    if (rc < 0) return drps_steps_fault(v->windows, k, err);
    add_to_sums(v, k);
    const size_t words = v->window.n / 64 + 1;
    if (drps_array_reserve(&v->seen, &v->seen_cap, words, sizeof(*v->seen)))
        return drps_err_set(err, -ENOMEM, "no memory for %zu slots", v->window.n);
    memset(v->seen, 0, words * sizeof(*v->seen));
    const uint64_t before = v->check->found->problems;
    for (uint64_t s = first_step; s < v->sum.steps && rc == 0; s++) {
        rc = drps_findings_take(v->check->found, check_step(v, s, err), err);
        drps_verify_reach(v->check, s + 1, v->check->steps);
    }
    if (rc < 0 || v->check->found->problems > before) return rc;
    rc = check_seen(v, err);
    return rc < 0 ? drps_steps_fault(v->windows, k, err) : 0;
}

static void check_numbers(struct verifier *v)
{
    const struct drps_plan_info *i = v->info;
    raise(&v->sum.pair_rows, v->sum.before + v->sum.arriving);
    if (i->windows <= 1) v->sum.pair_rows = v->sum.max_rows;
    const struct verify_number numbers[] = {
        {"working_set_rows", v->sum.pair_rows, i->working_set_rows, 0},
        {"max_window_rows", v->sum.max_rows, i->max_window_rows, 1},
        {"window_rows", v->sum.rows, i->window_rows, 1},
        {"window_rows_kept", v->sum.kept, i->window_rows_kept, 1},
        {"window_rows_moved", v->sum.rows - v->sum.kept, i->window_rows_moved, 1},
    };
    drps_verify_numbers(v->check, numbers, sizeof(numbers) / sizeof(*numbers));
    if (v->sum.steps != v->check->steps)
        drps_findings_add(v->check->found,
                          "%s/" DRPS_FILE_WINDOWS ": windows of %" PRIu64 " steps; the plan has "
                          "%" PRIu64,
                          v->check->plan->dir, v->sum.steps, v->check->steps);
    if (i->windows && v->window.max_rows != v->sum.max_rows)
        drps_findings_add(v->check->found,
                          "%s/" DRPS_FILE_WINDOWS ": the largest window has %" PRIu64
                          " rows, the last record says %" PRIu32,
                          v->check->plan->dir, v->sum.max_rows, v->window.max_rows);
}

static int check_windows(struct verifier *v, struct drps_err *err)
{
    const uint64_t before = v->check->found->problems;
    int rc = 0;
    for (uint64_t k = 0; k < v->info->windows && rc == 0; k++)
        rc = check_window(v, k, err);
    if (rc == 0 && v->check->found->problems == before) check_numbers(v);
    return drps_findings_take(v->check->found, rc, err); /* where a window begins is not known */
}

int drps_verify_slots(struct verify *check, struct drps_err *err)
{
    struct verifier v = {.check = check, .info = check->info};
    int rc = drps_verify_open(check, DRPS_FILE_WINDOWS, &v.windows, err);
    if (rc == 0) rc = drps_verify_open(check, DRPS_FILE_SLOTS, &v.slots, err);
    if (rc == 0) rc = drps_verify_open(check, DRPS_FILE_ROWS, &v.rows, err);
    if (rc == 0) rc = check_windows(&v, err);
    drps_steps_close(v.windows);
    drps_steps_close(v.slots);
    drps_steps_close(v.rows);
    drps_window_free(&v.window);
    free(v.seen);
    return rc;
}

int drps_verify_no_windows(struct verify *v, struct drps_err *err)
{
    const struct drps_plan_info *i = v->info;
    const struct verify_number numbers[] = {
        {"working_set_rows", i->rows, i->working_set_rows, 0},
        {"max_window_rows", 0, i->max_window_rows, 0},
    };
    (void)err; /* nothing is read */
    drps_verify_numbers(v, numbers, sizeof(numbers) / sizeof(*numbers));
    return 0;
}
