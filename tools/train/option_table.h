/* The options of drps-train, by name and by key. Private to tools/train/. */
#ifndef DRPS_TOOLS_TRAIN_OPTION_TABLE_H
#define DRPS_TOOLS_TRAIN_OPTION_TABLE_H

#include "tools/drps_cli.h"

enum {
    KEY_EPOCHS = DRPS_CLI_KEY,
    KEY_LR,
    KEY_L1,
    KEY_L2,
    KEY_EPS,
    KEY_OPTIMIZER,
    KEY_MEMORY_PAIRS,
    KEY_TOLERANCE,
    KEY_STORE,
    KEY_MEMORY,
    KEY_THREADS,
    KEY_LOCAL_STEPS,
    KEY_ONE_BY_ONE,
    KEY_PATIENCE,
    KEY_SEED,
    KEY_INIT_SCALE,
    KEY_MODEL_STORE,
    KEY_NO_KEEP,
    KEY_PREFETCH,
    KEY_EVICT,
    KEY_LOCAL,
    KEY_TRANSPORT,
    KEY_RANK,
    KEY_PEERS,
    KEY_KEYS,
    KEY_MAKE_KEYS,
    KEY_INSECURE,
    KEY_TIMEOUT,
    KEY_SILENCE,
    KEY_SYNC,
    KEY_STALENESS,
    KEY_NO_CLAIM,
    KEY_NO_OVERLAP,
    KEY_NO_FRESH,
    KEY_NO_HAND_ON,
    KEY_EMULATE,
    KEY_FORCE,
    KEY_PUBLISH,
    KEY_RESUME,
    KEY_CHECKPOINT_EVERY,
    KEY_CHECKPOINT_DIR,
    KEY_CHECKPOINT_ROWS,
    KEY_KEEP_CHECKPOINTS,
    KEY_FROM,
    KEY_ON_FAILURE,
    KEY_PUSH_VALUES,
    KEY_PUSH_FILTER,
    KEY_PUSH_TOP,
    KEY_PULL_VALUES,
    KEY_PULL_FILTER,
    KEY_PULL_CACHED,
};

extern const struct argp_option train_option_table[]; /* {0}-terminated */

#endif
