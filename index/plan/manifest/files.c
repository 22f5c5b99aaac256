#include "index/plan/manifest/files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_checksum.h"
#include "base/folder/drps_manifest.h"

enum { CHUNK_BYTES = 1 << 20 };

/* The checksum of a file: of the checksums of its chunks, which `visit` (NULL: nobody) gets. */
static int file_checksum(const struct drps_io *io, const char *path, drps_plan_bytes visit,
                         void *ctx, uint64_t *bytes_out, uint64_t *sum_out, struct drps_err *err)
{
    int fd;
    char *buf = malloc(CHUNK_BYTES);
    uint64_t chain[2] = {0, 0};

    *bytes_out = *sum_out = 0;
    if (!buf) return drps_err_set(err, -ENOMEM, "no memory to read %s", path);
    int rc = drps_io_open(io, path, O_RDONLY, &fd, err);
    if (rc == 0) rc = drps_io_size(io, fd, path, bytes_out, err);
    for (uint64_t at = 0; rc == 0 && at < *bytes_out; at += CHUNK_BYTES) {
        size_t n = *bytes_out - at < CHUNK_BYTES ? (size_t)(*bytes_out - at) : CHUNK_BYTES;
        rc = drps_io_read_at(io, fd, buf, n, at, path, err);
        if (rc < 0) break;
        chain[1] = drps_checksum(buf, n);
        chain[0] = drps_checksum(chain, sizeof(chain));
        if (visit) rc = visit(ctx, buf, n, err);
    }
    *sum_out = chain[0];
    drps_io_close(io, fd);
    free(buf);
    return rc;
}

/* Add a file to a hash over several; *sum_out is its own. */
static int hash_file(const struct drps_io *io, const char *dir, const char *name, uint64_t *hash,
                     uint64_t *bytes_out, uint64_t *sum_out, struct drps_err *err)
{
    char *path = drps_path_join(dir, name);
    if (!path) return drps_err_set(err, -ENOMEM, "no memory for the manifest");
    int rc = file_checksum(io, path, NULL, NULL, bytes_out, sum_out, err);
    const uint64_t chain[2] = {*hash, *sum_out};
    free(path);
    if (rc == 0) *hash = drps_checksum(chain, sizeof(chain));
    return rc;
}

int drps_plan_hash(const struct drps_io *io, const char *dir, const char *const *names, size_t n,
                   uint64_t *hash_out, struct drps_err *err)
{
    uint64_t bytes, sum;
    int rc = 0;
    *hash_out = 0;
    for (size_t i = 0; rc == 0 && i < n; i++)
        rc = hash_file(io, dir, names[i], hash_out, &bytes, &sum, err);
    return rc;
}

int drps_plan_list_files(const struct drps_io *io, const char *dir,
                         const struct drps_plan_info *info, json_t *list, uint64_t *id_out,
                         struct drps_err *err)
{
    int rc = 0;
    *id_out = 0;
    for (size_t i = 0; rc == 0 && i < DRPS_PLAN_FILES; i++) {
        uint64_t bytes, sum;
        if (!drps_plan_has_file(info, i)) continue;
        rc = hash_file(io, dir, drps_plan_files[i].name, id_out, &bytes, &sum, err);
        if (rc < 0) break;
        json_t *entry = json_pack("{s:s, s:I, s:o}", "name", drps_plan_files[i].name, "bytes",
                                  (json_int_t)bytes, "checksum", drps_manifest_hex(sum));
        if (json_array_append_new(list, entry))
            return drps_err_set(err, -ENOMEM, "no memory for the manifest");
    }
    return rc;
}

int drps_plan_listed(const struct drps_plan *plan, const char *name, uint64_t *bytes_out,
                     uint64_t *sum_out, struct drps_err *err)
{
    size_t i;
    const json_t *entry;
    json_array_foreach((const json_t *)json_object_get(plan->json, "files"), i, entry)
    {
        const char *is = json_string_value(json_object_get(entry, "name"));
        if (!is || strcmp(is, name) != 0) continue;
        int rc = drps_manifest_get_count(entry, "bytes", name, bytes_out, err);
        if (rc == 0) rc = drps_manifest_get_hex(entry, "checksum", name, sum_out, err);
        if (rc < 0) (void)drps_err_context(err, "%s/%s", plan->dir, DRPS_FILE_MANIFEST);
        return rc;
    }
    return drps_err_set(err, DRPS_E_CORRUPT, "%s/%s does not list %s", plan->dir,
                        DRPS_FILE_MANIFEST, name);
}

int drps_plan_read_file(const struct drps_plan *plan, const char *name, drps_plan_bytes visit,
                        void *ctx, struct drps_err *err)
{
    uint64_t want_bytes, want_sum, bytes, sum;
    int rc = drps_plan_listed(plan, name, &want_bytes, &want_sum, err);
    if (rc < 0) return rc;
    char *path = drps_path_join(plan->dir, name);
    if (!path) return drps_err_set(err, -ENOMEM, "no memory to read %s", name);
    rc = file_checksum(plan->io, path, visit, ctx, &bytes, &sum, err);
    if (rc == 0 && (bytes != want_bytes || sum != want_sum))
        rc = drps_err_set(err, DRPS_E_CORRUPT,
                          "%s is not the file that drps-index wrote (size or checksum differ)",
                          path);
    free(path);
    return rc;
}
