/* Packs the numbers by place of one sample after another on their way to a spool. Private to
 * index/samples/read/. */
#ifndef DRPS_INDEX_SAMPLES_READ_NUMBERS_H
#define DRPS_INDEX_SAMPLES_READ_NUMBERS_H

#include "base/drps_err.h"
#include "index/samples/drps_spool.h"

/* Starts zeroed. */
struct sample_numbers {
    uint8_t *levels;       /* own: room to pack in */
    unsigned char *packed; /* own: of the sample packed last */
    size_t levels_cap, packed_cap;
};

/* Packs numbers [each], and points *sample to them until the next call. -ENOMEM. */
DRPS_MUST_CHECK
int sample_numbers_pack(struct sample_numbers *p, const float *numbers, uint32_t each,
                        struct spool_sample *sample, struct drps_err *err);
void sample_numbers_destroy(struct sample_numbers *p);

#endif
