/* What pilots came to: as JSON, and the texts of it. Shared with tools/. */
#ifndef DRPS_API_PILOTS_JSON_H
#define DRPS_API_PILOTS_JSON_H

#include <jansson.h>

#include "engine/cluster/target/drps_rates.h"
#include "engine/cluster/target/drps_target.h"

/* Returns what pilots are compared by, in words. */
const char *drps_target_measure_name(enum drps_target_measure measure);

/* Write the options of drps-train that set a pilot's filters by hand; "no filters". Returns text.
 */
enum { DRPS_TARGET_TEXT = 256 };
const char *drps_target_settings(const struct drps_target_pilot *p, char text[DRPS_TARGET_TEXT]);

/* Returns the seconds of all pilots. */
double drps_rates_seconds(const struct drps_rates *r);

/* NULL when memory is gone. */
json_t *drps_target_json(const struct drps_target *t);
json_t *drps_rates_json(const struct drps_rates *r);

#endif
