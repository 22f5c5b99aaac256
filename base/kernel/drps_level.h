/*
 * Kernels for several processors in one program. A kernel's file is compiled for each level of
 * instructions (drps_kernels() in cmake/drps.cmake); which of these runs is decided where the
 * program runs. All levels give the same bytes: no multiplication is fused with an addition, and
 * the order of a sum never depends on how wide vectors are.
 */
#ifndef DRPS_KERNEL_LEVEL_H
#define DRPS_KERNEL_LEVEL_H

#include "base/drps_err.h"

enum drps_level {
    DRPS_LEVEL_BASELINE, /* what the compiler may assume: SSE2 on x86-64 */
    DRPS_LEVEL_AVX2,     /* AVX2, BMI, BMI2 and POPCNT */
    DRPS_LEVEL_AVX512,   /* also AVX-512 F, BW, CD, DQ and VL */
    DRPS_LEVELS
};

/* "baseline", "avx2", "avx512" */
const char *drps_level_name(enum drps_level level);

/* 1: this build has kernels of the level, and this processor its instructions. */
int drps_level_is_here(enum drps_level level);

/* Returns the level that runs: the highest that is here, unless another one was set. Any thread. */
enum drps_level drps_level(void);

/* Set the level of the whole process by its name; NULL: the highest that is here. DRPS_E_CONFIG:
 * there is no such level, or it is not here. */
DRPS_MUST_CHECK
int drps_level_set(const char *name, struct drps_err *err);

/* ---- Inside kernels' files ---- */

#ifndef DRPS_LEVEL_HERE /* the level that the file is compiled for */
#define DRPS_LEVEL_HERE baseline
#define DRPS_LEVEL_IS_BASELINE 1
#else
#define DRPS_LEVEL_IS_BASELINE 0
#endif

#define DRPS_LEVEL_JOIN(name, level) name##_##level
#define DRPS_LEVEL_NAME(name, level) DRPS_LEVEL_JOIN(name, level)

/* Declares a function of each level; where it is the baseline's turn, defines the one that calls
 * that of the level that runs. */
#define DRPS_LEVEL_DECLARE(type, name, parameters)                                                 \
    type name##_baseline parameters;                                                               \
    type name##_avx2 parameters;                                                                   \
    type name##_avx512 parameters;
#if DRPS_LEVEL_IS_BASELINE
#define DRPS_LEVEL_CALL(type, name, parameters, arguments)                                         \
    type name parameters                                                                           \
    {                                                                                              \
        switch (drps_level()) {                                                                    \
        case DRPS_LEVEL_AVX512:                                                                    \
            return name##_avx512 arguments;                                                        \
        case DRPS_LEVEL_AVX2:                                                                      \
            return name##_avx2 arguments;                                                          \
        default:                                                                                   \
            return name##_baseline arguments;                                                      \
        }                                                                                          \
    }
#else
#define DRPS_LEVEL_CALL(type, name, parameters, arguments)
#endif

/*
 * The head of a function that a kernel's file defines for other files; its body follows.
 *
 *   DRPS_KERNEL(void, drps_linear_forward, (const struct drps_batch *b, size_t dim), (b, dim))
 *   {
 *       ...
 *   }
 */
#ifdef DRPS_HAS_LEVELS
#define DRPS_KERNEL(type, name, parameters, arguments)                                             \
    DRPS_LEVEL_DECLARE(type, name, parameters)                                                     \
    DRPS_LEVEL_CALL(type, name, parameters, arguments)                                             \
    type DRPS_LEVEL_NAME(name, DRPS_LEVEL_HERE) parameters
#else
#define DRPS_KERNEL(type, name, parameters, arguments) type name parameters
#endif

#endif
