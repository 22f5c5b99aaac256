/* Texts of progress lines: how far work is, how fast it goes, how long it still takes. Private to
 * tools/. */
#ifndef DRPS_TOOLS_PROGRESS_H
#define DRPS_TOOLS_PROGRESS_H

#include <stdint.h>

#include "tools/drps_cli.h"

enum { PROGRESS_TEXT = 32 };

/* Writes "0.4 s", "12 s", "3 min", "2.5 h", or "?" for no number, into out, which it returns. */
const char *progress_time(double seconds, char out[PROGRESS_TEXT]);

/* Returns the seconds until all is done, by the speed so far; NaN before anything is done. */
double progress_left(double done, double all, double seconds);

/* One piece of work whose bytes are known. Zero it before the first call. */
struct progress {
    const char *what; /* borrowed: the work that `begin_ns` is of */
    uint64_t begin_ns;
};

/* Shows "making the model: 45 % of 1.2 GiB, 310 MB/s, 3 s left". Another `what` is another piece of
 * work, which begins with this call. */
void progress_bytes(struct drps_cli *cli, struct progress *p, const char *what, uint64_t bytes,
                    uint64_t all_bytes);

#endif
