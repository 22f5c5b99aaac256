/* How a batch's samples are divided: into chunks that go through both passes together, and among
 * threads. */
#include <assert.h>

#include "engine/model/layers/drps_layers_pass.h"
#include "engine/model/layers/drps_layers_steps.h"

/* Chunks of nets without sequences: small, so that floats stay near, and never more than this. Each
 * chunk reads all parameters: where these are more floats, a chunk may have as many. */
enum { CHUNK = 128, CHUNK_FLOATS = 16 << 20 };

size_t drps_layers_chunk(const struct drps_layers *l)
{
    const uint64_t most = l->floats > CHUNK_FLOATS ? l->floats : CHUNK_FLOATS;
    const uint64_t fit = most / (1 + 2 * (uint64_t)l->width + l->kept);
    if (l->has_sequences) return DRPS_SEQUENCE_MOST;
    return fit < 1 ? 1 : fit < CHUNK ? (size_t)fit : CHUNK;
}

size_t drps_layers_cut(const struct drps_layers *l, const struct drps_batch *b, size_t s)
{
    while (l->has_sequences && s < b->samples && !drps_begins(b, s))
        s++;
    return s;
}

/* Whole sequences, as many as there is room for, or as much as there is room for of one. */
size_t drps_layers_end(const struct drps_layers *l, const struct drps_batch *b, size_t first,
                       size_t last)
{
    const size_t chunk = drps_layers_chunk(l);
    size_t end = last - first < chunk ? last : first + chunk;
    assert(first < last);
    if (!l->has_sequences || end == last) return end;
    for (size_t s = end; s > first; s--)
        if (drps_begins(b, s)) return s;
    return end;
}
