/* What a tool that makes a plan says meanwhile and at the end: how far it is, which columns data
 * have, and what the plan is. */
#ifndef DRPS_TOOLS_INDEX_MAKING_H
#define DRPS_TOOLS_INDEX_MAKING_H

#include "tools/index/columns.h"
#include "tools/index/progress.h"

/* Caller's storage. */
struct drps_making {
    struct index_progress progress; /* progress.io is for drps_index_run() */
    struct index_columns columns;
};

/* Begin: set what `options` say of the command line, messages, progress and interruption, and that
 * a forecast which the text at the end would not have may be made later. Borrows all until
 * drps_making_end(). of_all: reading is told of in bytes, of several machines. */
void drps_making_begin(struct drps_making *m, struct drps_cli *cli,
                       struct drps_index_options *options, int of_all);

/* The run is over: its progress is not shown any more. */
void drps_making_stop(struct drps_making *m);

/* Print what was made, unless --quiet: `json` 1: as JSON, whatever was said of quiet. link_bits: of
 * each machine's link to the network, a second. */
DRPS_MUST_CHECK
int drps_making_report(const struct drps_making *m, const struct drps_index_options *options,
                       const struct drps_index_result *result, uint64_t link_bits, int json,
                       struct drps_err *err);

void drps_making_end(struct drps_making *m); /* after drps_making_stop() */

#endif
