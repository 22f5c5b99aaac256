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

/* Writes ": rows on disk are merged, which moves them twice; more memory avoids that" into out,
 * which is returned, if merged_bytes are not 0, as store relay says; "" if they are, or where
 * `bytes` are at most a tenth more than `forecast_bytes`. */
const char *forecast_reason(uint64_t merged_bytes, uint64_t forecast_bytes, uint64_t bytes,
                            char out[FORECAST_REASON]);

#endif
