/*
 * Numbers of samples that are known by their place alone, as pixels of an image are: neither an
 * index nor a field for each. With n numbers of all samples:
 *
 *   | 4           numbers of a sample, 1 to DRPS_DENSE_MOST
 *   | 4           levels, k: 1 to 256 where there are no more different numbers, 0 among them; 0
 *   | 4           1: numbers that are 0 are left out, else 0
 *   | 4           zero
 *   | 4 k         the levels, float32, of which the first is 0; padded to 8
 *   | n / 8       where zeros are left out: a bit a number, 1 if it is not 0; padded to 8
 *   | n or 4 n    the numbers that are not left out; padded to 8: with levels a byte each, which
 *                 level it is, else float32
 *
 * Bits are counted from the low ones on. Images of bytes take so a byte a number; those of digits,
 * mostly 0, a third of that.
 */
#ifndef DRPS_INDEX_PLAN_CODEC_DENSE_H
#define DRPS_INDEX_PLAN_CODEC_DENSE_H

#include <stddef.h>
#include <stdint.h>

enum {
    DRPS_DENSE_MOST = 1 << 22, /* numbers of a sample */
    DRPS_DENSE_LEVELS = 256,
    DRPS_DENSE_HEAD = 16,
};

/* Numbers of some samples; arrays are borrowed. No number is -0. */
struct drps_dense {
    uint32_t each;        /* of a sample; 0: there are none */
    uint32_t levels_n;    /* 0: floats */
    const float *floats;  /* [samples][each], or NULL: */
    const uint8_t *bytes; /* [samples][each], each below levels_n */
    const float *levels;  /* [levels_n], the first is 0 */
};

static inline float drps_dense_number(const struct drps_dense *d, size_t i)
{
    return d->floats ? d->floats[i] : d->levels[d->bytes[i]];
}

/* Copy n numbers, from number `first` on. */
void drps_dense_floats(const struct drps_dense *d, size_t first, size_t n, float *out);

/* Find which levels n numbers have: bytes [n], and their levels [DRPS_DENSE_LEVELS] in the order in
 * which they come first. Returns how many; 0: there are more. */
uint32_t drps_dense_levels(const float *numbers, size_t n, uint8_t *bytes, float *levels);

/* No n numbers take more bytes, packed or not. n is below 2^54. */
uint64_t drps_dense_bound(uint64_t n);

/* Returns what n numbers take as they are, with zeros, and how they begin: head and levels. */
size_t drps_dense_plain_bytes(const struct drps_dense *d, size_t n);
enum { DRPS_DENSE_FRONT_MOST = DRPS_DENSE_HEAD + 4 * DRPS_DENSE_LEVELS };
size_t drps_dense_front(const struct drps_dense *d, int left_out, unsigned char *out);

/* Returns what they take without zeros. */
size_t drps_dense_packed_bytes(const struct drps_dense *d, size_t n);

/* Write n numbers, whichever of the two is smaller, to `out`, which has room for it. Returns how
 * many bytes it took. */
size_t drps_dense_pack(const struct drps_dense *d, size_t n, unsigned char *out);

/*
 * Unpack numbers of so many samples from `data` [bytes] to `room`, both 4-byte aligned, as they are
 * with zeros. *used_out and *plain_out are the bytes that they took in both. Returns 1, 0: they are
 * no such numbers, or -1: the room [room_bytes] is too small.
 */
int drps_dense_unpack(const void *data, size_t bytes, uint64_t samples, void *room,
                      size_t room_bytes, size_t *used_out, size_t *plain_out);

/* The same of one sample as floats: pack `each` numbers to `out`, which has drps_dense_bound(each)
 * bytes, with room [each] to work in; unpack `each` of them from `data`, 4-byte aligned, which they
 * fill. Returns 0 where they are not there. */
size_t drps_dense_pack_floats(const float *numbers, uint32_t each, uint8_t *room,
                              unsigned char *out);
int drps_dense_unpack_floats(const void *data, size_t bytes, uint32_t each, float *out);

/* Point *d into numbers that are there with zeros. `checked`: drps_dense_unpack() made them.
 * Returns the bytes that they take; 0: they are no such numbers. */
size_t drps_dense_decode(const void *data, size_t bytes, uint64_t samples, int checked,
                         struct drps_dense *d);

#endif
