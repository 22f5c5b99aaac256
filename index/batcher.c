#include "index/batcher.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"
#include "base/drps_endian.h"
#include "index/drps_batch.h"
#include "index/extsort.h"

enum { FIRST_SLOTS = 1 << 12, NARROW_ROWS = 65536 };
#define EMPTY UINT32_MAX

/* A small hash table from id to first-touch number, cleared with every batch: when stamps
 * would take too much memory. */
struct slot {
    uint32_t id;
    uint32_t local;
};

struct batcher {
    struct drps_recwriter *data, *rows;
    size_t batch_size;
    uint64_t memory_bytes; /* that a batch may take while it is built */
    int has_bias;

    /* Of every id: `epoch` and its first-touch number in the batch that touched it last. */
    uint32_t *stamps; /* [stamps_n], or NULL: a hash table instead */
    size_t stamps_n;
    uint32_t epoch; /* larger than all stamps of the batches before; 0 was never touched */
    struct slot *slots;
    size_t slots_n;

    const uint32_t *map; /* borrowed: placed ids by id, or NULL: they are the same */
    uint32_t *touched;   /* [rows_n] ids in order of first touch; an intercept's is not valid */
    size_t rows_n, touched_cap;
    uint64_t *pairs, *aux; /* placed id << 32 | first-touch number */
    uint32_t *sorted, *rank;
    size_t pairs_cap, aux_cap, sorted_cap, rank_cap;

    float *labels;
    uint32_t *starts;
    size_t n, label_cap, start_cap;
    uint32_t *local; /* [nnz] first-touch numbers */
    float *values;   /* [nnz] */
    size_t nnz, local_cap, value_cap;
    int has_values;
    unsigned char *list; /* packed rows */
    size_t list_cap;

    uint64_t max_samples, max_rows, max_nnz, max_body;
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
    for (size_t i = b->has_bias ? 1 : 0; i < b->rows_n; i++) {
        size_t at = slot_of(b, b->touched[i]);
        while (b->slots[at].id != EMPTY)
            at = (at + 1) & (b->slots_n - 1);
        b->slots[at] = (struct slot){b->touched[i], (uint32_t)i};
    }
    return 0;
}

/* The first-touch number of an id; there is room for one more. */
static uint32_t touch_slot(struct batcher *b, uint32_t id)
{
    size_t at = slot_of(b, id);
    while (b->slots[at].id != id) {
        if (b->slots[at].id == EMPTY) {
            b->slots[at] = (struct slot){id, (uint32_t)b->rows_n};
            b->touched[b->rows_n] = id;
            return (uint32_t)b->rows_n++;
        }
        at = (at + 1) & (b->slots_n - 1);
    }
    return b->slots[at].local;
}

/* Bytes of all arrays, which double as they grow: numbers and values of entries, ids and ranks of
 * rows. */
static uint64_t batch_bytes(const struct batcher *b, size_t n)
{
    enum { ENTRY = 8, ROW = 3 * 4 + 2 * 8 + 2 * sizeof(struct slot) + 4, SAMPLE = 8 };
    return (b->nnz + n) * ENTRY + (b->rows_n + n) * ROW + b->n * SAMPLE;
}

static int too_large(const struct batcher *b, struct drps_err *err)
{
    return drps_err_set(
        err, DRPS_E_MEMORY_BUDGET,
        "a batch of %zu samples with %zu entries does not fit the memory for building "
        "it: use a --batch-size of %zu or less, or more --memory",
        b->n, b->nnz, b->n > 1 ? b->n / 2 : 1);
}

/* Begin again with small numbers. */
static void restamp(struct batcher *b)
{
    memset(b->stamps, 0, b->stamps_n * sizeof(*b->stamps));
    b->epoch = 1;
    for (size_t i = b->has_bias ? 1 : 0; i < b->rows_n; i++)
        b->stamps[b->touched[i]] = b->epoch + (uint32_t)i;
}

static int make_room(struct batcher *b, size_t n)
{
    while (!b->stamps && (b->rows_n + n + 1) * 2 > b->slots_n)
        if (grow_slots(b)) return -ENOMEM;
    if (b->stamps && b->rows_n + n + 2 > UINT32_MAX - b->epoch) restamp(b);
    if (drps_array_reserve(&b->touched, &b->touched_cap, b->rows_n + n + 2, sizeof(*b->touched)) ||
        drps_array_reserve(&b->labels, &b->label_cap, b->n + 1, sizeof(*b->labels)) ||
        drps_array_reserve(&b->starts, &b->start_cap, b->n + 2, sizeof(*b->starts)) ||
        drps_array_reserve(&b->local, &b->local_cap, b->nnz + n, sizeof(*b->local)))
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
    b->data = data;
    b->rows = rows;
    b->batch_size = options->batch_size;
    b->memory_bytes = options->memory_bytes;
    b->has_bias = options->has_bias;
    b->map = options->map;
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
    *b_out = b;
    return 0;
}

void batcher_close(struct batcher *b)
{
    if (!b) return;
    drps_pages_free(b->stamps, b->stamps_n * sizeof(*b->stamps));
    free(b->slots);
    free(b->touched);
    free(b->pairs);
    free(b->aux);
    free(b->sorted);
    free(b->rank);
    free(b->labels);
    free(b->starts);
    free(b->local);
    free(b->values);
    free(b->list);
    free(b);
}

/* Values are stored from the first one that is not 1: then the entries before get theirs. */
static int keep_values(struct batcher *b, size_t n, const float *values)
{
    if (drps_array_reserve(&b->values, &b->value_cap, b->nnz + n, sizeof(*b->values)))
        return -ENOMEM;
    for (size_t j = 0; !b->has_values && j < b->nnz; j++)
        b->values[j] = 1;
    for (size_t i = 0; i < n; i++)
        b->values[b->nnz + i] = values ? values[i] : 1.0f;
    b->has_values = 1;
    return 0;
}

/* As touch_slot(), for n ids and into b->local. Whether an id is new can hardly be predicted: no
 * branch. */
static void touch_stamps(struct batcher *b, const uint32_t *ids, uint32_t n)
{
    uint32_t *restrict local = b->local + b->nnz;
    uint32_t *restrict stamps = b->stamps, *restrict touched = b->touched;
    const uint32_t epoch = b->epoch;
    uint32_t next = (uint32_t)b->rows_n;
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t before = stamps[ids[i]] - epoch; /* of an older batch: larger than next */
        const uint32_t number = before < next ? before : next;
        touched[next] = ids[i];
        next += number == next;
        stamps[ids[i]] = epoch + number;
        local[i] = number;
    }
    b->rows_n = next;
}

void batcher_expect(const struct batcher *b, const uint32_t *ids, uint32_t n)
{
    for (uint32_t i = 0; b->stamps && i < n; i++)
        __builtin_prefetch(&b->stamps[ids[i]], 1);
}

int batcher_add(struct batcher *b, float label, uint32_t n, const uint32_t *ids,
                const float *values, struct drps_err *err)
{
    if (b->nnz + n > UINT32_MAX)
        return drps_err_set(err, DRPS_E_CONFIG,
                            "a batch has more than 2^32 entries: use a smaller --batch-size");
    if (b->memory_bytes && batch_bytes(b, n) > b->memory_bytes / 2) return too_large(b, err);
    if (make_room(b, n))
        return drps_err_set(err, -ENOMEM, "no memory for a batch of %zu samples", b->n);
    if (!b->rows_n && b->has_bias) b->rows_n = 1; /* local index 0 */
    b->starts[b->n] = (uint32_t)b->nnz;
    b->labels[b->n++] = label;
    if (b->stamps)
        touch_stamps(b, ids, n);
    else
        for (uint32_t i = 0; i < n; i++)
            b->local[b->nnz + i] = touch_slot(b, ids[i]);
    if ((values || b->has_values) && keep_values(b, n, values))
        return drps_err_set(err, -ENOMEM, "no memory for a batch of %zu samples", b->n);
    b->nnz += n;
    b->starts[b->n] = (uint32_t)b->nnz;
    return b->n == b->batch_size ? batcher_flush(b, err) : 0;
}

/* Sort the rows: b->sorted, and b->rank of each first-touch number. */
static int rank_rows(struct batcher *b, struct drps_err *err)
{
    const size_t n = b->rows_n;
    if (drps_array_reserve(&b->pairs, &b->pairs_cap, n, sizeof(*b->pairs)) ||
        drps_array_reserve(&b->aux, &b->aux_cap, n, sizeof(*b->aux)) ||
        drps_array_reserve(&b->sorted, &b->sorted_cap, n, sizeof(*b->sorted)) ||
        drps_array_reserve(&b->rank, &b->rank_cap, n, sizeof(*b->rank)) ||
        drps_array_reserve(&b->list, &b->list_cap, drps_list_encode_bound(n), 1))
        return drps_err_set(err, -ENOMEM, "no memory for a batch of %zu rows", n);
    for (size_t i = 0; i < n; i++) {
        const uint32_t row = i == 0 && b->has_bias ? 0
                             : b->map              ? b->map[b->touched[i]]
                                                   : b->touched[i];
        b->pairs[i] = (uint64_t)row << 32 | i;
    }
    sort_keyed(b->pairs, b->aux, n);
    for (size_t i = 0; i < n; i++) {
        b->sorted[i] = (uint32_t)(b->pairs[i] >> 32);
        b->rank[(uint32_t)b->pairs[i]] = (uint32_t)i;
    }
    return 0;
}

/* Replace first-touch numbers by ranks; in place, as 16 bits where they fit. */
static void relabel(struct batcher *b, struct drps_batch *out)
{
    const uint32_t *rank = b->rank;
    if (b->rows_n > NARROW_ROWS) {
        for (size_t j = 0; j < b->nnz; j++)
            b->local[j] = rank[b->local[j]];
        out->local32 = b->local;
        return;
    }
    uint16_t *narrow =
        (uint16_t *)(void *)b->local; /* entry j is read before bytes 2j, 2j + 1 are written */
    for (size_t j = 0; j < b->nnz; j++) {
        uint16_t r = (uint16_t)rank[b->local[j]];
        memcpy(narrow + j, &r, sizeof(r));
    }
    out->local16 = narrow;
}

static int is_uniform(const struct batcher *b)
{
    uint32_t each = b->starts[1];
    for (size_t s = 1; s <= b->n; s++)
        if (b->starts[s] != s * each) return 0;
    return 1;
}

static void raise(uint64_t *max, uint64_t value)
{
    if (value > *max) *max = value;
}

int batcher_flush(struct batcher *b, struct drps_err *err)
{
    struct drps_batch_pieces body;
    struct drps_batch batch = {
        .samples = b->n, .rows = b->rows_n, .nnz = b->nnz, .labels = b->labels};

    if (!b->n) return 0;
    int rc = rank_rows(b, err);
    if (rc < 0) return rc;
    relabel(b, &batch);
    if (is_uniform(b))
        batch.per_sample = b->starts[1];
    else
        batch.starts = b->starts;
    if (b->has_values) batch.values = b->values;
    drps_batch_encode(&batch, &body);
    rc = drps_recwriter_add(b->data, body.pieces, body.n, err);
    struct drps_piece list = {b->list, drps_list_encode(b->sorted, b->rows_n, b->list)};
    if (rc == 0) rc = drps_recwriter_add(b->rows, &list, 1, err);
    size_t body_bytes = 0;
    for (size_t i = 0; i < body.n; i++)
        body_bytes += body.pieces[i].bytes;
    raise(&b->max_samples, b->n);
    raise(&b->max_rows, b->rows_n);
    raise(&b->max_nnz, b->nnz);
    raise(&b->max_body, body_bytes);
    clear_slots(b);
    b->epoch += (uint32_t)b->rows_n;
    b->n = b->nnz = b->rows_n = 0;
    b->has_values = 0;
    return rc;
}

static int write_empty(struct batcher *b, struct drps_err *err)
{
    static const float none[1];
    static const uint16_t nothing[1];
    const struct drps_batch batch = {.labels = none, .local16 = nothing};
    struct drps_batch_pieces body;
    unsigned char list[16];
    drps_batch_encode(&batch, &body);
    int rc = drps_recwriter_add(b->data, body.pieces, body.n, err);
    const struct drps_piece rows = {list, drps_list_encode(NULL, 0, list)};
    return rc < 0 ? rc : drps_recwriter_add(b->rows, &rows, 1, err);
}

int batcher_end(struct batcher *b, struct drps_err *err)
{
    return b->n ? batcher_flush(b, err) : write_empty(b, err);
}

void batcher_maxima(const struct batcher *b, struct drps_plan_info *info)
{
    raise(&info->max_batch_samples, b->max_samples);
    raise(&info->max_batch_rows, b->max_rows);
    raise(&info->max_batch_nnz, b->max_nnz);
    raise(&info->max_body_bytes, b->max_body);
}
