/* The head of a filtered gradient, for who writes and reads it. Private to engine/cluster/filters/.
 */
#ifndef DRPS_ENGINE_CLUSTER_FILTERS_PUSH_FORMAT_H
#define DRPS_ENGINE_CLUSTER_FILTERS_PUSH_FORMAT_H

#include <stdint.h>

/* Behind it: which rows are whole, and which values of the others are sent (drps_marks.h). */
struct push_head {
    uint8_t bits;       /* of a value of the other rows */
    uint8_t whole_bits; /* of one of whole rows */
};

#endif
