#include "index/batcher.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"
#include "index/batch_writer.h"

enum { FIRST_SLOTS = 1 << 12, LARGE_NNZ = 1 << 12 };
#define EMPTY UINT32_MAX

/* A small hash table from id to first-touch number, cleared with every batch: when stamps
 * would take too much memory. */
struct slot {
    uint32_t id;
    uint32_t local;
};

struct batcher {
    size_t batch_size;
    uint64_t memory_bytes; /* that a batch may take while it is built */
    int has_bias;

    /* Of every id: `epoch` and its first-touch number in the batch that touched it last. */
    uint32_t *stamps; /* [stamps_n], or NULL: a hash table instead */
    size_t stamps_n;
    uint32_t epoch; /* larger than all stamps of the batches before; 0 was never touched */
    struct slot *slots;
    size_t slots_n;

    struct gathered batch, handed; /* the one being gathered, and the writer's */
    uint32_t diagonal, lane;       /* of the one being gathered */
    struct batch_writer *writer;
};

static void clear_slots(struct batcher *b)
{
    if (b->slots) memset(b->slots, 0xff, b->slots_n * sizeof(*b->slots));
}

static size_t slot_of(const struct batcher *b, uint32_t id)
{
    return (size_t)((id * 0x9e3779b97f4a7c15u) >> 32) & (b->slots_n - 1);
}

static int grow_slots(struct batcher *b)
{
    struct slot *grown = drps_array_new(b->slots_n * 2, sizeof(*grown));
    if (!grown) return -ENOMEM;
    free(b->slots);
    b->slots = grown;
    b->slots_n *= 2;
    clear_slots(b);
    for (size_t i = b->has_bias ? 1 : 0; i < b->batch.rows_n; i++) {
        size_t at = slot_of(b, b->batch.touched[i]);
        while (b->slots[at].id != EMPTY)
            at = (at + 1) & (b->slots_n - 1);
        b->slots[at] = (struct slot){b->batch.touched[i], (uint32_t)i};
    }
    return 0;
}

/* The first-touch number of an id; there is room for one more. */
static uint32_t touch_slot(struct batcher *b, uint32_t id)
{
    size_t at = slot_of(b, id);
    while (b->slots[at].id != id) {
        if (b->slots[at].id == EMPTY) {
            b->slots[at] = (struct slot){id, (uint32_t)b->batch.rows_n};
            b->batch.touched[b->batch.rows_n] = id;
            return (uint32_t)b->batch.rows_n++;
        }
        at = (at + 1) & (b->slots_n - 1);
    }
    return b->slots[at].local;
}

/* Bytes of all arrays, the writer's too, which double as they grow: numbers and values of entries,
 * also in order and packed; ids and ranks of rows. */
static uint64_t batch_bytes(const struct batcher *b, size_t n)
{
    enum { ENTRY = 3 * 4 + 3, VALUE = 3 * 4, ROW = 4 * 4 + 2 * 8 + 2 * sizeof(struct slot) + 4,
           SAMPLE = 3 * 4 };
    const uint64_t entry = ENTRY + (b->batch.has_values ? VALUE : 0);
    return (b->batch.nnz + n) * entry + (b->batch.rows_n + n) * ROW + b->batch.n * SAMPLE;
}

static int too_large(const struct batcher *b, struct drps_err *err)
{
    return drps_err_set(
        err, DRPS_E_MEMORY_BUDGET,
        "a batch of %zu samples with %zu entries does not fit the memory for building "
        "it: use a --batch-size of %zu or less, or more --memory",
        b->batch.n, b->batch.nnz, b->batch.n > 1 ? b->batch.n / 2 : 1);
}

/* Begin again with small numbers. */
static void restamp(struct batcher *b)
{
    memset(b->stamps, 0, b->stamps_n * sizeof(*b->stamps));
    b->epoch = 1;
    for (size_t i = b->has_bias ? 1 : 0; i < b->batch.rows_n; i++)
        b->stamps[b->batch.touched[i]] = b->epoch + (uint32_t)i;
}

static int make_room(struct batcher *b, size_t n)
{
    while (!b->stamps && (b->batch.rows_n + n + 1) * 2 > b->slots_n)
        if (grow_slots(b)) return -ENOMEM;
    if (b->stamps && b->batch.rows_n + n + 2 > UINT32_MAX - b->epoch) restamp(b);
    if (drps_array_reserve(&b->batch.touched, &b->batch.touched_cap, b->batch.rows_n + n + 2,
                           sizeof(*b->batch.touched)) ||
        drps_array_reserve(&b->batch.labels, &b->batch.label_cap, b->batch.n + 1,
                           sizeof(*b->batch.labels)) ||
        drps_array_reserve(&b->batch.starts, &b->batch.start_cap, b->batch.n + 2,
                           sizeof(*b->batch.starts)) ||
        drps_array_reserve(&b->batch.local, &b->batch.local_cap, b->batch.nnz + n,
                           sizeof(*b->batch.local)))
        return -ENOMEM;
    return 0;
}

static int stamps_fit(const struct batcher_options *o)
{
    return o->ids && o->ids <= o->stamp_bytes / sizeof(uint32_t);
}

int batcher_open(struct drps_recwriter *data, struct drps_recwriter *rows,
                 const struct batcher_options *options, struct batcher **b_out,
                 struct drps_err *err)
{
    *b_out = NULL;
    struct batcher *b = calloc(1, sizeof(*b));
    if (!b) return drps_err_set(err, -ENOMEM, "no memory for batches");
    b->batch_size = options->batch_size;
    b->memory_bytes = options->memory_bytes;
    b->has_bias = options->has_bias;
    b->epoch = options->first_epoch ? options->first_epoch : 1;
    if (stamps_fit(options)) {
        b->stamps_n = (size_t)options->ids;
        b->stamps = drps_pages_new(b->stamps_n * sizeof(*b->stamps));
    } else {
        b->slots_n = FIRST_SLOTS;
        b->slots = drps_array_new(b->slots_n, sizeof(*b->slots));
    }
    if (!b->slots && !b->stamps) {
        batcher_close(b);
        return drps_err_set(err, -ENOMEM, "no memory for batches");
    }
    clear_slots(b);
    int rc = batch_writer_open(data, rows, options->map, b->has_bias, &b->writer, err);
    if (rc < 0) {
        batcher_close(b);
        return rc;
    }
    *b_out = b;
    return 0;
}

void batcher_close(struct batcher *b)
{
    if (!b) return;
    drps_pages_free(b->stamps, b->stamps_n * sizeof(*b->stamps));
    free(b->slots);
    batch_writer_close(b->writer);
    gathered_free(&b->batch);
    gathered_free(&b->handed);
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

/* As touch_slot(), for n ids and into b->batch.local. Whether an id is new can hardly be predicted:
 * no branch. */
static void touch_stamps(struct batcher *b, const uint32_t *ids, uint32_t n)
{
    uint32_t *restrict local = b->batch.local + b->batch.nnz;
    uint32_t *restrict stamps = b->stamps, *restrict touched = b->batch.touched;
    const uint32_t epoch = b->epoch;
    uint32_t next = (uint32_t)b->batch.rows_n;
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t before = stamps[ids[i]] - epoch; /* of an older batch: larger than next */
        const uint32_t number = before < next ? before : next;
        touched[next] = ids[i];
        next += number == next;
        stamps[ids[i]] = epoch + number;
        local[i] = number;
    }
    b->batch.rows_n = next;
}

void batcher_expect(const struct batcher *b, const uint32_t *ids, uint32_t n)
{
    for (uint32_t i = 0; b->stamps && i < n; i++)
        __builtin_prefetch(&b->stamps[ids[i]], 1);
}

/* There is room for two. */
static int leaves_room(const struct batcher *b)
{
    return !b->memory_bytes || batch_bytes(b, 0) <= b->memory_bytes / 4;
}

static void gathered_clear(struct gathered *g)
{
    g->n = g->nnz = g->rows_n = 0;
    g->has_values = 0;
}

static int hand(struct batcher *b, struct drps_err *err)
{
    const int rc = batch_writer_hand(b->writer, &b->batch, err);
    const struct gathered written = b->handed;
    b->handed = b->batch;
    b->batch = written;
    return rc;
}

static void shrink_slots(struct batcher *b)
{
    struct slot *few = b->slots ? realloc(b->slots, FIRST_SLOTS * sizeof(*few)) : NULL;
    if (!few) return; /* there are none, or the old ones stay */
    b->slots = few;
    b->slots_n = FIRST_SLOTS;
}

/* Arrays as large as this batch's would be in the way of the two that come after it. */
static int write_alone(struct batcher *b, struct drps_err *err)
{
    const int rc = batch_writer_write(b->writer, &b->batch, err);
    gathered_free(&b->batch);
    batch_writer_shrink(b->writer);
    shrink_slots(b); /* all clear */
    return rc;
}

static int end_batch(struct batcher *b, struct drps_err *err)
{
    int rc;
    b->batch.diagonal = b->diagonal;
    b->batch.lane = b->lane;
    clear_slots(b);
    b->epoch += (uint32_t)b->batch.rows_n;
    if (!leaves_room(b))
        rc = write_alone(b, err);
    else if (b->batch.nnz >= LARGE_NNZ) /* a thread pays */
        rc = hand(b, err);
    else
        rc = batch_writer_write(b->writer, &b->batch, err);
    gathered_clear(&b->batch);
    return rc;
}

int batcher_add(struct batcher *b, float label, uint32_t n, const uint32_t *ids,
                const float *values, struct drps_err *err)
{
    if (b->batch.nnz + n > UINT32_MAX)
        return drps_err_set(err, DRPS_E_CONFIG,
                            "a batch has more than 2^32 entries: use a smaller --batch-size");
    if (b->memory_bytes && batch_bytes(b, n) > b->memory_bytes / 2) return too_large(b, err);
    if (make_room(b, n))
        return drps_err_set(err, -ENOMEM, "no memory for a batch of %zu samples", b->batch.n);
    if (!b->batch.rows_n && b->has_bias) b->batch.rows_n = 1; /* local index 0 */
    b->batch.starts[b->batch.n] = (uint32_t)b->batch.nnz;
    b->batch.labels[b->batch.n++] = label;
    if (b->stamps)
        touch_stamps(b, ids, n);
    else
        for (uint32_t i = 0; i < n; i++)
            b->batch.local[b->batch.nnz + i] = touch_slot(b, ids[i]);
    if ((values || b->batch.has_values) && keep_values(b, n, values))
        return drps_err_set(err, -ENOMEM, "no memory for a batch of %zu samples", b->batch.n);
    b->batch.nnz += n;
    b->batch.starts[b->batch.n] = (uint32_t)b->batch.nnz;
    return b->batch.n == b->batch_size ? end_batch(b, err) : 0;
}

void batcher_mark(struct batcher *b, uint32_t diagonal, uint32_t lane)
{
    b->diagonal = diagonal;
    b->lane = lane;
}

int batcher_flush(struct batcher *b, struct drps_err *err)
{
    int rc = b->batch.n ? end_batch(b, err) : 0;
    return rc < 0 ? rc : batch_writer_wait(b->writer, err);
}

int batcher_end(struct batcher *b, struct drps_err *err)
{
    return b->batch.n ? end_batch(b, err) : batch_writer_write(b->writer, &b->batch, err);
}

void batcher_maxima(const struct batcher *b, struct drps_plan_info *info)
{
    batch_writer_maxima(b->writer, info);
}
