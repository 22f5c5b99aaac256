/* How far work is, as a line on the terminal: its share, the time it still takes, and its rate.
 * Private to tools/. */
#ifndef DRPS_TOOLS_PROGRESS_H
#define DRPS_TOOLS_PROGRESS_H

#include <stddef.h>
#include <stdint.h>

#include "tools/drps_cli.h"

enum { PROGRESS_TIME = 32, PROGRESS_TEXT = 256 };

#define PROGRESS_BYTES "bytes"

/* Work that takes long, as far as it is. */
struct progress {
    const char *what;     /* "making batches" */
    const char *unit;     /* "samples", or PROGRESS_BYTES */
    uint64_t done, total; /* total: 0 where nobody knows the end */
    double seconds;       /* since it began */
    const char *more;     /* said after the time left, as "9 min of all"; NULL for nothing */
};

/* Writes "12 s", "3 min", "2.5 h", or "?" for no number, into out, which it returns. */
const char *progress_time(double seconds, char out[PROGRESS_TIME]);

/* Returns the seconds until all is done, by the rate so far; NaN where that is not known. */
double progress_left(const struct progress *p);

/* Writes "making batches: 45% of 1,234,567 samples, 3 s left, 250,000/s" into out, which it
 * returns; without a known end "reading text: 1.2 GiB in 12 s, 102.4 MiB/s". A narrow terminal cuts
 * the end, which matters least. */
const char *progress_text(const struct progress *p, char out[PROGRESS_TEXT]);

/* Shows that text as the progress line of the tool. */
void progress_show(struct drps_cli *cli, const struct progress *p);

#endif
