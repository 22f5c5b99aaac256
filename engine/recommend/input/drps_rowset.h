/* A set of a model's rows, a bit each. Shared inside engine/recommend/. */
#ifndef DRPS_ENGINE_RECOMMEND_INPUT_ROWSET_H
#define DRPS_ENGINE_RECOMMEND_INPUT_ROWSET_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct drps_rowset {
    uint64_t *words; /* own: [rows / 64 + 1] */
    uint64_t rows;   /* numbers below this may be in it */
    uint64_t n;      /* are in it */
};

static inline uint64_t drps_rowset_memory(uint64_t rows)
{
    return (rows / 64 + 1) * sizeof(uint64_t);
}

/* An empty set. Returns 1, or 0: memory is gone. */
static inline int drps_rowset_init(struct drps_rowset *s, uint64_t rows)
{
    *s = (struct drps_rowset){.words = calloc(rows / 64 + 1, sizeof(*s->words)), .rows = rows};
    return s->words != NULL;
}

static inline void drps_rowset_destroy(struct drps_rowset *s)
{
    free(s->words);
    s->words = NULL;
}

/* Copy a set to one of the same bound. */
static inline void drps_rowset_copy(struct drps_rowset *to, const struct drps_rowset *from)
{
    memcpy(to->words, from->words, drps_rowset_memory(from->rows));
    to->n = from->n;
}

static inline int drps_rowset_has(const struct drps_rowset *s, uint64_t row)
{
    return row < s->rows && (s->words[row / 64] >> row % 64 & 1);
}

static inline void drps_rowset_add(struct drps_rowset *s, uint64_t row)
{
    s->n += !drps_rowset_has(s, row);
    s->words[row / 64] |= UINT64_C(1) << row % 64;
}

static inline void drps_rowset_remove(struct drps_rowset *s, uint64_t row)
{
    s->n -= (uint64_t)drps_rowset_has(s, row);
    s->words[row / 64] &= ~(UINT64_C(1) << row % 64);
}

/* Returns the first row of the set from `from` on, or s->rows. */
static inline uint64_t drps_rowset_next(const struct drps_rowset *s, uint64_t from)
{
    if (from >= s->rows) return s->rows;
    uint64_t at = from / 64, word = s->words[at] >> from % 64 << from % 64;
    while (!word) {
        if (++at > s->rows / 64) return s->rows;
        word = s->words[at];
    }
    return at * 64 + (uint64_t)__builtin_ctzll(word);
}

#endif
