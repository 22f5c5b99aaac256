/* Float16, IEEE 754 binary16: nearest, ties to even. Shared inside engine/. */
#ifndef DRPS_ENGINE_CLUSTER_FILTERS_HALF_H
#define DRPS_ENGINE_CLUSTER_FILTERS_HALF_H

#include <stdint.h>

/* Values of 65520 and more, by size, become infinite. */
uint16_t drps_half_from(float value);
float drps_half_to(uint16_t half);

#endif
