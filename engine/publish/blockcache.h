/*
 * A bounded number of a model's blocks in memory, for reading rows of rows/ by number. Private to
 * engine/.
 */
#ifndef DRPS_ENGINE_PUBLISH_BLOCKCACHE_H
#define DRPS_ENGINE_PUBLISH_BLOCKCACHE_H

#include <stddef.h>
#include <stdint.h>

#include "storage/kv/drps_kv.h"

enum { DRPS_BLOCKCACHE_NONE = UINT32_MAX };

struct drps_blockcache {
    const struct drps_kv_ops *ops; /* borrowed */
    struct drps_kv *kv;            /* borrowed */
    uint64_t rows, block_rows;
    size_t param_bytes;    /* of a row */
    uint32_t frames, hand; /* hand: where the search for a victim goes on */
    char *data;            /* own: [frames][block_rows][param_bytes] */
    size_t data_bytes;
    uint32_t *frame_of; /* own: [blocks], NONE: not in memory */
    uint32_t *block_of; /* own: [frames], NONE: empty */
    uint64_t *used;     /* own: [frames] the round in which the frame was used last */
    uint64_t round;
    uint64_t reads, read_bytes; /* blocks that the engine was asked for */
};

/* Returns the memory of so many frames. */
uint64_t drps_blockcache_memory(uint64_t rows, uint64_t block_rows, size_t param_bytes,
                                uint64_t frames);

/* rows, block_rows, param_bytes, ops and kv are set. 0 or -ENOMEM; may be destroyed in either case.
 */
int drps_blockcache_init(struct drps_blockcache *c, uint32_t frames);
void drps_blockcache_destroy(struct drps_blockcache *c);

/* Rows ids [n], strictly increasing, into params [n][param_bytes]. */
DRPS_MUST_CHECK
int drps_blockcache_gather(struct drps_blockcache *c, const uint32_t *ids, size_t n, void *params,
                           struct drps_err *err);

#endif
