#include "index/samples/read/places.h"

uint64_t drps_places_next(struct sample_places *p, uint16_t mark)
{
    const uint64_t step = UINT64_C(1) << DRPS_PLACES_SEQUENCE_BIT;
    if (mark == DRPS_SEQUENCE_BEGINS) p->next = (p->next / step + 1) * step;
    const uint64_t length = p->next % step + 1;
    if (length > p->longest) p->longest = (uint32_t)length;
    return p->next++;
}

uint64_t drps_places_shuffle(uint64_t seed, uint64_t number)
{
    enum { BITS = 64 - DRPS_PLACES_SEQUENCE_BIT, HALF = BITS / 2, ROUNDS = 4 };
    const uint64_t mask = (UINT64_C(1) << BITS) - 1;
    for (unsigned i = 0; i < ROUNDS; i++) {
        const uint64_t key = drps_rng_at(seed, i);
        number = (number + key) & mask;
        number = number * (key | 1) & mask;
        number ^= number >> HALF;
    }
    return number;
}

int drps_places_fault(const struct sample_places *p, const struct drps_samples *s, size_t i,
                      struct drps_err *err)
{
    return drps_err_set(err, DRPS_E_CONFIG,
                        "line %llu of input %llu: there can be 2^39 lines (of docword, documents) "
                        "in an input, and 2^24 inputs",
                        (unsigned long long)s->lines[i],
                        (unsigned long long)(p->inputs + s->input) + 1);
}
