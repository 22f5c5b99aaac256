/* What there is to tell of a plan that was made: as JSON, and the numbers of it that need
 * computing. Shared with tools/. */
#ifndef DRPS_API_INDEX_REPORT_H
#define DRPS_API_INDEX_REPORT_H

#include <jansson.h>

#include "api/report/drps_link.h"
#include "engine/drps_engine.h"
#include "index/drps_index.h"

/* ---- The network of several ranks ---- */

/* Nanoseconds that one thread takes for an entry of a sample, for each of the entry's floats, and
 * for each float of a row that a step changes. They were fitted to epochs of click logs and
 * ratings; a processor may be twice as fast, or half. */
#define DRPS_INDEX_ENTRY_NS 1.2
#define DRPS_INDEX_FLOAT_NS 0.23
#define DRPS_INDEX_STEP_NS 0.85
/* Nanoseconds that a round takes beside its bytes and its computing: until messages have gone there
 * and back. */
#define DRPS_INDEX_ROUND_NS 300000

/* What it depends on. */
struct drps_index_network {
    const struct drps_plan_info *info; /* of the whole */
    struct drps_link_load busiest;     /* the link that takes longest */
    uint64_t link_bits;                /* of each machine's link, a second */
    uint64_t row_uses; /* sum over an epoch's steps of their rows, on all machines */
    uint64_t rounds;   /* of an epoch; 0: rows circulate */
};

/* Returns about the seconds in which one thread computes an epoch whose rows are all in memory. It
 * is an estimate: processors differ by a factor of two. */
double drps_index_thread_seconds(const struct drps_index_network *network);

/* Returns about the seconds in which the ranks of an epoch's rounds wait for messages to go there
 * and back, beside what their bytes take. */
double drps_index_messages_seconds(const struct drps_index_network *network);

/* ---- The report ---- */

/* Returns what a kind of columns is called. */
const char *drps_column_kind_name(enum drps_column_kind kind);

/* The columns of csv data and JSON lines, a new list; NULL: no memory. */
json_t *drps_columns_json(const struct drps_reader_column *columns, size_t n);

/* What there is to tell. Everything is borrowed. */
struct drps_index_report {
    const struct drps_index_result *result;
    const struct drps_index_options *options;
    int has_columns;                   /* the data have some: */
    const json_t *columns;             /* drps_columns_json() */
    struct drps_train_needs needs;     /* of drps-train's --memory, the most of all ranks; its own
                                          --memory is that of this run */
    uint64_t no_rows_bytes;            /* the least that a rank without rows takes, the most of
                                          these; 0: all have rows */
    struct drps_index_network network; /* of several workers */
};

/* Fill in report->needs and report->network, but for its link_bits, from the plan that was made; of
 * several machines from the folders that are on this one's disk.
 * Errors as drps_train_needs(). */
DRPS_MUST_CHECK
int drps_index_report_needs(struct drps_index_report *report, struct drps_err *err);

/* Returns the summary: the plan's own manifest, and what the run came to. NULL: it failed. */
json_t *drps_index_report_json(const struct drps_index_report *report, struct drps_err *err);

/* The values that an epoch moves, to those of dealt samples and hashed rows; some were counted. */
double drps_index_report_moved(const struct drps_index_result *r);

/* The busiest link to the average one; some rows move. */
double drps_index_report_busiest(const struct drps_index_result *r);

/* The share of the first epoch's parameters between ranks that nobody has trained; some moved. */
double drps_index_report_fresh(const struct drps_index_result *r);

/* What an epoch's training rounds move where rows are handed on, as a share of what they would;
 * some are. */
double drps_index_report_handed_on(const struct drps_plan_info *i);

/* Bytes of a row on its way between ranks: its parameters, or all of it where rows circulate, with
 * the state of adagrad. */
uint64_t drps_index_report_link_bytes(const struct drps_plan_info *i);

/* Rows that an epoch hands on where rows circulate; 0: they do not. */
uint64_t drps_index_report_handed_rows(const struct drps_plan_info *i);

#endif
