/* The parts of the page. Each writes nothing where its numbers are not there: an earlier version
 * has made the model, the run was killed, or there was nothing to count. Private to
 * tools/stat/html/. */
#ifndef DRPS_TOOLS_STAT_HTML_SECTIONS_H
#define DRPS_TOOLS_STAT_HTML_SECTIONS_H

#include "tools/stat/html/subject.h"
#include "tools/stat/html/writer.h"

/* What it is, with warnings and command lines. */
void section_summary(struct html *h, const struct subject *s);

/* Of a training: losses and metrics by epoch; where time and memory went; the disk; the ranks. */
void section_learning(struct html *h, const struct subject *s);
void section_time(struct html *h, const struct subject *s);
void section_memory(struct html *h, const struct subject *s);
void section_disk(struct html *h, const struct subject *s);
void section_ranks(struct html *h, const struct subject *s);

/* Of a plan: its data, blocks and windows, and the forecast. */
void section_plan(struct html *h, const struct subject *s);

/* Several trainings side by side: subjects [n]. */
void section_comparison(struct html *h, const struct subject *subjects, size_t n);

/* ---- For sections ---- */

/* The members of an epoch that say how good it is on held-out samples, and their names; the last
 * one has no key. Larger is better but for rmse. */
struct section_metric {
    const char *key, *name;
    int less; /* 1: less is better */
};
const struct section_metric *section_metrics(void);

/* The best epoch: that which the model has, or of a run that has not ended the one with the least
 * held-out loss. NULL: there is none. */
const json_t *section_best_epoch(const struct subject *s);

#endif
