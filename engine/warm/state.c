/* Finds out whether the checkpoints beside a model have its parameters. */
#include "engine/warm/state.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/drps_checksum.h"
#include "engine/checkpoint/drps_checkpoint_files.h"

struct summing {
    struct drps_summer *sum;
    size_t row_bytes, param_bytes;
};

static int add_parameters(void *ctx, uint64_t first, size_t n, const void *rows,
                          struct drps_err *err)
{
    const struct summing *s = ctx;
    (void)first, (void)err;
    for (size_t i = 0; i < n; i++)
        drps_summer_add(s->sum, (const char *)rows + i * s->row_bytes, s->param_bytes);
    return 0;
}

/* Returns why the state is not the model's; NULL where it is, or where an error kept this from
 * being known. */
static const char *compare(const struct warm_old *model, const struct warm_old *state, int *rc_out,
                           struct drps_err *err)
{
    const struct drps_modeldir_info *info = drps_modeldir_info(model->md);
    *rc_out = 0;
    if (strcmp(info->plan_id, state->plan) != 0) return "it is of a run of another plan";
    if (state->about.rows != info->rows || state->about.dim != info->model.dim)
        return "it has other rows";
    struct summing s = {.sum = drps_summer_new(),
                        .row_bytes = state->row_bytes,
                        .param_bytes = info->model.dim * sizeof(float)};
    *rc_out = s.sum ? drps_warm_old_scan(state, add_parameters, &s, err)
                    : drps_err_set(err, -ENOMEM, "no memory to read %s", state->path);
    const int same = *rc_out == 0 && drps_summer_value(s.sum) == info->content;
    drps_summer_free(s.sum);
    if (*rc_out < 0) return err->text;
    return same ? NULL
                : "its parameters are those of another epoch or run; to begin with these and their "
                  "state, name the folder of checkpoints";
}

char *drps_warm_state_path(const char *model)
{
    char *path;
    size_t n = strlen(model);
    while (n > 1 && model[n - 1] == '/')
        n--;
    return asprintf(&path, "%.*s" DRPS_CHECKPOINT_SUFFIX, (int)n, model) < 0 ? NULL : path;
}

int drps_warm_take_state(const struct drps_warm_options *o, const struct warm_about *now,
                         struct warm_old *old, struct drps_err *err)
{
    struct warm_old state = {.io = NULL};
    struct drps_err why = DRPS_ERR_INIT;
    struct stat st;
    char *path = drps_warm_state_path(o->from);
    if (!path) return drps_err_set(err, -ENOMEM, "no memory to read %s", o->from);
    if (stat(path, &st) < 0) {
        free(path);
        return 0;
    }
    int rc = drps_warm_old_open_state(o, path, now, &state, &why);
    const char *differs = rc < 0 ? why.text : compare(old, &state, &rc, &why);
    if (rc == -ENOMEM || rc == DRPS_E_INTERRUPTED) {
        rc = drps_err_set(err, rc, "%s", why.text);
    } else if (differs) {
        drps_log(o->log, o->whole ? DRPS_LOG_WARN : DRPS_LOG_DEBUG,
                 "%s begins without the optimizer's state in %s: %s", o->from, path, differs);
        rc = 0;
    } else {
        drps_warm_old_close(old);
        *old = state; /* moved */
        state = (struct warm_old){.io = NULL};
    }
    drps_warm_old_close(&state);
    free(path);
    return rc;
}
