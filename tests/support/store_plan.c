/* Random plans: steps, blocks and windows, computed the slow way. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <errno.h>

#include <cmocka.h>

#include "base/drps_clock.h"
#include "base/drps_io.h"
#include "base/drps_rng.h"
#include "support/store_plan.h"

static void *must(void *p)
{
    if (!p) fail_msg("out of memory");
    return p;
}

static uint32_t below(uint64_t seed, uint64_t i, uint32_t n)
{
    return (uint32_t)(drps_rng_at(seed, i) % n);
}

static int plan_step_blocks(void *ctx, uint64_t step, struct drps_step_blocks *out,
                            struct drps_err *err)
{
    const struct plan *p = ctx;
    (void)err;
    const struct plan_step *s = &p->steps[step];
    *out =
        (struct drps_step_blocks){.blocks = s->blocks, .next_use = s->next_use, .n = s->n_blocks};
    return 0;
}

static int by_id(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

/* Skewed towards low ids, so that some blocks are hot; now and then a step is empty or needs one
 * row. */
static void draw_ids(const struct plan *p, struct plan_step *s, uint64_t seed, uint32_t most)
{
    uint32_t want = below(seed, 0, 10) == 0 ? below(seed, 1, 2) : 1 + below(seed, 1, most);
    s->ids = must(malloc((want + 1) * sizeof(*s->ids)));
    for (uint32_t i = 0; i < want; i++) {
        double u = drps_unit_double(drps_rng_at(seed, 2 + i));
        s->ids[i] = (uint32_t)(u * u * u * p->rows);
    }
    qsort(s->ids, want, sizeof(*s->ids), by_id);
    for (uint32_t i = 0; i < want; i++)
        if (!s->n_ids || s->ids[s->n_ids - 1] != s->ids[i]) s->ids[s->n_ids++] = s->ids[i];
}

/* Most rows of the cell's part of the first quarter and of the rest: there and back along the
 * second table, for each part of the first one. */
static void draw_cell(const struct plan *p, struct plan_step *s, uint64_t seed, uint32_t grid,
                      uint32_t cell)
{
    const uint32_t outer = cell / grid, at = cell % grid;
    const uint32_t inner = outer % 2 ? grid - 1 - at : at;
    const uint32_t first = p->rows / 4 / grid, second = (p->rows - grid * first) / grid;
    s->ids = must(malloc((first + second + 1) * sizeof(*s->ids)));
    for (uint32_t i = 0; i < first + second; i++) {
        if (below(seed, i, 8) == 0) continue;
        s->ids[s->n_ids++] =
            i < first ? outer * first + i : grid * first + inner * second + i - first;
    }
}

static void find_blocks(const struct plan *p, struct plan_step *s)
{
    s->blocks = must(malloc((s->n_ids + 1) * sizeof(*s->blocks)));
    s->next_use = must(malloc((s->n_ids + 1) * sizeof(*s->next_use)));
    uint32_t b = 0;
    for (size_t i = 0; i < s->n_ids; i++) {
        while (s->ids[i] >= p->block_first[b + 1])
            b++;
        if (!s->n_blocks || s->blocks[s->n_blocks - 1] != b) s->blocks[s->n_blocks++] = b;
    }
}

static void finish(struct plan *p)
{
    uint64_t *next = must(malloc(p->blocks * sizeof(*next)));
    memset(next, 0xff, p->blocks * sizeof(*next));
    for (size_t s = p->n_steps; s-- > 0;) {
        struct plan_step *step = &p->steps[s];
        for (size_t i = 0; i < step->n_blocks; i++) {
            step->next_use[i] = next[step->blocks[i]];
            next[step->blocks[i]] = s;
        }
        uint64_t rows = 0;
        for (size_t i = 0; i < step->n_blocks; i++)
            rows += p->block_first[step->blocks[i] + 1] - p->block_first[step->blocks[i]];
        if (step->n_blocks > p->most.blocks) p->most.blocks = step->n_blocks;
        if (rows > p->most.block_rows) p->most.block_rows = rows;
        if (step->n_ids > p->most.rows) p->most.rows = step->n_ids;
    }
    free(next);
    p->timeline =
        (struct drps_timeline){.ctx = p, .steps = p->n_steps, .step_blocks = plan_step_blocks};
}

struct plan *plan_new(uint64_t seed, const struct plan_shape *shape)
{
    struct plan *p = must(calloc(1, sizeof(*p)));
    p->seed = seed;
    p->rows = shape->rows;
    p->row_bytes = shape->row_bytes;
    p->block_first = must(malloc((shape->rows + 1) * sizeof(*p->block_first)));
    p->block_first[0] = 0;
    while (p->block_first[p->blocks] < p->rows) {
        uint32_t n = 1 + below(seed, 1000 + p->blocks, shape->max_block_rows);
        uint32_t first = p->block_first[p->blocks];
        p->block_first[++p->blocks] = n < p->rows - first ? first + n : p->rows;
    }
    p->epoch_steps = shape->epoch_steps;
    p->n_steps = shape->epochs * shape->epoch_steps;
    p->steps = must(calloc(p->n_steps, sizeof(*p->steps)));
    for (size_t s = 0; s < p->n_steps; s++) {
        uint64_t of_epoch = s % shape->epoch_steps;
        if (shape->grid)
            draw_cell(p, &p->steps[s], drps_rng_at(seed, of_epoch), shape->grid,
                      (uint32_t)of_epoch);
        else
            draw_ids(p, &p->steps[s], drps_rng_at(seed, of_epoch), shape->max_step_rows);
        find_blocks(p, &p->steps[s]);
        p->steps[s].changes = of_epoch % 4 != 3; /* every fourth batch is for evaluation */
    }
    finish(p);
    return p;
}

struct plan *plan_from_trace(const char *const *trace, size_t n_steps, size_t blocks)
{
    struct plan *p = must(calloc(1, sizeof(*p)));
    p->rows = (uint32_t)blocks;
    p->row_bytes = 8;
    p->blocks = blocks;
    p->block_first = must(malloc((blocks + 1) * sizeof(*p->block_first)));
    for (uint32_t b = 0; b <= blocks; b++)
        p->block_first[b] = b; /* a row a block */
    p->n_steps = p->epoch_steps = n_steps;
    p->steps = must(calloc(n_steps, sizeof(*p->steps)));
    for (size_t s = 0; s < n_steps; s++) {
        struct plan_step *step = &p->steps[s];
        step->ids = must(malloc((strlen(trace[s]) + 1) * sizeof(*step->ids)));
        for (const char *c = trace[s]; *c; c++)
            step->ids[step->n_ids++] = (uint32_t)(*c - '0');
        find_blocks(p, step);
        step->changes = 1;
    }
    finish(p);
    return p;
}

/* ---- Windows ---- */

static void free_windows(struct plan *p)
{
    for (uint32_t w = 0; p->windows && w < p->source.windows; w++) {
        free(p->windows[w].rows);
        free(p->windows[w].next);
        free(p->windows[w].prev);
    }
    free(p->windows);
    p->windows = NULL;
    for (size_t s = 0; s < p->n_steps; s++) {
        free(p->steps[s].slots);
        p->steps[s].slots = NULL;
    }
}

/* used [K][rows]: 1 where the window uses the row. */
static void collect_rows(struct plan *p, const char *used, uint32_t w)
{
    struct plan_window *win = &p->windows[w];
    const uint32_t k = p->source.windows;
    win->rows = must(malloc((p->rows + 1) * sizeof(uint32_t)));
    win->next = must(malloc((p->rows + 1) * sizeof(uint32_t)));
    win->prev = must(malloc((p->rows + 1) * sizeof(uint32_t)));
    size_t n = 0;
    for (uint32_t r = 0; r < p->rows; r++) {
        if (!used[(size_t)w * p->rows + r]) continue;
        uint32_t next = 1, prev = 1;
        while (!used[(size_t)((w + next) % k) * p->rows + r])
            next++;
        while (!used[(size_t)((w + k - prev) % k) * p->rows + r])
            prev++;
        win->rows[n] = r;
        win->next[n] = next;
        win->prev[n++] = prev;
        win->head.leaving += next > 1;
        win->head.arriving += prev > 1;
    }
    win->head.n = n;
    if (n > p->source.max_rows) p->source.max_rows = n;
}

static void number_slots(struct plan *p, uint32_t w)
{
    const struct plan_window *win = &p->windows[w];
    for (size_t s = 0; s < p->n_steps; s++) {
        struct plan_step *step = &p->steps[s];
        const size_t of_epoch = s % p->epoch_steps;
        if (of_epoch < win->head.first_step || of_epoch >= win->head.first_step + win->head.steps)
            continue;
        step->slots = must(malloc((step->n_ids + 1) * sizeof(uint32_t)));
        for (size_t i = 0, slot = 0; i < step->n_ids; i++) {
            while (win->rows[slot] != step->ids[i])
                slot++;
            step->slots[i] = (uint32_t)slot;
        }
    }
}

static uint64_t rows_of_pair(const struct plan *p, const char *used, uint32_t w)
{
    const uint32_t v = (w + 1) % p->source.windows;
    uint64_t n = 0;
    for (uint32_t r = 0; r < p->rows; r++)
        n += used[(size_t)w * p->rows + r] || used[(size_t)v * p->rows + r];
    return n;
}

void plan_distances(const uint32_t *plain, size_t n, struct drps_use_distances *out)
{
    out->n_far = 0;
    memset(out->marks, 0, DRPS_DISTANCE_WORDS(n) * sizeof(*out->marks));
    for (size_t s = 0; s < n; s++)
        if (plain[s] > 1) {
            out->marks[s / 64] |= UINT64_C(1) << s % 64;
            out->far[out->n_far++] = plain[s];
        }
}

static int read_window(void *ctx, uint32_t w, struct drps_store_window *out, uint32_t *rows,
                       struct drps_use_distances *next, struct drps_use_distances *prev,
                       struct drps_err *err)
{
    const struct plan *p = ctx;
    const struct plan_window *win = &p->windows[w];
    (void)err;
    *out = win->head;
    if (rows) memcpy(rows, win->rows, win->head.n * sizeof(*rows));
    if (next) plan_distances(win->next, win->head.n, next);
    if (prev) plan_distances(win->prev, win->head.n, prev);
    return 0;
}

void plan_cut(struct plan *p, uint64_t seed, size_t max_steps)
{
    free_windows(p);
    p->source = (struct drps_window_source){
        .ctx = p, .epochs = p->n_steps / p->epoch_steps, .read = read_window};
    p->windows = must(calloc(p->epoch_steps, sizeof(*p->windows)));
    for (size_t at = 0; at < p->epoch_steps;) {
        size_t n = 1 + below(seed, at, (uint32_t)max_steps);
        if (n > p->epoch_steps - at) n = p->epoch_steps - at;
        p->windows[p->source.windows++].head =
            (struct drps_store_window){.first_step = at, .steps = n};
        at += n;
    }
    char *used = must(calloc(p->source.windows, p->rows));
    for (uint32_t w = 0; w < p->source.windows; w++)
        for (size_t s = 0; s < p->windows[w].head.steps; s++) {
            const struct plan_step *step = &p->steps[p->windows[w].head.first_step + s];
            for (size_t i = 0; i < step->n_ids; i++)
                used[(size_t)w * p->rows + step->ids[i]] = 1;
        }
    for (uint32_t w = 0; w < p->source.windows; w++) {
        collect_rows(p, used, w);
        number_slots(p, w);
        const uint64_t pair = rows_of_pair(p, used, w);
        if (pair > p->source.working_rows) p->source.working_rows = pair;
    }
    free(used);
}

void plan_free(struct plan *p)
{
    free_windows(p);
    for (size_t s = 0; s < p->n_steps; s++) {
        free(p->steps[s].ids);
        free(p->steps[s].blocks);
        free(p->steps[s].next_use);
    }
    free(p->steps);
    free(p->block_first);
    free(p);
}

uint64_t test_seed(const char *test)
{
    const char *given = getenv("DRPS_TEST_SEED");
    uint64_t seed = given ? strtoull(given, NULL, 0) : drps_mix64(drps_clock_ns()) >> 32;
    print_message("%s: DRPS_TEST_SEED=%llu\n", test, (unsigned long long)seed);
    return seed;
}

char *scratch_new(void)
{
    const char *tmp = getenv("TMPDIR");
    char *dir = drps_path_join(tmp ? tmp : "/tmp", "drps-test.XXXXXX");
    if (!dir || !mkdtemp(dir)) fail_msg("no scratch folder");
    return dir;
}

void scratch_remove(char *dir)
{
    struct drps_err err = DRPS_ERR_INIT;
    if (drps_io_remove_tree(drps_io_os(), dir, &err) < 0) fail_msg("%s", err.text);
    free(dir);
}
