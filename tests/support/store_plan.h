/* Random plans for store tests, and scratch folders. */
#ifndef DRPS_TESTS_SUPPORT_STORE_PLAN_H
#define DRPS_TESTS_SUPPORT_STORE_PLAN_H

#include <stddef.h>
#include <stdint.h>

#include "storage/drps_store.h"

struct plan_step {
    uint32_t *ids, *blocks;
    uint32_t *slots; /* of ids in the step's window */
    uint64_t *next_use;
    size_t n_ids, n_blocks;
    int changes; /* a training step */
};

/* A window as the relay store is told of it, computed the slow way. */
struct plan_window {
    struct drps_store_window head;
    uint32_t *rows, *next, *prev;
};

struct plan {
    uint64_t seed;
    uint32_t rows;
    size_t row_bytes;
    uint32_t *block_first;
    size_t blocks;
    struct plan_step *steps;
    size_t n_steps, epoch_steps;
    struct plan_window *windows;
    struct drps_window_source source;
    struct drps_step_size most; /* of a step */
    struct drps_timeline timeline;
};

struct plan_shape {
    uint32_t rows, max_block_rows, max_step_rows;
    size_t row_bytes, epoch_steps, epochs;
    uint32_t grid; /* 0, or cells on a side: two tables' rows in grid order, epoch_steps grid^2 */
};

/* The same seed and shape give the same plan. */
struct plan *plan_new(uint64_t seed, const struct plan_shape *shape);
void plan_free(struct plan *p);

/* Cut the epoch into windows of at most max_steps steps each (at random), for the relay store. */
void plan_cut(struct plan *p, uint64_t seed, size_t max_steps);

/* Plain distances [n] as ways, into its arrays. */
void plan_distances(const uint32_t *plain, size_t n, struct drps_use_distances *out);

/* A plan from block traces: step s touches all rows of the blocks in trace[s] ("03" is blocks 0 and
 * 3). */
struct plan *plan_from_trace(const char *const *trace, size_t n_steps, size_t blocks);

/* The seed of a randomised test: DRPS_TEST_SEED or the clock. Printed. */
uint64_t test_seed(const char *test);

/* A new folder below $TMPDIR; scratch_remove() frees the name. */
char *scratch_new(void);
void scratch_remove(char *dir);

#endif
