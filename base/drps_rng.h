/*
 * Random numbers: counter based, so that value i of a seed needs no state and no order of calls.
 * The mixer is the finaliser of splitmix64 (Steele, Lea, Flood, OOPSLA 2014).
 */
#ifndef DRPS_RNG_H
#define DRPS_RNG_H

#include <stdint.h>

/* Mix 64 bits: one to one, and every bit of the result depends on every bit of x. */
static inline uint64_t drps_mix64(uint64_t x)
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

/* Returns value number i of stream `seed`. */
static inline uint64_t drps_rng_at(uint64_t seed, uint64_t i)
{
    return drps_mix64(drps_mix64(seed) ^ (i * 0xd1342543de82ef95u + 1));
}

/* Returns a float in [0, 1) from 64 random bits. */
static inline float drps_unit_float(uint64_t bits)
{
    return (float)(bits >> 40) * 0x1p-24f;
}

/* Returns a double in [0, 1) from 64 random bits. */
static inline double drps_unit_double(uint64_t bits)
{
    return (double)(bits >> 11) * 0x1p-53;
}

#endif
