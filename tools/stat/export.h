/* drps-stat --export: a model's parameters as a file. Private to tools/stat/. */
#ifndef DRPS_TOOLS_STAT_EXPORT_H
#define DRPS_TOOLS_STAT_EXPORT_H

#include "engine/export/drps_export.h"
#include "tools/drps_cli.h"

/* Export the model in the folder `path`, and say what was written. */
DRPS_MUST_CHECK
int stat_export(struct drps_cli *cli, const struct drps_io *io,
                const struct drps_export_options *options, const char *path, struct drps_err *err);

#endif
