/*
 * Rank 0 alone, of three whose plan hands rows on; the test is the other two. With the messages
 * that the plan says all is well; one that is too long, too short, of another round, or comes twice
 * ends the rank with a text that names its sender.
 *
 *   test_handed_messages [seed]
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

#include "engine/cluster/drps_cluster.h"
#include "engine/cluster/drps_messages.h"
#include "engine/cluster/drps_rounds.h"
#include "support/net_job.h"
#include "support/world.h"

enum { RANKS = 3, WAIT_MS = 60000, BYTES_MOST = 1 << 20 };

static uint64_t seed = 20240607;

/* ---- Rank 0 ---- */

struct rank {
    struct drps_plan *part;
    struct drps_feed *feed;
    struct drps_server server;
    struct drps_worker worker;
    struct drps_handing *handing;
    struct drps_lending *lending;
    struct drps_rounds *rounds;
    struct drps_train_options train;
};

static void open_rank(struct rank *k, struct drps_net *net)
{
    const struct drps_plan_info *info = &k->part->info;
    const struct drps_worker_size size = {
        .samples = info->max_batch_samples, .rows = info->max_batch_rows, .members = 1, .sends = 1};
    struct drps_store_config config = {.io = drps_io_os(), .open_steps = 1};
    struct drps_model model;
    struct drps_optim optim;
    NET_CHECK(drps_model_init(&model, info->algo, info->loss, info->factors, info->classification,
                              NULL) == 0);
    NET_CHECK(drps_optim_init(&optim, "sgd", NULL) == 0);
    model.has_bias = drps_plan_common_rows(info) > 0;
    drps_server_init(&k->server, &model, &optim);
    NET_CHECK(drps_server_open(&k->server, &drps_store_resident, &config, info->rows, NULL) == 0);
    NET_CHECK(drps_feed_open(k->part, 1, &k->feed, NULL) == 0);
    NET_CHECK(drps_feed_start(k->feed, 0, 1, 1 << 16, 0, NULL) == 0);
    NET_CHECK(drps_worker_start(&k->worker, &k->server, &size, NULL) == 0);
    const struct drps_handing_job handing = {k->part, &k->server, 1, 0};
    const struct drps_lending_job lending = {k->part, 1, 0};
    NET_CHECK(drps_handing_open(&handing, &k->handing, NULL) == 0);
    NET_CHECK(drps_lending_open(&lending, &k->lending, NULL) == 0);
    const struct drps_rounds_options options = {.plan = k->part,
                                                .net = net,
                                                .feed = k->feed,
                                                .server = &k->server,
                                                .worker = &k->worker,
                                                .train = &k->train,
                                                .wait_ms = WAIT_MS,
                                                .handing = k->handing,
                                                .lending = k->lending};
    NET_CHECK(drps_rounds_open(&options, &k->rounds, NULL) == 0);
}

static void close_rank(struct rank *k)
{
    drps_rounds_close(k->rounds);
    drps_handing_close(k->handing);
    drps_lending_close(k->lending);
    drps_worker_stop(&k->worker);
    drps_feed_close(k->feed);
    drps_server_close(&k->server);
}

/* ---- The others ---- */

enum wrong { NOTHING, LENT_LONG, LENT_TYPE, HANDED_SHORT, HANDED_ROUND, HANDED_TWICE, BACK_LONG };

/* What rank 0 sends and gets, by its own part, read beside it. */
struct puppets {
    struct drps_net *nets[RANKS];
    struct drps_feed *feed;
    struct drps_handing *handing;
    struct drps_lending *lending;
    struct drps_lent lent;
    struct drps_feed_share share;
    struct drps_feed_union u;
    size_t row_bytes, param_bytes;
    enum wrong wrong;
    int done; /* the wrong message was sent */
};

static void open_puppets(struct puppets *p, const struct rank *k)
{
    const struct drps_handing_job handing = {k->part, &k->server, 1, 0};
    const struct drps_lending_job lending = {k->part, 1, 0};
    p->row_bytes = k->server.row_bytes;
    p->param_bytes = k->part->info.dim * sizeof(float);
    NET_CHECK(drps_feed_open(k->part, 1, &p->feed, NULL) == 0);
    NET_CHECK(drps_feed_start(p->feed, 0, 1, 1 << 16, 0, NULL) == 0);
    NET_CHECK(drps_handing_open(&handing, &p->handing, NULL) == 0);
    NET_CHECK(drps_lending_open(&lending, &p->lending, NULL) == 0);
    NET_CHECK(drps_lent_allocate(&p->lent, &k->part->info, NULL) == 0);
}

static void close_puppets(struct puppets *p)
{
    drps_handing_close(p->handing);
    drps_lending_close(p->lending);
    drps_lent_free(&p->lent);
    drps_feed_close(p->feed);
    for (uint32_t r = 1; r < RANKS; r++)
        drps_net_close(p->nets[r], 0, NULL);
}

static void send(struct puppets *p, uint32_t from, enum drps_net_part part, uint8_t type,
                 uint64_t round, size_t bytes)
{
    static const unsigned char zeros[BYTES_MOST];
    const struct drps_piece piece = {zeros, bytes};
    const struct drps_net_send send = {
        .part = (uint8_t)part, .type = type, .round = round, .pieces = &piece, .n = 1};
    assert_true(bytes <= BYTES_MOST);
    const int rc = drps_net_send(p->nets[from], &send, WAIT_MS, NULL);
    assert_true(rc == 0 || rc == DRPS_E_PEER || rc == DRPS_E_CLOSED || rc == DRPS_E_PEER_FAILED);
}

/* 1 once: where the wrong message is due. */
static int is_due(struct puppets *p, enum wrong wrong)
{
    if (p->wrong != wrong || p->done) return 0;
    p->done = 1;
    return 1;
}

/* What a rank sends in a round to rank 0's worker; `arrived` rows came after the round before. */
static void send_to_worker(struct puppets *p, uint32_t r, uint64_t round)
{
    const struct drps_handing_counts *c = drps_handing_counts(p->handing, r);
    size_t bytes = c->arrived * p->row_bytes;
    uint64_t sent = round - 1;
    if (c->arrived && is_due(p, HANDED_SHORT)) bytes--;
    if (c->arrived && is_due(p, HANDED_ROUND)) sent--;
    if (c->arrived) send(p, r, DRPS_NET_WORKER, DRPS_MESSAGE_HANDED, sent, bytes);
    if (c->arrived && is_due(p, HANDED_TWICE))
        send(p, r, DRPS_NET_WORKER, DRPS_MESSAGE_HANDED, sent, bytes);
    send(p, r, DRPS_NET_WORKER, DRPS_MESSAGE_PARAMETERS, round,
         (p->share.shares[r] - c->used) * p->param_bytes);
    if (!c->taken) return;
    const size_t more = (size_t)is_due(p, LENT_LONG) * p->row_bytes;
    const uint8_t type = is_due(p, LENT_TYPE) ? DRPS_MESSAGE_PARAMETERS : DRPS_MESSAGE_LENT;
    send(p, r, DRPS_NET_WORKER, type, round, c->taken * p->row_bytes + more);
}

static void send_to_server(struct puppets *p, uint32_t r, uint64_t round)
{
    send(p, r, DRPS_NET_SERVER, DRPS_MESSAGE_GRADIENT, round, p->lent.plain[r] * p->param_bytes);
    if (!p->lent.returned[r]) return;
    const size_t more = (size_t)is_due(p, BACK_LONG) * sizeof(float);
    send(p, r, DRPS_NET_SERVER, DRPS_MESSAGE_LENT, round,
         p->lent.returned[r] * p->row_bytes + more);
}

/* Take messages of a rank, which must be of these types and sizes. */
static void take(struct puppets *p, uint32_t r, enum drps_net_part part, uint8_t type, size_t bytes)
{
    struct drps_net_message *m;
    if (drps_net_receive(p->nets[r], part, 0, WAIT_MS, &m, NULL) < 0) {
        assert_true(p->done); /* rank 0 is gone */
        return;
    }
    if (!p->done) {
        assert_int_equal(m->type, type);
        assert_int_equal(m->bytes, bytes);
    }
    drps_net_message_free(m);
}

static void take_all(struct puppets *p, uint32_t r)
{
    const struct drps_handing_counts *c = drps_handing_counts(p->handing, r);
    take(p, r, DRPS_NET_SERVER, DRPS_MESSAGE_GRADIENT,
         (p->share.shares[r] - c->used) * p->param_bytes);
    if (c->returned) take(p, r, DRPS_NET_SERVER, DRPS_MESSAGE_LENT, c->returned * p->row_bytes);
    take(p, r, DRPS_NET_WORKER, DRPS_MESSAGE_PARAMETERS, p->lent.plain[r] * p->param_bytes);
    if (p->lent.given[r])
        take(p, r, DRPS_NET_WORKER, DRPS_MESSAGE_LENT, p->lent.given[r] * p->row_bytes);
    if (c->handed) take(p, r, DRPS_NET_WORKER, DRPS_MESSAGE_HANDED, c->handed * p->row_bytes);
}

/* ---- Rounds ---- */

static int run_round(struct rank *k, struct puppets *p, uint64_t t, struct drps_err *err)
{
    struct drps_round round;
    NET_CHECK(drps_feed_next_share(p->feed, &p->share, NULL) == 0);
    NET_CHECK(drps_handing_begin(p->handing, 1, p->share.body.rows, p->share.shares, NULL) == 0);
    NET_CHECK(drps_feed_next_union(p->feed, &p->u, NULL) == 0);
    NET_CHECK(drps_lending_next(p->lending, &p->u, &p->lent, NULL) == 0);
    for (uint32_t r = 1; r < RANKS; r++) {
        send_to_worker(p, r, t);
        send_to_server(p, r, t);
    }
    int rc = drps_rounds_work(k->rounds, &round, err);
    for (uint32_t r = 1; rc == 0 && r < RANKS && !p->done; r++)
        take_all(p, r);
    return rc;
}

static int run(const struct world *w, enum wrong wrong, struct drps_err *err)
{
    struct rank k = {0};
    struct puppets p = {.wrong = wrong};
    struct drps_net_options options;
    int rc = 0;
    assert_int_equal(drps_plan_open_rank(drps_io_os(), w->plan, 0, &k.part, NULL), 0);
    drps_train_net_options(k.part, &options);
    assert_int_equal(drps_net_open_inproc(&options, p.nets, NULL), 0);
    open_rank(&k, p.nets[0]);
    open_puppets(&p, &k);
    assert_int_equal(drps_rounds_begin(k.rounds, 0, err), 0);
    for (uint64_t t = 0; t < k.part->info.batches && rc == 0 && !p.done; t++)
        rc = run_round(&k, &p, t, err);
    if (wrong == NOTHING && rc == 0) rc = 1; /* the epoch is not over: end as a failure */
    assert_int_equal(p.done, wrong != NOTHING);
    rc = drps_rounds_end(k.rounds, rc == 1 ? -ECANCELED : rc < 0 ? rc : DRPS_E_CLOSED, err);
    drps_net_close(p.nets[0], 0, err->text[0] ? err : NULL);
    close_rank(&k);
    close_puppets(&p);
    drps_plan_close(k.part);
    return rc;
}

static struct world *begin(void)
{
    struct world *w = world_begin_sized("lor", CASE_LIBSVM, 60, 50, 8, 8, seed);
    struct case_run c;
    case_begin(&c, &w->scratch, case_input(&w->scratch, "handed", CASE_LIBSVM, 900, 600, seed),
               "lor");
    (void)snprintf(c.out, sizeof(c.out), "%s", scratch_path(&w->scratch, "handed-plan"));
    c.options.workers = RANKS;
    c.options.partition = "hash";
    c.options.batch_size = 12;
    c.options.hand_on = UINT64_MAX;
    case_compile(&c);
    (void)snprintf(w->plan, sizeof(w->plan), "%s", c.out);
    return w;
}

static void test_messages_are_those_of_the_plan(void **state)
{
    struct drps_err err = DRPS_ERR_INIT;
    struct world *w = begin();
    (void)state;
    assert_int_equal(run(w, NOTHING, &err), -ECANCELED);
    world_end(w);
}

static void test_other_messages_are_refused(void **state)
{
    static const struct {
        enum wrong wrong;
        const char *why;
    } cases[] = {{LENT_LONG, "sent message 34"},    {LENT_TYPE, "sent message 16"},
                 {HANDED_SHORT, "sent message 35"}, {HANDED_ROUND, "sent message 35"},
                 {HANDED_TWICE, "sent message 35"}, {BACK_LONG, "sent message 34"}};
    struct world *w = begin();
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct drps_err err = DRPS_ERR_INIT;
        const int rc = run(w, cases[i].wrong, &err);
        if (rc != DRPS_E_PROTO || !strstr(err.text, cases[i].why))
            fail_msg("case %zu: %d, %s", i, rc, err.text);
    }
    world_end(w);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_messages_are_those_of_the_plan),
        cmocka_unit_test(test_other_messages_are_refused),
    };
    if (argc > 1) seed = strtoull(argv[1], NULL, 0);
    printf("seed %llu\n", (unsigned long long)seed);
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
