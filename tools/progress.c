/* The text of a progress line; drps_cli_progress() draws it. */
#include "tools/progress.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/drps_size.h"

const char *progress_time(double seconds, char out[PROGRESS_TIME])
{
    if (!(seconds >= 0 && seconds < 1e9)) /* not NaN either */
        (void)snprintf(out, PROGRESS_TIME, "?");
    else if (seconds < 120)
        (void)snprintf(out, PROGRESS_TIME, "%.0f s", seconds);
    else if (seconds < 7200)
        (void)snprintf(out, PROGRESS_TIME, "%.0f min", seconds / 60);
    else
        (void)snprintf(out, PROGRESS_TIME, "%.1f h", seconds / 3600);
    return out;
}

double progress_left(const struct progress *p)
{
    if (!p->done || p->done > p->total) return NAN;
    return p->seconds * (double)(p->total - p->done) / (double)p->done;
}

/* Returns the text of an amount: "1.2 GiB", or "1,234 samples". */
static const char *amount(const struct progress *p, double value, char *buf, size_t cap)
{
    char number[DRPS_CLI_COUNT_BYTES];
    const uint64_t whole = value >= 1 ? (uint64_t)value : 0;
    if (strcmp(p->unit, PROGRESS_BYTES) == 0) return drps_size_format(whole, buf, cap);
    (void)snprintf(buf, cap, "%s %s", drps_cli_grouped(whole, number), p->unit);
    return buf;
}

const char *progress_text(const struct progress *p, char out[PROGRESS_TEXT])
{
    char all[64], rate[64], time[PROGRESS_TIME];
    const double done = (double)p->done, total = (double)p->total;
    (void)amount(p, p->seconds > 0 ? done / p->seconds : 0, rate, sizeof(rate));
    if (!p->done)
        (void)snprintf(out, PROGRESS_TEXT, "%s: %s", p->what, progress_time(p->seconds, time));
    else if (p->done > p->total) /* also where there is no total */
        (void)snprintf(out, PROGRESS_TEXT, "%s: %s in %s, %s/s", p->what,
                       amount(p, done, all, sizeof(all)), progress_time(p->seconds, time), rate);
    else
        (void)snprintf(out, PROGRESS_TEXT, "%s: %.0f%% of %s, %s left%s%s, %s/s", p->what,
                       100 * done / total, amount(p, total, all, sizeof(all)),
                       progress_time(progress_left(p), time), p->more ? ", " : "",
                       p->more ? p->more : "", rate);
    return out;
}

void progress_show(struct drps_cli *cli, const struct progress *p)
{
    char text[PROGRESS_TEXT];
    drps_cli_progress(cli, "%s", progress_text(p, text));
}
