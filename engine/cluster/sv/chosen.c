/* The part of a batch that is sent. */
#include "engine/cluster/sv/chosen.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"
#include "index/plan/codec/drps_list.h"

/* ---- Opening ---- */

int chosen_open(struct chosen *c, const struct drps_plan_info *info,
                const struct drps_select_options *options, uint64_t model_rows,
                struct drps_err *err)
{
    const size_t samples = (size_t)info->max_batch_samples, rows = (size_t)info->max_batch_rows;
    const size_t entries = (size_t)info->max_batch_nnz + samples; /* with the intercept's */
    *c = (struct chosen){
        .options = *options, .dim = info->dim, .has_bias = drps_plan_common_rows(info) > 0};
    if (samples > DRPS_SELECT_VECTORS_MOST)
        return drps_err_set(err, DRPS_E_CONFIG,
                            "batches of %zu samples: vectors are chosen of at most %d", samples,
                            DRPS_SELECT_VECTORS_MOST);
    c->slopes = drps_array_new(samples, info->dim * sizeof(*c->slopes));
    c->first = drps_array_new(samples + 1, sizeof(*c->first));
    c->starts = drps_array_new(samples + 1, sizeof(*c->starts));
    c->ids = drps_array_new(entries, sizeof(*c->ids));
    c->values = drps_array_new(entries, sizeof(*c->values));
    c->labels = drps_array_new(samples, sizeof(*c->labels));
    c->u = drps_array_new(samples, info->dim * sizeof(*c->u));
    c->picks = drps_array_new(samples, sizeof(*c->picks));
    c->local = drps_array_new(rows > entries ? rows : entries, sizeof(*c->local));
    c->rows = drps_array_new(rows, sizeof(*c->rows));
    c->narrow = drps_array_new(entries, sizeof(*c->narrow));
    if (options->rule == DRPS_SELECT_PROJECT) {
        c->error = drps_array_new((size_t)model_rows, info->dim * sizeof(*c->error));
        if (!c->error) return drps_err_set(err, -ENOMEM, "no memory to project vectors");
        memset(c->error, 0, (size_t)model_rows * info->dim * sizeof(*c->error));
    }
    if (!c->slopes || !c->first || !c->starts || !c->ids || !c->values || !c->labels || !c->u ||
        !c->picks || !c->local || !c->rows || !c->narrow)
        return drps_err_set(err, -ENOMEM, "no memory to choose vectors");
    return 0;
}

void chosen_close(struct chosen *c)
{
    void *const own[] = {c->slopes, c->first,   c->starts, c->ids,   c->values,
                         c->labels, c->u,       c->picks,  c->local, c->rows,
                         c->narrow, c->scratch, c->packed, c->room,  c->error};
    for (size_t i = 0; i < sizeof(own) / sizeof(*own); i++)
        free(own[i]);
    memset(c, 0, sizeof(*c));
}

/* Arrays of a batch's samples, rows and entries; scratch, list and body; what is left wrong. */
uint64_t chosen_memory(const struct drps_plan_info *info, const struct drps_select_options *options,
                       uint64_t rows)
{
    const uint64_t samples = info->max_batch_samples, entries = info->max_batch_nnz + samples;
    const uint64_t error =
        options->rule == DRPS_SELECT_PROJECT ? rows * info->dim * sizeof(float) : 0;
    if (!options->count || samples > DRPS_SELECT_VECTORS_MOST || entries > UINT32_MAX) return 0;
    return samples * (2 * info->dim + 4) * sizeof(float) + entries * 14 +
           info->max_batch_rows * 12 + 2 * info->max_body_bytes + error +
           drps_select_scratch((uint32_t)samples, (uint32_t)entries, options);
}

/* ---- Choosing ---- */

static uint32_t local_at(const struct drps_batch *b, size_t j)
{
    return b->local16 ? b->local16[j] : b->local32[j];
}

/* Entries of a sample are in any order; those of vectors ascend. Few are out of place. */
static void sort_entries(uint32_t *ids, float *values, size_t n)
{
    for (size_t i = 1; i < n; i++) {
        const uint32_t id = ids[i];
        const float value = values[i];
        size_t k = i;
        for (; k && ids[k - 1] > id; k--) {
            ids[k] = ids[k - 1];
            values[k] = values[k - 1];
        }
        ids[k] = id;
        values[k] = value;
    }
}

/* The batch's samples as vectors x; the intercept is a feature of each. */
static struct drps_vectors vectors_of(struct chosen *c, const struct drps_batch *b,
                                      const uint32_t *ids)
{
    size_t n = 0;
    for (size_t s = 0; s < b->samples; s++) {
        const size_t end = drps_batch_start(b, s + 1), begin = n;
        c->first[s] = (uint32_t)n;
        if (c->has_bias) {
            c->ids[n] = 0;
            c->values[n++] = 1;
        }
        for (size_t j = drps_batch_start(b, s); j < end; j++, n++) {
            c->ids[n] = ids[local_at(b, j)];
            c->values[n] = b->values ? b->values[j] : 1;
        }
        sort_entries(c->ids + begin, c->values + begin, n - begin);
    }
    c->first[b->samples] = (uint32_t)n;
    return (struct drps_vectors){.n = (uint32_t)b->samples,
                                 .dim = c->dim,
                                 .u = c->slopes,
                                 .first = c->first,
                                 .ids = c->ids,
                                 .values = c->values};
}

static int pick(struct chosen *c, const struct drps_batch *b, const uint32_t *ids, uint64_t seed,
                struct drps_err *err)
{
    const struct drps_vectors all = vectors_of(c, b, ids);
    struct drps_select_options options = c->options;
    options.seed = seed;
    const size_t bytes = drps_select_scratch(all.n, c->first[all.n], &options);
    if (bytes > c->scratch_cap) {
        free(c->scratch);
        c->scratch = malloc(bytes);
        c->scratch_cap = c->scratch ? bytes : 0;
        if (!c->scratch) return drps_err_set(err, -ENOMEM, "no memory to choose vectors");
    }
    c->picked = (struct drps_selected){.picks = c->picks, .u = c->u};
    return drps_select(&all, &options, c->error, c->scratch, &c->picked, err);
}

/* ---- The batch that is sent ---- */

/* Which rows the picked samples have, as numbers of their own: c->local of each row of the batch,
 * and their ids to c->rows. Returns how many. */
static size_t number_rows(struct chosen *c, const struct drps_batch *b, const uint32_t *ids)
{
    size_t n = 0;
    memset(c->local, 0, b->rows * sizeof(*c->local));
    if (c->has_bias && b->rows) c->local[0] = 1;
    for (uint32_t i = 0; i < c->picked.n; i++) {
        const size_t end = drps_batch_start(b, c->picks[i] + (size_t)1);
        for (size_t j = drps_batch_start(b, c->picks[i]); j < end; j++)
            c->local[local_at(b, j)] = 1;
    }
    for (size_t l = 0; l < b->rows; l++) {
        if (!c->local[l]) continue;
        c->rows[n] = ids[l];
        c->local[l] = (uint32_t)n++;
    }
    return n;
}

/* The picked samples, of those rows; its indices to c->narrow, or to c->ids if they are wide, which
 * nobody reads any more. */
static struct drps_batch batch_of(struct chosen *c, const struct drps_batch *b, size_t rows)
{
    const int wide = rows > UINT64_C(1) << 16;
    size_t n = 0;
    for (uint32_t i = 0; i < c->picked.n; i++) {
        const size_t s = c->picks[i], end = drps_batch_start(b, s + 1);
        c->starts[i] = (uint32_t)n;
        c->labels[i] = b->labels[s];
        for (size_t j = drps_batch_start(b, s); j < end; j++, n++) {
            const uint32_t local = c->local[local_at(b, j)];
            if (wide)
                c->ids[n] = local;
            else
                c->narrow[n] = (uint16_t)local;
            if (b->values) c->values[n] = b->values[j];
        }
    }
    c->starts[c->picked.n] = (uint32_t)n;
    return (struct drps_batch){.samples = c->picked.n,
                               .rows = rows,
                               .nnz = n,
                               .labels = c->labels,
                               .starts = c->starts,
                               .local16 = wide ? NULL : c->narrow,
                               .local32 = wide ? c->ids : NULL,
                               .values = b->values ? c->values : NULL};
}

static size_t bytes_of(const struct drps_batch_pieces *pieces)
{
    size_t bytes = 0;
    for (size_t i = 0; i < pieces->n; i++)
        bytes += pieces->pieces[i].bytes;
    return bytes;
}

/* List and body, one behind the other. */
static int encode(struct chosen *c, const struct drps_batch *b, struct drps_err *err)
{
    const size_t bound = drps_list_encode_bound(b->rows);
    struct drps_batch_pieces body;
    if (b->local16 && drps_array_reserve(&c->room, &c->room_cap, drps_batch_pack_bound(b, 0), 1))
        return drps_err_set(err, -ENOMEM, "no memory for the batch of chosen vectors");
    if (b->local16)
        drps_batch_pack(b, 0, c->room, &body);
    else
        drps_batch_encode(b, &body);
    if (drps_array_reserve(&c->packed, &c->packed_cap, bound + bytes_of(&body), 1))
        return drps_err_set(err, -ENOMEM, "no memory for the batch of chosen vectors");
    c->list = (struct drps_piece){c->packed, drps_list_encode(c->rows, b->rows, c->packed)};
    unsigned char *at = c->packed + c->list.bytes;
    c->body = (struct drps_piece){at, bytes_of(&body)};
    for (size_t i = 0; i < body.n; i++) {
        memcpy(at, body.pieces[i].data, body.pieces[i].bytes);
        at += body.pieces[i].bytes;
    }
    return 0;
}

int chosen_make(struct chosen *c, const struct drps_batch *b, const uint32_t *ids, uint64_t seed,
                struct drps_err *err)
{
    int rc = pick(c, b, ids, seed, err);
    if (rc < 0) return rc;
    const struct drps_batch part = batch_of(c, b, number_rows(c, b, ids));
    return encode(c, &part, err);
}
