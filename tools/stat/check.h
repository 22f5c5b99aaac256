/* What drps-stat --check says of a plan. Private to tools/stat/. */
#ifndef DRPS_TOOLS_STAT_CHECK_H
#define DRPS_TOOLS_STAT_CHECK_H

#include "index/plan/drps_plan.h"
#include "tools/drps_cli.h"

/* Check the plan's samples, and say what was found: 0, whatever it is. */
DRPS_MUST_CHECK
int stat_check_plan(struct drps_cli *cli, const struct drps_plan *plan, struct drps_err *err);

#endif
