/* Pages in an order that ignores what is accessed together: what merging is compared with. */
#include "index/blocks/builders/builders.h"

#include <errno.h>
#include <stdlib.h>

#include "base/drps_alloc.h"
#include "base/drps_rng.h"
#include "index/blocks/counts/drps_counts.h"

struct key {
    uint64_t key; /* rows of a table lie by it, then by number */
    uint32_t row;
};

static int before(const void *a, const void *b)
{
    const struct key *x = a;
    const struct key *y = b;
    if (x->key != y->key) return x->key < y->key ? -1 : 1;
    return (x->row > y->row) - (x->row < y->row);
}

/* Make pages of rows sorted by keys[row].key within each table. Frees the keys. */
static int cut_sorted(struct key *keys, const struct block_tables *tables, uint32_t each,
                      struct block_layout *out, struct drps_err *err)
{
    const uint32_t rows = tables->first[tables->n];
    int rc = drps_block_cut(tables, each, out, err);
    if (rc == 0) out->order = drps_array_new(rows, sizeof(*out->order));
    if (rc == 0 && !out->order) rc = drps_err_set(err, -ENOMEM, "no memory for the order of rows");
    for (size_t t = 0; t < tables->n && rc == 0; t++)
        qsort(keys + tables->first[t], tables->first[t + 1] - tables->first[t], sizeof(*keys),
              before);
    for (uint32_t i = 0; i < rows && rc == 0; i++)
        out->order[i] = keys[i].row;
    free(keys);
    return rc;
}

static struct key *new_keys(uint32_t rows, struct drps_err *err)
{
    struct key *keys = drps_array_new(rows, sizeof(*keys));
    if (!keys) (void)drps_err_set(err, -ENOMEM, "no memory to sort %u rows", rows);
    for (uint32_t r = 0; keys && r < rows; r++)
        keys[r].row = r;
    return keys;
}

int drps_block_build_id(struct counts *counts, const struct block_tables *tables,
                        const struct block_options *options, struct block_layout *layout_out,
                        struct drps_err *err)
{
    const uint32_t rows = tables->first[tables->n];
    struct key *keys = new_keys(rows, err);
    (void)counts;
    if (!keys) return -ENOMEM;
    for (uint32_t i = 0; i < rows; i++)
        keys[options->by_key[i]].key = i;
    return cut_sorted(keys, tables, options->max_rows, layout_out, err);
}

int drps_block_build_random(struct counts *counts, const struct block_tables *tables,
                            const struct block_options *options, struct block_layout *layout_out,
                            struct drps_err *err)
{
    const uint32_t rows = tables->first[tables->n];
    struct key *keys = new_keys(rows, err);
    (void)counts;
    if (!keys) return -ENOMEM;
    for (uint32_t r = 0; r < rows; r++)
        keys[r].key = drps_rng_at(options->seed, r);
    return cut_sorted(keys, tables, options->max_rows, layout_out, err);
}

int drps_block_build_frequency(struct counts *counts, const struct block_tables *tables,
                               const struct block_options *options, struct block_layout *layout_out,
                               struct drps_err *err)
{
    const uint32_t rows = tables->first[tables->n];
    uint32_t *count = drps_array_new(rows, sizeof(*count));
    int rc = count ? 0 : drps_err_set(err, -ENOMEM, "no memory to sort %u rows", rows);
    if (rc == 0) rc = counts->ops->counts(counts, count, err);
    struct key *keys = rc == 0 ? new_keys(rows, err) : NULL;
    for (uint32_t r = 0; keys && r < rows; r++)
        keys[r].key = UINT32_MAX - count[r];
    free(count);
    if (!keys) return rc < 0 ? rc : -ENOMEM;
    return cut_sorted(keys, tables, options->max_rows, layout_out, err);
}
