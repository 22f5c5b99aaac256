/* What drps-stat --degrees says of a plan. Private to tools/stat/. */
#ifndef DRPS_TOOLS_STAT_DEGREES_H
#define DRPS_TOOLS_STAT_DEGREES_H

#include "index/plan/drps_plan.h"
#include "tools/drps_cli.h"

/* Count how many samples have each feature, and how many features each sample has, and print it. */
DRPS_MUST_CHECK
int stat_print_degrees(struct drps_cli *cli, const struct drps_plan *plan, struct drps_err *err);

#endif
