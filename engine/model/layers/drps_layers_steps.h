/*
 * Sequences in the order of time, as recurrent layers take them: step t has sample t of each
 * sequence that is as long. Sequences come by length, the longest first, so that those of step t
 * are the first ones of step t - 1. Shared inside engine/.
 */
#ifndef DRPS_ENGINE_MODEL_LAYERS_STEPS_H
#define DRPS_ENGINE_MODEL_LAYERS_STEPS_H

#include <stddef.h>
#include <stdint.h>

#include "index/plan/drps_batch.h"

struct drps_layers_steps {
    size_t n;               /* steps */
    const uint32_t *first;  /* [n + 1] step t has places first[t] .. first[t + 1] - 1 */
    const uint32_t *sample; /* [samples] of a place */
};

/* Returns 1 if sample s of a batch begins a sequence. */
int drps_begins(const struct drps_batch *b, size_t s);

/* The steps of samples [first, first + n), which they are counted from; the first one begins a
 * sequence. They lie in `room`. */
#define DRPS_LAYERS_STEPS_WORDS(n) (3 * (n) + 2)
void drps_layers_steps_of(const struct drps_batch *b, size_t first, size_t n, uint32_t *room,
                          struct drps_layers_steps *out);

static inline size_t drps_layers_step_size(const struct drps_layers_steps *s, size_t t)
{
    return s->first[t + 1] - s->first[t];
}

#endif
