/* An earlier run is opened and its rows are read: those of a model from its database, those of
 * checkpoints from one rank after another. */
#include "engine/warm/old.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/drps_alloc.h"
#include "base/drps_checksum.h"
#include "base/folder/drps_durable.h"
#include "base/folder/drps_manifest.h"
#include "engine/checkpoint/drps_checkpoint_files.h"
#include "engine/publish/drps_trained.h"

static int exists(const char *dir, const char *name)
{
    struct stat st;
    char *path = drps_path_join(dir, name);
    const int is = path && stat(path, &st) == 0;
    free(path);
    return is;
}

static int no_memory(const struct warm_old *old, struct drps_err *err)
{
    return drps_err_set(err, -ENOMEM, "no memory to read %s", old->path);
}

/* ---- A model ---- */

static int open_model(struct warm_old *old, const struct warm_about *now, struct drps_err *err)
{
    int rc = drps_modeldir_open(old->io, old->path, 0, &old->md, err);
    if (rc < 0) return rc;
    const struct drps_modeldir_info *info = drps_modeldir_info(old->md);
    rc = drps_warm_about_model(info, &old->about, err);
    if (rc == 0) rc = drps_warm_check(&old->about, old->path, now, err);
    old->row_bytes = info->model.dim * sizeof(float);
    old->id = info->content | 1;
    old->names_dir = strdup(old->path);
    return rc == 0 && !old->names_dir ? no_memory(old, err) : rc;
}

/* ---- A checkpoint of one rank ---- */

static int open_rank(const struct warm_old *old, uint32_t rank, uint64_t number,
                     struct drps_checkpoint **cp_out, struct drps_err *err)
{
    struct drps_checkpoints place;
    *cp_out = NULL;
    int rc = drps_checkpoints_init(&place, old->io, old->path, rank, err);
    if (rc < 0) return rc;
    rc = drps_checkpoint_open(&place, number, cp_out, err);
    drps_checkpoints_destroy(&place);
    return rc;
}

/* Which part of which run it is. */
struct part {
    char plan[DRPS_PLAN_ID_BYTES];
    uint32_t workers, rank;
    uint64_t first_row, epoch, step;
};

static int read_part(const struct drps_checkpoint *cp, struct part *out, struct drps_err *err)
{
    const char *path = drps_checkpoint_path(cp);
    const json_t *of = json_object_get(drps_checkpoint_manifest(cp), DRPS_WARM_MEMBER);
    const json_t *progress = json_object_get(drps_checkpoint_manifest(cp), "progress");
    int rc = drps_manifest_get_text(of, "plan", path, out->plan, sizeof(out->plan), err);
    if (rc == 0) rc = drps_manifest_get_u32(of, "workers", path, &out->workers, err);
    if (rc == 0) rc = drps_manifest_get_u32(of, "rank", path, &out->rank, err);
    if (rc == 0) rc = drps_manifest_get_count(of, "first_row", path, &out->first_row, err);
    if (rc == 0) rc = drps_manifest_get_count(progress, "epoch", path, &out->epoch, err);
    if (rc == 0) rc = drps_manifest_get_count(progress, "step", path, &out->step, err);
    if (rc < 0) return rc;
    const struct drps_bound bounds[] = {
        {"workers", out->workers, 1, DRPS_PLAN_WORKERS_MAX, "what a plan may have"}};
    return drps_manifest_check(bounds, 1, path, err);
}

/* ---- Checkpoints of all ranks ---- */

static int read_optimizer(struct warm_old *old, const struct drps_checkpoint *cp,
                          struct drps_err *err)
{
    const char *path = drps_checkpoint_path(cp);
    const json_t *o = json_object_get(drps_checkpoint_manifest(cp), "optimizer");
    char name[DRPS_PLAN_NAME_BYTES];
    int rc = drps_manifest_get_text(o, "name", path, name, sizeof(name), err);
    if (rc == 0 && drps_optim_init(&old->optim, name, NULL) < 0)
        rc = drps_err_set(err, DRPS_E_CORRUPT, "%s: there is no optimizer '%s'", path, name);
    if (rc == 0 && old->optim.kind == DRPS_OPTIM_LBFGS)
        rc = drps_manifest_get_u32(o, "pairs", path, &old->optim.pairs, err);
    if (rc == 0 && old->optim.pairs > DRPS_OPTIM_PAIRS_MOST)
        rc = drps_err_set(err, DRPS_E_CORRUPT, "%s: %u pairs are too many", path, old->optim.pairs);
    if (rc < 0) return rc;
    old->row_bytes = drps_optim_row_floats(&old->optim, old->about.dim) * sizeof(float);
    return 0;
}

/* The manifest in a number, which is that of all numbers in it. */
static int read_id(struct warm_old *old, const struct drps_checkpoint *cp, struct drps_err *err)
{
    char *text = json_dumps(drps_checkpoint_manifest(cp), JSON_COMPACT | JSON_SORT_KEYS);
    if (!text) return no_memory(old, err);
    old->id = drps_checksum(text, strlen(text)) | 1;
    free(text);
    return 0;
}

/* The dictionary lies with rank 0. */
static int check_names(struct warm_old *old, const struct drps_checkpoint *cp, struct drps_err *err)
{
    const json_t *of = json_object_get(drps_checkpoint_manifest(cp), DRPS_WARM_MEMBER);
    const json_t *names = json_object_get(of, "names");
    uint64_t want_bytes, want_sum, bytes, sum;
    char *path = drps_path_join(drps_checkpoint_dir(cp), DRPS_CHECKPOINT_NAMES);
    old->names_dir = strdup(drps_checkpoint_dir(cp));
    int rc = path && old->names_dir ? 0 : no_memory(old, err);
    if (rc == 0)
        rc = drps_manifest_get_count(names, "bytes", drps_checkpoint_path(cp), &want_bytes, err);
    if (rc == 0)
        rc = drps_manifest_get_hex(names, "checksum", drps_checkpoint_path(cp), &want_sum, err);
    if (rc == 0) rc = drps_copy_file(old->io, path, NULL, &bytes, &sum, err);
    if (rc == 0 && (bytes != want_bytes || sum != want_sum))
        rc = drps_err_set(err, DRPS_E_CORRUPT, "%s is damaged", path);
    free(path);
    return rc;
}

/* What rank 0 says of all ranks. */
static int read_first(struct warm_old *old, const struct drps_checkpoint *cp,
                      const struct warm_about *now, struct part *part, struct drps_err *err)
{
    const json_t *of = json_object_get(drps_checkpoint_manifest(cp), DRPS_WARM_MEMBER);
    int rc = read_part(cp, part, err);
    if (rc == 0) rc = drps_warm_about_read(of, drps_checkpoint_path(cp), &old->about, err);
    if (rc == 0) rc = drps_warm_check(&old->about, old->path, now, err);
    if (rc == 0) rc = read_optimizer(old, cp, err);
    if (rc == 0) rc = read_id(old, cp, err);
    if (rc == 0) rc = check_names(old, cp, err);
    if (rc < 0) return rc;
    old->ranks = part->workers;
    memcpy(old->plan, part->plan, sizeof(old->plan));
    old->first = calloc((size_t)old->ranks + 1, sizeof(*old->first));
    return old->first ? 0 : no_memory(old, err);
}

/* It must be the next part of the run that rank 0's is of, and whole. */
static int check_rank(struct warm_old *old, uint32_t rank, struct drps_checkpoint *cp,
                      const struct part *zero, struct drps_err *err)
{
    struct part part;
    int rc = read_part(cp, &part, err);
    if (rc < 0) return rc;
    if (strcmp(part.plan, zero->plan) != 0 || part.workers != zero->workers || part.rank != rank ||
        part.first_row != old->first[rank] || part.epoch != zero->epoch ||
        part.step != zero->step || drps_checkpoint_row_bytes(cp) != old->row_bytes)
        return drps_err_set(err, DRPS_E_CORRUPT,
                            "%s is not of the run that %s/" DRPS_CHECKPOINT_RANK "0 is of",
                            drps_checkpoint_path(cp), old->path);
    old->first[rank + 1] = old->first[rank] + drps_checkpoint_rows(cp);
    if (drps_checkpoint_store(cp))
        return drps_err_set(err, DRPS_E_CONFIG,
                            "%s holds a row store, which only its own run can read: resume that "
                            "run, and have it write checkpoints with all rows",
                            drps_checkpoint_dir(cp));
    return drps_checkpoint_verify(cp, err);
}

static int check_there(const struct warm_old *old, uint32_t rank, struct drps_err *err)
{
    char name[32];
    (void)snprintf(name, sizeof(name), DRPS_CHECKPOINT_RANK "%u", rank);
    if (exists(old->path, name)) return 0;
    return drps_err_set(err, DRPS_E_CONFIG,
                        "%s has checkpoints of a run of %u ranks, but no " DRPS_CHECKPOINT_RANK
                        "%u: bring those of all ranks together",
                        old->path, old->ranks, rank);
}

static int take_number(struct warm_old *old, const struct warm_about *now, struct drps_err *err)
{
    struct part zero = {.workers = 1};
    int rc = 0;
    for (uint32_t r = 0; r < zero.workers && rc == 0; r++) {
        struct drps_checkpoint *cp = NULL;
        rc = check_there(old, r, err);
        if (rc == 0) rc = open_rank(old, r, old->number, &cp, err);
        if (rc == 0 && !r) rc = read_first(old, cp, now, &zero, err);
        if (rc == 0) rc = check_rank(old, r, cp, &zero, err);
        drps_checkpoint_close(cp);
    }
    if (rc == 0 && old->first[old->ranks] != old->about.rows)
        rc = drps_err_set(err, DRPS_E_CORRUPT, "%s: the ranks have %llu rows, %llu are due",
                          old->path, (unsigned long long)old->first[old->ranks],
                          (unsigned long long)old->about.rows);
    return rc;
}

static void forget(struct warm_old *old)
{
    drps_warm_about_destroy(&old->about);
    free(old->first);
    free(old->names_dir);
    old->first = NULL;
    old->names_dir = NULL;
    old->ranks = 0;
}

/* The newest that is whole on all ranks. */
static int open_checkpoints(struct warm_old *old, const struct warm_about *now,
                            struct drps_err *err)
{
    uint64_t numbers[DRPS_CHECKPOINT_LIST_MOST];
    struct drps_checkpoints place;
    size_t n = 0;
    int rc = drps_checkpoints_init(&place, old->io, old->path, 0, err);
    if (rc < 0) return rc;
    rc = drps_checkpoints_list(&place, numbers, &n, err);
    drps_checkpoints_destroy(&place);
    if (rc == 0 && !n)
        rc = drps_err_set(err, DRPS_E_NOT_FOUND, "%s/" DRPS_CHECKPOINT_RANK "0 has no checkpoint",
                          old->path);
    for (size_t i = 0; i < n && rc == 0; i++) {
        struct drps_err why = DRPS_ERR_INIT;
        old->number = numbers[i];
        const int is = take_number(old, now, &why);
        if (is == 0) return 0;
        if (is == DRPS_E_CONFIG || is == DRPS_E_INTERRUPTED || is == -ENOMEM || i + 1 == n)
            return drps_err_set(err, is, "%s", why.text);
        forget(old);
        drps_log(old->log, DRPS_LOG_WARN,
                 "checkpoint %llu cannot be used, the one before is looked for: %s",
                 (unsigned long long)numbers[i], why.text);
    }
    return rc;
}

int drps_warm_old_open_state(const struct drps_warm_options *o, const char *path,
                             const struct warm_about *now, struct warm_old *old,
                             struct drps_err *err)
{
    *old = (struct warm_old){.io = o->io, .log = o->log, .path = path};
    old->own_path = strdup(path);
    if (!old->own_path) return no_memory(old, err);
    old->path = old->own_path;
    return open_checkpoints(old, now, err);
}

static int scan_rank(const struct warm_old *old, uint32_t rank, struct drps_checkpoint *cp,
                     char *rows, size_t cap, drps_row_visit visit, void *ctx, struct drps_err *err)
{
    const uint64_t all = old->first[rank + 1] - old->first[rank];
    int rc = 0;
    for (uint64_t at = 0, n; at < all && rc == 0; at += n) {
        n = all - at < cap ? all - at : cap;
        rc = drps_io_stopped(old->io, err);
        if (rc == 0) rc = drps_checkpoint_read(cp, at, (size_t)n, rows, err);
        if (rc == 0) rc = visit(ctx, old->first[rank] + at, (size_t)n, rows, err);
    }
    return rc;
}

int drps_warm_old_scan(const struct warm_old *old, drps_row_visit visit, void *ctx,
                       struct drps_err *err)
{
    enum { SCAN_BYTES = 1 << 18 };
    const size_t cap = SCAN_BYTES / old->row_bytes + 1;
    char *rows = drps_array_new(cap, old->row_bytes);
    int rc = rows ? 0 : no_memory(old, err);
    for (uint32_t r = 0; r < old->ranks && rc == 0; r++) {
        struct drps_checkpoint *cp = NULL;
        rc = open_rank(old, r, old->number, &cp, err);
        if (rc == 0) rc = scan_rank(old, r, cp, rows, cap, visit, ctx, err);
        drps_checkpoint_close(cp);
    }
    free(rows);
    return rc;
}

/* ---- Either ---- */

int drps_warm_old_open(const struct drps_warm_options *o, const struct warm_about *now,
                       struct warm_old *old, struct drps_err *err)
{
    *old = (struct warm_old){.io = o->io, .log = o->log, .path = o->from};
    if (exists(o->from, DRPS_MODEL_MANIFEST)) return open_model(old, now, err);
    if (exists(o->from, DRPS_CHECKPOINT_RANK "0")) return open_checkpoints(old, now, err);
    return drps_err_set(err, DRPS_E_CONFIG,
                        "%s is neither a model (no " DRPS_MODEL_MANIFEST
                        " in it) nor a folder of checkpoints (no " DRPS_CHECKPOINT_RANK "0 in it)",
                        o->from);
}

void drps_warm_old_close(struct warm_old *old)
{
    drps_modeldir_close(old->md);
    drps_checkpoint_close(old->cp);
    forget(old);
    free(old->own_path);
    memset(old, 0, sizeof(*old));
}

uint64_t drps_warm_old_least(const struct warm_old *old)
{
    enum { CHECKPOINT_BYTES = 2 << 20 }; /* a record, and the index of records */
    return old->md ? drps_modeldir_memory_least(old->md) : CHECKPOINT_BYTES;
}

int drps_warm_old_begin(struct warm_old *old, uint64_t memory_bytes, struct drps_err *err)
{
    if (!old->md) return 0; /* checked when it was opened */
    int rc = drps_modeldir_open_rows(old->md, memory_bytes, err);
    return rc == 0 ? drps_modeldir_verify(old->md, NULL, err) : rc;
}

/* Have the checkpoint open that has the row. */
static int go_to(struct warm_old *old, uint32_t id, struct drps_err *err)
{
    uint32_t rank = old->cp ? old->at : 0;
    if (old->cp && id < old->first[rank + 1]) return 0;
    while (id >= old->first[rank + 1])
        rank++;
    drps_checkpoint_close(old->cp);
    old->at = rank;
    int rc = open_rank(old, rank, old->number, &old->cp, err);
    if (rc < 0 || (drps_checkpoint_row_bytes(old->cp) == old->row_bytes &&
                   drps_checkpoint_rows(old->cp) == old->first[rank + 1] - old->first[rank]))
        return rc;
    return drps_err_set(err, DRPS_E_CORRUPT, "%s is another one than before",
                        drps_checkpoint_path(old->cp));
}

int drps_warm_old_read(struct warm_old *old, const uint32_t *ids, size_t n, void *rows_out,
                       struct drps_err *err)
{
    int rc = 0;
    if (old->md) return drps_modeldir_gather(old->md, ids, n, rows_out, err);
    for (size_t i = 0; i < n && rc == 0; i++) {
        rc = go_to(old, ids[i], err);
        if (rc == 0)
            rc = drps_checkpoint_read(old->cp, ids[i] - old->first[old->at], 1,
                                      (char *)rows_out + i * old->row_bytes, err);
    }
    return rc;
}
