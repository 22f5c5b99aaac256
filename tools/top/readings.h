/* Numbers that a job shows (docs/metrics.md), read as they were at one moment. Private to
 * tools/top/. */
#ifndef DRPS_TOOLS_TOP_READINGS_H
#define DRPS_TOOLS_TOP_READINGS_H

#include <stddef.h>
#include <stdint.h>

#include "base/drps_err.h"

/* One number. Texts lie in the readings' text. */
struct reading {
    const char *name;  /* "drps_store_bytes_total" */
    const char *label; /* value of its label but rank and le; "" where it has none */
    double le;         /* upper end of a histogram's bucket; NaN: it is none */
    double value;
};

struct readings {
    char *text;           /* own */
    struct reading *list; /* own [n] */
    size_t n, cap;
    uint32_t rank; /* of the first one */
    double at;     /* seconds of the clock that the caller goes by */
};

/*
 * Take a text apart, which is moved: lines that are none of Prometheus's format are left out, and
 * bytes that a terminal would obey become '?'. DRPS_E_FORMAT: no line is a number of drps; -ENOMEM.
 */
DRPS_MUST_CHECK
int readings_parse(char *text, double at, struct readings *out, struct drps_err *err);
void readings_free(struct readings *r); /* zeros, too */

/* The number of that name and label ("": none). NaN: it is not there. */
double readings_get(const struct readings *r, const char *name, const char *label);

/* The first label of that name whose number is 1; "": none is. */
const char *readings_which(const struct readings *r, const char *name);

/* How much it has grown in a second, from `before` to `now`; NaN: one has no number, or no time has
 * gone by, or it has begun anew. */
double readings_rate(const struct readings *before, const struct readings *now, const char *name,
                     const char *label);

/* The value that share q of what a histogram has counted from `before` to `now` does not exceed:
 * the upper end of its bucket; NaN: there is none. */
double readings_quantile(const struct readings *before, const struct readings *now,
                         const char *name, const char *label, double q);

#endif
