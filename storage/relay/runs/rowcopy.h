/*
 * Copying rows from and to their frames, which lie anywhere in more memory than the caches hold:
 * the rows that are soon due are prefetched, and small rows are copied without a call. Private to
 * storage/relay/runs/.
 */
#ifndef DRPS_RELAY_RUNS_ROWCOPY_H
#define DRPS_RELAY_RUNS_ROWCOPY_H

#include <stddef.h>
#include <stdint.h>

/* Copy the first `now` of n rows, base + frames[i] * row_bytes, one after another to `to`. Later
 * calls copy the rest. */
void drps_rowcopy_gather(char *to, const char *base, size_t row_bytes, const uint32_t *frames,
                         size_t n, size_t now);

/* Copy the same rows from `from` to their frames. */
void drps_rowcopy_scatter(const char *from, char *base, size_t row_bytes, const uint32_t *frames,
                          size_t n, size_t now);

#endif
