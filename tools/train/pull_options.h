/* The options of drps-train that shorten parameters on their way. Private to tools/train/. */
#ifndef DRPS_TOOLS_TRAIN_PULL_OPTIONS_H
#define DRPS_TOOLS_TRAIN_PULL_OPTIONS_H

#include "engine/drps_engine.h"
#include "tools/drps_cli.h"

/* Take the option if it is one of them. Returns 0, or ARGP_ERR_UNKNOWN. */
int train_pull_option(struct drps_cli *cli, struct drps_pull_options *o, int key, char *arg);

#endif
