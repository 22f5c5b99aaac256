#include "index/bodies.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"

enum { NARROW_ROWS = 65536 };

static int reserve(struct bodies *w, const struct drps_batch *b)
{
    const size_t values = b->values ? b->nnz : 0;
    return drps_array_reserve(&w->first, &w->first_cap, b->rows + 1, sizeof(*w->first)) ||
           drps_array_reserve(&w->sample, &w->sample_cap, b->nnz, sizeof(*w->sample)) ||
           drps_array_reserve(&w->value, &w->value_cap, values, sizeof(*w->value)) ||
           drps_array_reserve(&w->next, &w->next_cap, b->samples, sizeof(*w->next)) ||
           drps_array_reserve(&w->local, &w->local_cap, b->nnz, sizeof(*w->local)) ||
           drps_array_reserve(&w->values, &w->values_cap, values, sizeof(*w->values)) ||
           drps_array_reserve(&w->packed, &w->packed_cap, drps_batch_pack_bound(b), 1);
}

/* w->first: where each row's entries begin when all are by row. */
static void count_rows(struct bodies *w, const struct drps_batch *b, const uint32_t *local)
{
    uint32_t *restrict first = w->first;
    memset(first, 0, (b->rows + 1) * sizeof(*first));
    for (size_t j = 0; j < b->nnz; j++)
        first[local[j] + 1]++;
    for (size_t r = 1; r <= b->rows; r++)
        first[r] += first[r - 1];
}

/* Samples and values by row; first[r] is then the end of row r's. */
static void deal_to_rows(struct bodies *w, const struct drps_batch *b, const uint32_t *local)
{
    uint32_t *restrict first = w->first, *restrict sample = w->sample;
    for (size_t s = 0; s < b->samples; s++) {
        const size_t end = drps_batch_start(b, s + 1);
        for (size_t j = drps_batch_start(b, s); j < end; j++) {
            const uint32_t at = first[local[j]]++;
            sample[at] = (uint32_t)s;
            if (b->values) w->value[at] = b->values[j];
        }
    }
}

/* Row after row, to the samples: each gets its entries in the order of the rows. */
static void deal_to_samples(struct bodies *w, const struct drps_batch *b)
{
    uint32_t *restrict next = w->next, *restrict local = w->local;
    for (size_t s = 0; s < b->samples; s++)
        next[s] = (uint32_t)drps_batch_start(b, s);
    size_t i = 0;
    for (size_t r = 0; r < b->rows; r++)
        for (; i < w->first[r]; i++) {
            const uint32_t at = next[w->sample[i]]++;
            local[at] = (uint32_t)r;
            if (b->values) w->values[at] = w->value[i];
        }
}

/* w->local as 16 bits, in place. */
static const uint16_t *narrow(struct bodies *w, size_t n)
{
    uint16_t *out = (uint16_t *)(void *)w->local; /* entry j is read before bytes 2j, 2j + 1 are
                                                     written */
    for (size_t j = 0; j < n; j++) {
        const uint16_t r = (uint16_t)w->local[j];
        memcpy(out + j, &r, sizeof(r));
    }
    return out;
}

static uint64_t bytes_of(const struct drps_batch_pieces *p)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < p->n; i++)
        sum += p->pieces[i].bytes;
    return sum;
}

int bodies_encode(struct bodies *w, const struct drps_batch *b, const uint32_t *local,
                  struct drps_batch_pieces *out, struct drps_err *err)
{
    struct drps_batch sorted = *b;
    struct drps_batch_pieces packed;
    if (reserve(w, b))
        return drps_err_set(err, -ENOMEM, "no memory for a batch of %zu entries", b->nnz);
    count_rows(w, b, local);
    deal_to_rows(w, b, local);
    deal_to_samples(w, b);
    sorted.values = b->values ? w->values : NULL;
    sorted.local16 = b->rows > NARROW_ROWS ? NULL : narrow(w, b->nnz);
    sorted.local32 = sorted.local16 ? NULL : w->local;
    drps_batch_encode(&sorted, out);
    const uint64_t bytes = bytes_of(out);
    if (bytes > w->max_bytes) w->max_bytes = bytes;
    if (!sorted.local16) return 0;
    drps_batch_pack(&sorted, w->packed, &packed);
    if (bytes_of(&packed) >= bytes) return 0;
    *out = packed;
    out->pieces[0].data = out->head; /* its own copy */
    return 0;
}

void bodies_end(struct bodies *w)
{
    free(w->first);
    free(w->sample);
    free(w->value);
    free(w->next);
    free(w->local);
    free(w->values);
    free(w->packed);
    *w = (struct bodies){0};
}
