/*
 * Fuzz target of drps-train: a plan that was edited and signed anew is trained with each store.
 * Whatever the plan says, the run ends, with a model that can be opened or with an error and no
 * model. Input: byte 0 the plan (support/base_plans.h), 1 the store, 2 the memory, 3 to 5 options,
 * then edits (support/edited.h).
 */
#include <stdint.h>
#include <string.h>

#include "engine/cluster/drps_ranks.h"
#include "engine/publish/drps_modeldir.h"
#include "support/base_plans.h"
#include "support/edited.h"
#include "support/fuzz_check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
const char *__asan_default_options(void);

/* A plan may ask for more memory than there is: that is an error like any other. */
const char *__asan_default_options(void)
{
    return "allocator_may_return_null=1";
}

static const char *const stores[] = {"resident", "relay", "file", "rocksdb", "leveldb", "auto"};
enum { STORES = sizeof(stores) / sizeof(*stores) };

static int train(const char *dir, uint32_t several, const struct drps_train_options *o,
                 struct drps_train_result *result, struct drps_err *err)
{
    const struct drps_ranks_options ranks = {
        .plan = dir, .train = o, .transport = DRPS_RANKS_INPROC, .wait_ms = 2000};
    struct drps_plan *plan;
    memset(result, 0, sizeof(*result));
    if (several > 1) return drps_ranks_run_local(&ranks, several, result, err);
    int rc = drps_plan_open(drps_io_os(), dir, &plan, err);
    if (rc == 0) rc = drps_train_run(plan, o, result, err);
    drps_plan_close(plan);
    return rc;
}

/* The least memory that the plan as it is takes with a store. */
static uint64_t least_memory(const struct base *b, unsigned store, struct drps_train_options o)
{
    static uint64_t known[BASE_PLANS][STORES];
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_train_result r;
    uint64_t *least = &known[b - base_plan(0)][store];
    if (*least) return *least;
    o.memory_bytes = b->ranks;
    o.store = stores[store];
    CHECK(train(b->plan, b->ranks, &o, &r, &err) < 0);
    *least = r.memory.used_bytes * b->ranks;
    if (!*least) *least = 1 << 20; /* the build has no such store */
    drps_train_result_free(&r);
    return *least;
}

static void choose(struct drps_train_options *o, const struct base *b, struct script *s)
{
    static const char *const optimizers[] = {"adagrad", "sgd", "ftrl", "adam"};
    static const char *const rules[] = {"farthest", "clock", "lru"};
    const unsigned store = script_byte(s) % STORES, memory = script_byte(s);
    const unsigned bits = script_byte(s), more = script_byte(s), sync = script_byte(s);
    o->epochs = 1 + (bits & 1);
    o->threads = 1 + (bits >> 1 & 1);
    o->local_steps = (bits >> 2 & 3) == 3;
    o->optimizer = b == base_plan(BASE_TOPICS) ? NULL : optimizers[bits >> 4 & 3];
    o->patience = bits >> 6 == 3;
    o->l2 = more & 1 ? 0.01f : 0;
    o->no_keep = more >> 1 & 1;
    o->one_by_one = more >> 2 & 1;
    o->evict = rules[(more >> 3 & 3) % 3];
    o->no_claim = (more >> 5 & 1) && b->ranks > 1 && sync % 5 != DRPS_SCHED_BSP;
    if (b->ranks > 1) o->sync = (enum drps_sched_mode)(sync % 5);
    o->store = stores[store];
    o->memory_bytes = least_memory(b, store, *o);
    if (memory & 1) o->memory_bytes += (uint64_t)(memory >> 1 & 31) << 14;
    if (memory >= 0xc0) o->memory_bytes *= 4;
}

static void check_model(const char *path)
{
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_modeldir *md;
    CHECK_OK(drps_modeldir_open(drps_io_os(), path, 64 << 20, &md, &err));
    drps_modeldir_close(md);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct edited *plans[BASE_PLANS];
    struct script s = {data, size};
    const unsigned which = script_byte(&s) % BASE_PLANS;
    const struct base *b = base_plan(which);
    char plan[SCRATCH_PATH_BYTES], model[SCRATCH_PATH_BYTES], partial[SCRATCH_PATH_BYTES];
    struct drps_train_options o = {.model_path = model, .seed = 3, .model_store = "leveldb"};
    struct drps_train_result result;
    struct drps_err err = DRPS_ERR_INIT;

    if (!plans[which]) plans[which] = edited_read(b->plan, NULL);
    (void)snprintf(plan, sizeof(plan), "%s", scratch_path(base_scratch(), "plan"));
    (void)snprintf(model, sizeof(model), "%s", scratch_path(base_scratch(), "model"));
    (void)snprintf(partial, sizeof(partial), "%s", scratch_path(base_scratch(), "model.partial"));
    choose(&o, b, &s);
    edited_write(plans[which], &s, plan);
    const int rc = train(plan, b->ranks, &o, &result, &err);
    fuzz_show(o.store, rc, err.text);
    CHECK(rc <= 0 && (rc == 0) == !err.text[0]);
    CHECK(path_exists(model) == (rc == 0) && !path_exists(partial));
    if (rc == 0) check_model(model);
    drps_train_result_free(&result);
    edited_remove(plan);
    edited_remove(model);
    return 0;
}

#ifdef DRPS_FUZZ_MAIN
#include "support/fuzz_main.h"
#endif
