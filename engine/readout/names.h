/* The names of a slice of a list of rows, as many as fit the memory. Private to engine/readout/. */
#ifndef DRPS_ENGINE_READOUT_NAMES_H
#define DRPS_ENGINE_READOUT_NAMES_H

#include <stddef.h>
#include <stdint.h>

#include "engine/publish/drps_modeldir.h"

struct readout_name {
    uint64_t key;
    unsigned field;
    const char *text; /* [bytes] borrowed until the next slice; NULL: the name is the key */
    size_t bytes;
};

struct readout_names {
    struct drps_modeldir *md; /* borrowed, as is the next one */
    const uint32_t *rows;     /* [all] increasing; NULL: 0, 1, 2, ... */
    uint64_t all;             /* rows of the list */
    int drops_samples;        /* names of training samples are not kept */
    uint64_t first;           /* the slice: positions first .. first + n - 1 */
    size_t n, most;           /* `most` fit, if their names do */
    uint64_t *at;             /* own: [most] 1 + where its name is; 0: none yet */
    char *arena;              /* own: names one behind the other, as they were read */
    size_t used, cap;
};

/* Lists `rows` [all]; memory: `bytes` in all. -ENOMEM. */
DRPS_MUST_CHECK
int readout_names_init(struct readout_names *s, struct drps_modeldir *md, const uint32_t *rows,
                       uint64_t all, uint64_t bytes, struct drps_err *err);
void readout_names_destroy(struct readout_names *s);

/* Load the names of the slice that begins at position `first`: s->n says how long it is, at least
 * 1. Reads the dictionary once. */
DRPS_MUST_CHECK
int readout_names_load(struct readout_names *s, uint64_t first, struct drps_err *err);

/* The name at `position` of the slice. Returns 1, or 0: it has none. */
int readout_names_get(const struct readout_names *s, size_t position, struct readout_name *out);

static inline uint32_t readout_names_row(const struct readout_names *s, size_t position)
{
    return s->rows ? s->rows[s->first + position] : (uint32_t)(s->first + position);
}

#endif
