/* Which worker keeps the samples of an input. */
#include <string.h>

#include "index/samples/read/read.h"

int drps_samples_stay(const struct drps_index_options *o)
{
    return o->workers > 1 && o->samples && strcmp(o->samples, "kept") == 0;
}

int drps_tests_stay(const struct drps_index_options *o)
{
    return o->tests_n % o->workers == 0;
}

uint32_t drps_read_owner_of(const struct drps_index_options *o, int test, size_t input)
{
    uint32_t worker = 0;
    if (o->ranks || !drps_samples_stay(o) || (test && !drps_tests_stay(o))) return 0;
    if (test || !o->inputs_of)
        return (uint32_t)(input / ((test ? o->tests_n : o->inputs_n) / o->workers));
    for (size_t end = o->inputs_of[0]; input >= end; end += o->inputs_of[worker])
        worker++;
    return worker;
}
