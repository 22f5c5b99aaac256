/* The table of all block builders, by name. */
#include "index/blocks/builders/builders.h"

#include <string.h>

/* clang-format off */
static const struct block_builder builders[] = {
    {.name = "none", .single = 1, .build = drps_block_build_none},
    {.name = "pattern", .build = drps_block_build_pattern},
    {.name = "pairwise", .counts = 1, .orders = 1, .merges = 1, .prunes = 1, .build = drps_block_build_greedy},
    {.name = "topk", .counts = 1, .orders = 1, .merges = 1, .prunes = 1, .build = drps_block_build_topk},
    {.name = "greedy", .counts = 1, .orders = 1, .merges = 1, .prunes = 1, .build = drps_block_build_greedy},
    {.name = "auto", .counts = 1, .orders = 1, .merges = 1, .build = drps_block_build_auto},
    {.name = "id", .keys = 1, .orders = 1, .build = drps_block_build_id},
    {.name = "random", .orders = 1, .build = drps_block_build_random},
    {.name = "frequency", .counts = 1, .orders = 1, .build = drps_block_build_frequency},
};
/* clang-format on */

const struct block_builder *drps_block_builder_find(const char *name)
{
    for (size_t i = 0; i < sizeof(builders) / sizeof(builders[0]); i++)
        if (strcmp(builders[i].name, name) == 0) return &builders[i];
    return NULL;
}
