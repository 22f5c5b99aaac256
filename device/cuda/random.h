/* Random numbers, those of base/drps_rng.h. Private to device/cuda/. */
#ifndef DRPS_DEVICE_CUDA_RANDOM_H
#define DRPS_DEVICE_CUDA_RANDOM_H

#include <stdint.h>

static __device__ inline uint64_t mix64(uint64_t x)
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

static __device__ inline uint64_t rng_at(uint64_t seed, uint64_t i)
{
    return mix64(mix64(seed) ^ (i * 0xd1342543de82ef95u + 1));
}

static __device__ inline float unit_float(uint64_t bits)
{
    return (float)(bits >> 40) * 5.9604644775390625e-8f; /* 2^-24 */
}

#endif
