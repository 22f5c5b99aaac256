/* What the files of this folder share. */
#ifndef DRPS_ENGINE_CHECKPOINT_INTERNAL_H
#define DRPS_ENGINE_CHECKPOINT_INTERNAL_H

#include "engine/checkpoint/drps_checkpoint.h"
#include "engine/checkpoint/drps_checkpoint_files.h"

extern const struct drps_stage_kind drps_checkpoint_kind;

/* The folder of checkpoint `number`, in a new string (free() it); NULL when memory is gone. */
char *drps_checkpoint_name(const struct drps_checkpoints *c, uint64_t number);

/* Remove the folder of the rank, and the root, if they are empty. */
void drps_checkpoints_remove_folders(const struct drps_checkpoints *c);

/* Let go of the folder of the rank, if it is locked, and remove the lock's file. */
void drps_checkpoints_unlock(struct drps_checkpoints *c);

#endif
