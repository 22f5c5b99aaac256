/*
 * How the learning rate becomes smaller from epoch to epoch. In epoch e = 1, 2, ... of E, with the
 * rate that was asked for in the first:
 *   constant   rate
 *   inverse    rate / e
 *   sqrt       rate / sqrt(e)
 *   cosine     rate (1 + cos(pi (e - 1) / E)) / 2
 * Within an epoch the rate does not change: it is the same for all ranks and threads, and for a run
 * that goes on from a checkpoint.
 */
#ifndef DRPS_ENGINE_MODEL_DECAY_H
#define DRPS_ENGINE_MODEL_DECAY_H

#include <stdint.h>

enum drps_decay {
    DRPS_DECAY_USUAL, /* not asked for: constant */
    DRPS_DECAY_CONSTANT,
    DRPS_DECAY_INVERSE,
    DRPS_DECAY_SQRT,
    DRPS_DECAY_COSINE,
    DRPS_DECAYS
};

const char *drps_decay_name(enum drps_decay decay); /* that of usual is constant's */

/* Returns 1 if there is one of this name. */
int drps_decay_find(const char *name, enum drps_decay *out);

/* Returns the rate of epoch e, from 1, of so many. Epochs after the last have its rate. */
float drps_decay_rate(enum drps_decay decay, float rate, uint64_t e, uint64_t epochs);

#endif
