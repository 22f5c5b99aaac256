/* The options that say where numbers to watch are shown. */
#ifndef DRPS_TOOLS_METRICS_OPTIONS_H
#define DRPS_TOOLS_METRICS_OPTIONS_H

#include "api/settings/drps_metrics_keys.h"
#include "api/settings/drps_values.h"
#include "base/monitor/drps_monitor_out.h"

/* Take an option by its key (drps_metrics_keys.h). Returns 1, or 0: it is none of them. `arg` is
 * kept, and may be cut. */
int metrics_option(struct drps_values *v, struct drps_monitor_options *o, int key, char *arg);

#endif
