/*
 * What drps_together_begin() checks on all ranks at once. Private to index/together/.
 */
#ifndef DRPS_INDEX_TOGETHER_BEGIN_H
#define DRPS_INDEX_TOGETHER_BEGIN_H

#include "index/together/drps_together.h"

/* DRPS_E_CONFIG: a rank was started with other options than rank 0; the text names rank and option
 * (options.c). */
DRPS_MUST_CHECK
int drps_together_check_options(const struct swap_ranks *ranks,
                                const struct drps_index_options *options, struct drps_err *err);

/* DRPS_E_CONFIG: two ranks read the same file, or files that are shared are not the same on all.
 * Sets options->first_input and ->first_test of files that are each rank's own (inputs.c). */
DRPS_MUST_CHECK
int drps_together_check_inputs(const struct swap_ranks *ranks, struct drps_index_options *options,
                               struct drps_err *err);

#endif
