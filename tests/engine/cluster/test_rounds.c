/*
 * Rounds of three ranks in this process, one by one: they pause where any rank asks for it, and go
 * on with nothing lost; they begin at any step; some have no rows, or no samples. Results are
 * compared to the bit with those of rounds that go through.
 *
 *   test_rounds [seed]
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_checksum.h"
#include "base/drps_rng.h"
#include "engine/cluster/drps_messages.h"
#include "engine/cluster/drps_rounds.h"
#include "support/net_job.h"
#include "support/world.h"

enum { RANKS = WORLD_WORKERS, BATCH = 16, EPOCHS = 3, ROUNDS_MOST = 192, WAIT_MS = 60000 };

static uint64_t seed = 20260521;
static int ahead; /* servers send ahead */
/* Ranks add up the gradients of common rows: 2: but for those of layers, whose vectors they
 * send. */
static int sums;

/* ---- What the ranks are to do ---- */

/* Bits of the ranks that do something, by the round of the run. */
struct script {
    uint8_t pause[ROUNDS_MOST]; /* ask for a pause before they work */
    uint8_t stop[ROUNDS_MOST];  /* want to stop from now on */
    uint8_t fail[ROUNDS_MOST];  /* break down in place of the work */
    uint8_t leave[ROUNDS_MOST]; /* break down where the ranks have paused before it */
    int late;                   /* ask for a pause after the last round of each epoch, too */
    uint64_t first;             /* round of the run that it begins with */
    uint64_t quit;              /* a pause before it is the end; 0: none is */
};

/* What became of a rank. */
struct outcome {
    char *rows; /* own: with their states */
    size_t row_bytes;
    uint64_t result[ROUNDS_MOST]; /* of each round: checksums of losses, labels and scores */
    uint8_t paused[ROUNDS_MOST];  /* before the round */
    uint64_t rounds;              /* executed up to there */
    uint64_t moments[DRPS_BATCH_DONE + 1];
    struct drps_rounds_bytes bytes;
    struct drps_rounds_seen seen;
    int rc, stopped;
    struct drps_err err;
};

struct rank {
    const struct script *script;
    const struct outcome *from; /* rows to begin with; NULL: fresh ones */
    struct drps_plan *part;
    uint64_t rounds_of_epoch, round; /* of the run */
    struct drps_net *net;
    struct drps_feed *feed;
    struct drps_server server;
    struct drps_worker worker;
    struct drps_outer_choice vectors;
    struct drps_train_options train;
    struct drps_rounds *rounds;
    atomic_int stop;
    struct outcome out;
};

static int does(const uint8_t *bits, const struct rank *k)
{
    return bits[k->round] >> k->part->info.ranks.rank & 1;
}

/* ---- A rank ---- */

static void count_moment(void *ctx, const struct drps_train_batch *batch)
{
    struct rank *k = ctx;
    k->out.moments[batch->moment]++;
}

static void open_server(struct rank *k, const char *optimizer, float l2)
{
    const struct drps_plan_info *info = &k->part->info;
    struct drps_store_config config = {.io = drps_io_os(), .open_steps = ahead ? 2 : 1};
    struct drps_model model;
    struct drps_optim optim;
    const struct drps_model_terms terms = {.algo = info->algo,
                                           .loss = info->loss,
                                           .net = info->net,
                                           .factors = info->factors,
                                           .classes = info->classification};
    NET_CHECK(drps_model_settle(&model, &terms, NULL) == 0);
    NET_CHECK(drps_model_set_fields(&model, info->field_count, info->normalized, NULL) == 0);
    NET_CHECK(drps_optim_init(&optim, optimizer, NULL) == 0);
    model.has_bias = drps_plan_common_rows(info) > 0;
    model.init_scale = 0.1f;
    model.seed = 9;
    optim.l2 = l2;
    drps_server_init(&k->server, &model, &optim);
    k->server.first_row = info->ranks.first_row;
    NET_CHECK(drps_server_open(&k->server, &drps_store_resident, &config, info->rows, NULL) == 0);
}

/* Copy all rows with their states, out of the store or into it. */
static void copy_rows(struct rank *k, char *rows, int into)
{
    const size_t n = (size_t)k->part->info.rows, bytes = k->server.row_bytes;
    uint32_t *ids = calloc(n + 1, sizeof(*ids));
    NET_CHECK(ids);
    for (size_t i = 0; i < n; i++)
        ids[i] = (uint32_t)i;
    NET_CHECK(drps_server_open_step(&k->server, ids, n, NULL) == 0);
    for (size_t i = 0; i < n; i++) {
        void *row = drps_row_at(&k->server.rows, i);
        memcpy(into ? row : rows + i * bytes, into ? rows + i * bytes : row, bytes);
    }
    NET_CHECK(drps_server_close_step(&k->server, into, NULL) == 0);
    free(ids);
}

/* All layers that have vectors, whatever that takes: no sample takes no bytes. */
static struct drps_outer_choice full_layers(const struct drps_plan_info *info)
{
    struct drps_outer_choice all = {.n = 0};
    struct drps_layers layers;
    if (sums < 2) return all;
    NET_CHECK(drps_plan_layers(info, &layers, NULL) == 0);
    drps_outer_choose(&layers, RANKS, 0, DRPS_OUTER_BYTES, &all);
    NET_CHECK(all.n > 1);
    return all;
}

static void open_rank(struct rank *k, const char *optimizer, float l2)
{
    const struct drps_plan_info *info = &k->part->info;
    const uint64_t of_epoch = info->batches + info->eval_batches;
    const uint64_t begun = k->script->first / of_epoch; /* epochs that are over */
    const struct drps_worker_size size = {.samples = info->max_batch_samples,
                                          .rows = info->max_batch_rows,
                                          .members = 1,
                                          .touches = l2 > 0,
                                          .sends = 1};
    k->vectors = full_layers(info);
    k->rounds_of_epoch = of_epoch;
    k->round = k->script->first;
    k->train = (struct drps_train_options){.stop = &k->stop, .on_batch = count_moment, .ctx = k};
    open_server(k, optimizer, l2);
    if (k->from) copy_rows(k, k->from->rows, 1);
    NET_CHECK(drps_feed_open(k->part, drps_plan_common_rows(info), &k->feed, NULL) == 0);
    NET_CHECK(drps_feed_start(k->feed, k->round % of_epoch, EPOCHS - begun, 1 << 16,
                              (int)(info->ranks.rank % 2), NULL) == 0);
    NET_CHECK(drps_worker_start(&k->worker, &k->server, &size, NULL) == 0);
    const struct drps_rounds_options options = {.plan = k->part,
                                                .net = k->net,
                                                .feed = k->feed,
                                                .server = &k->server,
                                                .worker = &k->worker,
                                                .train = &k->train,
                                                .wait_ms = WAIT_MS,
                                                .ahead = ahead,
                                                .sums = sums,
                                                .vectors = &k->vectors};
    NET_CHECK(drps_rounds_open(&options, &k->rounds, NULL) == 0);
}

static void close_rank(struct rank *k)
{
    k->out.row_bytes = k->server.row_bytes;
    k->out.rows = calloc(k->part->info.rows + 1, k->out.row_bytes);
    NET_CHECK(k->out.rows);
    if (k->out.rc >= 0) copy_rows(k, k->out.rows, 0);
    k->out.rounds = k->round;
    drps_rounds_bytes(k->rounds, &k->out.bytes);
    k->out.seen = drps_rounds_seen(k->rounds);
    drps_rounds_close(k->rounds);
    drps_worker_stop(&k->worker);
    drps_feed_close(k->feed);
    drps_server_close(&k->server);
    drps_net_close(k->net, 1000, k->out.rc < 0 ? &k->out.err : NULL);
}

static uint64_t sum_up(const struct rank *k, const struct drps_round *round)
{
    const struct drps_batch *b = round->batch;
    uint64_t sum = drps_checksum(&round->loss, sizeof(round->loss));
    sum = sum * 31 + drps_checksum(b->labels, b->samples * sizeof(*b->labels));
    if (k->round % k->rounds_of_epoch < k->part->info.batches) return sum;
    return sum * 31 + drps_checksum(k->worker.scores, b->samples * sizeof(float));
}

static int break_down(struct rank *k)
{
    return drps_err_set(&k->out.err, -EIO, "rank %u breaks down", k->part->info.ranks.rank);
}

/* Rounds up to `end` of the run, or until the ranks end before one. */
static int work(struct rank *k, uint64_t end)
{
    for (int rc; k->round < end; k->round++) {
        struct drps_round round;
        if (does(k->script->pause, k)) drps_rounds_pause(k->rounds);
        if (does(k->script->stop, k)) atomic_store(&k->stop, 1);
        if (does(k->script->fail, k)) return break_down(k);
        rc = drps_rounds_work(k->rounds, &round, &k->out.err);
        if (rc) return rc;
        k->out.result[k->round] = sum_up(k, &round);
    }
    if (k->script->late) drps_rounds_pause(k->rounds);
    return 0;
}

/* All ranks have paused: before the same round. */
static int meet(struct rank *k)
{
    uint64_t all[RANKS];
    k->out.paused[k->round] = 1;
    if (does(k->script->leave, k)) return break_down(k);
    int rc = drps_net_gather(k->net, &k->round, sizeof(k->round), all, WAIT_MS, &k->out.err);
    for (uint32_t r = 0; r < RANKS && rc == 0; r++)
        NET_CHECK(all[r] == k->round);
    return rc;
}

static int run_epochs(struct rank *k)
{
    while (k->round < EPOCHS * k->rounds_of_epoch) {
        const uint64_t step = k->round % k->rounds_of_epoch;
        int rc = drps_rounds_begin(k->rounds, step, &k->out.err);
        if (rc == 0) rc = work(k, k->round - step + k->rounds_of_epoch);
        rc = drps_rounds_end(k->rounds, rc, &k->out.err);
        if (rc < 0) return rc;
        k->out.stopped = rc == 1 && drps_rounds_stopped(k->rounds);
        if (k->out.stopped) return 0;
        if (rc == 1) rc = meet(k);
        if (rc < 0) return rc;
        if (k->script->quit && k->round == k->script->quit) return 0;
    }
    return 0;
}

static void run_rank(struct drps_net *net, uint32_t rank, void *ctx)
{
    struct rank *k = (struct rank *)ctx + rank;
    (void)net;
    k->out.rc = run_epochs(k);
    close_rank(k);
}

/* ---- Jobs ---- */

struct job {
    struct world *world;
    const char *optimizer;
    float l2;
    struct drps_plan *part[RANKS];
    uint64_t rounds_of_epoch, rounds; /* of the run */
    struct outcome whole[RANKS];      /* of rounds that go through */
};

/* out [RANKS]; free_outcomes(). */
static void run(const struct job *job, const struct script *script, const struct outcome *from,
                struct outcome *out)
{
    struct net_job nets = {.count = RANKS};
    struct drps_net_options options;
    struct rank *ranks = calloc(RANKS, sizeof(*ranks));
    assert_non_null(ranks);
    drps_train_net_options(job->part[0], &options);
    assert_int_equal(drps_net_open_inproc(&options, nets.nets, NULL), 0);
    for (uint32_t r = 0; r < RANKS; r++) {
        ranks[r] = (struct rank){.script = script,
                                 .from = from ? &from[r] : NULL,
                                 .part = job->part[r],
                                 .net = nets.nets[r]};
        open_rank(&ranks[r], job->optimizer, job->l2);
    }
    net_job_run(&nets, run_rank, ranks);
    for (uint32_t r = 0; r < RANKS; r++)
        out[r] = ranks[r].out;
    free(ranks);
}

static void free_outcomes(struct outcome *out)
{
    for (uint32_t r = 0; r < RANKS; r++)
        free(out[r].rows);
}

static const struct world_ranks alike = {RANKS, RANKS, 0, RANKS};

static void job_begin_shaped(struct job *job, const char *algo, enum case_format format,
                             const char *optimizer, float l2, const struct world_ranks *ranks)
{
    static const struct script through;
    *job = (struct job){.world = world_begin(algo, format, BATCH, RANKS * BATCH, seed),
                        .optimizer = optimizer,
                        .l2 = l2};
    char from[SCRATCH_PATH_BYTES];
    (void)snprintf(from, sizeof(from), "%s", job->world->plan);
    if (ranks != &alike) world_deal(job->world, from, ranks);
    for (uint32_t r = 0; r < RANKS; r++)
        assert_int_equal(
            drps_plan_open_rank(drps_io_os(), job->world->plan, r, &job->part[r], NULL), 0);
    const struct drps_plan_info *info = &job->part[0]->info;
    job->rounds_of_epoch = info->batches + info->eval_batches;
    job->rounds = EPOCHS * job->rounds_of_epoch;
    assert_true(info->batches > 3 && info->eval_batches > 2 && job->rounds < ROUNDS_MOST);
    ahead = 0;
    run(job, &through, NULL, job->whole);
    ahead = 1;
    for (uint32_t r = 0; r < RANKS; r++)
        if (job->whole[r].rc < 0) fail_msg("rank %u: %s", r, job->whole[r].err.text);
}

static void job_begin(struct job *job, const char *algo, enum case_format format,
                      const char *optimizer, float l2)
{
    job_begin_shaped(job, algo, format, optimizer, l2, &alike);
}

static void job_end(struct job *job)
{
    free_outcomes(job->whole);
    for (uint32_t r = 0; r < RANKS; r++)
        drps_plan_close(job->part[r]);
    world_end(job->world);
}

/* The rows at the end are those of the whole run, and so is each round from `first` on. */
static void check_same(const struct job *job, const struct outcome *out, uint64_t first)
{
    for (uint32_t r = 0; r < RANKS; r++) {
        const struct outcome *want = &job->whole[r];
        if (out[r].rc < 0) fail_msg("rank %u: %s", r, out[r].err.text);
        assert_int_equal(out[r].rounds, job->rounds);
        for (uint64_t i = first; i < job->rounds; i++)
            if (out[r].result[i] != want->result[i])
                fail_msg("rank %u: other results in round %llu", r, (unsigned long long)i);
        assert_memory_equal(out[r].rows, want->rows, job->part[r]->info.rows * want->row_bytes);
    }
}

/* What is to come of a script: the ranks end two rounds after the first wish since the last pause,
 * unless the epoch is over by then, which ends a pause and brings a stop. A rank without samples is
 * heard a round later, if that is of the same epoch; what it still wants it says again in the next.
 */
struct expected {
    uint8_t paused[ROUNDS_MOST]; /* before the round */
    uint64_t stopped_before;     /* all rounds: not at all */
};

static struct expected expect(const struct job *job, const struct script *script)
{
    struct expected x = {.stopped_before = job->rounds};
    uint64_t asked = UINT64_MAX;
    int stops = 0;
    uint8_t trains = 0, later_pause = 0, later_stop = 0, stopping = 0;
    for (uint32_t r = 0; r < RANKS; r++)
        if (drps_rank_trains(&job->part[0]->info.ranks, r)) trains |= (uint8_t)(1 << r);
    for (uint64_t i = 0; i < job->rounds; i++) {
        const int over = i % job->rounds_of_epoch == 0;
        const int ends = asked != UINT64_MAX && (over || i == asked + 2);
        if (ends && stops) {
            x.stopped_before = i;
            return x;
        }
        x.paused[i] = ends && !over;
        if (ends) asked = UINT64_MAX;
        if (ends || over) later_pause = later_stop = 0;
        const int stop = (script->stop[i] & trains) || later_stop;
        if (((script->pause[i] & trains) || later_pause || stop) && asked == UINT64_MAX) asked = i;
        stops |= stop;
        stopping |= (uint8_t)(script->stop[i] & ~trains);
        later_pause |= (uint8_t)(script->pause[i] & ~trains);
        later_stop = stopping;
    }
    return x;
}

static void check_pauses(const struct job *job, const struct script *script,
                         const struct outcome *out)
{
    const struct expected x = expect(job, script);
    for (uint64_t i = 0; i < job->rounds; i++)
        for (uint32_t r = 0; r < RANKS; r++)
            if (out[r].paused[i] != x.paused[i])
                fail_msg("rank %u: paused before round %llu: %d, expected %d", r,
                         (unsigned long long)i, out[r].paused[i], x.paused[i]);
}

/* Nothing is sent twice, and nobody is told twice. */
static void check_counts(const struct job *job, const struct outcome *out)
{
    for (uint32_t r = 0; r < RANKS; r++) {
        const struct drps_plan_info *info = &job->part[r]->info;
        const struct drps_plan_ranks *ranks = &info->ranks;
        const int lends =
            drps_rank_serves(ranks, r) && ranks->workers > (uint32_t)drps_rank_trains(ranks, r);
        const int pulls =
            drps_rank_trains(ranks, r) && ranks->servers > (uint32_t)drps_rank_serves(ranks, r);
        const struct drps_outer_choice vectors = full_layers(info);
        struct drps_rounds_bytes want;
        drps_rounds_forecast(info, job->l2 > 0, EPOCHS, &want);
        if (sums)
            drps_rounds_forecast_common(info, job->l2 > 0, job->whole[r].row_bytes, EPOCHS,
                                        &vectors, &out[r].seen, &want);
        assert_int_equal(out[r].bytes.sent - out[r].bytes.sent_marks, want.sent);
        assert_int_equal(out[r].bytes.received - out[r].bytes.received_marks, want.received);
        assert_int_equal(out[r].seen.vectors.each > 0, sums == 2);
        assert_int_equal(out[r].bytes.sent_marks > 0, ahead && lends);
        assert_int_equal(out[r].bytes.received_marks > 0, ahead && pulls);
        for (size_t m = 0; m <= DRPS_BATCH_DONE; m++)
            assert_int_equal(out[r].moments[m], EPOCHS * info->batches);
    }
}

static void check_paused_run(const struct job *job, const struct script *script)
{
    struct outcome out[RANKS];
    run(job, script, NULL, out);
    check_same(job, out, 0);
    check_pauses(job, script, out);
    check_counts(job, out);
    free_outcomes(out);
}

/* ---- Pauses ---- */

static uint64_t drawn; /* random numbers so far */

static uint64_t draw(uint64_t n)
{
    return drps_rng_at(seed, drawn++) % n;
}

/* Some ranks ask in one of `one_in` rounds. */
static struct script random_pauses(const struct job *job, uint64_t one_in)
{
    struct script s = {.late = (int)draw(2)};
    for (uint64_t i = 0; i < job->rounds; i++)
        if (draw(one_in) == 0) s.pause[i] = (uint8_t)(1 + draw((1 << RANKS) - 1));
    return s;
}

static void check_pauses_of(const char *algo, enum case_format format, const char *optimizer,
                            float l2)
{
    static const uint64_t one_in[] = {1, 2, 5, 20};
    struct job job;
    job_begin(&job, algo, format, optimizer, l2);
    for (size_t i = 0; i < 8; i++) {
        const struct script s = random_pauses(&job, one_in[i % 4]);
        ahead = i != 3;
        sums = drps_plan_common_rows(&job.part[0]->info) > 1 ? (int)i % 3 : 0;
        check_paused_run(&job, &s);
    }
    sums = 0;
    job_end(&job);
}

static void test_rounds_pause_with_nothing_lost(void **state)
{
    (void)state;
    check_pauses_of("lor", CASE_LIBSVM, "adagrad", 0);
    check_pauses_of("fm", CASE_LIBSVM, "adagrad", 0.01f);
    check_pauses_of("lmf", CASE_RATINGS, "ftrl", 0);
    check_pauses_of("net", CASE_LIBFFM, "adagrad", 0.01f);
}

/* One pause, by each rank, in each round. */
static void test_rounds_pause_anywhere(void **state)
{
    struct job job;
    (void)state;
    job_begin(&job, "lor", CASE_LIBSVM, "adagrad", 0);
    for (uint64_t i = 0; i < job.rounds; i++) {
        struct script s = {.late = 0};
        s.pause[i] = (uint8_t)(1 << i % RANKS);
        check_paused_run(&job, &s);
    }
    job_end(&job);
}

/* A pause that is asked for in an epoch's last round, or after it, is over with the epoch. */
static void test_rounds_pause_ends_with_the_epoch(void **state)
{
    struct job job;
    struct script s = {.late = 1};
    struct outcome out[RANKS];
    (void)state;
    job_begin(&job, "lor", CASE_LIBSVM, "adagrad", 0);
    for (uint64_t i = job.rounds_of_epoch - 1; i < job.rounds; i += job.rounds_of_epoch)
        s.pause[i] = 1 << 1;
    run(&job, &s, NULL, out);
    check_same(&job, out, 0);
    for (uint32_t r = 0; r < RANKS; r++)
        for (uint64_t i = 0; i < job.rounds; i++)
            assert_int_equal(out[r].paused[i], 0);
    free_outcomes(out);
    job_end(&job);
}

/* ---- Pauses and stops ---- */

static void check_stop(const struct job *job, const struct script *s)
{
    struct outcome out[RANKS];
    const struct expected x = expect(job, s);
    run(job, s, NULL, out);
    for (uint32_t r = 0; r < RANKS; r++) {
        if (out[r].rc < 0) fail_msg("rank %u: %s", r, out[r].err.text);
        assert_int_equal(out[r].stopped, x.stopped_before < job->rounds);
        assert_int_equal(out[r].rounds, x.stopped_before);
        for (uint64_t i = 0; i < x.stopped_before; i++)
            assert_true(out[r].result[i] == job->whole[r].result[i]);
    }
    check_pauses(job, s, out);
    free_outcomes(out);
}

/* Both wishes with one round are a stop; so is a stop while a pause is due, after a pause, or in an
 * epoch's last rounds. */
static void test_rounds_stop_and_pause(void **state)
{
    struct job job;
    (void)state;
    job_begin(&job, "lor", CASE_LIBSVM, "adagrad", 0);
    for (uint64_t i = 0; i < job.rounds; i++) {
        struct script s = random_pauses(&job, 4);
        s.stop[i] = (uint8_t)(1 << draw(RANKS));
        if (draw(4)) s.pause[i] = (uint8_t)(s.pause[i] | 1 << draw(RANKS));
        ahead = (int)draw(2);
        check_stop(&job, &s);
    }
    job_end(&job);
}

/* ---- Ranks without rows, or without samples ---- */

static const struct world_ranks shapes[] = {{3, 1, 0, RANKS}, {3, 2, 0, RANKS}, {2, 3, 0, RANKS},
                                            {1, 3, 0, RANKS}, {2, 1, 1, RANKS}, {1, 2, 1, RANKS}};

/* All rows are those of three workers with a server each. */
static void check_rows(const struct job *job, const struct job *want)
{
    size_t r = 0, s = 0;
    uint64_t at = 0, from = 0;
    for (; r < RANKS; r++, at = 0)
        for (; at < job->part[r]->info.rows; at++, from++) {
            const size_t bytes = want->whole[0].row_bytes;
            while (from == want->part[s]->info.rows) {
                from = 0;
                s++;
            }
            assert_memory_equal(job->whole[r].rows + at * bytes, want->whole[s].rows + from * bytes,
                                bytes);
        }
}

static void test_rounds_of_unequal_ranks(void **state)
{
    struct job want;
    (void)state;
    job_begin(&want, "fm", CASE_LIBSVM, "adagrad", 0.01f);
    for (size_t k = 0; k < sizeof(shapes) / sizeof(*shapes); k++) {
        struct job job;
        job_begin_shaped(&job, "fm", CASE_LIBSVM, "adagrad", 0.01f, &shapes[k]);
        if (shapes[k].workers == 3) check_rows(&job, &want);
        for (uint64_t i = 0; i < 8; i++) {
            const struct script s = random_pauses(&job, 1 + 3 * i);
            ahead = i % 3 != 0;
            check_paused_run(&job, &s);
        }
        job_end(&job);
    }
    job_end(&want);
}

/* Each rank alone, with or without samples, brings all to a stop, or to a pause. */
static void test_rounds_unequal_ranks_stop(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof(shapes) / sizeof(*shapes); k++) {
        struct job job;
        job_begin_shaped(&job, "lor", CASE_LIBSVM, "adagrad", 0, &shapes[k]);
        for (uint64_t i = 0; i < job.rounds; i += 1 + draw(4)) {
            struct script s = random_pauses(&job, 6);
            s.stop[i] = (uint8_t)(1 << i % RANKS);
            ahead = (int)draw(2);
            check_stop(&job, &s);
        }
        job_end(&job);
    }
}

/* A half of a rank that breaks down ends all, whatever halves the others have. */
static void test_rounds_an_unequal_rank_fails(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof(shapes) / sizeof(*shapes); k++) {
        struct job job;
        job_begin_shaped(&job, "lor", CASE_LIBSVM, "adagrad", 0, &shapes[k]);
        for (uint32_t who = 0; who < RANKS; who++) {
            struct script s = {.late = 0};
            struct outcome out[RANKS];
            s.fail[1 + draw(job.rounds_of_epoch)] = (uint8_t)(1 << who);
            run(&job, &s, NULL, out);
            for (uint32_t r = 0; r < RANKS; r++)
                if (out[r].rc >= 0) fail_msg("shape %zu: rank %u did not fail", k, r);
            assert_int_equal(out[who].rc, -EIO);
            free_outcomes(out);
        }
        job_end(&job);
    }
}

/* ---- From any step on ---- */

/* Ranks that are started anew, with the rows of those that paused before a round: any but the
 * second one of an epoch, before which none can. */
static void test_rounds_begin_anywhere(void **state)
{
    struct job job;
    (void)state;
    job_begin(&job, "fm", CASE_LIBSVM, "adagrad", 0.01f);
    for (uint64_t i = 2; i < job.rounds; i++) {
        struct script before = {.quit = i}, after = random_pauses(&job, 5);
        struct outcome cut[RANKS], out[RANKS];
        if (i % job.rounds_of_epoch == 1) continue;
        before.pause[i - 2] = (uint8_t)(1 << draw(RANKS));
        run(&job, &before, NULL, cut);
        for (uint32_t r = 0; r < RANKS; r++)
            assert_int_equal(cut[r].rounds, i);
        after.first = i;
        run(&job, &after, cut, out);
        check_same(&job, out, i);
        free_outcomes(cut);
        free_outcomes(out);
    }
    job_end(&job);
}

/* ---- Copies of common rows ---- */

/* Ranks that add up gradients of common rows, of each optimizer, and begin anywhere: with the rows
 * of rounds in which a server did, or which did so themselves. */
static void test_rounds_with_copies_begin_anywhere(void **state)
{
    static const char *const optimizers[] = {"adagrad", "sgd", "ftrl", "adam"};
    (void)state;
    for (size_t o = 0; o < 4; o++) {
        struct job job;
        job_begin(&job, "net", CASE_LIBFFM, optimizers[o], o ? 0 : 0.01f);
        for (uint64_t i = 2; i < job.rounds; i += 1 + 2 * o) {
            struct script before = {.quit = i}, after = random_pauses(&job, 5);
            struct outcome cut[RANKS], out[RANKS];
            if (i % job.rounds_of_epoch == 1) continue;
            before.pause[i - 2] = (uint8_t)(1 << draw(RANKS));
            sums = (int)draw(3);
            run(&job, &before, NULL, cut);
            sums = 1 + (int)draw(2);
            after.first = i;
            run(&job, &after, cut, out);
            check_same(&job, out, i);
            free_outcomes(cut);
            free_outcomes(out);
        }
        sums = 0;
        job_end(&job);
    }
}

static void test_rounds_with_copies_stop(void **state)
{
    struct job job;
    (void)state;
    job_begin(&job, "net", CASE_LIBFFM, "adagrad", 0);
    for (uint64_t i = 0; i < job.rounds; i += 1 + draw(4)) {
        struct script s = random_pauses(&job, 6);
        sums = 1 + (int)draw(2);
        s.stop[i] = (uint8_t)(1 << draw(RANKS));
        ahead = (int)draw(2);
        check_stop(&job, &s);
    }
    sums = 0;
    job_end(&job);
}

/* A rank that breaks down ends all, also those that wait for its gradient. */
static void test_rounds_with_copies_fail_together(void **state)
{
    struct job job;
    (void)state;
    job_begin(&job, "net", CASE_LIBFFM, "adagrad", 0);
    for (uint32_t who = 0; who < RANKS; who++)
        for (uint64_t i = 0; i < job.rounds_of_epoch; i += 3) {
            struct script s = {.late = 0};
            struct outcome out[RANKS];
            sums = 1 + (int)draw(2);
            s.fail[i] = (uint8_t)(1 << who);
            run(&job, &s, NULL, out);
            for (uint32_t r = 0; r < RANKS; r++)
                if (out[r].rc >= 0 || !out[r].err.text[0]) fail_msg("rank %u did not fail", r);
            assert_int_equal(out[who].rc, -EIO);
            free_outcomes(out);
        }
    sums = 0;
    job_end(&job);
}

/* Rank 1 alone gets copies from rank 0 that are not what they are to be. */
static void test_rounds_copies_must_fit(void **state)
{
    static const struct script script;
    static const float zeros[1 << 12];
    static const struct {
        const char *name;
        uint8_t type;
        int good, rows, bytes; /* messages that fit; more rows and bytes of the next one */
        uint64_t round;
    } cases[] = {{"shorter", DRPS_MESSAGE_COMMON, 0, -1, 0, 0},
                 {"longer", DRPS_MESSAGE_COMMON, 0, 1, 0, 0},
                 {"nothing", DRPS_MESSAGE_COMMON, 0, -36, 0, 0},
                 {"half a row", DRPS_MESSAGE_COMMON, 0, 0, 8, 0},
                 {"state missing", DRPS_MESSAGE_AHEAD, 1, 0, 0, 0},
                 {"state shorter", DRPS_MESSAGE_COMMON, 1, 0, -4, 0},
                 {"other rows", DRPS_MESSAGE_REPLICA, 0, 0, 0, 0},
                 {"later", DRPS_MESSAGE_COMMON, 0, 0, 0, 1}};
    struct job job;
    (void)state;
    job_begin(&job, "net", CASE_LIBFFM, "adagrad", 0);
    const struct drps_plan_info *info = &job.part[1]->info;
    const int common = (int)drps_plan_common_rows(info), row = (int)(info->dim * sizeof(float));
    assert_int_equal(common, 36);
    assert_true(drps_plan_own_common_rows(&job.part[0]->info, 36) == 36);
    sums = 1;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct drps_net *nets[RANKS];
        struct drps_net_options options;
        struct drps_feed_share share;
        struct drps_feed *feed;
        drps_train_net_options(job.part[1], &options);
        assert_int_equal(drps_net_open_inproc(&options, nets, NULL), 0);
        struct rank k = {.script = &script, .part = job.part[1], .net = nets[1]};
        open_rank(&k, job.optimizer, job.l2);
        assert_int_equal(drps_feed_open(job.part[1], 36, &feed, NULL), 0);
        assert_int_equal(drps_feed_start(feed, 0, 1, 1 << 16, 0, NULL), 0);
        assert_int_equal(drps_feed_next_share(feed, &share, NULL), 0);
        struct drps_piece piece = {zeros, (share.shares[0] - 36) * (size_t)row};
        struct drps_net_send send = {.to = 1,
                                     .part = DRPS_NET_WORKER,
                                     .type = DRPS_MESSAGE_PARAMETERS,
                                     .pieces = &piece,
                                     .n = 1};
        drps_feed_close(feed);
        assert_int_equal(drps_net_send(nets[0], &send, WAIT_MS, NULL), 0);
        for (int g = 0; g <= cases[i].good; g++) {
            const int wrong = g == cases[i].good;
            piece.bytes = (size_t)((common + wrong * cases[i].rows) * row + wrong * cases[i].bytes);
            send.type = wrong ? cases[i].type : DRPS_MESSAGE_COMMON;
            send.round = wrong ? cases[i].round : 0;
            assert_int_equal(drps_net_send(nets[0], &send, WAIT_MS, NULL), 0);
        }
        /* The server of rank 1 must not wait for a gradient of rank 0. */
        const struct drps_net_send gradient = {
            .to = 1, .part = DRPS_NET_SERVER, .type = DRPS_MESSAGE_GRADIENT};
        assert_int_equal(drps_net_send(nets[0], &gradient, WAIT_MS, NULL), 0);
        k.out.rc = run_epochs(&k);
        if (k.out.rc != DRPS_E_PROTO || !strstr(k.out.err.text, "rank 0 sent message") ||
            !strstr(k.out.err.text, "message 46"))
            fail_msg("%s: %d: %s", cases[i].name, k.out.rc, k.out.err.text);
        close_rank(&k);
        free(k.out.rows);
        drps_net_close(nets[0], 0, NULL);
        drps_net_close(nets[2], 0, NULL);
    }
    sums = 0;
    job_end(&job);
}

/* ---- What goes wrong ---- */

/* A rank breaks down with a pause asked for, or while the ranks have paused: all end, and none says
 * that all is well. */
static void test_rounds_a_rank_fails_around_a_pause(void **state)
{
    struct job job;
    (void)state;
    job_begin(&job, "lor", CASE_LIBSVM, "adagrad", 0);
    for (uint64_t i = 1; i + 2 < job.rounds_of_epoch; i++)
        for (int kind = 0; kind < 4; kind++) {
            struct script s = {.late = 0};
            struct outcome out[RANKS];
            const uint8_t who = (uint8_t)(1 << draw(RANKS));
            s.pause[i] = (uint8_t)(1 << draw(RANKS));
            if (kind == 0) s.fail[i] = who;      /* in the round that carries the wish */
            if (kind == 1) s.fail[i + 1] = who;  /* in the one after it */
            if (kind == 2) s.leave[i + 2] = who; /* in the pause */
            if (kind == 3) s.fail[i + 2] = who;  /* after it */
            run(&job, &s, NULL, out);
            for (uint32_t r = 0; r < RANKS; r++) {
                if (out[r].rc >= 0 || !out[r].err.text[0])
                    fail_msg("round %llu, kind %d: rank %u ended with %d", (unsigned long long)i,
                             kind, r, out[r].rc);
                if (who >> r & 1) assert_int_equal(out[r].rc, -EIO);
            }
            free_outcomes(out);
        }
    job_end(&job);
}

/* Rank 0 alone, whose own server goes on; the test is the servers of the others. */
static void test_rounds_servers_must_agree_on_the_end(void **state)
{
    static const uint32_t tags[][2] = {{DRPS_MESSAGE_PAUSE, DRPS_MESSAGE_PAUSE},
                                       {DRPS_MESSAGE_STOP, DRPS_MESSAGE_STOP},
                                       {DRPS_MESSAGE_PAUSE, DRPS_MESSAGE_STOP}};
    static const struct script script;
    struct job job;
    (void)state;
    job_begin(&job, "lor", CASE_LIBSVM, "adagrad", 0);
    for (size_t i = 0; i < sizeof(tags) / sizeof(*tags); i++) {
        struct drps_net *nets[RANKS];
        struct drps_net_options options;
        drps_train_net_options(job.part[0], &options);
        assert_int_equal(drps_net_open_inproc(&options, nets, NULL), 0);
        struct rank k = {.script = &script, .part = job.part[0], .net = nets[0]};
        open_rank(&k, job.optimizer, job.l2);
        for (uint32_t r = 1; r < RANKS; r++) {
            const struct drps_net_send send = {
                .part = DRPS_NET_WORKER, .type = DRPS_MESSAGE_PARAMETERS, .tag = tags[i][r - 1]};
            assert_int_equal(drps_net_send(nets[r], &send, WAIT_MS, NULL), 0);
        }
        k.out.rc = run_epochs(&k);
        assert_int_equal(k.out.rc, DRPS_E_PROTO);
        if (!strstr(k.out.err.text, "servers disagree")) fail_msg("%s", k.out.err.text);
        close_rank(&k);
        free(k.out.rows);
        for (uint32_t r = 1; r < RANKS; r++)
            drps_net_close(nets[r], 0, NULL);
    }
    job_end(&job);
}

/* Rank 0 alone gets a message ahead that does not fit the rows it uses. */
static void test_rounds_what_comes_ahead_must_fit(void **state)
{
    static const struct script script;
    struct job job;
    (void)state;
    job_begin(&job, "lor", CASE_LIBSVM, "adagrad", 0);
    for (int kind = 0; kind < 4; kind++) {
        struct drps_net *nets[RANKS];
        struct drps_net_options options;
        uint64_t data[64] = {0};
        drps_train_net_options(job.part[0], &options);
        assert_int_equal(drps_net_open_inproc(&options, nets, NULL), 0);
        struct rank k = {.script = &script, .part = job.part[0], .net = nets[0]};
        open_rank(&k, job.optimizer, job.l2);
        struct drps_feed_share share;
        struct drps_feed *feed;
        assert_int_equal(drps_feed_open(job.part[0], 1, &feed, NULL), 0);
        assert_int_equal(drps_feed_start(feed, 0, 1, 1 << 16, 0, NULL), 0);
        assert_int_equal(drps_feed_next_share(feed, &share, NULL), 0);
        const size_t rows = share.shares[1], words = (rows + 63) / 64;
        assert_true(rows > 0 && rows % 64 && words < 32);
        drps_feed_close(feed);
        struct drps_piece piece = {data, words * sizeof(*data)};
        if (kind == 0) piece.bytes -= 1;                                  /* marks cut off */
        if (kind == 1) data[0] = 1;                                       /* a value is missing */
        if (kind == 2) piece.bytes += sizeof(float);                      /* one too many */
        if (kind == 3) data[words - 1] = UINT64_C(1) << rows % 64;        /* no such row */
        if (kind == 3) piece.bytes += k.server.model.dim * sizeof(float); /* its value */
        const struct drps_net_send send = {
            .part = DRPS_NET_WORKER, .type = DRPS_MESSAGE_AHEAD, .pieces = &piece, .n = 1};
        assert_int_equal(drps_net_send(nets[1], &send, WAIT_MS, NULL), 0);
        k.out.rc = run_epochs(&k);
        assert_int_equal(k.out.rc, DRPS_E_PROTO);
        if (!strstr(k.out.err.text, "ahead of round 0")) fail_msg("%s", k.out.err.text);
        close_rank(&k);
        free(k.out.rows);
        for (uint32_t r = 1; r < RANKS; r++)
            drps_net_close(nets[r], 0, NULL);
    }
    job_end(&job);
}

/* Rank 0 alone, which filters nothing, gets a filtered gradient. */
static void test_rounds_filtered_gradients_are_for_who_filters(void **state)
{
    static const struct script script;
    static const float zeros[1 << 16];
    struct drps_net *nets[RANKS];
    struct drps_net_options options;
    struct drps_feed_share share;
    struct drps_feed *feed;
    struct job job;
    (void)state;
    job_begin(&job, "lor", CASE_LIBSVM, "adagrad", 0);
    drps_train_net_options(job.part[0], &options);
    assert_int_equal(drps_net_open_inproc(&options, nets, NULL), 0);
    struct rank k = {.script = &script, .part = job.part[0], .net = nets[0]};
    open_rank(&k, job.optimizer, job.l2);
    assert_int_equal(drps_feed_open(job.part[0], 1, &feed, NULL), 0);
    assert_int_equal(drps_feed_start(feed, 0, 1, 1 << 16, 0, NULL), 0);
    assert_int_equal(drps_feed_next_share(feed, &share, NULL), 0);
    for (uint32_t r = 1; r < RANKS; r++) {
        const struct drps_piece piece = {zeros,
                                         share.shares[r] * k.server.model.dim * sizeof(*zeros)};
        const struct drps_net_send parameters = {
            .part = DRPS_NET_WORKER, .type = DRPS_MESSAGE_PARAMETERS, .pieces = &piece, .n = 1};
        const struct drps_piece none = {zeros, 12};
        const struct drps_net_send gradient = {
            .part = DRPS_NET_SERVER, .type = DRPS_MESSAGE_FILTERED, .pieces = &none, .n = 1};
        assert_int_equal(drps_net_send(nets[r], &parameters, WAIT_MS, NULL), 0);
        assert_int_equal(drps_net_send(nets[r], &gradient, WAIT_MS, NULL), 0);
    }
    drps_feed_close(feed);
    k.out.rc = run_epochs(&k);
    assert_int_equal(k.out.rc, DRPS_E_PROTO);
    if (!strstr(k.out.err.text, "rank 1 sent message 29")) fail_msg("%s", k.out.err.text);
    close_rank(&k);
    free(k.out.rows);
    for (uint32_t r = 1; r < RANKS; r++)
        drps_net_close(nets[r], 0, NULL);
    job_end(&job);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rounds_pause_with_nothing_lost),
        cmocka_unit_test(test_rounds_pause_anywhere),
        cmocka_unit_test(test_rounds_pause_ends_with_the_epoch),
        cmocka_unit_test(test_rounds_stop_and_pause),
        cmocka_unit_test(test_rounds_of_unequal_ranks),
        cmocka_unit_test(test_rounds_unequal_ranks_stop),
        cmocka_unit_test(test_rounds_an_unequal_rank_fails),
        cmocka_unit_test(test_rounds_begin_anywhere),
        cmocka_unit_test(test_rounds_with_copies_begin_anywhere),
        cmocka_unit_test(test_rounds_with_copies_stop),
        cmocka_unit_test(test_rounds_with_copies_fail_together),
        cmocka_unit_test(test_rounds_copies_must_fit),
        cmocka_unit_test(test_rounds_a_rank_fails_around_a_pause),
        cmocka_unit_test(test_rounds_servers_must_agree_on_the_end),
        cmocka_unit_test(test_rounds_what_comes_ahead_must_fit),
        cmocka_unit_test(test_rounds_filtered_gradients_are_for_who_filters),
    };
    if (argc > 1) seed = strtoull(argv[1], NULL, 0);
    printf("seed %llu\n", (unsigned long long)seed);
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
