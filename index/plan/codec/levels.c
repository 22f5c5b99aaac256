/* Values are found in a list of at most 16, which most often has two. */
#include "index/plan/codec/drps_levels.h"

#include <stdint.h>
#include <string.h>

#include "base/drps_endian.h"

enum { HEAD = 8, BITS_MOST = 4 };

static unsigned bits_for(size_t levels)
{
    return levels <= 2 ? 1 : levels <= 4 ? 2 : BITS_MOST;
}

/* Where the numbers begin. */
static size_t front(size_t levels)
{
    return HEAD + drps_align_up(levels * sizeof(float), 8);
}

size_t drps_levels_bound(size_t n)
{
    return front(DRPS_LEVELS_MOST) + n / 2 + 1;
}

/* Returns how many different values there are, by their bits, in *list; 0: more than 16. */
static size_t find_levels(const uint32_t *values, size_t n, uint32_t list[DRPS_LEVELS_MOST])
{
    size_t levels = 0;
    for (size_t i = 0; i < n; i++) {
        size_t k = 0;
        while (k < levels && list[k] != values[i])
            k++;
        if (k < levels) continue;
        if (levels == DRPS_LEVELS_MOST) return 0;
        list[levels++] = values[i];
    }
    return levels;
}

static void put_numbers(const uint32_t *values, size_t n, const uint32_t *list, unsigned bits,
                        unsigned char *out)
{
    memset(out, 0, (n * bits + 7) / 8);
    for (size_t i = 0; i < n; i++) {
        unsigned k = 0;
        while (list[k] != values[i])
            k++;
        out[i * bits / 8] |= (unsigned char)(k << i * bits % 8);
    }
}

size_t drps_levels_encode(const float *values, size_t n, unsigned char *out)
{
    const uint32_t *words = (const uint32_t *)(const void *)values;
    uint32_t list[DRPS_LEVELS_MOST];
    const size_t levels = find_levels(words, n, list);
    const unsigned bits = bits_for(levels);
    if (!levels) return 0;
    drps_put_u32(out, (uint32_t)levels);
    drps_put_u32(out + 4, bits);
    memset(out + HEAD, 0, front(levels) - HEAD);
    for (size_t k = 0; k < levels; k++)
        drps_put_u32(out + HEAD + 4 * k, list[k]);
    put_numbers(words, n, list, bits, out + front(levels));
    return front(levels) + (n * bits + 7) / 8;
}

/* Returns 0 where a number is none of the list's. */
static int get_values(const unsigned char *numbers, size_t n, const float *list, size_t levels,
                      unsigned bits, float *values)
{
    const unsigned mask = (1u << bits) - 1, each = 8 / bits;
    unsigned most = 0;
    for (size_t i = 0; i < n; i += each) {
        unsigned byte = numbers[i / each];
        for (size_t k = i; k < i + each && k < n; k++, byte >>= bits) {
            const unsigned number = byte & mask;
            most = number > most ? number : most;
            values[k] = list[number];
        }
        if (byte) return 0; /* behind the last one */
    }
    return most < levels;
}

size_t drps_levels_decode(const void *data, size_t bytes, size_t n, float *values)
{
    const unsigned char *from = data;
    float list[DRPS_LEVELS_MOST] = {0};
    if (bytes < HEAD || !n || n > SIZE_MAX / BITS_MOST - 7) return 0;
    const size_t levels = drps_get_u32(from);
    if (!levels || levels > DRPS_LEVELS_MOST) return 0;
    const unsigned bits = bits_for(levels);
    const size_t used = front(levels) + (n * bits + 7) / 8;
    if (drps_get_u32(from + 4) != bits || used > bytes) return 0;
    memcpy(list, from + HEAD, levels * sizeof(*list));
    if (levels % 2 && drps_get_u32(from + front(levels) - 4)) return 0;
    if (!values) return used;
    return get_values(from + front(levels), n, list, levels, bits, values) ? used : 0;
}
