/* The options that say where numbers to watch are shown. */
#ifndef DRPS_TOOLS_METRICS_OPTIONS_H
#define DRPS_TOOLS_METRICS_OPTIONS_H

#include "base/monitor/drps_monitor_out.h"
#include "tools/drps_cli.h"

/* Beyond the keys of any tool's own options, and those of its reader. */
enum { METRICS_KEY_FILE = DRPS_CLI_KEY + 0x2000, METRICS_KEY_PORT };

/* Entries of a tool's table; `each` is what it says of several ranks. */
/* clang-format off */
#define METRICS_OPTIONS(group, each)                                                               \
    {"metrics-file", METRICS_KEY_FILE, "FILE", 0,                                                  \
     "Write numbers to watch to FILE each second, as text for Prometheus" each, group},            \
    {"metrics-port", METRICS_KEY_PORT, "[ADDRESS:]PORT", 0,                                        \
     "Show them to who asks this port for /metrics; without ADDRESS on this machine alone", group}
/* clang-format on */

/* 0, or ARGP_ERR_UNKNOWN: it is none of them. `arg` is kept, and may be cut. */
int metrics_option(struct drps_cli *cli, struct drps_monitor_options *o, int key, char *arg);

#endif
