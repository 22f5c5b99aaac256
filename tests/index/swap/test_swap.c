/*
 * Streams between ranks: what each wrote for each arrives, whole and in order, over every
 * transport; a stream that is too short or goes on behind its end, and a rank that fails, are
 * errors that name it. Ranks whose disks are all full do not wait for each other.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/drps_rng.h"
#include "index/swap/drps_swap.h"
#include "support/fault_io.h"
#include "support/net_job.h"
#include "support/scratch.h"

enum { STREAMS = 3 };

struct job {
    char dir[NET_RANKS][SCRATCH_PATH_BYTES];
    uint32_t failing; /* it leaves in place of ending its streams; NET_RANKS: none */
    int rc[NET_RANKS];
    struct drps_err err[NET_RANKS];
    uint64_t sent[NET_RANKS];
};

/* How many bytes a stream has: none, some, or more than fit the queue. */
static size_t stream_bytes(uint32_t stream, uint32_t from, uint32_t to)
{
    static const size_t sizes[] = {0, 1, 1000, SWAP_MESSAGE_BYTES, SWAP_MESSAGE_BYTES * 20 + 7};
    return sizes[(stream + 2 * from + to) % 5];
}

static unsigned char byte_at(uint32_t stream, uint32_t from, uint32_t to, size_t i)
{
    return (unsigned char)drps_rng_at(stream * 64 + from * 8 + to, i);
}

static int put_all(struct swap *s, uint32_t stream, uint32_t from, uint32_t count,
                   struct drps_err *err)
{
    int rc = 0;
    for (uint32_t to = 0; to < count; to++) {
        const size_t n = stream_bytes(stream, from, to);
        unsigned char piece[777];
        for (size_t i = 0; i < n && rc == 0; i += sizeof(piece)) {
            const size_t part = n - i < sizeof(piece) ? n - i : sizeof(piece);
            for (size_t j = 0; j < part; j++)
                piece[j] = byte_at(stream, from, to, i + j);
            rc = drps_swap_put(s, to, piece, part, err);
        }
    }
    return rc;
}

static void expect_all(struct swap *s, uint32_t stream, uint32_t rank, uint32_t count)
{
    unsigned char piece[1001];
    for (uint32_t from = 0; from < count; from++) {
        const size_t n = stream_bytes(stream, from, rank);
        NET_CHECK(drps_swap_left(s, from) == n);
        for (size_t i = 0; i < n; i += sizeof(piece)) {
            const size_t part = n - i < sizeof(piece) ? n - i : sizeof(piece);
            NET_CHECK(drps_swap_take(s, from, piece, part, NULL) == 0);
            for (size_t j = 0; j < part; j++)
                NET_CHECK(piece[j] == byte_at(stream, from, rank, i + j));
        }
        struct drps_err err = DRPS_ERR_INIT;
        char name[32];
        (void)snprintf(name, sizeof(name), "rank %u", from);
        NET_CHECK(drps_swap_take(s, from, piece, 1, &err) == DRPS_E_PROTO);
        NET_CHECK(strstr(err.text, name));
    }
}

static void gather_all(const struct swap_ranks *ranks)
{
    const uint64_t mine[2] = {ranks->rank, UINT64_C(1) << 40 | ranks->rank};
    uint64_t *all;
    NET_CHECK(drps_swap_gather(ranks, mine, 2, &all, NULL) == 0);
    for (uint64_t r = 0; r < ranks->count; r++) {
        NET_CHECK(all[2 * r] == r);
        NET_CHECK(all[2 * r + 1] == (UINT64_C(1) << 40 | r));
    }
    free(all);
}

static struct swap_ranks ranks_of(const struct job *job, struct drps_net *net, uint32_t rank)
{
    return (struct swap_ranks){.io = drps_io_os(),
                               .net = net,
                               .dir = job->dir[rank],
                               .rank = rank,
                               .count = drps_net_count(net)};
}

static void run_rank(struct drps_net *net, uint32_t rank, void *ctx)
{
    struct job *job = ctx;
    struct swap_ranks ranks = ranks_of(job, net, rank);
    struct drps_err *err = &job->err[rank];
    int rc = 0;
    for (uint32_t stream = 0; stream < STREAMS && rc == 0; stream++) {
        struct swap *s;
        rc = drps_swap_open(&ranks, &s, err);
        if (rc == 0) rc = put_all(s, stream, rank, ranks.count, err);
        if (rc == 0 && rank == job->failing) rc = drps_err_set(err, -EIO, "its disk is broken");
        if (rc == 0) rc = drps_swap_end(s, err);
        if (rc == 0) expect_all(s, stream, rank, ranks.count);
        if (rc == 0) drps_swap_rewind(s);
        if (rc == 0) expect_all(s, stream, rank, ranks.count);
        drps_swap_close(s);
        NET_CHECK(folder_entries(job->dir[rank]) == 0);
    }
    if (rc == 0) gather_all(&ranks);
    job->rc[rank] = rc;
    job->sent[rank] = ranks.sent_bytes;
    drps_net_close(net, 5000, rc < 0 ? err : NULL);
}

/* No rank can write what comes, and each has more to send than fits the queues. */
static void run_full_disk(struct drps_net *net, uint32_t rank, void *ctx)
{
    enum { MESSAGES = 1000 };
    static const char zeros[SWAP_MESSAGE_BYTES];
    struct job *job = ctx;
    struct swap_ranks ranks = ranks_of(job, net, rank);
    struct drps_err *err = &job->err[rank];
    struct fault_io *f = fault_io_new(drps_io_os());
    struct swap *s;
    fault_io_arm(f, FAULT_PWRITE, 1, 1, FAULT_ERROR, -ENOSPC);
    ranks.io = &f->io;
    int rc = drps_swap_open(&ranks, &s, err);
    for (int i = 0; i < MESSAGES && rc == 0; i++)
        rc = drps_swap_put(s, 1 - rank, zeros, sizeof(zeros), err);
    if (rc == 0) rc = drps_swap_end(s, err);
    drps_swap_close(s);
    job->rc[rank] = rc;
    drps_net_close(net, 5000, rc < 0 ? err : NULL);
    fault_io_free(f);
}

/* Rank 1 ends its stream twice, while rank 2 still has to send its own. */
static void run_two_ends(struct drps_net *net, uint32_t rank, void *ctx)
{
    enum { TYPE_END = DRPS_NET_TYPE_FIRST + 1 };
    const struct drps_net_send end = {.to = 0, .part = DRPS_NET_SERVER, .type = TYPE_END};
    struct job *job = ctx;
    struct swap_ranks ranks = ranks_of(job, net, rank);
    struct drps_err *err = &job->err[rank];
    struct swap *s;
    int rc = drps_swap_open(&ranks, &s, err);
    if (rank == 1) NET_CHECK(drps_net_send(net, &end, NET_WAIT_MS, err) == 0);
    if (rc == 0 && rank < 2) rc = drps_swap_end(s, err);
    if (rank == 2) rc = drps_net_barrier(net, NET_WAIT_MS, err);
    drps_swap_close(s);
    job->rc[rank] = rc;
    drps_net_close(net, 5000, rc < 0 ? err : NULL);
}

static struct job *run_job(struct scratch *s, enum net_kind kind, uint32_t count, uint32_t failing,
                           net_work work)
{
    struct drps_net_options options;
    struct net_job net;
    struct job *job = calloc(1, sizeof(*job));
    assert_non_null(job);
    job->failing = failing;
    for (uint32_t r = 0; r < count; r++) {
        char name[32];
        (void)snprintf(name, sizeof(name), "rank-%u", r);
        (void)snprintf(job->dir[r], sizeof(job->dir[r]), "%s", scratch_path(s, name));
        (void)mkdir(job->dir[r], 0777);
    }
    drps_swap_net_options(&options);
    options.job_id = 5;
    net_job_open(&net, kind, count, &options);
    net_job_run(&net, work, job);
    return job;
}

static struct job *run(struct scratch *s, enum net_kind kind, uint32_t count, uint32_t failing)
{
    return run_job(s, kind, count, failing, run_rank);
}

static void test_all_arrives(void **state)
{
    for (int kind = 0; kind < NET_KINDS; kind++)
        for (uint32_t count = 1; net_kind_there((enum net_kind)kind) && count <= 4; count++) {
            struct job *job = run(*state, (enum net_kind)kind, count, NET_RANKS);
            for (uint32_t r = 0; r < count; r++) {
                uint64_t sent = 0;
                if (job->rc[r]) fail_msg("rank %u of %u: %s", r, count, job->err[r].text);
                for (uint32_t i = 0; i < STREAMS * count; i++)
                    if (i % count != r) sent += stream_bytes(i / count, r, i % count);
                assert_int_equal(job->sent[r], sent);
            }
            free(job);
        }
}

static void test_a_rank_that_fails_is_named(void **state)
{
    for (int kind = 0; kind < NET_KINDS; kind++) {
        if (!net_kind_there((enum net_kind)kind)) continue;
        struct job *job = run(*state, (enum net_kind)kind, 3, 1);
        assert_int_equal(job->rc[1], -EIO);
        for (uint32_t r = 0; r < 3; r += 2) {
            assert_true(job->rc[r] < 0);
            if (!strstr(job->err[r].text, "its disk is broken"))
                fail_msg("rank %u: %s", r, job->err[r].text);
        }
        free(job);
    }
}

static void test_ranks_with_full_disks_do_not_wait_for_each_other(void **state)
{
    for (int kind = 0; kind < NET_KINDS; kind++) {
        if (!net_kind_there((enum net_kind)kind)) continue;
        struct job *job = run_job(*state, (enum net_kind)kind, 2, NET_RANKS, run_full_disk);
        assert_true(job->rc[0] == -ENOSPC || job->rc[1] == -ENOSPC);
        assert_true(job->rc[0] < 0 && job->rc[1] < 0);
        free(job);
    }
}

static void test_a_stream_ends_once(void **state)
{
    for (int kind = 0; kind < NET_KINDS; kind++) {
        if (!net_kind_there((enum net_kind)kind)) continue;
        struct job *job = run_job(*state, (enum net_kind)kind, 3, NET_RANKS, run_two_ends);
        assert_int_equal(job->rc[0], DRPS_E_PROTO);
        if (!strstr(job->err[0].text, "rank 1 sent more after the end"))
            fail_msg("%s", job->err[0].text);
        free(job);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_all_arrives, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(test_a_rank_that_fails_is_named, scratch_setup,
                                        scratch_teardown),
        cmocka_unit_test_setup_teardown(test_ranks_with_full_disks_do_not_wait_for_each_other,
                                        scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(test_a_stream_ends_once, scratch_setup, scratch_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
