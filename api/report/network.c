/* Seconds of an epoch, estimated: of one thread with all rows in memory, and of the messages of
 * several ranks. */
#include "api/report/drps_index_report.h"

double drps_index_thread_seconds(const struct drps_index_network *network)
{
    const struct drps_plan_info *info = network->info;
    const double entries = (double)info->nnz + (double)info->test_nnz, floats = (double)info->dim;
    return 1e-9 * (entries * (DRPS_INDEX_ENTRY_NS + DRPS_INDEX_FLOAT_NS * floats) +
                   DRPS_INDEX_STEP_NS * floats * (double)network->row_uses);
}

double drps_index_messages_seconds(const struct drps_index_network *network)
{
    return 1e-9 * DRPS_INDEX_ROUND_NS * (double)network->rounds;
}
