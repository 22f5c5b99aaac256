/*
 * Packed use distances (drps_distances.h): which are larger than 1, how many bits each of these
 * takes, and the bits. Decoding spreads them with vector instructions where the processor has
 * them.
 */
#include "index/plan/codec/drps_distances.h"

#include <inttypes.h>
#include <string.h>

#if defined(__BMI2__) && defined(__SSE4_1__)
#include <immintrin.h>
#define FOURS 1
#else
#define FOURS 0
#endif

#include "base/drps_endian.h"
#include "base/kernel/drps_level.h"
#include "index/plan/codec/drps_list.h"

enum {
    COUNT_BYTES = 4,
    FAR = 2, /* the least distance that is stored as a number */
    CODES = 4,
    ELEMENT_WIDTH =
        14,    /* four numbers of at most so many bits are in one load, wherever it begins */
    BEHIND = 8 /* bytes that are written behind the last one */
};

/* What the two bits of a far number say. */
struct code {
    uint32_t base, mask; /* a number is base + its bits */
    unsigned width;
};

static unsigned bits_of(uint32_t v)
{
    return v ? 32 - (unsigned)__builtin_clz(v) : 0;
}

static void make_codes(uint32_t most, struct code codes[CODES])
{
    const unsigned all = bits_of(most > FAR ? most - FAR : 1);
    const unsigned widths[CODES] = {0, (3 * all + 4) / 8 ? (3 * all + 4) / 8 : 1, (6 * all + 4) / 8,
                                    all};
    for (int i = 0; i < CODES; i++)
        codes[i] =
            (struct code){.mask = (uint32_t)((UINT64_C(1) << widths[i]) - 1), .width = widths[i]};
    codes[0].base = most - FAR;
}

static size_t code_bytes(size_t far)
{
    return far / 4 + (far % 4 != 0);
}

static unsigned code_at(const unsigned char *codes, size_t i)
{
    return (unsigned)codes[i / 4] >> i % 4 * 2 & 3;
}

DRPS_KERNEL(size_t, drps_distances_encode_bound, (size_t n), (n))
{
    return 2 * COUNT_BYTES + (n + 7) / 8 + code_bytes(n) + 4 * n + BEHIND;
}

/* ---- Encoding ---- */

/* Mark the numbers that are larger than 1. Returns how many there are. */
static uint32_t mark(const uint32_t *distances, size_t n, unsigned char *marks)
{
    uint32_t far = 0;
    memset(marks, 0, (n + 7) / 8);
    for (size_t i = 0; i < n; i++) {
        const unsigned is_far = distances[i] >= (uint32_t)FAR;
        marks[i / 8] |= (unsigned char)(is_far << i % 8);
        far += is_far;
    }
    return far;
}

static unsigned choose_code(const struct code codes[CODES], uint32_t number)
{
    if (number == codes[0].base) return 0;
    return 1 + (unsigned)(number > codes[1].mask) + (unsigned)(number > codes[2].mask);
}

/* The far numbers; returns the end. */
static unsigned char *write_numbers(const uint32_t *distances, size_t n, uint32_t far,
                                    uint32_t most, unsigned char *out)
{
    unsigned char *at = out + code_bytes(far);
    struct code codes[CODES];
    uint64_t bits = 0;
    unsigned held = 0;
    size_t k = 0;
    make_codes(most, codes);
    memset(out, 0, code_bytes(far));
    for (size_t i = 0; i < n; i++) {
        if (distances[i] < FAR) continue;
        const unsigned c = choose_code(codes, distances[i] - FAR);
        out[k / 4] = (unsigned char)(out[k / 4] | c << k % 4 * 2);
        k++;
        bits |= (uint64_t)((distances[i] - FAR) & codes[c].mask) << held;
        held += codes[c].width; /* below 8 + 32 */
        drps_put_u64(at, bits);
        at += held / 8;
        bits >>= held / 8 * 8;
        held %= 8;
    }
    return at + (held != 0);
}

DRPS_KERNEL(size_t, drps_distances_encode,
            (const uint32_t *distances, size_t n, uint32_t most, void *out),
            (distances, n, most, out))
{
    unsigned char *head = out, *marks = head + COUNT_BYTES, *count = marks + (n + 7) / 8;
    drps_put_u32(head, (uint32_t)n);
    const uint32_t far = mark(distances, n, marks);
    drps_put_u32(count, far);
    return (size_t)(write_numbers(distances, n, far, most, count + COUNT_BYTES) - head);
}

/* ---- Decoding ---- */

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

DRPS_KERNEL(void, drps_distances_table_init, (struct distances_table * t, uint32_t most), (t, most))
{
    struct code codes[CODES];
    make_codes(most, codes);
    memset(t, 0, sizeof(*t));
    t->most = most;
    for (unsigned c = 0; c < CODES; c++)
        t->width[c] = (uint8_t)codes[c].width;
    if (codes[CODES - 1].width > ELEMENT_WIDTH) return;
    for (unsigned byte = 0; byte < 256; byte++)
        for (unsigned k = 0; k < 4; k++) {
            const struct code *c = &codes[byte >> 2 * k & 3];
            t->bits[byte] = (uint8_t)(t->bits[byte] + c->width);
            t->masks[byte] |= (uint64_t)c->mask << 16 * k;
            t->bases[byte] |= (uint64_t)c->base << 16 * k;
        }
}

/* Bytes that the codes of `far` numbers and their bits take; SIZE_MAX: there are fewer. */
static size_t number_bytes(const unsigned char *packed, size_t bytes, size_t far,
                           const struct distances_table *t)
{
    size_t head = code_bytes(far);
    uint64_t bits = 0;
    if (head > bytes || (far % 4 && packed[head - 1] >> far % 4 * 2)) return SIZE_MAX;
    const size_t fours = t->bits[1] ? far / 4 : 0;
    for (size_t i = 0; i < fours; i++)
        bits += t->bits[packed[i]];
    for (size_t i = 4 * fours; i < far; i++)
        bits += t->width[code_at(packed, i)];
    head += (size_t)((bits + 7) / 8);
    return head <= bytes ? head : SIZE_MAX;
}

/* Eight bytes from `at` on, of which those from `end` on are 0. */
static uint64_t load(const unsigned char *at, const unsigned char *end)
{
    uint64_t v = 0;
    if (end - at >= 8) return drps_get_u64(at);
    for (int i = 0; at + i < end; i++)
        v |= (uint64_t)at[i] << 8 * i;
    return v;
}

/* Numbers, and how far reading them has come. */
struct numbers {
    const unsigned char *codes, *bits, *end;
    uint64_t at; /* bit */
    uint32_t largest;
};

#if FOURS

/* Read numbers four at a time while one load of eight bytes has their bits. Returns how many were
 * read. */
static size_t read_fours(struct numbers *r, size_t far, const struct distances_table *t,
                         uint32_t *out)
{
    const __m128i least = _mm_set1_epi32(FAR);
    __m128i largest = _mm_setzero_si128();
    size_t i = 0;
    if (!t->bits[1]) return 0;
    for (; i + 4 <= far && r->end - (r->bits + r->at / 8) >= 8; i += 4) {
        const unsigned char code = r->codes[i / 4];
        const uint64_t bits = drps_get_u64(r->bits + r->at / 8) >> r->at % 8;
        const __m128i v =
            _mm_cvtsi64_si128((long long)(_pdep_u64(bits, t->masks[code]) | t->bases[code]));
        largest = _mm_max_epu16(largest, v);
        _mm_storeu_si128((__m128i *)(void *)(out + i), _mm_add_epi32(_mm_cvtepu16_epi32(v), least));
        r->at += t->bits[code];
    }
    for (uint64_t elements = (uint64_t)_mm_cvtsi128_si64(largest); elements; elements >>= 16)
        r->largest = (elements & UINT16_MAX) > r->largest ? elements & UINT16_MAX : r->largest;
    return i;
}

#else

static size_t read_fours(struct numbers *r, size_t far, const struct distances_table *t,
                         uint32_t *out)
{
    (void)r;
    (void)far;
    (void)t;
    (void)out;
    return 0;
}

#endif

/* The numbers that number_bytes() found to be there. Returns the largest, less FAR. */
static uint32_t read_numbers(const unsigned char *packed, const unsigned char *end, size_t far,
                             const struct distances_table *t, uint32_t *out)
{
    struct numbers r = {.codes = packed, .bits = packed + code_bytes(far), .end = end};
    for (size_t i = read_fours(&r, far, t, out); i < far; i++) {
        const unsigned width = t->width[code_at(packed, i)];
        const uint32_t mask = (uint32_t)((UINT64_C(1) << width) - 1);
        const uint32_t bits = (uint32_t)(load(r.bits + r.at / 8, end) >> r.at % 8) & mask;
        const uint32_t v = width ? bits : t->most - FAR;
        r.largest = v > r.largest ? v : r.largest;
        out[i] = v + FAR;
        r.at += width;
    }
    return r.largest;
}

/*
 * The far numbers lie at the end of the room: in order, each goes to its position, which is no
 * later. Which position is marked can hardly be predicted: no branch. With vectors four at a time:
 * their marks find the shuffle that spreads the next far numbers over a vector.
 */
#if FOURS

/* clang-format off */
#define BEFORE(m, k) (((k) > 0 ? (m) & 1 : 0) + ((k) > 1 ? (m) >> 1 & 1 : 0) + ((k) > 2 ? (m) >> 2 & 1 : 0))
#define BYTE(m, k, j) ((m) >> (k) & 1 ? 4 * BEFORE(m, k) + (j) : 0x80) /* 0x80: a zero byte */
#define NUMBER(m, k) BYTE(m, k, 0), BYTE(m, k, 1), BYTE(m, k, 2), BYTE(m, k, 3)
#define SHUFFLE(m) {NUMBER(m, 0), NUMBER(m, 1), NUMBER(m, 2), NUMBER(m, 3)}
static const _Alignas(16) unsigned char shuffles[16][16] = {
    SHUFFLE(0), SHUFFLE(1), SHUFFLE(2),  SHUFFLE(3),  SHUFFLE(4),  SHUFFLE(5),  SHUFFLE(6),  SHUFFLE(7),
    SHUFFLE(8), SHUFFLE(9), SHUFFLE(10), SHUFFLE(11), SHUFFLE(12), SHUFFLE(13), SHUFFLE(14), SHUFFLE(15)};
/* clang-format on */

/* Spread numbers while there are four far ones to load; *k advances. Returns where it stopped. */
static size_t spread_fours(const unsigned char *marks, size_t n, size_t *k, uint32_t *out)
{
    const __m128i one = _mm_set1_epi32(1);
    size_t i = 0;
    for (; n - i >= 4 && n - *k >= 4; i += 4) {
        const unsigned m = (unsigned)marks[i / 8] >> i % 8 & 15;
        __m128i v = _mm_loadu_si128((const __m128i *)(const void *)(out + *k));
        v = _mm_shuffle_epi8(_mm_sub_epi32(v, one),
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
        out[i] = 1 + (-is_far & (out[k] - 1));
        k += is_far;
    }
    for (; i < n; i++)
        out[i] = 1;
}

/* A record's parts. */
struct record {
    const unsigned char *marks, *numbers, *end;
    size_t n, far;
};

/* Find the parts of a record; sizes must fit, and as many rows be marked as it counts. */
static int parse(const void *record, size_t bytes, const struct distances_table *t,
                 struct record *out, struct drps_err *err)
{
    const size_t n = bytes >= COUNT_BYTES ? drps_get_u32(record) : 0;
    const size_t head = COUNT_BYTES + (n + 7) / 8;
    *out = (struct record){.marks = (const unsigned char *)record + COUNT_BYTES, .n = n};
    if (bytes < head + COUNT_BYTES) return malformed(n, bytes, err);
    out->numbers = out->marks + (n + 7) / 8 + COUNT_BYTES;
    out->far = drps_get_u32(out->numbers - COUNT_BYTES);
    if (out->far > n || out->far != count_marks(out->marks, n)) return malformed(n, bytes, err);
    const size_t used = number_bytes(out->numbers, bytes - head - COUNT_BYTES, out->far, t);
    if (used == SIZE_MAX) return malformed(n, bytes, err);
    out->end = out->numbers + used;
    return 0;
}

static int decode_numbers(const struct record *r, const struct distances_table *t, uint32_t *out,
                          struct drps_err *err)
{
    if (!r->far) return 0;
    const uint32_t largest = read_numbers(r->numbers, r->end, r->far, t, out);
    if (t->most >= FAR && largest <= t->most - FAR) return 0;
    return drps_err_set(err, DRPS_E_CORRUPT, "a distance of more than %" PRIu32, t->most);
}

DRPS_KERNEL(int, drps_distances_decode,
            (const void *record, size_t bytes, const struct distances_table *table,
             uint32_t *distances_out, size_t *far_out, size_t *used_out, struct drps_err *err),
            (record, bytes, table, distances_out, far_out, used_out, err))
{
    struct record r;
    *far_out = *used_out = 0;
    int rc = parse(record, bytes, table, &r, err);
    if (rc == 0) rc = decode_numbers(&r, table, distances_out + (r.n - r.far), err);
    if (rc < 0) return rc;
    spread(r.marks, r.n, r.far, distances_out);
    *far_out = r.far;
    *used_out = (size_t)(r.end - (const unsigned char *)record);
    return 0;
}

/* n marks to bit `at` and on. */
static void append_marks(const unsigned char *marks, size_t n, uint64_t *out, size_t at)
{
    uint64_t *word = out + at / 64;
    const unsigned shift = at % 64;
    if (!shift) *word = 0;
    for (size_t i = 0; i < n; i += 64) {
        const uint64_t m = load(marks + i / 8, marks + (n + 7) / 8);
        *word++ |= m << shift;
        *word = m >> 1 >> (63 - shift);
    }
}

DRPS_KERNEL(int, drps_distances_decode_far,
            (const void *record, size_t bytes, const struct distances_table *table, uint64_t *marks,
             size_t at, uint32_t *numbers_out, size_t *far_out, size_t *used_out,
             struct drps_err *err),
            (record, bytes, table, marks, at, numbers_out, far_out, used_out, err))
{
    struct record r;
    *far_out = *used_out = 0;
    int rc = parse(record, bytes, table, &r, err);
    if (rc == 0) rc = decode_numbers(&r, table, numbers_out, err);
    if (rc < 0) return rc;
    append_marks(r.marks, r.n, marks, at);
    *far_out = r.far;
    *used_out = (size_t)(r.end - (const unsigned char *)record);
    return 0;
}
