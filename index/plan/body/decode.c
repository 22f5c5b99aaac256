/* A plain body record becomes a batch that points into it, once all of it was checked. */
#include <float.h>
#include <string.h>

#include "index/plan/body/body.h"

static int indices_fit(const struct drps_batch *b)
{
    uint32_t most = b->local16 ? body_largest(b->local16, b->nnz) : 0;
    for (size_t j = 0; b->local32 && j < b->nnz; j++)
        most = b->local32[j] > most ? b->local32[j] : most;
    return !b->nnz || most < b->rows;
}

/* Whoever adds weights up relies on it. */
static int weights_fit(const struct drps_batch *b)
{
    int fit = 1;
    for (size_t s = 0; b->weights && s < b->samples; s++)
        fit &= b->weights[s] > 0 && b->weights[s] <= FLT_MAX;
    return fit;
}

static int fields_fit(const struct drps_batch *b)
{
    return !b->fields || !b->nnz || body_largest(b->fields, b->nnz) < b->field_count;
}

static int starts_fit(const struct drps_batch *b)
{
    if (!b->starts) return b->samples * b->per_sample == b->nnz;
    if (b->starts[0] != 0 || b->starts[b->samples] != b->nnz) return 0;
    for (size_t s = 0; s < b->samples; s++)
        if (b->starts[s] > b->starts[s + 1]) return 0;
    return 1;
}

/* See struct drps_batch. The encoder puts a sample's entries into the order of their rows. */
static uint32_t dense_of(const struct drps_batch *b)
{
    const size_t n = b->per_sample;
    if (b->starts || !b->values || !b->local16 || b->fields || !n || b->rows < n || b->rows > n + 1)
        return 0;
    const uint16_t first = (uint16_t)(b->rows - n);
    unsigned differ = 0;
    for (size_t s = 0; s < b->samples && !differ; s++) {
        const uint16_t *local = b->local16 + s * n;
        for (size_t k = 0; k < n; k++)
            differ |= local[k] ^ (uint16_t)(first + k);
    }
    return differ ? 0 : first + 1u;
}

/* A step that hands rows over does nothing else, and in one direction. */
static int hand_over_fits(const struct drps_batch *b)
{
    const uint32_t hands = b->hand_over & BODY_HANDS;
    if (!b->hand_over) return 1;
    return (hands == DRPS_DEPARTS || hands == DRPS_ARRIVES) && b->rows && !b->samples && !b->nnz &&
           !b->stratum;
}

/* Point b to the fields of a plain body. */
static int take_fields(const char *data, size_t bytes, size_t *at, struct drps_batch *b)
{
    const char *head = body_section(data, bytes, at, BODY_FIELDS_HEAD, 1);
    if (!head || drps_get_u32(head + 4) != BODY_FIELDS_OF_ENTRIES) return 0;
    b->field_count = drps_get_u32(head);
    b->fields = body_section(data, bytes, at, b->nnz, sizeof(*b->fields));
    return b->fields && b->field_count && b->field_count <= BODY_FIELDS_MOST;
}

static int take_numbers(const char *data, size_t bytes, int checked, size_t *at,
                        struct drps_batch *b)
{
    const size_t used =
        drps_dense_decode(data + *at, bytes - *at, b->samples, checked, &b->numbers);
    *at += used;
    return used != 0;
}

/* Take the head, Returns its flags. */
static uint32_t take_head(const char *data, struct drps_batch *b)
{
    const uint32_t flags = drps_get_u32(data + BODY_FLAGS_AT);
    memset(b, 0, sizeof(*b));
    b->samples = drps_get_u32(data);
    b->rows = drps_get_u32(data + 4);
    b->nnz = drps_get_u64(data + 8);
    b->per_sample = drps_get_u32(data + 20);
    b->stratum = drps_get_u32(data + BODY_DIAGONAL_AT);
    b->lane = drps_get_u32(data + BODY_DIAGONAL_AT + 4);
    b->hand_over = flags & BODY_HAND_FLAGS;
    return flags;
}

static int check_head(const struct drps_batch *b, uint32_t flags, struct drps_err *err)
{
    if (flags & ~(uint32_t)(BODY_FLAGS | BODY_HAND_FLAGS))
        return drps_err_set(err, DRPS_E_CORRUPT, "a batch has flags that are not known (%#x)",
                            flags);
    if (flags & DRPS_BATCH_NUMBERS && flags & DRPS_BATCH_FIELDS)
        return drps_err_set(err, DRPS_E_CORRUPT,
                            "a batch has numbers by place, and entries with fields");
    if (b->lane >= DRPS_BATCH_LANES || (b->lane && !b->stratum))
        return drps_err_set(err, DRPS_E_CORRUPT, "a batch is in lane %u of stratum %u", b->lane,
                            b->stratum);
    if (hand_over_fits(b)) return 0;
    return drps_err_set(err, DRPS_E_CORRUPT,
                        "a step that hands %zu rows over (flags %#x) with %zu samples", b->rows,
                        flags, b->samples);
}

/* Point b to the sections behind the head, as the flags say. Returns where they end; 0: they leave
 * the record. */
static size_t take_sections(const char *data, size_t bytes, uint32_t flags, int checked,
                            struct drps_batch *b)
{
    size_t at = DRPS_BATCH_HEAD_BYTES;
    b->labels = body_section(data, bytes, &at, b->samples, sizeof(*b->labels));
    int whole = b->labels != NULL;
    if (whole && flags & DRPS_BATCH_WEIGHTS)
        whole =
            (b->weights = body_section(data, bytes, &at, b->samples, sizeof(*b->weights))) != NULL;
    if (whole && !(flags & DRPS_BATCH_UNIFORM))
        whole = (b->starts = body_section(data, bytes, &at, b->samples + 1, sizeof(*b->starts))) !=
                NULL;
    if (whole && flags & DRPS_BATCH_VALUES)
        whole = (b->values = body_section(data, bytes, &at, b->nnz, sizeof(*b->values))) != NULL;
    if (whole && flags & DRPS_BATCH_FIELDS) whole = take_fields(data, bytes, &at, b);
    if (whole && flags & DRPS_BATCH_WIDE)
        whole = (b->local32 = body_section(data, bytes, &at, b->nnz, sizeof(*b->local32))) != NULL;
    else if (whole)
        whole = (b->local16 = body_section(data, bytes, &at, b->nnz, sizeof(*b->local16))) != NULL;
    if (whole && flags & DRPS_BATCH_NUMBERS) whole = take_numbers(data, bytes, checked, &at, b);
    return whole ? at : 0;
}

/* `checked`: its indices, fields and numbers are in range. */
static int decode(const void *record, size_t bytes, int checked, struct drps_batch *b,
                  struct drps_err *err)
{
    if (bytes < DRPS_BATCH_HEAD_BYTES) {
        memset(b, 0, sizeof(*b));
        return drps_err_set(err, DRPS_E_CORRUPT, "a batch of %zu bytes has no head", bytes);
    }
    const uint32_t flags = take_head(record, b);
    const int rc = check_head(b, flags, err);
    if (rc < 0) return rc;
    const size_t end = take_sections(record, bytes, flags, checked, b);
    if (end && !weights_fit(b))
        return drps_err_set(err, DRPS_E_CORRUPT,
                            "a batch has a weight that is no finite number above 0");
    if (end == bytes && starts_fit(b) && (checked || (indices_fit(b) && fields_fit(b)))) {
        b->dense = dense_of(b);
        return 0;
    }
    return drps_err_set(
        err, DRPS_E_CORRUPT,
        "a batch of %zu bytes does not hold its %zu samples with %zu entries over %zu rows", bytes,
        b->samples, b->nnz, b->rows);
}

int drps_batch_decode(const void *record, size_t bytes, struct drps_batch *b, struct drps_err *err)
{
    return decode(record, bytes, 0, b, err);
}

int drps_batch_decode_unpacked(const void *plain, size_t bytes, struct drps_batch *b,
                               struct drps_err *err)
{
    return decode(plain, bytes, 1, b, err);
}
