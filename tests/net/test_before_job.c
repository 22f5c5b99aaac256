/* What a rank finds out before its job begins: options that cannot be, which job it is, which rank
 * it is, and how long it may be silent. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "net/drps_launch.h"
#include "support/net_job.h"
#include "support/scratch.h"

static void test_net_options_that_cannot_be(void **state)
{
    static const struct {
        const char *name;
        struct drps_net_options o;
        const char *text;
    } cases[] = {
        {"no rank", {.count = 0}, "0 ranks: 1 to 1024"},
        {"too many ranks", {.count = DRPS_NET_RANKS_MAX + 1}, "1025 ranks"},
        {"long queues", {.count = 2, .queue_messages = 1025}, "queue_messages 1025 (at most 1024)"},
        {"little silence", {.count = 2, .silence_ms = 99}, "silence_ms 99 (at least 100)"},
        {"large messages",
         {.count = 2, .message_bytes = {DRPS_NET_MESSAGE_MAX + 1}},
         "messages of 68719476737 bytes"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct drps_net *nets[2] = {NULL, NULL};
        struct drps_err err = DRPS_ERR_INIT;
        const int rc = drps_net_open_inproc(&cases[i].o, nets, &err);
        if (rc != -EINVAL || !strstr(err.text, cases[i].text))
            fail_msg("%s: %d '%s'", cases[i].name, rc, err.text);
        assert_null(nets[0]);
    }
    if (!net_kind_there(NET_ZMQ)) return;
    const struct drps_net_options beyond = {.rank = 2, .count = 2};
    struct drps_peers peers;
    struct drps_net *net;
    struct drps_err err = DRPS_ERR_INIT;
    net_peers(&peers, 2, NULL);
    assert_int_equal(drps_net_open_zmq(&beyond, &peers, NULL, 0, &net, &err), -EINVAL);
    assert_non_null(strstr(err.text, "rank 2 of 2"));
    assert_null(net);
    drps_peers_destroy(&peers);
}

/* The silence is what drps_net.h says: 2.3 times the cut and somewhat less than two seconds. */
static void test_net_silence_outlives_a_cut(void **state)
{
    static const uint32_t cuts[] = {1000, 5000, 60000, 600000};
    (void)state;
    assert_int_equal(drps_net_silence_ms(0), drps_net_silence_ms(5000));
    for (size_t i = 0; i < sizeof(cuts) / sizeof(*cuts); i++) {
        const double more = (double)drps_net_silence_ms(cuts[i]) - 16.0 / 7 * cuts[i];
        if (more < 1000 || more > 2000) fail_msg("%u ms: %g more", cuts[i], more);
    }
}

static uint64_t id_of(struct scratch *s, const char *text)
{
    struct drps_peers peers;
    struct drps_err err = DRPS_ERR_INIT;
    if (drps_peers_read(drps_io_os(), scratch_file(s, "peers", text, SIZE_MAX), &peers, &err) < 0)
        fail_msg("%s", err.text);
    const uint64_t id = drps_peers_id(&peers);
    drps_peers_destroy(&peers);
    return id;
}

/* Comments and spaces do not count; addresses, ports and their order do. */
static void test_peers_have_one_id(void **state)
{
    static const char *const others[] = {
        "10.0.0.1:7000\n", "10.0.0.2:7000\n10.0.0.1:7000\n", "10.0.0.1:7000\n10.0.0.2:7001\n",
        "10.0.0.1:7000\n10.0.0.3:7000\n", "10.0.0.1:7000\n10.0.0.2:7000\n10.0.0.3:7000\n"};
    struct scratch *s = *state;
    const uint64_t id = id_of(s, "10.0.0.1:7000\n10.0.0.2:7000\n");
    assert_true(id == id_of(s, "# ours\n10.0.0.1:7000\n\n10.0.0.2:7000"));
    for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
        if (id == id_of(s, others[i])) fail_msg("the same id: %s", others[i]);
}

static void test_launch_rank_is_among_the_peers(void **state)
{
    static const struct {
        const char *name, *rank, *count;
        int rc;
        uint32_t want;
        const char *text;
    } cases[] = {
        {"no launcher", NULL, NULL, DRPS_E_CONFIG, 0, "which rank is this? Give --rank"},
        {"the second of two", "1", "2", 0, 1, ""},
        {"of three", "1", "3", DRPS_E_CONFIG, 0, "started 3 ranks, and there are 2 peers"},
    };
    struct scratch *s = *state;
    const char *peers = scratch_file(s, "peers", "10.0.0.1:7000\n10.0.0.2:7000\n", SIZE_MAX);
    uint32_t rank;
    struct drps_err err = DRPS_ERR_INIT;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        drps_err_clear(&err);
        if (cases[i].rank) {
            assert_int_equal(setenv("PMI_RANK", cases[i].rank, 1), 0);
            assert_int_equal(setenv("PMI_SIZE", cases[i].count, 1), 0);
        }
        const int rc = drps_launch_rank(peers, "--rank", &rank, &err);
        if (rc != cases[i].rc || (rc == 0 && rank != cases[i].want) ||
            !strstr(err.text, cases[i].text))
            fail_msg("%s: %d, rank %u, '%s'", cases[i].name, rc, rank, err.text);
    }
    assert_int_equal(drps_launch_rank(scratch_path(s, "none"), "--rank", &rank, &err), -ENOENT);
    (void)unsetenv("PMI_RANK");
    (void)unsetenv("PMI_SIZE");
}

#define SCRATCH_TEST(f) cmocka_unit_test_setup_teardown(f, scratch_setup, scratch_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_net_options_that_cannot_be),
        cmocka_unit_test(test_net_silence_outlives_a_cut),
        SCRATCH_TEST(test_peers_have_one_id),
        SCRATCH_TEST(test_launch_rank_is_among_the_peers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
