/*
 * Pushes that are filtered, on plans: nothing is lost of any row over an epoch, or over epochs,
 * filters that hold nothing back change no bit of the model, others train, ranks stop and write
 * checkpoints between epochs, which have what is held back then, and what cannot be filtered is
 * refused.
 *
 *   test_push [seed]
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
#include <sys/stat.h>

#include "base/drps_rng.h"
#include "base/folder/drps_manifest.h"
#include "engine/checkpoint/drps_checkpoint.h"
#include "engine/cluster/filters/drps_held.h"
#include "engine/cluster/filters/drps_push.h"
#include "engine/train/verify/drps_verify.h"
#include "index/plan/drps_residuals.h"
#include "support/round_rows.h"
#include "support/world.h"

enum { WORKERS = WORLD_WORKERS, BATCH = 32, ROWS_MOST = 4096 };

static uint64_t seed = 20240607;

/* ---- Nothing is lost ---- */

/* Worker 1 of a plan, and the sums of each of its rows. */
struct account {
    struct drps_plan *part[WORKERS];
    struct drps_push *push;
    struct drps_push_reader *reader;
    uint32_t dim;
    double *made, *sent, *size; /* own: [ROWS_MOST][dim] gradients, what arrived, and all sizes */
    uint64_t others;            /* another worker executes each so manieth batch; 0: none */
    uint64_t batches;           /* so far */
    int waits;                  /* 1: in this epoch all is kept */
    uint32_t slot[ROWS_MOST];   /* of a row of its own, or DRPS_NO_SLOT */
};

enum { WORKER = 1 };

static void add(double *sums, const float *values, uint32_t row, uint32_t dim)
{
    for (uint32_t k = 0; k < dim; k++)
        sums[(size_t)row * dim + k] += (double)values[k];
}

static float random_gradient(uint64_t i)
{
    const uint64_t x = drps_rng_at(seed, i);
    return (x & 8 ? 1.0F : -1.0F) * ldexpf(drps_unit_float(x), (int)(x >> 4 & 7) - 8);
}

static void arrive(struct account *a, uint32_t server, const uint32_t *rows, size_t n, size_t first,
                   const float *grads)
{
    const struct drps_push_shape shape = {n, a->dim, 0};
    unsigned char *data = malloc(drps_push_bound(&shape));
    struct drps_err err = DRPS_ERR_INIT;
    const uint32_t *touches;
    const float *arrived;
    const size_t bytes = drps_push_write(a->push, server, first, n, grads, NULL, data);
    assert_true(bytes <= drps_push_bound(&shape));
    if (drps_push_decode(a->reader, &shape, data, bytes, &arrived, &touches, &err) < 0)
        fail_msg("%s", err.text);
    for (size_t i = 0; i < n; i++)
        add(a->sent, arrived + i * a->dim, rows[first + i], a->dim);
    free(data);
}

/* What was held back of rows of a batch that another worker executes. */
static void arrive_held(struct account *a, const uint32_t *rows, size_t n, size_t first)
{
    const struct drps_push_shape shape = {n, a->dim, 0};
    unsigned char *data = malloc(drps_push_bound(&shape));
    uint32_t *list = malloc((n + 1) * sizeof(*list));
    float *values = malloc((n + 1) * a->dim * sizeof(*values));
    struct drps_held held = {list, values, 0};
    struct drps_err err = DRPS_ERR_INIT;
    const size_t bytes = drps_push_write_held(a->push, first, n, data);
    assert_true(bytes <= drps_push_bound(&shape));
    if (drps_held_decode(data, bytes, n, a->dim, &held, &err) < 0) fail_msg("%s", err.text);
    assert_true(!a->waits || !held.n);
    for (size_t i = 0; i < held.n; i++)
        add(a->sent, values + i * a->dim, rows[first + list[i]], a->dim);
    free(data);
    free(list);
    free(values);
}

/* A round of the worker; servers get theirs in any order. */
static void work(struct account *a, uint64_t round)
{
    static uint32_t rows[WORKERS * ROWS_MOST];
    size_t first[WORKERS + 1] = {0};
    for (uint32_t s = 0; s < WORKERS; s++)
        first[s + 1] = first[s] + round_rows(a->part[s], WORKER, round, rows + first[s]);
    const size_t n = first[WORKERS], own = first[WORKER + 1] - first[WORKER];
    struct drps_err err = DRPS_ERR_INIT;
    if (a->others && round % a->others == a->others - 1) {
        if (drps_push_skip(a->push, n, first[WORKER], own, &err) < 0) fail_msg("%s", err.text);
        for (uint32_t s = 0; s < WORKERS; s++)
            if (s != WORKER) arrive_held(a, rows, first[s + 1] - first[s], first[s]);
        return;
    }
    float *grads = calloc(n * a->dim + 1, sizeof(*grads));
    for (size_t i = 0; i < n * a->dim; i++)
        grads[i] = random_gradient(a->batches * 100000 + i);
    a->batches++;
    for (size_t i = 0; i < n; i++)
        for (uint32_t k = 0; k < a->dim; k++) {
            const size_t at = (size_t)rows[i] * a->dim + k;
            if (i >= first[WORKER] && i < first[WORKER + 1]) continue;
            a->made[at] += (double)grads[i * a->dim + k];
            a->size[at] += fabs((double)grads[i * a->dim + k]);
        }
    if (drps_push_begin(a->push, grads, n, first[WORKER], own, &err) < 0) fail_msg("%s", err.text);
    for (uint32_t s = 0; s < WORKERS; s++) {
        const uint32_t to = round % 2 ? s : WORKERS - 1 - s;
        if (to != WORKER) arrive(a, to, rows, first[to + 1] - first[to], first[to], grads);
    }
    free(grads);
}

static double kept(const struct drps_push *push)
{
    struct drps_push_kept out;
    drps_push_kept(push, &out);
    return out.sum;
}

/* What arrived, and what is kept, are the gradients. */
static void check_account(const struct account *a)
{
    const float *slots = drps_push_slots(a->push);
    for (size_t i = 0; i < (size_t)ROWS_MOST * a->dim; i++) {
        const uint32_t slot = a->slot[i / a->dim];
        const double here = slot == DRPS_NO_SLOT ? 0 : (double)slots[slot * a->dim + i % a->dim];
        if (!(fabs(a->sent[i] + here - a->made[i]) <= 1e-6 * a->size[i]))
            fail_msg("%.9g arrived of %.9g, and %.9g is kept", a->sent[i], a->made[i], here);
    }
}

/* Where each row has a slot of its own these are the numbers of rows that the worker uses. */
static void number_slots(struct account *a, uint64_t batches)
{
    static uint32_t rows[ROWS_MOST];
    memset(a->slot, 0xff, sizeof(a->slot));
    for (uint64_t t = 0; t < batches; t++)
        for (uint32_t s = 0; s < WORKERS; s++) {
            const size_t n = s == WORKER ? 0 : round_rows(a->part[s], WORKER, t, rows);
            for (size_t i = 0; i < n; i++)
                a->slot[rows[i]] = 0;
        }
    for (uint32_t row = 0, next = 0; row < ROWS_MOST; row++)
        if (a->slot[row] != DRPS_NO_SLOT) a->slot[row] = next++;
}

/* A worker whose slots are those of `from`, if it is not NULL, goes on with an epoch. */
static void open_push(struct account *a, const struct drps_push_options *options, uint64_t epoch,
                      uint64_t epochs, const float *from)
{
    const struct drps_plan_ranks *ranks = &a->part[WORKER]->info.ranks;
    struct drps_err err = DRPS_ERR_INIT;
    const struct drps_push_job job = {.plan = a->part[WORKER],
                                      .options = options,
                                      .epoch = epoch,
                                      .epochs = epochs - epoch + 1,
                                      .seed = seed};
    if (drps_push_open(&job, &a->push, &err) < 0) fail_msg("%s", err.text);
    if (from)
        memcpy(drps_push_slots(a->push), from, ranks->residual_slots * a->dim * sizeof(*from));
}

/* A run that goes on from what another has left. */
static void begin_anew(struct account *a, const struct drps_push_options *options, uint64_t epoch,
                       uint64_t epochs)
{
    struct drps_push *before = a->push;
    open_push(a, options, epoch, epochs, drps_push_slots(before));
    drps_push_close(before);
}

static void begin_account(struct account *a, const struct world *w)
{
    struct drps_err err = DRPS_ERR_INIT;
    for (uint32_t r = 0; r < WORKERS; r++)
        if (drps_plan_open_rank(drps_io_os(), w->plan, r, &a->part[r], &err) < 0)
            fail_msg("%s", err.text);
    const struct drps_plan_info *info = &a->part[WORKER]->info;
    const struct drps_push_shape most = drps_push_most(info, 0);
    a->dim = info->dim;
    a->made = calloc((size_t)ROWS_MOST * a->dim, sizeof(*a->made));
    a->sent = calloc((size_t)ROWS_MOST * a->dim, sizeof(*a->sent));
    a->size = calloc((size_t)ROWS_MOST * a->dim, sizeof(*a->size));
    a->reader = drps_push_reader_new(&most);
    memset(a->slot, 0xff, sizeof(a->slot));
    if (info->ranks.own_slots) number_slots(a, info->batches);
}

static void end_account(struct account *a)
{
    drps_push_close(a->push);
    drps_push_reader_free(a->reader);
    for (uint32_t r = 0; r < WORKERS; r++)
        drps_plan_close(a->part[r]);
    free(a->made);
    free(a->sent);
    free(a->size);
}

/* An epoch; returns the most that is kept in it. */
static double work_epoch(struct account *a)
{
    double most_kept = 0;
    for (uint64_t t = 0; t < a->part[WORKER]->info.batches; t++) {
        work(a, t);
        most_kept = fmax(most_kept, kept(a->push));
    }
    return most_kept;
}

static void check_nothing_is_lost(uint64_t slots, const struct drps_push_options *options,
                                  uint64_t others)
{
    struct world *w = world_begin_residuals("fm", CASE_LIBSVM, BATCH, slots, seed);
    struct account a = {.others = others};
    begin_account(&a, w);
    open_push(&a, options, 1, 2, NULL);
    for (unsigned epoch = 0; epoch < 2; epoch++) {
        assert_true(work_epoch(&a) > 0);
        check_account(&a);
        assert_true(kept(a.push) <= 0);
    }
    const struct drps_push_counts *c = drps_push_counts(a.push);
    assert_true(c->sent_bytes < c->plain_bytes && c->whole_rows > 0 && c->whole_rows < c->rows);
    end_account(&a);
    world_end(w);
}

static const struct drps_push_options lossy[] = {
    {.on = 1, .bits = 8},
    {.on = 1, .bits = 16, .phi = .05, .decay = 1, .chance = .5},
    {.on = 1, .bits = 8, .top = .1},
    {.on = 1, .phi = .2, .chance = 1},
};

static void test_nothing_is_lost(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(lossy) / sizeof(*lossy); i++)
        for (uint64_t others = 0; others < 4; others += 2)
            check_nothing_is_lost(i % 2 ? UINT64_MAX : 40, &lossy[i], others);
}

/* Over six epochs, between two of which the run is left and gone on with. */
static void check_nothing_is_lost_over_epochs(const struct world *w,
                                              const struct drps_push_options *options,
                                              uint64_t others)
{
    enum { EPOCHS = 6 };
    struct account a = {.others = others};
    const uint64_t every = options->flush;
    uint64_t whole = 0;
    begin_account(&a, w);
    open_push(&a, options, 1, EPOCHS, NULL);
    for (uint64_t epoch = 1; epoch <= EPOCHS; epoch++) {
        const int flushes = epoch % every == 0 || epoch == EPOCHS, exact = !options->whole_bits;
        struct drps_push_kept left;
        a.waits = !flushes;
        assert_true(work_epoch(&a) > 0);
        check_account(&a);
        drps_push_kept(a.push, &left);
        assert_int_equal(left.rows == 0, flushes && exact);
        assert_int_equal(left.sum <= 0, flushes && exact);
        assert_int_equal(drps_push_counts(a.push)->whole_rows > whole, flushes);
        whole = drps_push_counts(a.push)->whole_rows;
        if (epoch != 3) continue;
        begin_anew(&a, options, epoch + 1, EPOCHS);
        whole = 0;
    }
    end_account(&a);
}

static void test_nothing_is_lost_over_epochs(void **state)
{
    static const uint32_t every[] = {2, 4, UINT32_MAX};
    struct world *w = world_begin_residuals("fm", CASE_LIBSVM, BATCH, WORLD_EACH, seed);
    (void)state;
    for (size_t i = 0; i < sizeof(lossy) / sizeof(*lossy); i++)
        for (size_t k = 0; k < 3; k++) {
            struct drps_push_options o = lossy[i];
            o.flush = every[k];
            check_nothing_is_lost_over_epochs(w, &o, i % 2 ? 0 : 3);
            o.whole_bits = i % 2 ? 16 : 8;
            check_nothing_is_lost_over_epochs(w, &o, 0);
        }
    world_end(w);
}

/* ---- Training ---- */

static uint64_t pushed(const struct drps_train_result *r, uint64_t *plain_out)
{
    uint64_t sum = 0;
    *plain_out = 0;
    for (size_t i = 0; i < r->ranks_n; i++) {
        sum += r->ranks[i].push.sent_bytes;
        *plain_out += r->ranks[i].push.plain_bytes;
    }
    return sum;
}

static void check_model(const char *algo, enum case_format format, const char *optimizer, float l2)
{
    static const struct drps_push_options exact[] = {{.on = 1}, {.on = 1, .bits = 32, .chance = 1}};
    struct world *w = world_begin_residuals(algo, format, BATCH, 60, seed);
    struct drps_train_options o = world_options(w);
    struct drps_train_result plain, r, again;
    uint64_t all;
    o.optimizer = optimizer;
    o.l2 = l2;
    world_train(w, &o, &plain);
    assert_int_equal(pushed(&plain, &all), 0);
    for (size_t i = 0; i < 2; i++) {
        o.push = exact[i];
        o.store = i ? "relay" : "resident";
        world_train(w, &o, &r);
        assert_int_equal(r.content, plain.content);
        assert_true(pushed(&r, &all) > 0);
        drps_train_result_free(&r);
    }
    for (size_t i = 0; i < sizeof(lossy) / sizeof(*lossy); i++) {
        o.push = lossy[i];
        o.store = "resident";
        world_train(w, &o, &r);
        /* Small messages of 32-bit values of one row each gain nothing by marks. */
        assert_true(pushed(&r, &all) < all || !lossy[i].bits);
        assert_true(r.content != plain.content);
        assert_true(fabs(r.epochs[1].test.loss / plain.epochs[1].test.loss - 1) < .1);
        o.store = "relay";
        o.no_overlap = 1;
        world_train(w, &o, &again);
        assert_int_equal(again.content, r.content);
        o.no_overlap = 0;
        drps_train_result_free(&again);
        drps_train_result_free(&r);
    }
    drps_train_result_free(&plain);
    world_end(w);
}

static void test_filters_that_hold_nothing_back_change_nothing(void **state)
{
    (void)state;
    check_model("lor", CASE_LIBSVM, "adagrad", 0);
    check_model("fm", CASE_LIBSVM, "adagrad", 0.001f);
    check_model("lmf", CASE_RATINGS, "sgd", 0);
    check_model("net", CASE_LIBFFM, "adagrad", 0.001f);
}

/* What is held over epochs arrives in the last; the model is the same in whatever store. */
static void check_flush(const struct world *w, const struct drps_push_options *push)
{
    struct drps_train_options o = world_options(w);
    struct drps_train_result plain, r, again;
    uint64_t all, often, seldom;
    o.epochs = 4;
    world_train(w, &o, &plain);
    o.push = *push;
    world_train(w, &o, &r);
    often = pushed(&r, &all);
    drps_train_result_free(&r);
    o.push.flush = 3;
    world_train(w, &o, &r);
    seldom = pushed(&r, &all);
    assert_true(seldom < often);
    for (size_t i = 0; i < r.ranks_n; i++)
        assert_int_equal(r.ranks[i].push.left_rows, 0);
    assert_true(fabs(r.epochs[3].test.loss / plain.epochs[3].test.loss - 1) < .1);
    o.store = "relay";
    o.no_overlap = 1;
    world_train(w, &o, &again);
    assert_int_equal(again.content, r.content);
    drps_train_result_free(&again);
    o.push.flush = UINT32_MAX;
    o.push.whole_bits = 8;
    world_train(w, &o, &again);
    assert_true(pushed(&again, &all) < seldom);
    assert_true(again.content != r.content);
    assert_true(again.ranks[1].push.left_rows > 0 && again.ranks[1].push.left_sum > 0);
    assert_true(fabs(again.epochs[3].test.loss / plain.epochs[3].test.loss - 1) < .1);
    drps_train_result_free(&again);
    drps_train_result_free(&r);
    drps_train_result_free(&plain);
}

static void test_gradients_wait_over_epochs(void **state)
{
    (void)state;
    for (int net = 0; net < 2; net++) {
        struct world *w = world_begin_residuals(net ? "net" : "fm", net ? CASE_LIBFFM : CASE_LIBSVM,
                                                BATCH, WORLD_EACH, seed);
        check_flush(w, &lossy[2]);
        check_flush(w, &lossy[3]);
        world_end(w);
    }
}

/* With slots of their own and all that is kept sent in each epoch it is as without such slots; and
 * where nothing is held back as without filters, whenever what is kept is sent. */
static void test_slots_of_their_own_change_nothing(void **state)
{
    struct world *own = world_begin_residuals("fm", CASE_LIBSVM, BATCH, WORLD_EACH, seed);
    struct world *all = world_begin_residuals("fm", CASE_LIBSVM, BATCH, UINT64_MAX, seed);
    struct drps_train_options o = world_options(own), p = world_options(all);
    struct drps_train_result r, want;
    (void)state;
    for (size_t i = 0; i < sizeof(lossy) / sizeof(*lossy); i++) {
        o.push = p.push = lossy[i];
        world_train(all, &p, &want);
        for (o.push.flush = 0; o.push.flush < 2; o.push.flush++) {
            world_train(own, &o, &r);
            assert_int_equal(r.content, want.content);
            drps_train_result_free(&r);
        }
        drps_train_result_free(&want);
    }
    p.push = (struct drps_push_options){0};
    o.push = (struct drps_push_options){.on = 1, .flush = UINT32_MAX};
    world_train(all, &p, &want);
    world_train(own, &o, &r);
    assert_int_equal(r.content, want.content);
    drps_train_result_free(&r);
    drps_train_result_free(&want);
    world_end(own);
    world_end(all);
}

/* ---- Stopping ---- */

static atomic_int stop;

static void stop_now(void *ctx, const struct drps_train_progress *p)
{
    (void)ctx;
    (void)p;
    atomic_store(&stop, 1);
}

/* What is interrupted ends with its epoch, and goes on as if it had not been, with its filters; its
 * model lacks what is held over epochs, as it says. */
static void check_stop(const char *algo, enum case_format format,
                       const struct drps_push_options *push)
{
    const int waits = push->flush > 1;
    struct world *w = world_begin_residuals(algo, format, 8, waits ? WORLD_EACH : 60, seed);
    struct drps_train_options o = world_options(w);
    struct drps_train_result whole, r;
    struct drps_err err = DRPS_ERR_INIT;
    o.push = *push;
    o.epochs = 3;
    world_train(w, &o, &whole);
    o.on_progress = stop_now;
    o.stop = &stop;
    atomic_store(&stop, 0);
    assert_int_equal(world_run(w, &o, &r, &err), DRPS_E_INTERRUPTED);
    assert_int_equal(r.epochs_n, 1);
    assert_int_equal(r.steps, 0);
    assert_int_equal(r.ranks[2].push.left_rows > 0, waits);
    drps_train_result_free(&r);
    o.on_progress = NULL;
    o.stop = NULL;
    o.push = (struct drps_push_options){0};
    o.resume = 1;
    world_train(w, &o, &r);
    assert_int_equal(r.resumed_epoch, 2);
    assert_int_equal(r.content, whole.content);
    assert_int_equal(r.ranks[2].push.left_rows, whole.ranks[2].push.left_rows);
    drps_train_result_free(&r);
    drps_train_result_free(&whole);
    world_end(w);
}

static void test_ranks_stop_between_epochs(void **state)
{
    static const struct drps_push_options random = {.on = 1, .phi = INFINITY, .chance = .4};
    struct drps_push_options waits = lossy[2];
    (void)state;
    check_stop("fm", CASE_LIBSVM, &lossy[1]);
    check_stop("fm", CASE_LIBSVM, &lossy[2]);
    check_stop("net", CASE_LIBFFM, &lossy[2]);
    check_stop("fm", CASE_LIBSVM, &random);
    waits.flush = 2;
    check_stop("fm", CASE_LIBSVM, &waits);
    waits.flush = UINT32_MAX;
    check_stop("fm", CASE_LIBSVM, &waits);
    check_stop("net", CASE_LIBFFM, &waits);
    waits.whole_bits = 8;
    check_stop("fm", CASE_LIBSVM, &waits);
}

/* With patience the model is that of the best epoch; what is held then is told. */
static void test_a_run_that_ends_early_says_what_is_left(void **state)
{
    struct world *w = world_begin_residuals("fm", CASE_LIBSVM, BATCH, WORLD_EACH, seed);
    struct drps_train_options o = world_options(w);
    struct drps_train_result r;
    (void)state;
    o.push = (struct drps_push_options){.on = 1, .bits = 8, .top = .1, .flush = UINT32_MAX};
    o.epochs = 200;
    o.patience = 1;
    world_train(w, &o, &r);
    assert_true(r.stopped_early);
    assert_true(r.best_epoch < r.epochs_n && r.epochs_n < o.epochs);
    for (size_t i = 0; i < r.ranks_n; i++)
        assert_true(r.ranks[i].push.left_rows > 0);
    drps_train_result_free(&r);
    world_end(w);
}

/* ---- Checkpoints that are damaged ---- */

static void stop_after_two(void *ctx, const struct drps_epoch *epoch)
{
    (void)ctx;
    if (epoch->epoch == 2) atomic_store(&stop, 1);
}

/* Leave the checkpoints of two epochs, and name the newest one's file of rank 1. */
static void leave_two(const struct world *w, const struct drps_train_options *options,
                      char path[SCRATCH_PATH_BYTES + 64])
{
    struct drps_train_options o = *options;
    struct drps_train_result r;
    struct drps_err err = DRPS_ERR_INIT;
    atomic_store(&stop, 0);
    o.checkpoint_every.unit = DRPS_CHECKPOINT_EPOCHS;
    o.checkpoint_every.n = 1;
    o.on_epoch = stop_after_two;
    o.stop = &stop;
    assert_int_equal(world_run(w, &o, &r, &err), DRPS_E_INTERRUPTED);
    assert_int_equal(r.epochs_n, 2);
    drps_train_result_free(&r);
    for (unsigned number = 9; number; number--) {
        struct stat st;
        (void)snprintf(path, SCRATCH_PATH_BYTES + 64, "%s.checkpoint/rank-1/%u/held.rec", w->model,
                       number);
        if (stat(path, &st) == 0) return;
    }
    fail_msg("there is no held.rec");
}

static void flip_last(const char *path, long back)
{
    FILE *f = fopen(path, "r+b");
    assert_non_null(f);
    assert_int_equal(fseek(f, -back, SEEK_END), 0);
    const int byte = fgetc(f);
    assert_int_equal(fseek(f, -back, SEEK_END), 0);
    assert_int_equal(fputc(byte ^ 1, f), byte ^ 1);
    assert_int_equal(fclose(f), 0);
}

static uint64_t problems_of(const struct world *w)
{
    char root[SCRATCH_PATH_BYTES + 16];
    struct drps_findings found = {0};
    struct drps_err err = DRPS_ERR_INIT;
    (void)snprintf(root, sizeof(root), "%s.checkpoint", w->model);
    if (drps_checkpoints_verify(drps_io_os(), root, &found, &err) < 0) fail_msg("%s", err.text);
    return found.problems;
}

/* Have the manifest beside held.rec say another number of slots, or nothing of it. */
static void edit_held(const char *path, int removes)
{
    char manifest[SCRATCH_PATH_BYTES + 80];
    struct drps_err err = DRPS_ERR_INIT;
    json_t *j;
    (void)snprintf(manifest, sizeof(manifest), "%.*s/checkpoint.json",
                   (int)(strrchr(path, '/') - path), path);
    if (drps_manifest_read(drps_io_os(), manifest, DRPS_CHECKPOINT_KIND, DRPS_CHECKPOINT_VERSION,
                           &j, &err) < 0)
        fail_msg("%s", err.text);
    json_t *files = json_object_get(j, "files");
    (void)json_object_del(j, "checksum");
    if (removes)
        assert_int_equal(json_object_del(files, "held"), 0);
    else
        assert_int_equal(
            json_object_set_new(json_object_get(files, "held"), "slots", json_integer(1)), 0);
    if (drps_manifest_write(drps_io_os(), manifest, j, &err) < 0) fail_msg("%s", err.text);
    json_decref(j);
}

/* The one before serves where what was held back is damaged, or gone; drps-stat finds it. */
static void test_what_is_held_back_is_checked(void **state)
{
    struct world *w = world_begin_residuals("fm", CASE_LIBSVM, BATCH, WORLD_EACH, seed);
    struct drps_train_options o = world_options(w);
    struct drps_train_result whole, r;
    char path[SCRATCH_PATH_BYTES + 64];
    (void)state;
    o.push = (struct drps_push_options){.on = 1, .bits = 8, .top = .1, .flush = UINT32_MAX};
    o.epochs = 4;
    world_train(w, &o, &whole);
    leave_two(w, &o, path); /* with fewer epochs nothing is left to do: what is held stays */
    o.resume = 1;
    o.epochs = 2;
    world_train(w, &o, &r);
    assert_int_equal(r.epochs_n, 2);
    assert_true(r.ranks[1].push.left_rows > 0);
    drps_train_result_free(&r);
    o.resume = 0;
    o.epochs = 4;
    for (int way = 0; way < 5; way++) {
        leave_two(w, &o, path);
        assert_int_equal(problems_of(w), 0);
        if (way == 1) flip_last(path, 500);
        if (way == 2) assert_int_equal(remove(path), 0);
        if (way > 2) edit_held(path, way == 4);
        assert_int_equal(problems_of(w) > 0, way > 0);
        o.resume = 1;
        world_train(w, &o, &r);
        o.resume = 0;
        assert_int_equal(r.resumed_epoch, 3); /* the interrupt has left one of the same epoch */
        assert_int_equal(r.content, whole.content);
        drps_train_result_free(&r);
    }
    drps_train_result_free(&whole);
    world_end(w);
}

/* ---- Refused ---- */

static void check_refused(struct world *w, const struct drps_train_options *o, const char *why)
{
    struct drps_train_result r;
    struct drps_err err = DRPS_ERR_INIT;
    assert_int_equal(world_run(w, o, &r, &err), DRPS_E_CONFIG);
    if (!strstr(err.text, why)) fail_msg("%s", err.text);
    drps_train_result_free(&r);
}

static void test_what_cannot_be_filtered_is_refused(void **state)
{
    struct world *w = world_begin_residuals("lor", CASE_LIBSVM, BATCH, 0, seed);
    struct drps_train_options o = world_options(w);
    (void)state;
    o.push = lossy[0];
    check_refused(w, &o, "residual slots");
    o.sync = DRPS_SCHED_ASP;
    check_refused(w, &o, "residual slots");
    world_end(w);
    w = world_begin_residuals("lor", CASE_LIBSVM, BATCH, UINT64_MAX, seed);
    o = world_options(w);
    o.push = (struct drps_push_options){.on = 1, .flush = 2};
    check_refused(w, &o, "no residual slots of their own");
    o.push = (struct drps_push_options){.on = 1, .whole_bits = 16};
    check_refused(w, &o, "no residual slots of their own");
    world_end(w);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_is_lost),
        cmocka_unit_test(test_nothing_is_lost_over_epochs),
        cmocka_unit_test(test_filters_that_hold_nothing_back_change_nothing),
        cmocka_unit_test(test_gradients_wait_over_epochs),
        cmocka_unit_test(test_slots_of_their_own_change_nothing),
        cmocka_unit_test(test_ranks_stop_between_epochs),
        cmocka_unit_test(test_a_run_that_ends_early_says_what_is_left),
        cmocka_unit_test(test_what_is_held_back_is_checked),
        cmocka_unit_test(test_what_cannot_be_filtered_is_refused),
    };
    if (argc > 1) seed = strtoull(argv[1], NULL, 0);
    printf("seed %llu\n", (unsigned long long)seed);
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
