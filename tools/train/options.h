/* What drps-train was asked to do. Private to tools/train/. */
#ifndef DRPS_TOOLS_TRAIN_OPTIONS_H
#define DRPS_TOOLS_TRAIN_OPTIONS_H

#include <stdint.h>

#include "api/settings/drps_train_settings.h"
#include "engine/cluster/drps_ranks.h"
#include "tools/drps_cli.h"
#include "tools/train/data.h"

/* Texts are borrowed from the command line. */
struct train_options {
    struct drps_train_settings settings;
    struct drps_ranks_options ranks;
    uint32_t local; /* ranks to run on this machine; 0 without --local */
    int has_rank, has_transport;
    int resumes; /* --on-failure resume */
    const char *make_keys;
    const char *emulate;
    struct train_data data;
    const char *plan; /* as given, or data.plan */
    const char *publish;
    int trains; /* an option of training was given, which does not go with `publish` */
};

/* The tool, whose parse function fills a struct train_options, and its options. */
struct train_tool {
    struct drps_cli_tool cli;
    struct argp_option options[TRAIN_OPTIONS_MOST];
};
void train_tool_init(struct train_tool *tool); /* borrowed by `cli` from then on */

#endif
