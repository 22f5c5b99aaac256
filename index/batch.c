/* Body records: see drps_batch.h. Layout: head, labels, starts unless uniform, values if any, local
 * indices. */
#include <inttypes.h>
#include <string.h>

#include "base/drps_endian.h"
#include "index/drps_batch.h"

/* Head, 32 bytes: samples u32 | rows u32 | nnz u64 | flags u32 | per_sample u32 | zero u64. */
enum { FLAGS = DRPS_BATCH_WIDE | DRPS_BATCH_VALUES | DRPS_BATCH_UNIFORM };

static void add_piece(struct drps_batch_pieces *out, const void *data, size_t bytes)
{
    static const char zeros[8];
    out->pieces[out->n++] = (struct drps_piece){data, bytes};
    size_t pad = drps_align_up(bytes, 8) - bytes;
    if (pad) out->pieces[out->n++] = (struct drps_piece){zeros, pad};
}

void drps_batch_encode(const struct drps_batch *b, struct drps_batch_pieces *out)
{
    uint32_t flags = (b->local32 ? DRPS_BATCH_WIDE : 0u) | (b->values ? DRPS_BATCH_VALUES : 0u) |
                     (b->starts ? 0u : DRPS_BATCH_UNIFORM);
    memset(out, 0, sizeof(*out));
    drps_put_u32(out->head, (uint32_t)b->samples);
    drps_put_u32(out->head + 4, (uint32_t)b->rows);
    drps_put_u64(out->head + 8, b->nnz);
    drps_put_u32(out->head + 16, flags);
    drps_put_u32(out->head + 20, b->per_sample);
    add_piece(out, out->head, DRPS_BATCH_HEAD_BYTES);
    add_piece(out, b->labels, b->samples * sizeof(*b->labels));
    if (b->starts) add_piece(out, b->starts, (b->samples + 1) * sizeof(*b->starts));
    if (b->values) add_piece(out, b->values, b->nnz * sizeof(*b->values));
    if (b->local32)
        add_piece(out, b->local32, b->nnz * sizeof(*b->local32));
    else
        add_piece(out, b->local16, b->nnz * sizeof(*b->local16));
}

/* The next section of a record, or NULL when it would leave it. */
static const void *section(const char *record, size_t bytes, size_t *at, uint64_t n, size_t size)
{
    if (n > bytes / size || drps_align_up((size_t)n * size, 8) > bytes - *at) return NULL;
    const char *start = record + *at;
    *at += drps_align_up((size_t)n * size, 8);
    return start;
}

static int indices_fit(const struct drps_batch *b)
{
    uint32_t most = 0;
    for (size_t j = 0; b->local16 && j < b->nnz; j++)
        most = b->local16[j] > most ? b->local16[j] : most;
    for (size_t j = 0; b->local32 && j < b->nnz; j++)
        most = b->local32[j] > most ? b->local32[j] : most;
    return !b->nnz || most < b->rows;
}

static int starts_fit(const struct drps_batch *b)
{
    if (!b->starts) return b->samples * b->per_sample == b->nnz;
    if (b->starts[0] != 0 || b->starts[b->samples] != b->nnz) return 0;
    for (size_t s = 0; s < b->samples; s++)
        if (b->starts[s] > b->starts[s + 1]) return 0;
    return 1;
}

int drps_batch_decode(const void *record, size_t bytes, struct drps_batch *b, struct drps_err *err)
{
    const char *data = record;
    size_t at = DRPS_BATCH_HEAD_BYTES;

    memset(b, 0, sizeof(*b));
    if (bytes < DRPS_BATCH_HEAD_BYTES)
        return drps_err_set(err, DRPS_E_CORRUPT, "a batch of %zu bytes has no head", bytes);
    uint32_t flags = drps_get_u32(data + 16);
    b->samples = drps_get_u32(data);
    b->rows = drps_get_u32(data + 4);
    b->nnz = drps_get_u64(data + 8);
    b->per_sample = drps_get_u32(data + 20);
    if (flags & ~(uint32_t)FLAGS || drps_get_u64(data + 24))
        return drps_err_set(err, DRPS_E_CORRUPT, "a batch has flags that are not known (%#x)",
                            flags);
    b->labels = section(data, bytes, &at, b->samples, sizeof(*b->labels));
    int whole = b->labels != NULL;
    if (whole && !(flags & DRPS_BATCH_UNIFORM))
        whole = (b->starts = section(data, bytes, &at, b->samples + 1, sizeof(*b->starts))) != NULL;
    if (whole && flags & DRPS_BATCH_VALUES)
        whole = (b->values = section(data, bytes, &at, b->nnz, sizeof(*b->values))) != NULL;
    if (whole && flags & DRPS_BATCH_WIDE)
        whole = (b->local32 = section(data, bytes, &at, b->nnz, sizeof(*b->local32))) != NULL;
    else if (whole)
        whole = (b->local16 = section(data, bytes, &at, b->nnz, sizeof(*b->local16))) != NULL;
    if (whole && at == bytes && starts_fit(b) && indices_fit(b)) return 0;
    return drps_err_set(
        err, DRPS_E_CORRUPT,
        "a batch of %zu bytes does not hold its %zu samples with %zu entries over %zu rows", bytes,
        b->samples, b->nnz, b->rows);
}
