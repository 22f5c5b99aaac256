/* Two dictionaries are joined by key: the names of the earlier run, in the order of the keys that
 * the plan would give them, are looked up in the plan's. */
#include "engine/warm/join.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"
#include "index/reader/drps_reader.h"

enum { LOOK_UP = 4096 }; /* names at a time */

struct joining {
    const struct warm_join *job;
    struct drps_names *names; /* of the plan */
    warm_pair take;
    void *ctx;
    struct drps_extsort *by_key; /* NULL: keys are alike, and come in order */
    int64_t *fields;             /* own: [old fields] the plan's number; -1: it has none such */
    uint64_t last_key;           /* of the earlier dictionary */
    size_t n;
    uint64_t keys[LOOK_UP]; /* [n] not looked up yet */
    uint32_t rows[LOOK_UP], found[LOOK_UP];
};

/* ---- Looking up ---- */

static int look_up(struct joining *j, struct drps_err *err)
{
    int rc = drps_names_lookup(j->names, j->keys, j->n, j->found, err);
    for (size_t i = 0; i < j->n && rc == 0; i++) {
        if (j->found[i] == DRPS_NO_ROW) continue;
        if (j->found[i] >= j->job->now->rows)
            return drps_err_set(err, DRPS_E_CORRUPT, "%s/" DRPS_FILE_NAMES " names row %u of %llu",
                                j->job->names_dir, j->found[i],
                                (unsigned long long)j->job->now->rows);
        rc = j->take(j->ctx, j->rows[i], j->found[i], err);
    }
    j->n = 0;
    return rc;
}

static int add_key(struct joining *j, uint64_t key, uint32_t row, struct drps_err *err)
{
    j->keys[j->n] = key;
    j->rows[j->n++] = row;
    return j->n == LOOK_UP ? look_up(j, err) : 0;
}

/* ---- The earlier names ---- */

/* A name under the key that the plan gives it. */
static int hash_anew(struct joining *j, uint32_t row, unsigned field, const char *text,
                     size_t bytes, struct drps_err *err)
{
    const struct warm_about *old = &j->job->old->about;
    const int64_t now = field < old->fields_n ? j->fields[field] : (int64_t)field;
    struct drps_sort_record r = {.a = row};
    uint32_t check;
    if (now < 0) return 0;
    drps_name_hash((uint32_t)now, text, bytes, j->job->now->hash_seed, &r.hi, &check);
    return drps_extsort_add(j->by_key, &r, err);
}

static int add_name(void *ctx, uint64_t key, uint32_t row, unsigned field, const char *text,
                    size_t bytes, struct drps_err *err)
{
    struct joining *j = ctx;
    const struct warm_old *old = j->job->old;
    if (row >= old->about.rows || key < j->last_key || (j->by_key && !text))
        return drps_err_set(err, DRPS_E_CORRUPT,
                            "%s/" DRPS_FILE_NAMES " is damaged: row %u of %llu", old->names_dir,
                            row, (unsigned long long)old->about.rows);
    j->last_key = key;
    return j->by_key ? hash_anew(j, row, field, text, bytes, err) : add_key(j, key, row, err);
}

static int take_sorted(struct joining *j, struct drps_err *err)
{
    const struct drps_sort_record *r;
    int rc = drps_extsort_finish(j->by_key, err);
    while (rc == 0 && (rc = drps_extsort_next(j->by_key, &r, err)) > 0)
        rc = add_key(j, r->hi, r->a, err);
    return rc;
}

/* Fields are known by their names; without names the numbers are what they are. */
static int map_fields(struct joining *j, struct drps_err *err)
{
    const struct warm_about *old = &j->job->old->about, *now = j->job->now;
    j->fields = drps_array_new(old->fields_n, sizeof(*j->fields));
    if (!j->fields) return drps_err_set(err, -ENOMEM, "no memory for %zu fields", old->fields_n);
    for (size_t i = 0; i < old->fields_n; i++) {
        j->fields[i] = -1;
        for (size_t k = 0; k < now->fields_n; k++)
            if (strcmp(old->fields[i], now->fields[k]) == 0) j->fields[i] = (int64_t)k;
    }
    return 0;
}

/* ---- All ---- */

static int scan(struct joining *j, struct drps_err *err)
{
    const struct warm_join *job = j->job;
    struct drps_names *earlier = NULL;
    int rc = drps_names_open(job->io, job->old->names_dir, &earlier, err);
    if (rc == 0) rc = drps_names_scan(earlier, add_name, j, err);
    drps_names_close(earlier);
    if (rc == 0 && j->by_key) rc = take_sorted(j, err);
    return rc == 0 ? look_up(j, err) : rc;
}

int drps_warm_join(const struct warm_join *job, warm_pair take, void *ctx, struct drps_err *err)
{
    int rc = 0;
    struct joining *j = calloc(1, sizeof(*j));
    if (!j) return drps_err_set(err, -ENOMEM, "no memory to join names");
    *j = (struct joining){.job = job, .take = take, .ctx = ctx};
    if (!drps_warm_same_keys(&job->old->about, job->now)) {
        rc = map_fields(j, err);
        if (rc == 0)
            rc = drps_extsort_open(job->io, job->dir, "names", job->memory_bytes, &j->by_key, err);
    }
    const uint32_t common = job->now->common;
    for (uint32_t row = 0; row < common && common == job->old->about.common && rc == 0; row++)
        rc = take(ctx, row, row, err);
    if (rc == 0) rc = drps_names_open(job->io, job->names_dir, &j->names, err);
    if (rc == 0) rc = scan(j, err);
    drps_names_close(j->names);
    drps_extsort_close(j->by_key);
    free(j->fields);
    free(j);
    return rc;
}
