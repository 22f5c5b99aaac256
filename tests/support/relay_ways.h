/* The ways in which relay stores take rows from window to window, and the memory that leads to
 * each. */
#ifndef DRPS_TESTS_SUPPORT_RELAY_WAYS_H
#define DRPS_TESTS_SUPPORT_RELAY_WAYS_H

#include "support/store_plan.h"

enum { RELAY_WAYS = 8 };

struct relay_way {
    const char *name;
    struct plan_shape shape;
    size_t wide_row_bytes; /* of rows of which few fit a chunk */
    size_t max_steps;      /* of a window */
    uint32_t waiting;      /* frames beyond two windows', a part of all rows in percent */
    int tight_buffers;     /* 1: as few as do */
    int (*is)(const struct drps_store_stats *);
};

extern const struct relay_way relay_ways[RELAY_WAYS];

/* A plan that is cut into windows; `wide`: of rows of wide_row_bytes. */
struct plan *relay_plan(const struct relay_way *way, int wide, size_t epochs, uint64_t seed);

/* The least buffers with which a store opens that has windows: fewer than are sure to do where a
 * scan borrows all that it needs. */
uint64_t relay_least_buffers(const struct drps_store_config *config);

/* The config with the memory that leads to this way, without dir. */
struct drps_store_config relay_config(const struct plan *p, const struct relay_way *way);

#endif
