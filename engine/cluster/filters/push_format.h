/* The head of a filtered gradient, for who writes and reads it. Private to engine/cluster/filters/.
 */
#ifndef DRPS_ENGINE_CLUSTER_FILTERS_PUSH_FORMAT_H
#define DRPS_ENGINE_CLUSTER_FILTERS_PUSH_FORMAT_H

#include <stddef.h>
#include <stdint.h>

enum push_how { PUSH_ALL, PUSH_BITMAP, PUSH_LIST }; /* how it says which values are sent */

struct push_head {
    uint16_t bits; /* of a value */
    uint16_t how;
    uint32_t kept; /* values, those of whole rows not counted */
};

static inline size_t push_bitmap_bytes(size_t values)
{
    return (values + 7) / 8;
}

#endif
