/*
 * A window as stored, index/plan/drps_window.h has the bytes: what index/windows/compile_windows.c,
 * which writes it, and its decoder share. Shared inside index/.
 */
#ifndef DRPS_INDEX_PLAN_WINDOW_RECORD_H
#define DRPS_INDEX_PLAN_WINDOW_RECORD_H

#include <stddef.h>
#include <stdint.h>

#include "base/drps_checksum.h"
#include "index/plan/drps_window.h"

enum { SECTION_BITS = 16, SECTION_ROWS = 1 << SECTION_BITS }; /* placed ids of a section */
enum { WINDOW_HEAD_BYTES = 72 };

enum window_part { ROWS, NEXT, PREV, PARTS };

/*
 * The head of a record, with the numbers of w.
 *
 * pieces  [1 + 2 n] the first becomes the head; n of the nexts and n of the prevs are there: their
 *         bytes are in the head, and its checksum covers them
 * head    [WINDOW_HEAD_BYTES] caller-owned, as long as pieces
 */
void drps_window_head_encode(const struct drps_window *w, uint32_t sections,
                             struct drps_piece *pieces, size_t n, unsigned char *head);

#endif
