/* Which kernels run: the processor is asked once. */
#include "base/kernel/drps_level.h"

#include <stdatomic.h>
#include <string.h>

static const char *const names[DRPS_LEVELS] = {"baseline", "avx2", "avx512"};

/* What was found or set; DRPS_LEVELS: nothing yet. It says nothing of other memory: relaxed. */
static _Atomic int running = DRPS_LEVELS;

const char *drps_level_name(enum drps_level level)
{
    return (unsigned)level < DRPS_LEVELS ? names[level] : "unknown";
}

#ifdef DRPS_HAS_LEVELS

static int has_avx2(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") &&
           __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("popcnt");
}

static int has_avx512(void)
{
    return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vl");
}

int drps_level_is_here(enum drps_level level)
{
    return level == DRPS_LEVEL_BASELINE || (level == DRPS_LEVEL_AVX2 && has_avx2()) ||
           (level == DRPS_LEVEL_AVX512 && has_avx512());
}

#else

int drps_level_is_here(enum drps_level level)
{
    return level == DRPS_LEVEL_BASELINE;
}

#endif

static enum drps_level highest(void)
{
    enum drps_level level = DRPS_LEVEL_BASELINE;
    for (enum drps_level l = level; l < DRPS_LEVELS; l++)
        if (drps_level_is_here(l)) level = l;
    return level;
}

enum drps_level drps_level(void)
{
    int level = atomic_load_explicit(&running, memory_order_relaxed);
    if (level == DRPS_LEVELS) {
        level = (int)highest();
        atomic_store_explicit(&running, level, memory_order_relaxed);
    }
    return (enum drps_level)level;
}

int drps_level_set(const char *name, struct drps_err *err)
{
    enum drps_level level = highest();
    if (name)
        for (level = DRPS_LEVEL_BASELINE; level < DRPS_LEVELS; level++)
            if (strcmp(name, names[level]) == 0) break;
    if (level == DRPS_LEVELS)
        return drps_err_set(err, DRPS_E_CONFIG,
                            "instructions \"%s\" are none of baseline, avx2, avx512", name);
    if (!drps_level_is_here(level))
        return drps_err_set(err, DRPS_E_CONFIG, "instructions %s: %s", name,
                            "this processor or this build of drps does not have them");
    atomic_store_explicit(&running, (int)level, memory_order_relaxed);
    return 0;
}
