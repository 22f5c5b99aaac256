#include "index/blocks/builders.h"

#include <stdlib.h>
#include <string.h>

static const struct block_builder builders[] = {
#define BLOCK_BUILDER_ENTRY(name, counts) {#name, counts, block_build_##name},
    BLOCK_BUILDERS(BLOCK_BUILDER_ENTRY)
#undef BLOCK_BUILDER_ENTRY
};

const struct block_builder *block_builder_find(const char *name)
{
    for (size_t i = 0; i < sizeof(builders) / sizeof(builders[0]); i++)
        if (strcmp(builders[i].name, name) == 0) return &builders[i];
    return NULL;
}

void block_layout_free(struct block_layout *layout)
{
    free(layout->order);
    free(layout->first);
    *layout = (struct block_layout){0};
}
