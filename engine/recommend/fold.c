/*
 * A record of the first sort: hi the user's key, lo where the name lies in the file of names, or
 * SEEN_ONLY, a the item, b the rating's bits. Of the second: hi where the user's first name lies,
 * lo the item and below that whether it was only seen, a the rating's bits.
 */
#include "engine/recommend/fold.h"

#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"
#include "base/drps_extsort.h"
#include "engine/recommend/items.h"
#include "engine/recommend/input/drps_part.h"
#include "engine/recommend/row_queries.h"
#include "engine/recommend/math/drps_solve.h"

#define SEEN_ONLY UINT64_MAX

enum { GATHER_BYTES = 256 * 1024, SORT_LEAST = 1 << 20 };

struct drps_fold {
    const struct drps_io *io;
    struct drps_fold_options o;
    size_t d;
    double intercept;
    struct drps_part *names;              /* own: u32 bytes and the text of each user, or more */
    struct drps_extsort *by_user, *users; /* own */
    uint64_t last_key, last_name;         /* of the name that was kept last */
    int any_name;
    const struct drps_sort_record *at; /* of `users`: the next one */

    /* The user under way. */
    struct drps_normal normal; /* own arrays */
    uint64_t user;
    int begun;
    /* Ratings that wait for their items' rows: own arrays [gather_cap]. */
    size_t gather_n, gather_cap;
    uint32_t *rows;  /* strictly increasing */
    uint32_t *times; /* how many ratings the item has */
    double *values;  /* their sum */
    float *vectors;  /* [gather_cap][d] */

    char *name; /* own: the one told last */
    size_t name_cap;
    uint64_t bytes;
};

static size_t gather_cap(size_t d)
{
    const size_t n = GATHER_BYTES / (d * sizeof(float));
    return n ? n : 1;
}

uint64_t drps_fold_memory_least(const struct drps_modeldir *md)
{
    const size_t d = drps_modeldir_info(md)->model.dim;
    return d * (uint64_t)(d + 1) * sizeof(double) +
           gather_cap(d) * (uint64_t)(d * sizeof(float) + 2 * sizeof(uint32_t) + sizeof(double)) +
           DRPS_PART_BYTES + 2 * SORT_LEAST;
}

static int make_arrays(struct drps_fold *f)
{
    const size_t d = f->d, n = f->gather_cap = gather_cap(d);
    f->normal = (struct drps_normal){.d = d};
    f->normal.matrix = drps_array_new(d, d * sizeof(double));
    f->normal.right = drps_array_new(d, sizeof(double));
    f->rows = drps_array_new(n, sizeof(*f->rows));
    f->times = drps_array_new(n, sizeof(*f->times));
    f->values = drps_array_new(n, sizeof(*f->values));
    f->vectors = drps_array_new(n, d * sizeof(*f->vectors));
    return f->normal.matrix && f->normal.right && f->rows && f->times && f->values && f->vectors;
}

int drps_fold_open(const struct drps_io *io, const struct drps_fold_options *options,
                   struct drps_fold **f_out, struct drps_err *err)
{
    struct drps_fold *f = calloc(1, sizeof(*f));
    *f_out = NULL;
    if (!f) return drps_err_set(err, -ENOMEM, "no memory to fold users in");
    f->io = io;
    f->o = *options;
    f->d = drps_modeldir_info(options->md)->model.dim;
    const uint64_t sort =
        SORT_LEAST + (options->memory_bytes - drps_fold_memory_least(options->md)) / 2;
    int rc = make_arrays(f) ? 0 : drps_err_set(err, -ENOMEM, "no memory for %zu unknowns", f->d);
    if (rc == 0) rc = drps_part_open(io, options->scratch, 4, &f->names, err);
    if (rc == 0) rc = drps_extsort_open(io, options->scratch, "5", sort, &f->by_user, err);
    if (rc == 0) rc = drps_extsort_open(io, options->scratch, "6", sort, &f->users, err);
    if (rc == 0) rc = drps_read_intercept(options->md, options->model, &f->intercept, err);
    if (rc < 0) {
        drps_fold_close(f);
        return rc;
    }
    *f_out = f;
    return 0;
}

void drps_fold_close(struct drps_fold *f)
{
    if (!f) return;
    drps_part_close(f->names);
    drps_extsort_close(f->by_user);
    drps_extsort_close(f->users);
    free(f->normal.matrix);
    free(f->normal.right);
    free(f->rows);
    free(f->times);
    free(f->values);
    free(f->vectors);
    free(f->name);
    free(f);
}

/* ---- Ratings come ---- */

/* A name is kept once for neighbouring ratings. */
static int keep_name(void *ctx, uint64_t key, const char *text, size_t n, uint64_t *name_out,
                     struct drps_err *err)
{
    struct drps_fold *f = ctx;
    const uint32_t bytes = (uint32_t)n;
    int rc = 0;
    if (!f->any_name || key != f->last_key) {
        f->last_name = drps_part_bytes(f->names);
        rc = drps_part_add(f->names, &bytes, sizeof(bytes), err);
        if (rc == 0) rc = drps_part_add(f->names, text, n, err);
    }
    f->any_name = 1;
    f->last_key = key;
    *name_out = f->last_name;
    return rc;
}

static int take_rating(void *ctx, const struct drps_rating *rating, struct drps_err *err)
{
    struct drps_fold *f = ctx;
    struct drps_sort_record r = {.hi = rating->user_key, .lo = rating->name, .a = rating->item};
    memcpy(&r.b, &rating->value, sizeof(r.b));
    return drps_extsort_add(f->by_user, &r, err);
}

static int take_seen(void *ctx, const struct drps_rating *rating, struct drps_err *err)
{
    struct drps_fold *f = ctx;
    const struct drps_sort_record r = {.hi = rating->user_key, .lo = SEEN_ONLY, .a = rating->item};
    return rating->item == DRPS_NO_ROW ? 0 : drps_extsort_add(f->by_user, &r, err);
}

struct drps_rating_sink drps_fold_sink(struct drps_fold *f, int only_seen)
{
    struct drps_rating_sink sink = {.ctx = f, .new_users = 1, .take = take_seen};
    if (!only_seen) {
        sink.take = take_rating;
        sink.keep_name = keep_name;
    }
    return sink;
}

static int step(struct drps_fold *f, struct drps_err *err)
{
    const int rc = drps_extsort_next(f->users, &f->at, err);
    return rc < 0 ? rc : 0;
}

int drps_fold_finish(struct drps_fold *f, uint64_t *users_out, struct drps_err *err)
{
    const struct drps_sort_record *r;
    uint64_t key = 0, first = SEEN_ONLY;
    int any = 0;
    *users_out = 0;
    int rc = drps_part_finish(f->names, err);
    if (rc == 0) rc = drps_extsort_finish(f->by_user, err);
    while (rc == 0 && (rc = drps_extsort_next(f->by_user, &r, err)) > 0) {
        rc = 0;
        if (!any || r->hi != key) {
            first = r->lo;
            *users_out += first != SEEN_ONLY;
        }
        any = 1;
        key = r->hi;
        const struct drps_sort_record next = {
            .hi = first, .lo = (uint64_t)r->a << 1 | (r->lo == SEEN_ONLY), .a = r->b};
        if (first != SEEN_ONLY) rc = drps_extsort_add(f->users, &next, err);
    }
    drps_extsort_close(f->by_user);
    f->by_user = NULL;
    if (rc == 0) rc = drps_extsort_finish(f->users, err);
    return rc == 0 ? step(f, err) : rc;
}

/* ---- Users are folded in ---- */

/* The ratings that wait become equations. */
static int gather(struct drps_fold *f, struct drps_err *err)
{
    const size_t n = f->gather_n;
    f->gather_n = 0;
    f->bytes += n * f->d * sizeof(float);
    int rc = drps_items_read(f->o.md, f->o.model, f->rows, n, 0, f->vectors, err);
    for (size_t i = 0; rc == 0 && i < n; i++) {
        const float *v = f->vectors + i * f->d;
        const double mean = f->values[i] / f->times[i] - f->intercept - (double)v[0];
        for (uint32_t t = 0; t < f->times[i]; t++) /* of equal ratings the mean counts as often */
            drps_normal_add(&f->normal, v + 1, mean);
    }
    return rc;
}

static int add_rating(struct drps_fold *f, uint32_t item, uint32_t bits, struct drps_err *err)
{
    float value;
    int rc = 0;
    memcpy(&value, &bits, sizeof(value));
    if (f->gather_n && f->rows[f->gather_n - 1] == item) {
        f->times[f->gather_n - 1]++;
        f->values[f->gather_n - 1] += (double)value;
        return 0;
    }
    if (f->gather_n == f->gather_cap) rc = gather(f, err);
    f->rows[f->gather_n] = item;
    f->times[f->gather_n] = 1;
    f->values[f->gather_n++] = (double)value;
    return rc;
}

/* All that is known of the user under way. Returns 1, or 0: the block is full. */
static int take_user(struct drps_fold *f, struct drps_queries *q, struct drps_err *err)
{
    int rc = 0;
    if (!f->begun) {
        f->user = f->at->hi;
        f->begun = 1;
        drps_normal_clear(&f->normal);
    }
    for (; rc == 0 && f->at && f->at->hi == f->user; rc = rc ? rc : step(f, err)) {
        const uint32_t item = (uint32_t)(f->at->lo >> 1);
        if (item == DRPS_NO_ROW) continue;
        if (!drps_queries_saw(q, item)) {
            if (q->n) return 0;
            return drps_err_set(err, DRPS_E_MEMORY_BUDGET,
                                "a user has seen more than %zu items: raise the memory limit",
                                q->seen_cap);
        }
        if (!(f->at->lo & 1)) rc = add_rating(f, item, f->at->a, err);
    }
    return rc < 0 ? rc : 1;
}

static int name(void *ctx, uint64_t id, const char **text_out, size_t *n_out, struct drps_err *err)
{
    struct drps_fold *f = ctx;
    uint32_t bytes;
    int rc = drps_part_read(f->names, &bytes, sizeof(bytes), id, err);
    if (rc < 0) return rc;
    if (drps_array_reserve(&f->name, &f->name_cap, bytes, 1))
        return drps_err_set(err, -ENOMEM, "no memory for a name of %u bytes", bytes);
    *text_out = f->name;
    *n_out = bytes;
    return drps_part_read(f->names, f->name, bytes, id + sizeof(bytes), err);
}

/* All of it must fit floats, as what training makes does. */
static int check_user(struct drps_fold *f, struct drps_err *err)
{
    const char *text;
    size_t n;
    for (size_t k = 0; k < f->d; k++) {
        if (fabs(f->normal.right[k]) <= (double)FLT_MAX) continue;
        const int rc = name(f, f->user, &text, &n, err);
        if (rc < 0) return rc;
        return drps_err_set(err, DRPS_E_FORMAT,
                            "the ratings of user '%.*s' are too large: its factors are no floats",
                            (int)(n < 100 ? n : 100), text);
    }
    return 0;
}

static int solve(struct drps_fold *f, struct drps_queries *q, struct drps_err *err)
{
    float *v = q->vectors + q->n * q->d;
    int rc = gather(f, err);
    if (rc < 0) return rc;
    if (!drps_normal_solve(&f->normal, f->o.l2 * (double)f->normal.n))
        return drps_err_set(err, DRPS_E_CONFIG,
                            "l2 %g is too small to fold a user of %zu ratings in: give more",
                            f->o.l2, f->normal.n);
    rc = check_user(f, err);
    if (rc < 0) return rc;
    v[0] = 1;
    for (size_t k = 1; k < q->d; k++)
        v[k] = (float)f->normal.right[k];
    drps_queries_add(q, f->user, f->intercept + f->normal.right[0]);
    f->begun = 0;
    return 0;
}

static int fill(void *ctx, struct drps_queries *q, struct drps_err *err)
{
    struct drps_fold *f = ctx;
    while (q->n < q->cap && (f->at || f->begun)) {
        int rc = take_user(f, q, err);
        if (rc == 0) return 0; /* goes on with this user */
        if (rc > 0) rc = solve(f, q, err);
        if (rc < 0) return rc;
    }
    return 0;
}

struct drps_query_source drps_fold_source(struct drps_fold *f)
{
    return (struct drps_query_source){.ctx = f, .fill = fill, .name = name};
}

uint64_t drps_fold_bytes(const struct drps_fold *f)
{
    return f->bytes;
}
