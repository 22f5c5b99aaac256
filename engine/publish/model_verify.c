/* A model is read whole, in the way prediction reads it, and compared with what model.json says. */
#include "engine/publish/modeldir_internal.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "base/drps_alloc.h"
#include "base/drps_checksum.h"
#include "base/folder/drps_durable.h"
#include "base/folder/drps_manifest.h"
#include "base/folder/drps_owned.h"
#include "engine/publish/drps_trained.h"
#include "index/verify/drps_verify.h"

enum { VERIFY_BLOCKS = 64 }; /* read together: about a MiB */

struct verifier {
    struct drps_modeldir *md;
    struct drps_findings *found;
    struct drps_summer *sum; /* of all parameters */
    uint32_t *ids;           /* [most] */
    float *params;           /* [most][dim] */
    uint64_t most;           /* rows read together */
};

static int wrong_names(const struct drps_modeldir *md, struct drps_err *err)
{
    return drps_err_set(err, DRPS_E_CORRUPT,
                        "%s/%s is not the file that was written (size or checksum differ)", md->dir,
                        DRPS_MODEL_NAMES);
}

static int verify_names_file(const struct drps_modeldir *md, struct drps_err *err)
{
    const json_t *entry = json_object_get(json_object_get(md->json, "files"), DRPS_MODEL_NAMES);
    char *path = drps_path_join(md->dir, DRPS_MODEL_NAMES);
    uint64_t want_sum, bytes, sum;
    int rc = path ? 0 : drps_err_set(err, -ENOMEM, "no memory to verify %s", md->dir);

    if (rc == 0) rc = drps_manifest_get_hex(entry, "checksum", DRPS_MODEL_MANIFEST, &want_sum, err);
    if (rc == 0) rc = drps_copy_file(md->io, path, NULL, &bytes, &sum, err);
    if (rc == 0 && (bytes != md->names_bytes || sum != want_sum)) rc = wrong_names(md, err);
    free(path);
    return rc;
}

static int verify_names(struct verifier *v, struct drps_err *err)
{
    const struct drps_modeldir_info *i = &v->md->info;
    const struct drps_names_expected expected = {.path = v->md->dir,
                                                 .rows = i->rows,
                                                 .tables = i->tables,
                                                 .tables_n = i->tables_n,
                                                 .fields_n = i->fields_n,
                                                 .string_names = i->string_names,
                                                 .hash_seed = i->hash_seed};
    int rc = verify_names_file(v->md, err);
    if (rc == 0) rc = drps_names_verify(v->md->names, &expected, v->found, err);
    drps_findings_reach(v->found, v->md->names_bytes);
    return drps_findings_take(v->found, rc, err);
}

/* ---- Rows ---- */

static void check_finite(struct verifier *v, uint64_t first, size_t n)
{
    const uint32_t dim = v->md->info.model.dim;
    for (size_t i = 0; i < n * dim; i++) {
        if (isfinite(v->params[i])) continue;
        drps_findings_add(v->found,
                          "%s/%s: parameter %zu of row %" PRIu64 " is no number: training went "
                          "astray (a smaller learning rate may help)",
                          v->md->dir, DRPS_MODEL_ROWS, i % dim, first + i / dim);
        i += dim - 1 - i % dim; /* one problem a row */
    }
}

/* Rows are read by the keys of their blocks as prediction reads them. */
static int read_rows(struct verifier *v, uint64_t first, size_t n, struct drps_err *err)
{
    for (size_t i = 0; i < n; i++)
        v->ids[i] = (uint32_t)(first + i);
    int rc = drps_io_stopped(v->md->io, err); /* the engine reads past the seam that looks */
    if (rc == 0) rc = drps_modeldir_gather(v->md, v->ids, n, v->params, err);
    if (rc < 0) {
        (void)drps_err_context(err, "%s/%s", v->md->dir, DRPS_MODEL_ROWS);
        return rc;
    }
    drps_summer_add(v->sum, v->params, n * v->md->info.model.dim * sizeof(*v->params));
    check_finite(v, first, n);
    return 0;
}

/* The database has no rows behind the last one. */
static int check_end(struct verifier *v, struct drps_err *err)
{
    const struct drps_modeldir_info *i = &v->md->info;
    const uint32_t key = (uint32_t)((i->rows + i->block_rows - 1) / i->block_rows);
    void *const value = v->params;
    const size_t bytes = i->block_rows * i->model.dim * sizeof(*v->params);
    int rc = v->md->ops->get_many(v->md->kv, &key, 1, &value, &bytes, err);
    if (rc < 0 && rc != DRPS_E_NOT_FOUND && rc != DRPS_E_CORRUPT) return rc;
    drps_err_clear(err);
    if (rc != DRPS_E_NOT_FOUND)
        drps_findings_add(v->found, "%s/%s has rows behind the %" PRIu64 " of %s", v->md->dir,
                          DRPS_MODEL_ROWS, i->rows, DRPS_MODEL_MANIFEST);
    return 0;
}

static void check_content(struct verifier *v)
{
    const uint64_t content = drps_summer_value(v->sum);
    if (content == v->md->info.content) return;
    drps_findings_add(
        v->found,
        "%s/%s: the parameters are not those that were written (content is %016" PRIx64
        ", %s says %016" PRIx64 ")",
        v->md->dir, DRPS_MODEL_ROWS, content, DRPS_MODEL_MANIFEST, v->md->info.content);
}

static int verify_rows(struct verifier *v, struct drps_err *err)
{
    const struct drps_modeldir_info *i = &v->md->info;
    const uint64_t row_bytes = i->model.dim * sizeof(*v->params), base = v->md->names_bytes;
    uint64_t lost = 0;
    int rc = 0;
    for (uint64_t first = 0; rc == 0 && first < i->rows; first += v->most) {
        const uint64_t left = i->rows - first;
        const size_t n = (size_t)(left < v->most ? left : v->most);
        rc = read_rows(v, first, n, err);
        lost += rc < 0;
        rc = drps_findings_take(v->found, rc, err);
        drps_findings_reach(v->found, base + (first + n) * row_bytes);
    }
    if (rc == 0 && !lost) check_content(v);
    return rc == 0 ? drps_findings_take(v->found, check_end(v, err), err) : rc;
}

/* ---- The folder ---- */

static int measure(struct verifier *v, struct drps_err *err)
{
    const struct drps_modeldir_info *i = &v->md->info;
    struct drps_findings *f = v->found;
    char *rows = drps_path_join(v->md->dir, DRPS_MODEL_ROWS);
    uint64_t files = 0, bytes = 0;
    int rc = rows ? drps_modeldir_measure_rows(rows, &files, &bytes, err)
                  : drps_err_set(err, -ENOMEM, "no memory to verify %s", v->md->dir);
    free(rows);
    f->total = v->md->names_bytes + i->rows * i->model.dim * sizeof(float);
    f->files += 2 + files; /* model.json, names.rec */
    f->records += (i->rows + i->block_rows - 1) / i->block_rows;
    f->bytes += v->md->names_bytes + bytes;
    return drps_findings_take(f, rc, err);
}

/* What is not of the model does no harm there. */
static int look_for_strangers(struct verifier *v, struct drps_err *err)
{
    int rc = drps_owned_check(v->md->dir, drps_modeldir_kind.owned, 0, NULL, err);
    if (rc == -ENOMEM) return rc;
    if (rc < 0) drps_findings_stranger(v->found, err);
    drps_err_clear(err);
    return 0;
}

static int verify(struct verifier *v, struct drps_err *err)
{
    const struct drps_modeldir_info *i = &v->md->info;
    v->most = VERIFY_BLOCKS * i->block_rows;
    v->sum = drps_summer_new();
    v->ids = drps_array_new((size_t)v->most, sizeof(*v->ids));
    v->params = drps_array_new((size_t)v->most, i->model.dim * sizeof(*v->params));
    if (!v->sum || !v->ids || !v->params)
        return drps_err_set(err, -ENOMEM, "no memory to verify %s", v->md->dir);
    int rc = measure(v, err);
    if (rc == 0) rc = look_for_strangers(v, err);
    if (rc == 0) rc = verify_names(v, err);
    return rc == 0 ? verify_rows(v, err) : rc;
}

int drps_modeldir_verify(struct drps_modeldir *md, struct drps_findings *found,
                         struct drps_err *err)
{
    struct drps_findings own = {0};
    struct drps_err first = DRPS_ERR_INIT;
    struct verifier v = {.md = md, .found = found ? found : &own};
    int rc = verify(&v, &first);
    drps_summer_free(v.sum);
    free(v.ids);
    free(v.params);
    if (rc < 0) return drps_err_set(err, rc, "%s", first.text);
    return found ? 0 : drps_findings_result(&own, err);
}
