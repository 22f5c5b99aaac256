/*
 * Fuzz target of checkpoints: those of a real run, edited and signed anew, are checked, gone on
 * from, or begun with. Whatever they say, the run ends with a model that can be opened, or with an
 * error and no model. Input: byte 0 the run, 1 what is done; then edits (support/edited.h).
 */
#include <stdint.h>
#include <string.h>

#include "engine/checkpoint/drps_checkpoint.h"
#include "engine/drps_engine.h"
#include "engine/publish/drps_modeldir.h"
#include "engine/train/verify/drps_verify.h"
#include "support/base_plans.h"
#include "support/edited.h"
#include "support/fuzz_check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
const char *__asan_default_options(void);

/* A checkpoint may ask for more memory than there is: that is an error like any other. */
const char *__asan_default_options(void)
{
    return "allocator_may_return_null=1";
}

static const struct run {
    const char *name;
    enum base_plan plan;
    const char *store;
    uint64_t patience;
    int saved; /* the row store has saved itself in them */
} runs[] = {
    {"relay", BASE_FM, "relay", 0, 1},
    {"resident", BASE_LOR, "resident", 1, 0},
    {"grid", BASE_GRID, "relay", 0, 1},
};
enum { RUNS = sizeof(runs) / sizeof(*runs) };

static int train(const struct run *r, struct drps_train_options o, struct drps_err *err)
{
    struct drps_train_result result;
    struct drps_plan *plan;
    memset(&result, 0, sizeof(result));
    int rc = drps_plan_open(drps_io_os(), base_plan(r->plan)->plan, &plan, err);
    if (rc < 0) return rc;
    rc = drps_train_run(plan, &o, &result, err);
    drps_train_result_free(&result);
    drps_plan_close(plan);
    return rc;
}

static uint64_t least_memory(const struct run *r, struct drps_train_options o)
{
    struct drps_train_result result;
    struct drps_plan *plan;
    struct drps_err err = DRPS_ERR_INIT;
    memset(&result, 0, sizeof(result));
    o.memory_bytes = 1;
    CHECK_OK(drps_plan_open(drps_io_os(), base_plan(r->plan)->plan, &plan, &err));
    CHECK(drps_train_run(plan, &o, &result, &err) < 0);
    const uint64_t bytes = result.memory.used_bytes;
    drps_train_result_free(&result);
    drps_plan_close(plan);
    return bytes;
}

static struct drps_train_options options_of(const struct run *r, const char *model)
{
    static uint64_t least[RUNS];
    struct drps_train_options o = {.model_path = model,
                                   .epochs = 2,
                                   .seed = 3,
                                   .model_store = "leveldb",
                                   .store = r->store,
                                   .patience = r->patience};
    if (!least[r - runs]) least[r - runs] = least_memory(r, o);
    o.memory_bytes = least[r - runs];
    return o;
}

/* The last checkpoint, which has rows, goes where the one before is of a store. */
static void drop_last(const char *root)
{
    struct drps_checkpoints c;
    struct drps_err err = DRPS_ERR_INIT;
    uint64_t numbers[DRPS_CHECKPOINT_LIST_MOST];
    size_t n;
    CHECK_OK(drps_checkpoints_init(&c, drps_io_os(), root, 0, &err));
    CHECK_OK(drps_checkpoints_list(&c, numbers, &n, &err));
    CHECK(n == 2);
    CHECK_OK(drps_checkpoints_remove(&c, numbers[0], &err));
    drps_checkpoints_destroy(&c);
}

static const struct edited *checkpoints_of(const struct run *r)
{
    static struct edited *known[RUNS];
    struct drps_err err = DRPS_ERR_INIT;
    char model[SCRATCH_PATH_BYTES], root[SCRATCH_PATH_BYTES + 16];
    if (known[r - runs]) return known[r - runs];
    (void)snprintf(model, sizeof(model), "%s", scratch_path(base_scratch(), r->name));
    (void)snprintf(root, sizeof(root), "%s.checkpoint", model);
    struct drps_train_options o = options_of(r, model);
    o.checkpoint_every = (struct drps_checkpoint_every){.unit = DRPS_CHECKPOINT_BATCHES, .n = 3};
    o.keep_checkpoints = 1;
    CHECK_OK(train(r, o, &err));
    if (r->saved) drop_last(root);
    known[r - runs] = edited_read(root, NULL);
    edited_remove(model);
    edited_remove(root);
    return known[r - runs];
}

static void check_model(const char *path)
{
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_modeldir *md;
    CHECK_OK(drps_modeldir_open(drps_io_os(), path, 64 << 20, &md, &err));
    drps_modeldir_close(md);
}

static int verify(const char *root, struct drps_err *err)
{
    struct drps_findings found = {0};
    const int rc = drps_checkpoints_verify(drps_io_os(), root, &found, err);
    return rc == 0 ? drps_findings_result(&found, err) : rc;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct script s = {data, size};
    const struct run *r = &runs[script_byte(&s) % RUNS];
    const unsigned what = script_byte(&s) % 3;
    const struct edited *seed = checkpoints_of(r);
    struct drps_err err = DRPS_ERR_INIT;
    char model[SCRATCH_PATH_BYTES], root[SCRATCH_PATH_BYTES + 16];

    (void)snprintf(model, sizeof(model), "%s", scratch_path(base_scratch(), "model"));
    (void)snprintf(root, sizeof(root), "%s.checkpoint", model);
    struct drps_train_options o = options_of(r, model);
    o.resume = what == 1;
    if (what == 2) o.from = root;
    edited_write(seed, &s, root);
    const int rc = what ? train(r, o, &err) : verify(root, &err);
    fuzz_show(r->name, rc, err.text);
    CHECK(rc <= 0 && (rc == 0) == !err.text[0]);
    if (what) CHECK(path_exists(model) == (rc == 0));
    if (path_exists(model)) check_model(model);
    edited_remove(model);
    edited_remove(root);
    return 0;
}

#ifdef DRPS_FUZZ_MAIN
#include "support/fuzz_main.h"
#endif
