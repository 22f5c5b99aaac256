/*
 * How many floats a vector of the machine has. Wider ones compile, but gcc keeps them in memory,
 * where a load must wait for several stores: three times the time of factorization machines with
 * 16 factors and twice that of matrix factorization.
 */
#ifndef DRPS_VECTOR_FLOATS_H
#define DRPS_VECTOR_FLOATS_H

#if defined(__AVX512F__)
#define DRPS_VECTOR_FLOATS 16
#elif defined(__AVX__)
#define DRPS_VECTOR_FLOATS 8
#else
#define DRPS_VECTOR_FLOATS 4
#endif

#endif
