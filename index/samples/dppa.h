/*
 * Samples and rows placed by Algorithm 1 of the compression and partition paper
 * (partition/dppa/drps_dppa.h), which wants all samples in memory. Private to index/samples/.
 */
#ifndef DRPS_INDEX_SAMPLES_DPPA_H
#define DRPS_INDEX_SAMPLES_DPPA_H

#include "index/samples/drps_assign.h"
#include "partition/drps_partition.h"

/* Set owner [training->n], and *job->row_homes where rows are placed first. DRPS_E_MEMORY_BUDGET,
 * -ENOMEM, or what the walk or job->turn() returned. */
DRPS_MUST_CHECK
int drps_assign_by_dppa(const struct assign_job *job, const struct drps_sample_stream *training,
                        uint16_t *owner, struct drps_err *err);

#endif
