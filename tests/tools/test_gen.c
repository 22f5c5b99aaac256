/* drps-gen: what the sets promise, measured on the lines, and the tool's files and exit codes. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "support/run_self.h"
#include "tools/gen/gen.h"
#include "tools/gen/tool.h"

#define RUN(r, ...) run_self((r), (const char *const[]){__VA_ARGS__, NULL}, NULL)

static const struct gen_options base = {
    .samples = 1000,
    .seed = 1,
    .rows = 100000,
    .zipf = 1.05,
    .fields = 39,
    .density = 0.0002,
    .nnz = 20,
    .users = 500,
    .items = 300,
    .factors = 4,
    .noise = 0.3,
};

/* ---- Tools of the tests ---- */

/* One line, parsed: the reals and ids after the label. */
struct line {
    double label;
    size_t n;
    uint64_t ids[256];
    double values[256];
};

struct set {
    const struct gen_kind *kind;
    struct gen *g;
    char *text;
};

static struct set set_open(const struct gen_kind *kind, const struct gen_options *o)
{
    struct drps_err err = DRPS_ERR_INIT;
    struct set s = {.kind = kind};
    if (kind->new (o, &s.g, &err) != 0) fail_msg("%s: %s", kind->name, err.text);
    s.text = malloc(kind->line_bytes(s.g) + 1);
    assert_non_null(s.text);
    return s;
}

static void set_close(struct set *s)
{
    s->kind->free(s->g);
    free(s->text);
}

/* The text of sample i, checked against the promised bound, label and count. */
static const char *set_line(struct set *s, uint64_t i, double *label, size_t *nnz)
{
    char *end = s->kind->line(s->g, i, s->text, label, nnz);
    assert_true((size_t)(end - s->text) <= s->kind->line_bytes(s->g));
    assert_int_equal(end[-1], '\n');
    *end = '\0';
    return s->text;
}

/* Parse a libsvm line strictly; fails the test where it is malformed. */
static void parse_libsvm(const char *text, struct line *l)
{
    char *p;
    l->n = 0;
    l->label = strtod(text, &p);
    while (*p == ' ') {
        assert_true(l->n < 256);
        l->ids[l->n] = strtoull(p + 1, &p, 10);
        assert_int_equal(*p, ':');
        l->values[l->n++] = strtod(p + 1, &p);
    }
    assert_string_equal(p, "\n");
}

static void set_parse(struct set *s, uint64_t i, struct line *l)
{
    double label;
    size_t nnz;
    parse_libsvm(set_line(s, i, &label, &nnz), l);
    assert_true(l->label == label);
    assert_int_equal(l->n, nnz);
}

static int compare_counts(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? 1 : x > y ? -1 : 0; /* descending */
}

/* ---- Draws ---- */

/* Chi-squared of n draws against Zipf's law on `cells` places, over those that expect at least 5.
 */
static double zipf_chi_squared(const struct gen_zipf *z, size_t draws, uint64_t seed,
                               size_t *freedom)
{
    size_t cells = (size_t)z->n;
    uint32_t *seen = calloc(cells, sizeof(*seen));
    double total = 0, chi = 0, rest_expected = 0, rest_seen = 0;
    assert_non_null(seen);
    for (size_t i = 0; i < draws; i++) {
        uint64_t k = gen_zipf_draw(z, drps_rng_at(seed, i));
        assert_true(k < z->n);
        seen[k]++;
    }
    for (size_t k = 0; k < cells; k++)
        total += pow((double)k + 1, -z->s);
    *freedom = 0;
    for (size_t k = 0; k < cells; k++) {
        double expected = (double)draws * pow((double)k + 1, -z->s) / total;
        if (expected < 5) {
            rest_expected += expected;
            rest_seen += seen[k];
            continue;
        }
        chi += (seen[k] - expected) * (seen[k] - expected) / expected;
        ++*freedom;
    }
    if (rest_expected > 5) {
        chi += (rest_seen - rest_expected) * (rest_seen - rest_expected) / rest_expected;
        ++*freedom;
    }
    --*freedom;
    free(seen);
    return chi;
}

static void test_gen_zipf_follows_its_law(void **state)
{
    static const struct {
        uint64_t n;
        double s;
        int table;
    } cases[] = {{3, 1.05, 1},   {1000, 1.05, 1}, {1000, 1.05, 0}, {1000, 1, 0},     {1000, 1, 1},
                 {1000, 0.5, 0}, {1000, 2.5, 0},  {1000, 0, 0},    {100000, 1.1, 0}, {2, 1.05, 0}};
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct gen_zipf z;
        size_t freedom;
        assert_int_equal(gen_zipf_init(&z, cases[i].n, cases[i].s, cases[i].table, NULL), 0);
        double chi = zipf_chi_squared(&z, 400000, 17 + i, &freedom);
        gen_zipf_destroy(&z);
        /* mean `freedom`, variance twice that; the seeds are fixed, so 5 deviations never flake */
        double limit = (double)freedom + 5 * sqrt(2 * (double)freedom) + 5;
        if (chi > limit)
            fail_msg("n %ju, s %g, table %d: chi-squared %g, expected at most %g",
                     (uintmax_t)cases[i].n, cases[i].s, cases[i].table, chi, limit);
    }
}

static void test_gen_zipf_takes_the_largest_ranges(void **state)
{
    struct gen_zipf z;
    (void)state;
    for (double s = 0; s <= 10; s += 2.5) {
        assert_int_equal(gen_zipf_init(&z, UINT64_C(1) << 48, s, 1, NULL), 0);
        for (uint64_t i = 0; i < 10000; i++)
            assert_true(gen_zipf_draw(&z, drps_rng_at(3, i)) < z.n);
        assert_true(gen_zipf_draw(&z, 0) < z.n);
        assert_true(gen_zipf_draw(&z, UINT64_MAX) < z.n);
        gen_zipf_destroy(&z);
    }
}

static void test_gen_shuffle_is_a_permutation(void **state)
{
    static const uint64_t sizes[] = {1, 2, 3, 7, 64, 1000, 65536, 65537};
    (void)state;
    for (size_t c = 0; c < sizeof(sizes) / sizeof(*sizes); c++)
        for (uint64_t seed = 0; seed < 3; seed++) {
            struct gen_shuffle d;
            gen_shuffle_init(&d, sizes[c], seed);
            unsigned char *seen = calloc(sizes[c], 1);
            assert_non_null(seen);
            for (uint64_t i = 0; i < sizes[c]; i++) {
                uint64_t at = gen_shuffle_at(&d, i);
                assert_true(at < sizes[c]);
                assert_false(seen[at]);
                seen[at] = 1;
            }
            free(seen);
        }
}

static void test_gen_shuffle_keeps_no_neighbours(void **state)
{
    enum { N = 100000 };
    struct gen_shuffle d;
    double near = 0;
    (void)state;
    gen_shuffle_init(&d, N, 1);
    for (uint64_t i = 0; i + 1 < N; i++)
        near += fabs((double)gen_shuffle_at(&d, i) - (double)gen_shuffle_at(&d, i + 1)) < N / 100;
    assert_in_range((uintmax_t)near, N / 100, 3 * N / 100); /* by chance: 2 % */
}

static void test_gen_sort_sorts(void **state)
{
    static const size_t sizes[] = {0, 1, 2, 39, 64, 65, 1000};
    static const uint64_t limits[] = {255, 256, 70000, UINT64_C(1) << 40, UINT64_C(1) << 48};
    uint64_t ids[1000], spare[1000];
    (void)state;
    for (size_t s = 0; s < sizeof(sizes) / sizeof(*sizes); s++)
        for (size_t l = 0; l < sizeof(limits) / sizeof(*limits); l++) {
            uint64_t sum = 0;
            for (size_t i = 0; i < sizes[s]; i++)
                sum += ids[i] = drps_rng_at(s, i) % (limits[l] + 1);
            gen_sort(ids, spare, sizes[s], limits[l]);
            for (size_t i = 0; i < sizes[s]; i++) {
                sum -= ids[i];
                assert_true(i == 0 || ids[i - 1] <= ids[i]);
            }
            assert_true(sum == 0);
        }
}

static void test_gen_put_count_writes_any_number(void **state)
{
    (void)state;
    uint64_t v = 1;
    for (int bits = 0; bits < 64; bits++, v = v * 2 + 1)
        for (int less = 0; less < 2; less++) {
            char expected[32], found[32];
            (void)snprintf(expected, sizeof(expected), "%ju", (uintmax_t)(v - (uint64_t)less));
            *gen_put_count(found, v - (uint64_t)less) = '\0';
            assert_string_equal(found, expected);
        }
    for (v = 1; v < UINT64_MAX / 10; v *= 10)
        for (int less = 0; less < 2; less++) {
            char expected[32], found[32];
            (void)snprintf(expected, sizeof(expected), "%ju", (uintmax_t)(v - (uint64_t)less));
            *gen_put_count(found, v - (uint64_t)less) = '\0';
            assert_string_equal(found, expected);
        }
}

/* ---- The kinds ---- */

static void test_gen_seed_decides_every_line(void **state)
{
    static const struct gen_kind *const kinds[] = {&gen_ctr, &gen_classification, &gen_graph,
                                                   &gen_matrix};
    (void)state;
    for (size_t k = 0; k < sizeof(kinds) / sizeof(*kinds); k++) {
        struct gen_options other = base;
        other.seed = 2;
        struct set a = set_open(kinds[k], &base), b = set_open(kinds[k], &base),
                   c = set_open(kinds[k], &other);
        double label;
        size_t nnz, same = 0;
        for (uint64_t i = 0; i < 300; i++) { /* b goes backwards: a line needs no line before it */
            (void)set_line(&b, 299 - i, &label, &nnz);
            (void)set_line(&a, 299 - i, &label, &nnz);
            assert_string_equal(a.text, b.text);
            same += !strcmp(a.text, set_line(&c, 299 - i, &label, &nnz));
        }
        assert_true(same < 3);
        set_close(&a);
        set_close(&b);
        set_close(&c);
    }
}

static void test_gen_ctr_lines_have_every_field_once(void **state)
{
    static const uint64_t rows[] = {117, 118, 5000, 100000};
    (void)state;
    for (size_t c = 0; c < sizeof(rows) / sizeof(*rows); c++) {
        struct gen_options o = base;
        struct line l;
        o.rows = rows[c];
        struct set s = set_open(&gen_ctr, &o);
        uint64_t seen_max = 0, seen_min = UINT64_MAX;
        for (uint64_t i = 0; i < 2000; i++) {
            set_parse(&s, i, &l);
            assert_int_equal(l.n, 39);
            assert_true(l.label == 0 || l.label == 1);
            for (size_t f = 0; f < l.n; f++) {
                assert_true(l.values[f] == 1);
                assert_true(f == 0 || l.ids[f - 1] < l.ids[f]); /* fields share no ids */
            }
            if (l.ids[0] < seen_min) seen_min = l.ids[0];
            if (l.ids[38] > seen_max) seen_max = l.ids[38];
        }
        assert_true(seen_min >= 1 && seen_min <= 1 + o.rows / 50);
        assert_true(seen_max <= o.rows && seen_max >= o.rows - o.rows / 50);
        set_close(&s);
    }
}

static void test_gen_ctr_is_skewed_and_reaches_the_tail(void **state)
{
    enum { SAMPLES = 20000 };
    struct set s = set_open(&gen_ctr, &base);
    uint32_t *counts = calloc(base.rows + 1, sizeof(*counts));
    struct line l;
    size_t distinct = 0, top = 0;
    (void)state;
    assert_non_null(counts);
    for (uint64_t i = 0; i < SAMPLES; i++) {
        set_parse(&s, i, &l);
        for (size_t f = 0; f < l.n; f++)
            counts[l.ids[f]]++;
    }
    qsort(counts, base.rows + 1, sizeof(*counts), compare_counts);
    for (size_t k = 0; k <= base.rows; k++) {
        distinct += counts[k] > 0;
        if (k < base.rows / 100) top += counts[k];
    }
    /* 1 % of the rows take most draws, yet a good part of the tail is touched */
    assert_in_range(top, 39 * SAMPLES * 7 / 10, 39 * SAMPLES * 95 / 100);
    assert_in_range(distinct, base.rows / 5, base.rows * 4 / 5);
    free(counts);
    set_close(&s);
}

static void test_gen_ctr_labels_a_quarter(void **state)
{
    enum { SAMPLES = 20000 };
    (void)state;
    for (uint64_t rank = 0; rank <= 8; rank += 4)
        for (uint64_t seed = 1; seed <= 3; seed++) {
            struct gen_options o = base;
            double label, clicks = 0;
            size_t nnz;
            o.interactions = rank;
            o.seed = seed;
            struct set s = set_open(&gen_ctr, &o);
            for (uint64_t i = 0; i < SAMPLES; i++) {
                (void)set_line(&s, i, &label, &nnz);
                clicks += label;
            }
            set_close(&s);
            if (fabs(clicks / SAMPLES - 0.25) > 0.02)
                fail_msg("rank %ju, seed %ju: %g of the samples are clicks", (uintmax_t)rank,
                         (uintmax_t)seed, clicks / SAMPLES);
        }
}

static void test_gen_ctr_libffm_names_the_fields(void **state)
{
    struct gen_options o = base;
    double label;
    size_t nnz;
    (void)state;
    o.format = GEN_LIBFFM;
    o.fields = 3;
    o.rows = 50;
    struct set s = set_open(&gen_ctr, &o);
    for (uint64_t i = 0; i < 100; i++) {
        unsigned click, ids[3];
        int end = 0;
        const char *text = set_line(&s, i, &label, &nnz);
        assert_int_equal(
            sscanf(text, "%u 0:%u:1 1:%u:1 2:%u:1\n%n", &click, &ids[0], &ids[1], &ids[2], &end),
            4);
        assert_int_equal((size_t)end, strlen(text));
    }
    set_close(&s);
}

/* Labels can be learnt: logistic regression by SGD on the same kind of lines beats the share of the
 * larger class. */
/* ---- ctr by day ---- */

enum { DAY = 400, DAY_ROWS = 200 };

/* Marks the ids that a day's samples have. */
static void ids_of_day(struct set *s, uint64_t day, unsigned char *seen, size_t most)
{
    struct line l;
    memset(seen, 0, most);
    for (uint64_t i = day * DAY; i < (day + 1) * DAY; i++) {
        set_parse(s, i, &l);
        for (size_t k = 0; k < l.n; k++) {
            assert_true(l.ids[k] && l.ids[k] < most);
            seen[l.ids[k]] = 1;
        }
    }
}

/* The share of the first set's ids that the second one does not have. */
static double share_gone(const unsigned char *a, const unsigned char *b, size_t most)
{
    size_t all = 0, gone = 0;
    for (size_t i = 0; i < most; i++) {
        all += a[i];
        gone += a[i] && !b[i];
    }
    return (double)gone / (double)all;
}

static void test_gen_ctr_features_come_and_go(void **state)
{
    enum { MOST = DAY_ROWS * 12 };
    static unsigned char first[MOST], next[MOST], last[MOST];
    struct gen_options o = base;
    (void)state;
    o.rows = DAY_ROWS;
    o.fields = 4;
    o.zipf = 0; /* all of a day's features are in its samples, nearly */
    o.samples = 10 * DAY;
    o.day_samples = DAY;
    o.drift = 0.2;
    struct set s = set_open(&gen_ctr, &o);
    ids_of_day(&s, 0, first, MOST);
    ids_of_day(&s, 1, next, MOST);
    ids_of_day(&s, 6, last, MOST);
    set_close(&s);
    const double a_day = share_gone(first, next, MOST);
    if (a_day < 0.1 || a_day > 0.45) fail_msg("%g of the features are gone after a day", a_day);
    assert_true(share_gone(first, last, MOST) > 0.99); /* a life is five days */
}

/* Without drift days are nothing: the lines are those of one day. */
static void test_gen_ctr_without_drift_has_one_day(void **state)
{
    struct gen_options o = base;
    double label;
    size_t nnz;
    (void)state;
    struct set plain = set_open(&gen_ctr, &o);
    o.day_samples = 10;
    struct set days = set_open(&gen_ctr, &o);
    for (uint64_t i = 0; i < 200; i++)
        assert_string_equal(set_line(&plain, i, &label, &nnz), set_line(&days, i, &label, &nnz));
    set_close(&plain);
    set_close(&days);
}

static void test_gen_classification_labels_follow_the_features(void **state)
{
    enum { TRAIN = 20000, TEST = 4000, EPOCHS = 3, ROWS = 2000 };
    struct gen_options o = base;
    static float w[ROWS + 1];
    struct line l;
    size_t right = 0;
    (void)state;
    o.rows = ROWS;
    struct set s = set_open(&gen_classification, &o);
    memset(w, 0, sizeof(w));
    for (uint64_t step = 0; step < EPOCHS * TRAIN + TEST; step++) {
        int test = step >= EPOCHS * TRAIN;
        set_parse(&s, test ? step : step % TRAIN, &l);
        double z = 0, y = l.label > 0;
        for (size_t k = 0; k < l.n; k++)
            z += w[l.ids[k]] * l.values[k];
        right += test && (z > 0) == (y > 0);
        double g = 1 / (1 + exp(-z)) - y;
        for (size_t k = 0; k < l.n && !test; k++)
            w[l.ids[k]] -= (float)(0.1 * g * l.values[k]);
    }
    assert_true(right > TEST * 7 / 10);
    set_close(&s);
}

static void test_gen_classification_lines_vary_and_are_half_positive(void **state)
{
    enum { SAMPLES = 20000 };
    struct set s = set_open(&gen_classification, &base);
    struct line l;
    size_t nnz = 0, positive = 0, most = 0;
    double values = 0;
    (void)state;
    for (uint64_t i = 0; i < SAMPLES; i++) {
        set_parse(&s, i, &l);
        assert_true(l.label == 1 || l.label == -1);
        assert_true(l.n >= 1 && l.n <= 2 * base.nnz - 1);
        for (size_t k = 0; k < l.n; k++) {
            assert_true(l.ids[k] >= 1 && l.ids[k] <= base.rows);
            assert_true(k == 0 || l.ids[k - 1] < l.ids[k]);
            assert_true(l.values[k] > 0 && l.values[k] <= 1);
            values += l.values[k];
        }
        nnz += l.n;
        positive += l.label > 0;
        if (l.n > most) most = l.n;
    }
    assert_int_equal(most, 2 * base.nnz - 1);
    assert_in_range(nnz, SAMPLES * 19, SAMPLES * 21); /* --nnz is the mean: 20 */
    assert_in_range(positive, SAMPLES * 47 / 100, SAMPLES * 53 / 100);
    assert_true(fabs(values / (double)nnz - 0.5) < 0.01);
    set_close(&s);
}

static void test_gen_classification_ends_on_steep_laws(void **state)
{
    struct gen_options o = base;
    double label;
    size_t nnz;
    (void)state;
    o.zipf = 10; /* hardly more than one id ever comes */
    struct set s = set_open(&gen_classification, &o);
    for (uint64_t i = 0; i < 100; i++) {
        (void)set_line(&s, i, &label, &nnz);
        assert_in_range(nnz, 1, 10);
    }
    set_close(&s);
}

static void test_gen_matrix_has_the_stated_moments(void **state)
{
    enum { SAMPLES = 200000 };
    struct set s = set_open(&gen_matrix, &base);
    double sum = 0, squares = 0, users = 0, items = 0, label;
    size_t nnz;
    (void)state;
    for (uint64_t i = 0; i < SAMPLES; i++) {
        uintmax_t user, item;
        double rating;
        int end = 0;
        const char *text = set_line(&s, i, &label, &nnz);
        assert_int_equal(sscanf(text, "%ju\t%ju\t%lf\n%n", &user, &item, &rating, &end), 3);
        assert_int_equal((size_t)end, strlen(text));
        assert_true(fabs(rating - label) < 1e-9);
        assert_true(user >= 1 && user <= base.users && item >= 1 && item <= base.items);
        sum += rating;
        squares += rating * rating;
        users += (double)user;
        items += (double)item;
    }
    /* 0.4^2 + 0.4^2 of the biases, 0.7^2 of the factors, 0.3^2 of the noise: 0.95^2. The biases of
     * 300 items have a standard error of 0.4 / sqrt(300) = 0.023. */
    double mean = sum / SAMPLES, deviation = sqrt(squares / SAMPLES - mean * mean);
    assert_true(fabs(mean - 3.5) < 0.1);
    assert_true(fabs(deviation - 0.95) < 0.06);
    assert_true(fabs(users / SAMPLES / (double)base.users - 0.5) < 0.01);
    assert_true(fabs(items / SAMPLES / (double)base.items - 0.5) < 0.01);
    set_close(&s);
}

/* The same pair has the same rating but for the noise, so --noise 0 repeats it exactly. */
static void test_gen_matrix_ratings_belong_to_pairs(void **state)
{
    struct gen_options o = base;
    double seen[4][5], label;
    size_t nnz;
    (void)state;
    o.users = 4;
    o.items = 5;
    o.noise = 0;
    memset(seen, 0, sizeof(seen));
    struct set s = set_open(&gen_matrix, &o);
    for (uint64_t i = 0; i < 500; i++) {
        unsigned user, item;
        assert_int_equal(sscanf(set_line(&s, i, &label, &nnz), "%u %u", &user, &item), 2);
        double *at = &seen[user - 1][item - 1];
        assert_true(*at == 0 || *at == label);
        *at = label;
    }
    set_close(&s);
}

/* Each sample has each feature with the same probability: the number of edges, the first and the
 * last feature, and the spread of the samples' degrees, to within five standard deviations. */
static void test_gen_graph_edges_are_independent(void **state)
{
    static const struct {
        uint64_t rows;
        double density;
    } cases[] = {{5000, 0.01}, {40, 0.5}, {100000, 0.0003}, {7, 1}};
    enum { SAMPLES = 4000 };
    (void)state;
    for (size_t c = 0; c < sizeof(cases) / sizeof(*cases); c++) {
        struct gen_options o = base;
        struct line l;
        o.rows = cases[c].rows;
        o.density = cases[c].density;
        struct set s = set_open(&gen_graph, &o);
        const double p = o.density, mean = p * (double)o.rows;
        double edges = 0, squares = 0, first = 0, last = 0, positive = 0;
        for (uint64_t i = 0; i < SAMPLES; i++) {
            set_parse(&s, i, &l);
            for (size_t k = 0; k < l.n; k++) {
                assert_true(l.ids[k] >= 1 && l.ids[k] <= o.rows && l.values[k] == 1);
                assert_true(!k || l.ids[k - 1] < l.ids[k]);
                first += l.ids[k] == 1;
                last += l.ids[k] == o.rows;
            }
            edges += (double)l.n;
            squares += ((double)l.n - mean) * ((double)l.n - mean);
            positive += l.label > 0;
        }
        const double variance = mean * (1 - p);
        assert_true(fabs(edges - SAMPLES * mean) <= 5 * sqrt(SAMPLES * variance));
        assert_true(fabs(squares / SAMPLES - variance) <= 0.12 * variance);
        assert_true(fabs(first - SAMPLES * p) <= 5 * sqrt(SAMPLES * p));
        assert_true(fabs(last - SAMPLES * p) <= 5 * sqrt(SAMPLES * p));
        assert_true(positive > SAMPLES * 0.4 && positive < SAMPLES * 0.6);
        set_close(&s);
    }
}

static void test_gen_refuses_too_few_rows(void **state)
{
    struct gen_options o = base;
    struct drps_err err = DRPS_ERR_INIT;
    struct gen *g;
    (void)state;
    o.rows = 3 * o.fields - 1;
    assert_int_equal(gen_ctr.new(&o, &g, &err), DRPS_E_CONFIG);
    assert_non_null(strstr(err.text, "39 fields need at least 117"));
    assert_null(g);
    o.rows = 2 * o.nnz - 2;
    assert_int_equal(gen_classification.new(&o, &g, NULL), DRPS_E_CONFIG);
    assert_null(g);
    o.rows = UINT64_C(1) << 40;
    o.density = 0.1;
    assert_int_equal(gen_graph.new(&o, &g, &err), DRPS_E_CONFIG);
    assert_null(g);
}

/* ---- The tool ---- */

static char folder[512];

static const char *path(const char *name)
{
    static char paths[4][600];
    static unsigned next;
    char *p = paths[next++ % 4];
    (void)snprintf(p, sizeof(paths[0]), "%s/%s", folder, name);
    return p;
}

static int make_folder(void **state)
{
    const char *root = getenv("TMPDIR");
    (void)state;
    (void)snprintf(folder, sizeof(folder), "%s/drps_test_gen.XXXXXX", root ? root : "/tmp");
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
    static const char *const names[] = {"train", "test", "broken"};
    (void)state;
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        (void)unlink(path(names[i]));
    return rmdir(folder);
}

static size_t read_file(const char *name, char *text, size_t cap)
{
    FILE *f = fopen(path(name), "r");
    assert_non_null(f);
    size_t n = fread(text, 1, cap - 1, f);
    text[n] = '\0';
    assert_int_equal(fclose(f), 0);
    return n;
}

static void test_gen_test_samples_are_the_last(void **state)
{
    struct run_self whole, r;
    char both[1 << 16];
    (void)state;
    RUN(&whole, "ctr", "--samples", "50", "--rows", "1K", "-q");
    assert_int_equal(whole.code, 0);
    assert_string_equal(whole.err, "");
    RUN(&r, "ctr", "--samples", "50", "--rows", "1K", "-q", "-o", path("train"), "--test-samples",
        "20", "--test-output", path("test"), "--json");
    assert_int_equal(r.code, 0);
    assert_non_null(strstr(r.out, "\"test_samples\": 20"));
    size_t n = read_file("train", both, sizeof(both));
    size_t lines = 0;
    for (size_t i = 0; i < n; i++)
        lines += both[i] == '\n';
    assert_int_equal(lines, 30);
    (void)read_file("test", both + n, sizeof(both) - n);
    assert_string_equal(both, whole.out);
}

static void test_gen_write_failures_exit_with_1(void **state)
{
    struct run_self r;
    (void)state;
    if (access("/dev/full", W_OK) == 0) {
        run_self(&r, (const char *const[]){"matrix", "--ratings", "10", NULL}, "/dev/full");
        assert_int_equal(r.code, 1);
        assert_non_null(
            strstr(r.err, "cannot write standard output at byte 0: No space left on device"));
    }
    RUN(&r, "matrix", "-o", "/nonexistent/file");
    assert_int_equal(r.code, 1);
    assert_non_null(strstr(r.err, "cannot write /nonexistent/file: No such file or directory"));
}

/* A set that could not be finished leaves no file that looks like one. */
static void test_gen_failure_removes_the_file(void **state)
{
    struct run_self r;
    struct stat st;
    (void)state;
    RUN(&r, "matrix", "--ratings", "10", "--test-samples", "5", "-o", path("broken"),
        "--test-output", "/nonexistent/file");
    assert_int_equal(r.code, 1);
    assert_int_equal(stat(path("broken"), &st), -1);
}

/* Nobody loses a file to a name typed twice; pipes and devices have nothing to lose. */
static void test_gen_replaces_files_only_with_force(void **state)
{
    struct run_self r;
    char before[1 << 12], after[1 << 12];
    (void)state;
    RUN(&r, "matrix", "--ratings", "10", "-o", path("train"), "--force", "-q");
    assert_int_equal(r.code, 0);
    (void)read_file("train", before, sizeof(before));
    RUN(&r, "matrix", "--ratings", "20", "-o", path("train"), "-q");
    assert_int_equal(r.code, 1);
    assert_non_null(
        strstr(r.err, "train exists already: choose another name, or pass --force to replace it"));
    (void)read_file("train", after, sizeof(after));
    assert_string_equal(before, after);
    RUN(&r, "matrix", "--ratings", "20", "-o", path("fresh"), "--test-samples", "5",
        "--test-output", path("train"), "-q");
    assert_int_equal(r.code, 1);
    assert_int_equal(access(path("fresh"), F_OK), -1);
    (void)read_file("train", after, sizeof(after));
    assert_string_equal(before, after);
    RUN(&r, "matrix", "--ratings", "20", "-o", "/dev/null", "-q");
    assert_int_equal(r.code, 0);
}

static void test_gen_wrong_usage_exits_with_2(void **state)
{
    static const struct {
        const char *args[8], *says;
    } cases[] = {
        {{NULL}, "say which data set"},
        {{"vectors"}, "'vectors' is not one of: ctr, classification, graph, matrix"},
        {{"ctr", "matrix"}, "one data set at a time"},
        {{"matrix", "--rank", "5"},
         "--rank: a rank is a process of several, in drps-train; say --factors 5"},
        {{"ctr", "--nnz", "5"}, "--nnz does not apply to ctr"},
        {{"matrix", "--rows", "5"}, "--rows does not apply to matrix"},
        {{"ctr", "--samples", "0"}, "--samples: '0' is out of range"},
        {{"ctr", "--fields", "10001"}, "--fields: '10001' is out of range"},
        {{"ctr", "--rows", "100"}, "39 fields need at least 117"},
        {{"ctr", "--zipf", "-1"}, "--zipf: '-1' is out of range: from 0 to 10"},
        {{"graph", "--zipf", "1"}, "--zipf does not apply to graph"},
        {{"graph", "--density", "0"}, "gives samples no features"},
        {{"graph", "--rows", "1G", "--density", "1"}, "at most 1000000 can be made"},
        {{"ctr", "--drift", "0.1"}, "--drift needs --day-samples"},
        {{"ctr", "--drift", "2", "--day-samples", "10"}, "--drift"},
        {{"ctr", "--samples", "20001", "--day-samples", "2"}, "more than 10000 days"},
        {{"matrix", "--day-samples", "5"}, "--day-samples does not apply to matrix"},
        {{"ctr", "--json"}, "--json writes to standard output"},
        {{"ctr", "--test-samples", "5"}, "--test-samples needs --test-output"},
        {{"ctr", "--test-output", "x"}, "--test-output needs --test-samples"},
        {{"ctr", "--samples", "5", "--test-samples", "6", "--test-output", "x"},
         "more than the 5 samples"},
        {{"ctr", "-o", "x", "--test-samples", "6", "--test-output", "x"}, "are the same file"},
    };
    struct run_self r;
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        run_self(&r, cases[i].args, NULL);
        if (r.code != 2 || !strstr(r.err, cases[i].says))
            fail_msg("expected 2 and \"%s\", found %d and: %s", cases[i].says, r.code, r.err);
        assert_string_equal(r.out, "");
    }
}

int main(int argc, char **argv)
{
    if (argc > 1 && !strcmp(argv[1], RUN_SELF_TOOL)) {
        argv[1] = argv[0];
        return gen_tool_main(argc - 1, argv + 1);
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gen_zipf_follows_its_law),
        cmocka_unit_test(test_gen_zipf_takes_the_largest_ranges),
        cmocka_unit_test(test_gen_shuffle_is_a_permutation),
        cmocka_unit_test(test_gen_shuffle_keeps_no_neighbours),
        cmocka_unit_test(test_gen_sort_sorts),
        cmocka_unit_test(test_gen_put_count_writes_any_number),
        cmocka_unit_test(test_gen_seed_decides_every_line),
        cmocka_unit_test(test_gen_ctr_lines_have_every_field_once),
        cmocka_unit_test(test_gen_ctr_is_skewed_and_reaches_the_tail),
        cmocka_unit_test(test_gen_ctr_labels_a_quarter),
        cmocka_unit_test(test_gen_ctr_libffm_names_the_fields),
        cmocka_unit_test(test_gen_ctr_features_come_and_go),
        cmocka_unit_test(test_gen_ctr_without_drift_has_one_day),
        cmocka_unit_test(test_gen_classification_labels_follow_the_features),
        cmocka_unit_test(test_gen_classification_lines_vary_and_are_half_positive),
        cmocka_unit_test(test_gen_classification_ends_on_steep_laws),
        cmocka_unit_test(test_gen_graph_edges_are_independent),
        cmocka_unit_test(test_gen_matrix_has_the_stated_moments),
        cmocka_unit_test(test_gen_matrix_ratings_belong_to_pairs),
        cmocka_unit_test(test_gen_refuses_too_few_rows),
        cmocka_unit_test(test_gen_test_samples_are_the_last),
        cmocka_unit_test(test_gen_write_failures_exit_with_1),
        cmocka_unit_test(test_gen_failure_removes_the_file),
        cmocka_unit_test(test_gen_replaces_files_only_with_force),
        cmocka_unit_test(test_gen_wrong_usage_exits_with_2),
    };
    return cmocka_run_group_tests_name("gen", tests, make_folder, remove_folder);
}
