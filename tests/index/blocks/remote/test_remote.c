/*
 * Counts over processes, and over accesses on disk: the same answers and layouts as counts in
 * memory gives, shards that fail, die or lose their parent, and peers that talk nonsense.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "index/blocks/builders/drps_builder.h"
#include "index/blocks/builders/similar.h"
#include "index/blocks/counts/drps_stream.h"
#include "index/blocks/remote/drps_remote.h"
#include "index/blocks/remote/remote_wire.h"
#include "index/plan/drps_batch.h"
#include "support/brute_counts.h"
#include "support/lists.h"

static const unsigned shard_counts[] = {1, 2, 3, 5};
enum { COUNTS = 4 };

/* ---- Cases ---- */

struct data {
    struct lists lists;
    struct access access;
    struct access_source from;
};

static void data_begin(struct data *d, struct random_source *rng, uint32_t rows, uint32_t steps)
{
    struct drps_err err = DRPS_ERR_INIT;
    lists_random(&d->lists, rng, rows, steps, 3 + rows / 3);
    d->from = (struct access_source){.io = drps_io_os(),
                                     .dir = d->lists.dir,
                                     .rows = rows,
                                     .batches = steps,
                                     .share = 1,
                                     .memory_bytes = 1 << 24};
    assert_ok(drps_access_load(&d->from, 0, steps, &d->access, &err), &err);
}

static void data_end(struct data *d)
{
    drps_access_free(&d->access);
    lists_free(&d->lists);
}

static struct counts *remote(const struct data *d, unsigned shards)
{
    struct drps_err err = DRPS_ERR_INIT;
    struct counts *t;
    assert_ok(drps_remote_open(&d->from, shards, &t, &err), &err);
    return t;
}

static struct counts *local(const struct data *d)
{
    struct drps_err err = DRPS_ERR_INIT;
    struct counts *t;
    assert_ok(drps_counts_open(&d->access, d->from.share, d->from.seed, &t, &err), &err);
    return t;
}

static struct counts *streamed(const struct data *d)
{
    struct drps_err err = DRPS_ERR_INIT;
    struct counts *t;
    assert_ok(drps_counts_stream(&d->from, 0, d->from.batches, &t, &err), &err);
    assert_true(t->streamed);
    return t;
}

static void assert_no_children(void)
{
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    assert_int_equal(errno, ECHILD);
}

/* ---- The same answers ---- */

/* What one operation of two counters returns, in arrays of n elements that are freed here. */
#define SAME(type, n, a, b, call)                                                                  \
    do {                                                                                           \
        type *x = must(calloc((n) + 1, sizeof(*x))), *y = must(calloc((n) + 1, sizeof(*y)));       \
        type *out = x;                                                                             \
        struct counts *t = (a);                                                                    \
        assert_ok(call, &err);                                                                     \
        out = y;                                                                                   \
        t = (b);                                                                                   \
        assert_ok(call, &err);                                                                     \
        assert_memory_equal(x, y, ((n) + 1) * sizeof(*x));                                         \
        free(x);                                                                                   \
        free(y);                                                                                   \
    } while (0)

static void assert_same_counts(struct counts *one, struct counts *many, struct random_source *rng)
{
    enum { PAIRS = REMOTE_PAIRS + 100 }; /* two questions */
    struct drps_err err = DRPS_ERR_INIT;
    const uint32_t blocks = one->blocks;
    const uint64_t salt = random_u64(rng);
    struct block_pair *pairs = must(calloc(PAIRS, sizeof(*pairs)));

    for (size_t i = 0; i < PAIRS; i++) {
        pairs[i].b = 1 + (uint32_t)random_below(rng, blocks - 1);
        pairs[i].a = (uint32_t)random_below(rng, pairs[i].b);
    }
    SAME(uint32_t, blocks, one, many, t->ops->counts(t, out, &err));
    SAME(uint64_t, blocks, one, many, t->ops->signatures(t, out, &err));
    SAME(uint32_t, blocks, one, many, t->ops->minhash(t, salt, out, &err));
    SAME(uint32_t, PAIRS, one, many, t->ops->cocounts(t, pairs, PAIRS, out, &err));
    SAME(uint64_t, 1, one, many, t->ops->pair_work(t, out, &err));
    free(pairs);
}

static void assert_same_pairs(struct counts *one, struct counts *many, struct random_source *rng,
                              int some)
{
    struct drps_err err = DRPS_ERR_INIT;
    uint8_t *group = must(calloc(one->blocks, 1));
    uint32_t *with = must(calloc(one->blocks, sizeof(*with)));
    struct block_pair_count *x, *y;
    size_t with_n = 0, xn, yn;

    for (uint32_t b = 0; b < one->blocks; b++) {
        group[b] = (uint8_t)random_below(rng, 4);
        if (some && random_below(rng, 3) == 0) with[with_n++] = b;
    }
    uint32_t *list = some ? with : NULL;
    assert_ok(one->ops->groups(one, group, &err), &err);
    assert_ok(many->ops->groups(many, group, &err), &err);
    assert_ok(one->ops->pairs(one, list, with_n, 1 << 24, &x, &xn, &err), &err);
    assert_ok(many->ops->pairs(many, list, with_n, 1 << 24, &y, &yn, &err), &err);
    assert_int_equal(xn, yn);
    if (xn) assert_memory_equal(x, y, xn * sizeof(*x));
    free(y);
    if (xn) { /* one too many: refused with the number, and the next question is answered */
        int rc = many->ops->pairs(many, list, with_n, (xn - 1) * sizeof(*x), &y, &yn, &err);
        assert_int_equal(rc, DRPS_E_MEMORY_BUDGET);
        assert_null(y);
        assert_true(yn >= xn);
    }
    free(x);
    free(group);
    free(with);
}

static void assert_same_lists(struct counts *one, struct counts *many, struct random_source *rng)
{
    struct drps_err err = DRPS_ERR_INIT;
    uint32_t *rows = must(calloc((size_t)one->blocks + 1, sizeof(*rows)));
    struct access x, y;
    size_t n = 0;
    for (uint32_t row = 0; row < one->blocks; row++)
        if (random_below(rng, 3)) rows[n++] = row;
    assert_ok(one->ops->lists(one, rows, n, UINT64_MAX, &x, &err), &err);
    assert_ok(many->ops->lists(many, rows, n, UINT64_MAX, &y, &err), &err);
    assert_int_equal(y.rows, n);
    assert_int_equal(y.batches, one->batches);
    assert_memory_equal(x.start, y.start, (n + 1) * sizeof(*x.start));
    assert_memory_equal(x.batch, y.batch, x.start[n] * sizeof(*x.batch));
    drps_access_free(&x);
    drps_access_free(&y);
    assert_int_equal(many->ops->lists(many, rows, n, 7, &y, NULL), DRPS_E_MEMORY_BUDGET);
    assert_null(y.batch);
    free(rows);
}

static void merge_some(struct counts *one, struct counts *many, uint8_t *dead,
                       struct random_source *rng)
{
    struct drps_err err = DRPS_ERR_INIT;
    struct block_pair *pairs = must(calloc(one->blocks, sizeof(*pairs)));
    size_t n = 0;
    uint32_t waiting = UINT32_MAX;
    for (uint32_t b = 0; b < one->blocks; b++) {
        if (dead[b] || random_below(rng, 3) == 0) continue;
        if (waiting == UINT32_MAX) {
            waiting = b;
        } else {
            pairs[n++] = (struct block_pair){waiting, b};
            dead[b] = 1;
            waiting = UINT32_MAX;
        }
    }
    assert_ok(one->ops->merge(one, pairs, n, &err), &err);
    assert_ok(many->ops->merge(many, pairs, n, &err), &err);
    free(pairs);
}

/* Both give the same answers while random blocks merge, and after a reset. Closes both. */
static void assert_answers_as_one(struct counts *one, struct counts *other,
                                  struct random_source *rng)
{
    struct drps_err err = DRPS_ERR_INIT;
    uint8_t *dead = must(calloc((size_t)one->blocks + 1, 1));
    assert_int_equal(other->blocks, one->blocks);
    assert_int_equal(other->batches, one->batches);
    for (int round = 0; round < 4; round++) {
        assert_same_counts(one, other, rng);
        assert_same_pairs(one, other, rng, round % 2);
        assert_same_lists(one, other, rng);
        merge_some(one, other, dead, rng);
    }
    assert_ok(one->ops->reset(one, &err), &err);
    assert_ok(other->ops->reset(other, &err), &err);
    assert_same_counts(one, other, rng);
    one->ops->close(one);
    other->ops->close(other);
    assert_no_children();
    free(dead);
}

static void test_shards_answer_as_one(void **state)
{
    static const uint32_t shapes[][2] = {{40, 60}, {25, 3}, {7, 1}, {300, 20}};
    struct random_source rng = random_begin(__func__);
    (void)state;
    for (size_t s = 0; s < 4; s++)
        for (size_t i = 0; i < COUNTS; i++) {
            struct data d;
            data_begin(&d, &rng, shapes[s][0], shapes[s][1]);
            d.from.share = i % 2 ? 0.5 : 1;
            d.from.seed = i;
            assert_answers_as_one(local(&d), remote(&d, shard_counts[i]), &rng);
            assert_answers_as_one(local(&d), streamed(&d), &rng);
            data_end(&d);
        }
}

/* ---- Less memory than accesses take ---- */

/* What is there for all shards lets each keep its accesses on disk, and load those of few rows. */
static void test_little_memory_leaves_accesses_on_disk(void **state)
{
    struct random_source rng = random_begin(__func__);
    (void)state;
    for (unsigned shards = 1; shards <= 3; shards += 2) {
        struct drps_err err = DRPS_ERR_INIT;
        struct block_pair_count *x, *y;
        uint8_t group[100];
        struct counts *t;
        struct data d;
        size_t xn, yn;
        data_begin(&d, &rng, 100, 1000);
        d.from.memory_bytes = access_bytes(&d.access) - 1;
        for (uint32_t row = 100, uses = 0; row-- > 0;) { /* some are kept */
            const uint32_t n = (uint32_t)(d.access.start[row + 1] - d.access.start[row]);
            group[row] = uses + n <= 600;
            if (group[row]) uses += n;
        }
        int rc = drps_counts_load(&d.from, 0, d.from.batches, &t, &err);
        assert_int_equal(rc, DRPS_E_MEMORY_BUDGET);
        drps_err_clear(&err);
        if (shards == 1)
            assert_ok(drps_counts_make(&d.from, 0, d.from.batches, &t, &err), &err);
        else
            t = remote(&d, shards);
        struct counts *one = local(&d);
        assert_true(t->streamed);
        assert_same_counts(one, t, &rng);
        assert_int_equal(t->ops->pairs(t, NULL, 0, 1 << 24, &y, &yn, &err), DRPS_E_MEMORY_BUDGET);
        if (!strstr(err.text, "leave rows of few batches alone")) fail_msg("%s", err.text);
        drps_err_clear(&err);
        assert_ok(one->ops->groups(one, group, &err), &err);
        assert_ok(t->ops->groups(t, group, &err), &err);
        assert_ok(one->ops->pairs(one, NULL, 0, 1 << 24, &x, &xn, &err), &err);
        assert_ok(t->ops->pairs(t, NULL, 0, 1 << 24, &y, &yn, &err), &err);
        assert_int_equal(xn, yn);
        assert_memory_equal(x, y, xn * sizeof(*x));
        free(x);
        free(y);
        one->ops->close(one);
        t->ops->close(t);
        data_end(&d);
    }
}

static void test_streaming_stops_and_refuses(void **state)
{
    struct random_source rng = random_begin(__func__);
    const atomic_int stop = 1;
    struct drps_err err = DRPS_ERR_INIT;
    uint32_t count[40];
    struct counts *t;
    struct data d;
    (void)state;
    data_begin(&d, &rng, 40, 30);
    d.from.stop = &stop;
    t = streamed(&d);
    assert_int_equal(t->ops->counts(t, count, &err), DRPS_E_INTERRUPTED);
    t->ops->close(t);
    drps_err_clear(&err);
    d.from.memory_bytes = 40 * 13 - 1;
    assert_int_equal(drps_counts_stream(&d.from, 0, 30, &t, &err), DRPS_E_MEMORY_BUDGET);
    assert_null(t);
    assert_non_null(strstr(err.text, "520 bytes"));
    drps_err_clear(&err);
    d.from.memory_bytes = 1 << 20;
    d.from.dir = "/nowhere";
    assert_int_equal(drps_counts_stream(&d.from, 0, 30, &t, &err), -ENOENT);
    assert_null(t);
    data_end(&d);
}

/* ---- The same layouts ---- */

static struct block_layout build(struct counts *t, const char *name, double share)
{
    struct drps_err err = DRPS_ERR_INIT;
    const struct block_tables tables = {.first = {0, 1, t->blocks}, .n = 2};
    const struct block_options options = {.cost = {.seek = 40, .row = 0.25},
                                          .top_k = 3,
                                          .sample = share,
                                          .max_rows = 20,
                                          .memory_bytes = 1 << 24};
    struct block_layout layout;
    assert_ok(drps_block_builder_find(name)->build(t, &tables, &options, &layout, &err), &err);
    t->ops->close(t);
    return layout;
}

static void test_builders_do_not_see_who_counts(void **state)
{
    static const char *const builders[] = {"pairwise", "topk", "greedy", "auto"};
    struct random_source rng = random_begin(__func__);
    (void)state;
    for (int round = 0; round < 8; round++) {
        struct data d;
        data_begin(&d, &rng, 2 + (uint32_t)random_below(&rng, 60),
                   (uint32_t)random_below(&rng, 80));
        d.from.share = round % 2 ? 0.6 : 1;
        for (size_t b = 0; b < sizeof(builders) / sizeof(builders[0]); b++) {
            struct block_layout expected =
                build(brute_counts_open(&d.access, d.from.share, 0), builders[b], d.from.share);
            for (size_t i = 0; i <= COUNTS + 1; i++) {
                struct counts *t = i < COUNTS    ? remote(&d, shard_counts[i])
                                   : i == COUNTS ? local(&d)
                                                 : streamed(&d);
                struct block_layout found = build(t, builders[b], d.from.share);
                assert_int_equal(found.blocks, expected.blocks);
                assert_memory_equal(found.first, expected.first,
                                    (found.blocks + 1) * sizeof(*found.first));
                assert_int_equal(!found.order, !expected.order);
                if (found.order)
                    assert_memory_equal(found.order, expected.order,
                                        d.lists.rows * sizeof(*found.order));
                drps_block_layout_free(&found);
            }
            drps_block_layout_free(&expected);
        }
        data_end(&d);
    }
    assert_no_children();
}

/* Rounds of minhash alone, until nothing is left to count. */
static struct block_layout build_similar(struct counts *t)
{
    struct drps_err err = DRPS_ERR_INIT;
    const struct block_tables tables = {.first = {0, t->blocks / 3, t->blocks}, .n = 2};
    const struct block_options options = {
        .cost = {.seek = 40, .row = 0.25}, .sample = 1, .max_rows = 20, .memory_bytes = 1 << 24};
    struct block_layout layout;
    struct merging m;
    uint64_t left;
    assert_ok(drps_merging_begin(&m, t, &tables, &options, &err), &err);
    assert_ok(drps_similar_merge(&m, 0, &left, &err), &err);
    assert_ok(drps_merging_layout(&m, &layout, &err), &err);
    drps_merging_end(&m);
    t->ops->close(t);
    return layout;
}

static void test_similar_merges_the_same_whoever_counts(void **state)
{
    struct random_source rng = random_begin(__func__);
    struct data d;
    (void)state;
    data_begin(&d, &rng, 6000, 60);
    struct block_layout expected = build_similar(local(&d));
    assert_true(expected.blocks < d.lists.rows / 2);
    struct counts *others[] = {streamed(&d), remote(&d, 3)};
    for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++) {
        struct block_layout found = build_similar(others[i]);
        assert_int_equal(found.blocks, expected.blocks);
        assert_memory_equal(found.first, expected.first, (found.blocks + 1) * sizeof(*found.first));
        assert_memory_equal(found.order, expected.order, d.lists.rows * sizeof(*found.order));
        drps_block_layout_free(&found);
    }
    drps_block_layout_free(&expected);
    data_end(&d);
    assert_no_children();
}

/* ---- Shards that fail ---- */

static void test_shard_that_cannot_load_says_why(void **state)
{
    struct random_source rng = random_begin(__func__);
    struct drps_err err = DRPS_ERR_INIT;
    struct data d;
    struct counts *t;
    (void)state;
    data_begin(&d, &rng, 40, 30);
    d.from.memory_bytes = 30;
    assert_int_equal(drps_remote_open(&d.from, 3, &t, &err), DRPS_E_MEMORY_BUDGET);
    assert_null(t);
    assert_non_null(strstr(err.text, "shard 1 of 3: "));
    assert_non_null(strstr(err.text, "accesses of 40 rows"));
    drps_err_clear(&err);
    d.from.memory_bytes = 1 << 20;
    d.from.dir = "/nowhere";
    assert_int_equal(drps_remote_open(&d.from, 2, &t, &err), -ENOENT);
    assert_non_null(strstr(err.text, "shard 1 of 2: "));
    assert_non_null(strstr(err.text, "/nowhere/rows.rec"));
    drps_err_clear(&err);
    assert_int_equal(drps_remote_open(&d.from, 0, &t, &err), DRPS_E_CONFIG);
    assert_int_equal(drps_remote_open(&d.from, REMOTE_SHARDS + 1, &t, NULL), DRPS_E_CONFIG);
    assert_no_children();
    data_end(&d);
}

/* Returns the process id of the last child that was made; -1: the kernel does not say. */
static pid_t last_child(void)
{
    char path[64];
    int pid = -1;
    (void)snprintf(path, sizeof(path), "/proc/self/task/%d/children", (int)getpid());
    FILE *f = fopen(path, "r");
    if (!f) return -1;
    while (fscanf(f, "%d", &pid) == 1)
        ;
    (void)fclose(f);
    return (pid_t)pid;
}

static void test_shard_that_dies_is_named(void **state)
{
    struct random_source rng = random_begin(__func__);
    struct drps_err err = DRPS_ERR_INIT;
    uint32_t count[40];
    struct data d;
    (void)state;
    data_begin(&d, &rng, 40, 30);
    struct counts *t = remote(&d, 3);
    pid_t pid = last_child();
    if (pid > 0) {
        siginfo_t ended;
        assert_int_equal(kill(pid, SIGKILL), 0);
        assert_int_equal(waitid(P_PID, (id_t)pid, &ended, WEXITED | WNOWAIT), 0);
        assert_int_equal(t->ops->counts(t, count, &err), DRPS_E_CLOSED);
        assert_non_null(strstr(err.text, "shard 3 of 3: its process was killed by signal 9"));
        drps_err_clear(&err);
        assert_int_equal(t->ops->reset(t, &err), DRPS_E_CLOSED);
        assert_non_null(strstr(err.text, "failed before"));
    }
    t->ops->close(t);
    assert_no_children();
    data_end(&d);
    if (pid <= 0) {
        print_message("the kernel does not list children: nothing was killed\n");
        skip();
    }
}

/* A pipe's end that all shards have inherited closes with the last of them. */
static void test_shards_end_with_their_parent(void **state)
{
    struct random_source rng = random_begin(__func__);
    struct data d;
    int fd[2], status;
    char byte;
    (void)state;
    data_begin(&d, &rng, 40, 30);
    assert_int_equal(pipe(fd), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        struct counts *t;
        int rc = drps_remote_open(&d.from, 3, &t, NULL);
        _exit(rc == 0 ? 7 : 1); /* without closing it */
    }
    (void)close(fd[1]);
    assert_int_equal(read(fd[0], &byte, 1), 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 7);
    (void)close(fd[0]);
    data_end(&d);
}

/* ---- Stopping while shards count ---- */

static atomic_int stop_flag;

static void raise_stop(int signal)
{
    (void)signal;
    atomic_store(&stop_flag, 1);
}

/* One shard never answers; whoever waits for it is told by a signal, and ends all. */
static void test_waiting_for_shards_stops_when_told(void **state)
{
    struct random_source rng = random_begin(__func__);
    struct drps_err err = DRPS_ERR_INIT;
    const struct sigaction raise = {.sa_handler = raise_stop, .sa_flags = SA_RESTART};
    const struct itimerval soon = {.it_value = {.tv_usec = 20000}};
    uint32_t count[40];
    struct data d;
    (void)state;
    data_begin(&d, &rng, 40, 30);
    atomic_store(&stop_flag, 0);
    d.from.stop = &stop_flag;
    struct counts *t = remote(&d, 3);
    const pid_t pid = last_child();
    if (pid > 0) {
        assert_int_equal(kill(pid, SIGSTOP), 0);
        assert_int_equal(sigaction(SIGALRM, &raise, NULL), 0);
        assert_int_equal(setitimer(ITIMER_REAL, &soon, NULL), 0);
        assert_int_equal(t->ops->counts(t, count, &err), DRPS_E_INTERRUPTED);
        drps_err_clear(&err);
        assert_true(t->ops->reset(t, &err) < 0); /* answers are outstanding */
    }
    t->ops->close(t);
    assert_no_children();
    data_end(&d);
    if (pid <= 0) {
        print_message("the kernel does not list children: nothing was stopped\n");
        skip();
    }
}

/* ---- Peers that talk nonsense: a link that reads from one buffer and writes to another ---- */

struct script {
    struct drps_remote_link link;
    uint8_t in[512], out[4096];
    size_t in_n, in_at, out_n;
};

static int script_send(struct drps_remote_link *l, unsigned peer, const void *bytes, size_t n,
                       struct drps_err *err)
{
    struct script *s = (struct script *)l;
    (void)err;
    assert_int_equal(peer, 0);
    assert_true(n <= sizeof(s->out) - s->out_n);
    memcpy(s->out + s->out_n, bytes, n);
    s->out_n += n;
    return 0;
}

static int script_receive(struct drps_remote_link *l, unsigned peer, void *bytes, size_t n,
                          struct drps_err *err)
{
    struct script *s = (struct script *)l;
    assert_int_equal(peer, 0);
    if (n > s->in_n - s->in_at) return drps_err_set(err, DRPS_E_CLOSED, "the script ends");
    memcpy(bytes, s->in + s->in_at, n);
    s->in_at += n;
    return 0;
}

static void script_close(struct drps_remote_link *l)
{
    (void)l;
}

static const struct drps_remote_link_ops script_ops = {script_send, script_receive, script_close};

static void script_begin(struct script *s)
{
    *s = (struct script){.link = {.ops = &script_ops, .peers = 1}};
}

static void script_add(struct script *s, int32_t what, uint64_t value, const void *bytes, size_t n)
{
    assert_true(s->in_n + REMOTE_HEAD_BYTES + n <= sizeof(s->in));
    remote_head_put(s->in + s->in_n, &(struct remote_head){what, value, n});
    if (n) memcpy(s->in + s->in_n + REMOTE_HEAD_BYTES, bytes, n);
    s->in_n += REMOTE_HEAD_BYTES + n;
}

static void test_shard_refuses_nonsense(void **state)
{
    static const uint32_t v[] = {0, 1, 2, 3, 0, 2, 4, 1, 1, 9};
    static const uint32_t thrice[] = {0, 1, 0, 1, 0, 1};
    static const struct {
        const char *name;
        int32_t what;
        uint64_t value;
        const void *bytes;
        size_t n;
    } cases[] = {
        {.name = "counts with a payload", .what = REMOTE_COUNTS, .value = 0, .bytes = v, .n = 4},
        {.name = "half a pair", .what = REMOTE_COCOUNTS, .value = 0, .bytes = v, .n = 12},
        {.name = "a pair of one block", .what = REMOTE_MERGE, .value = 0, .bytes = v + 7, .n = 8},
        {.name = "a block beyond the last",
         .what = REMOTE_MERGE,
         .value = 0,
         .bytes = v + 8,
         .n = 8},
        {.name = "more merges than blocks",
         .what = REMOTE_MERGE,
         .value = 0,
         .bytes = thrice,
         .n = 24},
        {.name = "no group of the last block",
         .what = REMOTE_GROUPS,
         .value = 0,
         .bytes = v,
         .n = 3},
        {.name = "groups and more", .what = REMOTE_GROUPS, .value = 0, .bytes = v, .n = 8},
        {.name = "all pairs of some", .what = REMOTE_PAIRS_ALL, .value = 100, .bytes = v, .n = 4},
        {.name = "half a block", .what = REMOTE_PAIRS_WITH, .value = 100, .bytes = v, .n = 6},
        {.name = "blocks that do not increase",
         .what = REMOTE_PAIRS_WITH,
         .value = 100,
         .bytes = v + 5,
         .n = 12},
        {.name = "a reset with a payload", .what = REMOTE_RESET, .value = 0, .bytes = v, .n = 4},
    };
    struct random_source rng = random_begin(__func__);
    const struct drps_err none = DRPS_ERR_INIT;
    struct data d;
    (void)state;
    data_begin(&d, &rng, 4, 5);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct counts *t = local(&d);
        struct script s;
        script_begin(&s);
        script_add(&s, cases[i].what, cases[i].value, cases[i].bytes, cases[i].n);
        script_add(&s, REMOTE_COUNTS, 0, v, 0); /* it goes on answering */
        assert_int_equal(drps_remote_serve(&s.link, t, &none, UINT64_MAX, NULL), DRPS_E_CLOSED);
        const struct remote_head refusal = remote_head_get(s.out + REMOTE_HEAD_BYTES);
        if (refusal.what != DRPS_E_CORRUPT) fail_msg("%s: code %d", cases[i].name, refusal.what);
        const size_t next = (size_t)(2 * REMOTE_HEAD_BYTES + refusal.bytes);
        const struct remote_head answer = remote_head_get(s.out + next);
        assert_int_equal(answer.what, 0);
        assert_int_equal(answer.bytes, 4 * sizeof(uint32_t));
        t->ops->close(t);
    }
    data_end(&d);
}

static void test_shard_stops_when_it_cannot_follow(void **state)
{
    struct random_source rng = random_begin(__func__);
    const struct drps_err none = DRPS_ERR_INIT;
    struct data d;
    (void)state;
    data_begin(&d, &rng, 4, 5);
    struct counts *t = local(&d);
    for (int i = 0; i < 3; i++) {
        static const struct remote_head heads[] = {
            {0, 0, 0}, {REMOTE_OPS, 0, 0}, {REMOTE_COCOUNTS, 0, UINT64_C(1) << 40}};
        struct script s;
        script_begin(&s);
        s.in_n = REMOTE_HEAD_BYTES;
        remote_head_put(s.in, &heads[i]);
        assert_int_equal(drps_remote_serve(&s.link, t, &none, UINT64_MAX, NULL), DRPS_E_CORRUPT);
    }
    t->ops->close(t);
    data_end(&d);
}

/* ---- Shards that are sent their batches ---- */

static int count_script(struct script *s, const char *scratch, struct drps_err *err)
{
    const struct drps_remote_counter counter = {drps_io_os(), scratch, 1 << 20};
    return drps_remote_count(&s->link, &counter, err);
}

static void script_deal(struct script *s, const struct remote_share *share)
{
    uint8_t payload[REMOTE_SHARE_BYTES];
    remote_share_put(payload, share);
    script_add(s, REMOTE_SHARE, 0, payload, sizeof(payload));
}

static void script_list(struct script *s, const uint32_t *list, size_t n)
{
    uint8_t record[64];
    assert_true(drps_list_encode_bound(n) <= sizeof(record));
    script_add(s, REMOTE_LIST, 0, record, drps_list_encode(list, n, record));
}

/* Batches 1 and 2 of 4, of which it is asked for counts. */
static void test_dealt_shard_counts_its_batches(void **state)
{
    static const uint32_t rows[] = {0, 2, 3}, expected[] = {1, 0, 2, 1};
    struct drps_err err = DRPS_ERR_INIT;
    struct script s;
    (void)state;
    script_begin(&s);
    script_deal(&s, &(struct remote_share){4, 4, 1, 3, 0, 1});
    script_list(&s, rows, 3);
    script_list(&s, rows + 1, 1);
    script_add(&s, REMOTE_COUNTS, 0, NULL, 0);
    struct scratch dir;
    scratch_begin(&dir);
    assert_ok(count_script(&s, dir.dir, &err), &err); /* the script's end is the end */
    const struct remote_head ready = remote_head_get(s.out);
    const struct remote_head answer = remote_head_get(s.out + REMOTE_HEAD_BYTES);
    assert_int_equal(ready.what, 0);
    assert_int_equal(answer.what, 0);
    assert_int_equal(answer.bytes, sizeof(expected));
    assert_memory_equal(s.out + 2 * REMOTE_HEAD_BYTES, expected, sizeof(expected));
    scratch_end(&dir);
}

/* It takes all that it is sent before it says so: nobody listens earlier. */
static void test_dealt_shard_says_why_it_cannot_count(void **state)
{
    static const uint32_t rows[] = {0, 2, 3};
    struct drps_err err = DRPS_ERR_INIT;
    struct script s;
    (void)state;
    script_begin(&s);
    script_deal(&s, &(struct remote_share){4, 1, 0, 1, 0, 1});
    script_list(&s, rows, 3);
    assert_int_equal(count_script(&s, "/nowhere", &err), -ENOENT);
    assert_non_null(strstr(err.text, "/nowhere/rows.rec"));
    assert_int_equal(s.in_at, s.in_n);
    assert_int_equal(remote_head_get(s.out).what, -ENOENT);
    drps_err_clear(&err);

    script_begin(&s);
    script_deal(&s, &(struct remote_share){3, 1, 0, 1, 0, 1});
    script_list(&s, rows, 3); /* row 3 of 3 */
    struct scratch dir;
    scratch_begin(&dir);
    assert_int_equal(count_script(&s, dir.dir, &err), DRPS_E_CORRUPT);
    assert_int_equal(remote_head_get(s.out).what, DRPS_E_CORRUPT);
    drps_err_clear(&err);

    script_begin(&s); /* no batch is its own, but there are too many */
    script_deal(&s, &(struct remote_share){3, UINT32_MAX, UINT32_MAX, UINT32_MAX, 0, 1});
    assert_int_equal(count_script(&s, dir.dir, &err), DRPS_E_MEMORY_BUDGET);
    assert_non_null(strstr(err.text, "lists of 4294967295 batches"));
    assert_int_equal(remote_head_get(s.out).what, DRPS_E_MEMORY_BUDGET);
    scratch_end(&dir);
}

/* Whoever is told to stop does so before it has written all batches that others have. */
static void test_dealt_shard_stops_when_told(void **state)
{
    const atomic_int stop = 1;
    const struct drps_io io = {.ops = drps_io_os()->ops, .stop = &stop};
    struct drps_err err = DRPS_ERR_INIT;
    struct script s;
    struct scratch dir;
    (void)state;
    scratch_begin(&dir);
    const struct drps_remote_counter counter = {&io, dir.dir, UINT64_C(1) << 40};
    script_begin(&s);
    script_deal(&s, &(struct remote_share){3, UINT32_MAX, UINT32_MAX, UINT32_MAX, 0, 1});
    assert_int_equal(drps_remote_count(&s.link, &counter, &err), DRPS_E_INTERRUPTED);
    scratch_end(&dir);
}

static void test_dealt_shard_refuses_what_is_no_share(void **state)
{
    static const struct {
        const char *name;
        struct remote_share share;
    } cases[] = {
        {"batches that end before they begin", {4, 5, 3, 2, 0, 1}},
        {"batches beyond the last", {4, 5, 3, 6, 0, 1}},
        {"nothing of the epoch", {4, 5, 0, 5, 0, 0}},
        {"more than the epoch", {4, 5, 0, 5, 0, 1.5}},
        {"a question in place of a list", {4, 5, 0, 5, 0, 1}},
    };
    struct scratch dir;
    (void)state;
    scratch_begin(&dir);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct script s;
        script_begin(&s);
        script_deal(&s, &cases[i].share);
        script_add(&s, REMOTE_COUNTS, 0, NULL, 0);
        int rc = count_script(&s, dir.dir, NULL);
        if (rc != DRPS_E_CORRUPT) fail_msg("%s: %d", cases[i].name, rc);
        assert_int_equal(s.out_n, 0);
    }
    struct script s;
    script_begin(&s);
    script_add(&s, REMOTE_COUNTS, 0, NULL, 0);
    assert_int_equal(count_script(&s, dir.dir, NULL), DRPS_E_CORRUPT);
    script_begin(&s);
    script_add(&s, REMOTE_SHARE, 0, &s, REMOTE_SHARE_BYTES - 1);
    assert_int_equal(count_script(&s, dir.dir, NULL), DRPS_E_CORRUPT);
    script_begin(&s);
    script_deal(&s, &cases[4].share);
    s.in_n += REMOTE_HEAD_BYTES; /* a list that no 4 rows can make */
    remote_head_put(s.in + s.in_n - REMOTE_HEAD_BYTES,
                    &(struct remote_head){REMOTE_LIST, 0, UINT64_C(1) << 40});
    assert_int_equal(count_script(&s, dir.dir, NULL), DRPS_E_CORRUPT);
    scratch_end(&dir);
}

static void test_remote_refuses_answers_that_are_none(void **state)
{
    static const struct block_pair_count pairs[] = {{1, 1, 1}};
    static const uint32_t count[] = {1, 2, 3};
    struct block_pair_count *list;
    uint32_t out[4];
    size_t n;
    (void)state;
    for (int i = 0; i < 5; i++) {
        struct drps_err err = DRPS_ERR_INIT;
        struct script s;
        struct counts *t;
        int rc;
        script_begin(&s);
        script_add(&s, 0, 0, NULL, 0); /* ready */
        if (i == 0) script_add(&s, 0, 0, count, sizeof(count));
        if (i == 1) script_add(&s, 1, 0, NULL, 0);
        if (i == 2) script_add(&s, 0, 2, pairs, sizeof(pairs));
        if (i == 3) script_add(&s, 0, 1, pairs, sizeof(pairs));
        assert_ok(drps_remote_over(&s.link, 4, 5, &t, &err), &err);
        if (i == 2 || i == 3)
            rc = t->ops->pairs(t, NULL, 0, 1000, &list, &n, &err);
        else
            rc = t->ops->counts(t, out, &err);
        assert_int_equal(rc, i == 4 ? DRPS_E_CLOSED : DRPS_E_CORRUPT);
        assert_non_null(strstr(err.text, i == 3 ? "the pair 1, 1" : "shard 1 of 1"));
        assert_true(t->ops->counts(t, out, NULL) < 0); /* nothing can be asked any more */
        t->ops->close(t);
    }
}

/* How many batches each of the rows asked for has, then which. */
static void test_remote_refuses_lists_of_batches_that_are_none(void **state)
{
    static const struct {
        const char *name;
        uint64_t value;
        uint32_t words[6];
        int rc;
    } cases[] = {
        {"increasing lists", 4, {3, 1, 0, 2, 4, 1}, 0},
        {"a batch beyond the last", 4, {3, 1, 0, 2, 5, 1}, DRPS_E_CORRUPT},
        {"a batch twice", 4, {3, 1, 0, 2, 2, 1}, DRPS_E_CORRUPT},
        {"a list that falls", 4, {3, 1, 0, 4, 2, 1}, DRPS_E_CORRUPT},
        {"other lengths", 4, {3, 2, 0, 2, 4, 1}, DRPS_E_CORRUPT},
        {"more batches than there are", 11, {3, 1, 0, 2, 4, 1}, DRPS_E_CORRUPT},
    };
    static const uint32_t rows[] = {0, 3};
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct drps_err err = DRPS_ERR_INIT;
        struct script s;
        struct counts *t;
        struct access lists;
        script_begin(&s);
        script_add(&s, 0, 0, NULL, 0); /* ready */
        script_add(&s, 0, cases[i].value, cases[i].words, sizeof(cases[i].words));
        assert_ok(drps_remote_over(&s.link, 4, 5, &t, &err), &err);
        const int rc = t->ops->lists(t, rows, 2, 1 << 20, &lists, &err);
        if (rc != cases[i].rc) fail_msg("%s: %d %s", cases[i].name, rc, err.text);
        if (rc == 0) drps_access_free(&lists);
        t->ops->close(t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shards_answer_as_one),
        cmocka_unit_test(test_builders_do_not_see_who_counts),
        cmocka_unit_test(test_similar_merges_the_same_whoever_counts),
        cmocka_unit_test(test_little_memory_leaves_accesses_on_disk),
        cmocka_unit_test(test_streaming_stops_and_refuses),
        cmocka_unit_test(test_shard_that_cannot_load_says_why),
        cmocka_unit_test(test_shard_that_dies_is_named),
        cmocka_unit_test(test_shards_end_with_their_parent),
        cmocka_unit_test(test_waiting_for_shards_stops_when_told),
        cmocka_unit_test(test_shard_refuses_nonsense),
        cmocka_unit_test(test_shard_stops_when_it_cannot_follow),
        cmocka_unit_test(test_dealt_shard_counts_its_batches),
        cmocka_unit_test(test_dealt_shard_says_why_it_cannot_count),
        cmocka_unit_test(test_dealt_shard_stops_when_told),
        cmocka_unit_test(test_dealt_shard_refuses_what_is_no_share),
        cmocka_unit_test(test_remote_refuses_answers_that_are_none),
        cmocka_unit_test(test_remote_refuses_lists_of_batches_that_are_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
