/* What drps-train was asked to do. Private to tools/train/. */
#ifndef DRPS_TOOLS_TRAIN_OPTIONS_H
#define DRPS_TOOLS_TRAIN_OPTIONS_H

#include <stdint.h>

#include "api/settings/drps_train_settings.h"
#include "engine/cluster/drps_ranks.h"
#include "tools/drps_cli.h"

/* Texts are borrowed from the command line. */
struct train_options {
    struct drps_train_settings settings;
    struct drps_ranks_options ranks;
    uint32_t local; /* ranks to run on this machine; 0 without --local */
    int has_rank, has_transport;
    int resumes; /* --on-failure resume */
    const char *make_keys;
    const char *emulate;
    const char *plan;
    const char *publish;
    int trains; /* an option of training was given, which does not go with `publish` */
};

/* The tool, whose parse function fills a struct train_options. */
extern const struct drps_cli_tool train_tool;

#endif
