/* Which device a run computes on, what it cannot do there, and how its memory is divided. */
#include "engine/train/device/drps_on_device.h"

#include <errno.h>
#include <string.h>

#include "base/drps_size.h"
#include "engine/step/device/drps_device_worker.h"
#include "storage/device/drps_device_rows.h"

enum {
    LEFT_SHARE = 16, /* of the device's free memory, that is left to its driver */
    KEPT_SHARE = 4
};

/* ---- What runs on a device cannot do ---- */

/* Whether rows that the device has no room for can be in this store. */
static int has_tier(const char *store)
{
    static const char *const tiers[] = {"auto", "resident", "relay"};
    for (size_t i = 0; i < sizeof(tiers) / sizeof(*tiers); i++)
        if (!store || strcmp(store, tiers[i]) == 0) return 1;
    return 0;
}

static int check_options(const struct drps_plan *plan, const struct drps_train_options *o,
                         struct drps_err *err)
{
    const char *what = NULL;
    if (o->ranks || plan->info.ranks.count > 1)
        what = "several ranks";
    else if (plan->info.lanes > 1)
        what = "a plan with lanes";
    else if (o->local_steps)
        what = "local steps";
    else if (o->checkpoint_vectors)
        what = "checkpoints of vectors";
    else if (o->emulate)
        what = "the emulation of slow workers";
    else if (o->threads > 1)
        what = "several threads";
    else if (!has_tier(o->store))
        what = "a store of blocks";
    if (!what) return 0;
    return drps_err_set(err, DRPS_E_CONFIG, "a device does not go with %s: leave one of both out",
                        what);
}

/* ---- Its memory ---- */

/* Returns the bytes of batches that may stay, of those that are left beside rows; where these do
 * not all fit, batches take a share of their room if it is enough for all of them. */
static uint64_t keep_bytes(const struct drps_train_options *o, uint64_t left, uint64_t most,
                           int all_rows)
{
    if (o->epochs < 2 || o->no_keep) return 0;
    if (all_rows) return left < most ? left : most;
    return most <= left / KEPT_SHARE ? most : 0;
}

static int too_small(uint64_t limit, uint64_t need, struct drps_err *err)
{
    char needed[32], allowed[32];
    return drps_err_set(err, DRPS_E_MEMORY_BUDGET,
                        "the device has %s of memory for the run, which needs %s at least",
                        drps_size_format(limit, allowed, sizeof(allowed)),
                        drps_size_format(need, needed, sizeof(needed)));
}

static int split_memory(const struct drps_plan *plan, const struct drps_train_options *o,
                        const struct drps_server *server, struct drps_on_device *on,
                        struct drps_err *err)
{
    const struct drps_plan_info *info = &plan->info;
    const uint64_t all = on->about.free_bytes - on->about.free_bytes / LEFT_SHARE;
    const uint64_t limit = o->device_memory_bytes ? o->device_memory_bytes : all;
    const uint64_t row_bytes = server->row_bytes, two_steps = 2 * info->ranks.max_round_rows;
    const uint64_t least_rows = two_steps < info->rows ? two_steps : info->rows;
    struct drps_device_worker_needs needs;
    uint64_t rows_bytes;
    drps_device_worker_needs(on->use.ops, &server->model, &server->optim, info, &needs);
    on->host_bytes = needs.host_bytes;
    on->keep_host_most = o->epochs < 2 || o->no_keep ? 0 : needs.keep_most_bytes;
    if (__builtin_mul_overflow(info->rows, row_bytes, &rows_bytes) || rows_bytes > INT64_MAX)
        return drps_err_set(err, -EOVERFLOW, "%llu rows of %llu bytes",
                            (unsigned long long)info->rows, (unsigned long long)row_bytes);
    on->frames = info->rows;
    if (rows_bytes + needs.device_bytes <= limit) {
        on->keep_bytes =
            keep_bytes(o, limit - rows_bytes - needs.device_bytes, needs.keep_most_bytes, 1);
        return 0;
    }
    const uint64_t fixed = needs.device_bytes + drps_device_rows_moving(row_bytes, info->rows);
    const uint64_t need = fixed + least_rows * row_bytes;
    if (need > limit) return too_small(limit, need, err);
    on->keep_bytes = keep_bytes(o, limit - need, needs.keep_most_bytes, 0);
    on->frames = (limit - fixed - on->keep_bytes) / row_bytes;
    if (on->frames > info->rows) on->frames = info->rows;
    return 0;
}

/* ---- Opening ---- */

static int open_device(const struct drps_plan *plan, const struct drps_train_options *o,
                       const struct drps_server *server, struct drps_on_device *on,
                       struct drps_err *err)
{
    int rc = check_options(plan, o, err);
    if (rc == 0) rc = drps_device_open(o->device_library, &on->use, err);
    if (rc < 0) return rc;
    if (on->use.ops->emulated && o->device == DRPS_TRAIN_AUTO)
        return drps_err_set(err, DRPS_E_NOT_FOUND, "the device is an emulated one");
    rc = drps_device_told(on->use.ops->about(on->use.dev, &on->about, on->use.why), &on->use, err);
    if (rc == 0) rc = drps_device_worker_can(on->use.ops, &server->model, &server->optim, err);
    if (rc == 0) rc = split_memory(plan, o, server, on, err);
    on->keep_host_most -= on->keep_bytes < on->keep_host_most ? on->keep_bytes : on->keep_host_most;
    return rc;
}

int drps_on_device_open(const struct drps_plan *plan, const struct drps_train_options *o,
                        const struct drps_server *server, struct drps_on_device *on,
                        struct drps_err *err)
{
    struct drps_err why = DRPS_ERR_INIT;
    memset(on, 0, sizeof(*on));
    if (o->device == DRPS_TRAIN_CPU) return 0;
    const int is_auto = o->device == DRPS_TRAIN_AUTO;
    int rc = open_device(plan, o, server, on, is_auto ? &why : err);
    if (rc < 0) { /* nothing of it is left that a run on the processor could take for a device */
        drps_on_device_close(on);
        memset(on, 0, sizeof(*on));
    }
    if (rc < 0 && is_auto)
        drps_log(o->log, DRPS_LOG_INFO, "the processor computes, and no device: %s", why.text);
    if (rc == 0)
        drps_log(o->log, DRPS_LOG_INFO, "%s computes%s", on->about.name,
                 on->use.ops->emulated ? ": an emulation for tests, on the processor" : "");
    return is_auto ? 0 : rc;
}

void drps_on_device_close(struct drps_on_device *on)
{
    if (!on) return;
    drps_device_close(&on->use);
}
