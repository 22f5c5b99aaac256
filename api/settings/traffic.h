/* Settings of what goes between ranks: bits of a value, filters. Private to api/settings/. */
#ifndef DRPS_API_TRAFFIC_H
#define DRPS_API_TRAFFIC_H

#include "api/settings/drps_values.h"
#include "engine/drps_engine.h"

/* Take one of gradients (push), or one of parameters (pull). Each returns 1, or 0: it is none. */
int settings_push(struct drps_push_options *o, struct drps_values *v, int key, const char *text);
int settings_pull(struct drps_pull_options *o, struct drps_values *v, int key, const char *text);

#endif
