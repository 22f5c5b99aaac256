/* The text that says why an epoch moved more bytes than the forecast. Private to tools/. */
#ifndef DRPS_TOOLS_FORECAST_TEXT_H
#define DRPS_TOOLS_FORECAST_TEXT_H

#include <stddef.h>
#include <stdint.h>

enum { FORECAST_REASON = 160 };

/* What store relay said of itself; all 0 for other stores. */
struct forecast_relay {
    uint64_t windows; /* of an epoch */
    uint64_t groups;  /* of windows; 0: none */
    uint64_t tails;   /* unfinished chunks in memory at a time */
};

/* Writes ": 34 groups of windows move rows twice; more memory avoids that" into out, which is
 * returned; "" where `bytes` are at most a tenth more than `forecast_bytes`, or the reason is not
 * known. */
const char *forecast_reason(const struct forecast_relay *relay, uint64_t forecast_bytes,
                            uint64_t bytes, char out[FORECAST_REASON]);

#endif
