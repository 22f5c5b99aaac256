/* drps-stat of a folder of checkpoints: from where training can go on. Private to tools/stat/. */
#ifndef DRPS_TOOLS_STAT_CHECKPOINTS_H
#define DRPS_TOOLS_STAT_CHECKPOINTS_H

#include "base/drps_io.h"
#include "tools/drps_cli.h"

DRPS_MUST_CHECK
int stat_print_checkpoints(struct drps_cli *cli, const struct drps_io *io, const char *path,
                           struct drps_err *err);

#endif
