/*
 * Lanes against the row lists: a table holds for each row the stratum and lane that used it last.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "index/plan/verify.h"

#include "base/drps_alloc.h"
#include "index/plan/drps_batch.h"
#include "index/plan/drps_steps.h"

enum { BUFFER_BYTES = 1 << 20, SLICE_ROWS = 1 << 23 };

struct user {
    uint32_t stratum, lane;
};

struct verifier {
    const struct drps_plan_info *info;
    uint64_t steps;
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
    if (!mark->stratum && !mark->lane) return 0;
    if (mark->stratum && s < v->info->batches && mark->lane < v->info->lanes) return 0;
    (void)drps_err_set(err, DRPS_E_CORRUPT,
                       "lane %" PRIu32 " of stratum %" PRIu32 ", in a plan of %" PRIu64
                       " lanes in training",
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

static int check_slice(struct verifier *v, uint64_t first, struct drps_err *err)
{
    int rc = 0;
    memset(v->table, 0, (size_t)v->slice_rows * sizeof(*v->table));
    for (uint64_t s = 0; s < v->steps && rc == 0; s++) {
        struct user mark;
        rc = read_mark(v, s, &mark, err);
        if (rc == 0) rc = check_rows(v, s, &mark, first, err);
    }
    return rc;
}

int drps_verify_lanes(const struct drps_io *io, const char *dir, const struct drps_plan_info *info,
                      struct drps_err *err)
{
    struct verifier v = {.info = info, .steps = info->batches + info->eval_batches};
    v.fixed = drps_plan_has_bias(info) ? 1 : 0;
    v.slice_rows = info->rows < SLICE_ROWS ? info->rows : SLICE_ROWS;
    v.table = drps_array_new((size_t)v.slice_rows, sizeof(*v.table));
    int rc = v.table
                 ? 0
                 : drps_err_set(err, -ENOMEM, "no memory to verify the lanes of %" PRIu64 " rows",
                                v.slice_rows);
    if (rc == 0)
        rc = drps_steps_open(io, dir, DRPS_FILE_DATA, DRPS_KIND_DATA, v.steps, BUFFER_BYTES,
                             &v.bodies, err);
    if (rc == 0)
        rc = drps_steps_open(io, dir, DRPS_FILE_ROWS, DRPS_KIND_ROWS, v.steps, BUFFER_BYTES,
                             &v.rows, err);
    for (uint64_t first = 0; first < info->rows && rc == 0; first += v.slice_rows)
        rc = check_slice(&v, first, err);
    drps_steps_close(v.bodies);
    drps_steps_close(v.rows);
    free(v.table);
    return rc;
}
