/*
 * The filters that are tried, from mild to strong, and the search for the strongest that is good
 * enough: pure functions. Shared inside engine/.
 */
#ifndef DRPS_ENGINE_CLUSTER_TARGET_LADDER_H
#define DRPS_ENGINE_CLUSTER_TARGET_LADDER_H

#include "engine/drps_engine.h"

/* Returns how many settings there are, at most 15: a search tries four of them, or three of 7. */
unsigned drps_ladder_rungs(enum drps_sched_mode sync);

/*
 * Set the filters of *o to those of `rung`, from 1; of rung 0 there are none. Of a plan with rows
 * of `dim` values; o->sync says what is allowed: 8 bits of parameters and psi under bsp alone,
 * copies under ssp if `copies`.
 */
void drps_ladder_set(struct drps_train_options *o, unsigned rung, uint32_t dim, int copies);

/* Filters as strong as rung `within` are good enough, those of `beyond` are not, or there are none.
 */
struct drps_ladder_search {
    double plain, most; /* a loss that differs from the plain one by more is not good enough */
    unsigned within, beyond;
};

/* A search among so many rungs for the last whose loss differs from `plain` by at most a share of
 * it. One that is better by more has left the course of the plain run, too: what becomes of it
 * after the pilot cannot be told from the pilot. */
struct drps_ladder_search drps_ladder_begin(double plain, double share, unsigned rungs);

/* Returns the rung to try, or 0 when rung s->within is what was sought: 0, where none will do. */
unsigned drps_ladder_next(const struct drps_ladder_search *s);

/* That one has come to `loss`, where NaN is no good. Returns 1 if it is good enough. */
int drps_ladder_note(struct drps_ladder_search *s, unsigned rung, double loss);

#endif
