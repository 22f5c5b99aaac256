/* How the ranks of a job fared, as JSON: the members "ranks" and "links" of a training. Shared
 * inside engine/. */
#ifndef DRPS_ENGINE_CLUSTER_TRAFFIC_RANKS_JSON_H
#define DRPS_ENGINE_CLUSTER_TRAFFIC_RANKS_JSON_H

#include <jansson.h>

#include "engine/drps_engine.h"

/* Each a new value, NULL when memory is gone. The table of links is null where there is none. */
json_t *drps_ranks_to_json(const struct drps_train_rank *ranks, size_t n);
json_t *drps_links_to_json(const struct drps_train_links *links, size_t ranks);

#endif
