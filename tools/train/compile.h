/* Makes the plan of data, or finds it made. Private to tools/train/. */
#ifndef DRPS_TOOLS_TRAIN_COMPILE_H
#define DRPS_TOOLS_TRAIN_COMPILE_H

#include "tools/train/options.h"

/*
 * After it the folder o->data.plan is the plan of the data. One that an earlier call has made of
 * the same options and files, whose size and times are what they were, is used again. Any other one
 * that drps-train has made is replaced where o says so and nothing is resumed. Nothing else is ever
 * replaced: -EEXIST. Errors of drps_index_run(), which leave what there was.
 */
DRPS_MUST_CHECK
int train_compile(struct drps_cli *cli, struct train_options *o, struct drps_err *err);

#endif
