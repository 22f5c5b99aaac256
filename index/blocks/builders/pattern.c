/* Builders that leave every row where it is. */
#include "index/blocks/builders/builders.h"

#include <errno.h>
#include <stdlib.h>

#include "base/drps_alloc.h"

int drps_block_cut(const struct block_tables *tables, uint32_t each, struct block_layout *out,
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

int drps_block_build_pattern(struct counts *counts, const struct block_tables *tables,
                             const struct block_options *options, struct block_layout *layout_out,
                             struct drps_err *err)
{
    (void)counts;
    return drps_block_cut(tables, options->max_rows, layout_out, err);
}

int drps_block_build_none(struct counts *counts, const struct block_tables *tables,
                          const struct block_options *options, struct block_layout *layout_out,
                          struct drps_err *err)
{
    (void)counts;
    (void)options;
    return drps_block_cut(tables, 1, layout_out, err);
}
