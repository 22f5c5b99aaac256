/*
 * Numbers to watch while a job runs: a list of counters, gauges and histograms that the job sets,
 * and that others read meanwhile as text. The text is Prometheus's exposition format 0.0.4:
 * https://prometheus.io/docs/instrumenting/exposition_formats/.
 *
 * Setting a number takes no lock. Any thread may set, add or render at any time; a number is added
 * before it is set.
 */
#ifndef DRPS_BASE_MONITOR_MONITOR_H
#define DRPS_BASE_MONITOR_MONITOR_H

#include <stddef.h>
#include <stdint.h>

#include "base/drps_err.h"

struct drps_monitor; /* opaque: the numbers of one job, or of one rank of it */

enum drps_monitor_type { DRPS_MONITOR_COUNTER, DRPS_MONITOR_GAUGE, DRPS_MONITOR_HISTOGRAM };

/* What numbers of one name are. Static: it is borrowed for good, and told from others by its
 * address. Names follow Prometheus's rules: base units, counters end in _total. */
struct drps_monitor_metric {
    const char *name;  /* "drps_train_samples_total" */
    const char *help;  /* a sentence */
    const char *label; /* what tells its numbers apart, such as "part"; NULL: there is one number */
    enum drps_monitor_type type;
};

/* One number, or one histogram. Owned by the monitor. */
struct drps_monitor_number;

/* Make an empty list. `rank` becomes the label "rank" of every number. */
DRPS_MUST_CHECK
int drps_monitor_open(uint32_t rank, struct drps_monitor **out, struct drps_err *err);
void drps_monitor_close(struct drps_monitor *m); /* NULL-safe */

/*
 * Add a number of this name: a counter or a gauge. `value` is the label's, which is copied; NULL
 * where the metric has no label. A counter begins at 0, a gauge unknown. Returns NULL when memory
 * is gone, which drps_monitor_check() tells; the functions below do nothing for NULL.
 */
struct drps_monitor_number *drps_monitor_add(struct drps_monitor *m,
                                             const struct drps_monitor_metric *metric,
                                             const char *value);

/* The same of a histogram. bounds [n], at least 1, increasing: the upper ends of all buckets but
 * the last one, which has none; borrowed for good. */
struct drps_monitor_number *drps_monitor_add_histogram(struct drps_monitor *m,
                                                       const struct drps_monitor_metric *metric,
                                                       const char *value, const double *bounds,
                                                       size_t n);

/* -ENOMEM: a number could not be added. */
DRPS_MUST_CHECK
int drps_monitor_check(const struct drps_monitor *m, struct drps_err *err);

/* Set a counter, which never goes back, or a gauge; NaN: it is not known, and not shown. */
void drps_monitor_set(struct drps_monitor_number *number, double value);

/* Set a histogram. counts [n + 1]: how many values lie in each bucket, not in those below it, too;
 * `sum` of all values. */
void drps_monitor_set_histogram(struct drps_monitor_number *number, const uint64_t *counts,
                                double sum);

/* Everything as text (free() it), names in the order in which they were added; after them what the
 * system says of this process: resident memory, processor time, start. NULL when memory is gone. */
char *drps_monitor_render(struct drps_monitor *m, size_t *n_out);

#endif
