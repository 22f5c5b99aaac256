/* Numbers by place, packed and unpacked: head, levels, bits of what is not 0, numbers. */
#include "index/plan/codec/drps_dense.h"

#include <string.h>

#include "base/drps_endian.h"

enum { TABLE_BITS = 10, TABLE = 1 << TABLE_BITS, LEVELS_AT = 4, LEFT_OUT_AT = 8, ZERO_AT = 12 };

void drps_dense_floats(const struct drps_dense *d, size_t first, size_t n, float *out)
{
    if (d->floats) {
        memcpy(out, d->floats + first, n * sizeof(*out));
        return;
    }
    for (size_t i = 0; i < n; i++)
        out[i] = d->levels[d->bytes[first + i]];
}

/* ---- Levels ---- */

/* Places of levels by their bits; 0: the place is free, as level 0 has none. */
struct places {
    uint8_t level[TABLE];
};

static size_t place_of(const struct places *p, uint32_t bits, const float *levels)
{
    size_t at = bits * UINT32_C(2654435769) >> (32 - TABLE_BITS);
    for (; p->level[at]; at = (at + 1) % TABLE) {
        uint32_t there;
        memcpy(&there, &levels[p->level[at]], sizeof(there));
        if (there == bits) break;
    }
    return at;
}

uint32_t drps_dense_levels(const float *numbers, size_t n, uint8_t *bytes, float *levels)
{
    struct places places = {.level = {0}};
    uint32_t found = 1;
    levels[0] = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, &numbers[i], sizeof(bits));
        bytes[i] = 0;
        if (!bits) continue;
        const size_t at = place_of(&places, bits, levels);
        if (!places.level[at]) {
            if (found == DRPS_DENSE_LEVELS) return 0;
            levels[found] = numbers[i];
            places.level[at] = (uint8_t)found++;
        }
        bytes[i] = places.level[at];
    }
    return found;
}

/* ---- Sizes ---- */

static size_t levels_bytes(uint32_t levels_n)
{
    return drps_align_up(levels_n * sizeof(float), 8);
}

static size_t bits_bytes(size_t n)
{
    return drps_align_up(n / 8 + (n % 8 != 0), 8);
}

static size_t number_bytes(uint32_t levels_n)
{
    return levels_n ? 1 : sizeof(float);
}

uint64_t drps_dense_bound(uint64_t n)
{
    enum { PADDED = 7 };
    return DRPS_DENSE_FRONT_MOST + n / 8 + 1 + PADDED + n * sizeof(float) + PADDED;
}

size_t drps_dense_plain_bytes(const struct drps_dense *d, size_t n)
{
    return DRPS_DENSE_HEAD + levels_bytes(d->levels_n) +
           drps_align_up(n * number_bytes(d->levels_n), 8);
}

static size_t count_numbers(const struct drps_dense *d, size_t n)
{
    size_t count = 0;
    for (size_t i = 0; d->floats && i < n; i++)
        count += d->floats[i] != 0;
    for (size_t i = 0; !d->floats && i < n; i++)
        count += d->bytes[i] != 0;
    return count;
}

size_t drps_dense_packed_bytes(const struct drps_dense *d, size_t n)
{
    return DRPS_DENSE_HEAD + levels_bytes(d->levels_n) + bits_bytes(n) +
           drps_align_up(count_numbers(d, n) * number_bytes(d->levels_n), 8);
}

/* ---- Packing ---- */

size_t drps_dense_front(const struct drps_dense *d, int left_out, unsigned char *out)
{
    const size_t bytes = levels_bytes(d->levels_n);
    drps_put_u32(out, d->each);
    drps_put_u32(out + LEVELS_AT, d->levels_n);
    drps_put_u32(out + LEFT_OUT_AT, (uint32_t)left_out);
    drps_put_u32(out + ZERO_AT, 0);
    memset(out + DRPS_DENSE_HEAD, 0, bytes);
    if (bytes) memcpy(out + DRPS_DENSE_HEAD, d->levels, d->levels_n * sizeof(*d->levels));
    return DRPS_DENSE_HEAD + bytes;
}

static unsigned bits_of_eight(const struct drps_dense *d, size_t first, size_t n)
{
    unsigned bits = 0;
    for (size_t k = 0; k < 8 && first + k < n; k++)
        bits |= (unsigned)(d->floats ? d->floats[first + k] != 0 : d->bytes[first + k] != 0) << k;
    return bits;
}

static size_t copy_number(const struct drps_dense *d, size_t i, unsigned char *to)
{
    if (d->floats)
        memcpy(to, &d->floats[i], sizeof(*d->floats));
    else
        *to = d->bytes[i];
    return number_bytes(d->levels_n);
}

/* Fills up with zeros to 8 bytes from `begin`. */
static unsigned char *fill_up(const unsigned char *begin, unsigned char *at)
{
    const size_t used = (size_t)(at - begin), bytes = drps_align_up(used, 8);
    memset(at, 0, bytes - used);
    return at + (bytes - used);
}

static size_t pack_left_out(const struct drps_dense *d, size_t n, unsigned char *out)
{
    unsigned char *bits = out + drps_dense_front(d, 1, out), *at = bits + bits_bytes(n);
    memset(bits, 0, bits_bytes(n));
    for (size_t i = 0; i < n; i += 8) {
        const unsigned byte = bits_of_eight(d, i, n);
        bits[i / 8] = (unsigned char)byte;
        for (unsigned left = byte; left; left &= left - 1)
            at += copy_number(d, i + (unsigned)__builtin_ctz(left), at);
    }
    return (size_t)(fill_up(out, at) - out);
}

size_t drps_dense_pack(const struct drps_dense *d, size_t n, unsigned char *out)
{
    if (drps_dense_packed_bytes(d, n) < drps_dense_plain_bytes(d, n))
        return pack_left_out(d, n, out);
    unsigned char *at = out + drps_dense_front(d, 0, out);
    const size_t bytes = n * number_bytes(d->levels_n);
    if (bytes) memcpy(at, d->floats ? (const void *)d->floats : d->bytes, bytes);
    return (size_t)(fill_up(out, at + bytes) - out);
}

/* ---- Unpacking ---- */

/* Numbers that are looked at part by part. */
struct packed {
    const unsigned char *data;
    size_t bytes, at;
    uint64_t n; /* numbers in all */
    uint32_t levels_n;
    int left_out;
};

/* Returns the next part, or NULL: it would leave the data. */
static const void *next_part(struct packed *p, uint64_t n, size_t size)
{
    if (n > (p->bytes - p->at) / size) return NULL;
    const size_t bytes = drps_align_up((size_t)n * size, 8);
    if (bytes > p->bytes - p->at) return NULL;
    const unsigned char *part = p->data + p->at;
    p->at += bytes;
    return part;
}

/* Takes head and levels. Returns the levels, or NULL: they are none. */
static const float *begin(struct packed *p, uint64_t samples, uint32_t *each_out)
{
    const unsigned char *head = next_part(p, DRPS_DENSE_HEAD, 1);
    if (!head) return NULL;
    const uint32_t each = drps_get_u32(head), left_out = drps_get_u32(head + LEFT_OUT_AT);
    p->levels_n = drps_get_u32(head + LEVELS_AT);
    p->left_out = left_out == 1;
    if (!each || each > DRPS_DENSE_MOST || p->levels_n > DRPS_DENSE_LEVELS || left_out > 1 ||
        drps_get_u32(head + ZERO_AT) || samples > UINT32_MAX)
        return NULL;
    p->n = samples * each;
    *each_out = each;
    const float *levels = next_part(p, p->levels_n, sizeof(*levels));
    return levels && (!p->levels_n || drps_get_u32(levels) == 0) ? levels : NULL;
}

static int bytes_fit(const uint8_t *bytes, size_t n, uint32_t levels_n)
{
    uint8_t most = 0;
    for (size_t i = 0; i < n; i++)
        most = bytes[i] > most ? bytes[i] : most;
    return !n || most < levels_n;
}

size_t drps_dense_decode(const void *data, size_t bytes, uint64_t samples, int checked,
                         struct drps_dense *d)
{
    struct packed p = {.data = data, .bytes = bytes};
    *d = (struct drps_dense){.each = 0};
    const float *levels = begin(&p, samples, &d->each);
    if (!levels || p.left_out) return 0;
    const void *numbers = next_part(&p, p.n, number_bytes(p.levels_n));
    if (!numbers) return 0;
    d->levels_n = p.levels_n;
    d->levels = p.levels_n ? levels : NULL;
    d->bytes = p.levels_n ? numbers : NULL;
    d->floats = p.levels_n ? NULL : numbers;
    return checked || !p.levels_n || bytes_fit(numbers, (size_t)p.n, p.levels_n) ? p.at : 0;
}

/* Puts what is not left out in its place among zeros. Returns 0: there are other numbers than bits
 * say. */
static int spread_bytes(struct packed *p, const unsigned char *bits, size_t count, uint8_t *out)
{
    const uint8_t *from = next_part(p, count, 1);
    if (!from || !bytes_fit(from, count, p->levels_n)) return 0;
    memset(out, 0, (size_t)p->n);
    for (size_t i = 0; i < p->n; i += 8)
        for (unsigned left = bits[i / 8]; left; left &= left - 1)
            out[i + (unsigned)__builtin_ctz(left)] = *from++;
    return 1;
}

static int spread_floats(struct packed *p, const unsigned char *bits, size_t count, float *out)
{
    const float *from = next_part(p, count, sizeof(*from));
    if (!from) return 0;
    memset(out, 0, (size_t)p->n * sizeof(*out));
    for (size_t i = 0; i < p->n; i += 8)
        for (unsigned left = bits[i / 8]; left; left &= left - 1)
            out[i + (unsigned)__builtin_ctz(left)] = *from++;
    return 1;
}

/* Counts the bits of n numbers. Returns 0 where one behind the last is set. */
static int count_bits(const unsigned char *bits, size_t n, size_t *count_out)
{
    size_t count = 0;
    for (size_t i = 0; i < bits_bytes(n); i++)
        count += (size_t)__builtin_popcount(bits[i]);
    *count_out = count;
    if (n % 8 && bits[n / 8] >> n % 8) return 0;
    for (size_t i = n / 8 + (n % 8 != 0); i < bits_bytes(n); i++)
        if (bits[i]) return 0;
    return 1;
}

static int spread(struct packed *p, void *out)
{
    size_t count;
    const unsigned char *bits = next_part(p, p->n / 8 + (p->n % 8 != 0), 1);
    if (!bits || !count_bits(bits, (size_t)p->n, &count)) return 0;
    return p->levels_n ? spread_bytes(p, bits, count, out) : spread_floats(p, bits, count, out);
}

static int copy_all(struct packed *p, void *out)
{
    const size_t size = number_bytes(p->levels_n);
    const void *from = next_part(p, p->n, size);
    if (!from || (p->levels_n && !bytes_fit(from, (size_t)p->n, p->levels_n))) return 0;
    if (p->n) memcpy(out, from, (size_t)p->n * size);
    return 1;
}

int drps_dense_unpack(const void *data, size_t bytes, uint64_t samples, void *room,
                      size_t room_bytes, size_t *used_out, size_t *plain_out)
{
    struct packed p = {.data = data, .bytes = bytes};
    struct drps_dense d = {.each = 0};
    *used_out = *plain_out = 0;
    d.levels = begin(&p, samples, &d.each);
    if (!d.levels) return 0;
    d.levels_n = p.levels_n;
    const size_t front = DRPS_DENSE_HEAD + levels_bytes(p.levels_n);
    if (room_bytes < front || p.n > (room_bytes - front) / number_bytes(p.levels_n)) return -1;
    const size_t plain = drps_dense_plain_bytes(&d, (size_t)p.n);
    if (plain > room_bytes) return -1;
    unsigned char *at = (unsigned char *)room + drps_dense_front(&d, 0, room);
    if (!(p.left_out ? spread(&p, at) : copy_all(&p, at))) return 0;
    (void)fill_up(room, at + p.n * number_bytes(p.levels_n));
    *used_out = p.at;
    *plain_out = plain;
    return 1;
}

/* ---- One sample ---- */

size_t drps_dense_pack_floats(const float *numbers, uint32_t each, uint8_t *room,
                              unsigned char *out)
{
    float levels[DRPS_DENSE_LEVELS];
    const struct drps_dense floats = {.each = each, .floats = numbers};
    const struct drps_dense few = {.each = each,
                                   .levels_n = drps_dense_levels(numbers, each, room, levels),
                                   .bytes = room,
                                   .levels = levels};
    const int is_few = few.levels_n &&
                       drps_dense_packed_bytes(&few, each) < drps_dense_packed_bytes(&floats, each);
    return drps_dense_pack(is_few ? &few : &floats, each, out);
}

/* Puts the numbers in their places, those that are left out being there already. */
static void put_floats(const struct packed *p, const unsigned char *bits, const float *levels,
                       const void *numbers, float *out)
{
    const uint8_t *bytes = numbers;
    const float *floats = numbers;
    size_t at = 0;
    for (size_t i = 0; i < p->n; i++) {
        if (bits && !(bits[i / 8] >> i % 8 & 1)) continue;
        out[i] = p->levels_n ? levels[bytes[at]] : floats[at];
        at++;
    }
}

int drps_dense_unpack_floats(const void *data, size_t bytes, uint32_t each, float *out)
{
    struct packed p = {.data = data, .bytes = bytes};
    uint32_t found = 0;
    size_t count = each;
    const float *levels = begin(&p, 1, &found);
    if (!levels || found != each) return 0;
    const unsigned char *bits = p.left_out ? next_part(&p, each / 8 + (each % 8 != 0), 1) : NULL;
    if (p.left_out && (!bits || !count_bits(bits, each, &count))) return 0;
    const void *numbers = next_part(&p, count, number_bytes(p.levels_n));
    if (!numbers || p.at != bytes || (p.levels_n && !bytes_fit(numbers, count, p.levels_n)))
        return 0;
    if (p.left_out) memset(out, 0, each * sizeof(*out));
    put_floats(&p, bits, levels, numbers, out);
    return 1;
}
