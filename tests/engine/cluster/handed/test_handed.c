/*
 * Training in which rows are handed on: the model has the bytes of training without, for every
 * model, optimizer, placement, number of ranks and store; bytes are those that the plan says; ranks
 * stop between epochs alone and go on as if they had not; and what cannot be is refused.
 *
 *   test_handed [seed]
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/world.h"

static uint64_t seed = 20240607;

/* ---- Plans ---- */

struct wish {
    const char *algo, *optimizer, *partition, *samples, *store;
    enum case_format format;
    uint32_t workers, servers;
    int separate;
    uint64_t slots;
    float l2;
};

static uint32_t states_of(const char *optimizer)
{
    static const char *const names[] = {"sgd", "adagrad", "ftrl", "adam"};
    uint32_t states = 0;
    while (strcmp(optimizer, names[states]) != 0)
        states++;
    return states;
}

/* A world whose plan hands rows on. */
static struct world *begin(const struct wish *wish)
{
    struct world *w = world_begin_sized(wish->algo, wish->format, 60, 50, 8, 8, seed);
    const char *input = case_input(&w->scratch, "handed", wish->format, 900,
                                   wish->format == CASE_RATINGS ? 200 : 1000, seed);
    struct case_run run;
    case_begin(&run, &w->scratch, input, wish->algo);
    (void)snprintf(run.out, sizeof(run.out), "%s", scratch_path(&w->scratch, "handed-plan"));
    run.options.workers = wish->workers;
    run.options.servers = wish->servers;
    run.options.separate = wish->separate;
    run.options.partition = wish->partition;
    run.options.samples = wish->samples;
    run.options.batch_size = 12;
    run.options.factors = strcmp(wish->algo, "lor") == 0 ? 0 : 4;
    run.options.test_fraction = 0.2;
    run.options.hand_on = wish->slots;
    run.options.hand_on_states = states_of(wish->optimizer);
    case_compile(&run);
    case_verify(run.out);
    (void)snprintf(w->plan, sizeof(w->plan), "%s", run.out);
    w->workers = run.result.info.ranks.count;
    return w;
}

static struct drps_train_options options_of(const struct world *w, const struct wish *wish)
{
    struct drps_train_options o = world_options(w);
    o.optimizer = wish->optimizer;
    o.l2 = wish->l2;
    o.store = wish->store;
    return o;
}

/* ---- Models, and bytes ---- */

static struct drps_traffic_sum sent(const struct drps_train_result *r, enum drps_traffic_kind kind)
{
    struct drps_traffic_sum sum = {0};
    for (size_t i = 0; i < r->ranks_n; i++) {
        sum.rows += r->ranks[i].sent[kind].rows;
        sum.bytes += r->ranks[i].sent[kind].bytes;
    }
    return sum;
}

static void check_bytes(const struct world *w, const struct drps_train_result *r)
{
    for (size_t i = 0; i < r->ranks_n; i++) {
        assert_int_equal(r->ranks[i].sent_bytes, r->ranks[i].forecast_sent_bytes);
        assert_int_equal(r->ranks[i].received_bytes, r->ranks[i].forecast_received_bytes);
    }
    assert_memory_equal(r->links.sent, r->links.forecast,
                        r->ranks_n * r->ranks_n * sizeof(*r->links.sent));
    (void)w;
}

static uint64_t all_bytes(const struct drps_train_result *r)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < r->ranks_n; i++)
        sum += r->ranks[i].sent_bytes;
    return sum;
}

static void check_wish(const struct wish *wish)
{
    struct world *w = begin(wish);
    struct drps_train_options o = options_of(w, wish);
    struct drps_train_result plain, r;
    o.no_hand_on = 1;
    o.no_fresh = 1;
    world_train(w, &o, &plain);
    assert_int_equal(sent(&plain, DRPS_TRAFFIC_HANDED).rows, 0);
    for (int way = 0; way < 3; way++) {
        o = options_of(w, wish);
        o.no_overlap = o.no_fresh = way == 1;
        o.threads = way == 2 ? 1 : 0;
        world_train(w, &o, &r);
        if (r.content != plain.content)
            fail_msg("seed %llu: %s %s %s, %u workers, slots %llu: another model",
                     (unsigned long long)seed, wish->algo, wish->optimizer, wish->partition,
                     wish->workers, (unsigned long long)wish->slots);
        if (way == 1) {
            check_bytes(w, &r);
            assert_true(all_bytes(&r) < all_bytes(&plain));
        }
        if (!sent(&r, DRPS_TRAFFIC_HANDED).rows)
            fail_msg("%s %s %s: no row is handed on", wish->algo, wish->optimizer, wish->partition);
        drps_train_result_free(&r);
    }
    drps_train_result_free(&plain);
    world_end(w);
}

static void test_models_are_those_without(void **state)
{
    static const struct wish wishes[] = {
        {"lor", "sgd", "range", NULL, "resident", CASE_LIBSVM, 2, 0, 0, UINT64_MAX, 0},
        {"lor", "adagrad", "hash", NULL, "relay", CASE_LIBSVM, 3, 0, 0, UINT64_MAX, 0.001F},
        {"lor", "ftrl", "range", NULL, "resident", CASE_LIBSVM, 4, 0, 0, UINT64_MAX, 0.001F},
        {"fm", "sgd", "auto", "dealt", "relay", CASE_LIBSVM, 3, 0, 0, 12, 0.001F},
        {"fm", "adagrad", "hash", NULL, "resident", CASE_LIBSVM, 4, 0, 0, UINT64_MAX, 0},
        {"lmf", "sgd", "auto", "placed", "relay", CASE_RATINGS, 4, 0, 0, UINT64_MAX, 0},
        {"lmf", "sgd", "auto", "round", "resident", CASE_RATINGS, 4, 0, 0, 5, 0},
        {"lmf", "adagrad", "range", NULL, "relay", CASE_RATINGS, 3, 0, 0, 20, 0.001F},
        {"fm", "adam", "hash", NULL, "relay", CASE_LIBSVM, 3, 0, 0, UINT64_MAX, 0.001F},
        {"lor", "adam", "range", NULL, "resident", CASE_LIBSVM, 2, 0, 0, UINT64_MAX, 0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(wishes) / sizeof(*wishes); i++)
        check_wish(&wishes[i]);
}

/* Servers without workers, and workers without servers. */
static void test_ranks_that_differ(void **state)
{
    static const struct wish wishes[] = {
        {"fm", "sgd", "range", NULL, "resident", CASE_LIBSVM, 3, 1, 0, UINT64_MAX, 0},
        {"lmf", "sgd", "hash", NULL, "relay", CASE_RATINGS, 2, 3, 0, 15, 0},
        {"lor", "adagrad", "hash", NULL, "resident", CASE_LIBSVM, 3, 2, 1, UINT64_MAX, 0.001F},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(wishes) / sizeof(*wishes); i++)
        check_wish(&wishes[i]);
}

static const struct wish usual = {"fm", "adagrad", "range", NULL,       "resident", CASE_LIBSVM,
                                  3,    0,         0,       UINT64_MAX, 0};

/* An optimizer with more state, and another synchronisation, go without. */
static void test_rows_stay_with_servers_where_it_would_not_pay(void **state)
{
    struct wish wish = usual;
    struct drps_train_result r;
    (void)state;
    wish.optimizer = "sgd";
    struct world *w = begin(&wish);
    struct drps_train_options o = options_of(w, &wish);
    o.optimizer = "adagrad";
    world_train(w, &o, &r);
    assert_int_equal(sent(&r, DRPS_TRAFFIC_HANDED).rows, 0);
    drps_train_result_free(&r);
    o.optimizer = "sgd";
    o.sync = DRPS_SCHED_SSP;
    world_train(w, &o, &r);
    assert_int_equal(sent(&r, DRPS_TRAFFIC_HANDED).rows, 0);
    drps_train_result_free(&r);
    world_end(w);
}

/* ---- Stopping ---- */

static atomic_int stop;

static void stop_now(void *ctx, const struct drps_train_progress *p)
{
    (void)ctx;
    (void)p;
    atomic_store(&stop, 1);
}

static void stop_in_batch(void *ctx, const struct drps_train_batch *batch)
{
    (void)ctx;
    if (batch->step == 5) atomic_store(&stop, 1);
}

/* What is interrupted ends with its epoch, and goes on as if it had not been. */
static void test_ranks_stop_between_epochs(void **state)
{
    struct world *w = begin(&usual);
    struct drps_train_options o = options_of(w, &usual);
    struct drps_train_result whole, r;
    struct drps_err err = DRPS_ERR_INIT;
    (void)state;
    o.epochs = 3;
    world_train(w, &o, &whole);
    o.on_progress = stop_now;
    o.on_batch = stop_in_batch;
    o.stop = &stop;
    atomic_store(&stop, 0);
    assert_int_equal(world_run(w, &o, &r, &err), DRPS_E_INTERRUPTED);
    assert_int_equal(r.epochs_n, 1);
    assert_int_equal(r.steps, 0);
    drps_train_result_free(&r);
    o = options_of(w, &usual);
    o.epochs = 3;
    o.resume = 1;
    world_train(w, &o, &r);
    assert_int_equal(r.resumed_epoch, 2);
    assert_int_equal(r.content, whole.content);
    drps_train_result_free(&r);
    drps_train_result_free(&whole);
    world_end(w);
}

/* Rows are handed on from the beginning of an epoch: in its middle all are with servers, and stay
 * there. */
static void test_the_middle_of_an_epoch_goes_on_without(void **state)
{
    struct world *w = begin(&usual);
    struct drps_train_options o = options_of(w, &usual);
    struct drps_train_result whole, r;
    struct drps_err err = DRPS_ERR_INIT;
    (void)state;
    world_train(w, &o, &whole);
    o.no_hand_on = 1;
    o.on_batch = stop_in_batch;
    o.stop = &stop;
    atomic_store(&stop, 0);
    assert_int_equal(world_run(w, &o, &r, &err), DRPS_E_INTERRUPTED);
    assert_int_equal(r.epochs_n, 0);
    drps_train_result_free(&r);
    o = options_of(w, &usual);
    o.resume = 1;
    err = (struct drps_err)DRPS_ERR_INIT;
    assert_int_equal(world_run(w, &o, &r, &err), DRPS_E_CONFIG);
    if (!strstr(err.text, "inside an epoch")) fail_msg("%s", err.text);
    drps_train_result_free(&r);
    o.no_hand_on = 1;
    world_train(w, &o, &r);
    assert_int_equal(r.content, whole.content);
    drps_train_result_free(&r);
    drps_train_result_free(&whole);
    world_end(w);
}

/* ---- Refused ---- */

static void check_refused(const struct world *w, const struct drps_train_options *o, int code,
                          const char *why)
{
    struct drps_train_result r;
    struct drps_err err = DRPS_ERR_INIT;
    assert_int_equal(world_run(w, o, &r, &err), code);
    if (!strstr(err.text, why)) fail_msg("%s", err.text);
    drps_train_result_free(&r);
}

static void test_gradients_are_not_filtered(void **state)
{
    struct world *w = begin(&usual);
    struct drps_train_options o = options_of(w, &usual);
    (void)state;
    o.push = (struct drps_push_options){.on = 1, .bits = 8};
    check_refused(w, &o, DRPS_E_CONFIG, "residual slots");
    world_end(w);
}

/* Flip a bit in each byte of the first half of a file of rank 1, behind what it begins with. */
static void damage(const struct world *w, const char *name)
{
    char path[SCRATCH_PATH_BYTES + 32];
    size_t n;
    (void)snprintf(path, sizeof(path), "%s/rank-1/%s", w->plan, name);
    char *data = scratch_read(path, &n);
    for (size_t i = n / 4; i < n / 2; i++)
        data[i] ^= 0x40;
    scratch_write(path, data, n);
    free(data);
}

static void test_damaged_records_are_refused(void **state)
{
    static const char *const names[] = {"handed.rec", "lent.rec"};
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct world *w = begin(&usual);
        const struct drps_train_options o = options_of(w, &usual);
        struct drps_train_result r;
        struct drps_err err = DRPS_ERR_INIT;
        damage(w, names[i]);
        const int rc = world_run(w, &o, &r, &err);
        if (rc != DRPS_E_PEER_FAILED && rc != DRPS_E_CORRUPT)
            fail_msg("%s: %d, %s", names[i], rc, err.text);
        if (!strstr(err.text, names[i])) fail_msg("%s is damaged: %s", names[i], err.text);
        drps_train_result_free(&r);
        world_end(w);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_models_are_those_without),
        cmocka_unit_test(test_ranks_that_differ),
        cmocka_unit_test(test_rows_stay_with_servers_where_it_would_not_pay),
        cmocka_unit_test(test_ranks_stop_between_epochs),
        cmocka_unit_test(test_the_middle_of_an_epoch_goes_on_without),
        cmocka_unit_test(test_gradients_are_not_filtered),
        cmocka_unit_test(test_damaged_records_are_refused),
    };
    if (argc > 1) seed = strtoull(argv[1], NULL, 0);
    printf("seed %llu\n", (unsigned long long)seed);
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
