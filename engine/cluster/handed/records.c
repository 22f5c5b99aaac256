/* Records of handed.rec or lent.rec, read ahead. */
#include "engine/cluster/handed/records.h"

enum { BUFFER_BYTES = 1 << 18, DEPTH = 3 };

int handed_records_open(struct handed_records *r, const struct drps_plan *plan, const char *name,
                        uint32_t kind, uint64_t epochs, int is_over, struct drps_err *err)
{
    const uint64_t batches = plan->info.batches;
    const struct drps_recstream_options options = {.count = batches,
                                                   .passes = epochs - (uint64_t)(is_over != 0),
                                                   .buffer_bytes = BUFFER_BYTES,
                                                   .depth = DEPTH};
    int rc = drps_plan_file(plan, name, kind, &r->file, err);
    if (rc == 0 && drps_recfile_count(r->file) < batches)
        rc = drps_err_set(err, DRPS_E_CORRUPT,
                          "%s: " DRPS_FILE_MANIFEST
                          " counts %llu batches, but %s has %llu: make the plan anew",
                          plan->dir, (unsigned long long)batches, name,
                          (unsigned long long)drps_recfile_count(r->file));
    return rc == 0 ? drps_recstream_open(r->file, &options, &r->stream, err) : rc;
}

void handed_records_close(struct handed_records *r)
{
    drps_recstream_close(r->stream);
    drps_recfile_close(r->file);
    *r = (struct handed_records){.file = NULL};
}

int handed_records_next(struct handed_records *r, const void **record, size_t *bytes,
                        struct drps_err *err)
{
    const int rc = drps_recstream_next(r->stream, record, bytes, err);
    if (rc) return rc < 0 ? rc : 0;
    return drps_err_set(err, DRPS_E_CORRUPT, "rows are handed on in fewer rounds than there are");
}
