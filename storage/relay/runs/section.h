/*
 * The header of a section: which window its rows are for, told as how many windows later than
 * those before it, and how many rows they are. Two numbers, each in pieces of seven bits, the
 * lowest first; bit 7 of a byte says that another follows. Private to storage/relay/runs/.
 */
#ifndef DRPS_STORAGE_RELAY_RUNS_SECTION_H
#define DRPS_STORAGE_RELAY_RUNS_SECTION_H

#include <stddef.h>
#include <stdint.h>

enum { DRPS_SECTION_BYTES_MOST = 20 }; /* of a header */

struct drps_section {
    uint64_t later; /* windows */
    uint64_t rows;
};

/* Write a header of at most DRPS_SECTION_BYTES_MOST bytes; returns its bytes. */
size_t drps_section_put(char *to, const struct drps_section *section);

/* Read the header that lies at `from`, where n bytes are. Returns its bytes; 0: there is none. */
size_t drps_section_get(const char *from, size_t n, struct drps_section *section_out);

#endif
