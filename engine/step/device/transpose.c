/* Sorts a batch's entries by row, by counting. */
#include "engine/step/device/transpose.h"

#include <string.h>

/* ends[r + 2] counts the entries of row r; then ends[r + 1] is where they begin, and, once each is
 * placed, where they end. */
static void count_entries(const struct drps_batch *b, uint32_t *ends)
{
    memset(ends, 0, (b->rows + 2) * sizeof(*ends));
    if (b->local32)
        for (size_t j = 0; j < b->nnz; j++)
            ends[b->local32[j] + 2]++;
    else
        for (size_t j = 0; j < b->nnz; j++)
            ends[b->local16[j] + 2]++;
    for (size_t r = 2; r < b->rows + 2; r++)
        ends[r] += ends[r - 1];
}

static void place_entries(const struct drps_batch *b, struct transposed *t)
{
    for (size_t s = 0; s < b->samples; s++) {
        const size_t end = drps_batch_start(b, s + 1);
        for (size_t j = drps_batch_start(b, s); j < end; j++) {
            const uint32_t at = t->ends[drps_batch_local(b, j) + 1]++;
            t->samples[at] = (uint32_t)s;
            if (t->entries) t->entries[at] = (uint32_t)j;
            if (t->values) t->values[at] = b->values[j];
        }
    }
}

static void cut_row(struct transposed *t, uint32_t row, uint32_t first, uint32_t last)
{
    struct drps_device_long_row *all = &t->long_rows[t->n_long++];
    *all = (struct drps_device_long_row){.row = row, .first = t->n_pieces};
    for (; first < last; first += DRPS_DEVICE_PIECE) {
        const uint32_t left = last - first;
        t->pieces[t->n_pieces++] = (struct drps_device_piece){
            row, first, first + (left < DRPS_DEVICE_PIECE ? left : DRPS_DEVICE_PIECE)};
    }
    all->count = t->n_pieces - all->first;
}

void transpose(const struct drps_batch *b, struct transposed *t)
{
    count_entries(b, t->ends);
    place_entries(b, t);
    t->n_pieces = t->n_long = 0;
    for (size_t r = 0; r < b->rows; r++)
        if (t->ends[r + 1] - t->ends[r] > DRPS_DEVICE_LONG)
            cut_row(t, (uint32_t)r, t->ends[r], t->ends[r + 1]);
}
