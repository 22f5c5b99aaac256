/* Sizes as people write them, such as "256M", "1.5G" or "4096", and the memory of this process. */
#ifndef DRPS_SIZE_H
#define DRPS_SIZE_H

#include <stddef.h>
#include <stdint.h>

#include "base/drps_err.h"

/*
 * Parse a byte count with an optional suffix K, M, G or T (powers of 1024, either case, "B" or "iB"
 * after it allowed). Returns 0, or -EINVAL with a text that shows the value and an example.
 */
DRPS_MUST_CHECK
int drps_size_parse(const char *text, uint64_t *bytes_out, struct drps_err *err);

/* Write a size for people, such as "1.5 GiB", into buf [cap]; returns buf. */
char *drps_size_format(uint64_t bytes, char *buf, size_t cap);

/* Write a count with a comma before each three digits into buf [DRPS_COUNT_BYTES]; returns buf. */
enum { DRPS_COUNT_BYTES = 27 };
char *drps_count_format(uint64_t count, char *buf);

/* Returns the memory that this process may use: the least of the machine's memory and its cgroup's
 * limits (v1 and v2). */
uint64_t drps_memory_available(void);

/* Returns the largest resident set of this process so far, in bytes. */
uint64_t drps_memory_peak(void);

#endif
