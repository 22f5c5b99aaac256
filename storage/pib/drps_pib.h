/* What a block store makes of its memory, for those who share memory out. */
#ifndef DRPS_STORAGE_PIB_PIB_H
#define DRPS_STORAGE_PIB_PIB_H

#include <stdint.h>

#include "storage/drps_store.h"

/* Returns the part of a block store's least memory that goes to its engine: caches and buffers. Of
 * config, kv and what engine `file` asks for are used. */
uint64_t drps_pib_engine_least(const struct drps_store_config *config);

#endif
