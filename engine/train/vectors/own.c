/* A step of one process as a round: what each thread has computed of its batch is a batch. */
#include "engine/train/vectors/drps_round_log.h"

/* Samples [first, last) of a batch. */
static struct drps_batch part_of(const struct drps_batch *b, size_t first, size_t last)
{
    const size_t begin = drps_batch_start(b, first), skipped = b->starts ? 0 : begin;
    struct drps_batch part = *b;
    part.samples = last - first;
    part.nnz = drps_batch_start(b, last) - begin;
    part.labels += first;
    if (part.starts) part.starts += first;
    if (part.local16) part.local16 += skipped;
    if (part.local32) part.local32 += skipped;
    if (part.values) part.values += skipped;
    return part;
}

int drps_round_log_take_step(struct drps_round_log *l, const struct drps_worker *w,
                             const uint32_t *ids, struct drps_err *err)
{
    int rc = 0;
    for (unsigned k = 0; k < w->size.members && rc == 0; k++) {
        size_t first, last;
        drps_worker_share(w, k, &first, &last);
        if (first == last) continue;
        const struct drps_batch part = part_of(w->batch, first, last);
        const struct drps_exchange_applied applied = {
            .rank = k, .batch = &part, .ids = ids, .slopes = w->slopes + first * w->model->outputs};
        rc = drps_round_log_take(l, &applied, err);
    }
    return rc;
}
