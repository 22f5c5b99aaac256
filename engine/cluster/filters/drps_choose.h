/*
 * Which values of a push are sent now: the rule of drps_push_options, made into numbers for one
 * message. Shared inside engine/.
 */
#ifndef DRPS_ENGINE_CLUSTER_FILTERS_CHOOSE_H
#define DRPS_ENGINE_CLUSTER_FILTERS_CHOOSE_H

#include "engine/drps_engine.h"

/* Returns phi / (1 + d ln t) for iteration t, from 1. */
double drps_push_threshold(const struct drps_push_options *o, uint64_t t);

struct drps_push_choice {
    double threshold;
    double chance; /* with which a value below the threshold is held back */
    double top;    /* share of the values, the largest, that is sent; 0 or 1: all */
    uint64_t seed; /* of these values alone */
};

/* List which of h [n] are sent, in order, in kept_out [n]; the others are added up by rule in
 * *counts. Zeros are never sent. Returns how many are sent. */
size_t drps_push_choose(const struct drps_push_choice *choice, const float *h, size_t n,
                        uint32_t *kept_out, struct drps_push_counts *counts);

#endif
