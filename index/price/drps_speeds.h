/*
 * What a machine does in a second, measured, and how long an epoch takes by that. Needs
 * nothing of the plan: who calls says how much there is to do.
 *
 * The disk works beside arithmetic: both stores read ahead, and write behind. So an epoch takes as
 * long as the slower of the two.
 */
#ifndef DRPS_INDEX_PRICE_SPEEDS_H
#define DRPS_INDEX_PRICE_SPEEDS_H

#include <stdint.h>

#include "base/drps_err.h"
#include "storage/io/drps_pace.h"

/* All above 0, or all 0: nothing was measured. */
struct drps_speeds {
    double read_request_ns, write_request_ns; /* of a request far from the one before, beside what
                                                 its bytes take */
    double read_bps, write_bps;               /* bytes a second of long requests */
    double sample_ns;           /* of a training sample: one thread, all rows in memory */
    double test_sample_ns;      /* of a sample that is scored */
    struct drps_disk_pace pace; /* of reads apart beside long writes; may be unknown where the
                                   others are known: older plans have none */
};

static inline int drps_speeds_are_known(const struct drps_speeds *r)
{
    return r->sample_ns > 0;
}

/* What an epoch comes to. */
struct drps_epoch_work {
    uint64_t samples, test_samples;
    uint64_t read_bytes, written_bytes;
    uint64_t requests; /* both ways, each as large as others */
    uint64_t apart;    /* of a relay store: reads of chunks, beside long writes. Where the pace is
                          known they are priced by it, and `requests` is not looked at; 0: others */
    unsigned threads;  /* that compute; 0: 1 */
};

struct drps_epoch_seconds {
    double compute, disk, epoch;
};

struct drps_epoch_seconds drps_speeds_price(const struct drps_speeds *r,
                                            const struct drps_epoch_work *work);

/* A new json_t object: "compute", "disk", "epoch"; NULL: no memory. */
void *drps_epoch_seconds_to_json(const struct drps_epoch_seconds *s);

/* A new json_t object for the member "speeds" of plan.json; NULL: no memory. */
void *drps_speeds_to_json(const struct drps_speeds *r);

/* Read it; `object` NULL: there is none, all are 0. DRPS_E_CORRUPT: a speed that is none. */
DRPS_MUST_CHECK
int drps_speeds_from_json(const void *object, const char *path, struct drps_speeds *out,
                          struct drps_err *err);

#endif
