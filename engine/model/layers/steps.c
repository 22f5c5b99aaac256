/* Where sequences begin, and their samples in the order of time. */
#include "engine/model/layers/steps.h"

#include <assert.h>
#include <string.h>

int drps_begins(const struct drps_batch *b, size_t s)
{
    const size_t entry = drps_batch_start(b, s);
    if (!s || !b->fields || entry == drps_batch_start(b, s + 1)) return 1;
    return b->fields[entry] == DRPS_SEQUENCE_BEGINS;
}

/* Fills in where each sequence begins. Returns how many they are. */
static size_t begins_of(const struct pass *p, uint32_t begins[DRPS_SEQUENCE_MOST])
{
    size_t n = 0;
    for (size_t s = 0; s < p->n; s++)
        if (!s || drps_begins(p->b, p->first + s)) begins[n++] = (uint32_t)s;
    return n;
}

/* Counts the sequences that have step t, in count[t], and returns the number of steps. */
static size_t count_steps(const struct pass *p, const uint32_t *begins, size_t n, uint32_t *count)
{
    size_t steps = 0;
    memset(count, 0, (DRPS_SEQUENCE_MOST + 1) * sizeof(*count));
    for (size_t i = 0; i < n; i++) {
        const size_t end = i + 1 < n ? begins[i + 1] : p->n, length = end - begins[i];
        for (size_t t = 0; t < length; t++)
            count[t]++;
        if (length > steps) steps = length;
    }
    return steps;
}

/* Gives each sequence its place among those of its steps: by length, then as they come. A sequence
 * of length L comes after those that have step L. */
static void deal(const struct pass *p, const uint32_t *begins, size_t n, const uint32_t *count,
                 struct steps *out)
{
    uint32_t taken[DRPS_SEQUENCE_MOST + 1] = {0}; /* sequences of a length that have their places */
    for (size_t i = 0; i < n; i++) {
        const size_t end = i + 1 < n ? begins[i + 1] : p->n, length = end - begins[i];
        const uint32_t place = count[length] + taken[length]++;
        for (size_t t = 0; t < length; t++)
            out->sample[out->first[t] + place] = begins[i] + (uint32_t)t;
    }
}

void drps_steps_of(const struct pass *p, struct steps *out)
{
    uint32_t begins[DRPS_SEQUENCE_MOST], count[DRPS_SEQUENCE_MOST + 1];
    assert(p->n <= DRPS_SEQUENCE_MOST);
    const size_t n = begins_of(p, begins);
    out->n = count_steps(p, begins, n, count);
    out->first[0] = 0;
    for (size_t t = 0; t < out->n; t++)
        out->first[t + 1] = out->first[t] + count[t];
    deal(p, begins, n, count, out);
}
