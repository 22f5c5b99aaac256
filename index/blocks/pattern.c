#include "index/blocks/builder.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"

/* Blocks of `each` rows, the last one of a table shorter. */
static int cut(const struct drps_plan_info *info, uint64_t each, uint32_t **first_out,
               size_t *blocks_out, struct drps_err *err)
{
    size_t blocks = 0;
    *first_out = NULL;
    *blocks_out = 0;
    for (size_t t = 0; t < info->tables_n; t++)
        blocks += (size_t)((info->tables[t].rows + each - 1) / each);
    uint32_t *first = drps_array_new(blocks + 1, sizeof(*first));
    if (!first) return drps_err_set(err, -ENOMEM, "no memory for %zu block boundaries", blocks);
    size_t n = 0;
    for (size_t t = 0; t < info->tables_n; t++)
        for (uint64_t row = 0; row < info->tables[t].rows; row += each)
            first[n++] = (uint32_t)(info->tables[t].first + row);
    first[n] = (uint32_t)info->rows;
    *first_out = first;
    *blocks_out = n;
    return 0;
}

static int build_pattern(const struct drps_plan_info *info, uint32_t **first_out,
                         size_t *blocks_out, struct drps_err *err)
{
    uint64_t each = info->block_bytes / info->row_bytes;
    return cut(info, each ? each : 1, first_out, blocks_out, err);
}

static int build_none(const struct drps_plan_info *info, uint32_t **first_out, size_t *blocks_out,
                      struct drps_err *err)
{
    return cut(info, 1, first_out, blocks_out, err);
}

static const struct block_builder builders[] = {{"pattern", build_pattern}, {"none", build_none}};

const struct block_builder *block_builder_find(const char *name)
{
    for (size_t i = 0; i < sizeof(builders) / sizeof(builders[0]); i++)
        if (strcmp(builders[i].name, name) == 0) return &builders[i];
    return NULL;
}
