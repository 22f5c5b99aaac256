/* What the plan of a rank says of a round, read back record by record. */
#ifndef DRPS_TESTS_ROUND_ROWS_H
#define DRPS_TESTS_ROUND_ROWS_H

#include <stddef.h>
#include <stdint.h>

#include "index/plan/drps_plan.h"

/* Record i of a file of the plan: free() it. The test fails where it cannot be read. */
void *round_record(const struct drps_plan *plan, const char *name, uint32_t kind, uint64_t i,
                   size_t *bytes_out);

/* Rows of one server, whose plan this is, that a worker has in a round, as numbers of the whole
 * plan, to out. Returns how many. */
size_t round_rows(const struct drps_plan *server, uint32_t worker, uint64_t round, uint32_t *out);

#endif
