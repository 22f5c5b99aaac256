/* Queries that are rows of the model: its users, or its items, in the order of rows. Private to
 * engine/recommend/. */
#ifndef DRPS_ENGINE_RECOMMEND_ROW_QUERIES_H
#define DRPS_ENGINE_RECOMMEND_ROW_QUERIES_H

#include "base/drps_extsort.h"
#include "engine/publish/drps_modeldir.h"
#include "engine/recommend/queries.h"
#include "engine/recommend/input/drps_rownames.h"
#include "engine/recommend/input/drps_rowset.h"

struct drps_row_queries {
    /* Borrowed. */
    struct drps_modeldir *md;
    const char *model;              /* its name, for texts */
    const struct drps_rowset *rows; /* whose */
    struct drps_rownames *names;
    struct drps_extsort *seen; /* finished: hi a user's row, lo an item's; NULL: none */
    int similar;               /* rows are items, each of which has seen itself */

    double intercept;
    uint64_t next;                     /* the row that comes next, or one before it */
    const struct drps_sort_record *at; /* of `seen`: the next one; borrowed until the next call */
    int begun;                         /* `at` was asked for */
    uint32_t *ids;                     /* own: [ids_cap] rows of the block */
    size_t ids_cap;
    uint64_t bytes; /* of parameters read */
};

/* The members above the blank line are set, all others 0. Reads the intercept. */
DRPS_MUST_CHECK
int drps_row_queries_begin(struct drps_row_queries *r, struct drps_err *err);
void drps_row_queries_end(struct drps_row_queries *r);

struct drps_query_source drps_row_queries_source(struct drps_row_queries *r);

/* The model's intercept, 0 where it has none. */
DRPS_MUST_CHECK
int drps_read_intercept(struct drps_modeldir *md, const char *model, double *intercept_out,
                        struct drps_err *err);

#endif
