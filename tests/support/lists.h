/*
 * Plans that are nothing but row lists, for the passes over rows.rec: windows, block uses and the
 * forecast. Every helper fails the running cmocka test when something is refused.
 */
#ifndef DRPS_TESTS_LISTS_H
#define DRPS_TESTS_LISTS_H

#include <stddef.h>
#include <stdint.h>

#include "base/drps_err.h"
#include "support/scratch.h"

/* `p`, which is not NULL. */
void *must(void *p);
void assert_ok(int rc, const struct drps_err *err);

/* The lists of a plan, and the folder that holds them as rows.rec; lists_free() it. */
struct lists {
    char dir[SCRATCH_PATH_BYTES / 2];
    uint64_t rows, steps, train;
    uint32_t **list; /* [steps] own */
    size_t *n;       /* [steps] own */
};

/* One text like "0 3 17" per step. */
void lists_from_text(struct lists *l, const char *const *text, uint64_t steps, uint64_t train,
                     uint64_t rows);

/*
 * Some rows often, most rows seldom; steps of different sizes, some empty, none made by more than
 * `most` draws. Any number of the steps trains.
 */
void lists_random(struct lists *l, struct random_source *rng, uint64_t rows, uint64_t steps,
                  uint64_t most);

/* Frees the lists and removes their folder with everything in it. */
void lists_free(struct lists *l);

#endif
