/*
 * The dictionary of a finished plan or model: feature keys (and strings) to placed ids.
 *
 * names.rec, sorted by key, in pages: u32 n | u32 flags (1: strings) | n keys u64 | n placed ids
 * u32 | and with strings n fields u16 (padded to 4), n + 1 offsets u32, the strings' bytes. The
 * last record holds each page's first key (u64).
 */
#ifndef DRPS_INDEX_PLAN_NAMES_H
#define DRPS_INDEX_PLAN_NAMES_H

#include <stddef.h>
#include <stdint.h>

#include "base/drps_err.h"
#include "base/drps_io.h"

struct drps_names; /* opaque: an open dictionary; memory: 8 bytes a page of 4096 names, and one page
                    */

#define DRPS_NO_ROW UINT32_MAX

/* Open dir/names.rec. */
DRPS_MUST_CHECK
int drps_names_open(const struct drps_io *io, const char *dir, struct drps_names **names_out,
                    struct drps_err *err);
void drps_names_close(struct drps_names *names);
uint64_t drps_names_bytes(const struct drps_names *names); /* of the file */

/*
 * Find n keys, increasing (equal ones allowed): rows_out[i] is the placed id, or DRPS_NO_ROW for a
 * key that training never saw. Reads each page it needs once. One calling thread.
 */
DRPS_MUST_CHECK
int drps_names_lookup(struct drps_names *names, const uint64_t *keys, size_t n, uint32_t *rows_out,
                      struct drps_err *err);

struct drps_names_entry {
    uint64_t key;
    uint32_t row;
    unsigned field;
    const char *text; /* borrowed until the next call; NULL (bytes 0) for numeric names */
    size_t bytes;
};

/* Get the name that follows the one given last, in key order; the first call gets the first one.
 * Returns 1, or 0 at the end. */
DRPS_MUST_CHECK
int drps_names_next(struct drps_names *names, struct drps_names_entry *out, struct drps_err *err);

/* Visit all names in key order: text is NULL (bytes 0) for numeric names. A non-zero result ends
 * the visit. */
typedef int (*drps_names_visit)(void *ctx, uint64_t key, uint32_t row, unsigned field,
                                const char *text, size_t bytes, struct drps_err *err);
DRPS_MUST_CHECK
int drps_names_scan(struct drps_names *names, drps_names_visit visit, void *ctx,
                    struct drps_err *err);

#endif
