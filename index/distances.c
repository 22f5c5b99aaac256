#include "index/distances.h"

#include <inttypes.h>
#include <string.h>

#include "base/drps_endian.h"
#include "index/drps_batch.h"

enum { COUNT_BYTES = 4, FAR = 2 }; /* FAR: the least distance that is stored as a number */

size_t distances_encode_bound(size_t n)
{
    return COUNT_BYTES + (n + 7) / 8 + drps_list_encode_bound(n);
}

/* Which numbers are far, and these alone: at most n, in the room that `far` has. */
static uint32_t split(const uint32_t *distances, size_t n, unsigned char *marks, uint32_t *far)
{
    uint32_t k = 0;
    memset(marks, 0, (n + 7) / 8);
    for (size_t i = 0; i < n; i++) {
        const unsigned is_far = distances[i] >= FAR;
        marks[i / 8] |= (unsigned char)(is_far << i % 8);
        far[k] = distances[i] - FAR;
        k += is_far;
    }
    return k;
}

size_t distances_encode(uint32_t *distances, size_t n, void *out)
{
    unsigned char *head = out;
    unsigned char *marks = head + COUNT_BYTES;
    drps_put_u32(head, (uint32_t)n);
    const uint32_t far = split(distances, n, marks, distances);
    unsigned char *numbers = marks + (n + 7) / 8;
    return (size_t)(numbers - head) + drps_numbers_encode(distances, far, numbers);
}

static int malformed(size_t n, size_t bytes, struct drps_err *err)
{
    return drps_err_set(err, DRPS_E_CORRUPT, "%zu packed distances do not fit %zu bytes", n, bytes);
}

/* Marks set among the first n; others must not be. */
static size_t count_marks(const unsigned char *marks, size_t n)
{
    size_t sum = 0;
    for (size_t i = 0; i < n / 8; i++)
        sum += (size_t)__builtin_popcount(marks[i]);
    if (n % 8) {
        const unsigned last = marks[n / 8];
        if (last >> n % 8) return SIZE_MAX;
        sum += (size_t)__builtin_popcount(last);
    }
    return sum;
}

static uint32_t largest(const uint32_t *numbers, size_t n)
{
    uint32_t most = 0;
    for (size_t i = 0; i < n; i++)
        most = numbers[i] > most ? numbers[i] : most;
    return most;
}

/* The far numbers lie in front: from the last one on, each goes to its place, which is no earlier.
 * Which place is marked can hardly be predicted: no branch. */
static void spread(const unsigned char *marks, size_t n, size_t far, uint32_t *out)
{
    size_t k = far;
    for (size_t i = n; i-- > 0;) {
        const uint32_t is_far = marks[i / 8] >> i % 8 & 1U;
        k -= is_far;
        out[i] = 1 + (-is_far & (out[k] + 1));
    }
}

int distances_decode(const void *record, size_t bytes, uint32_t most, uint32_t *distances_out,
                     size_t *far_out, size_t *used_out, struct drps_err *err)
{
    const unsigned char *marks = (const unsigned char *)record + COUNT_BYTES;
    const size_t n = bytes >= COUNT_BYTES ? drps_get_u32(record) : 0;
    const size_t head = COUNT_BYTES + (n + 7) / 8;
    size_t used = 0;
    *far_out = *used_out = 0;
    if (bytes < head + COUNT_BYTES) return malformed(n, bytes, err);
    const unsigned char *numbers = marks + (n + 7) / 8;
    const size_t far = drps_list_count(numbers);
    if (far > n || far != count_marks(marks, n)) return malformed(n, bytes, err);
    int rc = drps_numbers_decode(numbers, bytes - head, distances_out, &used, err);
    if (rc < 0) return rc;
    if (far && (most < FAR || largest(distances_out, far) > most - FAR))
        return drps_err_set(err, DRPS_E_CORRUPT, "a distance of more than %" PRIu32, most);
    spread(marks, n, far, distances_out);
    *far_out = far;
    *used_out = head + used;
    return 0;
}
