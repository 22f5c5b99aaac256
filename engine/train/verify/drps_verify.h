/* Is a folder of checkpoints whole? Everything in it is read, and its parts are compared. */
#ifndef DRPS_ENGINE_TRAIN_VERIFY_H
#define DRPS_ENGINE_TRAIN_VERIFY_H

#include "base/drps_io.h"
#include "base/folder/drps_findings.h"

/*
 * Check every checkpoint of every rank below `root`, the folder MODEL.checkpoint: manifests, rows
 * or saved stores, the best epoch, the dictionary, each against its checksum; that what the
 * manifest says agrees with them; and that checkpoints of one number are of one cut of one run, and
 * that no rank is missing between two that have some. The plan is not looked at. Memory: a record
 * and an index of at most 65,536 records. `found` gets all problems. DRPS_E_NOT_FOUND: the folder
 * holds no checkpoints. DRPS_E_INTERRUPTED by io->stop.
 */
DRPS_MUST_CHECK
int drps_checkpoints_verify(const struct drps_io *io, const char *root, struct drps_findings *found,
                            struct drps_err *err);

#endif
