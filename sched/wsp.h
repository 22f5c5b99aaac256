/*
 * WSP's choice of the workers that it is worth to wait for. Private to sched/.
 */
#ifndef DRPS_SCHED_WSP_H
#define DRPS_SCHED_WSP_H

#include <stddef.h>
#include <stdint.h>

#include "sched/drps_sched.h"

/*
 * Fill SCTable for a requester that has completed an iteration, and return the row of the greatest
 * gain, of equal ones the shortest:
 *
 *   gain_i = -lambda * t_i / TE_r - (1 / W) * sum over running workers l not waited for of
 *            (I_r + 1 - I_l)                                                         (Eq. 7)
 *
 * W counts live workers. TE is the requester's: only so do the paper's figures come out.
 *
 * c        wsp-literal: an overdue worker is expected at once; wsp: as much later as it has run
 * it       ITTable [workers]; it[r].label is I_r + 1 and it[r].expected_ns counts the iteration
 *          that it has completed
 * row_out  [workers] row 0, and one a running worker with t_i <= longest * TE_r; *rows_out: how
 * many
 */
size_t drps_wsp_choose(const struct drps_sched_config *c, const struct drps_sched_worker *it,
                       unsigned r, uint64_t now_ns, struct drps_sched_strategy *row_out,
                       size_t *rows_out);

/* How much longer an iteration takes that has run for elapsed_ns and was expected by now: as long
 * again. */
static inline double drps_wsp_overdue_ns(double elapsed_ns)
{
    return elapsed_ns;
}

#endif
