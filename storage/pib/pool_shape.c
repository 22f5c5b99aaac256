/*
 * How many rows to a unit, and how many units and entries for so much memory. An entry costs as
 * much as some rows of a small model, so there are fewer entries than units where blocks have many
 * units: twice as many as blocks of mean size would take, as those in use may be smaller.
 */
#include "storage/pib/drps_pool.h"

enum {
    UNIT_BYTES = sizeof(uint32_t), /* beside a unit's rows */
    ENTRY_BYTES = sizeof(struct drps_pool_entry) + sizeof(uint32_t),
    UNIT_SHIFT_MOST = 16,
};

struct blocks {
    const uint32_t *first; /* [n + 1] */
    size_t n;
    size_t row_bytes;
    unsigned shift;
    uint64_t units; /* of all together */
};

static uint64_t units_of(const struct blocks *b, unsigned shift)
{
    const uint32_t up = (1u << shift) - 1;
    uint64_t units = 0;
    for (size_t i = 0; i < b->n; i++)
        units += (uint64_t)(b->first[i + 1] - b->first[i] + up) >> shift;
    return units;
}

/* The size at which all blocks together take least. */
static void choose_unit(struct blocks *b)
{
    uint64_t least = UINT64_MAX;
    for (unsigned shift = 0; shift <= UNIT_SHIFT_MOST; shift++) {
        const uint64_t units = units_of(b, shift);
        const uint64_t bytes = units * (((uint64_t)b->row_bytes << shift) + UNIT_BYTES);
        if (bytes < least) {
            least = bytes;
            b->shift = shift;
            b->units = units;
        }
        if (units == b->n) break; /* a unit a block: larger ones only waste */
    }
}

uint32_t drps_pool_unit_rows_for(const uint32_t *block_first, size_t blocks, size_t row_bytes)
{
    struct blocks b = {.first = block_first, .n = blocks, .row_bytes = row_bytes};
    choose_unit(&b);
    return 1u << b.shift;
}

static uint64_t least_of(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t frames_for(const struct blocks *b, uint64_t units, uint64_t step_blocks)
{
    const uint64_t twice = 2 * units * b->n / b->units + 1;
    return least_of(least_of(twice > step_blocks ? twice : step_blocks, units), b->n);
}

static uint64_t bytes_for(const struct blocks *b, uint64_t units, uint64_t step_blocks)
{
    const uint64_t entry = ENTRY_BYTES + drps_evict_bytes(1, 0, 1) - drps_evict_bytes(0, 0, 1);
    return units * (((uint64_t)b->row_bytes << b->shift) + UNIT_BYTES) +
           frames_for(b, units, step_blocks) * entry;
}

/* Units that any step's blocks fit in. */
static uint64_t step_units(const struct blocks *b, const struct drps_step_size *step)
{
    const uint64_t up = (UINT64_C(1) << b->shift) - 1;
    if (!step->blocks || !step->block_rows) {
        const uint64_t each = (drps_pool_max_rows(b->first, b->n) + up) >> b->shift;
        return least_of(each * (step->blocks ? step->blocks : 1), b->units);
    }
    return least_of((step->block_rows + step->blocks * up) >> b->shift, b->units);
}

void drps_pool_shape(const uint32_t *block_first, size_t blocks, size_t row_bytes,
                     const struct drps_step_size *step, uint64_t bytes, struct drps_pool_shape *out)
{
    struct blocks b = {.first = block_first, .n = blocks, .row_bytes = row_bytes};
    choose_unit(&b);
    const uint64_t all = least_of(b.units, UINT32_MAX >> b.shift); /* frames have 32-bit numbers */
    uint64_t fits = 0, beyond = all + 1;                           /* units */
    while (beyond - fits > 1) {
        const uint64_t middle = fits + (beyond - fits) / 2;
        if (bytes_for(&b, middle, step->blocks) <= bytes)
            fits = middle;
        else
            beyond = middle;
    }
    const uint64_t least = step_units(&b, step);
    *out = (struct drps_pool_shape){
        .unit_rows = 1u << b.shift,
        .units = (uint32_t)fits,
        .entries = (uint32_t)frames_for(&b, fits, step->blocks),
        .least_bytes = bytes_for(&b, least, step->blocks),
        .most_bytes = bytes_for(&b, all, step->blocks),
    };
}
