/*
 * Lanes of the shuffled order (index/order/drps_mix.h). Samples come in random order and wait in a
 * list for each stratum and lane. When those of a stratum make DRPS_MIXED_BATCHES batches, all
 * whole ones among them are cut, of its lanes in turn, under a number that no other run of batches
 * has; the rest waits on. So batches stay nearly in the random order, all but the last ones of an
 * epoch are full, and a trainer always finds work for several threads. Shared inside index/.
 */
#ifndef DRPS_INDEX_BATCHES_MIXED_H
#define DRPS_INDEX_BATCHES_MIXED_H

#include "index/batches/drps_batcher.h"
#include "index/samples/drps_spool.h"

struct mixed;

enum { DRPS_MIXED_BATCHES = 32 }; /* of a stratum */

/* Samples that wait take at most so much. */
uint64_t drps_mixed_memory(uint64_t lanes, uint64_t batch_size);

/* Batches go to `to`, borrowed, which must cut at batch_size. */
DRPS_MUST_CHECK
int drps_mixed_open(uint32_t lanes, size_t batch_size, struct batcher *to, struct mixed **m_out,
                    struct drps_err *err);
void drps_mixed_close(struct mixed *m); /* NULL-safe */

/* One sample; stratum and lane are below lanes. */
DRPS_MUST_CHECK
int drps_mixed_add(struct mixed *m, uint32_t stratum, uint32_t lane,
                   const struct spool_sample *sample, struct drps_err *err);

/* Cut what is left; the batcher's next batches are not marked. */
DRPS_MUST_CHECK
int drps_mixed_finish(struct mixed *m, struct drps_err *err);

#endif
