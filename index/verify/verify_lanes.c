/*
 * Lanes against the row lists: a table holds for each row the stratum and lane that used it last.
 */
#include "index/verify/verify.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"
#include "index/plan/drps_batch.h"

struct user {
    uint32_t stratum, lane;
};

struct verifier {
    struct verify *check;
    const struct drps_plan_info *info;
    struct steps *bodies, *rows;
    uint32_t fixed;     /* rows from 0 on that no step changes: the intercept */
    struct user *table; /* [slice_rows] */
    uint64_t slice_rows;
};

static int read_mark(struct verifier *v, uint64_t s, struct user *mark, struct drps_err *err)
{
    const void *record;
    size_t bytes;
    int rc = drps_steps_record(v->bodies, s, &record, &bytes, err);
    if (rc < 0) return rc;
    *mark = (struct user){drps_batch_stratum(record, bytes), drps_batch_lane(record, bytes)};
    const int must = !v->info->grid_users && s < v->info->batches;
    if (!mark->stratum && !mark->lane && !must) return 0;
    const int may = s < v->info->batches || v->info->grid_users == 1 || v->info->grid_items == 1;
    if (mark->stratum && may && mark->lane < v->info->lanes) return 0;
    (void)drps_err_set(err, DRPS_E_CORRUPT,
                       "lane %" PRIu32 " of stratum %" PRIu32
                       " (0: it has none), in a plan of %" PRIu64
                       " lanes, of evaluation in grids of a single pass",
                       mark->lane, mark->stratum, v->info->lanes);
    return drps_steps_fault(v->bodies, s, err);
}

static int check_rows(struct verifier *v, uint64_t s, const struct user *mark, uint64_t first,
                      struct drps_err *err)
{
    const uint32_t *rows;
    size_t n;
    int rc = drps_steps_rows(v->rows, s, v->info->rows, &rows, &n, err);
    if (rc < 0) return rc;
    for (size_t i = 0; i < n; i++) {
        if (rows[i] < v->fixed || rows[i] - first >= v->slice_rows) continue; /* below: it wraps */
        struct user *last = &v->table[rows[i] - first];
        if (mark->stratum && last->stratum == mark->stratum && last->lane != mark->lane) {
            rc = drps_err_set(err, DRPS_E_CORRUPT,
                              "row %" PRIu32 " is used by lanes %" PRIu32 " and %" PRIu32
                              " of stratum %" PRIu32,
                              rows[i], last->lane, mark->lane, mark->stratum);
            return drps_steps_fault(v->rows, s, err);
        }
        *last = *mark;
    }
    return 0;
}

static int check_step(struct verifier *v, uint64_t s, uint64_t first, struct drps_err *err)
{
    struct user mark;
    int rc = read_mark(v, s, &mark, err);
    return rc == 0 ? check_rows(v, s, &mark, first, err) : rc;
}

static int check_slice(struct verifier *v, uint64_t slice, uint64_t slices, struct drps_err *err)
{
    const uint64_t steps = v->check->steps;
    int rc = 0;
    memset(v->table, 0, (size_t)v->slice_rows * sizeof(*v->table));
    for (uint64_t s = 0; s < steps && rc == 0; s++) {
        rc = check_step(v, s, slice * v->slice_rows, err);
        rc = drps_findings_take(v->check->found, rc, err);
        drps_verify_reach(v->check, slice * steps + s + 1, slices * steps);
    }
    return rc;
}

int drps_verify_lanes(struct verify *check, struct drps_err *err)
{
    const struct drps_plan_info *info = check->info;
    const uint64_t slices = drps_verify_slices(info->rows);
    struct verifier v = {.check = check, .info = info};
    v.fixed = drps_plan_common_rows(info);
    v.slice_rows = info->rows < VERIFY_SLICE_ROWS ? info->rows : VERIFY_SLICE_ROWS;
    v.table = drps_array_new((size_t)v.slice_rows, sizeof(*v.table));
    int rc = v.table
                 ? 0
                 : drps_err_set(err, -ENOMEM, "no memory to verify the lanes of %" PRIu64 " rows",
                                v.slice_rows);
    if (rc == 0) rc = drps_verify_open(check, DRPS_FILE_DATA, &v.bodies, err);
    if (rc == 0) rc = drps_verify_open(check, DRPS_FILE_ROWS, &v.rows, err);
    for (uint64_t k = 0; k < slices && rc == 0; k++)
        rc = check_slice(&v, k, slices, err);
    drps_steps_close(v.bodies);
    drps_steps_close(v.rows);
    free(v.table);
    return rc;
}
