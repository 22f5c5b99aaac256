/* What drps-index says of a plan that it has made. Private to tools/index/. */
#ifndef DRPS_TOOLS_INDEX_REPORT_H
#define DRPS_TOOLS_INDEX_REPORT_H

#include "engine/drps_engine.h"
#include "index/drps_index.h"
#include "tools/drps_cli.h"
#include "tools/index/columns.h"
#include "tools/index/network.h"

/* What there is to tell. Everything is borrowed. */
struct index_report {
    const struct drps_index_result *result;
    const struct drps_index_options *options;
    const struct index_columns *columns;
    struct drps_train_needs needs; /* of drps-train's --memory, the most of all ranks; its own
                                      --memory is that of this run */
    uint64_t no_rows_bytes;        /* the least that a rank without rows takes, the most of
                                      these; 0: all have rows */
    struct index_network network;  /* of several workers */
};

/* Fill in report->needs and report->network, but for its link_bits, from the plan that was made.
 * Errors as drps_train_needs(). */
DRPS_MUST_CHECK
int index_report_needs(struct index_report *report, struct drps_err *err);

/* The forecasts of disk traffic, a new list; NULL: no memory. */
json_t *index_report_forecasts(const struct drps_index_result *r);

/* Samples, features, the model's size, and the memory that training takes. With `details`, or where
 * rows do not fit the memory given, also blocks, windows and the forecast. */
DRPS_MUST_CHECK
int index_report_text(const struct index_report *report, int details, struct drps_err *err);

DRPS_MUST_CHECK
int index_report_json(const struct index_report *report, struct drps_err *err);

/* The values that an epoch moves, to those of dealt samples and hashed rows; some were counted. */
double index_report_moved(const struct drps_index_result *r);

/* The busiest link to the average one; some rows move. */
double index_report_busiest(const struct drps_index_result *r);

/* The share of the first epoch's parameters between ranks that nobody has trained; some moved. */
double index_report_fresh(const struct drps_index_result *r);

/* What an epoch's training rounds move where rows are handed on, as a share of what they would;
 * some are. */
double index_report_handed_on(const struct drps_plan_info *i);

/* Bytes of a row on its way between ranks: its parameters, or all of it where rows circulate, with
 * the state of adagrad. */
uint64_t index_report_link_bytes(const struct drps_plan_info *i);

/* Rows that an epoch hands on where rows circulate; 0: they do not. */
uint64_t index_report_handed_rows(const struct drps_plan_info *i);

#endif
