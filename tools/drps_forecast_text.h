/* Texts of the forecast: what an epoch moves between memory and disk, for several amounts of
 * memory, and why a run moved more. */
#ifndef DRPS_TOOLS_FORECAST_TEXT_H
#define DRPS_TOOLS_FORECAST_TEXT_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <jansson.h>

/* The store that a forecast is of, as drps-train's --store or "blocks"; "-": it does not say. */
const char *forecast_store(const json_t *forecast);

/* 1: some of them say how long an epoch takes. */
int forecast_has_time(const json_t *list);

/* Prints the forecasts of a plan's manifest as a table, after an empty line; nothing where there
 * are none. Numbers that make no sense are shown as "-". A failure of `out` shows when it is
 * flushed. */
void forecast_print(FILE *out, const json_t *list);

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
