/*
 * Local steps: a batch's samples step one after the other, each on what those before it left, as an
 * online learner does, on a copy of the batch's whole rows; what the copy changed by is then added
 * to the stored rows. Private to engine/step/.
 */
#ifndef DRPS_ENGINE_STEP_LOCAL_STEPS_H
#define DRPS_ENGINE_STEP_LOCAL_STEPS_H

#include <stddef.h>
#include <stdint.h>

#include "engine/model/drps_model.h"
#include "engine/model/drps_optim.h"
#include "storage/drps_store.h"

struct drps_local {
    char *copy;         /* [rows][row_bytes] what the samples change */
    char *original;     /* [rows][row_bytes] what the copy was made from */
    uint32_t *index;    /* [rows + 1] of one sample: which rows of the copy it touches */
    uint32_t *identity; /* [rows + 1] 0, 1, 2, ... */
    uint16_t *narrow;   /* the same in 16 bits, as far as they go */
    uint32_t *touches;  /* [rows + 1] a sample touches its rows once */
};

/* Room in which one sample's step is computed: dense arrays of rows + 1 rows. */
struct drps_local_room {
    float *params, *grads; /* [rows + 1][dim] */
    void *scratch;
};

/* Fill identity, narrow and touches. */
void drps_local_init(struct drps_local *local, size_t rows);

/* Copy rows [first, last). Several threads, disjoint ranges. */
void drps_local_pull(struct drps_local *local, const struct drps_rows *rows, size_t row_bytes,
                     size_t first, size_t last);

/* All samples in order, on the copy. scores [samples][outputs] are those before each one's step.
 * Returns the sum of losses. */
double drps_local_train(struct drps_local *local, const struct drps_model *model,
                        const struct drps_optim *optim, const struct drps_batch *batch,
                        float *scores, const struct drps_local_room *room);

/* Add the difference to rows [first, last). Several threads, disjoint ranges. */
void drps_local_push(const struct drps_local *local, const struct drps_rows *rows, size_t row_bytes,
                     size_t first, size_t last);

#endif
