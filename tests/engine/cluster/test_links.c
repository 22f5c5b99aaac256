/*
 * What ranks say of the bytes between them: from rank to rank they are what the plan says, to the
 * byte, and their sums are what both sides have counted; whatever sends them.
 *
 *   test_links [seed]
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/cluster/drps_ranks.h"
#include "engine/cluster/traffic/drps_ranks_json.h"
#include "support/index_case.h"

enum { SAMPLES = 700, FEATURES = 150, BATCH = 20, RANKS_MOST = 4 };

static uint64_t seed = 20250311;

/* A plan, and how it is trained. */
struct ways {
    const char *name, *algo;
    uint32_t workers;
    const char *partition, *samples, *order; /* NULL: the usual ones */
    float l2;                                /* counts travel with gradients */
    const char *store;
    enum drps_sched_mode sync;
    int overlap, fresh; /* rows go ahead; and are made, not sent, where nobody has trained them */
    const char *from;
};

static uint64_t planned_fresh; /* of the plan made last: rows of the first epoch */

static struct drps_train_result train(struct scratch *s, const struct ways *w)
{
    struct case_run run;
    struct drps_train_result r;
    struct drps_err err = DRPS_ERR_INIT;
    const enum case_format format = strcmp(w->algo, "lmf") == 0 ? CASE_RATINGS : CASE_LIBSVM;
    case_begin(&run, s, case_input(s, "in", format, SAMPLES, FEATURES, seed), w->algo);
    run.options.workers = w->workers;
    run.options.batch_size = BATCH;
    run.options.factors = strcmp(w->algo, "fm") == 0 || strcmp(w->algo, "lmf") == 0 ? 3 : 0;
    run.options.test_fraction = 0.2;
    run.options.partition = w->partition;
    run.options.samples = w->samples;
    run.options.order = w->order;
    run.options.force = 1;
    case_compile(&run);
    planned_fresh = run.result.links.fresh_rows;
    const struct drps_train_options o = {.model_path = scratch_path(s, "model"),
                                         .replace = 1,
                                         .epochs = 2,
                                         .seed = 7,
                                         .memory_bytes = 512 << 20,
                                         .l2 = w->l2,
                                         .store = w->store,
                                         .sync = w->sync,
                                         .no_overlap = !w->overlap,
                                         .no_fresh = !w->fresh,
                                         .from = w->from};
    const struct drps_ranks_options ranks = {
        .plan = run.out, .train = &o, .transport = DRPS_RANKS_INPROC, .wait_ms = 60000};
    if (drps_ranks_run_local(&ranks, w->workers, &r, &err) < 0)
        fail_msg("%s: %s", w->name, err.text);
    return r;
}

/* ---- What is checked ---- */

static uint64_t sum(const uint64_t *at, size_t n, size_t stride)
{
    uint64_t all = 0;
    for (size_t i = 0; i < n; i++)
        all += at[i * stride];
    return all;
}

/* The bytes of a rank that are no values. */
static uint64_t extra(const struct drps_train_rank *k)
{
    return k->sent[DRPS_TRAFFIC_MARKS].bytes + k->sent[DRPS_TRAFFIC_BATCHES].bytes;
}

static uint64_t all_kinds(const struct drps_train_rank *k)
{
    uint64_t all = 0;
    for (int kind = 0; kind < DRPS_TRAFFIC_KINDS; kind++)
        all += k->sent[kind].bytes;
    return all;
}

/* Kinds, links and totals are counted apart, and agree. */
static void check_sums(const struct ways *w, const struct drps_train_result *r)
{
    const size_t n = r->ranks_n;
    uint64_t sent = 0, received = 0;
    for (size_t i = 0; i < n; i++) {
        const struct drps_train_rank *k = &r->ranks[i];
        const uint64_t to_all = sum(r->links.sent + i * n, n, 1);
        assert_int_equal(r->links.sent[i * n + i], 0);
        assert_int_equal(r->links.forecast[i * n + i], 0);
        if (to_all != all_kinds(k) || to_all != k->sent_bytes + extra(k))
            fail_msg("%s, rank %zu: %llu bytes to all, %llu of all kinds, %llu sent", w->name, i,
                     (unsigned long long)to_all, (unsigned long long)all_kinds(k),
                     (unsigned long long)k->sent_bytes);
        assert_true(k->other_sent_bytes >= extra(k));
        sent += to_all - extra(k);
        received += k->received_bytes;
    }
    assert_int_equal(sent, received);
    assert_true(sent > 0);
}

/* Each link's forecast is a part of the rank's. */
static void check_forecast(const struct drps_train_result *r)
{
    const size_t n = r->ranks_n;
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(sum(r->links.forecast + i * n, n, 1), r->ranks[i].forecast_sent_bytes);
        assert_int_equal(sum(r->links.forecast + i, n, n), r->ranks[i].forecast_received_bytes);
    }
}

static void check_as_planned(const struct ways *w, const struct drps_train_result *r)
{
    const size_t n = r->ranks_n;
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < n; k++)
            if (r->links.sent[i * n + k] != r->links.forecast[i * n + k])
                fail_msg("%s: %llu bytes from rank %zu to %zu, the plan says %llu", w->name,
                         (unsigned long long)r->links.sent[i * n + k], i, k,
                         (unsigned long long)r->links.forecast[i * n + k]);
        assert_int_equal(sum(r->links.sent + i, n, n), r->ranks[i].received_bytes);
    }
}

/* Returns the rows of a kind that all have sent. */
static uint64_t rows_of(const struct drps_train_result *r, enum drps_traffic_kind kind)
{
    uint64_t rows = 0;
    for (size_t i = 0; i < r->ranks_n; i++)
        rows += r->ranks[i].sent[kind].rows;
    return rows;
}

static uint64_t bytes_of(const struct drps_train_result *r, enum drps_traffic_kind kind)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < r->ranks_n; i++)
        bytes += r->ranks[i].sent[kind].bytes;
    return bytes;
}

/* Returns the bytes that all have sent. */
static uint64_t all_bytes(const struct drps_train_result *r)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < r->ranks_n; i++)
        bytes += all_kinds(&r->ranks[i]);
    return bytes;
}

/* ---- Rounds ---- */

static void test_links_of_rounds_are_as_planned(void **state)
{
    static const char *const partitions[][2] = {
        {"range", NULL}, {"hash", NULL}, {"auto", "dealt"}, {"auto", NULL}, {"auto", "round"}};
    struct scratch *s = *state;
    for (uint32_t workers = 2; workers <= RANKS_MOST; workers++)
        for (size_t p = 0; p < sizeof(partitions) / sizeof(*partitions); p++) {
            const struct ways w = {.name = partitions[p][0],
                                   .algo = p % 2 ? "fm" : "lor",
                                   .workers = workers,
                                   .partition = partitions[p][0],
                                   .samples = partitions[p][1],
                                   .l2 = workers == 3 ? 0.01f : 0,
                                   .store = workers == 4 ? "relay" : "resident"};
            struct drps_train_result r = train(s, &w);
            check_sums(&w, &r);
            check_forecast(&r);
            check_as_planned(&w, &r);
            assert_int_equal(rows_of(&r, DRPS_TRAFFIC_AHEAD), 0);
            assert_int_equal(bytes_of(&r, DRPS_TRAFFIC_MARKS), 0);
            assert_true(rows_of(&r, DRPS_TRAFFIC_PUSHED) > 0);
            drps_train_result_free(&r);
        }
}

/* What goes ahead is not sent again: in all it is as much. */
static void test_links_count_what_goes_ahead(void **state)
{
    struct ways w = {.name = "ahead", .algo = "fm", .workers = 3, .store = "resident"};
    struct drps_train_result r = train(*state, &w);
    const uint64_t pulled = rows_of(&r, DRPS_TRAFFIC_PULLED);
    const uint64_t pulled_bytes = bytes_of(&r, DRPS_TRAFFIC_PULLED);
    drps_train_result_free(&r);

    w.overlap = 1;
    r = train(*state, &w);
    check_sums(&w, &r);
    check_forecast(&r);
    assert_true(rows_of(&r, DRPS_TRAFFIC_AHEAD) > 0);
    assert_true(bytes_of(&r, DRPS_TRAFFIC_MARKS) > 0);
    assert_int_equal(rows_of(&r, DRPS_TRAFFIC_MARKS), 0);
    assert_int_equal(rows_of(&r, DRPS_TRAFFIC_PULLED) + rows_of(&r, DRPS_TRAFFIC_AHEAD), pulled);
    assert_int_equal(bytes_of(&r, DRPS_TRAFFIC_PULLED) + bytes_of(&r, DRPS_TRAFFIC_AHEAD),
                     pulled_bytes);
    for (size_t i = 0; i < r.ranks_n; i++)
        assert_int_equal(r.ranks[i].sent_bytes, r.ranks[i].forecast_sent_bytes);
    drps_train_result_free(&r);
}

/* ---- Rows that nobody has trained ---- */

static uint64_t fresh_bytes(const struct drps_train_result *r)
{
    return rows_of(r, DRPS_TRAFFIC_FRESH) * (r->model_bytes / r->rows);
}

/* Values are what the plan says, less what is made; marks are more. */
static void check_without_fresh(const struct ways *w, const struct drps_train_result *r)
{
    const size_t n = r->ranks_n;
    check_forecast(r);
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(r->ranks[i].sent_bytes, r->ranks[i].forecast_sent_bytes);
        assert_int_equal(r->ranks[i].received_bytes, r->ranks[i].forecast_received_bytes);
        for (size_t k = 0; k < n; k++)
            if (r->links.forecast[i * n + k] > r->links.sent[i * n + k])
                fail_msg("%s: %llu bytes from rank %zu to %zu, the plan says %llu", w->name,
                         (unsigned long long)r->links.sent[i * n + k], i, k,
                         (unsigned long long)r->links.forecast[i * n + k]);
    }
}

/* They are made where they are needed, to the bit, and everything else is sent. */
static void check_fresh(struct scratch *s, struct ways w)
{
    struct drps_train_result plain = train(s, &w);
    w.fresh = 1;
    struct drps_train_result r = train(s, &w);
    if (r.content != plain.content) fail_msg("%s, %s: the model is another one", w.algo, w.store);
    assert_int_equal(fresh_bytes(&plain), 0);
    check_sums(&w, &r);
    check_without_fresh(&w, &r);
    /* A message whose marks would cost more than they save has all rows. */
    if (!fresh_bytes(&r) || rows_of(&r, DRPS_TRAFFIC_FRESH) > planned_fresh)
        fail_msg("%s, %s: %llu rows were made, the plan says %llu", w.algo, w.store,
                 (unsigned long long)rows_of(&r, DRPS_TRAFFIC_FRESH),
                 (unsigned long long)planned_fresh);
    assert_int_equal(bytes_of(&r, DRPS_TRAFFIC_FRESH), 0);
    assert_int_equal(bytes_of(&r, DRPS_TRAFFIC_PULLED) + bytes_of(&r, DRPS_TRAFFIC_AHEAD) +
                         fresh_bytes(&r),
                     bytes_of(&plain, DRPS_TRAFFIC_PULLED) + bytes_of(&plain, DRPS_TRAFFIC_AHEAD));
    assert_true(all_bytes(&r) < all_bytes(&plain)); /* with the marks of what is left out */
    for (size_t e = 0; e < 2; e++) {
        assert_true(r.epochs[e].train_loss == plain.epochs[e].train_loss);
        assert_true(r.epochs[e].test.loss == plain.epochs[e].test.loss);
    }
    drps_train_result_free(&plain);
    drps_train_result_free(&r);
}

static void test_fresh_rows_are_made_as_they_are(void **state)
{
    static const char *const stores[] = {"resident", "relay", "file"};
    static const char *const algos[] = {"lor", "fm", "lmf", "svm"};
    for (size_t a = 0; a < sizeof(algos) / sizeof(*algos); a++)
        for (size_t i = 0; i < 2 * sizeof(stores) / sizeof(*stores); i++) {
            const struct ways w = {.name = "fresh",
                                   .algo = algos[a],
                                   .workers = (uint32_t)(2 + i % 3),
                                   .store = stores[i / 2],
                                   .partition = a % 2 ? "auto" : "range",
                                   .l2 = i == 3 ? 0.01f : 0,
                                   .overlap = i % 2};
            check_fresh(*state, w);
        }
}

/* Where rows are not fresh, or it is not known, all are sent. */
static void test_rows_of_an_earlier_run_are_not_fresh(void **state)
{
    struct scratch *s = *state;
    char old[SCRATCH_PATH_BYTES];
    struct ways w = {.name = "old", .algo = "fm", .workers = 2, .store = "resident", .fresh = 1};
    struct drps_train_result r = train(s, &w);
    assert_true(fresh_bytes(&r) > 0);
    drps_train_result_free(&r);
    (void)snprintf(old, sizeof(old), "%s", scratch_path(s, "old"));
    assert_int_equal(rename(scratch_path(s, "model"), old), 0);

    w.from = old;
    r = train(s, &w);
    assert_int_equal(fresh_bytes(&r), 0);
    check_as_planned(&w, &r);
    drps_train_result_free(&r);
}

/* ---- Other ways ---- */

static void test_links_of_asynchronous_rounds_add_up(void **state)
{
    struct scratch *s = *state;
    for (int i = 0; i < 8; i++) {
        const struct ways w = {.name = i % 2 ? "ssp" : "asp",
                               .algo = "lor",
                               .workers = 3,
                               .store = "resident",
                               .sync = i % 2 ? DRPS_SCHED_SSP : DRPS_SCHED_ASP,
                               .overlap = i / 2 % 2,
                               .fresh = i / 4};
        struct drps_train_result r = train(s, &w);
        uint64_t claimed = 0, asked = 0;
        check_sums(&w, &r);
        check_forecast(&r);
        for (size_t k = 0; k < r.ranks_n; k++) {
            claimed += r.ranks[k].claimed;
            asked += r.ranks[k].ahead_asked;
        }
        assert_int_equal(asked > 0, w.overlap);
        assert_int_equal(rows_of(&r, DRPS_TRAFFIC_AHEAD) > 0, w.overlap);
        assert_int_equal(bytes_of(&r, DRPS_TRAFFIC_MARKS) > 0, w.overlap || w.fresh);
        assert_int_equal(rows_of(&r, DRPS_TRAFFIC_FRESH) > 0, w.fresh);
        assert_int_equal(bytes_of(&r, DRPS_TRAFFIC_BATCHES) > 0, claimed > 0);
        drps_train_result_free(&r);
    }
}

static void test_links_of_rows_that_circulate_are_as_planned(void **state)
{
    for (uint32_t workers = 2; workers <= RANKS_MOST; workers += 2) {
        const struct ways w = {
            .name = "circulating", .algo = "lmf", .workers = workers, .order = "grid"};
        struct drps_train_result r = train(*state, &w);
        check_sums(&w, &r);
        check_forecast(&r);
        check_as_planned(&w, &r);
        assert_int_equal(bytes_of(&r, DRPS_TRAFFIC_HANDED),
                         sum(r.links.sent, r.ranks_n * r.ranks_n, 1));
        assert_true(rows_of(&r, DRPS_TRAFFIC_HANDED) > 0);
        drps_train_result_free(&r);
    }
}

/* ---- Times ---- */

/* Parts of a rank's time are no more than all of it; those of rounds are 0 elsewhere. */
static void test_times_are_parts_of_the_whole(void **state)
{
    static const struct ways ways[] = {
        {.name = "rounds", .algo = "fm", .workers = 3, .store = "resident", .overlap = 1},
        {.name = "asp", .algo = "fm", .workers = 3, .store = "resident", .sync = DRPS_SCHED_ASP},
        {.name = "circulating", .algo = "lmf", .workers = 2, .order = "grid"},
    };
    for (size_t i = 0; i < sizeof(ways) / sizeof(*ways); i++) {
        struct drps_train_result r = train(*state, &ways[i]);
        for (size_t k = 0; k < r.ranks_n; k++) {
            const struct drps_train_rank *rank = &r.ranks[k];
            const int rounds = ways[i].sync == DRPS_SCHED_BSP && !ways[i].order;
            assert_true(rank->network_seconds > 0);
            assert_int_equal(rank->store_seconds > 0, ways[i].sync == DRPS_SCHED_BSP);
            assert_true(rank->network_seconds <= rank->waiting_seconds);
            assert_true(rank->compute_seconds > 0);
            assert_int_equal(rank->reduce_seconds > 0, rounds);
            assert_int_equal(rank->broadcast_seconds > 0, rounds);
            assert_true(rank->compute_seconds + rank->reduce_seconds + rank->broadcast_seconds <
                        r.seconds);
        }
        drps_train_result_free(&r);
    }
}

/* ---- JSON ---- */

static void test_links_as_json(void **state)
{
    enum { RANKS = 2 };
    uint64_t sent[RANKS * RANKS] = {0, 5, 7, 0}, forecast[RANKS * RANKS] = {0, 6, 8, 0};
    const struct drps_train_links links = {sent, forecast}, none = {NULL, NULL};
    struct drps_train_rank rank = {.sent = {[DRPS_TRAFFIC_PUSHED] = {3, 12}}, .reduce_seconds = 1};
    json_t *j = drps_links_to_json(&links, RANKS);
    (void)state;
    json_t *row = json_array_get(json_object_get(j, "sent"), 1);
    assert_int_equal(json_integer_value(json_array_get(row, 0)), 7);
    row = json_array_get(json_object_get(j, "forecast"), 0);
    assert_int_equal(json_integer_value(json_array_get(row, 1)), 6);
    json_decref(j);

    j = drps_links_to_json(&none, RANKS);
    assert_true(json_is_null(j));
    json_decref(j);

    j = drps_ranks_to_json(&rank, 1);
    const json_t *kinds = json_object_get(json_array_get(j, 0), "sent");
    assert_int_equal(json_object_size(kinds), DRPS_TRAFFIC_KINDS);
    assert_int_equal(json_integer_value(json_object_get(json_object_get(kinds, "pushed"), "bytes")),
                     12);
    assert_true(json_real_value(json_object_get(json_array_get(j, 0), "reduce_seconds")) == 1);
    json_decref(j);
}

static int begin(void **state)
{
    struct scratch *s = calloc(1, sizeof(*s));
    assert_non_null(s);
    scratch_begin(s);
    *state = s;
    return 0;
}

static int end(void **state)
{
    scratch_end(*state);
    free(*state);
    return 0;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_links_of_rounds_are_as_planned, begin, end),
        cmocka_unit_test_setup_teardown(test_links_count_what_goes_ahead, begin, end),
        cmocka_unit_test_setup_teardown(test_fresh_rows_are_made_as_they_are, begin, end),
        cmocka_unit_test_setup_teardown(test_rows_of_an_earlier_run_are_not_fresh, begin, end),
        cmocka_unit_test_setup_teardown(test_links_of_asynchronous_rounds_add_up, begin, end),
        cmocka_unit_test_setup_teardown(test_links_of_rows_that_circulate_are_as_planned, begin,
                                        end),
        cmocka_unit_test_setup_teardown(test_times_are_parts_of_the_whole, begin, end),
        cmocka_unit_test(test_links_as_json),
    };
    if (argc > 1) seed = strtoull(argv[1], NULL, 10);
    print_message("seed %llu\n", (unsigned long long)seed);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
