/* drps-stat --verify: a plan, a model or checkpoints are checked, and what was found is told.
 * Private to tools/stat/. */
#ifndef DRPS_TOOLS_STAT_VERIFY_H
#define DRPS_TOOLS_STAT_VERIFY_H

#include "engine/publish/drps_modeldir.h"
#include "index/plan/drps_plan.h"
#include "tools/drps_cli.h"

/* One line, or JSON, of what was read; each problem as an error. A failure if there is one. */
DRPS_MUST_CHECK
int stat_verify_plan(struct drps_cli *cli, const struct drps_plan *plan, struct drps_err *err);
DRPS_MUST_CHECK
int stat_verify_model(struct drps_cli *cli, struct drps_modeldir *md, const char *path,
                      struct drps_err *err);

DRPS_MUST_CHECK
int stat_verify_checkpoints(struct drps_cli *cli, const struct drps_io *io, const char *path,
                            struct drps_err *err);

#endif
