/* Opens a plan: reads plan.json, also one of an older version, and keeps what it says. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/folder/drps_manifest.h"
#include "index/plan/manifest/read.h"

/* Members that older plans have under another name get the one of today. */
static int rename_members(json_t *j, const char *path, struct drps_err *err)
{
    static const struct {
        const char *older, *name;
    } members[] = {{"eval_batches", "test_batches"},
                   {"eval_pulled_rows", "test_pulled_rows"},
                   {"eval_served_rows", "test_served_rows"}};
    json_t *cluster = json_object_get(j, "cluster");
    int rc = drps_manifest_rename(j, "rank", "factors", path, err);
    for (size_t i = 0; rc == 0 && i < sizeof(members) / sizeof(members[0]); i++) {
        rc = drps_manifest_rename(j, members[i].older, members[i].name, path, err);
        if (rc == 0 && cluster)
            rc = drps_manifest_rename(cluster, members[i].older, members[i].name, path, err);
    }
    return rc;
}

int drps_plan_open(const struct drps_io *io, const char *dir, struct drps_plan **plan_out,
                   struct drps_err *err)
{
    *plan_out = NULL;
    struct drps_plan *plan = calloc(1, sizeof(*plan));
    char *path = drps_path_join(dir, DRPS_FILE_MANIFEST);
    int rc = plan && path ? 0 : drps_err_set(err, -ENOMEM, "no memory for the plan");
    if (rc == 0) {
        plan->io = io;
        plan->dir = strdup(dir);
        if (!plan->dir) rc = drps_err_set(err, -ENOMEM, "no memory for the plan");
    }
    if (rc == 0) {
        json_t *j = NULL;
        rc = drps_manifest_read(io, path, drps_plan_kind.kind, drps_plan_kind.version, &j, err);
        plan->json = j;
        if (rc == -ENOENT || rc == -ENOTDIR)
            rc = drps_manifest_missing(io, dir, DRPS_FILE_MANIFEST, "plan", "drps-index", err);
    }
    if (rc == 0) rc = rename_members(plan->json, path, err);
    if (rc == 0) rc = drps_plan_read_info(plan, path, err);
    free(path);
    if (rc < 0) {
        drps_plan_close(plan);
        return rc;
    }
    *plan_out = plan;
    return 0;
}

void drps_plan_close(struct drps_plan *plan)
{
    if (!plan) return;
    for (size_t i = 0; plan->fields && i < plan->info.fields_n; i++)
        free(plan->fields[i]);
    free(plan->fields);
    drps_classes_free(plan->classes);
    json_decref(plan->json);
    free(plan->dir);
    free(plan);
}
