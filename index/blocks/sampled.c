/* Batches are decoded, and the rows of the samples that are chosen gathered (sampled.h). */
#include "index/blocks/sampled.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"
#include "base/drps_extsort.h"
#include "base/drps_rng.h"
#include "index/plan/drps_batch.h"
#include "index/plan/drps_steps.h"

enum { BUFFER_BYTES = 1 << 20 };

struct sampling {
    const struct blocks_job *job; /* borrowed, like the next */
    const struct drps_plan_info *info;
    struct steps *data, *rows;
    struct drps_recwriter *out;
    uint32_t *seen;       /* own: [info->rows] the list, from 1, that a row is in */
    uint32_t *list, *aux; /* own: [n], [cap] the rows of the batch that is being made */
    void *packed;         /* own: its record */
    void *room;           /* own: [info->max_body_bytes] */
    size_t n, cap, aux_cap, packed_cap;
    uint64_t samples; /* of it */
    uint64_t lists;   /* that are written */
    uint64_t number;  /* of the next sample */
};

static int write_list(struct sampling *s, struct drps_err *err)
{
    if (drps_array_reserve(&s->aux, &s->aux_cap, s->n, sizeof(*s->aux)) ||
        drps_array_reserve(&s->packed, &s->packed_cap, drps_list_encode_bound(s->n), 1))
        return drps_err_set(err, -ENOMEM, "no memory for a list of %zu rows", s->n);
    if (s->n) drps_sort_u32(s->list, s->aux, s->n);
    const struct drps_piece piece = {s->packed, drps_list_encode(s->list, s->n, s->packed)};
    s->lists++;
    s->n = 0;
    s->samples = 0;
    return drps_recwriter_add(s->out, &piece, 1, err);
}

static void add_row(struct sampling *s, uint32_t row)
{
    if (s->seen[row] == s->lists + 1) return;
    s->seen[row] = (uint32_t)(s->lists + 1);
    s->list[s->n++] = row;
}

static int is_chosen(const struct sampling *s, uint64_t number)
{
    const struct block_options *o = &s->job->options;
    return (double)drps_mix64(drps_mix64(number) ^ o->seed) < o->sample * 0x1p64;
}

/* The first rows are in every batch, and in no entry. */
static int add_sample(struct sampling *s, const struct drps_batch *b, size_t i,
                      const uint32_t *rows, struct drps_err *err)
{
    const size_t end = drps_batch_start(b, i + 1);
    const uint32_t common = drps_plan_common_rows(s->info);
    size_t j = drps_batch_start(b, i);
    if (drps_array_reserve(&s->list, &s->cap, s->n + (end - j) + common, sizeof(*s->list)))
        return drps_err_set(err, -ENOMEM, "no memory for a batch's rows");
    for (uint32_t row = 0; row < common; row++)
        add_row(s, row);
    for (; j < end; j++)
        add_row(s, rows[drps_batch_local(b, j)]);
    return ++s->samples == s->info->batch_size ? write_list(s, err) : 0;
}

static int sample_batch(struct sampling *s, uint64_t step, struct drps_err *err)
{
    const uint64_t most = s->info->max_body_bytes;
    const uint32_t *rows = NULL;
    const void *record;
    struct drps_batch b;
    size_t bytes, n = 0;
    int rc = drps_steps_record(s->data, step, &record, &bytes, err);
    if (rc == 0) rc = drps_batch_unpack(record, bytes, s->room, (size_t)most, &bytes, err);
    if (rc == 0) rc = drps_batch_decode_unpacked(s->room, bytes, &b, err);
    if (rc == 0) rc = drps_steps_rows(s->rows, step, s->info->rows, &rows, &n, err);
    if (rc == 0 && n != b.rows)
        rc =
            drps_err_set(err, DRPS_E_CORRUPT, "a batch has %zu rows, and a list of %zu", b.rows, n);
    for (size_t i = 0; rc == 0 && i < b.samples; i++, s->number++)
        if (is_chosen(s, s->number)) rc = add_sample(s, &b, i, rows, err);
    return rc;
}

static int open_files(struct sampling *s, const char *dir, uint64_t steps, struct drps_err *err)
{
    const struct drps_io *io = s->job->io;
    char *path = drps_path_join(dir, DRPS_FILE_ROWS);
    int rc = path ? io->ops->mkdir(io->ctx, dir, 0777) : -ENOMEM;
    if (rc < 0) rc = drps_err_set(err, rc, "cannot create %s: %s", dir, drps_err_name(rc));
    if (rc == 0) rc = drps_recwriter_open(io, path, DRPS_KIND_ROWS, &s->out, err);
    if (rc == 0)
        rc = drps_steps_open(io, s->job->from, DRPS_FILE_DATA, DRPS_KIND_DATA, steps, BUFFER_BYTES,
                             &s->data, err);
    if (rc == 0)
        rc = drps_steps_open(io, s->job->from, DRPS_FILE_ROWS, DRPS_KIND_ROWS, steps, BUFFER_BYTES,
                             &s->rows, err);
    free(path);
    return rc;
}

int drps_sampled_lists(const struct blocks_job *job, const struct drps_plan_info *info,
                       const char *dir, struct drps_err *err)
{
    const uint64_t steps = info->batches + info->eval_batches;
    struct sampling s = {.job = job, .info = info};
    s.seen = calloc(info->rows + 1, sizeof(*s.seen));
    s.room = drps_array_new((size_t)info->max_body_bytes, 1);
    int rc = s.seen && s.room ? open_files(&s, dir, steps, err)
                              : drps_err_set(err, -ENOMEM, "no memory to sample samples");
    for (uint64_t step = 0; step < steps && rc == 0; step++)
        rc = sample_batch(&s, step, err);
    while (rc == 0 && s.lists < steps)
        rc = write_list(&s, err);
    if (rc == 0) rc = drps_recwriter_finish(s.out, err);
    drps_recwriter_close(s.out);
    drps_steps_close(s.data);
    drps_steps_close(s.rows);
    free(s.seen);
    free(s.list);
    free(s.aux);
    free(s.packed);
    free(s.room);
    return rc;
}
