/* Every file by itself: what plan.json lists, records and their checksums, the whole file's. */
#include "index/verify/verify.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/drps_alloc.h"
#include "base/drps_checksum.h"
#include "base/folder/drps_manifest.h"

static uint64_t expected_count(const struct verify *v, size_t i, const struct drps_recfile *f)
{
    if (drps_plan_files[i].per_step) return v->steps;
    if (strcmp(drps_plan_files[i].name, DRPS_FILE_WINDOWS) == 0) return v->info->windows;
    return drps_recfile_count(f);
}

/* Which records of a run that did not pass are damaged: each by itself. */
static int check_each(struct verify *v, struct drps_recfile *f, uint64_t first, uint64_t n,
                      void *buf, struct drps_err *err)
{
    int rc = 0;
    for (uint64_t r = first; r < first + n && rc == 0; r++)
        rc = drps_findings_take(v->found, drps_recfile_read(f, r, 1, buf, err), err);
    return rc;
}

static int check_run(struct verify *v, struct drps_recfile *f, uint64_t first, uint64_t n,
                     void *buf, struct drps_err *err)
{
    int rc = drps_recfile_read(f, first, n, buf, err);
    if (rc != DRPS_E_CORRUPT) return drps_findings_take(v->found, rc, err);
    drps_err_clear(err);
    return check_each(v, f, first, n, buf, err);
}

static int check_records(struct verify *v, struct drps_recfile *f, struct drps_err *err)
{
    const uint64_t count = drps_recfile_count(f);
    char *buf = NULL;
    size_t cap = 0;
    int rc = 0;
    for (uint64_t r = 0; rc == 0 && r < count;) {
        const uint64_t n = drps_recfile_run_length(f, r, VERIFY_BUFFER_BYTES);
        if (drps_array_reserve(&buf, &cap, (size_t)drps_recfile_run_bytes(f, r, n), 1))
            rc = drps_err_set(err, -ENOMEM, "no memory for a record of a plan");
        if (rc == 0) rc = check_run(v, f, r, n, buf, err);
        r += n;
        drps_verify_reach(v, r, 2 * count);
    }
    free(buf);
    return rc;
}

/* An open file: as many records as there must be, and each passes its checksum. */
static int check_open(struct verify *v, size_t i, struct drps_recfile *f, struct drps_err *err)
{
    const uint64_t count = drps_recfile_count(f), want = expected_count(v, i, f);
    v->found->files++;
    v->found->records += count;
    v->found->bytes += drps_recfile_file_bytes(f);
    if (count != want)
        drps_findings_add(v->found, "%s/%s holds %" PRIu64 " records; the plan has %" PRIu64,
                          v->plan->dir, drps_plan_files[i].name, count, want);
    return check_records(v, f, err);
}

/* The checksum of the whole is looked at where the parts do not tell what is wrong. */
static int check_file(struct verify *v, size_t i, struct drps_err *err)
{
    const struct drps_plan_file_type *type = &drps_plan_files[i];
    const uint64_t before = v->found->problems;
    struct drps_recfile *f;
    int rc = drps_plan_file(v->plan, type->name, type->kind, &f, err);
    if (rc == 0) rc = check_open(v, i, f, err);
    drps_recfile_close(f);
    rc = drps_findings_take(v->found, rc, err);
    if (v->found->problems > before) v->damaged |= 1U << i;
    if (rc < 0 || v->found->problems > before) return rc;
    rc = drps_plan_read_file(v->plan, type->name, NULL, NULL, err);
    return drps_findings_take(v->found, rc, err);
}

/* ---- plan.json ---- */

static int count_manifest(struct verify *v, struct drps_err *err)
{
    enum { MANIFEST_MOST = 1 << 30 };
    char *path = drps_path_join(v->plan->dir, DRPS_FILE_MANIFEST), *data = NULL;
    size_t n = 0;
    int rc = path ? drps_io_read_file(v->io, path, MANIFEST_MOST, &data, &n, err)
                  : drps_err_set(err, -ENOMEM, "no memory for a path");
    v->found->files++;
    v->found->bytes += n;
    free(data);
    free(path);
    return rc;
}

/* The id is a hash over the checksums of all files; that of a whole plan for ranks is not of these
 * files. */
static int check_id(struct verify *v, struct drps_err *err)
{
    uint64_t chain[2] = {0, 0}, bytes, id = 0;
    int rc = 0;
    for (size_t i = 0; i < DRPS_PLAN_FILES && rc == 0; i++) {
        if (!drps_plan_has_file(v->info, i)) continue;
        rc = drps_plan_listed(v->plan, drps_plan_files[i].name, &bytes, &chain[1], err);
        chain[0] = drps_checksum(chain, sizeof(chain));
    }
    if (rc == 0) rc = drps_manifest_get_hex(v->plan->json, "id", DRPS_FILE_MANIFEST, &id, err);
    chain[0] = drps_plan_hash_text(v->info, chain[0]);
    if (rc == 0 && id != chain[0])
        drps_findings_add(v->found,
                          "%s/" DRPS_FILE_MANIFEST ": the id is %016" PRIx64
                          ", that of the files it lists %016" PRIx64,
                          v->plan->dir, id, chain[0]);
    return rc;
}

/* A plan lists its own files and no others. */
static int check_list(struct verify *v, struct drps_err *err)
{
    const size_t listed = json_array_size(json_object_get(v->plan->json, "files"));
    const enum drps_plan_shape shape = drps_plan_shape(v->info);
    size_t n = 0;
    for (size_t i = 0; i < DRPS_PLAN_FILES; i++)
        n += (size_t)drps_plan_has_file(v->info, i);
    if (listed != n)
        drps_findings_add(v->found,
                          "%s/" DRPS_FILE_MANIFEST " lists %zu files; such a plan has %zu",
                          v->plan->dir, listed, n);
    int rc = count_manifest(v, err);
    if (rc == 0 && shape != DRPS_PLAN_ALL) rc = check_id(v, err);
    return drps_findings_take(v->found, rc, err);
}

int drps_verify_files(struct verify *v, struct drps_err *err)
{
    int rc = check_list(v, err);
    for (size_t i = 0; i < DRPS_PLAN_FILES && rc == 0; i++) {
        if (!drps_plan_has_file(v->info, i)) continue;
        v->share = 2 * drps_verify_bytes(v->plan, i);
        rc = check_file(v, i, err);
        v->base += v->share;
    }
    return rc;
}
