/* What drps-train prints of the ranks of a run. Private to tools/train/. */
#ifndef DRPS_TOOLS_TRAIN_RANKS_H
#define DRPS_TOOLS_TRAIN_RANKS_H

#include <stddef.h>
#include <stdio.h>

#include "engine/drps_engine.h"

enum { TRAIN_RANKS_LISTED = 4 };

/* Prints a line for each of ranks [n], and with `details` a second one where rounds were
 * asynchronous. Of more than TRAIN_RANKS_LISTED ranks it prints the least, the most and the sum of
 * each number, and which ranks these are. A line follows where gradients were filtered. A failure
 * of `out` shows when it is flushed. */
void train_ranks_print(FILE *out, const struct drps_train_rank *ranks, size_t n, int details);

#endif
