/* The folder of a plan: which files it has, and where those of a rank lie. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "index/plan/drps_plan.h"

/* Plans that have steps. */
enum { STEPS = DRPS_PLAN_ONE | DRPS_PLAN_PART | DRPS_PLAN_CIRCULATING };

const struct drps_plan_file_type drps_plan_files[DRPS_PLAN_FILES] = {
    {DRPS_FILE_DATA, DRPS_KIND_DATA, STEPS, 1},
    {DRPS_FILE_ROWS, DRPS_KIND_ROWS, STEPS, 1},
    {DRPS_FILE_NAMES, DRPS_KIND_NAMES, DRPS_PLAN_ONE | DRPS_PLAN_ALL, 0},
    {DRPS_FILE_BLOCKS, DRPS_KIND_BLOCKS, STEPS, 0},
    {DRPS_FILE_USES, DRPS_KIND_USES, STEPS, 1},
    {DRPS_FILE_WINDOWS, DRPS_KIND_WINDOWS, STEPS, 0},
    {DRPS_FILE_SLOTS, DRPS_KIND_SLOTS, STEPS, 1},
    {DRPS_FILE_SHARES, DRPS_KIND_SHARES, DRPS_PLAN_PART, 1},
    {DRPS_FILE_POSITIONS, DRPS_KIND_POSITIONS, DRPS_PLAN_PART, 1},
    {DRPS_FILE_RESIDUALS, DRPS_KIND_RESIDUALS, DRPS_PLAN_PART, 1},
    {DRPS_FILE_PUBLISHED, DRPS_KIND_PUBLISHED, DRPS_PLAN_PART, 1},
    {DRPS_FILE_HANDED, DRPS_KIND_HANDED, DRPS_PLAN_PART, 1},
    {DRPS_FILE_LENT, DRPS_KIND_LENT, DRPS_PLAN_PART, 1},
    {DRPS_FILE_NUMBERS, DRPS_KIND_NUMBERS, DRPS_PLAN_PART, 1},
};

int drps_plan_has_file(const struct drps_plan_info *info, size_t file)
{
    const struct drps_plan_file_type *type = &drps_plan_files[file];
    const int of_windows = type->kind == DRPS_KIND_WINDOWS || type->kind == DRPS_KIND_SLOTS;
    const int hands_on = type->kind == DRPS_KIND_HANDED || type->kind == DRPS_KIND_LENT;
    if (type->kind == DRPS_KIND_RESIDUALS && !info->ranks.residual_slots) return 0;
    if (type->kind == DRPS_KIND_PUBLISHED && !info->ranks.published_slots) return 0;
    if (type->kind == DRPS_KIND_NUMBERS && !drps_plan_is_matrix(info)) return 0;
    if (hands_on && !info->ranks.handed.slots) return 0;
    if (of_windows && info->windows_later) return 0;
    return (type->shapes & drps_plan_shape(info)) != 0;
}

int drps_plan_rank_dir(const char *dir, uint32_t rank, char out[DRPS_PLAN_PATH_BYTES],
                       struct drps_err *err)
{
    const int n = snprintf(out, DRPS_PLAN_PATH_BYTES, "%s/" DRPS_FILE_RANK "%" PRIu32, dir, rank);
    if (n > 0 && n < DRPS_PLAN_PATH_BYTES) return 0;
    return drps_err_set(err, DRPS_E_CONFIG, "the plan's path is too long");
}

int drps_plan_open_rank(const struct drps_io *io, const char *dir, uint32_t rank,
                        struct drps_plan **plan_out, struct drps_err *err)
{
    char path[DRPS_PLAN_PATH_BYTES];
    *plan_out = NULL;
    int rc = drps_plan_rank_dir(dir, rank, path, err);
    if (rc == 0) rc = drps_plan_open(io, path, plan_out, err);
    if (rc == DRPS_E_NOT_FOUND) {
        drps_err_clear(err);
        return drps_err_set(err, rc,
                            "%s is not there: rank %" PRIu32
                            " needs this folder of a plan for several workers",
                            path, rank);
    }
    if (rc < 0 || (*plan_out)->info.ranks.rank == rank) return rc;
    drps_plan_close(*plan_out);
    *plan_out = NULL;
    return drps_err_set(err, DRPS_E_CORRUPT, "%s is not the part of rank %" PRIu32, path, rank);
}

int drps_plan_file(const struct drps_plan *plan, const char *name, uint32_t kind,
                   struct drps_recfile **f_out, struct drps_err *err)
{
    char *path = drps_path_join(plan->dir, name);
    *f_out = NULL;
    if (!path) return drps_err_set(err, -ENOMEM, "no memory to open %s of the plan", name);
    int rc = drps_recfile_open(plan->io, path, kind, f_out, err);
    free(path);
    return rc;
}
