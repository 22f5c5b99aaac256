/* A model is read whole, in the way prediction reads it, and compared with what model.json says. */
#include "engine/publish/modeldir_internal.h"

#include <errno.h>
#include <stdlib.h>

#include "base/drps_alloc.h"
#include "base/drps_checksum.h"
#include "base/folder/drps_manifest.h"
#include "engine/publish/drps_trained.h"

enum { VERIFY_BLOCKS = 64 }; /* read together: about a MiB */

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
    if (rc == 0) rc = drps_trained_copy(md->io, path, NULL, &bytes, &sum, err);
    if (rc == 0 && (bytes != md->names_bytes || sum != want_sum)) rc = wrong_names(md, err);
    free(path);
    return rc;
}

/* Names must be in the order of their keys, which a search relies on, and of rows of the model. */
struct name_check {
    const struct drps_modeldir *md;
    uint64_t key; /* of the last one */
};

static int check_name(void *ctx, uint64_t key, uint32_t row, unsigned field, const char *text,
                      size_t bytes, struct drps_err *err)
{
    struct name_check *check = ctx;
    (void)field, (void)text, (void)bytes;
    if (key < check->key || row >= check->md->info.rows)
        return drps_err_set(
            err, DRPS_E_CORRUPT, "%s/%s: name %016llx behind %016llx is row %u of %llu",
            check->md->dir, DRPS_MODEL_NAMES, (unsigned long long)key,
            (unsigned long long)check->key, row, (unsigned long long)check->md->info.rows);
    check->key = key;
    return 0;
}

/* Adds all parameters to the checksum, read by the keys of their blocks as prediction reads them.
 */
static int sum_rows(struct drps_modeldir *md, struct drps_summer *sum, struct drps_err *err)
{
    const struct drps_modeldir_info *info = &md->info;
    const uint64_t most = VERIFY_BLOCKS * info->block_rows;
    uint32_t *ids = drps_array_new((size_t)most, sizeof(*ids));
    float *params = drps_array_new((size_t)most, info->model.dim * sizeof(*params));
    int rc = ids && params ? 0 : drps_err_set(err, -ENOMEM, "no memory to verify %s", md->dir);
    for (uint64_t first = 0; rc == 0 && first < info->rows; first += most) {
        const uint64_t left = info->rows - first;
        const size_t n = (size_t)(left < most ? left : most);
        for (size_t i = 0; i < n; i++)
            ids[i] = (uint32_t)(first + i);
        rc = drps_io_stopped(md->io, err); /* the engine reads past the seam that looks */
        if (rc == 0) rc = drps_modeldir_gather(md, ids, n, params, err);
        if (rc == 0) drps_summer_add(sum, params, n * info->model.dim * sizeof(*params));
    }
    free(ids);
    free(params);
    return rc;
}

static int verify_rows(struct drps_modeldir *md, struct drps_err *err)
{
    struct drps_summer *sum = drps_summer_new();
    int rc = sum ? sum_rows(md, sum, err)
                 : drps_err_set(err, -ENOMEM, "no memory to verify %s", md->dir);
    if (rc == 0 && drps_summer_value(sum) != md->info.content)
        rc = drps_err_set(err, DRPS_E_CORRUPT,
                          "%s/%s: the parameters are not those that were written (content differs)",
                          md->dir, DRPS_MODEL_ROWS);
    drps_summer_free(sum);
    return rc;
}

int drps_modeldir_verify(struct drps_modeldir *md, struct drps_err *err)
{
    struct name_check check = {.md = md};
    int rc = verify_names_file(md, err);
    if (rc == 0) rc = drps_names_scan(md->names, check_name, &check, err);
    return rc == 0 ? verify_rows(md, err) : rc;
}
