/* Lays out batches for a device. */
#include "engine/step/device/batch.h"

#include <string.h>

#include "engine/step/device/transpose.h"

enum { ALIGN = 16, ARRAYS = 15 };

/* Hands out the same piece of both memories. */
struct layout {
    char *host, *device;
    size_t used;
};

struct place {
    void *host;
    const void *device; /* NULL where the host's is */
};

static struct place take(struct layout *l, size_t bytes)
{
    const size_t at = l->used;
    l->used += (bytes + ALIGN - 1) / ALIGN * ALIGN;
    return (struct place){l->host + at, l->device + at};
}

/* An array that may be NULL. */
static const void *put(struct layout *l, const void *array, size_t bytes)
{
    if (!array) return NULL;
    const struct place p = take(l, bytes);
    memcpy(p.host, array, bytes);
    return p.device;
}

static struct place take_if(struct layout *l, int is_wanted, size_t bytes)
{
    return is_wanted ? take(l, bytes) : (struct place){0};
}

static void put_transposed(struct layout *l, const struct drps_batch *b, int pairs,
                           struct drps_device_batch *out)
{
    const size_t n = b->nnz, words = n * sizeof(uint32_t);
    const struct place ends = take(l, (b->rows + 2) * sizeof(uint32_t)), samples = take(l, words);
    const struct place entries = take_if(l, pairs, words);
    const struct place values = take_if(l, b->values != NULL, n * sizeof(float));
    const struct place pieces =
        take(l, transposed_pieces_most(n) * sizeof(struct drps_device_piece));
    const struct place longs =
        take(l, transposed_long_most(n) * sizeof(struct drps_device_long_row));
    struct transposed t = {.ends = ends.host,
                           .samples = samples.host,
                           .entries = entries.host,
                           .values = values.host,
                           .pieces = pieces.host,
                           .long_rows = longs.host};
    transpose(b, &t);
    out->ends = ends.device;
    out->of_samples = samples.device;
    out->of_entries = entries.device;
    out->of_values = values.device;
    out->pieces = pieces.device;
    out->long_rows = longs.device;
    out->n_pieces = t.n_pieces;
    out->n_long = t.n_long;
}

/* 1: the fields of each sample increase. */
static int has_order(const struct drps_batch *b)
{
    for (size_t s = 0; s < b->samples; s++) {
        const size_t end = drps_batch_start(b, s + 1);
        for (size_t j = drps_batch_start(b, s) + 1; j < end; j++)
            if (b->fields[j] <= b->fields[j - 1]) return 0;
    }
    return 1;
}

/* Numbers by place, as they are: floats, or bytes and their levels. */
static void put_numbers(struct layout *l, const struct drps_batch *b, struct drps_device_batch *out)
{
    const struct drps_dense *d = &b->numbers;
    const size_t n = b->samples * d->each;
    out->each = d->each;
    if (!n) return;
    out->numbers = put(l, d->floats, n * sizeof(float));
    if (d->floats) return;
    out->numbers8 = put(l, d->bytes, n);
    out->levels = put(l, d->levels, d->levels_n * sizeof(float));
}

size_t device_batch_lay_out(const struct drps_batch *b, int trains, int pairs, char *host,
                            char *device, struct drps_device_batch *out)
{
    struct layout l = {host, device, 0};
    const size_t n = b->samples, nnz = b->nnz;
    *out = (struct drps_device_batch){.samples = (uint32_t)n,
                                      .rows = (uint32_t)b->rows,
                                      .entries = (uint32_t)nnz,
                                      .per_sample = b->per_sample};
    out->labels = put(&l, b->labels, n * sizeof(float));
    out->weights = put(&l, b->weights, n * sizeof(float));
    out->starts = put(&l, b->starts, (n + 1) * sizeof(uint32_t));
    out->local16 = put(&l, b->local16, nnz * sizeof(uint16_t));
    out->local32 = b->local16 ? NULL : put(&l, b->local32, nnz * sizeof(uint32_t));
    out->values = put(&l, b->values, nnz * sizeof(float));
    if (pairs) out->fields = put(&l, b->fields, nnz * sizeof(uint16_t));
    out->has_order = out->fields && has_order(b);
    put_numbers(&l, b, out);
    if (trains) put_transposed(&l, b, pairs, out);
    return l.used;
}

uint64_t device_batch_most(const struct drps_plan_info *info)
{
    const uint64_t n = info->max_batch_samples, nnz = info->max_batch_nnz;
    const uint64_t numbers = info->numbers ? info->field_count : 0;
    const uint64_t of_sample = (2 + numbers) * sizeof(float) + sizeof(uint32_t);
    const uint64_t of_entry = 3 * sizeof(uint32_t) + 2 * sizeof(float) + sizeof(uint16_t);
    const uint64_t levels = numbers ? DRPS_DENSE_LEVELS * sizeof(float) : 0;
    return n * of_sample + levels + sizeof(uint32_t) + nnz * of_entry +
           (info->max_batch_rows + 2) * sizeof(uint32_t) +
           transposed_pieces_most(nnz) * sizeof(struct drps_device_piece) +
           transposed_long_most(nnz) * sizeof(struct drps_device_long_row) +
           (uint64_t)ARRAYS * ALIGN;
}

static const void *moved(const void *at, const char *from, const char *to)
{
    return at ? to + ((const char *)at - from) : NULL;
}

void device_batch_move(struct drps_device_batch *b, const char *from, const char *to)
{
    b->labels = moved(b->labels, from, to);
    b->weights = moved(b->weights, from, to);
    b->starts = moved(b->starts, from, to);
    b->local16 = moved(b->local16, from, to);
    b->local32 = moved(b->local32, from, to);
    b->values = moved(b->values, from, to);
    b->fields = moved(b->fields, from, to);
    b->numbers = moved(b->numbers, from, to);
    b->numbers8 = moved(b->numbers8, from, to);
    b->levels = moved(b->levels, from, to);
    b->ends = moved(b->ends, from, to);
    b->of_samples = moved(b->of_samples, from, to);
    b->of_entries = moved(b->of_entries, from, to);
    b->of_values = moved(b->of_values, from, to);
    b->pieces = moved(b->pieces, from, to);
    b->long_rows = moved(b->long_rows, from, to);
}
