/*
 * Sequences in the order of time, as recurrent layers take them: step t has sample t of each
 * sequence that is as long. Sequences come by length, the longest first, so that those of step t
 * are the first ones of step t - 1.
 */
#ifndef DRPS_ENGINE_MODEL_LAYERS_STEPS_H
#define DRPS_ENGINE_MODEL_LAYERS_STEPS_H

#include "engine/model/layers/passes.h"

struct steps {
    size_t n;                               /* steps */
    uint32_t first[DRPS_SEQUENCE_MOST + 1]; /* step t has places first[t] .. first[t + 1] - 1 */
    uint32_t sample[DRPS_SEQUENCE_MOST];    /* of a place; counted from the pass's first sample */
};

/* Returns 1 if sample s of a batch begins a sequence. */
int drps_begins(const struct drps_batch *b, size_t s);

/* The steps of a pass's samples, at most DRPS_SEQUENCE_MOST; the first one begins a sequence. */
void drps_steps_of(const struct pass *p, struct steps *out);

static inline size_t drps_step_size(const struct steps *s, size_t t)
{
    return s->first[t + 1] - s->first[t];
}

#endif
