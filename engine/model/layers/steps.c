/* Where sequences begin, and their samples in the order of time. */
#include "engine/model/layers/drps_layers_steps.h"

#include <string.h>

#include "index/layers/drps_layers.h"

int drps_begins(const struct drps_batch *b, size_t s)
{
    const size_t entry = drps_batch_start(b, s);
    if (!s || !b->fields || entry == drps_batch_start(b, s + 1)) return 1;
    return b->fields[entry] == DRPS_SEQUENCE_BEGINS;
}

/* Returns the length of the sequence that begins with sample s of [.., end). */
static size_t length_of(const struct drps_batch *b, size_t s, size_t end)
{
    size_t after = s + 1;
    while (after < end && !drps_begins(b, after))
        after++;
    return after - s;
}

/* Fills in where steps begin, from how many sequences have length L: count[L], which becomes how
 * many are longer. */
static void place_steps(size_t longest, size_t sequences, uint32_t *count, uint32_t *first)
{
    uint32_t left = (uint32_t)sequences;
    first[0] = 0;
    for (size_t t = 0; t < longest; t++) {
        first[t + 1] = first[t] + left;
        left -= count[t + 1];
        count[t + 1] = left;
    }
}

void drps_layers_steps_of(const struct drps_batch *b, size_t first, size_t n, uint32_t *room,
                          struct drps_layers_steps *out)
{
    uint32_t *sample = room, *of_steps = room + n, *place = of_steps + n + 1;
    const size_t end = first + n;
    size_t longest = 0, sequences = 0, length;
    memset(place, 0, (n + 1) * sizeof(*place));
    for (size_t s = first; s < end; s += length, sequences++) {
        length = length_of(b, s, end);
        place[length]++;
        if (length > longest) longest = length;
    }
    place_steps(longest, sequences, place, of_steps);
    *out = (struct drps_layers_steps){.n = longest, .first = of_steps, .sample = sample};
    for (size_t s = first; s < end; s += length) {
        length = length_of(b, s, end);
        const uint32_t at = place[length]++; /* after those that are longer, then as they come */
        for (size_t t = 0; t < length; t++)
            sample[of_steps[t] + at] = (uint32_t)(s - first + t);
    }
}
