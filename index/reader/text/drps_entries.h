/* Plain entries "id:value" of a line. Private to index/reader/ and its folders. */
#ifndef DRPS_INDEX_READER_TEXT_ENTRIES_H
#define DRPS_INDEX_READER_TEXT_ENTRIES_H

#include <stddef.h>
#include <stdint.h>

enum { DRPS_ENTRIES_SLACK = 4 }; /* elements behind those of a text that may be overwritten */

/*
 * Read plain entries from *p on, up to the first that is not plain. An entry is plain if its id has
 * 1 to 8 digits, its value is a digit other than 0, and one blank follows, or `end`. *p moves to
 * where the next one begins, or to `end`. Plain entries may be left to the caller; without vector
 * instructions all are.
 *
 * ids, values  [entries of the text + DRPS_ENTRIES_SLACK]
 * 64 bytes can be read from each byte of the line on; *end is '\r' or '\n'.
 * Returns how many entries there are.
 */
size_t drps_entries_plain(char **p, const char *end, uint64_t *ids, float *values);

/* Returns 1 if each of the n ids is larger than the one before it. */
int drps_entries_increase(const uint64_t *ids, size_t n);

#endif
