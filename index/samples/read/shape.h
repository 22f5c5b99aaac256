/* What a run on several machines settles before it reads: all read as rank 0 does. Private to
 * index/samples/read/. */
#ifndef DRPS_INDEX_SAMPLES_READ_SHAPE_H
#define DRPS_INDEX_SAMPLES_READ_SHAPE_H

#include "index/samples/drps_read_samples.h"
#include "index/swap/drps_swap.h"

/* Rank 0 tells the others the format and columns of its input: those in p. */
DRPS_MUST_CHECK
int drps_shape_tell(const struct swap_ranks *ranks, const struct read_samples *p,
                    struct drps_err *err);

/* Another rank takes them into p; p->fields becomes its own. *classes_out is 1 where labels are
 * classes, else 0. DRPS_E_PROTO: they make no sense. */
DRPS_MUST_CHECK
int drps_shape_take(const struct swap_ranks *ranks, struct read_samples *p, int *classes_out,
                    struct drps_err *err);

#endif
