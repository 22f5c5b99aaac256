/* Samples are gathered into batches (drps_batcher.h), which are handed to a writer. */
#include "index/batches/drps_batcher.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"
#include "index/batches/batch_writer.h"
#include "index/batches/drps_encoder.h"
#include "index/layers/drps_layers.h"

enum { LARGE_NNZ = 1 << 11 };

struct batcher {
    size_t batch_size;
    uint64_t memory_bytes; /* that a batch may take while it is built */
    const uint32_t *map;   /* borrowed, or NULL: ids are rows */

    struct gathered batch;  /* the one being gathered */
    uint32_t stratum, lane; /* of it */
    uint32_t field_count;   /* of all; 0: they have no fields */
    uint32_t numbers;       /* of a sample; 0: they have none */
    uint32_t common;        /* as in the options, and the next one */
    uint32_t sequence;
    struct encoder_ways ways;
    struct batch_writer *writer;
};

/* Bytes of all arrays, the writer's too: of its entries and n more, and of its samples and `more`
 * of them. */
static uint64_t batch_bytes(const struct batcher *b, size_t n, size_t more)
{
    enum {
        ENTRY = 4 + ENCODER_ENTRY_BYTES,
        VALUE = 4 + ENCODER_VALUE_BYTES,
        FIELD = 2 + ENCODER_FIELD_BYTES,
        SAMPLE = 8 + ENCODER_SAMPLE_BYTES,
        WEIGHT = 4,
        NUMBER = 4 + ENCODER_NUMBER_BYTES,
        COMMON = 12 /* in the list, packed or not, and in the fields of rows */
    };
    const uint64_t entry = ENTRY + (b->batch.has_values ? VALUE : 0U) +
                           (b->field_count ? FIELD : 0U) +
                           (b->ways.levels ? ENCODER_LEVEL_BYTES : 0U) +
                           (b->ways.dense ? ENCODER_MATRIX_ENTRY_BYTES : 0U);
    const uint64_t sample = SAMPLE + (b->batch.has_weights ? WEIGHT : 0U) +
                            (b->ways.dense ? ENCODER_MATRIX_SAMPLE_BYTES : 0U);
    const uint64_t numbers = (b->batch.n + more) * (uint64_t)b->numbers * NUMBER;
    return (b->batch.nnz + n) * entry + b->batch.n * sample + numbers +
           (uint64_t)b->common * COMMON;
}

static int too_large(const struct batcher *b, struct drps_err *err)
{
    if (!b->batch.n && b->common > 1)
        return drps_err_set(err, DRPS_E_MEMORY_BUDGET,
                            "a sample and the %u rows of a net, which every batch has, do not fit "
                            "the memory for building a batch: raise the memory limit",
                            b->common);
    if (b->numbers)
        return drps_err_set(err, DRPS_E_MEMORY_BUDGET,
                            "a batch of %zu samples of %u numbers does not fit the memory for "
                            "building it: use batches of %zu samples or less, or raise the memory "
                            "limit",
                            b->batch.n + 1, b->numbers, b->batch.n ? b->batch.n : 1);
    return drps_err_set(
        err, DRPS_E_MEMORY_BUDGET,
        "a batch of %zu samples with %zu entries does not fit the memory for building "
        "it: use batches of %zu samples or less, or raise the memory limit",
        b->batch.n, b->batch.nnz, b->batch.n > 1 ? b->batch.n / 2 : 1);
}

static int make_room(struct batcher *b, size_t n)
{
    struct gathered *g = &b->batch;
    if (drps_array_reserve(&g->labels, &g->label_cap, g->n + 1, sizeof(*g->labels)) ||
        drps_array_reserve(&g->starts, &g->start_cap, g->n + 2, sizeof(*g->starts)) ||
        drps_array_reserve(&g->rows, &g->row_cap, g->nnz + n, sizeof(*g->rows)) ||
        drps_array_reserve(&g->fields, &g->field_cap, b->field_count ? g->nnz + n : 0,
                           sizeof(*g->fields)) ||
        drps_array_reserve(&g->numbers, &g->number_cap, (g->n + 1) * (size_t)b->numbers,
                           sizeof(*g->numbers)))
        return -ENOMEM;
    return 0;
}

int drps_batcher_open(struct drps_recwriter *data, struct drps_recwriter *rows,
                      const struct batcher_options *options, struct batcher **b_out,
                      struct drps_err *err)
{
    *b_out = NULL;
    struct batcher *b = calloc(1, sizeof(*b));
    if (!b) return drps_err_set(err, -ENOMEM, "no memory for batches");
    b->batch_size = options->batch_size;
    b->memory_bytes = options->memory_bytes;
    b->map = options->map;
    b->field_count = options->field_count;
    b->numbers = options->numbers;
    b->common = options->common;
    b->sequence = options->sequence;
    b->ways = options->ways;
    int rc = drps_batch_writer_open(data, rows, options->common, options->ways, options->threads,
                                    &b->writer, err);
    if (rc < 0) {
        drps_batcher_close(b);
        return rc;
    }
    *b_out = b;
    return 0;
}

void drps_batcher_close(struct batcher *b)
{
    if (!b) return;
    drps_batch_writer_close(b->writer);
    drps_gathered_free(&b->batch);
    free(b);
}

/* Values are stored from the first one that is not 1: then the entries before get theirs. */
static int keep_values(struct batcher *b, size_t n, const float *values)
{
    if (drps_array_reserve(&b->batch.values, &b->batch.value_cap, b->batch.nnz + n,
                           sizeof(*b->batch.values)))
        return -ENOMEM;
    for (size_t j = 0; !b->batch.has_values && j < b->batch.nnz; j++)
        b->batch.values[j] = 1;
    for (size_t i = 0; i < n; i++)
        b->batch.values[b->batch.nnz + i] = values ? values[i] : 1.0f;
    b->batch.has_values = 1;
    return 0;
}

/* Weights, too, are stored from the first one that is not 1. */
static int keep_weight(struct gathered *g, float weight)
{
    if (drps_array_reserve(&g->weights, &g->weight_cap, g->n + 1, sizeof(*g->weights)))
        return -ENOMEM;
    for (size_t i = 0; !g->has_weights && i < g->n; i++)
        g->weights[i] = 1;
    g->weights[g->n] = weight;
    g->has_weights = 1;
    return 0;
}

static void add_rows(struct batcher *b, const uint32_t *ids, uint32_t n)
{
    uint32_t *restrict rows = b->batch.rows + b->batch.nnz;
    for (uint32_t i = 0; i < n; i++)
        rows[i] = b->map ? b->map[ids[i]] : ids[i];
}

void drps_batcher_expect(const struct batcher *b, const uint32_t *ids, uint32_t n)
{
    for (uint32_t i = 0; b->map && i < n; i++)
        __builtin_prefetch(&b->map[ids[i]]);
}

/* Returns how many batches like the one being gathered there is memory for beside it. */
static uint64_t room_for(const struct batcher *b)
{
    const uint64_t bytes = batch_bytes(b, 0, 0);
    if (!b->memory_bytes || !bytes) return BATCH_WRITER_HANDED_MOST;
    const uint64_t all = b->memory_bytes / 2 / bytes;
    return all ? all - 1 : 0;
}

static void gathered_clear(struct gathered *g)
{
    g->n = g->nnz = 0;
    g->has_values = g->has_weights = 0;
}

/* Write a batch and release its arrays, which would leave no memory for the two batches after it.
 */
static int write_alone(struct batcher *b, struct drps_err *err)
{
    const int rc = drps_batch_writer_write(b->writer, &b->batch, err);
    drps_gathered_free(&b->batch);
    drps_batch_writer_shrink(b->writer);
    return rc;
}

static int hand(struct batcher *b, uint64_t room, struct drps_err *err)
{
    const int tight = room < BATCH_WRITER_HANDED_MOST;
    return drps_batch_writer_hand(b->writer, &b->batch,
                                  tight ? (size_t)room : BATCH_WRITER_HANDED_MOST, tight, err);
}

static int end_batch(struct batcher *b, struct drps_err *err)
{
    const uint64_t room = room_for(b);
    int rc;
    b->batch.stratum = b->stratum;
    b->batch.lane = b->lane;
    b->batch.field_count = b->field_count;
    b->batch.numbers_each = b->numbers;
    if (!room)
        rc = write_alone(b, err);
    else if (b->batch.nnz + b->batch.n * (size_t)b->numbers >= LARGE_NNZ) /* threads pay */
        rc = hand(b, room, err);
    else
        rc = drps_batch_writer_write(b->writer, &b->batch, err);
    gathered_clear(&b->batch);
    return rc;
}

/* 1: the sample begins a sequence for which the batch may have no room. */
static int begins_next(const struct batcher *b, const struct spool_sample *s)
{
    return b->sequence && b->batch.n && s->n && s->fields[0] == DRPS_SEQUENCE_BEGINS &&
           b->batch.n + b->sequence > b->batch_size;
}

int drps_batcher_add(struct batcher *b, const struct spool_sample *s, struct drps_err *err)
{
    struct gathered *g = &b->batch;
    const int rc = begins_next(b, s) ? end_batch(b, err) : 0;
    if (rc < 0) return rc;
    if (g->nnz + s->n > UINT32_MAX)
        return drps_err_set(err, DRPS_E_CONFIG,
                            "a batch has more than 2^32 entries: use smaller batches");
    if (b->memory_bytes && batch_bytes(b, s->n, 1) > b->memory_bytes / 2) return too_large(b, err);
    if (make_room(b, s->n) || ((s->weight != 1 || g->has_weights) && keep_weight(g, s->weight)) ||
        ((s->values || g->has_values) && keep_values(b, s->n, s->values)))
        return drps_err_set(err, -ENOMEM, "no memory for a batch of %zu samples", g->n);
    if (b->numbers && !drps_spool_numbers(s, b->numbers, g->numbers + g->n * (size_t)b->numbers))
        return drps_err_set(err, DRPS_E_CORRUPT, "a sample has not its %u numbers", b->numbers);
    g->starts[g->n] = (uint32_t)g->nnz;
    g->labels[g->n++] = s->label;
    add_rows(b, s->ids, s->n);
    if (b->field_count && s->n) memcpy(g->fields + g->nnz, s->fields, s->n * sizeof(*s->fields));
    g->nnz += s->n;
    g->starts[g->n] = (uint32_t)g->nnz;
    return g->n == b->batch_size ? end_batch(b, err) : 0;
}

void drps_batcher_mark(struct batcher *b, uint32_t stratum, uint32_t lane)
{
    b->stratum = stratum;
    b->lane = lane;
}

int drps_batcher_flush(struct batcher *b, struct drps_err *err)
{
    int rc = b->batch.n ? end_batch(b, err) : 0;
    return rc < 0 ? rc : drps_batch_writer_wait(b->writer, err);
}

int drps_batcher_end(struct batcher *b, struct drps_err *err)
{
    return b->batch.n ? end_batch(b, err) : drps_batch_writer_write(b->writer, &b->batch, err);
}

void drps_batcher_maxima(const struct batcher *b, struct drps_plan_info *info)
{
    drps_batch_writer_maxima(b->writer, info);
}
