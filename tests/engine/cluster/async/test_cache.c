/*
 * Copies of rows that a worker keeps, on plans; the test is the servers. Copies with the worker's
 * own gradients are what servers have, bit for bit with sgd and nearly with adagrad, while nobody
 * else trains; a copy is used as long as its answer had what is needed, and no longer; batches that
 * others execute, and slots that change hands, leave no wrong copy; answers that do not fit are
 * refused.
 *
 *   test_cache [seed]
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_rng.h"
#include "engine/cluster/async/parts.h"
#include "index/plan/codec/drps_list.h"
#include "index/plan/drps_round.h"
#include "support/world.h"

enum { WORKERS = WORLD_WORKERS, WORKER = 1, BATCH = 32, ROWS_MOST = 2048, DIM_MOST = 8 };

static uint64_t seed = 20240607;

/* ---- The servers ---- */

/* A row as its server has it: parameters, then adagrad's sums of squares. */
struct row {
    float at[2 * DIM_MOST];
};

struct servers {
    struct world *world;
    struct drps_plan *part[WORKERS];
    struct drps_feed *feed;
    struct drps_server server; /* its optimizer alone */
    struct async_job job;
    struct async_cache *cache;
    struct async_answer *answer;
    struct row rows[ROWS_MOST];
    uint32_t ids[WORKERS * ROWS_MOST]; /* of the batch */
    uint64_t needs[WORKERS], in[WORKERS];
    uint64_t asked, copied; /* rows */
};

static void *read_record(const struct drps_plan *plan, const char *name, uint32_t kind, uint64_t i,
                         size_t *bytes_out)
{
    struct drps_recfile *file;
    assert_int_equal(drps_plan_file(plan, name, kind, &file, NULL), 0);
    *bytes_out = (size_t)drps_recfile_bytes(file, i);
    void *data = malloc((size_t)drps_recfile_run_bytes(file, i, 1) + 8);
    assert_int_equal(drps_recfile_read(file, i, 1, data, NULL), 0);
    drps_recfile_close(file);
    return data;
}

/* Rows of one server that the worker has in a step, as numbers of the whole plan. */
static size_t rows_of(const struct drps_plan *server, uint64_t step, uint32_t *out)
{
    static uint32_t ids[ROWS_MOST], positions[WORKERS * ROWS_MOST];
    size_t bytes, part[WORKERS + 1], n = 0;
    void *record = read_record(server, "rows.rec", DRPS_KIND_ROWS, step, &bytes);
    const uint32_t rows = drps_list_count(record);
    assert_int_equal(drps_list_decode(record, bytes, ids, NULL, NULL), 0);
    free(record);
    record = read_record(server, "positions.rec", DRPS_KIND_POSITIONS, step, &bytes);
    assert_int_equal(drps_positions_decode(record, bytes, WORKERS, rows, WORKERS * ROWS_MOST,
                                           positions, part, NULL),
                     0);
    free(record);
    for (size_t i = part[WORKER]; i < part[WORKER + 1]; i++)
        out[n++] = (uint32_t)server->info.ranks.first_row + ids[positions[i]];
    return n;
}

static void servers_begin(struct servers *s, const char *optimizer, uint64_t slots)
{
    memset(s, 0, sizeof(*s));
    s->world = world_begin_residuals(strcmp(optimizer, "sgd") == 0 ? "fm" : "lor", CASE_LIBSVM,
                                     BATCH, slots, seed);
    for (uint32_t r = 0; r < WORKERS; r++)
        assert_int_equal(drps_plan_open_rank(drps_io_os(), s->world->plan, r, &s->part[r], NULL),
                         0);
    struct drps_plan *part = s->part[WORKER];
    assert_int_equal(drps_optim_init(&s->server.optim, optimizer, NULL), 0);
    assert_int_equal(drps_feed_open(part, 1, &s->feed, NULL), 0);
    assert_int_equal(drps_feed_start(s->feed, 0, 2, 1 << 20, 0, NULL), 0);
    s->job = (struct async_job){.o = {.plan = part,
                                      .server = &s->server,
                                      .feed = s->feed,
                                      .batches = {.first = 0, .epochs = 1}},
                                .rank = WORKER,
                                .ranks = WORKERS,
                                .shape = &part->info.ranks,
                                .dim = part->info.dim,
                                .steps = part->info.batches,
                                .has_needs = 1,
                                .bound = 1000,
                                .cached = 1};
    assert_true(part->info.dim <= DIM_MOST);
    assert_int_equal(drps_async_cache_new(&s->job, &s->cache, NULL), 0);
    assert_int_equal(drps_async_answer_new(&s->job, &s->answer, NULL), 0);
    for (size_t i = 0; i < ROWS_MOST; i++)
        for (size_t k = 0; k < DIM_MOST; k++)
            s->rows[i].at[k] = drps_unit_float(drps_rng_at(seed, i * DIM_MOST + k));
}

static void servers_end(struct servers *s)
{
    drps_async_cache_free(s->cache);
    drps_async_answer_free(s->answer);
    drps_feed_close(s->feed);
    for (uint32_t r = 0; r < WORKERS; r++)
        drps_plan_close(s->part[r]);
    world_end(s->world);
}

/* The rows of one server of the batch: frames are ids. */
static struct drps_rows part_rows(struct servers *s, const uint32_t *ids, size_t n)
{
    return (struct drps_rows){
        .base = (char *)s->rows, .stride = sizeof(struct row), .index = ids, .n = n};
}

/* ---- Batches ---- */

/* Server `r` answers the pull of its n rows of the batch. */
static void answer(struct servers *s, const struct drps_feed_share *batch, uint32_t r,
                   const uint32_t *ids, float *params)
{
    const size_t n = batch->shares[r];
    const struct drps_rows rows = part_rows(s, ids, n);
    const struct drps_piece marks = drps_async_cache_marks(s->cache, batch, r);
    uint64_t *pull = calloc(1, sizeof(s->needs) + marks.bytes);
    memcpy(pull, s->needs, sizeof(s->needs));
    if (marks.bytes) memcpy(pull + WORKERS, marks.data, marks.bytes);
    const struct drps_net_message asked = {.data = pull, .bytes = sizeof(s->needs) + marks.bytes};
    assert_true(drps_async_answer_fits(&s->job, &asked, n));
    assert_true(!marks.bytes || !drps_async_answer_fits(&s->job, &asked, n + 64));
    uint64_t *data = malloc(sizeof(s->in) + drps_async_wanted_bytes(&s->job, n) + 8);
    size_t wanted;
    const size_t bytes = drps_async_answer_write(s->answer, &asked, &rows, s->in, data, &wanted);
    struct drps_net_message m = {.from = r, .data = data, .bytes = bytes + 4};
    assert_int_equal(drps_async_cache_put(s->cache, batch, &m, params, NULL), DRPS_E_PROTO);
    m.bytes = bytes;
    assert_int_equal(drps_async_cache_put(s->cache, batch, &m, params, NULL), 0);
    s->asked += wanted;
    s->copied += n - wanted;
    free(pull);
    free(data);
}

/* Parameters of other servers' rows are what these have, or as near. */
static void check_params(const struct servers *s, const struct drps_feed_share *batch,
                         const float *params, float by)
{
    const uint32_t dim = s->job.dim;
    size_t first = 0;
    for (uint32_t r = 0; r < WORKERS; first += batch->shares[r++])
        for (size_t i = first; r != WORKER && i < first + batch->shares[r]; i++)
            for (uint32_t k = 0; k < dim; k++)
                if (!(fabsf(params[i * dim + k] - s->rows[s->ids[i]].at[k]) <= by))
                    fail_msg("row %u: %.9g, its server has %.9g", s->ids[i],
                             (double)params[i * dim + k], (double)s->rows[s->ids[i]].at[k]);
}

/* Step t of the worker: alone, so that all else is as it has left it. */
static void work(struct servers *s, uint64_t t, float by)
{
    const uint32_t dim = s->job.dim;
    struct drps_feed_share batch;
    size_t n = 0;
    assert_int_equal(drps_feed_next_share(s->feed, &batch, NULL), 0);
    float *params = calloc(batch.body.rows * dim + 1, sizeof(*params));
    float *grads = calloc(batch.body.rows * dim + 1, sizeof(*grads));
    assert_int_equal(drps_async_cache_look(s->cache, &batch, s->needs, params, NULL), 0);
    for (uint32_t r = 0; r < WORKERS; r++) {
        assert_int_equal(rows_of(s->part[r], t, s->ids + n), batch.shares[r]);
        if (r != WORKER) answer(s, &batch, r, s->ids + n, params);
        n += batch.shares[r];
    }
    check_params(s, &batch, params, by);
    for (size_t i = 0; i < n * dim; i++)
        grads[i] = drps_unit_float(drps_rng_at(seed, t * 100000 + i)) - 0.5F;
    drps_async_cache_step(s->cache, &batch, grads);
    const struct drps_rows rows = part_rows(s, s->ids, n);
    drps_optim_step(&s->server.optim, dim, &rows, 0, n, grads, NULL, 0);
    free(params);
    free(grads);
}

/* Another worker executes it. */
static void leave(struct servers *s)
{
    struct drps_feed_share batch;
    assert_int_equal(drps_feed_next_share(s->feed, &batch, NULL), 0);
    assert_int_equal(drps_async_cache_skip(s->cache, &batch, NULL), 0);
}

static void check_copies(const char *optimizer, uint64_t slots, uint64_t others, float by)
{
    struct servers *s = malloc(sizeof(*s));
    servers_begin(s, optimizer, slots);
    for (uint64_t t = 0; t < s->job.steps; t++) {
        if (others && t % others == 1)
            leave(s);
        else
            work(s, t, by);
    }
    assert_true(s->copied > 0 && s->asked > 0);
    if (slots == UINT64_MAX && !others) assert_true(s->copied > s->asked);
    servers_end(s);
    free(s);
}

/* Slots that suffice, and slots that change hands. What adagrad has summed comes in 8 bits; with
 * rows of one value its mean is the sum itself. */
static void test_copies_are_what_servers_have(void **state)
{
    (void)state;
    for (uint64_t others = 0; others < 4; others += 3) {
        check_copies("sgd", UINT64_MAX, others, 0);
        check_copies("sgd", 60, others, 0);
        check_copies("adagrad", UINT64_MAX, others, 0.02F);
    }
}

/* Gradients of worker 2 are needed that come one a batch, as late as `late` batches after they are
 * needed to be there: copies of answers that lack them are not used. */
static void test_copies_are_used_while_they_are_new_enough(void **state)
{
    uint64_t copied[3];
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        static const uint64_t allowed[] = {0, 1, 3};
        struct servers *s = malloc(sizeof(*s));
        servers_begin(s, "sgd", UINT64_MAX);
        for (uint64_t t = 0; t < s->job.steps; t++) {
            s->in[2] = t;
            s->needs[2] = t > allowed[i] ? t - allowed[i] : 0;
            work(s, t, 0);
        }
        copied[i] = s->copied;
        servers_end(s);
        free(s);
    }
    assert_int_equal(copied[0], 0);
    assert_true(copied[1] > 0 && copied[2] > copied[1]);
}

/* The rule of "Timed Dataflow" (section III): a row has the round of its last push as stamp, and is
 * returned to a reader of round w if the stamp is w or more. */
static int paper_returns(uint64_t stamp, uint64_t w)
{
    return stamp >= w;
}

static void test_the_rule_of_stamps(void **state)
{
    static const uint64_t stamps[10] = {15, 3, 15, 14, 15, 7, 15, 11, 15, 1};
    (void)state;
    for (size_t row = 0; row < 10; row++)
        assert_int_equal(paper_returns(stamps[row], 15), row % 2 == 0);
}

/* The trap under ssp: worker 1 has a row's copy of its round 16; then worker 2 pushes the row in
 * its round 12. The stamp 12 is never returned; with a bound of 3 the copy lacks what is needed in
 * round 16 already, and is asked for anew. */
static void test_a_late_gradient_is_not_missed(void **state)
{
    struct servers *s = malloc(sizeof(*s));
    (void)state;
    servers_begin(s, "sgd", UINT64_MAX);
    s->in[2] = s->needs[2] = 12; /* gradients of rounds 0 to 11 */
    work(s, 0, 0);
    work(s, 1, 0);
    assert_true(s->copied > 0);
    const uint64_t copied = s->copied;
    assert_false(paper_returns(12, 16));
    for (size_t i = 0; i < ROWS_MOST; i++)
        s->rows[i].at[0] += 1; /* it is in: all values are others */
    s->in[2] = s->needs[2] = 13;
    work(s, 2, 0);
    assert_int_equal(s->copied, copied);
    servers_end(s);
    free(s);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_copies_are_what_servers_have),
        cmocka_unit_test(test_copies_are_used_while_they_are_new_enough),
        cmocka_unit_test(test_the_rule_of_stamps),
        cmocka_unit_test(test_a_late_gradient_is_not_missed),
    };
    if (argc > 1) seed = strtoull(argv[1], NULL, 0);
    printf("seed %llu\n", (unsigned long long)seed);
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
