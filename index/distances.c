#include "index/distances.h"

#include <inttypes.h>
#include <string.h>

#ifdef __SSSE3__
#include <tmmintrin.h>
#endif

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

/*
 * The far numbers lie at the end of the room: in order, each goes to its place, which is no later.
 * Which place is marked can hardly be predicted: no branch. With SSSE3 four at a time: their marks
 * find the shuffle that spreads the next far numbers over a vector.
 */
#ifdef __SSSE3__

/* clang-format off */
#define BEFORE(m, k) (((k) > 0 ? (m) & 1 : 0) + ((k) > 1 ? (m) >> 1 & 1 : 0) + ((k) > 2 ? (m) >> 2 & 1 : 0))
#define BYTE(m, k, j) ((m) >> (k) & 1 ? 4 * BEFORE(m, k) + (j) : 0x80) /* 0x80: a zero byte */
#define NUMBER(m, k) BYTE(m, k, 0), BYTE(m, k, 1), BYTE(m, k, 2), BYTE(m, k, 3)
#define SHUFFLE(m) {NUMBER(m, 0), NUMBER(m, 1), NUMBER(m, 2), NUMBER(m, 3)}
static const _Alignas(16) unsigned char shuffles[16][16] = {
    SHUFFLE(0), SHUFFLE(1), SHUFFLE(2),  SHUFFLE(3),  SHUFFLE(4),  SHUFFLE(5),  SHUFFLE(6),  SHUFFLE(7),
    SHUFFLE(8), SHUFFLE(9), SHUFFLE(10), SHUFFLE(11), SHUFFLE(12), SHUFFLE(13), SHUFFLE(14), SHUFFLE(15)};
/* clang-format on */

/* As far as there are four far numbers to load; *k advances. Returns where it stopped. */
static size_t spread_fours(const unsigned char *marks, size_t n, size_t *k, uint32_t *out)
{
    const __m128i one = _mm_set1_epi32(1);
    size_t i = 0;
    for (; n - i >= 4 && n - *k >= 4; i += 4) {
        const unsigned m = (unsigned)marks[i / 8] >> i % 8 & 15;
        __m128i v = _mm_loadu_si128((const __m128i *)(const void *)(out + *k));
        v = _mm_shuffle_epi8(_mm_add_epi32(v, one),
                             _mm_load_si128((const __m128i *)(const void *)shuffles[m]));
        _mm_storeu_si128((__m128i *)(void *)(out + i), _mm_add_epi32(v, one));
        *k += (size_t)__builtin_popcount(m);
    }
    return i;
}

#else

static size_t spread_fours(const unsigned char *marks, size_t n, size_t *k, uint32_t *out)
{
    (void)marks;
    (void)n;
    (void)k;
    (void)out;
    return 0;
}

#endif

static void spread(const unsigned char *marks, size_t n, size_t far, uint32_t *out)
{
    size_t k = n - far;
    size_t i = spread_fours(marks, n, &k, out);
    for (; k < n; i++) { /* the last one goes to the last mark, which is below n */
        const uint32_t is_far = (unsigned)marks[i / 8] >> i % 8 & 1;
        out[i] = 1 + (-is_far & (out[k] + 1));
        k += is_far;
    }
    for (; i < n; i++)
        out[i] = 1;
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
    uint32_t *last = distances_out + (n - far);
    int rc = drps_numbers_decode(numbers, bytes - head, last, &used, err);
    if (rc < 0) return rc;
    if (far && (most < FAR || largest(last, far) > most - FAR))
        return drps_err_set(err, DRPS_E_CORRUPT, "a distance of more than %" PRIu32, most);
    spread(marks, n, far, distances_out);
    *far_out = far;
    *used_out = head + used;
    return 0;
}
