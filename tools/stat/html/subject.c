#include "tools/stat/html/subject.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/folder/drps_command.h"
#include "base/folder/drps_manifest.h"
#include "engine/checkpoint/drps_checkpoint.h"
#include "engine/checkpoint/drps_checkpoint_files.h"
#include "engine/publish/drps_modeldir.h"
#include "engine/publish/drps_trained.h"
#include "engine/train/verify/drps_covered.h"
#include "index/forecast/drps_plan_forecast.h"
#include "index/plan/drps_plan.h"

enum { MODEL_MEMORY_BYTES = 64 << 20 };

/* ---- Plans and models ---- */

static int open_plan(const struct drps_io *io, struct subject *s, struct drps_err *err)
{
    struct drps_plan *plan;
    int rc = drps_plan_open(io, s->path, &plan, err);
    if (rc < 0) return rc == DRPS_E_NOT_FOUND ? folder_kind_unknown(s->path, err) : rc;
    rc = drps_plan_complete_forecast(plan, s->log, err);
    s->json = json_incref(plan->json);
    s->plan_command = plan->info.command; /* in the manifest, which stays */
    drps_plan_close(plan);
    return rc;
}

static int open_model(const struct drps_io *io, struct subject *s, struct drps_err *err)
{
    struct drps_modeldir *md;
    int rc = drps_modeldir_open(io, s->path, MODEL_MEMORY_BYTES, &md, err);
    if (rc < 0) return rc;
    s->json = json_deep_copy(drps_modeldir_json(md));
    drps_modeldir_close(md);
    return s->json ? 0 : drps_err_set(err, -ENOMEM, "no memory for %s", s->path);
}

static int open_trained(const struct drps_io *io, struct subject *s, struct drps_err *err)
{
    struct drps_trained_about about;
    void *manifest;
    int rc = drps_trained_open(io, s->path, &about, &manifest, err);
    s->json = manifest;
    return rc;
}

/* ---- Checkpoints ---- */

/* A drps_covered_visit: the first rank's newest checkpoint. */
struct newest {
    uint32_t rank;
    uint64_t number;
};

static int find_newest(void *ctx, const struct drps_covered *rank, struct drps_err *err)
{
    struct newest *n = ctx;
    (void)err;
    if (n->number) return 0;
    n->rank = rank->rank;
    n->number = rank->newest;
    return 0;
}

/* What a model of it would have, as far as the checkpoint knows it. */
static json_t *as_model(const json_t *checkpoint)
{
    const json_t *of = json_object_get(checkpoint, "of");
    const json_t *progress = json_object_get(checkpoint, "progress");
    static const char *const members[] = {"plan", "algo", "loss", "expression", "factors", "dim"};
    static const char *const options[] = {"optimizer", "sync", "patience", "metric", "lr_decay"};
    json_t *j = json_object(), *training = json_object();
    for (size_t i = 0; i < sizeof(members) / sizeof(*members); i++)
        if (json_object_get(of, members[i]))
            drps_manifest_put(&j, members[i], json_incref(json_object_get(of, members[i])));
    for (size_t i = 0; i < sizeof(options) / sizeof(*options); i++)
        if (json_object_get(checkpoint, options[i]))
            drps_manifest_put(&training, options[i],
                              json_incref(json_object_get(checkpoint, options[i])));
    if (json_object_get(checkpoint, "done"))
        drps_manifest_put(&training, "epochs", json_incref(json_object_get(checkpoint, "done")));
    drps_manifest_put(&training, "unfinished", progress ? json_deep_copy(progress) : json_object());
    drps_manifest_put(&j, "training", training);
    return j;
}

static int read_newest(const struct drps_io *io, const struct subject *s, json_t **out,
                       struct drps_err *err)
{
    struct newest newest = {0};
    char *path = NULL;
    int rc = drps_checkpoints_covered(io, s->path, find_newest, &newest, err);
    if (rc < 0) return rc;
    if (asprintf(&path, "%s/" DRPS_CHECKPOINT_RANK "%" PRIu32 "/%" PRIu64 "/%s", s->path,
                 newest.rank, newest.number, DRPS_CHECKPOINT_MANIFEST) < 0)
        return drps_err_set(err, -ENOMEM, "no memory for %s", s->path);
    rc = drps_manifest_read(io, path, DRPS_CHECKPOINT_KIND, DRPS_CHECKPOINT_VERSION, out, err);
    free(path);
    return rc;
}

/* A run that is under way may have removed the newest one by now, as it has written others. */
static int open_checkpoints(const struct drps_io *io, struct subject *s, struct drps_err *err)
{
    enum { TRIES = 10 };
    json_t *checkpoint = NULL;
    int rc = -ENOENT;
    for (int i = 0; i < TRIES && rc == -ENOENT; i++) {
        drps_err_clear(err);
        rc = read_newest(io, s, &checkpoint, err);
    }
    if (rc == 0) s->json = as_model(checkpoint);
    if (rc == 0 && !s->json) rc = drps_err_set(err, -ENOMEM, "no memory for %s", s->path);
    json_decref(checkpoint);
    return rc;
}

/* ---- Any ---- */

/* Takes from the manifest what all of them may have. */
static int take_training(struct subject *s, struct drps_err *err)
{
    if (s->kind == FOLDER_PLAN) return 0;
    const json_t *training = json_object_get(s->json, "training");
    s->training = training;
    int rc = drps_command_get(s->json, "plan_command", s->path, &s->plan_command, err);
    return rc == 0 ? drps_command_get(training, "command", s->path, &s->command, err) : rc;
}

int subject_open(const struct drps_io *io, const char *path, struct subject *s,
                 struct drps_err *err)
{
    static int (*const open[])(const struct drps_io *, struct subject *,
                               struct drps_err *) = {[FOLDER_MODEL] = open_model,
                                                     [FOLDER_TRAINED] = open_trained,
                                                     [FOLDER_CHECKPOINTS] = open_checkpoints,
                                                     [FOLDER_PLAN] = open_plan};
    *s = (struct subject){.path = path, .name = path, .log = s->log};
    int rc = folder_kind_of(io, path, &s->kind, err);
    if (rc == 0) rc = open[s->kind](io, s, err);
    return rc == 0 ? take_training(s, err) : rc;
}

void subject_close(struct subject *s)
{
    json_decref(s->json);
    s->json = NULL;
}

const json_t *subject_epochs(const struct subject *s)
{
    return json_object_get(s->training, "epochs");
}
