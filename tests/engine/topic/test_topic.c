/* Topic models: the two small problems against conditions of their optima, whole runs on documents
 * in an array against a plain twin of dense matrices, and what comes out of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/topic/topic_internal.h"

enum { DOCS = 50, WORDS = 30, J = 4, DIM = J + 1, BATCH = 8, PER_DOC = 6, EPOCHS = 25 };
enum { EMPTY = 3 }; /* a document without words */

static uint64_t random_state;
static double random_unit(void) /* in [0, 1) */
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (double)(uint32_t)(random_state >> 32) / 4294967296.0;
}

/* ---- The small problems ---- */

static void test_inverse_is_one(void **state)
{
    double x[3 * J][J], a[J * J] = {0}, m[J * J], work[J * J];
    (void)state;
    random_state = 1;
    for (size_t i = 0; i < 3 * J; i++)
        for (size_t j = 0; j < J; j++)
            x[i][j] = j == 2 ? 0 : random_unit(); /* a topic that nobody uses */
    for (size_t i = 0; i < 3 * J; i++)
        for (size_t j = 0; j < J * J; j++)
            a[j] += x[i][j / J] * x[i][j % J];
    topic_inverse(J, a, 0.3, m, work);
    for (size_t i = 0; i < J; i++)
        for (size_t j = 0; j < J; j++) {
            double sum = 0.3 * m[i * J + j];
            for (size_t k = 0; k < J; k++)
                sum += a[i * J + k] * m[k * J + j];
            assert_true(fabs(sum - (i == j)) < 1e-12);
        }
}

/* At the optimum the slope is 0 where the code is positive, and not negative where it is 0. */
static void test_codes_are_optimal(void **state)
{
    double b[WORDS][J], h[J * J], p[J], a[J], ha[J];
    (void)state;
    random_state = 2;
    for (unsigned round = 0; round < 200; round++) {
        const double l1 = round % 3 ? 0.4 * random_unit() : 0;
        memset(h, 0, sizeof(h));
        memset(p, 0, sizeof(p));
        for (size_t k = 0; k < WORDS; k++) {
            const double d = random_unit() < 0.5 ? 0 : 3 * random_unit();
            for (size_t j = 0; j < J; j++)
                b[k][j] = j == 1 && round % 5 == 0 ? 0 : random_unit() - 0.3;
            for (size_t j = 0; j < J; j++)
                p[j] += b[k][j] * d;
            for (size_t j = 0; j < J * J; j++)
                h[j] += b[k][j / J] * b[k][j % J];
        }
        for (size_t j = 0; j < J; j++)
            a[j] = round % 2 ? random_unit() : 0;
        topic_solve(J, h, p, l1, 1, a, ha);
        for (size_t j = 0; j < J; j++) {
            double slope = l1 - p[j];
            for (size_t k = 0; k < J; k++)
                slope += h[j * J + k] * a[k];
            assert_true(a[j] >= 0);
            if (h[j * J + j] == 0) assert_true(a[j] == 0);
            if (a[j] > 0) assert_true(fabs(slope) < 1e-4);
            assert_true(slope > -1e-4);
        }
    }
}

/* ---- Documents in an array ---- */

struct corpus {
    double d[DOCS][WORDS];
};

static void make_corpus(struct corpus *c, uint64_t seed)
{
    memset(c, 0, sizeof(*c));
    random_state = seed;
    for (size_t i = 0; i < DOCS; i++)
        for (size_t n = 0; i != EMPTY && n < PER_DOC; n++)
            c->d[i][(size_t)(random_unit() * random_unit() * WORDS)] +=
                1 + (double)(int)(4 * random_unit());
}

/* Rows of documents, then of words; a batch has them all, in another order. */
struct run {
    struct drps_topic *topic;
    float rows[DOCS + WORDS][DIM];
    unsigned members;
    const struct corpus *corpus;
};

struct batch {
    struct drps_batch b;
    uint32_t starts[BATCH + 1], local[BATCH * (WORDS + 1)], index[BATCH + WORDS];
    float values[BATCH * (WORDS + 1)], labels[BATCH];
    float before[(BATCH + WORDS) * DIM], after[(BATCH + WORDS) * DIM], scores[BATCH];
};

/* Row WORDS + s of the batch is that of document first + s stride; those of words come in falling
 * order. */
static void fill(struct batch *x, const struct run *run, size_t first, size_t samples,
                 size_t stride, int own)
{
    uint32_t n = 0;
    memset(x, 0, sizeof(*x));
    for (uint32_t s = 0; s < samples; s++) {
        for (uint32_t k = 0; k < WORDS; k++) {
            const double d = run->corpus->d[first + s * stride][k];
            if (d == 0) continue;
            x->local[n] = WORDS - 1 - k;
            x->values[n++] = (float)d;
        }
        if (own) x->local[n++] = WORDS + s;
        x->starts[s + 1] = n;
    }
    for (uint32_t k = 0; k < WORDS; k++)
        x->index[WORDS - 1 - k] = DOCS + k;
    for (uint32_t s = 0; s < samples; s++)
        x->index[WORDS + s] = (uint32_t)(first + s * stride);
    for (size_t i = 0; i < WORDS + samples; i++)
        memcpy(x->before + i * DIM, run->rows[x->index[i]], sizeof(run->rows[0]));
    x->b = (struct drps_batch){.samples = samples,
                               .rows = WORDS + samples,
                               .nnz = n,
                               .labels = x->labels,
                               .starts = x->starts,
                               .local32 = x->local,
                               .values = x->values};
}

static void work(struct run *run, const struct drps_topic_step *step)
{
    for (unsigned phase = 0; phase < DRPS_TOPIC_PHASES; phase++)
        for (unsigned k = run->members; k--;) /* the last one first: no member waits for another */
            drps_topic_work(run->topic, step, phase, k);
}

static void train(struct run *run, size_t first, size_t samples)
{
    static struct batch x;
    fill(&x, run, first, samples, 1, 1);
    const struct drps_rows rows = {(char *)run->rows, sizeof(run->rows[0]), x.index,
                                   WORDS + samples};
    const struct drps_topic_step step = {
        .batch = &x.b, .rows = &rows, .before = x.before, .after = x.after, .scores = x.scores};
    work(run, &step);
}

static double score(struct run *run, size_t doc, float code[J])
{
    static struct batch x;
    fill(&x, run, doc, 1, 1, 0);
    const struct drps_topic_step step = {
        .batch = &x.b, .before = x.before, .scores = x.scores, .codes = code};
    work(run, &step);
    return (double)x.scores[0];
}

static void epoch(struct run *run)
{
    for (size_t first = 0; first < DOCS; first += BATCH)
        train(run, first, DOCS - first < BATCH ? DOCS - first : BATCH);
}

static void begin(struct run *run, const struct corpus *c, double l1, double rho, unsigned members)
{
    const struct drps_topic_options o = {.topics = J, .l1 = l1, .rho = rho, .members = members};
    memset(run, 0, sizeof(*run));
    run->corpus = c;
    run->members = members;
    assert_int_equal(drps_topic_open(&o, &run->topic, NULL), 0);
}

/* The rows as a model has them. */
static int keep_rows(void *ctx, uint64_t first, size_t n, const void *rows, struct drps_err *err)
{
    (void)err;
    memcpy((float *)ctx + first * DIM, rows, n * DIM * sizeof(float));
    return 0;
}

static void model_of(struct run *run, float out[DOCS + WORDS][DIM])
{
    struct drps_topic_visit v = {run->topic, keep_rows, out};
    assert_int_equal(drps_topic_visit_dictionary(&v, 0, DOCS + WORDS, run->rows, NULL), 0);
}

/* ---- The plain twin ---- */

struct twin {
    double a[DOCS][J], b[WORDS][J];
    int seen[DOCS];
    size_t begun;
};

/* b = c (a'a + rho I)^-1 by elimination. */
static void twin_dictionary(struct twin *t, const struct corpus *c, double rho)
{
    double m[J][J + WORDS] = {{0}};
    for (size_t i = 0; i < J; i++)
        m[i][i] = rho;
    for (size_t i = 0; i < DOCS; i++)
        for (size_t j = 0; t->seen[i] && j < J; j++) {
            for (size_t k = 0; k < J; k++)
                m[j][k] += t->a[i][j] * t->a[i][k];
            for (size_t k = 0; k < WORDS; k++)
                m[j][J + k] += t->a[i][j] * c->d[i][k];
        }
    for (size_t i = 0; i < J; i++)
        for (size_t r = 0; r < J; r++) {
            const double by = r == i ? 0 : m[r][i] / m[i][i];
            for (size_t k = 0; k < J + WORDS; k++)
                m[r][k] -= by * m[i][k];
        }
    for (size_t k = 0; k < WORDS; k++)
        for (size_t j = 0; j < J; j++)
            t->b[k][j] = m[j][J + k] / m[j][j];
}

static double twin_residual(const struct twin *t, const double *d, const double *a, size_t k)
{
    double rest = d[k];
    for (size_t j = 0; j < J; j++)
        rest -= t->b[k][j] * a[j];
    return rest;
}

/* One topic after the other, until nothing moves, from residuals alone. */
static void twin_code(const struct twin *t, const double *d, double l1, double *a)
{
    double moved = 1;
    for (size_t sweep = 0; sweep < 20000 && moved > 1e-14; sweep++) {
        moved = 0;
        for (size_t j = 0; j < J; j++) {
            double slope = l1, curvature = 0;
            for (size_t k = 0; k < WORDS; k++) {
                slope -= t->b[k][j] * twin_residual(t, d, a, k);
                curvature += t->b[k][j] * t->b[k][j];
            }
            if (curvature == 0) continue;
            const double next = fmax(0, a[j] - slope / curvature);
            moved = fmax(moved, fabs(next - a[j]));
            a[j] = next;
        }
    }
}

static double twin_objective(const struct twin *t, const struct corpus *c, double l1, double rho)
{
    double sum = 0;
    for (size_t i = 0; i < DOCS; i++)
        for (size_t k = 0; k < WORDS; k++)
            sum += pow(twin_residual(t, c->d[i], t->a[i], k), 2) / 2;
    for (size_t i = 0; i < DOCS * J; i++)
        sum += l1 * t->a[i / J][i % J];
    for (size_t i = 0; i < WORDS * J; i++)
        sum += rho / 2 * t->b[i / J][i % J] * t->b[i / J][i % J];
    return sum;
}

static double squares(const double *d)
{
    double sum = 0;
    for (size_t k = 0; k < WORDS; k++)
        sum += d[k] * d[k];
    return sum;
}

static double twin_epoch(struct twin *t, const struct corpus *c, double l1, double rho)
{
    for (size_t first = 0; first < DOCS; first += BATCH) {
        const size_t last = first + BATCH < DOCS ? first + BATCH : DOCS;
        twin_dictionary(t, c, rho);
        for (size_t i = first; i < last; i++) {
            if (!t->seen[i] && t->begun < J && squares(c->d[i]) > 0)
                t->a[i][t->begun++] = sqrt(squares(c->d[i]));
            else
                twin_code(t, c->d[i], l1, t->a[i]);
        }
        for (size_t i = first; i < last; i++)
            t->seen[i] = 1;
    }
    twin_dictionary(t, c, rho);
    return twin_objective(t, c, l1, rho);
}

/* ---- Whole runs ---- */

static double all_squares(const struct corpus *c)
{
    double sum = 0;
    for (size_t i = 0; i < DOCS; i++)
        sum += squares(c->d[i]);
    return sum;
}

/* Each epoch's objective is the twin's, and none is above the one before. Rows are floats, whose
 * rounding is some 1e-7 of what they stand for. */
static void check_against_twin(uint64_t seed, double l1, double rho)
{
    static struct corpus c;
    static struct run run;
    static struct twin twin;
    double before = INFINITY;
    make_corpus(&c, seed);
    begin(&run, &c, l1, rho, 1);
    memset(&twin, 0, sizeof(twin));
    const double near = 1e-6 * all_squares(&c);
    for (size_t e = 0; e < EPOCHS; e++) {
        epoch(&run);
        const double got = drps_topic_objective(run.topic), want = twin_epoch(&twin, &c, l1, rho);
        if (!(fabs(got - want) < near))
            fail_msg("seed %llu, l1 %g, rho %g, epoch %zu: %.9g instead of %.9g",
                     (unsigned long long)seed, l1, rho, e, got, want);
        if (!(got < before + near)) fail_msg("epoch %zu: %.9g after %.9g", e, got, before);
        before = got;
    }
    assert_true(before < all_squares(&c) / 2 * 0.9); /* something was learned */
    drps_topic_close(run.topic);
}

static void test_epochs_are_the_twins(void **state)
{
    (void)state;
    check_against_twin(1, 0.5, 1);
    check_against_twin(2, 0, 0.1);
    check_against_twin(3, 2, 0.5);
}

/* What a model has gives the objective, and codes and dictionary are at the optimum in turn. */
static void test_a_model_has_the_objective(void **state)
{
    static struct corpus c;
    static struct run run;
    static struct twin as;
    static float rows[DOCS + WORDS][DIM];
    (void)state;
    make_corpus(&c, 4);
    begin(&run, &c, 0.7, 0.5, 1);
    for (size_t e = 0; e < 5; e++)
        epoch(&run);
    model_of(&run, rows);
    for (size_t i = 0; i < DOCS * J; i++)
        as.a[i / J][i % J] = (double)rows[i / J][1 + i % J];
    for (size_t i = 0; i < WORDS * J; i++)
        as.b[i / J][i % J] = (double)rows[DOCS + i / J][1 + i % J];
    const double got = drps_topic_objective(run.topic), want = twin_objective(&as, &c, 0.7, 0.5);
    assert_true(fabs(got - want) < 1e-6 * all_squares(&c));
    for (size_t i = 0; i < DOCS; i++) {
        assert_true(fabs((double)rows[i][0] - squares(c.d[i])) < 1e-3);
        assert_int_equal(rows[i][0] == 0, i == EMPTY);
    }
    const double *gram = drps_topic_gram(run.topic);
    for (size_t i = 0; i < J; i++)
        for (size_t j = i; j < J; j++, gram++) {
            double sum = 0;
            for (size_t k = 0; k < WORDS; k++)
                sum += as.b[k][i] * as.b[k][j];
            assert_true(fabs(*gram - sum) < 1e-5);
        }
    drps_topic_close(run.topic);
}

static void test_members_do_not_matter(void **state)
{
    static struct corpus c;
    static struct run one, other;
    (void)state;
    make_corpus(&c, 5);
    for (unsigned members = 2; members < 12; members += 3) {
        begin(&one, &c, 0.5, 1, 1);
        begin(&other, &c, 0.5, 1, members);
        for (size_t e = 0; e < 3; e++) {
            epoch(&one);
            epoch(&other);
        }
        assert_memory_equal(one.rows, other.rows, sizeof(one.rows));
        const double a = drps_topic_objective(one.topic), b = drps_topic_objective(other.topic);
        assert_memory_equal(&a, &b, sizeof(a));
        drps_topic_close(one.topic);
        drps_topic_close(other.topic);
    }
}

/* Between any two batches, also while topics begin. */
static void test_a_run_goes_on(void **state)
{
    static struct corpus c;
    static struct run one, other;
    const struct drps_topic_options o = {.topics = J, .l1 = 0.5, .rho = 1, .members = 1};
    (void)state;
    make_corpus(&c, 6);
    begin(&one, &c, o.l1, o.rho, 1);
    begin(&other, &c, o.l1, o.rho, 1);
    for (size_t step = 0; step < 20; step++) {
        struct drps_topic *next;
        train(&one, step % 10 * 5, 2); /* topics begin in two steps */
        train(&other, step % 10 * 5, 2);
        assert_int_equal(drps_topic_open(&o, &next, NULL), 0);
        memcpy(drps_topic_state(next), drps_topic_state(other.topic),
               drps_topic_state_rows(J) * drps_topic_state_row_bytes(J));
        assert_int_equal(drps_topic_restore(next, "x", NULL), 0);
        drps_topic_close(other.topic);
        other.topic = next;
        assert_memory_equal(one.rows, other.rows, sizeof(one.rows));
    }
    const double a = drps_topic_objective(one.topic), b = drps_topic_objective(other.topic);
    assert_memory_equal(&a, &b, sizeof(a));
    drps_topic_close(one.topic);
    drps_topic_close(other.topic);
}

/* ---- Several ranks: server k of R has every R-th row, worker k every R-th document of a round
 * ----
 */

enum { RANKS_MOST = 3 };

/* What a step of the worker changes is added to `sums`. */
static void rank_step(struct run *rank, const struct run *store, size_t first, size_t samples,
                      size_t ranks, float sums[DOCS + WORDS][DIM])
{
    static struct batch x;
    memcpy(rank->rows, store->rows, sizeof(rank->rows));
    fill(&x, rank, first, samples, ranks, 1);
    const struct drps_topic_step step = {
        .batch = &x.b, .before = x.before, .after = x.after, .scores = x.scores};
    work(rank, &step);
    for (size_t i = 0; i < x.b.rows; i++)
        for (size_t j = 0; j < DIM; j++)
            sums[x.index[i]][j] += x.after[i * DIM + j];
}

static void server_step(struct run *rank, struct run *store, size_t k, size_t ranks,
                        float sums[DOCS + WORDS][DIM])
{
    uint32_t index[DOCS + WORDS];
    float changes[(DOCS + WORDS) * DIM];
    size_t n = 0;
    for (size_t row = DOCS + WORDS; row--;) { /* words in the order of batches */
        if (row % ranks != k) continue;
        index[n] = (uint32_t)row;
        memcpy(changes + n++ * DIM, sums[row], sizeof(sums[row]));
    }
    const struct drps_rows rows = {(char *)store->rows, sizeof(store->rows[0]), index, n};
    drps_topic_change_rows(rank->topic, &rows, n, changes);
}

static void all_reduce(struct run *rank, size_t ranks)
{
    const size_t n = drps_topic_changes_n(J);
    double sum[J * (J + 1) + 2] = {0};
    for (size_t k = 0; k < ranks; k++)
        for (size_t i = 0; i < n; i++)
            sum[i] += drps_topic_changes(rank[k].topic)[i];
    for (size_t k = 0; k < ranks; k++) {
        memcpy(drps_topic_changes(rank[k].topic), sum, sizeof(sum));
        drps_topic_apply(rank[k].topic);
    }
}

/* The rows are those of *store. */
static void ranks_epoch(struct run *rank, struct run *store, size_t ranks)
{
    static float sums[DOCS + WORDS][DIM];
    for (size_t first = 0; first < DOCS; first += BATCH) {
        const size_t all = DOCS - first < BATCH ? DOCS - first : BATCH;
        memset(sums, 0, sizeof(sums));
        for (size_t k = 0; k < ranks; k++)
            rank_step(&rank[k], store, first + k, (all + ranks - 1 - k) / ranks, ranks, sums);
        for (size_t k = 0; k < ranks; k++)
            server_step(&rank[k], store, k, ranks, sums);
        all_reduce(rank, ranks);
    }
}

static void begin_ranks(struct run *rank, const struct corpus *c, size_t ranks)
{
    for (size_t k = 0; k < ranks; k++) {
        const struct drps_topic_options o = {.topics = J,
                                             .l1 = 0.5,
                                             .rho = 1,
                                             .members = 2,
                                             .workers = (uint32_t)ranks,
                                             .worker = (uint32_t)k};
        begin(&rank[k], c, 0.5, 1, 2);
        drps_topic_close(rank[k].topic);
        assert_int_equal(drps_topic_open(&o, &rank[k].topic, NULL), 0);
    }
}

/* All ranks have the same sums, and of one rank rows and sums are those of a step without ranks. */
static void check_states(const struct run *rank, size_t ranks, const struct run *one)
{
    const size_t bytes = (2 * J * J + SUM_BEGUN) * sizeof(double);
    const double *first = drps_topic_state(rank[0].topic);
    for (size_t k = 1; k < ranks; k++)
        assert_memory_equal(drps_topic_state(rank[k].topic), first, bytes);
    if (ranks == 1) assert_memory_equal(drps_topic_state(one->topic), first, bytes);
}

/* A round is one step with the documents of all ranks' batches, taken in turn. */
static void test_ranks_are_one_with_larger_batches(void **state)
{
    static struct corpus c;
    static struct run one, store, rank[RANKS_MOST];
    (void)state;
    make_corpus(&c, 10);
    memset(c.d[EMPTY], 0, sizeof(c.d[EMPTY]));
    c.d[EMPTY][1] = 1; /* each worker has as many documents that begin a topic */
    for (size_t ranks = 1; ranks <= RANKS_MOST; ranks++) {
        double before = INFINITY;
        memset(&store, 0, sizeof(store));
        begin(&one, &c, 0.5, 1, 1);
        begin_ranks(rank, &c, ranks);
        const double near = 1e-6 * all_squares(&c);
        for (size_t e = 0; e < EPOCHS; e++) {
            epoch(&one);
            ranks_epoch(rank, &store, ranks);
            const double got = drps_topic_objective(rank[0].topic);
            const double want = drps_topic_objective(one.topic);
            if (!(fabs(got - want) < near) || !(got < before + near))
                fail_msg("%zu ranks, epoch %zu: %.9g after %.9g; one rank has %.9g", ranks, e, got,
                         before, want);
            before = got;
            check_states(rank, ranks, &one);
        }
        if (ranks == 1) assert_memory_equal(one.rows, store.rows, sizeof(one.rows));
        for (size_t i = 0; i < DOCS + WORDS; i++)
            for (size_t j = 0; j < DIM; j++)
                assert_true(fabsf(one.rows[i][j] - store.rows[i][j]) <
                            1e-4f * (1 + fabsf(one.rows[i][j])));
        for (size_t k = 0; k < ranks; k++)
            drps_topic_close(rank[k].topic);
        drps_topic_close(one.topic);
    }
}

/* Of topics the workers begin every R-th, as long as each has documents; one without has none. */
static void test_ranks_begin_topics_in_turn(void **state)
{
    static struct corpus c;
    static struct run store, rank[RANKS_MOST];
    (void)state;
    make_corpus(&c, 11);
    begin_ranks(rank, &c, RANKS_MOST);
    memset(&store, 0, sizeof(store));
    rank[2].topic->options.worker = RANKS_MOST; /* it has only rows */
    ranks_epoch(rank, &store, RANKS_MOST);
    const size_t began[] = {0, 1, 6}; /* by documents 0, 1 and 6; 3 has no words */
    const size_t topics[] = {0, 1, 3};
    for (size_t i = 0; i < 3; i++)
        for (size_t j = 0; j < J; j++) {
            const float code = store.rows[began[i]][1 + j];
            assert_true(j == topics[i] ? code > 0 : code == 0);
        }
    for (size_t k = 0; k < RANKS_MOST; k++)
        drps_topic_close(rank[k].topic);
}

static void test_damaged_states_are_refused(void **state)
{
    const struct drps_topic_options o = {.topics = J, .l1 = 0.5, .rho = 1, .members = 1};
    const struct {
        size_t at;
        double value;
    } bad[] = {
        {0, -1},
        {1, (double)NAN},
        {J * J, -1e-9},
        {J * J + 2, INFINITY},
        {2 * J * J + SUM_SQUARES, -1},
        {2 * J * J + SUM_CODES, (double)NAN},
        {2 * J * J + SUM_BEGUN, J + 1},
        {2 * J * J + SUM_BEGUN, -1},
    };
    struct drps_topic *t;
    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        assert_int_equal(drps_topic_open(&o, &t, NULL), 0);
        assert_int_equal(drps_topic_restore(t, "x", NULL), 0);
        drps_topic_state(t)[bad[i].at] = bad[i].value;
        assert_int_equal(drps_topic_restore(t, "x", NULL), DRPS_E_CORRUPT);
        drps_topic_close(t);
    }
    double gram[J * (J + 1) / 2] = {[0] = -1};
    assert_int_equal(drps_topic_open_scorer(&o, gram, "x", &t, NULL), DRPS_E_CORRUPT);
    assert_null(t);
}

/* Scoring changes nothing, and a model's scorer gives the same as the run that has made it. */
static void test_new_documents_are_coded(void **state)
{
    static struct corpus c, others;
    static struct run run, model;
    static struct twin twin;
    const struct drps_topic_options o = {.topics = J, .l1 = 0.5, .rho = 1, .members = 1};
    (void)state;
    make_corpus(&c, 7);
    make_corpus(&others, 8);
    begin(&run, &c, o.l1, o.rho, 1);
    memset(&twin, 0, sizeof(twin));
    for (size_t e = 0; e < 3; e++) {
        epoch(&run);
        (void)twin_epoch(&twin, &c, o.l1, o.rho);
    }
    const struct run before = run;
    const double objective = drps_topic_objective(run.topic);
    begin(&model, &others, o.l1, o.rho, 1);
    drps_topic_close(model.topic);
    assert_int_equal(
        drps_topic_open_scorer(&o, drps_topic_gram(run.topic), "x", &model.topic, NULL), 0);
    model_of(&run, model.rows);
    run.corpus = &others;
    for (size_t i = 0; i < DOCS; i++) {
        float code[J], of_model[J];
        double a[J] = {0};
        const double got = score(&run, i, code);
        twin_code(&twin, others.d[i], o.l1, a);
        for (size_t j = 0; j < J; j++)
            assert_true(fabs((double)code[j] - a[j]) < 1e-3);
        assert_true(fabs(score(&model, i, of_model) - got) < 1e-4 * (1 + got));
    }
    assert_memory_equal(before.rows, run.rows, sizeof(run.rows));
    assert_true(drps_topic_objective(run.topic) == objective);
    drps_topic_close(run.topic);
    drps_topic_close(model.topic);
}

/* A document whose square is no float is still a document's. */
static void test_small_and_large_values(void **state)
{
    static struct corpus c;
    static struct run run;
    (void)state;
    make_corpus(&c, 9);
    for (size_t k = 0; k < WORDS; k++)
        c.d[1][k] *= 1e-30;
    begin(&run, &c, 0, 1, 1);
    epoch(&run);
    epoch(&run);
    assert_true(run.rows[1][0] == FLT_MIN);
    assert_true(isfinite(drps_topic_objective(run.topic)));
    drps_topic_close(run.topic);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_inverse_is_one),
        cmocka_unit_test(test_codes_are_optimal),
        cmocka_unit_test(test_epochs_are_the_twins),
        cmocka_unit_test(test_a_model_has_the_objective),
        cmocka_unit_test(test_members_do_not_matter),
        cmocka_unit_test(test_a_run_goes_on),
        cmocka_unit_test(test_ranks_are_one_with_larger_batches),
        cmocka_unit_test(test_ranks_begin_topics_in_turn),
        cmocka_unit_test(test_damaged_states_are_refused),
        cmocka_unit_test(test_new_documents_are_coded),
        cmocka_unit_test(test_small_and_large_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
