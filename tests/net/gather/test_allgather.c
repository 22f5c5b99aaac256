/*
 * What ranks have goes to all, over every transport, with the shortest queue; sizes that differ,
 * and none; ranks that are lost, in another call, or send too much.
 */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/drps_endian.h"
#include "base/drps_rng.h"
#include "net/drps_transport.h"
#include "net/drps_wire.h"
#include "net/gather/drps_allgather.h"
#include "support/net_job.h"
#include "support/net_mpi.h"

enum { HEAD = 8, FIRST = DRPS_NET_GROUP_BYTES - HEAD, TURNS = 6 };

/* Nobody is lost by silence: a busy machine may keep a rank from being heard of. */
static const struct drps_net_options shortest = {.queue_messages = 1, .silence_ms = NET_WAIT_MS};

/* ---- What is gathered ---- */

/* Sizes that fill messages, or nearly so; a rank has one of them in a turn, and another in the
 * next. */
static const size_t sizes[] = {
    0, 1, 1000, FIRST - 1, FIRST, FIRST + 1, FIRST + DRPS_NET_GROUP_BYTES};
enum { SIZES = sizeof(sizes) / sizeof(*sizes), MOST = FIRST + DRPS_NET_GROUP_BYTES };

static size_t size_of(uint32_t rank, int turn)
{
    return sizes[(rank * 3 + (uint32_t)turn) % SIZES];
}

static unsigned char byte_of(uint32_t rank, int turn, size_t i)
{
    return (unsigned char)(drps_rng_at(rank * TURNS + (uint32_t)turn, i / 64) >> i % 57);
}

static void fill(unsigned char *to, uint32_t rank, int turn)
{
    for (size_t i = 0; i < size_of(rank, turn); i++)
        to[i] = byte_of(rank, turn, i);
}

static void check_all(const unsigned char *all, const size_t *bytes, uint32_t count, int turn)
{
    for (uint32_t r = 0; r < count; r++) {
        NET_CHECK(bytes[r] == size_of(r, turn));
        for (size_t i = 0; i < bytes[r]; i++)
            NET_CHECK(all[r * MOST + i] == byte_of(r, turn, i));
        for (size_t i = bytes[r]; i < bytes[r] + 8 && i < MOST; i++)
            NET_CHECK(all[r * MOST + i] == 0xee); /* nothing behind it */
    }
}

static void gather_all(struct drps_net *net, uint32_t rank, void *ctx)
{
    const uint32_t count = drps_net_count(net);
    unsigned char *all = malloc(count * (size_t)MOST);
    size_t bytes[NET_RANKS];
    struct drps_err err = DRPS_ERR_INIT;
    (void)ctx;
    NET_CHECK(all);
    for (int turn = 0; turn < TURNS; turn++) {
        const uint64_t before = net_sent_bytes(net);
        const struct drps_net_allgather g = {all, bytes, MOST, (uint64_t)turn};
        memset(all, 0xee, count * (size_t)MOST);
        fill(all + rank * (size_t)MOST, rank, turn);
        for (uint32_t r = 0; r < count; r++)
            bytes[r] = r == rank ? size_of(rank, turn) : 12345;
        NET_OK(drps_net_allgather(net, &g, NET_WAIT_MS, &err));
        check_all(all, bytes, count, turn);
        NET_CHECK(net_sent_bytes(net) - before == (count - 1) * (HEAD + size_of(rank, turn)));
        if (turn % 3 == 0) NET_OK(drps_net_barrier(net, NET_WAIT_MS, &err));
    }
    NET_OK(drps_net_barrier(net, NET_WAIT_MS, &err));
    free(all);
}

static void test_allgather_gives_all_to_all(void **state)
{
    const enum net_kind kind = net_kind_of(state);
    const uint32_t last = kind == NET_INPROC ? 5 : 3;
    for (uint32_t count = kind == NET_INPROC ? 1 : 2; count <= last; count++) {
        struct net_job job;
        net_job_open(&job, kind, count, &shortest);
        net_job_run(&job, gather_all, NULL);
        net_job_close(&job);
    }
}

static void test_allgather_checks_what_is_asked(void **state)
{
    struct net_job job;
    unsigned char all[2][4] = {{0}};
    size_t bytes[2] = {5, 0};
    const struct drps_net_allgather more = {all[0], bytes, 4, 0};
    const struct drps_net_allgather far = {all[0], bytes, (size_t)DRPS_NET_MESSAGE_MAX + 1, 0};
    struct drps_err err = DRPS_ERR_INIT;
    (void)state;
    net_job_open(&job, NET_INPROC, 2, &shortest);
    assert_int_equal(drps_net_allgather(job.nets[0], &more, 0, &err), -EINVAL);
    assert_non_null(strstr(err.text, "5 bytes are gathered, of 4 at most"));
    assert_int_equal(drps_net_allgather(job.nets[0], &far, 0, &err), -EINVAL);
    assert_int_equal(net_sent_bytes(job.nets[0]), 0);
    net_job_close(&job);
}

/* ---- Ranks that do something else ---- */

struct answer {
    const char *name;
    int type, round;  /* more than what was expected */
    int bytes;        /* of the first message, behind its head; -8: no head */
    uint64_t told;    /* how many bytes the head says */
    int second;       /* bytes of a second message; -1: there is none */
    const char *text; /* "": all is well */
};

struct stranger {
    struct drps_net *net;
    const struct answer *answer;
};

enum { ROOM = FIRST + 100 };

static void *gather_with_stranger(void *arg)
{
    const struct stranger *s = arg;
    const struct answer *a = s->answer;
    unsigned char *all = calloc(2, ROOM);
    size_t bytes[2] = {3, 0};
    const struct drps_net_allgather g = {all, bytes, ROOM, 7};
    struct drps_err err = DRPS_ERR_INIT;
    NET_CHECK(all);
    const int rc = drps_net_allgather(s->net, &g, NET_WAIT_MS, &err);
    if (a->text[0])
        NET_CHECK(rc == DRPS_E_PROTO && strstr(err.text, "rank 1") && strstr(err.text, a->text));
    else
        NET_CHECK(rc == 0 && bytes[1] == a->told);
    free(all);
    return NULL;
}

static void answer(struct drps_net *net, const struct answer *a)
{
    static unsigned char room[DRPS_NET_GROUP_BYTES];
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_piece piece = {room, (size_t)(HEAD + a->bytes)};
    const struct drps_net_send send = {.type = (uint8_t)(WIRE_ALL + a->type),
                                       .round = 7 + (uint64_t)a->round,
                                       .pieces = &piece,
                                       .n = 1};
    drps_put_u64(room, a->told);
    NET_OK(drps_net_send_part(net, &send, WIRE_GROUP, NET_WAIT_MS, &err));
    if (a->second < 0) return;
    piece.bytes = (size_t)a->second;
    NET_OK(drps_net_send_part(net, &send, WIRE_GROUP, NET_WAIT_MS, &err));
}

static void test_allgather_refuses_messages_of_something_else(void **state)
{
    static const struct answer cases[] = {
        {"right", 0, 0, 5, 5, -1, ""},
        {"nothing", 0, 0, 0, 0, -1, ""},
        {"as much as may be", 0, 0, FIRST, ROOM, 100, ""},
        {"sum", -1, 0, 5, 5, -1, "is in another call of the group"},
        {"round before", 0, -1, 5, 5, -1, "call 6"},
        {"round after", 0, 1, 5, 5, -1, "call 8"},
        {"no head", 0, 0, -8, 0, -1, "0 bytes, of"},
        {"half a head", 0, 0, -1, 0, -1, "7 bytes, of"},
        {"longer than told", 0, 0, 6, 5, -1, "14 bytes, of 5"},
        {"shorter than told", 0, 0, 4, 5, -1, "12 bytes, of 5"},
        {"more than may be", 0, 0, FIRST, ROOM + 1, -1, "sends too much"},
        {"far more", 0, 0, FIRST, UINT64_MAX, -1, "sends too much"},
        {"second longer", 0, 0, FIRST, FIRST + 50, 51, "51 bytes, of 1048618"},
        {"second shorter", 0, 0, FIRST, FIRST + 50, 49, "49 bytes, of 1048618"},
        {"second empty", 0, 0, FIRST, FIRST + 50, 0, "0 bytes, of 1048618"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct net_job job;
        pthread_t thread;
        struct stranger s = {.answer = &cases[i]};
        print_message("    %s\n", cases[i].name);
        net_job_open(&job, net_kind_of(state), 2, &shortest);
        s.net = job.nets[0];
        assert_int_equal(pthread_create(&thread, NULL, gather_with_stranger, &s), 0);
        answer(job.nets[1], &cases[i]);
        assert_int_equal(pthread_join(thread, NULL), 0);
        net_job_close(&job);
    }
}

/* ---- Ranks that are lost ---- */

struct failing {
    struct net_job *job;
    int rc[NET_RANKS];
    struct drps_err err[NET_RANKS];
};

static void fail_to_gather(struct drps_net *net, uint32_t rank, void *ctx)
{
    static unsigned char room[NET_RANKS][NET_RANKS][16];
    struct failing *f = ctx;
    size_t bytes[NET_RANKS] = {0};
    const struct drps_net_allgather g = {room[rank][0], bytes, 16, 1};
    f->job->nets[rank] = NULL;
    bytes[rank] = 16;
    if (rank != 1) f->rc[rank] = drps_net_allgather(net, &g, NET_WAIT_MS, &f->err[rank]);
    drps_net_close(net, NET_WAIT_MS, rank == 1 ? NULL : &f->err[rank]);
}

/* The rank that is not there is named by all, whether they wait for it or for each other. */
static void test_allgather_names_a_rank_that_has_left(void **state)
{
    struct net_job job;
    struct failing f = {.job = &job};
    net_job_open(&job, net_kind_of(state), 5, &shortest);
    net_job_run(&job, fail_to_gather, &f);
    for (uint32_t r = 0; r < 5; r++)
        if (r != 1 && ((f.rc[r] != DRPS_E_PEER && f.rc[r] != DRPS_E_PEER_FAILED) ||
                       !strstr(f.err[r].text, "rank 1")))
            fail_msg("rank %u: %d: %s", r, f.rc[r], f.err[r].text);
}

static void test_allgather_does_not_wait_for_ever(void **state)
{
    struct net_job job;
    unsigned char all[2][4] = {{0}};
    size_t bytes[2] = {4, 0};
    const struct drps_net_allgather g = {all[0], bytes, 4, 0};
    struct drps_err err = DRPS_ERR_INIT;
    net_job_open(&job, net_kind_of(state), 2, &shortest);
    assert_int_equal(drps_net_allgather(job.nets[0], &g, 20, &err), -ETIMEDOUT);
    net_job_close(&job);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        NET_OVER_ALL(test_allgather_gives_all_to_all),
        cmocka_unit_test(test_allgather_checks_what_is_asked),
        NET_OVER_ALL(test_allgather_refuses_messages_of_something_else),
        NET_OVER_ALL(test_allgather_names_a_rank_that_has_left),
        NET_OVER_ALL(test_allgather_does_not_wait_for_ever),
    };
    if (net_mpi_start()) return 0; /* a mirror */
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    net_mpi_stop();
    return failed;
}
