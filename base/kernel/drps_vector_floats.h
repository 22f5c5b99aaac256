/*
 * Vectors of floats, and how functions are written for several widths: a header is included once
 * for each, and names its functions with DRPS_WIDTH_NAME(), as C has no templates.
 *
 * DRPS_VECTOR_FLOATS is how many floats a vector of the machine has. Wider ones compile, but gcc
 * keeps them in memory, where a load must wait for several stores: three times the time of
 * factorization machines with 16 factors and twice that of matrix factorization.
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

/* Marks functions that must be inlined, since their callers pass constants. */
#define DRPS_INLINE static inline __attribute__((always_inline))

/* name_8 where width is 8. */
#define DRPS_WIDTH_JOIN(name, width) name##_##width
#define DRPS_WIDTH_NAME(name, width) DRPS_WIDTH_JOIN(name, width)

/* Declares two types of `width` floats: vec, and vec_at for those within an array of floats, which
 * are aligned to 4 bytes only. */
#define DRPS_VECTOR_TYPES(vec, vec_at, width)                                                      \
    typedef float vec __attribute__((vector_size((width) * sizeof(float))));                       \
    typedef float vec_at                                                                           \
        __attribute__((vector_size((width) * sizeof(float)), aligned(4), may_alias))

#endif
