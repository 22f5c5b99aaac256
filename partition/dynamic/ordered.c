/* Treaps (Seidel and Aragon, 1996): a unit's random priority is a function of its number. Nothing
 * recurses, so that no order of keys can exhaust the stack. */
#include "partition/dynamic/ordered.h"

#include <errno.h>
#include <stdlib.h>

#include "base/drps_alloc.h"
#include "base/drps_rng.h"

int drps_ordered_init(struct drps_ordered *o, size_t units, uint32_t machines)
{
    o->key = drps_array_new(units, sizeof(*o->key));
    o->left = drps_array_new(units, sizeof(*o->left));
    o->right = drps_array_new(units, sizeof(*o->right));
    o->root = drps_array_new(machines, sizeof(*o->root));
    if (!o->key || !o->left || !o->right || !o->root) return -ENOMEM;
    for (uint32_t m = 0; m < machines; m++)
        o->root[m] = DRPS_ORDERED_NONE;
    return 0;
}

void drps_ordered_destroy(struct drps_ordered *o)
{
    free(o->key);
    free(o->left);
    free(o->right);
    free(o->root);
}

static int comes_before(const struct drps_ordered *o, uint32_t a, double key, uint32_t unit)
{
    return o->key[a] < key || (o->key[a] == key && a < unit);
}

/* Hangs the units below `top` that come before `unit` at its left, the others at its right. */
static void split_below(struct drps_ordered *o, uint32_t unit, uint32_t top)
{
    uint32_t *left = &o->left[unit], *right = &o->right[unit];
    while (top != DRPS_ORDERED_NONE)
        if (comes_before(o, top, o->key[unit], unit)) {
            *left = top;
            left = &o->right[top];
            top = *left;
        } else {
            *right = top;
            right = &o->left[top];
            top = *right;
        }
    *left = *right = DRPS_ORDERED_NONE;
}

void drps_ordered_insert(struct drps_ordered *o, uint32_t machine, uint32_t unit, double key)
{
    const uint64_t priority = drps_mix64(unit);
    uint32_t *link = &o->root[machine];
    o->key[unit] = key;
    while (*link != DRPS_ORDERED_NONE && drps_mix64(*link) > priority)
        link = comes_before(o, *link, key, unit) ? &o->right[*link] : &o->left[*link];
    split_below(o, unit, *link);
    *link = unit;
}

void drps_ordered_remove(struct drps_ordered *o, uint32_t machine, uint32_t unit)
{
    uint32_t *link = &o->root[machine];
    while (*link != unit)
        link = comes_before(o, *link, o->key[unit], unit) ? &o->right[*link] : &o->left[*link];
    uint32_t a = o->left[unit], b = o->right[unit];
    while (a != DRPS_ORDERED_NONE && b != DRPS_ORDERED_NONE)
        if (drps_mix64(a) > drps_mix64(b)) {
            *link = a;
            link = &o->right[a];
            a = *link;
        } else {
            *link = b;
            link = &o->left[b];
            b = *link;
        }
    *link = a != DRPS_ORDERED_NONE ? a : b;
}

uint32_t drps_ordered_from(const struct drps_ordered *o, uint32_t machine, double key,
                           uint32_t unit)
{
    uint32_t at = o->root[machine], found = DRPS_ORDERED_NONE;
    while (at != DRPS_ORDERED_NONE)
        if (comes_before(o, at, key, unit)) {
            at = o->right[at];
        } else {
            found = at;
            at = o->left[at];
        }
    return found;
}

uint32_t drps_ordered_before(const struct drps_ordered *o, uint32_t machine, double key,
                             uint32_t unit)
{
    uint32_t at = o->root[machine], found = DRPS_ORDERED_NONE;
    while (at != DRPS_ORDERED_NONE)
        if (comes_before(o, at, key, unit)) {
            found = at;
            at = o->right[at];
        } else {
            at = o->left[at];
        }
    return found;
}
