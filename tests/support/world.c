#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/publish/drps_modeldir.h"
#include "support/world.h"

/* A small net of four fields whose parameters are some rows, and which leaves out at random. */
static const char *net_of(struct world *w)
{
    static const char text[] = "x = embedding 4\nfirst = linear\nh = full 8 x\nh = relu h\n"
                               "h = dropout 0.2 h\nh = full 1 h\nscore = sum first h\n";
    return scratch_file(&w->scratch, "net.txt", text, SIZE_MAX);
}

static void make_plan(struct world *w, const char *input, const char *algo, const char *out,
                      uint32_t workers, uint64_t batch, uint64_t slots)
{
    struct case_run run;
    case_begin(&run, &w->scratch, input, algo);
    (void)snprintf(run.out, sizeof(run.out), "%s", out);
    run.options.workers = workers;
    run.options.batch_size = batch;
    run.options.factors =
        strcmp(algo, "lmf") == 0 || strcmp(algo, "fm") == 0 || strcmp(algo, "ffm") == 0 ? 4 : 0;
    if (strcmp(algo, "net") == 0) run.options.net = net_of(w);
    run.options.test_fraction = 0.2;
    run.options.own_slots = slots == WORLD_EACH;
    run.options.residual_slots = slots == WORLD_EACH ? UINT64_MAX : slots;
    case_compile(&run);
}

static struct world *begin(uint32_t workers, const char *algo, enum case_format format,
                           size_t samples, size_t features, uint64_t batch, uint64_t one_batch,
                           uint64_t slots, uint64_t seed)
{
    struct world *w = calloc(1, sizeof(*w));
    w->workers = workers;
    w->residual_slots = slots;
    scratch_begin(&w->scratch);
    (void)snprintf(w->plan, sizeof(w->plan), "%s", scratch_path(&w->scratch, "several"));
    (void)snprintf(w->one, sizeof(w->one), "%s", scratch_path(&w->scratch, "single"));
    (void)snprintf(w->model, sizeof(w->model), "%s", scratch_path(&w->scratch, "model"));
    char input[SCRATCH_PATH_BYTES];
    (void)snprintf(input, sizeof(input), "%s",
                   case_input(&w->scratch, "in", format, samples, features, seed));
    make_plan(w, input, algo, w->plan, workers, batch, slots);
    make_plan(w, input, algo, w->one, 1, one_batch, 0);
    return w;
}

struct world *world_begin(const char *algo, enum case_format format, uint64_t batch,
                          uint64_t one_batch, uint64_t seed)
{
    return begin(WORLD_WORKERS, algo, format, 900, 200, batch, one_batch, 0, seed);
}

struct world *world_begin_sized(const char *algo, enum case_format format, size_t samples,
                                size_t features, uint64_t batch, uint64_t one_batch, uint64_t seed)
{
    return begin(WORLD_WORKERS, algo, format, samples, features, batch, one_batch, 0, seed);
}

struct world *world_begin_workers(uint32_t workers, const char *algo, enum case_format format,
                                  uint64_t batch, uint64_t one_batch, uint64_t seed)
{
    return begin(workers, algo, format, 900, 1000, batch, one_batch, 0, seed);
}

struct world *world_begin_few(uint32_t workers, size_t samples, size_t features, uint64_t batch,
                              uint64_t seed)
{
    return begin(workers, "lor", CASE_LIBSVM, samples, features, batch, workers * batch, 20, seed);
}

struct world *world_begin_residuals(const char *algo, enum case_format format, uint64_t batch,
                                    uint64_t slots, uint64_t seed)
{
    return begin(WORLD_WORKERS, algo, format, 900, 200, batch, WORLD_WORKERS * batch, slots, seed);
}

struct world *world_begin_slots(uint32_t workers, const char *algo, enum case_format format,
                                uint64_t batch, uint64_t slots, uint64_t seed)
{
    return begin(workers, algo, format, 900, 200, batch, workers * batch, slots, seed);
}

void world_end(struct world *w)
{
    scratch_end(&w->scratch);
    free(w);
}

void world_deal(struct world *w, const char *from, const struct world_ranks *to)
{
    static const struct drps_log silent = {.level = DRPS_LOG_ERROR};
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_index_result *r = malloc(sizeof(*r));
    char out[SCRATCH_PATH_BYTES], name[64];
    (void)snprintf(name, sizeof(name), "%u-%u-%d", to->workers, to->servers, to->separate);
    (void)snprintf(out, sizeof(out), "%s", scratch_path(&w->scratch, name));
    const int own = to->workers > 1 && w->residual_slots == WORLD_EACH;
    const struct drps_index_options o = {.from_plan = from,
                                         .workers = to->workers,
                                         .servers = to->servers,
                                         .separate = to->separate,
                                         .residual_slots = own               ? UINT64_MAX
                                                           : to->workers > 1 ? w->residual_slots
                                                                             : 0,
                                         .own_slots = own,
                                         .memory_bytes = 64 << 20,
                                         .out = out,
                                         .force = 1,
                                         .log = &silent};
    if (drps_index_run(drps_io_os(), &o, r, &err) < 0) fail_msg("%s: %s", name, err.text);
    assert_int_equal(r->info.ranks.count, to->ranks);
    for (uint32_t k = 0; k < to->ranks; k++)
        assert_int_equal(r->ranks[k].rows > 0, k < to->servers);
    case_verify(out);
    free(r);
    (void)snprintf(w->plan, sizeof(w->plan), "%s", out);
    w->workers = to->ranks;
}

struct drps_train_options world_options(const struct world *w)
{
    return (struct drps_train_options){
        .model_path = w->model, .replace = 1, .epochs = 2, .seed = 7, .memory_bytes = 512 << 20};
}

int world_run(const struct world *w, const struct drps_train_options *train,
              struct drps_train_result *result, struct drps_err *err)
{
    const struct drps_ranks_options o = {
        .plan = w->plan, .train = train, .transport = DRPS_RANKS_INPROC, .wait_ms = 60000};
    return drps_ranks_run_local(&o, w->workers, result, err);
}

void world_train(const struct world *w, const struct drps_train_options *train,
                 struct drps_train_result *result)
{
    struct drps_err err = DRPS_ERR_INIT;
    if (world_run(w, train, result, &err) < 0) fail_msg("%s", err.text);
}

/* A refusal ends "at least 43.1 MiB is needed": of a rank, which has its part of the memory. */
uint64_t world_least_memory(const struct world *w, const struct drps_train_options *train)
{
    struct drps_train_options o = *train;
    for (o.memory_bytes = WORLD_WORKERS;;) {
        struct drps_train_result r;
        struct drps_err err = DRPS_ERR_INIT;
        const int rc = world_run(w, &o, &r, &err);
        drps_train_result_free(&r);
        if (rc == 0) return o.memory_bytes;
        const char *at = strstr(err.text, "at least ");
        const double mib = at ? strtod(at + strlen("at least "), NULL) : 0;
        if (!(mib > 0)) fail_msg("no number: %s", err.text);
        const uint64_t more = WORLD_WORKERS * (uint64_t)(mib * (1 << 20) + 1);
        if (more <= o.memory_bytes) fail_msg("%.1f MiB do not do: %s", mib, err.text);
        o.memory_bytes = more;
    }
}

void world_run_one(const struct world *w, const struct drps_train_options *train,
                   struct drps_train_result *result)
{
    struct drps_plan *plan;
    struct drps_err err = DRPS_ERR_INIT;
    if (drps_plan_open(drps_io_os(), w->one, &plan, &err) < 0) fail_msg("%s", err.text);
    if (drps_train_run(plan, train, result, &err) < 0) fail_msg("%s", err.text);
    drps_plan_close(plan);
}

void world_check_model(const struct world *w, const struct drps_train_result *r)
{
    struct drps_modeldir *md;
    struct drps_err err = DRPS_ERR_INIT;
    if (drps_modeldir_open(drps_io_os(), w->model, 64 << 20, &md, &err) < 0)
        fail_msg("%s", err.text);
    if (drps_modeldir_verify(md, NULL, &err) < 0) fail_msg("%s", err.text);
    assert_int_equal(drps_modeldir_info(md)->content, r->content);
    drps_modeldir_close(md);
}

void world_damage(const struct world *w, const char *name)
{
    char path[SCRATCH_PATH_BYTES + 32];
    size_t n;
    (void)snprintf(path, sizeof(path), "%s/rank-1/%s", w->plan, name);
    char *data = scratch_read(path, &n);
    data[n / 2] ^= 0x40;
    scratch_write(path, data, n);
    free(data);
}
