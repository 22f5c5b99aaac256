/* Progress and interruption of all phases (drps_progress.h). */
#include "index/drps_progress.h"

int drps_index_check_interrupt(const struct drps_index_options *options, struct drps_err *err)
{
    if (!options->interrupt || !atomic_load_explicit(options->interrupt, memory_order_relaxed))
        return 0;
    return drps_err_set(err, DRPS_E_INTERRUPTED, "interrupted: nothing was written to %s",
                        options->out);
}

int drps_index_report(const struct index_progress *p, uint64_t done, uint64_t total,
                      struct drps_err *err)
{
    const struct drps_index_options *o = p->options;
    if (o->progress) o->progress(o->progress_ctx, p->phase, done, total);
    return drps_index_check_interrupt(o, err);
}
