/* How far work is, as a line on the terminal: its share, the time it still takes, and its rate. */
#ifndef DRPS_TOOLS_PROGRESS_H
#define DRPS_TOOLS_PROGRESS_H

#include <stddef.h>
#include <stdint.h>

#include "tools/drps_cli.h"

enum { DRPS_PROGRESS_TIME = 32, DRPS_PROGRESS_TEXT = 256 };

#define DRPS_PROGRESS_BYTES "bytes"

/* Work that takes long, as far as it is. */
struct drps_progress {
    const char *what;     /* "making batches" */
    const char *unit;     /* "samples", or DRPS_PROGRESS_BYTES */
    uint64_t done, total; /* total: 0 where nobody knows the end */
    double seconds;       /* since it began */
    const char *more;     /* said after the time left, as "9 min of all"; NULL for nothing */
};

/* Writes "12 s", "3 min", "2.5 h", or "?" for no number, into out, which it returns. */
const char *drps_progress_time(double seconds, char out[DRPS_PROGRESS_TIME]);

/* Returns the seconds until all is done, by the rate so far; NaN where that is not known. */
double drps_progress_left(const struct drps_progress *p);

/* Writes "making batches: 45 % of 1,234,567 samples, 3 s left, 250,000/s" into out, which it
 * returns; without a known end "reading text: 1.2 GiB in 12 s, 102.4 MiB/s". A narrow terminal cuts
 * the end, which matters least. */
const char *drps_progress_text(const struct drps_progress *p, char out[DRPS_PROGRESS_TEXT]);

/* Shows that text as the progress line of the tool. */
void drps_progress_show(struct drps_cli *cli, const struct drps_progress *p);

#endif
