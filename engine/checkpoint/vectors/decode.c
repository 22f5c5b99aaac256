/* Bytes as rounds. They may be anybody's: every number is bounded before it is used. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"
#include "base/drps_endian.h"
#include "engine/checkpoint/vectors/payload.h"

struct payload_round {
    struct drps_matrix_shape shape;
    struct drps_vector_round round;
    struct drps_vectors *batches; /* own, as the next */
    uint32_t *sources;
    size_t batches_cap, sources_cap;
    uint32_t **numbers; /* own [numbers_n]: first and ids of a batch of dense x */
    size_t numbers_n, numbers_cap;
};

/* What is left of a payload. */
struct rest {
    const unsigned char *at;
    size_t bytes;
};

/* The next n values of 4 bytes; NULL: there are not so many. */
static const void *take(struct rest *r, uint64_t n)
{
    const unsigned char *at = r->at;
    if (n > r->bytes / 4) return NULL;
    r->at += n * 4;
    r->bytes -= (size_t)n * 4;
    return at;
}

static int too_short(struct drps_err *err)
{
    return drps_err_set(err, DRPS_E_CORRUPT, "a round ends within a batch");
}

static int no_memory(struct drps_err *err)
{
    return drps_err_set(err, -ENOMEM, "no memory for a round of vectors");
}

struct payload_round *payload_round_new(const struct drps_matrix_shape *shape)
{
    struct payload_round *p = calloc(1, sizeof(*p));
    if (p) p->shape = *shape;
    return p;
}

static void forget_numbers(struct payload_round *p)
{
    while (p->numbers_n)
        free(p->numbers[--p->numbers_n]);
}

void payload_round_free(struct payload_round *p)
{
    if (!p) return;
    forget_numbers(p);
    free(p->numbers);
    free(p->batches);
    free(p->sources);
    free(p);
}

/* ---- Vectors ---- */

/* Where samples begin, and which rows they name, of a batch whose x name all of them. */
static int number_all(struct payload_round *p, struct drps_vectors *v, size_t entries,
                      struct drps_err *err)
{
    const uint32_t rows = (uint32_t)p->shape.rows;
    if (drps_array_reserve(&p->numbers, &p->numbers_cap, p->numbers_n + 1, sizeof(*p->numbers)))
        return no_memory(err);
    uint32_t *first = drps_array_new((size_t)v->n + 1 + entries, sizeof(*first)), *ids;
    if (!first) return no_memory(err);
    p->numbers[p->numbers_n++] = first;
    ids = first + v->n + 1;
    for (uint32_t i = 0; i <= v->n; i++)
        first[i] = i * rows;
    for (size_t e = 0; e < entries; e++)
        ids[e] = (uint32_t)(e % rows);
    v->first = first;
    v->ids = ids;
    return 0;
}

static int check_numbers(const struct payload_round *p, const struct drps_vectors *v,
                         uint32_t entries, struct drps_err *err)
{
    int ok = v->first[0] == 0 && v->first[v->n] == entries;
    for (uint32_t i = 0; i < v->n && ok; i++)
        ok = v->first[i] <= v->first[i + 1] && v->first[i + 1] <= entries;
    if (!ok) return drps_err_set(err, DRPS_E_CORRUPT, "a batch has samples that do not fit it");
    for (uint32_t i = 0; i < v->n; i++)
        for (uint32_t e = v->first[i]; e < v->first[i + 1]; e++)
            if (v->ids[e] >= p->shape.rows || (e > v->first[i] && v->ids[e] <= v->ids[e - 1]))
                return drps_err_set(err, DRPS_E_CORRUPT,
                                    "a sample names row %u of %llu, out of order or beyond them",
                                    v->ids[e], (unsigned long long)p->shape.rows);
    return 0;
}

static int get_batch(struct payload_round *p, struct rest *r, struct drps_vectors *v,
                     uint32_t *source, struct drps_err *err)
{
    const unsigned char *head = take(r, BATCH_HEAD_BYTES / 4);
    int rc = 0;
    if (!head) return too_short(err);
    const uint32_t n = drps_get_u32(head + 4), entries = drps_get_u32(head + 8);
    const uint32_t dense = drps_get_u32(head + 12);
    *source = drps_get_u32(head);
    *v = (struct drps_vectors){.n = n, .dim = p->shape.dim};
    if (dense > 1 || (dense && entries != n * p->shape.rows))
        return drps_err_set(err, DRPS_E_CORRUPT, "a batch of %u samples has %u values", n, entries);
    v->u = take(r, (uint64_t)n * v->dim);
    if (v->u && !dense) {
        v->first = take(r, (uint64_t)n + 1);
        v->ids = take(r, entries);
    }
    v->values = take(r, entries);
    if (!v->u || !v->values || (!dense && (!v->first || !v->ids))) return too_short(err);
    if (dense)
        rc = number_all(p, v, entries, err);
    else
        rc = check_numbers(p, v, entries, err);
    return rc;
}

int payload_get_vectors(struct payload_round *p, uint64_t number, const void *payload, size_t bytes,
                        const struct drps_vector_round **round_out, struct drps_err *err)
{
    struct rest r = {payload, bytes};
    const unsigned char *head = take(&r, ROUND_HEAD_BYTES / 4);
    int rc = 0;
    *round_out = NULL;
    forget_numbers(p);
    if (!head || drps_get_u32(head) > r.bytes / BATCH_HEAD_BYTES) return too_short(err);
    const uint32_t n = drps_get_u32(head);
    if (drps_array_reserve(&p->batches, &p->batches_cap, n, sizeof(*p->batches)) ||
        drps_array_reserve(&p->sources, &p->sources_cap, n, sizeof(*p->sources)))
        return no_memory(err);
    for (uint32_t b = 0; b < n && rc == 0; b++)
        rc = get_batch(p, &r, &p->batches[b], &p->sources[b], err);
    if (rc == 0 && r.bytes)
        rc = drps_err_set(err, DRPS_E_CORRUPT, "a round has %zu bytes too many", r.bytes);
    p->round = (struct drps_vector_round){
        .number = number, .n = n, .batches = p->batches, .sources = p->sources};
    if (rc == 0) *round_out = &p->round;
    return rc;
}

/* ---- Rows ---- */

static int check_rows(const struct drps_matrix_shape *shape, const uint32_t *numbers, uint32_t n,
                      struct drps_err *err)
{
    for (uint32_t i = 0; i < n; i++)
        if (numbers[i] >= shape->rows || (i && numbers[i] <= numbers[i - 1]))
            return drps_err_set(err, DRPS_E_CORRUPT,
                                "a round has row %u of %llu, out of order or beyond them",
                                numbers[i], (unsigned long long)shape->rows);
    return 0;
}

int payload_get_rows(const struct drps_matrix_shape *shape, const void *payload, size_t bytes,
                     void *matrix, struct drps_err *err)
{
    struct rest r = {payload, bytes};
    const unsigned char *head = take(&r, ROWS_HEAD_BYTES / 4);
    const uint32_t n = head ? drps_get_u32(head) : 0;
    const int all = n == shape->rows;
    const uint32_t *numbers = head && !all ? take(&r, n) : NULL;
    char *to = matrix;
    if (!head || (!all && !numbers) || n > shape->rows || r.bytes != (uint64_t)n * shape->row_bytes)
        return drps_err_set(err, DRPS_E_CORRUPT, "a round of %u rows has %zu bytes", n, bytes);
    int rc = all ? 0 : check_rows(shape, numbers, n, err);
    for (uint32_t i = 0; i < n && rc == 0 && to; i++)
        memcpy(to + (size_t)(all ? i : numbers[i]) * shape->row_bytes,
               r.at + (size_t)i * shape->row_bytes, shape->row_bytes);
    return rc;
}
