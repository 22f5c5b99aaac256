/* The options that say where numbers to watch are shown: of a command line, not settings. Shared
 * with tools/. */
#ifndef DRPS_API_METRICS_KEYS_H
#define DRPS_API_METRICS_KEYS_H

#include "api/settings/drps_table.h"

/* Beyond the keys of any tool's own options, and those of its reader. */
enum { METRICS_KEY_FILE = DRPS_SETTING_KEY + 0x2000, METRICS_KEY_PORT };

/* Entries of a tool's table; `each` is what it says of several ranks. */
/* clang-format off */
#define METRICS_OPTIONS(group, each)                                                               \
    {"metrics-file", METRICS_KEY_FILE, "FILE", 0,                                                  \
     "Write numbers to watch to FILE each second, as text for Prometheus" each, group},            \
    {"metrics-port", METRICS_KEY_PORT, "[ADDRESS:]PORT", 0,                                        \
     "Serve them at http://ADDRESS:PORT/metrics; without ADDRESS to this machine alone", group}
/* clang-format on */

#endif
