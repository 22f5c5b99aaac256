/* The files that plan.json lists, with their sizes and checksums. Private to index/plan/manifest/.
 */
#ifndef DRPS_INDEX_PLAN_MANIFEST_FILES_H
#define DRPS_INDEX_PLAN_MANIFEST_FILES_H

#include <jansson.h>

#include "index/plan/drps_plan.h"

/* Append what plan.json says of each file of dir to `list`; *id_out becomes a hash of all of them.
 */
DRPS_MUST_CHECK
int drps_plan_list_files(const struct drps_io *io, const char *dir,
                         const struct drps_plan_info *info, json_t *list, uint64_t *id_out,
                         struct drps_err *err);

#endif
