#include "index/blocks/builder.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"

/* Blocks of `each` rows, the last one of a table shorter. */
static int cut(const struct block_tables *tables, uint32_t each, struct block_layout *out,
               struct drps_err *err)
{
    const uint32_t rows = tables->first[tables->n];
    size_t blocks = 0;

    *out = (struct block_layout){0};
    for (size_t t = 0; t < tables->n; t++)
        blocks += (size_t)(((uint64_t)tables->first[t + 1] - tables->first[t] + each - 1) / each);
    out->first = drps_array_new(blocks + 1, sizeof(*out->first));
    if (!out->first)
        return drps_err_set(err, -ENOMEM, "no memory for %zu block boundaries", blocks);
    for (size_t t = 0; t < tables->n; t++)
        for (uint64_t row = tables->first[t]; row < tables->first[t + 1]; row += each)
            out->first[out->blocks++] = (uint32_t)row;
    out->first[out->blocks] = rows;
    return 0;
}

static int build_pattern(struct tally *tally, const struct block_tables *tables,
                         const struct block_options *options, struct block_layout *layout_out,
                         struct drps_err *err)
{
    (void)tally;
    return cut(tables, options->max_rows, layout_out, err);
}

static int build_none(struct tally *tally, const struct block_tables *tables,
                      const struct block_options *options, struct block_layout *layout_out,
                      struct drps_err *err)
{
    (void)tally;
    (void)options;
    return cut(tables, 1, layout_out, err);
}

void block_layout_free(struct block_layout *layout)
{
    free(layout->order);
    free(layout->first);
    *layout = (struct block_layout){0};
}

static const struct block_builder builders[] = {{"pattern", 0, build_pattern},
                                                {"none", 0, build_none}};

const struct block_builder *block_builder_find(const char *name)
{
    for (size_t i = 0; i < sizeof(builders) / sizeof(builders[0]); i++)
        if (strcmp(builders[i].name, name) == 0) return &builders[i];
    return NULL;
}
