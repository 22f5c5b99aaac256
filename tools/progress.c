#include "tools/progress.h"

#include <math.h>
#include <stdio.h>

#include "base/drps_clock.h"
#include "base/drps_size.h"

const char *progress_time(double seconds, char out[PROGRESS_TEXT])
{
    if (!(seconds >= 0 && seconds < 1e9)) /* not NaN either */
        (void)snprintf(out, PROGRESS_TEXT, "?");
    else if (seconds < 120)
        (void)snprintf(out, PROGRESS_TEXT, seconds < 9.95 ? "%.1f s" : "%.0f s", seconds);
    else if (seconds < 7200)
        (void)snprintf(out, PROGRESS_TEXT, "%.0f min", seconds / 60);
    else
        (void)snprintf(out, PROGRESS_TEXT, "%.1f h", seconds / 3600);
    return out;
}

double progress_left(double done, double all, double seconds)
{
    return done > 0 && done <= all ? seconds * (all - done) / done : NAN;
}

void progress_bytes(struct drps_cli *cli, struct progress *p, const char *what, uint64_t bytes,
                    uint64_t all_bytes)
{
    char left[PROGRESS_TEXT], all[32];
    const uint64_t now = drps_clock_ns();
    if (p->what != what) *p = (struct progress){.what = what, .begin_ns = now};
    const double seconds = (double)(now - p->begin_ns) * 1e-9;
    drps_cli_progress(
        cli, "%s: %.0f %% of %s, %.0f MB/s, %s left", what,
        all_bytes ? 100.0 * (double)bytes / (double)all_bytes : 100.0,
        drps_size_format(all_bytes, all, sizeof(all)),
        seconds > 0 ? (double)bytes / 1e6 / seconds : 0.0,
        progress_time(progress_left((double)bytes, (double)all_bytes, seconds), left));
}
