/* The rows that are used most (kept.h). */
#include "index/blocks/builders/kept.h"

uint32_t drps_kept_rows(const uint32_t *sorted, uint32_t rows, const struct block_options *o)
{
    const double least = o->min_count * o->sample;
    uint32_t n = 0;
    while (n < rows && sorted[rows - 1 - n] >= least)
        n++;
    return o->keep_rows && o->keep_rows < n ? o->keep_rows : n;
}

void drps_kept_limit(const uint32_t *sorted, uint32_t rows, const struct block_options *options,
                     struct kept_limit *out)
{
    const uint32_t n = drps_kept_rows(sorted, rows, options);
    *out = (struct kept_limit){.above = UINT32_MAX};
    if (!n) return;
    out->above = sorted[rows - n];
    for (uint32_t i = rows - n; i < rows && sorted[i] == out->above; i++)
        out->equal++;
}
