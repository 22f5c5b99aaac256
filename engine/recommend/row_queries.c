/* Ratings that were seen come sorted as the rows do, so that both are read once. */
#include "engine/recommend/row_queries.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/drps_alloc.h"
#include "engine/recommend/items.h"

int drps_read_intercept(struct drps_modeldir *md, const char *model, double *intercept_out,
                        struct drps_err *err)
{
    const struct drps_modeldir_info *info = drps_modeldir_info(md);
    const uint32_t row = 0;
    *intercept_out = 0;
    if (!info->model.has_bias) return 0;
    float *v = drps_array_new(info->model.dim, sizeof(*v));
    int rc = v ? drps_modeldir_gather(md, &row, 1, v, err)
               : drps_err_set(err, -ENOMEM, "no memory for a row");
    if (rc == 0 && !isfinite(v[0]))
        rc = drps_err_set(err, DRPS_E_CORRUPT, "%s: the intercept is no number", model);
    if (rc == 0) *intercept_out = (double)v[0];
    free(v);
    return rc;
}

int drps_row_queries_begin(struct drps_row_queries *r, struct drps_err *err)
{
    return drps_read_intercept(r->md, r->model, &r->intercept, err);
}

void drps_row_queries_end(struct drps_row_queries *r)
{
    free(r->ids);
    r->ids = NULL;
}

static int step_seen(struct drps_row_queries *r, struct drps_err *err)
{
    const int rc = drps_extsort_next(r->seen, &r->at, err);
    r->begun = 1;
    return rc < 0 ? rc : 0;
}

/* What `row` has seen, behind what it has already. Returns 1, or 0: the block is full. */
static int take_seen(struct drps_row_queries *r, struct drps_queries *q, uint32_t row,
                     struct drps_err *err)
{
    int rc = 0;
    if (r->similar) return drps_queries_saw(q, row);
    if (!r->seen) return 1;
    if (!r->begun) rc = step_seen(r, err);
    while (rc == 0 && r->at && r->at->hi < row)
        rc = step_seen(r, err);
    while (rc == 0 && r->at && r->at->hi == row) {
        if (drps_queries_saw(q, (uint32_t)r->at->lo)) {
            rc = step_seen(r, err);
        } else if (q->n) {
            return 0;
        } else {
            return drps_err_set(err, DRPS_E_MEMORY_BUDGET,
                                "a user has seen more than %zu items: raise the memory limit",
                                q->seen_cap);
        }
    }
    return rc < 0 ? rc : 1;
}

/* Read the rows of all queries, and make vectors of them. */
static int read_rows(struct drps_row_queries *r, struct drps_queries *q, struct drps_err *err)
{
    int rc = drps_items_read(r->md, r->model, r->ids, q->n, r->similar, q->vectors, err);
    for (size_t i = 0; rc == 0 && i < q->n && !r->similar; i++) {
        float *v = q->vectors + i * q->d;
        q->base[i] = r->intercept + (double)v[0];
        v[0] = 1;
    }
    r->bytes += (uint64_t)q->n * q->d * sizeof(float);
    return rc;
}

static int fill(void *ctx, struct drps_queries *q, struct drps_err *err)
{
    struct drps_row_queries *r = ctx;
    if (drps_array_reserve(&r->ids, &r->ids_cap, q->cap, sizeof(*r->ids)))
        return drps_err_set(err, -ENOMEM, "no memory for %zu users at a time", q->cap);
    while (q->n < q->cap) {
        const uint64_t row = drps_rowset_next(r->rows, r->next);
        r->next = row;
        if (row == r->rows->rows) break;
        const int rc = take_seen(r, q, (uint32_t)row, err);
        if (rc < 0) return rc;
        if (rc == 0) break; /* goes on with this row */
        r->ids[q->n] = (uint32_t)row;
        drps_queries_add(q, row, 0);
        r->next = row + 1;
    }
    return read_rows(r, q, err);
}

static int name(void *ctx, uint64_t id, const char **text_out, size_t *n_out, struct drps_err *err)
{
    const struct drps_row_queries *r = ctx;
    return drps_rownames_get(r->names, (uint32_t)id, text_out, n_out, err);
}

struct drps_query_source drps_row_queries_source(struct drps_row_queries *r)
{
    return (struct drps_query_source){.ctx = r, .fill = fill, .name = name};
}
