/* A stream of residuals.rec, and the record that was decoded last. */
#include "engine/cluster/filters/drps_slot_reader.h"

#include <errno.h>
#include <stdlib.h>

#include "base/drps_alloc.h"
#include "base/record/drps_recstream.h"

enum { BUFFER_BYTES = 1 << 18, DEPTH = 3 };

struct drps_slot_reader {
    uint64_t slots;
    size_t most; /* rows of a batch */
    struct drps_recfile *file;
    struct drps_recstream *stream;
    struct drps_residual_rows rows; /* own */
};

uint64_t drps_slot_reader_memory(const struct drps_plan_info *info)
{
    return info->max_batch_rows * (3 * sizeof(uint32_t) + 1) + DEPTH * (uint64_t)BUFFER_BYTES;
}

static int open_stream(struct drps_slot_reader *r, const struct drps_plan *plan,
                       const struct drps_slot_range *range, struct drps_err *err)
{
    const uint64_t batches = plan->info.batches;
    const int is_over = range->first >= batches; /* the training of the first epoch is */
    const struct drps_recstream_options options = {.count = batches,
                                                   .passes = range->epochs - (uint64_t)is_over,
                                                   .begin = is_over ? 0 : range->first,
                                                   .buffer_bytes = BUFFER_BYTES,
                                                   .depth = DEPTH};
    int rc = drps_plan_file(plan, DRPS_FILE_RESIDUALS, DRPS_KIND_RESIDUALS, &r->file, err);
    if (rc == 0 && drps_recfile_count(r->file) < batches)
        rc = drps_err_set(err, DRPS_E_CORRUPT,
                          "%s: " DRPS_FILE_MANIFEST " counts %llu batches, but " DRPS_FILE_RESIDUALS
                          " has %llu: make the plan anew",
                          plan->dir, (unsigned long long)batches,
                          (unsigned long long)drps_recfile_count(r->file));
    return rc == 0 ? drps_recstream_open(r->file, &options, &r->stream, err) : rc;
}

int drps_slot_reader_open(const struct drps_plan *plan, const struct drps_slot_range *range,
                          struct drps_slot_reader **out, struct drps_err *err)
{
    const size_t rows = (size_t)plan->info.max_batch_rows;
    struct drps_slot_reader *r = *out = calloc(1, sizeof(*r));
    int rc = 0;
    if (r) {
        r->slots = plan->info.ranks.residual_slots;
        r->most = rows;
        r->rows.slot = drps_array_new(rows, sizeof(*r->rows.slot));
        r->rows.whole = drps_array_new(rows, sizeof(*r->rows.whole));
        r->rows.room = drps_array_new(2 * rows, sizeof(*r->rows.room));
    }
    if (!r || !r->rows.slot || !r->rows.whole || !r->rows.room)
        rc = drps_err_set(err, -ENOMEM, "no memory for the slots of a batch");
    if (rc == 0) rc = open_stream(r, plan, range, err);
    if (rc == 0) return 0;
    drps_slot_reader_close(r);
    *out = NULL;
    return rc;
}

void drps_slot_reader_close(struct drps_slot_reader *r)
{
    if (!r) return;
    drps_recstream_close(r->stream);
    drps_recfile_close(r->file);
    free(r->rows.slot);
    free(r->rows.whole);
    free(r->rows.room);
    free(r);
}

int drps_slot_reader_next(struct drps_slot_reader *r, size_t rows,
                          const struct drps_residual_rows **out, struct drps_err *err)
{
    const void *record;
    size_t bytes;
    if (rows > r->most)
        return drps_err_set(err, DRPS_E_CORRUPT, "a batch of %zu rows of at most %zu", rows,
                            r->most);
    r->rows.n = (uint32_t)rows;
    *out = &r->rows;
    int rc = drps_recstream_next(r->stream, &record, &bytes, err);
    if (rc == 0) return drps_err_set(err, DRPS_E_CORRUPT, "residuals end before the training");
    return rc < 0 ? rc : drps_residuals_decode(record, bytes, r->slots, &r->rows, err);
}
