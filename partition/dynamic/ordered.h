/*
 * Units of each machine in the order of a number, their key: a treap a machine. Each unit is in one
 * of them at most. Of equal keys the smaller unit comes first.
 */
#ifndef DRPS_PARTITION_DYNAMIC_ORDERED_H
#define DRPS_PARTITION_DYNAMIC_ORDERED_H

#include <stddef.h>
#include <stdint.h>

#define DRPS_ORDERED_NONE UINT32_MAX

struct drps_ordered {
    double *key;            /* own [U] */
    uint32_t *left, *right; /* own [U] the unit below, or DRPS_ORDERED_NONE */
    uint32_t *root;         /* own [W] */
};

/* Returns 0 or -ENOMEM; drps_ordered_destroy() it in any case. */
int drps_ordered_init(struct drps_ordered *o, size_t units, uint32_t machines);
void drps_ordered_destroy(struct drps_ordered *o);

void drps_ordered_insert(struct drps_ordered *o, uint32_t machine, uint32_t unit, double key);
void drps_ordered_remove(struct drps_ordered *o, uint32_t machine, uint32_t unit);

/* The first unit that is not before (key, unit), and the last one that is; DRPS_ORDERED_NONE. */
uint32_t drps_ordered_from(const struct drps_ordered *o, uint32_t machine, double key,
                           uint32_t unit);
uint32_t drps_ordered_before(const struct drps_ordered *o, uint32_t machine, double key,
                             uint32_t unit);

#endif
