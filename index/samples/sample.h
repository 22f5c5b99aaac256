/*
 * How a sample of the spool lies in its bucket. Private to index/samples/.
 */
#ifndef DRPS_INDEX_SAMPLES_SAMPLE_H
#define DRPS_INDEX_SAMPLES_SAMPLE_H

#include <stddef.h>
#include <stdint.h>

#include "base/drps_endian.h"
#include "index/samples/drps_spool.h"

/* A sample: order u64 | label f32 | n u32 (top bits: what follows: values; a weight that is not 1;
 * fields; numbers) | ids u32[n] | values f32[n] | fields u16[n], to a multiple of four bytes |
 * weight f32 | owner u32. Where numbers follow there is one entry, and in place of n the bytes of
 * the numbers, which lie behind ids and values. */
enum { HEAD_BYTES = 16 };
#define HAS_VALUES 0x80000000u
#define HAS_WEIGHT 0x40000000u
#define HAS_FIELDS 0x20000000u
#define HAS_OWNER 0x10000000u
#define HAS_NUMBERS 0x08000000u
_Static_assert(SPOOL_ENTRIES_MOST == HAS_NUMBERS, "flags lie above the number of entries");

static inline size_t fields_bytes(size_t n)
{
    return (n + 1) / 2 * 2 * sizeof(uint16_t);
}

/* How many entries a sample has, by the last word of its head. */
static inline uint32_t entries_of(uint32_t n)
{
    return n & HAS_NUMBERS ? 1 : n & (SPOOL_ENTRIES_MOST - 1);
}

static inline uint32_t *ids_of(char *head)
{
    return (uint32_t *)(void *)(head + HEAD_BYTES);
}

static inline size_t sample_bytes(const char *head)
{
    const uint32_t n = drps_get_u32(head + 12);
    const size_t low = n & (SPOOL_ENTRIES_MOST - 1), entries = entries_of(n);
    return HEAD_BYTES + entries * (n & HAS_VALUES ? 8 : 4) + (n & HAS_NUMBERS ? low : 0) +
           (n & HAS_FIELDS ? fields_bytes(entries) : 0) + (n & HAS_WEIGHT ? 4 : 0) +
           (n & HAS_OWNER ? 4 : 0);
}

#endif
