/*
 * Little-endian codecs for file headers. Bulk arrays of 16, 32 and 64-bit values are stored
 * little-endian too and used in place, so drps builds on little-endian machines only.
 */
#ifndef DRPS_ENDIAN_H
#define DRPS_ENDIAN_H

#include <stdint.h>
#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "drps files are used in place: little-endian only");

static inline void drps_put_u16(void *at, uint16_t v)
{
    memcpy(at, &v, sizeof(v));
}

static inline void drps_put_u32(void *at, uint32_t v)
{
    memcpy(at, &v, sizeof(v));
}

static inline void drps_put_u64(void *at, uint64_t v)
{
    memcpy(at, &v, sizeof(v));
}

static inline uint16_t drps_get_u16(const void *at)
{
    uint16_t v;
    memcpy(&v, at, sizeof(v));
    return v;
}

static inline uint32_t drps_get_u32(const void *at)
{
    uint32_t v;
    memcpy(&v, at, sizeof(v));
    return v;
}

static inline uint64_t drps_get_u64(const void *at)
{
    uint64_t v;
    memcpy(&v, at, sizeof(v));
    return v;
}

/* Big-endian, so that byte order equals number order in key-value engines. */
static inline void drps_put_be32(void *at, uint32_t v)
{
    v = __builtin_bswap32(v);
    memcpy(at, &v, sizeof(v));
}

static inline uint32_t drps_get_be32(const void *at)
{
    uint32_t v;
    memcpy(&v, at, sizeof(v));
    return __builtin_bswap32(v);
}

/* Returns the least multiple of `unit` that is n or more. */
static inline size_t drps_align_up(size_t n, size_t unit)
{
    return (n + unit - 1) / unit * unit;
}

#endif
