/*
 * Vectors of layers: which layers they are taken for; messages, and what is none; and that
 * ranks make of them the bits that they get who add up each other's gradients.
 *
 *   test_outer [seed]
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_rng.h"
#include "engine/cluster/outer/drps_outer.h"
#include "engine/cluster/outer/message.h"
#include "net/gather/drps_allgather.h"
#include "support/net_job.h"

static uint64_t seed = 20261127;
static uint64_t drawn; /* random numbers so far */

static uint64_t draw(uint64_t n)
{
    return drps_rng_at(seed, drawn++) % n;
}

static float draw_float(void)
{
    return (float)(drps_unit_double(drps_rng_at(seed, drawn++)) - 0.5);
}

static void *must(void *p)
{
    NET_CHECK(p);
    return p;
}

static struct drps_layers layers_of(const char *text, uint32_t fields, uint32_t outputs)
{
    struct drps_layers l;
    struct drps_err err = DRPS_ERR_INIT;
    if (drps_layers_parse(&l, text, &err) || drps_layers_shape(&l, fields, outputs, &err))
        fail_msg("%s: %s", text, err.text);
    return l;
}

/* ---- Which layers ---- */

/* Layers 1, 3 and 5 are 1000 x 2000, 2000 x 10 and 10 x 3. */
static const char wide[] = "x = numbers 1000\nh = full 2000 x\nh = relu h\nh = full 10 h\n"
                           "g = tanh h\nscore = full classes g\n";

static void test_outer_takes_layers_of_fewer_bytes(void **state)
{
    static const struct {
        const char *name;
        uint32_t ranks;
        uint64_t samples;
        enum drps_outer_rule rule;
        uint32_t n, first;
    } cases[] = {
        {"one rank", 1, 1, DRPS_OUTER_BYTES, 0, 0},
        {"one sample", 2, 1, DRPS_OUTER_BYTES, 3, 1},
        {"two samples", 2, 2, DRPS_OUTER_BYTES, 3, 1},   /* 2 * 2 * 13 < 60 */
        {"three samples", 2, 3, DRPS_OUTER_BYTES, 2, 1}, /* not 3 * 2 * 13 */
        {"just fewer", 4, 333, DRPS_OUTER_BYTES, 1, 1},  /* 333 * 4 * 3000 < 4000000 */
        {"too many", 4, 334, DRPS_OUTER_BYTES, 0, 0},
        {"time", 2, 100, DRPS_OUTER_TIME, 1, 1}, /* 4 * 100 * 3000 + 1125000 < 8000000 */
        {"time, of small layers", 2, 2, DRPS_OUTER_TIME, 3, 1},
        {"time, too many products", 4, 250, DRPS_OUTER_TIME, 0, 0}, /* of bytes alone it is taken */
        {"bytes, not time", 4, 250, DRPS_OUTER_BYTES, 1, 1},
    };
    const struct drps_layers l = layers_of(wide, 1000, 3);
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct drps_outer_choice c;
        drps_outer_choose(&l, cases[i].ranks, cases[i].samples, cases[i].rule, &c);
        if (c.n != cases[i].n || (c.n && c.layers[0].layer != cases[i].first))
            fail_msg("%s: %u layers, the first one is %u", cases[i].name, c.n, c.layers[0].layer);
    }
}

static void test_outer_knows_layers_and_bytes(void **state)
{
    const struct drps_layers l = layers_of(wide, 1000, 3);
    struct drps_outer_choice c, none = {.n = 0};
    (void)state;
    drps_outer_choose(&l, 2, 3, DRPS_OUTER_BYTES, &c);
    assert_int_equal(c.n, 2);
    assert_int_equal(c.layers[0].w, 1000);
    assert_int_equal(c.layers[0].N, 2000);
    assert_int_equal(c.layers[0].line, 2);
    assert_int_equal(c.layers[0].first, 3); /* behind the intercepts */
    assert_int_equal(c.layers[1].layer, 3);
    assert_int_equal(c.layers[1].first, 3 + 2000 * 1001);
    assert_int_equal(drps_outer_floats(&c), 2000 * 1010);
    assert_int_equal(drps_outer_floats(&none), 0);
    assert_int_equal(drps_outer_message_bytes(&c, 3), 4 * (2 + 3 + 2 * 2 + 3 * (3000 + 2010)));
    assert_int_equal(drps_outer_cost(&none, 5, 100), 0);
    /* The step; vectors; 3 products of 2020000 and their additions. */
    assert_int_equal(drps_outer_cost(&c, 2, 3),
                     16384 + 4 * 3 * 5010 + 3 * 2020000 / 200 + 2020000 / 16);
}

/* The vectors of layers 1 and 2 have 400 + 80 and 40 + 80 floats, those of the gates of 20 over 380
 * and over 20 with the 20 of the state; those of layer 3 have 25, of layer 4 8. */
static void test_outer_takes_lstm_by_inputs_with_states(void **state)
{
    static const struct {
        uint64_t samples;
        uint32_t n;
    } cases[] = {{1, 4}, {2, 3}, {3, 3}, {4, 2}, {26, 2}, {27, 1}, {66, 1}, {67, 0}};
    const struct drps_layers l = layers_of("x = bag 380\ng = lstm 20 x\nh = lstm 20 g\n"
                                           "h = full 5 h\nscore = full classes h\n",
                                           0, 3);
    struct drps_outer_choice c;
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        drps_outer_choose(&l, 2, cases[i].samples, DRPS_OUTER_BYTES, &c);
        if (c.n != cases[i].n)
            fail_msg("%llu samples: %u layers", (unsigned long long)cases[i].samples, c.n);
    }
    drps_outer_choose(&l, 2, 26, DRPS_OUTER_BYTES, &c);
    assert_int_equal(c.layers[0].layer, 1);
    assert_int_equal(c.layers[0].line, 2);
    assert_int_equal(c.layers[0].w, 400);
    assert_int_equal(c.layers[0].N, 80);
    assert_int_equal(c.layers[0].first, 3 + 380); /* behind the intercepts and b of the bag */
    assert_int_equal(c.layers[1].w, 40);
    assert_int_equal(c.layers[1].N, 80);
    assert_int_equal(c.layers[1].first, 3 + 380 + 80 * 401);
    assert_int_equal(drps_outer_floats(&c), 80 * 440);
}

/* Nothing that is saved by less than the all-gather's step takes. */
static void test_outer_takes_no_layers_for_less_than_a_step(void **state)
{
    const struct drps_layers l =
        layers_of("x = numbers 60\nh = full 60 x\nscore = full 1 h", 60, 1);
    struct drps_outer_choice c;
    (void)state;
    drps_outer_choose(&l, 2, 1, DRPS_OUTER_TIME, &c); /* 14400 bytes in an all-reduce */
    assert_int_equal(c.n, 0);
    drps_outer_choose(&l, 2, 1, DRPS_OUTER_BYTES, &c);
    assert_int_equal(c.n, 1);
}

static void test_outer_takes_the_rest_apart(void **state)
{
    const struct drps_layers l = layers_of(wide, 1000, 3);
    const size_t n = (size_t)l.floats + 5;
    struct drps_outer_choice c;
    float *values = must(malloc(n * sizeof(*values))), *rest = must(malloc(n * sizeof(*rest)));
    (void)state;
    drps_outer_choose(&l, 2, 3, DRPS_OUTER_BYTES, &c);
    for (size_t i = 0; i < n; i++)
        values[i] = (float)i;
    assert_int_equal(drps_outer_move_rest(&c, n, values, rest, DRPS_OUTER_OUT), n - 2020000);
    assert_true(rest[2] == 2 && rest[3] == 3 + 2000000 && rest[n - 2020000 - 1] == (float)(n - 1));
    for (size_t i = 0; i < n - 2020000; i++)
        rest[i] += 1;
    assert_int_equal(drps_outer_move_rest(&c, n, values, rest, DRPS_OUTER_BACK), n - 2020000);
    size_t same = 0;
    for (size_t i = 0; i < n; i++)
        same += values[i] < (float)i + 0.5f;
    assert_int_equal(same, 2020000);
    assert_true(values[3] == 3 && values[2000002] == 2000002 && values[2000003] == 2000004);
    free(values);
    free(rest);
}

/* ---- Messages ---- */

/* Two layers, 3 x 5 and 2 x 1. */
static const struct drps_outer_choice two = {
    .n = 2, .layers = {{.layer = 1, .w = 3, .N = 5}, {.layer = 2, .w = 2, .N = 1}}};

enum { MESSAGE_SAMPLES = 40, MESSAGE_FLOATS = MESSAGE_SAMPLES * 11 };

/* A message of random floats, of which about `zeros` in 10 are 0, some -0; in random chunks. */
static struct outer_message random_message(float *floats, uint32_t *chunks, uint32_t samples,
                                           uint64_t zeros)
{
    const uint32_t widths[] = {3, 5, 2, 1};
    struct outer_message m = {.samples = samples, .chunks = chunks};
    for (size_t i = 0; i < MESSAGE_FLOATS; i++)
        floats[i] = draw(10) >= zeros ? draw_float() : draw(5) ? 0.0f : -0.0f;
    for (uint32_t s = 0, n; s < samples; s += n) {
        n = 1 + (uint32_t)draw(samples - s);
        chunks[m.chunks_n++] = n | (!s || draw(2) ? OUTER_BEGINS : 0);
    }
    for (int k = 0; k < 4; k++) {
        struct outer_matrix *x = k % 2 ? &m.deltas[k / 2] : &m.inputs[k / 2];
        *x = (struct outer_matrix){(size_t)samples * widths[k], NULL, floats};
        floats += x->n;
    }
    return m;
}

static void expect_matrix(const struct outer_matrix *want, const struct outer_matrix *found)
{
    float room[MESSAGE_FLOATS];
    assert_int_equal(found->n, want->n);
    if (want->n)
        assert_memory_equal(outer_matrix_floats(found, room), want->floats,
                            want->n * sizeof(float));
}

static void test_outer_messages_say_all(void **state)
{
    (void)state;
    for (uint64_t zeros = 0; zeros <= 10; zeros++)
        for (uint32_t samples = 0; samples <= MESSAGE_SAMPLES; samples++) {
            float floats[MESSAGE_FLOATS];
            uint32_t chunks[MESSAGE_SAMPLES];
            const struct outer_message m = random_message(floats, chunks, samples, zeros);
            const uint64_t most = outer_message_most(&two, samples);
            uint32_t *data = must(malloc(most)); /* no more: the sanitizer watches */
            struct outer_message found;
            struct drps_err err = DRPS_ERR_INIT;
            const size_t bytes = outer_message_write(&two, &m, data);
            assert_true(bytes <= most);
            if (!zeros) assert_int_equal(bytes, most - 4 * (samples - m.chunks_n));
            if (zeros == 10 && samples > 20) assert_true(bytes < most / 2);
            if (outer_message_read(&two, samples, data, bytes, &found, &err))
                fail_msg("%s", err.text);
            assert_int_equal(found.samples, samples);
            assert_int_equal(found.chunks_n, m.chunks_n);
            assert_memory_equal(found.chunks, chunks, m.chunks_n * sizeof(*chunks));
            for (int i = 0; i < 2; i++) {
                expect_matrix(&m.inputs[i], &found.inputs[i]);
                expect_matrix(&m.deltas[i], &found.deltas[i]);
            }
            /* Fewer samples are expected, or more bytes. */
            if (samples)
                assert_int_equal(outer_message_read(&two, samples - 1, data, bytes, &found, &err),
                                 DRPS_E_PROTO);
            for (size_t cut = 0; cut < bytes; cut++)
                if (outer_message_read(&two, samples, data, cut, &found, &err) != DRPS_E_PROTO)
                    fail_msg("%zu of %zu bytes are a message", cut, bytes);
            free(data);
        }
}

/* The exact bytes of a small message, and what is none when a word is another. */
static void test_outer_messages_are_checked(void **state)
{
    static const struct drps_outer_choice one = {.n = 1, .layers = {{.layer = 1, .w = 20, .N = 1}}};
    static const uint32_t good[] = {2,          1,          OUTER_BEGINS | 2, 3,
                                    0x80000001, 0x00000080, 0x3f800000,       0x40000000,
                                    0x40800000, UINT32_MAX, 0x40400000,       0};
    static const struct {
        const char *name;
        int at; /* word that differs; -1: none */
        uint32_t value;
        int bytes; /* more than there were */
        int is_good;
    } cases[] = {
        {"good", -1, 0, 0, 1},
        {"NaN", 10, 0x7fc00001, 0, 1},
        {"a zero that follows", 6, 0, 0, 1},
        {"other marks", 4, 0x80000010, 0, 1},
        {"more samples", 0, 3, 0, 0},
        {"fewer samples", 0, 1, 0, 0},
        {"no samples", 0, 0, 0, 0},
        {"far more samples", 0, UINT32_MAX, 0, 0},
        {"more chunks", 1, 2, 0, 0},
        {"no chunks", 1, 0, 0, 0},
        {"far more chunks", 1, UINT32_MAX, 0, 0},
        {"a chunk of one", 2, OUTER_BEGINS | 1, 0, 0},
        {"a chunk of three", 2, OUTER_BEGINS | 3, 0, 0},
        {"a chunk of none", 2, OUTER_BEGINS, 0, 0},
        {"a thread that does not begin", 2, 2, 0, 0},
        {"more floats than marks", 3, 4, 0, 0},
        {"fewer floats than marks", 3, 2, 0, 0},
        {"as many as all", 3, 40, 0, 0},
        {"far too many", 3, UINT32_MAX - 1, 0, 0},
        {"all floats, which are not there", 3, UINT32_MAX, 0, 0},
        {"a mark more", 4, 0x80000003, 0, 0},
        {"a mark less", 4, 0x80000000, 0, 0},
        {"a mark behind the last", 5, 0x00000100, 0, 0},
        {"marks where none fit", 9, 1, 0, 0},
        {"a word less", -1, 0, -4, 0},
        {"a word more", -1, 0, 4, 0},
        {"a byte less", -1, 0, -1, 0},
        {"a byte more", -1, 0, 1, 0},
    };
    float floats[42] = {0}, room[40];
    uint32_t chunk = OUTER_BEGINS | 2, written[64];
    const struct outer_message m = {.samples = 2,
                                    .chunks_n = 1,
                                    .chunks = &chunk,
                                    .inputs = {{40, NULL, floats}},
                                    .deltas = {{2, NULL, floats + 40}}};
    (void)state;
    floats[0] = 1;
    floats[31] = 2;
    floats[39] = 4;
    floats[40] = 3;
    assert_int_equal(outer_message_write(&one, &m, written), sizeof(good));
    assert_memory_equal(written, good, sizeof(good));
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        const size_t bytes = (size_t)((int)sizeof(good) + cases[i].bytes);
        uint32_t *data = must(calloc(1, bytes));
        struct outer_message found;
        struct drps_err err = DRPS_ERR_INIT;
        memcpy(data, good, bytes < sizeof(good) ? bytes : sizeof(good));
        if (cases[i].at >= 0) data[cases[i].at] = cases[i].value;
        const int rc = outer_message_read(&one, 2, data, bytes, &found, &err);
        if (rc != (cases[i].is_good ? 0 : DRPS_E_PROTO))
            fail_msg("%s: %d: %s", cases[i].name, rc, err.text);
        if (rc == 0) (void)outer_matrix_floats(&found.inputs[0], room);
        free(data);
    }
}

/* A chunk of no samples behind one that has all. */
static void test_outer_messages_have_no_empty_chunk(void **state)
{
    static const struct drps_outer_choice one = {.n = 1, .layers = {{.layer = 1, .w = 1, .N = 1}}};
    uint32_t words[] = {2, 2, OUTER_BEGINS | 2, 0, 0, 0, 0, 0};
    struct outer_message found;
    struct drps_err err = DRPS_ERR_INIT;
    (void)state;
    assert_int_equal(outer_message_read(&one, 2, words, sizeof(words), &found, &err), DRPS_E_PROTO);
    words[2] = OUTER_BEGINS | 1;
    words[3] = 1;
    assert_int_equal(outer_message_read(&one, 2, words, sizeof(words), &found, &err), 0);
}

/* Each thread costs whoever computes its product a pass over W. */
static void test_outer_messages_have_few_threads(void **state)
{
    enum { MOST = DRPS_TRAIN_THREADS_MAX, WORDS = 2 + (MOST + 1) + 2 * (1 + (MOST + 32) / 32) };
    static const struct drps_outer_choice one = {.n = 1, .layers = {{.layer = 1, .w = 1, .N = 1}}};
    (void)state;
    for (uint32_t threads = MOST; threads <= MOST + 1; threads++) {
        uint32_t words[WORDS] = {MOST + 1, MOST + 1};
        struct outer_message found;
        struct drps_err err = DRPS_ERR_INIT;
        for (uint32_t k = 0; k <= MOST; k++)
            words[2 + k] = 1 | (k < threads ? OUTER_BEGINS : 0);
        assert_int_equal(outer_message_read(&one, MOST + 1, words, sizeof(words), &found, &err),
                         threads > MOST ? DRPS_E_PROTO : 0);
    }
}

/* ---- Rounds ---- */

enum {
    RANKS_MOST = 5,
    MEMBERS_MOST = 4,
    ROUNDS = 3,
    SAMPLES_MOST = 300,
    FIELDS = 12,
    FEATURES = 7
};

/* Nets with full layers, and lstm, that begin anywhere: of features, numbers and sequences; two
 * that read the same; narrow ones, which OpenBLAS does not multiply; relu and dropout, which leave
 * zeros. */
static const struct {
    const char *text;
    uint32_t fields, outputs;
} nets[] = {
    {"x = numbers 12\nh = full 70 x\nh = relu h\nh = full 33 h\nscore = full 1 h", FIELDS, 1},
    {"x = embedding 5\na = full 40 x\nb = full 3 x\nc = cross x x\nj = join a b c\n"
     "j = relu j\nj = dropout 0.5 j\nj = full 21 j\nj = tanh j\nscore = full classes j",
     FIELDS, 3},
    {"x = bag 6\ng = full 17 x\nh = lstm 9 g\nscore = full classes h", 0, 3},
    {"x = bag 5\ng = lstm 40 x\nh = dropout 0.5 g\nh = lstm 1 h\nj = join g h x\n"
     "j = lstm 12 j\nscore = full 1 j",
     0, 1},
};
enum { NETS = sizeof(nets) / sizeof(nets[0]) };

/* A rank with the arrays of its batches. */
struct rank {
    struct drps_model model;
    struct drps_server server; /* of which the model alone is used */
    struct drps_worker worker;
    struct drps_batch b;
    uint16_t local[SAMPLES_MOST * 2], fields[SAMPLES_MOST * 2];
    float values[SAMPLES_MOST * 2], labels[SAMPLES_MOST];
    float *before; /* own: this rank's gradient of a round */
    struct drps_outer *full;
};

struct job {
    struct net_job nets;
    size_t own; /* rows of the net */
    struct drps_outer_choice choice;
    uint64_t samples; /* of the largest batch */
    struct rank ranks[RANKS_MOST];
};

static size_t rows_of(const struct job *j)
{
    return j->own + FEATURES;
}

/* Two entries a sample. What they are is drawn before ranks run, for all alike. */
static void make_batch(const struct job *j, struct rank *k, size_t samples)
{
    const struct drps_layers *l = &k->model.layers;
    for (size_t i = 0; i < samples * 2; i++) {
        k->local[i] = (uint16_t)(j->own + draw(FEATURES));
        k->fields[i] = (uint16_t)(l->has_sequences ? draw(9) > 0 : draw(FIELDS));
        k->values[i] = draw_float();
    }
    for (size_t s = 0; s < samples; s++)
        k->labels[s] = (float)(l->outputs > 1 ? draw(3) : draw(2) * 2) - (l->outputs == 1);
    k->b = (struct drps_batch){.samples = samples,
                               .rows = samples ? rows_of(j) : 0,
                               .nnz = samples * 2,
                               .per_sample = 2,
                               .local16 = k->local,
                               .values = k->values,
                               .fields = k->fields,
                               .field_count = l->has_sequences ? DRPS_SEQUENCE_MARKS : FIELDS,
                               .labels = k->labels};
}

static void open_rank(struct job *j, uint32_t rank, size_t net, unsigned members)
{
    struct rank *k = &j->ranks[rank];
    struct drps_err err = DRPS_ERR_INIT;
    const struct drps_model_terms terms = {
        .algo = "net", .net = nets[net].text, .classes = nets[net].outputs > 1 ? 3 : 1};
    struct drps_optim optim;
    NET_OK(drps_model_settle(&k->model, &terms, &err));
    NET_OK(drps_model_set_fields(&k->model, nets[net].fields, 0, &err));
    NET_OK(drps_optim_init(&optim, "sgd", &err));
    drps_server_init(&k->server, &k->model, &optim);
    j->own = drps_model_common_rows(&k->model);
    const struct drps_worker_size size = {
        .samples = SAMPLES_MOST, .rows = rows_of(j), .members = members, .sends = 1};
    NET_OK(drps_worker_start(&k->worker, &k->server, &size, &err));
    k->before = must(malloc(rows_of(j) * k->model.dim * sizeof(float)));
    const struct drps_outer_job job = {.choice = j->choice,
                                       .net = j->nets.nets[rank],
                                       .worker = &k->worker,
                                       .samples = j->samples,
                                       .wait_ms = NET_WAIT_MS};
    NET_OK(drps_outer_open(&job, &k->full, &err));
    k->server.model.vectors = drps_outer_keeps(k->full);
}

static void close_rank(struct rank *k)
{
    drps_outer_close(k->full);
    drps_worker_stop(&k->worker);
    free(k->before);
}

/* Some of the net's layers that have vectors, at least one. */
static void choose_some(const char *text, uint32_t fields, uint32_t outputs,
                        struct drps_outer_choice *out)
{
    const struct drps_layers l = layers_of(text, fields, outputs);
    struct drps_outer_choice all;
    drps_outer_choose(&l, 2, 0, DRPS_OUTER_BYTES, &all); /* no sample takes no bytes */
    const uint64_t which = 1 + draw((UINT64_C(1) << all.n) - 1);
    memset(out, 0, sizeof(*out));
    for (uint32_t i = 0; i < all.n; i++)
        if (which >> i & 1) out->layers[out->n++] = all.layers[i];
}

/* The gradient of a round, with copies of it for all to see; then what comes of vectors. */
static void run_round(struct drps_net *net, uint32_t rank, void *ctx)
{
    struct job *j = ctx;
    struct rank *k = &j->ranks[rank];
    const size_t floats = j->own * k->model.dim;
    struct drps_err err = DRPS_ERR_INIT;
    NET_OK(drps_worker_renew(&k->worker, &err));
    (void)drps_worker_gradient(&k->worker, &k->b);
    if (!k->b.rows) memset(k->worker.grads[0], 0, floats * sizeof(float));
    memcpy(k->before, k->worker.grads[0], floats * sizeof(float));
    NET_OK(drps_net_barrier(net, NET_WAIT_MS, &err));
    NET_OK(drps_outer_exchange(k->full, 7, &err));
    drps_outer_add(k->full);
}

/* 1: the float belongs to W of a layer that was chosen. */
static int is_chosen(const struct job *j, size_t i)
{
    for (uint32_t c = 0; c < j->choice.n; c++) {
        const struct drps_outer_layer *y = &j->choice.layers[c];
        if (i >= y->first && i < y->first + (size_t)y->w * y->N) return 1;
    }
    return 0;
}

/* Sums begin with 0 and go through the ranks in order; of other floats there are none. */
static size_t check_sums(const struct job *j)
{
    const size_t floats = j->own * j->ranks[0].model.dim;
    size_t chosen = 0;
    for (size_t i = 0; i < floats; i++) {
        float sum = 0;
        for (uint32_t r = 0; r < j->nets.count; r++)
            sum += j->ranks[r].before[i];
        chosen += (size_t)is_chosen(j, i);
        for (uint32_t r = 0; r < j->nets.count; r++) {
            const float want = is_chosen(j, i) ? sum : j->ranks[r].before[i];
            const float found = j->ranks[r].worker.grads[0][i];
            if (memcmp(&want, &found, sizeof(want)) != 0)
                fail_msg("seed %llu, rank %u of %u, float %zu: %.9g, expected %.9g",
                         (unsigned long long)seed, r, j->nets.count, i, (double)found,
                         (double)want);
        }
    }
    return chosen;
}

/* Parameters that all ranks have, so large that sums of few floats would not be the same in another
 * order. */
static void set_params(struct job *j)
{
    const size_t n = rows_of(j) * j->ranks[0].model.dim;
    for (size_t i = 0; i < n; i++)
        j->ranks[0].worker.params[i] = draw_float();
    for (uint32_t r = 1; r < j->nets.count; r++)
        memcpy(j->ranks[r].worker.params, j->ranks[0].worker.params, n * sizeof(float));
}

/* What it says it has sent is what all others have received, and what the net says. */
static void check_bytes(const struct job *j, uint64_t rounds)
{
    uint64_t all = 0;
    for (uint32_t r = 0; r < j->nets.count; r++)
        all += drps_outer_bytes(j->ranks[r].full).each;
    for (uint32_t r = 0; r < j->nets.count; r++) {
        const struct drps_outer_bytes b = drps_outer_bytes(j->ranks[r].full);
        const uint64_t others = j->nets.count - 1;
        assert_int_equal(b.received, all - b.each);
        assert_true(b.each <= rounds * drps_outer_message_bytes(&j->choice, j->samples));
        assert_true(net_sent_bytes(j->nets.nets[r]) >= others * (b.each + rounds * 8));
    }
}

/* Batches of any sizes, of which some are empty; those of one rank have all samples. */
static void check_net(size_t net, uint32_t count, int threads)
{
    static struct job job;
    const struct drps_net_options shortest = {.queue_messages = 1, .silence_ms = NET_WAIT_MS};
    size_t chosen = 0;
    memset(&job, 0, sizeof(job));
    job.samples = SAMPLES_MOST - draw(40);
    choose_some(nets[net].text, nets[net].fields, nets[net].outputs, &job.choice);
    net_job_open(&job.nets, NET_INPROC, count, &shortest);
    for (uint32_t r = 0; r < count; r++)
        open_rank(&job, r, net, threads ? 1 + (unsigned)draw(MEMBERS_MOST) : 1);
    for (int round = 0; round < ROUNDS; round++) {
        set_params(&job);
        for (uint32_t r = 0; r < count; r++) {
            const uint64_t kind = draw(4);
            make_batch(&job, &job.ranks[r],
                       kind == 0   ? 0
                       : kind == 1 ? job.samples
                                   : draw(job.samples + 1));
        }
        net_job_run(&job.nets, run_round, &job);
        chosen += check_sums(&job);
    }
    assert_true(chosen > 0);
    check_bytes(&job, ROUNDS);
    for (uint32_t r = 0; r < count; r++)
        close_rank(&job.ranks[r]);
    net_job_close(&job.nets);
}

static void test_outer_sums_are_those_of_an_allreduce(void **state)
{
    static const uint32_t counts[] = {2, 3, 5};
    (void)state;
    for (size_t net = 0; net < NETS; net++)
        for (size_t c = 0; c < 3; c++)
            for (int threads = 0; threads < 2; threads++)
                for (int turn = 0; turn < 3; turn++)
                    check_net(net, counts[c], threads);
}

/* ---- What comes from others ---- */

struct stranger {
    const char *name;
    uint32_t samples, chunks, chunk; /* of a message of nothing else */
    size_t bytes;
};

struct strange_job {
    struct job *job;
    const struct stranger *stranger;
};

static void meet_stranger(struct drps_net *net, uint32_t rank, void *ctx)
{
    const struct strange_job *s = ctx;
    struct rank *k = &s->job->ranks[rank];
    const size_t most =
        ((size_t)drps_outer_message_bytes(&s->job->choice, s->job->samples) + 63) / 64 * 64;
    struct drps_err err = DRPS_ERR_INIT;
    if (rank == 0) {
        NET_OK(drps_worker_renew(&k->worker, &err));
        (void)drps_worker_gradient(&k->worker, &k->b);
        NET_CHECK(drps_outer_exchange(k->full, 7, &err) == DRPS_E_PROTO);
        NET_CHECK(strstr(err.text, "vectors of layers") && strstr(err.text, "rank 1"));
        return;
    }
    unsigned char *all = must(calloc(2, most));
    const uint32_t words[3] = {s->stranger->samples, s->stranger->chunks, s->stranger->chunk};
    size_t bytes[2] = {0, s->stranger->bytes};
    const struct drps_net_allgather g = {all, bytes, most, 7};
    memcpy(all + most, words, sizeof(words));
    NET_OK(drps_net_allgather(net, &g, NET_WAIT_MS, &err));
    free(all);
}

/* A message of another rank that fits no batch ends the round; nothing is computed. */
static void test_outer_refuses_what_is_no_message(void **state)
{
    static const struct stranger cases[] = {
        {"nothing", 0, 0, 0, 0},
        {"half a head", 1, 0, 0, 4},
        {"samples without vectors", 1, 1, OUTER_BEGINS | 1, 12},
        {"too many samples", SAMPLES_MOST + 1, 1, OUTER_BEGINS | (SAMPLES_MOST + 1), 12},
        {"the most samples", UINT32_MAX, UINT32_MAX, UINT32_MAX, 64},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        static struct job job;
        const struct strange_job strange = {&job, &cases[i]};
        memset(&job, 0, sizeof(job));
        job.samples = SAMPLES_MOST;
        choose_some(nets[0].text, nets[0].fields, nets[0].outputs, &job.choice);
        net_job_open(&job.nets, NET_INPROC, 2, &(struct drps_net_options){0});
        for (uint32_t r = 0; r < 2; r++)
            open_rank(&job, r, 0, 1);
        set_params(&job);
        make_batch(&job, &job.ranks[0], 20);
        net_job_run(&job.nets, meet_stranger, (void *)&strange);
        for (uint32_t r = 0; r < 2; r++)
            close_rank(&job.ranks[r]);
        net_job_close(&job.nets);
    }
}

/* What is counted for the memory holds what is taken. */
static void test_outer_counts_its_memory(void **state)
{
    const struct drps_layers l = layers_of(wide, 1000, 3);
    struct drps_outer_choice c, none = {.n = 0};
    (void)state;
    drps_outer_choose(&l, 3, 10, DRPS_OUTER_BYTES, &c);
    const uint64_t message = drps_outer_message_bytes(&c, 10), W = 1000 * 2000 * 4;
    assert_int_equal(drps_outer_memory(&none, 3, 10, 4), 0);
    /* The own vectors, messages of 3 ranks, and 4 under way; W of a sum, of a thread and of each
     * thread that computes, which are no more than other ranks. */
    const uint64_t one = drps_outer_memory(&c, 3, 10, 1), two_of = drps_outer_memory(&c, 3, 10, 2);
    assert_true(one > 8 * message + 3 * W && one < 9 * message + 3 * W + 100000);
    assert_true(two_of - one > W && two_of - one < W + 2 * message);
    assert_int_equal(drps_outer_memory(&c, 3, 10, 64), two_of);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_outer_takes_layers_of_fewer_bytes),
        cmocka_unit_test(test_outer_knows_layers_and_bytes),
        cmocka_unit_test(test_outer_takes_lstm_by_inputs_with_states),
        cmocka_unit_test(test_outer_takes_no_layers_for_less_than_a_step),
        cmocka_unit_test(test_outer_takes_the_rest_apart),
        cmocka_unit_test(test_outer_messages_say_all),
        cmocka_unit_test(test_outer_messages_are_checked),
        cmocka_unit_test(test_outer_messages_have_no_empty_chunk),
        cmocka_unit_test(test_outer_messages_have_few_threads),
        cmocka_unit_test(test_outer_sums_are_those_of_an_allreduce),
        cmocka_unit_test(test_outer_refuses_what_is_no_message),
        cmocka_unit_test(test_outer_counts_its_memory),
    };
    if (argc > 1) seed = strtoull(argv[1], NULL, 10);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
