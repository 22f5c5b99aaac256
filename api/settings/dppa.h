/* The setting of DPPA. Private to api/settings/. */
#ifndef DRPS_API_SETTINGS_DPPA_H
#define DRPS_API_SETTINGS_DPPA_H

#include "api/settings/drps_values.h"
#include "index/drps_index.h"

/* Take "alpha=2,beta=5,...". */
void drps_dppa_setting(struct drps_values *v, struct drps_dppa_wish *o, const char *text);

#endif
