#include "support/vector_rounds.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_rng.h"

size_t vector_rounds_bytes(const struct vector_rounds *v)
{
    return (size_t)v->shape.rows * v->shape.row_bytes;
}

const char *vector_rounds_after(const struct vector_rounds *v, uint64_t round)
{
    if (round < v->first || round > v->last) abort();
    return v->after[round - v->first];
}

static void remember(struct vector_rounds *v)
{
    char **at = &v->after[v->last - v->first];
    if (v->last - v->first >= ROUNDS_MOST) abort();
    *at = malloc(vector_rounds_bytes(v) + 1);
    if (!*at) abort();
    memcpy(*at, v->matrix, vector_rounds_bytes(v));
}

void vector_rounds_begin(struct vector_rounds *v, uint32_t rows, uint32_t dim, uint32_t samples,
                         uint32_t nnz, uint64_t first)
{
    *v = (struct vector_rounds){.shape = {rows, 2 * dim * sizeof(float), dim},
                                .samples = samples,
                                .nnz = nnz,
                                .seed = 1,
                                .first = first,
                                .last = first,
                                .matrix = calloc((size_t)rows * 2 * dim + 1, sizeof(float))};
    if (!v->matrix) abort();
    float *values = (void *)v->matrix;
    for (size_t i = 0; i < (size_t)rows * 2 * dim; i++)
        values[i] = drps_unit_float(drps_rng_at(9, i));
    remember(v);
}

static void free_batches(struct vector_rounds *v)
{
    for (uint32_t b = 0; b < v->round.n; b++)
        own_vectors_free(&v->own[b]);
    v->round.n = 0;
}

void vector_rounds_end(struct vector_rounds *v)
{
    free_batches(v);
    for (uint64_t r = v->first; r <= v->last; r++)
        free(v->after[r - v->first]);
    free(v->matrix);
}

void vector_rounds_go_back(struct vector_rounds *v, uint64_t round)
{
    for (; v->last > round; v->last--)
        free(v->after[v->last - v->first]);
    memcpy(v->matrix, vector_rounds_after(v, round), vector_rounds_bytes(v));
    v->seed++;
}

void vector_rounds_next(struct vector_rounds *v)
{
    free_batches(v);
    v->last++;
    for (uint32_t b = 0; b < ROUND_BATCHES; b++) {
        v->own[b] = random_vectors(drps_rng_at(v->seed, v->last * ROUND_BATCHES + b), v->samples,
                                   v->shape.dim, (uint32_t)v->shape.rows, v->nnz);
        v->batches[b] = v->own[b].v;
        v->sources[b] = (b + 1) % ROUND_BATCHES;
    }
    v->round = (struct drps_vector_round){
        .number = v->last, .n = ROUND_BATCHES, .batches = v->batches, .sources = v->sources};
    if (vector_rounds_apply(v, &v->round, v->matrix, NULL) < 0) abort();
    remember(v);
}

/* The order of batches and samples matters to the last bit. */
static void apply_batch(const struct drps_vectors *b, uint32_t source, char *matrix,
                        size_t row_bytes)
{
    for (uint32_t i = 0; i < b->n; i++)
        for (uint32_t e = b->first[i]; e < b->first[i + 1]; e++) {
            float *row = (void *)(matrix + b->ids[e] * row_bytes), *sums = row + b->dim;
            for (uint32_t k = 0; k < b->dim; k++) {
                const float g = b->values[e] * b->u[i * b->dim + k];
                sums[k] += g * g;
                row[k] -= .1f / (1 + (float)source) * g / (sqrtf(sums[k]) + 1e-6f);
            }
        }
}

int vector_rounds_apply(void *ctx, const struct drps_vector_round *round, void *matrix,
                        struct drps_err *err)
{
    const struct vector_rounds *v = ctx;
    (void)err;
    for (uint32_t b = 0; b < round->n; b++)
        apply_batch(&round->batches[b], round->sources[b], matrix, v->shape.row_bytes);
    return 0;
}
