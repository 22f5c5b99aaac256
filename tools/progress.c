/* The text of a progress line; drps_cli_progress() draws it. */
#include "tools/drps_progress.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/drps_size.h"

#define LEAST_SECONDS 1e-6 /* a shorter time tells no rate */

const char *drps_progress_time(double seconds, char out[DRPS_PROGRESS_TIME])
{
    if (!(seconds >= 0 && seconds < 1e9)) /* not NaN either */
        (void)snprintf(out, DRPS_PROGRESS_TIME, "?");
    else if (seconds < 120)
        (void)snprintf(out, DRPS_PROGRESS_TIME, "%.0f s", seconds);
    else if (seconds < 7200)
        (void)snprintf(out, DRPS_PROGRESS_TIME, "%.0f min", seconds / 60);
    else
        (void)snprintf(out, DRPS_PROGRESS_TIME, "%.1f h", seconds / 3600);
    return out;
}

double drps_progress_left(const struct drps_progress *p)
{
    if (!p->done || p->done > p->total) return NAN;
    return p->seconds * (double)(p->total - p->done) / (double)p->done;
}

static int has_bytes(const struct drps_progress *p)
{
    return strcmp(p->unit, DRPS_PROGRESS_BYTES) == 0;
}

/* Returns the text of an amount without the unit of what is counted: "1.2 GiB", "1,234". */
static const char *number(const struct drps_progress *p, double value, char *buf, size_t cap)
{
    const uint64_t whole = value < 1 ? 0 : value < 0x1p63 ? (uint64_t)value : INT64_MAX;
    return has_bytes(p) ? drps_size_format(whole, buf, cap) : drps_cli_grouped(whole, buf);
}

/* Returns the text of an amount with its unit: "1.2 GiB", "1,234 samples". */
static const char *amount(const struct drps_progress *p, uint64_t value, char *buf, size_t cap)
{
    char count[DRPS_CLI_COUNT_BYTES];
    if (has_bytes(p)) return drps_size_format(value, buf, cap);
    (void)snprintf(buf, cap, "%s %s", drps_cli_grouped(value, count), p->unit);
    return buf;
}

const char *drps_progress_text(const struct drps_progress *p, char out[DRPS_PROGRESS_TEXT])
{
    char all[64], rate[64], time[DRPS_PROGRESS_TIME];
    const double done = (double)p->done, total = (double)p->total;
    const double per_s = p->seconds > 0 ? done / p->seconds : 0;
    (void)number(p, per_s, rate, sizeof(rate));
    if (!p->done || p->seconds < LEAST_SECONDS)
        (void)snprintf(out, DRPS_PROGRESS_TEXT, "%s: %s", p->what,
                       drps_progress_time(p->seconds, time));
    else if (p->done > p->total) /* also where there is no total */
        (void)snprintf(out, DRPS_PROGRESS_TEXT, "%s: %s in %s, %s/s", p->what,
                       amount(p, p->done, all, sizeof(all)), drps_progress_time(p->seconds, time),
                       rate);
    else
        (void)snprintf(out, DRPS_PROGRESS_TEXT, "%s: %.0f %% of %s, %s left%s%s, %s/s", p->what,
                       100 * done / total, amount(p, p->total, all, sizeof(all)),
                       drps_progress_time(drps_progress_left(p), time), p->more ? ", " : "",
                       p->more ? p->more : "", rate);
    return out;
}

void drps_progress_show(struct drps_cli *cli, const struct drps_progress *p)
{
    char text[DRPS_PROGRESS_TEXT];
    drps_cli_progress(cli, "%s", drps_progress_text(p, text));
}
