#include "engine/checkpoint/vectors/snapshot.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/folder/drps_manifest.h"
#include "engine/checkpoint/drps_checkpoint_files.h"

enum { DIM_MOST = 1 << 24 };

char *snapshot_log(const struct drps_checkpoints *c, uint64_t number)
{
    char *path;
    return asprintf(&path, "%s/%llu/" DRPS_CHECKPOINT_VECTORS, c->dir, (unsigned long long)number) <
                   0
               ? NULL
               : path;
}

/* ---- Writing ---- */

int drps_vector_log_describe(json_t *manifest, uint64_t round, uint32_t dim)
{
    json_t *vectors = json_pack("{s:I, s:I}", "round", (json_int_t)round, "dim", (json_int_t)dim);
    return vectors && json_object_set_new(manifest, "vectors", vectors) == 0 ? 0 : -ENOMEM;
}

int drps_vector_log_is_of(const struct drps_checkpoint *cp)
{
    return json_object_get(drps_checkpoint_manifest(cp), "vectors") != NULL;
}

/* What the caller says, and what the checkpoint is of. */
static json_t *describe(const struct snapshot *s, const json_t *manifest)
{
    json_t *own = json_copy((json_t *)(uintptr_t)manifest); /* it is only read */
    if (own && drps_vector_log_describe(own, s->round, s->shape.dim) == 0) return own;
    json_decref(own);
    return NULL;
}

static int write_rows(const struct drps_checkpoints *c, const struct snapshot *s,
                      const void *matrix, json_t *manifest, uint64_t *bytes_out,
                      struct drps_err *err)
{
    struct drps_checkpoint_writer *w;
    int rc = drps_checkpoint_begin(c, s->number, s->shape.rows, s->shape.row_bytes, &w, err);
    if (rc < 0) return rc;
    rc = drps_checkpoint_add(w, 0, (size_t)s->shape.rows, matrix, err);
    if (rc == 0) return drps_checkpoint_commit(w, manifest, bytes_out, err);
    drps_checkpoint_abort(w);
    return rc;
}

int snapshot_write(const struct drps_checkpoints *c, const struct snapshot *s, const void *matrix,
                   const json_t *manifest, uint64_t *bytes_out, struct drps_err *err)
{
    json_t *own = describe(s, manifest);
    *bytes_out = 0;
    if (!own) return drps_err_set(err, -ENOMEM, "no memory for " DRPS_CHECKPOINT_MANIFEST);
    int rc = write_rows(c, s, matrix, own, bytes_out, err);
    json_decref(own);
    return rc;
}

/* ---- Reading ---- */

int snapshot_read(const struct drps_checkpoint *cp, uint64_t number, struct snapshot *out,
                  struct drps_err *err)
{
    const char *path = drps_checkpoint_path(cp);
    const json_t *vectors = json_object_get(drps_checkpoint_manifest(cp), "vectors");
    uint64_t dim;
    *out = (struct snapshot){
        .number = number,
        .shape = {.rows = drps_checkpoint_rows(cp), .row_bytes = drps_checkpoint_row_bytes(cp)}};
    if (!json_is_object(vectors) || drps_checkpoint_store(cp))
        return drps_err_set(err, DRPS_E_CORRUPT, "%s says of no matrix whose vectors are logged",
                            path);
    int rc = drps_manifest_get_count(vectors, "round", path, &out->round, err);
    if (rc == 0) rc = drps_manifest_get_count(vectors, "dim", path, &dim, err);
    if (rc < 0) return rc;
    const uint64_t floats = out->shape.row_bytes / sizeof(float);
    const struct drps_bound bounds[] = {
        {"dim", dim, 1, floats < DIM_MOST ? floats : DIM_MOST, "the floats of a row"}};
    out->shape.dim = (uint32_t)dim;
    return drps_manifest_check(bounds, 1, path, err);
}

static int open_one(const struct drps_checkpoints *c, uint64_t number,
                    struct drps_checkpoint **cp_out, struct snapshot *out, struct drps_err *err)
{
    int rc = drps_checkpoint_open(c, number, cp_out, err);
    if (rc == 0) rc = snapshot_read(*cp_out, number, out, err);
    if (rc == 0) return 0;
    drps_checkpoint_close(*cp_out);
    *cp_out = NULL;
    return rc;
}

/* A folder without its manifest is being removed, or is what is left of that. */
static int is_whole(int rc, struct drps_err *err)
{
    if (rc == -ENOENT) drps_err_clear(err);
    return rc != -ENOENT;
}

int snapshot_open(const struct drps_checkpoints *c, uint64_t round, struct drps_checkpoint **cp_out,
                  struct snapshot *out, struct drps_err *err)
{
    uint64_t numbers[DRPS_CHECKPOINT_LIST_MOST], first = 0;
    size_t n, whole = 0;
    *cp_out = NULL;
    int rc = drps_checkpoints_list(c, numbers, &n, err);
    if (rc < 0) return rc;
    for (size_t i = 0; i < n; i++) {
        rc = open_one(c, numbers[i], cp_out, out, err);
        if (!is_whole(rc, err)) continue;
        if (rc < 0 || out->round <= round) return rc;
        whole++;
        first = out->round;
        drps_checkpoint_close(*cp_out);
        *cp_out = NULL;
    }
    if (!whole) return drps_err_set(err, DRPS_E_NOT_FOUND, "%s holds no checkpoints", c->dir);
    return drps_err_set(err, DRPS_E_NOT_FOUND,
                        "round %llu is not covered by %s: the first one there is %llu",
                        (unsigned long long)round, c->dir, (unsigned long long)first);
}

int snapshot_first(const struct drps_checkpoints *c, uint64_t *round_out, struct drps_err *err)
{
    uint64_t numbers[DRPS_CHECKPOINT_LIST_MOST];
    struct drps_checkpoint *cp;
    struct snapshot s;
    size_t n;
    int rc = drps_checkpoints_list(c, numbers, &n, err); /* none of them on a failure */
    for (size_t i = 0; i < n && rc == 0; i++) {
        rc = open_one(c, numbers[i], &cp, &s, err);
        if (!is_whole(rc, err)) {
            rc = 0;
            continue;
        }
        if (rc == 0) *round_out = s.round;
        drps_checkpoint_close(cp);
    }
    return rc;
}
