/* The learning rate that drps-train chooses itself: --auto. Private to tools/train/. */
#ifndef DRPS_TOOLS_TRAIN_RATES_H
#define DRPS_TOOLS_TRAIN_RATES_H

#include "api/report/drps_pilots_json.h"
#include "tools/train/target.h"

/* Run the pilots, print what each came to, and give the options the rate that was chosen. */
DRPS_MUST_CHECK
int train_rates_find(const struct train_target *job, struct drps_rates *out, struct drps_err *err);

#endif
