/* What the network asks of an epoch, beside what one machine would take. Private to tools/index/.
 */
#ifndef DRPS_TOOLS_INDEX_NETWORK_H
#define DRPS_TOOLS_INDEX_NETWORK_H

#include "api/report/drps_index_report.h"

/* Prints the least time of the busiest link, and whether several machines can be faster than one;
 * nothing for one worker. */
void index_network_print(const struct drps_index_network *network, int details);

#endif
