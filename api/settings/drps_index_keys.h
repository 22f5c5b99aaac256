/* The options of drps-index, by name and by key: settings, and what only a command line has. Shared
 * with tools/. */
#ifndef DRPS_API_INDEX_KEYS_H
#define DRPS_API_INDEX_KEYS_H

#include "api/settings/drps_table.h"

enum {
    KEY_ALGO = DRPS_SETTING_KEY,
    KEY_LOSS,
    KEY_OUTPUTS,
    KEY_TASK,
    KEY_FACTORS,
    KEY_RANK, /* of drps-train; here a mistake that is told */
    KEY_NO_BIAS,
    KEY_DENSE,
    KEY_NO_NORMALIZE,
    KEY_WORKERS,
    KEY_SERVERS,
    KEY_SEPARATE,
    KEY_PARTITION,
    KEY_SAMPLES,
    KEY_BATCH_SIZE,
    KEY_TEST,
    KEY_TEST_FRACTION,
    KEY_MEMORY,
    KEY_BLOCKS,
    KEY_BLOCK_BYTES,
    KEY_SEEK,
    KEY_TRANSFER,
    KEY_CALIBRATE,
    KEY_TOP_K,
    KEY_MIN_GAIN,
    KEY_PRUNE,
    KEY_PRUNE_TO,
    KEY_SAMPLE,
    KEY_SHARDS,
    KEY_PEERS,
    KEY_PEER_RANK,
    KEY_KEYS,
    KEY_INSECURE,
    KEY_TIMEOUT,
    KEY_SILENCE,
    KEY_ORDER,
    KEY_GRID,
    KEY_LANES,
    KEY_SEED,
    KEY_HASH_SEED,
    KEY_FORCE,
    KEY_NO_FORECAST,
    KEY_FROM_PLAN,
    KEY_LINK,
    KEY_RESIDUALS,
    KEY_HAND_ON,
    KEY_HAND_ON_FOR,
    KEY_TEST_WEIGHTS,
    KEY_CLASS_WEIGHTS,
    KEY_BASE,
    KEY_REPLAY,
    KEY_POSITIVE_FROM,
    KEY_NEGATIVES,
    KEY_NEGATIVES_PER,
    KEY_NEGATIVE_DRAWS,
    KEY_NEGATIVE_WEIGHT,
    KEY_TEST_NEGATIVES,
    KEY_ALPHA,
};

extern const struct argp_option drps_index_table[]; /* {0}-terminated */

#endif
