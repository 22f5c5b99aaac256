/*
 * What the links of machines carry in an epoch, and how long that takes at least. A machine has one
 * link to the network, which carries both ways at once: the larger way counts.
 */
#ifndef DRPS_TOOLS_LINK_H
#define DRPS_TOOLS_LINK_H

#include <stdint.h>

#include "index/plan/drps_plan.h"

#define LINK_USUAL_BITS UINT64_C(1000000000) /* a second: where no other speed is given */

/* What one rank's link carries in an epoch. */
struct link_load {
    uint32_t rank;
    uint64_t sent_bytes, received_bytes;
};

/* What the plan says of the part's link: parameters and gradients, or rows that circulate with the
 * state of adagrad. */
struct link_load link_of_part(const struct drps_plan_info *part);

/* *most becomes `load` if that takes longer. */
void link_raise(struct link_load *most, const struct link_load *load);

/* Returns the least seconds that the load takes. */
double link_seconds(const struct link_load *load, uint64_t bits_per_s);

/* Writes "1 Gbit/s" into buf, which is returned. */
enum { LINK_TEXT = 32 };
const char *link_speed_text(uint64_t bits_per_s, char buf[LINK_TEXT]);

#endif
