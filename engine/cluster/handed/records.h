/* The stream of a rank's records of training rounds, epoch after epoch. Private to
 * engine/cluster/handed/. */
#ifndef DRPS_ENGINE_CLUSTER_HANDED_RECORDS_H
#define DRPS_ENGINE_CLUSTER_HANDED_RECORDS_H

#include "base/record/drps_recstream.h"
#include "index/plan/drps_plan.h"

/* What the records of one file take. */
#define HANDED_RECORDS_MEMORY (3 * (UINT64_C(1) << 18))

/* Zero it first. */
struct handed_records {
    struct drps_recfile *file;
    struct drps_recstream *stream;
};

/* `is_over`: the training of the first of the epochs is. */
DRPS_MUST_CHECK
int handed_records_open(struct handed_records *r, const struct drps_plan *plan, const char *name,
                        uint32_t kind, uint64_t epochs, int is_over, struct drps_err *err);
void handed_records_close(struct handed_records *r);

/* Borrowed until the next call. */
DRPS_MUST_CHECK
int handed_records_next(struct handed_records *r, const void **record, size_t *bytes,
                        struct drps_err *err);

#endif
