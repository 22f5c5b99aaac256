/*
 * Sets of numbers below a bound, as trees of bitmaps: bit b of level 0 is the number b, bit b of
 * level l says whether word b of level l - 1 has bits. So the largest member up to some number is
 * found in a few words, exactly and whatever the bound.
 *
 * Several sets of one bound lie side by side, word beside word. Callers pass how many there are
 * with each call, as a constant, so that one set alone costs nothing more.
 */
#ifndef DRPS_BASE_BIT_TREE_H
#define DRPS_BASE_BIT_TREE_H

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

enum { DRPS_BIT_TREE_LEVELS = 6 };
#define DRPS_BIT_TREE_NONE UINT64_MAX

struct drps_bit_tree {
    uint64_t *map[DRPS_BIT_TREE_LEVELS]; /* own: [words of the level][sets] */
    int levels;
};

static inline void drps_bit_tree_destroy(struct drps_bit_tree *t)
{
    for (int l = 0; l < DRPS_BIT_TREE_LEVELS; l++)
        free(t->map[l]);
    *t = (struct drps_bit_tree){.levels = 0};
}

/* Empty sets of numbers below `bound`, 1 to 2^36. 0 or -ENOMEM, with nothing left to destroy. */
static inline int drps_bit_tree_init(struct drps_bit_tree *t, unsigned sets, uint64_t bound)
{
    *t = (struct drps_bit_tree){.levels = 0};
    for (uint64_t bits = bound;; bits = (bits + 63) / 64) {
        const uint64_t words = (bits + 63) / 64;
        if (t->levels < DRPS_BIT_TREE_LEVELS)
            t->map[t->levels] = calloc(words, sets * sizeof(uint64_t));
        if (t->levels == DRPS_BIT_TREE_LEVELS || !t->map[t->levels]) {
            drps_bit_tree_destroy(t);
            return -ENOMEM;
        }
        t->levels++;
        if (words == 1) return 0;
    }
}

/* Number b becomes a member of one set. */
static inline void drps_bit_tree_add(struct drps_bit_tree *t, unsigned sets, unsigned set,
                                     uint64_t b)
{
    for (int l = 0; l < t->levels; l++, b >>= 6) {
        uint64_t *word = &t->map[l][(b >> 6) * sets + set];
        const uint64_t before = *word;
        *word = before | UINT64_C(1) << (b & 63);
        if (before) return; /* the levels above know already */
    }
}

/* Number b becomes a member of all sets. */
static inline void drps_bit_tree_add_all(struct drps_bit_tree *t, unsigned sets, uint64_t b)
{
    for (int l = 0; l < t->levels; l++, b >>= 6)
        for (unsigned set = 0; set < sets; set++)
            t->map[l][(b >> 6) * sets + set] |= UINT64_C(1) << (b & 63);
}

/* Number b leaves one set, if it is a member. */
static inline void drps_bit_tree_remove(struct drps_bit_tree *t, unsigned sets, unsigned set,
                                        uint64_t b)
{
    for (int l = 0; l < t->levels; l++, b >>= 6)
        if (t->map[l][(b >> 6) * sets + set] &= ~(UINT64_C(1) << (b & 63))) return;
}

/* Returns the largest member of one set at or below b, or DRPS_BIT_TREE_NONE. */
static inline uint64_t drps_bit_tree_at_most(const struct drps_bit_tree *t, unsigned sets,
                                             unsigned set, uint64_t b)
{
    for (int l = 0; l < t->levels; l++) {
        uint64_t word = t->map[l][(b >> 6) * sets + set] & (UINT64_MAX >> (63 - (b & 63)));
        if (word) {
            b = (b >> 6) << 6 | (63u - (unsigned)__builtin_clzll(word));
            while (l-- > 0) {
                word = t->map[l][b * sets + set];
                b = b << 6 | (63u - (unsigned)__builtin_clzll(word));
            }
            return b;
        }
        if (!(b >> 6)) return DRPS_BIT_TREE_NONE;
        b = (b >> 6) - 1; /* continue with the words before this one */
    }
    return DRPS_BIT_TREE_NONE;
}

/* Returns the member of one set, all of whose members lie in the ring [from, from + bound), that
 * comes last in it; bound is a power of two. DRPS_BIT_TREE_NONE for an empty set. */
static inline uint64_t drps_bit_tree_last(const struct drps_bit_tree *t, unsigned sets,
                                          unsigned set, uint64_t from, uint64_t bound)
{
    const uint64_t at = from & (bound - 1);
    const uint64_t found = at ? drps_bit_tree_at_most(t, sets, set, at - 1) : DRPS_BIT_TREE_NONE;
    return found != DRPS_BIT_TREE_NONE ? found : drps_bit_tree_at_most(t, sets, set, bound - 1);
}

#endif
