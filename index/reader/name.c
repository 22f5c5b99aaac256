/* Makes keys of feature names. XXH3 is inlined: names are short, and a call would cost as much as
 * the hash. */
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/drps_rng.h"
#include "index/reader/drps_reader.h"

void drps_name_hash(uint32_t field, const char *text, size_t bytes, uint64_t seed,
                    uint64_t *key_out, uint32_t *check_out)
{
    /* The field goes into the seed, so that "7" of one column is not "7" of another. */
    XXH128_hash_t h = XXH3_128bits_withSeed(text, bytes, drps_rng_at(seed, field));
    *key_out = h.low64;
    *check_out = (uint32_t)(h.high64 >> 32);
}
