/* Models of ratings written by hand: users, items and their parameters are random, or as a test
 * wants them. Every function fails the running cmocka test when the system refuses. */
#ifndef DRPS_TESTS_RATINGS_MODEL_H
#define DRPS_TESTS_RATINGS_MODEL_H

#include <stddef.h>
#include <stdint.h>

#include "support/scratch.h"

enum { RATINGS_NAME_BYTES = 32 };

struct ratings_model {
    size_t users, items, factors, d, rows; /* d floats a row; row 0 is the intercept */
    int mixed;      /* rows of users and items mix, in one table; else users come first */
    uint32_t *user; /* own: [users] row of user u, whose name is "u<u>" */
    uint32_t *item; /* own: [items] of "i<i>" */
    float *params;  /* own: [rows][d] */
};

/* Parameters are multiples of 1 / 8 below `levels` / 8 in size: few levels make many equal scores.
 */
void ratings_model_init(struct ratings_model *m, size_t users, size_t items, size_t factors,
                        int mixed, unsigned levels, struct random_source *r);
void ratings_model_free(struct ratings_model *m);

/* Write it as folder `path` by the engine of this name. */
void ratings_model_write(const struct ratings_model *m, const char *path, const char *engine);

#endif
