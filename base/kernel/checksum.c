/* XXH3 over one run of bytes, over pieces, and over bytes that arrive one after the other. */
#include "base/drps_checksum.h"

#include <stdlib.h>

#include "base/kernel/drps_level.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

DRPS_KERNEL(uint64_t, drps_checksum, (const void *data, size_t n), (data, n))
{
    return XXH3_64bits(data, n);
}

DRPS_KERNEL(uint64_t, drps_checksum_pieces, (const struct drps_piece *pieces, size_t n),
            (pieces, n))
{
    XXH3_state_t state;
    if (n == 1) return XXH3_64bits(pieces[0].data, pieces[0].bytes);
    (void)XXH3_64bits_reset(&state); /* these fail on NULL states only */
    for (size_t i = 0; i < n; i++)
        (void)XXH3_64bits_update(&state, pieces[i].data, pieces[i].bytes);
    return XXH3_64bits_digest(&state);
}

struct drps_summer {
    XXH3_state_t state; /* aligned to 64 bytes */
};

DRPS_KERNEL(void, drps_summer_add, (struct drps_summer * s, const void *data, size_t n),
            (s, data, n))
{
    (void)XXH3_64bits_update(&s->state, data, n);
}

DRPS_KERNEL(uint64_t, drps_summer_value, (const struct drps_summer *s), (s))
{
    return XXH3_64bits_digest(&s->state);
}

#if DRPS_LEVEL_IS_BASELINE
struct drps_summer *drps_summer_new(void)
{
    struct drps_summer *s = aligned_alloc(_Alignof(struct drps_summer), sizeof(*s));
    if (s) (void)XXH3_64bits_reset(&s->state); /* fails on NULL only, as above */
    return s;
}

void drps_summer_free(struct drps_summer *s)
{
    free(s);
}
#endif
