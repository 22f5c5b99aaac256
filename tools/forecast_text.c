#include "tools/forecast_text.h"

#include <inttypes.h>
#include <stdio.h>

/* The forecast is of rows that go to disk and come back once. Rows of a window that is far away go
 * by way of its group, which writes and reads them twice. Windows that share unfinished chunks
 * write some before they are full. */
const char *forecast_reason(const struct forecast_relay *relay, uint64_t forecast_bytes,
                            uint64_t bytes, char out[FORECAST_REASON])
{
    out[0] = '\0';
    if (bytes <= forecast_bytes + forecast_bytes / 10) return out;
    if (relay->groups)
        (void)snprintf(out, FORECAST_REASON,
                       ": %" PRIu64 " groups of windows move rows twice; more memory avoids that",
                       relay->groups);
    else if (relay->tails < relay->windows)
        (void)snprintf(out, FORECAST_REASON,
                       ": %" PRIu64 " windows share %" PRIu64
                       " chunks in memory, and write some before they are full; more memory "
                       "avoids that",
                       relay->windows, relay->tails);
    return out;
}
