/*
 * Writing a filtered gradient: a head, which rows are whole, which of the other values are sent,
 * these values, the values of whole rows, and touches. All of the other values are sent, zeros
 * among them, where that is shorter than to say which.
 */
#include "engine/cluster/filters/drps_push_message.h"

#include <math.h>
#include <string.h>

#include "engine/cluster/filters/drps_marks.h"
#include "engine/cluster/filters/drps_values.h"
#include "engine/cluster/filters/push_format.h"
#include "index/plan/codec/drps_list.h"

uint64_t drps_push_bound(const struct drps_push_shape *shape)
{
    const uint64_t rows = shape->rows;
    uint64_t values;
    if (rows > UINT32_MAX || __builtin_mul_overflow(rows, shape->dim, &values) ||
        values > UINT64_MAX / 16)
        return UINT64_MAX;
    return sizeof(struct push_head) + drps_marks_bound(rows) + drps_marks_bound(values) +
           values * sizeof(float) + drps_list_encode_bound(rows);
}

/* Returns how many rows are whole. */
static size_t list_whole(const struct drps_push_shape *shape, const uint8_t *whole, uint32_t *out)
{
    size_t n = 0;
    for (size_t i = 0; i < shape->rows; i++)
        if (whole[i]) out[n++] = (uint32_t)i;
    return n;
}

/* Copy rows that are whole, or those that are not. Returns how many values they have. */
static size_t copy_rows(const struct drps_push_shape *shape, const struct drps_push_gradient *g,
                        int whole, void *out)
{
    const size_t row = shape->dim * sizeof(float);
    char *at = out;
    for (size_t i = 0; i < shape->rows; i++) {
        if (g->whole[i] != whole) continue;
        memcpy(at, g->grads + i * shape->dim, row);
        at += row;
    }
    return (size_t)(at - (char *)out) / sizeof(float);
}

/* Whether zeros in place of what is held back are shorter than marks. */
static int all_are_shorter(uint32_t bits, size_t n, size_t values)
{
    return drps_values_bytes(bits, values) <=
           drps_marks_bitmap_bytes(values) + drps_values_bytes(bits, n);
}

/* Gather what is sent, one after the other or (all) in its place; of 32 bits where a value is no
 * finite number. */
static uint32_t gather(const float *rest, const uint32_t *kept, size_t n, int all, uint32_t bits,
                       float *out)
{
    int finite = 1;
    for (size_t i = 0; i < n; i++) {
        const float value = rest[kept[i]];
        out[all ? kept[i] : i] = value;
        finite &= isfinite(value) != 0;
    }
    return finite ? bits : 32;
}

/* What was sent is not held back. What is no finite number leaves nothing. */
static void subtract(float *rest, const uint32_t *kept, size_t n, int all, const float *sent)
{
    for (size_t i = 0; i < n; i++) {
        const float value = sent[all ? kept[i] : i];
        rest[kept[i]] = isfinite(value) ? rest[kept[i]] - value : 0;
    }
}

/* ---- All values, where zeros are shorter than marks ---- */

static size_t zeros(const float *values, size_t n)
{
    size_t zero = 0;
    for (size_t i = 0; i < n; i++)
        zero += values[i] == 0;
    return zero;
}

static int are_finite(const float *values, size_t n)
{
    uint32_t most = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, values + i, sizeof(bits));
        bits &= 0x7fffffff;
        most = bits > most ? bits : most;
    }
    return most < 0x7f800000;
}

/* 1: nothing but zeros is held back, and all values are shorter than marks and the others. */
static int sends_all(const struct drps_push_choice *choice, uint32_t bits, const float *rest,
                     size_t values, struct drps_push_counts *counts)
{
    if (choice->threshold > 0 || (choice->top > 0 && choice->top < 1)) return 0;
    const size_t zero = zeros(rest, values);
    if (!all_are_shorter(bits, values - zero, values)) return 0;
    counts->values += values;
    counts->zero += zero;
    return 1;
}

/* As gather(), encode and subtract() do with a list of them. Returns the bytes. */
static size_t write_all(uint32_t bits, float *restrict rest, size_t n, float *restrict sent,
                        void *out, uint8_t *bits_out)
{
    *bits_out = (uint8_t)(are_finite(rest, n) ? bits : 32);
    if (n) memcpy(sent, rest, n * sizeof(*sent));
    const size_t bytes = drps_values_encode(*bits_out, sent, n, out);
    if (*bits_out == 32 && n) memset(rest, 0, n * sizeof(*rest));
    for (size_t i = 0; *bits_out < 32 && i < n; i++)
        rest[i] -= sent[i];
    return bytes;
}

/* ---- Messages ---- */

/* Those that are chosen. Returns the bytes of their marks and of themselves, *kept_bytes. */
static size_t write_chosen(const struct drps_push_choice *choice, uint32_t bits,
                           const struct drps_push_gradient *g, size_t values, uint32_t *kept,
                           unsigned char *out, uint8_t *bits_out, size_t *kept_bytes,
                           struct drps_push_counts *counts)
{
    const size_t n = drps_push_choose(choice, g->rest, values, kept, counts);
    const int all = all_are_shorter(bits, n, values);
    const size_t sent = all ? values : n;
    const size_t marks = drps_marks_encode(kept, sent, values, out);
    if (all) memset(g->values, 0, values * sizeof(*g->values));
    *bits_out = (uint8_t)gather(g->rest, kept, n, all, bits, g->values);
    *kept_bytes = drps_values_encode(*bits_out, g->values, sent, out + marks);
    subtract(g->rest, kept, n, all, g->values);
    return marks + *kept_bytes;
}

/* The values of rows that are not whole. Returns as write_chosen() does. */
static size_t write_values(const struct drps_push_choice *choice, uint32_t bits,
                           const struct drps_push_gradient *g, size_t values, uint32_t *kept,
                           unsigned char *out, uint8_t *bits_out, size_t *kept_bytes,
                           struct drps_push_counts *counts)
{
    if (!sends_all(choice, bits, g->rest, values, counts))
        return write_chosen(choice, bits, g, values, kept, out, bits_out, kept_bytes, counts);
    const size_t marks = drps_marks_encode(NULL, values, values, out);
    *kept_bytes = write_all(bits, g->rest, values, g->values, out + marks, bits_out);
    return marks + *kept_bytes;
}

/* Those of rows that are whole; what is held back of them lies behind that of the others, of
 * `before` values. Returns the bytes. */
static size_t write_whole(const struct drps_push_shape *shape, uint32_t bits,
                          const struct drps_push_gradient *g, size_t before, void *out,
                          uint8_t *bits_out)
{
    float *rest = g->rest + before;
    *bits_out = 32;
    if (bits == 32) return copy_rows(shape, g, 1, out) * sizeof(float); /* nothing is */
    const size_t n = copy_rows(shape, g, 1, rest);
    return write_all(bits, rest, n, g->values, out, bits_out);
}

size_t drps_push_encode(const struct drps_push_shape *shape, const struct drps_push_choice *choice,
                        const struct drps_push_bits *bits, const struct drps_push_gradient *g,
                        void *out, struct drps_push_counts *counts)
{
    unsigned char *at = (unsigned char *)out + sizeof(struct push_head);
    uint32_t *whole = g->room, *kept = g->room + shape->rows;
    const size_t whole_n = list_whole(shape, g->whole, whole);
    const size_t values = copy_rows(shape, g, 0, g->rest);
    struct push_head head;
    size_t kept_bytes;
    at += drps_marks_encode(whole, whole_n, shape->rows, at);
    at += write_values(choice, bits->values, g, values, kept, at, &head.bits, &kept_bytes, counts);
    const size_t whole_bytes = write_whole(shape, bits->whole, g, values, at, &head.whole_bits);
    at += whole_bytes;
    if (shape->touches) at += drps_numbers_encode(g->touches, shape->rows, at);
    memcpy(out, &head, sizeof(head));
    counts->rows += shape->rows;
    counts->whole_rows += whole_n;
    counts->whole_bytes += whole_bytes;
    counts->kept_bytes += kept_bytes;
    return (size_t)(at - (unsigned char *)out);
}
