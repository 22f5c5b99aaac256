/*
 * What the links of machines carry in an epoch, and how long that takes at least. A machine has one
 * link to the network, which carries both ways at once: the larger way counts. Shared with tools/.
 */
#ifndef DRPS_API_LINK_H
#define DRPS_API_LINK_H

#include <stdint.h>

#include "index/plan/drps_plan.h"

#define DRPS_LINK_USUAL_BITS UINT64_C(1000000000) /* a second: where no other speed is given */

/* What one rank's link carries in an epoch. */
struct drps_link_load {
    uint32_t rank;
    uint64_t sent_bytes, received_bytes;
};

/* What the plan says of the part's link: parameters and gradients, or rows that circulate with the
 * state of adagrad. */
struct drps_link_load drps_link_of_part(const struct drps_plan_info *part);

/* *most becomes `load` if that takes longer. */
void drps_link_raise(struct drps_link_load *most, const struct drps_link_load *load);

/* Returns the least seconds that the load takes. */
double drps_link_seconds(const struct drps_link_load *load, uint64_t bits_per_s);

/* Writes "1 Gbit/s" into buf, which is returned. */
enum { DRPS_LINK_TEXT = 32 };
const char *drps_link_speed_text(uint64_t bits_per_s, char buf[DRPS_LINK_TEXT]);

#endif
