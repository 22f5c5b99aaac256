/* The memory of recent samples, for those who read what they changed. */
#ifndef DRPS_PARTITION_DYNAMIC_RECENT_H
#define DRPS_PARTITION_DYNAMIC_RECENT_H

#include "partition/dynamic/drps_dynamic.h"

struct drps_recent {
    uint32_t width, units, most, count;
    size_t words;      /* of 64 units each */
    uint64_t clock;    /* samples trained so far */
    uint64_t *sample;  /* own [most] */
    uint64_t *trained; /* own [most] the clock when it was trained */
    float *x;          /* own [most][width] */
    uint64_t *changed; /* own [most][words] a bit a unit */
};

#endif
