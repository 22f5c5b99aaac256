/*
 * Looks at subsets depth first (subset.h). f is monotone, so that one more sample changes the gain
 * by -beta at best: what cannot reach the best gain yet with all samples that may still come is
 * left out, which leaves the result as it is.
 */
#include "partition/dppa/subset.h"

#include <math.h>
#include <string.h>

static int is_fresh(const struct subset_search *s, uint32_t f)
{
    return !(s->touched[f / 64] >> (f % 64) & 1) && !s->marked[f];
}

/* Features that neither the part has nor a chosen sample. */
static uint64_t fresh_of(const struct subset_search *s, uint32_t sample)
{
    uint64_t n = 0;
    for (size_t i = s->set->starts[sample]; i < s->set->starts[sample + 1]; i++)
        n += (uint64_t)is_fresh(s, s->set->features[i]);
    return n;
}

static void mark(struct subset_search *s, uint32_t sample, uint32_t by)
{
    for (size_t i = s->set->starts[sample]; i < s->set->starts[sample + 1]; i++)
        s->marked[s->set->features[i]] += by; /* by may be -1, modulo 2^32 */
}

static void keep(struct subset_search *s, uint32_t n, uint64_t fresh, double gain)
{
    memcpy(s->found, s->chosen, n * sizeof(*s->found));
    s->found_n = n;
    s->found_fresh = fresh;
    s->found_gain = gain;
}

/* Extend the first `depth` chosen by samples from `from` on. At most SUBSET_MOST calls deep. */
static void extend(struct subset_search *s, uint32_t depth, size_t from, uint64_t fresh)
{
    for (size_t k = from; k < s->n; k++) {
        const uint32_t sample = s->drawn[k];
        const uint64_t now = fresh + fresh_of(s, sample);
        const double gain = (double)now - s->beta * (depth + 1);
        const uint32_t more = s->alpha - depth - 1;
        s->chosen[depth] = sample;
        if (gain < s->found_gain) keep(s, depth + 1, now, gain);
        if (!more || gain - s->beta * more >= s->found_gain) continue;
        mark(s, sample, 1);
        extend(s, depth + 1, k + 1, now);
        mark(s, sample, UINT32_MAX);
    }
}

void drps_subset_find(struct subset_search *s)
{
    keep(s, 0, 0, 0);
    extend(s, 0, 0, 0);
}

uint32_t drps_subset_cheapest(const struct subset_search *s, uint64_t *fresh_out)
{
    uint32_t best = s->drawn[0];
    *fresh_out = UINT64_MAX;
    for (size_t k = 0; k < s->n; k++) {
        const uint64_t fresh = fresh_of(s, s->drawn[k]);
        if (fresh >= *fresh_out) continue;
        *fresh_out = fresh;
        best = s->drawn[k];
    }
    return best;
}

uint64_t drps_subset_count(uint64_t n, uint32_t alpha, uint64_t most)
{
    double subsets = 1, sum = 0; /* of i samples; in all */
    for (uint32_t i = 1; i <= alpha && i <= n; i++) {
        subsets *= (double)(n - i + 1) / i;
        sum += subsets;
        if (!(sum < (double)most)) return most;
    }
    return (uint64_t)sum;
}
