/* What drps-train prints of a run that has ended. Private to tools/train/. */
#ifndef DRPS_TOOLS_TRAIN_REPORT_H
#define DRPS_TOOLS_TRAIN_REPORT_H

#include "engine/drps_engine.h"
#include "engine/publish/drps_publish.h"
#include "tools/drps_cli.h"

/* Prints what was trained as `model`; with `details` also how the store fared. A failure of
 * standard output shows when it is flushed. */
void train_report_text(const struct drps_train_result *r, const char *model, int details);

/* Prints which model --publish made, as JSON or, unless --quiet was given, as text. */
DRPS_MUST_CHECK
int train_report_published(const struct drps_cli *cli, const struct drps_publish_result *r,
                           const char *model, struct drps_err *err);

#endif
