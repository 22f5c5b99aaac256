/* Running plans: a store beside the plain array that it is compared with. */
#include "support/store_run.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/drps_io.h"
#include "base/drps_rng.h"

static void *must(void *p)
{
    if (!p) fail_msg("out of memory");
    return p;
}

static uint32_t below(uint64_t seed, uint64_t i, uint32_t n)
{
    return (uint32_t)(drps_rng_at(seed, i) % n);
}

int plan_init_rows(void *plan, uint64_t first, size_t n, void *rows_out, struct drps_err *err)
{
    const struct plan *p = plan;
    (void)err;
    size_t words = p->row_bytes / 4;
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < words; k++) {
            uint32_t v = (uint32_t)drps_rng_at(p->seed, (first + i) * words + k);
            memcpy((char *)rows_out + i * p->row_bytes + 4 * k, &v, sizeof(v));
        }
    return 0;
}

static void change_row(const struct plan *p, void *row, uint32_t id, uint64_t step)
{
    for (size_t k = 0; k < p->row_bytes / 4; k++) {
        uint32_t v;
        memcpy(&v, (char *)row + 4 * k, sizeof(v));
        v = (uint32_t)drps_rng_at(v, (step << 32) + id);
        memcpy((char *)row + 4 * k, &v, sizeof(v));
    }
}

struct drps_store_config plan_config(const struct plan *p)
{
    return (struct drps_store_config){
        .io = drps_io_os(),
        .rows = p->rows,
        .row_bytes = p->row_bytes,
        .init = plan_init_rows,
        .init_ctx = (void *)p,
        .block_first = p->block_first,
        .blocks = p->blocks,
        .timeline = &p->timeline,
        .step = p->most,
        .windows = p->windows ? &p->source : NULL,
    };
}

uint64_t plan_least_memory(const struct drps_store_ops *ops, const struct drps_store_config *config)
{
    uint64_t least, most;
    assert_int_equal(ops->memory_need(config, &least, &most, NULL), 0);
    assert_true(least <= most);
    return least;
}

/* ---- Scans ---- */

enum { STOPPED = 77 }; /* a visit ends the scan with it */

struct comparison {
    const struct plan_store *r;
    size_t bytes; /* shown of each row */
    uint64_t next, stop;
};

static int compare_rows(void *ctx, uint64_t first, size_t n, const void *rows, struct drps_err *err)
{
    struct comparison *c = ctx;
    const struct plan *p = c->r->p;
    const size_t row_bytes = p->row_bytes;
    (void)err;
    if (first != c->next || first + n > p->rows)
        fail_msg("seed %llu: scan shows rows %llu + %zu, expected to go on at %llu",
                 (unsigned long long)p->seed, (unsigned long long)first, n,
                 (unsigned long long)c->next);
    for (size_t i = 0; i < n; i++)
        if (memcmp((const char *)rows + i * row_bytes, c->r->model + (first + i) * row_bytes,
                   c->bytes) != 0)
            fail_msg("seed %llu: row %llu differs in the scan before step %zu",
                     (unsigned long long)p->seed, (unsigned long long)(first + i), c->r->next);
    c->next += n;
    return c->next > c->stop ? STOPPED : 0;
}

int plan_scan(const struct plan_store *r, size_t bytes, struct drps_err *err)
{
    const size_t row_bytes = r->p->row_bytes;
    struct comparison c = {
        .r = r, .bytes = bytes && bytes < row_bytes ? bytes : row_bytes, .stop = UINT64_MAX};
    const int rc = r->ops->scan(r->st, bytes, compare_rows, &c, err);
    if (!rc) assert_int_equal(c.next, r->p->rows);
    return rc;
}

/* A scan that shows all or a part of each row; now and then, one that ends early before it. */
static int some_scan(const struct plan_store *r, struct drps_err *err)
{
    const uint64_t seed = drps_rng_at(r->p->seed, r->next);
    const uint32_t words = (uint32_t)(r->p->row_bytes / 4);
    struct comparison c = {.r = r, .bytes = 4, .stop = below(seed, 1, r->p->rows)};
    if (below(seed, 2, 2)) {
        const int rc = r->ops->scan(r->st, 0, compare_rows, &c, err);
        if (rc != STOPPED) return rc < 0 ? rc : -EINVAL;
    }
    return plan_scan(r, below(seed, 3, 2) ? 4 * (size_t)below(seed, 4, words + 3) : 0, err);
}

/* ---- Changes ---- */

static int is_range_changed(const struct plan_store *r, uint64_t row)
{
    const uint64_t first = row - row % r->mark_rows;
    const uint64_t left = r->p->rows - first;
    return memchr(r->changed + first, 1, left < r->mark_rows ? left : r->mark_rows) != NULL;
}

struct keeping {
    struct plan_store *r;
    uint64_t next, stop;
};

static int keep_changed(void *ctx, uint64_t first, size_t n, const void *rows, struct drps_err *err)
{
    struct keeping *k = ctx;
    struct plan_store *r = k->r;
    const size_t row_bytes = r->p->row_bytes;
    (void)err;
    assert_true(n > 0 && first >= k->next && first + n <= r->p->rows);
    for (; k->next < first; k->next++)
        if (is_range_changed(r, k->next))
            fail_msg("seed %llu: changes before step %zu lack row %llu",
                     (unsigned long long)r->p->seed, r->next, (unsigned long long)k->next);
    for (; k->next < first + n; k->next++)
        if (!is_range_changed(r, k->next))
            fail_msg("seed %llu: changes before step %zu have row %llu, which is of no changed one",
                     (unsigned long long)r->p->seed, r->next, (unsigned long long)k->next);
    memcpy(r->kept + first * row_bytes, rows, n * row_bytes);
    return k->next > k->stop ? STOPPED : 0;
}

/* Bring the kept rows up to date with a scan of what has changed, which must be the ranges that
 * steps have changed and no other; `forget` 0: it ends somewhere, and comes to nothing. */
static int keep_changes(struct plan_store *r, int forget, struct drps_err *err)
{
    struct keeping k = {.r = r, .stop = UINT64_MAX};
    const struct plan *p = r->p;
    if (!forget) k.stop = below(p->seed, r->next, p->rows);
    int rc = r->ops->scan_changed(r->st, keep_changed, &k, err);
    if (rc == STOPPED || (!rc && !forget)) return 0;
    if (rc) return rc;
    for (; k.next < p->rows; k.next++)
        assert_false(is_range_changed(r, k.next));
    assert_memory_equal(r->kept, r->model, (size_t)p->rows * p->row_bytes);
    r->ops->forget_changes(r->st);
    memset(r->changed, 0, p->rows);
    return 0;
}

/* Now and then; every other time to no avail. */
static int some_changes(struct plan_store *r, struct drps_err *err)
{
    const uint64_t x = drps_rng_at(r->p->seed, (UINT64_C(1) << 40) + r->next);
    return r->mark_rows && x % 10 == 0 ? keep_changes(r, x / 10 % 2, err) : 0;
}

/* ---- Runs ---- */

int plan_open(struct plan_store *r, const struct plan *p, const struct drps_store_ops *ops,
              const struct drps_store_config *config, struct drps_err *err)
{
    *r = (struct plan_store){.p = p, .ops = ops};
    const int rc = ops->open(config, &r->st, err);
    if (rc < 0) {
        assert_null(r->st);
        return rc;
    }
    r->model = must(malloc((size_t)p->rows * p->row_bytes));
    assert_int_equal(plan_init_rows((void *)p, 0, p->rows, r->model, NULL), 0);
    r->mark_rows = config->mark_rows;
    if (!r->mark_rows) return 0;
    r->kept = must(malloc((size_t)p->rows * p->row_bytes));
    memcpy(r->kept, r->model, (size_t)p->rows * p->row_bytes);
    r->changed = must(calloc(p->rows, 1));
    return 0;
}

void plan_close(struct plan_store *r)
{
    if (r->st) r->ops->close(r->st);
    free(r->model);
    free(r->kept);
    free(r->changed);
    free(r->begin);
    free(r->blocks);
    *r = (struct plan_store){0};
}

/* ---- Runs that go on with another one's rows ---- */

static int keep_rows(void *ctx, uint64_t first, size_t n, const void *rows, struct drps_err *err)
{
    const struct plan_store *r = ctx;
    (void)err;
    memcpy(r->begin + first * r->p->row_bytes, rows, n * r->p->row_bytes);
    return 0;
}

static int give_rows(void *ctx, uint64_t first, size_t n, void *rows_out, struct drps_err *err)
{
    const struct plan_store *r = ctx;
    (void)err;
    memcpy(rows_out, r->begin + first * r->p->row_bytes, n * r->p->row_bytes);
    return 0;
}

/* The blocks of a step of a store that does not begin with the plan's first. */
static int later_blocks(void *ctx, uint64_t step, struct drps_step_blocks *out,
                        struct drps_err *err)
{
    const struct plan_store *r = ctx;
    const struct drps_timeline *all = &r->p->timeline;
    int rc = all->step_blocks(all->ctx, r->first + step, out, err);
    for (size_t i = 0; i < out->n; i++)
        r->blocks[i] = out->next_use[i] == UINT64_MAX ? UINT64_MAX : out->next_use[i] - r->first;
    out->next_use = r->blocks;
    return rc;
}

int plan_leave(struct plan_store *r, struct drps_err *err)
{
    const struct plan *p = r->p;
    if (!r->begin) r->begin = must(malloc((size_t)p->rows * p->row_bytes));
    if (!r->blocks) r->blocks = must(malloc((p->blocks + 1) * sizeof(*r->blocks)));
    int rc = r->ops->scan(r->st, 0, keep_rows, r, err);
    if (rc < 0) return rc;
    assert_memory_equal(r->begin, r->model, (size_t)p->rows * p->row_bytes);
    r->ops->close(r->st);
    r->st = NULL;
    return 0;
}

int plan_reopen(struct plan_store *r, const struct drps_store_ops *ops,
                const struct drps_store_config *config, struct drps_err *err)
{
    const struct plan *p = r->p;
    struct drps_store_config later = *config;
    r->ops = ops;
    r->first = r->next;
    r->timeline = (struct drps_timeline){
        .ctx = r, .steps = p->n_steps - r->first, .step_blocks = later_blocks};
    r->windows = p->source;
    r->windows.epochs -= r->first / p->epoch_steps;
    later.init = give_rows;
    later.init_ctx = r;
    later.timeline = &r->timeline;
    later.windows = p->windows ? &r->windows : NULL;
    later.first_step = r->first % p->epoch_steps;
    return ops->open(&later, &r->st, err);
}

/* ---- Steps ---- */

int plan_step(struct plan_store *r, struct drps_err *err)
{
    const struct plan *p = r->p;
    const size_t s = r->next, nr = s - r->first;
    const struct plan_step *step = &p->steps[s];
    struct drps_rows rows;
    int rc = r->ops->step_open(r->st, nr, r->ops->by_slot ? step->slots : step->ids, step->n_ids,
                               &rows, err);
    if (rc < 0) return rc;
    assert_int_equal(rows.n, step->n_ids);
    for (size_t i = 0; i < rows.n; i++) {
        char *row = drps_row_at(&rows, i);
        char *expected = r->model + step->ids[i] * p->row_bytes;
        if (memcmp(row, expected, p->row_bytes) != 0)
            fail_msg("seed %llu: step %zu shows old bytes of row %u", (unsigned long long)p->seed,
                     s, step->ids[i]);
        if (!step->changes) continue;
        change_row(p, row, step->ids[i], s);
        change_row(p, expected, step->ids[i], s);
        if (r->changed) r->changed[step->ids[i]] = 1;
    }
    r->next++;
    return r->ops->step_close(r->st, nr, step->changes, err);
}

int plan_steps(struct plan_store *r, size_t end, struct drps_err *err)
{
    int rc = 0;
    while (!rc && r->next < end) {
        rc = plan_step(r, err);
        if (!rc) rc = some_changes(r, err);
        if (!rc && below(r->p->seed, r->next - 1, 40) == 0) rc = some_scan(r, err);
    }
    return rc;
}

int plan_run(const struct plan *p, const struct drps_store_ops *ops,
             const struct drps_store_config *config, struct drps_store_stats *stats_out,
             struct drps_err *err)
{
    struct plan_store r;
    int rc = plan_open(&r, p, ops, config, err);
    if (rc < 0) return rc;
    rc = plan_steps(&r, p->n_steps, err);
    if (!rc) rc = plan_scan(&r, 0, err);
    if (stats_out) ops->stats(r.st, stats_out);
    plan_close(&r);
    return rc;
}

/* ---- Fresh rows that cannot be had ---- */

struct failing_init {
    const struct plan *plan;
    atomic_long countdown; /* the call that brings it to 0 fails */
};

static int failing_init(void *ctx, uint64_t first, size_t n, void *rows_out, struct drps_err *err)
{
    struct failing_init *f = ctx;
    if (atomic_fetch_sub(&f->countdown, 1) == 1)
        return drps_err_set(err, -EIO, "injected fault in row %llu", (unsigned long long)first);
    return plan_init_rows((void *)f->plan, first, n, rows_out, err);
}

void plan_check_failing_init(const struct plan *p, const struct drps_store_ops *ops,
                             const struct drps_store_config *config)
{
    for (long k = 1;; k += k < 10 ? 1 : k / 3) {
        struct failing_init f = {.plan = p, .countdown = k};
        struct drps_store_config failing = *config;
        struct drps_err err = DRPS_ERR_INIT;
        char *dir = scratch_new();
        failing.dir = dir;
        failing.init = failing_init;
        failing.init_ctx = &f;
        const int rc = plan_run(p, ops, &failing, NULL, &err);
        scratch_remove(dir);
        if (f.countdown > 0) {
            if (rc < 0 || k == 1) fail_msg("%s, no fault: %s", ops->name, err.text);
            return;
        }
        if (rc != -EIO || !strstr(err.text, "injected fault in row"))
            fail_msg("%s, call %ld: code %d, text \"%s\"", ops->name, k, rc, err.text);
    }
}

/* ---- Steps that overlap ---- */

struct open_step {
    size_t s;
    char *base;
    size_t stride;
    uint32_t *index; /* own */
};

struct overlap {
    struct plan_store r; /* its `next` opens next */
    struct open_step open[DRPS_STORE_OPEN_MOST];
    size_t n, span; /* open; at most */
    uint64_t draws; /* random numbers drawn */
};

static uint32_t draw(struct overlap *o, uint32_t n)
{
    return below(o->r.p->seed, 1000000 + o->draws++, n);
}

/* Compare the rows of an open step with the model, and change them in both. */
static void touch_step(const struct overlap *o, const struct open_step *open)
{
    const struct plan *p = o->r.p;
    const struct plan_step *step = &p->steps[open->s];
    for (size_t i = 0; i < step->n_ids; i++) {
        char *row = open->base + (size_t)open->index[i] * open->stride;
        char *expected = o->r.model + step->ids[i] * p->row_bytes;
        if (memcmp(row, expected, p->row_bytes) != 0)
            fail_msg("seed %llu: step %zu of %zu open ones shows old bytes of row %u",
                     (unsigned long long)p->seed, open->s, o->n, step->ids[i]);
        if (!step->changes) continue;
        change_row(p, row, step->ids[i], open->s);
        change_row(p, expected, step->ids[i], open->s);
        if (o->r.changed) o->r.changed[step->ids[i]] = 1;
    }
}

static int open_step(struct overlap *o, struct drps_err *err)
{
    const struct plan_step *step = &o->r.p->steps[o->r.next];
    struct drps_rows rows;
    int rc = o->r.ops->step_open(o->r.st, o->r.next, o->r.ops->by_slot ? step->slots : step->ids,
                                 step->n_ids, &rows, err);
    if (rc < 0) return rc;
    struct open_step *open = &o->open[o->n++];
    *open = (struct open_step){.s = o->r.next++, .base = rows.base, .stride = rows.stride};
    open->index = must(calloc(rows.n + 1, sizeof(*open->index)));
    for (size_t i = 0; i < rows.n; i++)
        open->index[i] = rows.index[i];
    touch_step(o, open);
    return 0;
}

static int close_step(struct overlap *o, size_t which, struct drps_err *err)
{
    struct open_step *open = &o->open[which];
    touch_step(o, open);
    free(open->index);
    const size_t s = open->s;
    *open = o->open[--o->n];
    return o->r.ops->step_close(o->r.st, s, o->r.p->steps[s].changes, err);
}

static size_t lowest_open(const struct overlap *o)
{
    size_t low = o->r.next;
    for (size_t i = 0; i < o->n; i++)
        if (o->open[i].s < low) low = o->open[i].s;
    return low;
}

static int overlap_event(struct overlap *o, size_t *overlaps_out, size_t *refused_out,
                         struct drps_err *err)
{
    const int may_open = o->r.next < o->r.p->n_steps && o->r.next - lowest_open(o) < o->span;
    if (may_open && (!o->n || draw(o, 3))) {
        *overlaps_out += o->n > 0;
        int rc = open_step(o, err);
        if (rc != -EAGAIN) return rc;
        assert_true(o->n > 0); /* else nobody could close one */
        assert_int_equal(err->code, 0);
        ++*refused_out;
    }
    if (draw(o, 3) == 0) touch_step(o, &o->open[draw(o, (uint32_t)o->n)]);
    return close_step(o, draw(o, (uint32_t)o->n), err);
}

static int overlap_all(struct overlap *o, size_t *overlaps_out, size_t *refused_out,
                       struct drps_err *err)
{
    int rc = 0;
    while (!rc && (o->n || o->r.next < o->r.p->n_steps)) {
        rc = overlap_event(o, overlaps_out, refused_out, err);
        if (!rc && !o->n) rc = some_changes(&o->r, err);
        if (!rc && !o->n && draw(o, 10) == 0) rc = plan_scan(&o->r, 0, err);
    }
    return rc ? rc : plan_scan(&o->r, 0, err);
}

int plan_run_overlapping(const struct plan *p, const struct drps_store_ops *ops,
                         const struct drps_store_config *config, size_t *overlaps_out,
                         size_t *refused_out, struct drps_err *err)
{
    struct overlap o = {.span = config->open_steps};
    *overlaps_out = *refused_out = 0;
    int rc = plan_open(&o.r, p, ops, config, err);
    if (rc < 0) return rc;
    rc = overlap_all(&o, overlaps_out, refused_out, err);
    for (size_t i = 0; i < o.n; i++)
        free(o.open[i].index);
    plan_close(&o.r);
    return rc;
}
