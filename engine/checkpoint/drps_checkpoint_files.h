/* The names of a checkpoint's files. */
#ifndef DRPS_ENGINE_CHECKPOINT_FILES_H
#define DRPS_ENGINE_CHECKPOINT_FILES_H

#define DRPS_CHECKPOINT_SUFFIX                                                                     \
    ".checkpoint"                    /* of the model's name: the folder of all checkpoints */
#define DRPS_CHECKPOINT_RANK "rank-" /* in it: the folder of rank R is "rank-R" */

/* In the folder of a rank, beside its checkpoints. */
#define DRPS_CHECKPOINT_LOCK "lock" /* of the run that uses them; it says which process that is */
#define DRPS_CHECKPOINT_BEGUN ".begun" /* of a number: an empty file. A run began anew there */

/* In the folder of one checkpoint, whose name is its number. */
#define DRPS_CHECKPOINT_MANIFEST "checkpoint.json"
#define DRPS_CHECKPOINT_ROWS "rows"       /* folder of parts: 00000.rec, 00001.rec, ... */
#define DRPS_CHECKPOINT_STORE "store"     /* folder of a store that has saved itself, for rows */
#define DRPS_CHECKPOINT_NAMES "names.rec" /* of rank 0: the plan's dictionary */
#define DRPS_CHECKPOINT_HELD "held.rec"   /* gradients that are held back over epochs */
#define DRPS_CHECKPOINT_BEST "best.bin"   /* parameters of the best epoch, as in params.bin */
#define DRPS_CHECKPOINT_VECTORS "vectors.log" /* sufficient vectors that were applied since */

#endif
