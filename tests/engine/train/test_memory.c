/*
 * The least memory that a refusal asks for is enough, and so is all that is more: whatever the
 * disk, the plan and the store, training then gives the model that it gives with all rows in
 * memory.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_size.h"
#include "engine/drps_engine.h"
#include "storage/kv/drps_kv.h"
#include "support/index_case.h"
#include "support/world.h"

enum { KIB = 1 << 10, MIB = 1 << 20, FEW = DRPS_TEST_ONE_IN > 1 };

struct kind {
    const char *name, *algo, *order, *blocks;
    enum case_format format;
    size_t samples, features;
    uint32_t rank, lanes;
    uint64_t batch;
    int apart;    /* neighbouring samples have no feature in common, and all have as many */
    int one_step; /* a step is trained once the store has its file */
};

static const struct kind many_steps = {.name = "more steps than the least buffers hold windows",
                                       .algo = "fm",
                                       .format = CASE_LIBSVM,
                                       .samples = 22000,
                                       .features = 3000,
                                       .rank = 256,
                                       .batch = 4};

/* Samples that go through all features in turn, 50 at a time. */
static const char *input_apart(struct scratch *s, const struct kind *k)
{
    enum { EACH = 50 };
    const char *path = scratch_path(s, "input");
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    for (size_t i = 0; i < k->samples; i++) {
        (void)fputs(i % 3 ? "1" : "0", f);
        for (size_t j = 0; j < EACH; j++)
            (void)fprintf(f, " %zu:1", i * EACH % k->features + j + 1);
        (void)fputc('\n', f);
    }
    assert_int_equal(fclose(f), 0);
    return path;
}

/* The operating system's calls; training is to stop once the store has its file, the only one that
 * is both written and read and gets its space at once. */
struct stopping_io {
    struct drps_io io;
    struct drps_io_ops ops;
    atomic_int stop;
};

static int stop_at_fallocate(void *ctx, int fd, uint64_t size)
{
    const int flags = fcntl(fd, F_GETFL);
    if ((flags & O_ACCMODE) == O_RDWR) atomic_store(&((struct stopping_io *)ctx)->stop, 1);
    return drps_io_os()->ops->fallocate(NULL, fd, size);
}

static void stopping_io_init(struct stopping_io *s)
{
    *s = (struct stopping_io){.ops = *drps_io_os()->ops};
    s->ops.fallocate = stop_at_fallocate;
    s->io = (struct drps_io){.ops = &s->ops, .ctx = s};
}

/* The plan of this kind, in the scratch folder. */
static struct drps_plan *make_plan(struct scratch *s, const struct kind *k,
                                   const struct drps_io *io)
{
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_plan *plan;
    struct case_run c;
    case_begin(&c, s,
               k->apart ? input_apart(s, k)
                        : case_input(s, "input", k->format, k->samples, k->features, 7),
               k->algo);
    c.options.batch_size = k->batch;
    c.options.factors = k->rank;
    c.options.test_fraction = 0.05;
    c.options.force = 1;
    c.options.lanes = k->lanes;
    if (k->order) c.options.order = k->order;
    if (k->blocks) c.options.blocks.by = k->blocks;
    case_compile(&c);
    if (drps_plan_open(io, c.out, &plan, &err) < 0) fail_msg("%s", err.text);
    return plan;
}

struct run {
    const struct drps_plan *plan;
    struct stopping_io io;
    const struct kind *kind;
    struct drps_train_options options;
    uint64_t content; /* of the model that is right */
    uint32_t most_windows;
    int refitted; /* windows that were too many for the buffers */
};

static void count_refitted(void *ctx, enum drps_log_level level, const char *text)
{
    (void)level;
    *(int *)ctx += strstr(text, "too many for the memory") != NULL;
}

static int train(struct run *r, struct drps_train_result *result, struct drps_err *err)
{
    struct drps_train_options o = r->options;
    const struct drps_log log = {DRPS_LOG_INFO, count_refitted, &r->refitted};
    o.log = &log;
    *err = (struct drps_err)DRPS_ERR_INIT;
    int rc = drps_train_run(r->plan, &o, result, err);
    return rc == DRPS_E_INTERRUPTED && r->kind->one_step ? 0 : rc;
}

/* What a refusal asks for. */
static uint64_t asked_for(const char *text)
{
    struct drps_err err = DRPS_ERR_INIT;
    char number[64];
    uint64_t bytes = 0;
    const char *at = strstr(text, "at least ");
    if (!at) fail_msg("no number: %s", text);
    at += strlen("at least ");
    const char *end = strstr(at, " is needed");
    if (!end || (size_t)(end - at) >= sizeof(number)) fail_msg("no number: %s", text);
    size_t n = 0;
    for (const char *c = at; c < end; c++)
        if (*c != ' ') number[n++] = *c;
    number[n] = '\0';
    if (drps_size_parse(number, &bytes, &err) < 0) fail_msg("%s", err.text);
    return bytes;
}

/* It asks for that, rounded up; *exact_out: what it is before. */
static uint64_t refused_with(struct run *r, uint64_t memory_bytes, uint64_t *exact_out)
{
    struct drps_train_result result;
    struct drps_err err;
    r->options.memory_bytes = memory_bytes;
    assert_int_equal(train(r, &result, &err), DRPS_E_MEMORY_BUDGET);
    *exact_out = result.memory.used_bytes;
    drps_train_result_free(&result);
    return asked_for(err.text);
}

static void must_train(struct run *r, uint64_t memory_bytes)
{
    struct drps_train_result result;
    struct drps_err err;
    r->options.memory_bytes = memory_bytes;
    atomic_store(&r->io.stop, 0);
    if (train(r, &result, &err) < 0)
        fail_msg("%s, %s, seeks of %llu bytes: %llu bytes of memory: %s", r->kind->name,
                 r->options.store, (unsigned long long)r->options.seek_bytes,
                 (unsigned long long)memory_bytes, err.text);
    if (result.content != r->content)
        fail_msg("%s, %s, %llu bytes of memory: another model", r->kind->name, r->options.store,
                 (unsigned long long)memory_bytes);
    if (result.windows_n > r->most_windows) r->most_windows = (uint32_t)result.windows_n;
    drps_train_result_free(&result);
}

static void begin_run(struct run *r, const struct kind *k, struct scratch *s)
{
    struct drps_train_result result;
    struct drps_err err;
    *r = (struct run){.kind = k};
    stopping_io_init(&r->io);
    r->plan = make_plan(s, k, &r->io.io);
    r->options = (struct drps_train_options){
        .model_path = scratch_path(s, "model"), .replace = 1, .epochs = 1, .store = "resident"};
    if (k->one_step) r->options.stop = &r->io.stop;
    atomic_store(&r->io.stop, 1); /* all rows are in memory: there is no file to wait for */
    if (train(r, &result, &err) < 0) fail_msg("%s", err.text);
    r->content = result.content;
    drps_train_result_free(&result);
}

/* Train with memory from the least on, in steps that grow, up to twice as much as all rows take;
 * in fewer steps where tests are few. */
static void sweep(struct run *r, const char *store, uint64_t seek_bytes, uint64_t first_step)
{
    const uint64_t rows = 2 * r->plan->info.rows * r->plan->info.row_bytes;
    r->options.store = store;
    r->options.seek_bytes = seek_bytes;
    uint64_t least, again;
    const uint64_t asked = refused_with(r, 1, &least);
    assert_in_range(asked, least, least + MIB / 8);
    assert_int_equal(refused_with(r, least - 1, &again), asked);
    assert_int_equal(again, least);
    must_train(r, asked);
    must_train(r, least);
    for (uint64_t more = first_step; more < rows + 4 * MIB; more *= FEW ? 64 : 4)
        must_train(r, least + more);
}

static void test_least_is_enough_with_many_steps(void **state)
{
    static const uint64_t seeks[] = {0, MIB};
    struct run r;
    begin_run(&r, &many_steps, *state);
    assert_true(r.plan->info.batches > 5000);
    for (size_t i = 0; i < sizeof(seeks) / sizeof(*seeks); i++)
        sweep(&r, "relay", seeks[i], i ? 512 * KIB : 32 * KIB);
    assert_true(r.most_windows > 300);
    drps_plan_close((struct drps_plan *)r.plan);
}

/* Two steps more in memory would take more than the buffers do: windows of few steps, so many that
 * the usual buffers have no room for them, and they are cut anew beside larger buffers. */
static void test_least_is_enough_with_wide_rows(void **state)
{
    static const struct kind kind = {.name = "wide rows",
                                     .algo = "fm",
                                     .order = "given",
                                     .format = CASE_LIBSVM,
                                     .samples = 8000,
                                     .features = 800,
                                     .rank = 4096,
                                     .batch = 1,
                                     .apart = 1,
                                     .one_step = 1};
    struct run r;
    begin_run(&r, &kind, *state);
    sweep(&r, "relay", 0, MIB);
    assert_true(r.refitted > 0);
    drps_plan_close((struct drps_plan *)r.plan);
}

static void test_least_is_enough_for_every_store(void **state)
{
    static const struct kind kinds[] = {
        {.name = "shuffled",
         .algo = "fm",
         .format = CASE_LIBSVM,
         .samples = 1500,
         .features = 20000,
         .rank = 8,
         .batch = 10},
        {.name = "grid",
         .algo = "lmf",
         .format = CASE_RATINGS,
         .samples = 6000,
         .features = 1500,
         .rank = 64,
         .batch = 20,
         .order = "grid"},
        {.name = "lanes",
         .algo = "lmf",
         .format = CASE_RATINGS,
         .samples = 6000,
         .features = 1500,
         .rank = 64,
         .batch = 20,
         .order = "grid",
         .lanes = 4},
    };
    static const uint64_t seeks[] = {0, 4 * KIB, 256 * KIB, 3 * MIB};
    for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
        struct run r;
        begin_run(&r, &kinds[i], *state);
        for (size_t k = 0; k < sizeof(seeks) / sizeof(*seeks); k++)
            sweep(&r, "relay", seeks[k], k ? 512 * KIB : 16 * KIB);
        for (const struct drps_kv_ops *const *kv = drps_kv_engines(); *kv; kv++)
            sweep(&r, (*kv)->name, 0, 512 * KIB);
        drps_plan_close((struct drps_plan *)r.plan);
    }
}

/* The store that a run with so much memory has; "" where it is refused. */
static const char *store_with(struct run *r, uint64_t memory_bytes)
{
    static char store[DRPS_TRAIN_NAME_BYTES];
    struct drps_train_result result;
    struct drps_err err;
    r->options.memory_bytes = memory_bytes;
    const int rc = train(r, &result, &err);
    if (rc < 0 && rc != DRPS_E_MEMORY_BUDGET) fail_msg("%s", err.text);
    (void)snprintf(store, sizeof(store), "%s", rc < 0 ? "" : result.store);
    drps_train_result_free(&result);
    return store;
}

/* Whoever asks before training is told what training refuses. */
static void test_needs_are_what_training_takes(void **state)
{
    static const struct kind large = {.name = "larger than its batches",
                                      .algo = "fm",
                                      .format = CASE_LIBSVM,
                                      .samples = 1500,
                                      .features = 40000,
                                      .rank = 256,
                                      .batch = 10,
                                      .one_step = 1};
    static const struct kind small = {.name = "small",
                                      .algo = "lor",
                                      .format = CASE_LIBSVM,
                                      .samples = 60,
                                      .features = 20,
                                      .batch = 10};
    const struct kind *const kinds[] = {&large, &small};
    for (size_t i = 0; i < 2; i++) {
        struct run r;
        struct drps_train_needs needs, with;
        struct drps_err err = DRPS_ERR_INIT;
        begin_run(&r, kinds[i], *state);
        r.options.store = NULL;
        if (drps_train_needs(r.plan, &r.options, &needs, &err) < 0) fail_msg("%s", err.text);
        assert_string_equal(store_with(&r, needs.least_bytes), i == 0 ? "relay" : "resident");
        assert_string_equal(store_with(&r, needs.least_bytes - 1), "");
        assert_string_equal(store_with(&r, needs.all_rows_bytes), "resident");
        if (i == 0) assert_string_equal(store_with(&r, needs.all_rows_bytes - 1), "relay");
        if (i == 1) assert_true(needs.all_rows_bytes == needs.least_bytes);

        r.options.memory_bytes = needs.least_bytes - 1;
        assert_int_equal(drps_train_needs(r.plan, &r.options, &with, &err), 0);
        assert_true(!with.fits && !with.keeps_all_rows && !with.held_rows_bytes);
        assert_true(with.least_bytes == needs.least_bytes);
        r.options.memory_bytes = needs.all_rows_bytes;
        assert_int_equal(drps_train_needs(r.plan, &r.options, &with, &err), 0);
        assert_true(with.fits && with.keeps_all_rows && !with.held_rows_bytes);
        if (i == 0) {
            const uint64_t rows = r.plan->info.rows * r.plan->info.row_bytes;
            r.options.memory_bytes = needs.all_rows_bytes - rows / 2;
            assert_int_equal(drps_train_needs(r.plan, &r.options, &with, &err), 0);
            assert_true(with.fits && !with.keeps_all_rows);
            assert_in_range(with.held_rows_bytes, rows / 8, rows / 2);
        }
        drps_plan_close((struct drps_plan *)r.plan);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_needs_are_what_training_takes, scratch_setup,
                                        scratch_teardown),
        cmocka_unit_test_setup_teardown(test_least_is_enough_with_many_steps, scratch_setup,
                                        scratch_teardown),
        cmocka_unit_test_setup_teardown(test_least_is_enough_with_wide_rows, scratch_setup,
                                        scratch_teardown),
        cmocka_unit_test_setup_teardown(test_least_is_enough_for_every_store, scratch_setup,
                                        scratch_teardown),
    };
    return cmocka_run_group_tests_name("memory", tests, NULL, NULL);
}
