/* What drps-index says of a plan that it has made. Private to tools/index/. */
#ifndef DRPS_TOOLS_INDEX_REPORT_H
#define DRPS_TOOLS_INDEX_REPORT_H

#include "api/report/drps_index_report.h"

/* Samples, features, the model's size, and the memory that training takes. With `details`, or where
 * rows do not fit the memory given, also blocks, windows and the forecast. */
DRPS_MUST_CHECK
int index_report_text(const struct drps_index_report *report, int details, struct drps_err *err);

/* Where several machines made the plan, prints what a rank above 0 says at its end. Returns 0. */
int index_report_rank(const struct drps_index_report *report, uint32_t rank);

#endif
