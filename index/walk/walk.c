/* Reads bodies and row lists side by side. It needs the plan's files alone. */
#include "index/walk/drps_walk.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"

int drps_walk_open(struct drps_walk *w, const struct drps_plan *plan, struct drps_err *err)
{
    const struct drps_plan_info *info = &plan->info;
    const uint64_t steps = info->batches + info->eval_batches;
    *w = (struct drps_walk){.plan = plan};
    if (drps_plan_shape(info) != DRPS_PLAN_ONE)
        return drps_err_set(err, DRPS_E_CONFIG,
                            "%s is dealt to several workers: name the plan for one that it is "
                            "made of",
                            plan->dir);
    w->room = drps_array_new((size_t)info->max_body_bytes, 1);
    if (!w->room) return drps_err_set(err, -ENOMEM, "no memory for a batch");
    int rc = drps_steps_open(plan->io, plan->dir, DRPS_FILE_DATA, DRPS_KIND_DATA, steps,
                             DRPS_WALK_BUFFER_BYTES, &w->data, err);
    if (rc == 0)
        rc = drps_steps_open(plan->io, plan->dir, DRPS_FILE_ROWS, DRPS_KIND_ROWS, steps,
                             DRPS_WALK_BUFFER_BYTES, &w->rows, err);
    return rc;
}

void drps_walk_close(struct drps_walk *w)
{
    drps_steps_close(w->data);
    drps_steps_close(w->rows);
    free(w->room);
    memset(w, 0, sizeof(*w));
}

static int labels_fit(const struct drps_plan_info *info, const struct drps_batch *b)
{
    const float classes = (float)drps_classes_count(info->classes);
    for (size_t i = 0; info->classes && i < b->samples; i++)
        if (!(b->labels[i] >= 0 && b->labels[i] < classes)) return 0;
    return 1;
}

int drps_walk_read(struct drps_walk *w, uint64_t step, struct drps_batch *b,
                   const uint32_t **rows_out, struct drps_err *err)
{
    const struct drps_plan_info *info = &w->plan->info;
    const void *record;
    size_t bytes, n;
    int rc = drps_steps_record(w->data, step, &record, &bytes, err);
    if (rc == 0)
        rc = drps_batch_unpack(record, bytes, w->room, (size_t)info->max_body_bytes, &bytes, err);
    if (rc == 0) rc = drps_batch_decode_unpacked(w->room, bytes, b, err);
    if (rc == 0) rc = drps_plan_check_batch(info, b, err);
    if (rc == 0 && !labels_fit(info, b))
        rc = drps_err_set(err, DRPS_E_CORRUPT, "a label is none of the classes");
    if (rc < 0) return drps_steps_fault(w->data, step, err);
    rc = drps_steps_rows(w->rows, step, info->rows, rows_out, &n, err);
    if (rc == 0 && n != b->rows)
        rc = drps_err_set(err, DRPS_E_CORRUPT, "batch %llu has %zu rows, and a list of %zu",
                          (unsigned long long)step, b->rows, n);
    if (rc < 0) return rc;
    if (drps_plan_check_list(info, *rows_out, n, drps_plan_common_rows(info), err) < 0)
        return drps_steps_fault(w->rows, step, err);
    return 0;
}
