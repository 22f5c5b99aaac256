/* What tools say of links: the least time, whether several machines can be faster than one, and the
 * tables of what ranks sent, also of a manifest that makes no sense. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "api/report/drps_link.h"
#include "tools/index/network.h"
#include "tools/stat/print.h"

enum { GBIT = 1000000000 };

/* What was printed between begin and end; end's is the caller's to free. */
static FILE *screen, *text;
static char *shown;
static size_t shown_bytes;

static void begin(void)
{
    screen = stdout;
    text = open_memstream(&shown, &shown_bytes);
    assert_non_null(text);
    stdout = text;
}

static char *end(void)
{
    stdout = screen;
    assert_int_equal(fclose(text), 0);
    return shown;
}

static void expect_text(const char *all, const char *part)
{
    if (!strstr(all, part)) fail_msg("'%s' is not in\n%s", part, all);
}

/* ---- Links ---- */

static void test_the_larger_way_counts(void **state)
{
    struct drps_link_load most = {0};
    const struct drps_link_load loads[] = {{0, 500, 700}, {1, 900, 100}, {2, 800, 800}};
    (void)state;
    for (size_t i = 0; i < 3; i++)
        drps_link_raise(&most, &loads[i]);
    assert_int_equal(most.rank, 1);
    assert_true(drps_link_seconds(&most, 7200) == 1.0);
}

static void test_speeds_as_text(void **state)
{
    static const struct {
        uint64_t bits;
        const char *text;
    } cases[] = {{900, "900 bit/s"}, {GBIT, "1 Gbit/s"}, {2500000, "2.5 Mbit/s"}};
    char room[DRPS_LINK_TEXT];
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
        assert_string_equal(drps_link_speed_text(cases[i].bits, room), cases[i].text);
}

/* Rank 0 of five has a net's 1,000 rows. In each of 4 rounds it sends 8 / 5 of them as sums, and
 * once all of them to the 4 others, with their state; rows of features besides. */
static void test_the_own_parameters_of_a_net_do_not_travel(void **state)
{
    struct drps_plan_info info = {.net = "x",
                                  .dim = 10,
                                  .row_bytes = 80,
                                  .rows = 5000,
                                  .batches = 4,
                                  .tables_n = 1,
                                  .tables = {{.name = "net", .rows = 1000}},
                                  .ranks = {.count = 5,
                                            .workers = 5,
                                            .servers = 5,
                                            .pulled_rows = 7,
                                            .served_rows = 4 * 4 * 1000 + 9}};
    (void)state;
    const struct drps_link_load load = drps_link_of_part(&info);
    assert_int_equal(load.sent_bytes, 4 * 1600 * 40 + 4 * 1000 * 80 + (7 + 9) * 40);
    assert_int_equal(load.received_bytes, 4 * 1600 * 40 + (7 + 9) * 40);
    info.net[0] = 0;
    assert_int_equal(drps_link_of_part(&info).sent_bytes, (16000 + 7 + 9) * 40);
}

/* ---- Whether several machines pay ---- */

/* A thread takes (1.2 + 8 x .23) ns for each of 1.5e8 entries, and 8 x .85 ns for each of 8e7 rows
 * of steps: 1 s. */
static const struct drps_plan_info a_second = {
    .nnz = 140000000, .test_nnz = 10000000, .dim = 8, .ranks = {.count = 4, .workers = 4}};
#define ROW_USES 80000000

static void expect_verdict(uint64_t bytes, uint64_t rounds, const char *verdict)
{
    const struct drps_index_network network = {
        .info = &a_second,
        .busiest = {.sent_bytes = 1, .received_bytes = bytes},
        .link_bits = GBIT,
        .row_uses = ROW_USES,
        .rounds = rounds};
    begin();
    index_network_print(&network, 0);
    char *all = end();
    expect_text(all, "at 1 Gbit/s");
    expect_text(all, "one thread with all rows in memory about 1 s");
    expect_text(all, verdict);
    free(all);
}

/* A Gbit/s takes 8 ns for each byte, and a round .3 ms. */
static void test_a_verdict_follows_from_all_times(void **state)
{
    static const struct {
        const char *name;
        uint64_t bytes, rounds;
        const char *verdict;
    } cases[] = {
        {"as long", 125000000, 0, "4 machines will be slower than one\n"},
        {"as long with the rounds", 62500000, 1670, "4 machines will be slower than one\n"},
        {"three quarters", 94000000, 0, "4 machines may be slower than one\n"},
        {"three quarters with the rounds", 62500000, 850, "4 machines may be slower than one\n"},
        {"less than three quarters", 93000000, 0, "4 machines can be faster than one\n"},
        {"less with the rounds", 62500000, 800, "4 machines can be faster than one\n"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
        expect_verdict(cases[i].bytes, cases[i].rounds, cases[i].verdict);
}

static void test_one_worker_has_no_network(void **state)
{
    const struct drps_plan_info info = {.nnz = 100, .dim = 1, .ranks = {.workers = 1}};
    const struct drps_index_network network = {.info = &info, .link_bits = GBIT};
    (void)state;
    begin();
    index_network_print(&network, 1);
    char *all = end();
    assert_string_equal(all, "");
    free(all);
}

/* ---- Traffic of a training ---- */

static char *traffic_of(const char *training)
{
    json_error_t at;
    json_t *j = json_loads(training, 0, &at);
    if (!j) fail_msg("%s: %s", training, at.text);
    begin();
    stat_print_traffic(j, GBIT);
    json_decref(j);
    return end();
}

static void test_traffic_of_two_ranks(void **state)
{
    char *all =
        traffic_of("{\"epochs\": [{\"seconds\": 0.5}, {\"seconds\": 0.25}], \"ranks\": ["
                   "{\"sent_bytes\": 2000, \"received_bytes\": 6000, \"forecast_sent_bytes\": 2000,"
                   " \"network_seconds\": 1, \"store_seconds\": 0, \"held_seconds\": 0,"
                   " \"compute_seconds\": 0.5, \"reduce_seconds\": 0.25, \"broadcast_seconds\": 3,"
                   " \"sent\": {\"pulled\": {\"rows\": 1000, \"bytes\": 1024}, \"ahead\": "
                   "{\"rows\": 0, \"bytes\": 0},"
                   "            \"too small\": {\"rows\": 77, \"bytes\": 0}}},"
                   "{\"sent_bytes\": 6000, \"received_bytes\": 2000, \"forecast_sent_bytes\": 6000,"
                   " \"sent\": {\"pulled\": {\"rows\": 234, \"bytes\": 3072}}}],"
                   "\"links\": {\"sent\": [[0, 2048], [6144, 0]],"
                   " \"forecast\": [[0, 2048], [12288, 0]]}}");
    (void)state;
    expect_text(all, "pulled               1,234    4.0 KiB  100.0 %");
    expect_text(all, "too small               77        0 B    0.0 %");
    assert_null(strstr(all, "ahead")); /* there was none */
    expect_text(all, "the plan says 7.8 KiB");
    expect_text(all, "0          -    2.0 KiB    2.0 KiB    6.0 KiB");
    expect_text(all, "50.0 to 100.0 % of what the plan says");
    expect_text(all, "it carries 1.00 of the average");
    expect_text(all, "takes 2.4e-05 s at least: rank 0's sends 1000 B and receives 2.9 KiB");
    expect_text(all, "it took 0.375 s");
    expect_text(all, "     0      0.2500      0.1250      1.5000\n"); /* an epoch */
    expect_text(all, "     0      0.5000      0.0000      0.0000\n");
    expect_text(all, "     1           -           -           -\n");
    free(all);
}

static void test_one_rank_has_no_traffic(void **state)
{
    static const char *const trainings[] = {"{}", "{\"ranks\": []}",
                                            "{\"epochs\": [{}], \"ranks\": [{\"sent\": {}}]}"};
    (void)state;
    for (size_t i = 0; i < sizeof(trainings) / sizeof(*trainings); i++) {
        char *all = traffic_of(trainings[i]);
        assert_string_equal(all, "");
        free(all);
    }
}

/* Numbers below 0, tables of other shapes, members of other kinds. */
static void test_traffic_that_makes_no_sense(void **state)
{
    static const char *const trainings[] = {
        "{\"ranks\": [1, 2]}",
        "{\"epochs\": 3, \"ranks\": [{\"sent\": []}, null]}",
        "{\"epochs\": [{}], \"ranks\": [{\"sent\": {\"pulled\": -1}}, {\"sent_bytes\": -7}]}",
        "{\"epochs\": [{}], \"ranks\": [{}, {}], \"links\": {\"sent\": [[], 1]}}",
        "{\"epochs\": [{}], \"ranks\": [{}, {}], \"links\": {\"sent\": [[0, -1], [\"a\"]],"
        " \"forecast\": [[0, 0], [0, 0]]}}",
        "{\"epochs\": [{}], \"ranks\": [{\"sent\": {\"pulled\": {\"rows\": 9223372036854775807}}},"
        " {\"sent\": {\"pulled\": {\"rows\": 9223372036854775807}}}]}",
    };
    (void)state;
    for (size_t i = 0; i < sizeof(trainings) / sizeof(*trainings); i++)
        free(traffic_of(trainings[i]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_larger_way_counts),
        cmocka_unit_test(test_speeds_as_text),
        cmocka_unit_test(test_the_own_parameters_of_a_net_do_not_travel),
        cmocka_unit_test(test_a_verdict_follows_from_all_times),
        cmocka_unit_test(test_one_worker_has_no_network),
        cmocka_unit_test(test_traffic_of_two_ranks),
        cmocka_unit_test(test_one_rank_has_no_traffic),
        cmocka_unit_test(test_traffic_that_makes_no_sense),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
