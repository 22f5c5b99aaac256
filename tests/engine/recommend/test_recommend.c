/* Recommendations of models written by hand, beside those of a loop over all pairs: whatever the
 * memory, the threads, the engine and the product. Names, ratings, and what users do wrong. */
#include <errno.h>
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "engine/recommend/drps_recommend.h"
#include "storage/kv/drps_kv.h"
#include "support/ratings_model.h"

enum { SMALL_MEMORY = 40 << 20 };

/* ---- The loop over all pairs ---- */

struct pair {
    double score;
    uint32_t row;
    size_t item;
};

static int by_rank(const void *a, const void *b)
{
    const struct pair *x = a, *y = b;
    if (x->score != y->score) return x->score > y->score ? -1 : 1;
    return x->row < y->row ? -1 : x->row > y->row;
}

/* Which items count for a user or an item; NULL: all. */
typedef int (*allowed)(size_t query, size_t item);

/* Parameters are multiples of 1 / 8: sums are exact, in whatever order. */
static double score_of(const struct ratings_model *m, size_t user, size_t item)
{
    const float *u = m->params + m->user[user] * m->d, *v = m->params + m->item[item] * m->d;
    double sum = (double)m->params[0] + (double)u[0] + (double)v[0];
    for (size_t k = 1; k < m->d; k++)
        sum += (double)u[k] * (double)v[k];
    return sum;
}

/* The text has room for twice as much whenever it grows to a power of two: sanitizers copy it each
 * time. */
static void append(char **text, size_t *n, const char *line)
{
    const size_t more = strlen(line);
    size_t room = 1;
    while (room < *n + more + 1)
        room *= 2;
    if (*n + 1 <= room / 2 || *n == 0) {
        *text = realloc(*text, room);
        assert_non_null(*text);
    }
    memcpy(*text + *n, line, more + 1);
    *n += more;
}

/* The lines that are due: users in the order of rows. */
static char *expected(const struct ratings_model *m, size_t most, allowed is_allowed)
{
    struct pair *pairs = calloc(m->items, sizeof(*pairs));
    char *text = calloc(1, 1), line[160];
    size_t n = 0;
    for (uint32_t row = 1; row < m->rows; row++) {
        size_t user = 0, left = 0;
        while (user < m->users && m->user[user] != row)
            user++;
        if (user == m->users) continue;
        for (size_t i = 0; i < m->items; i++)
            if (!is_allowed || is_allowed(user, i))
                pairs[left++] = (struct pair){score_of(m, user, i), m->item[i], i};
        qsort(pairs, left, sizeof(*pairs), by_rank);
        for (size_t i = 0; i < left && i < most; i++) {
            (void)snprintf(line, sizeof(line), "u%zu\t%zu\ti%zu\t%.9g\n", user, i + 1,
                           pairs[i].item, (double)(float)pairs[i].score);
            append(&text, &n, line);
        }
    }
    free(pairs);
    return text;
}

/* ---- Running ---- */

static struct drps_recommend_result run(struct scratch *s, struct drps_recommend_options o)
{
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_recommend_result r;
    const char *output = scratch_path(s, "out");
    if (!o.model) o.model = scratch_path(s, "model");
    o.output = output;
    o.replace = 1;
    if (!o.fold_in) o.fold_l2 = -1;
    if (drps_recommend_run(drps_io_os(), &o, &r, &err) < 0) fail_msg("%s", err.text);
    assert_false(path_exists(scratch_path(s, "out.partial")));
    return r;
}

static void fails(struct scratch *s, struct drps_recommend_options o, int rc, const char *text)
{
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_recommend_result r;
    if (!o.model) o.model = scratch_path(s, "model");
    if (!o.output) o.output = scratch_path(s, "none");
    const int got = drps_recommend_run(drps_io_os(), &o, &r, &err);
    if (got != rc || !strstr(err.text, text))
        fail_msg("%d with '%s' instead of %d with '%s'", got, err.text, rc, text);
    assert_false(path_exists(scratch_path(s, "none")));
    assert_false(path_exists(scratch_path(s, "none.partial")));
}

static void check_output(struct scratch *s, const char *want, const char *what)
{
    size_t n;
    char *got = scratch_read(scratch_path(s, "out"), &n);
    for (size_t i = 0; want[i] || got[i]; i++)
        if (want[i] != got[i]) {
            size_t from = i;
            while (from && want[from - 1] != '\n')
                from--;
            fail_msg("%s: byte %zu: '%.60s' instead of '%.60s'", what, i, got + from, want + from);
        }
    free(got);
}

/* ---- The best items ---- */

struct shape {
    const char *name;
    size_t users, items, factors, most;
    int mixed;
    unsigned levels;
};

static void test_the_best_are_those_of_all_pairs(void **state)
{
    static const struct shape shapes[] = {
        {"plain", 60, 700, 7, 10, 0, 40},
        {"rows mix", 60, 700, 7, 10, 1, 40},
        {"many equal scores", 40, 300, 2, 10, 1, 1},
        {"all equal", 9, 50, 3, 4, 0, 0},
        {"one item", 30, 1, 4, 10, 0, 40},
        {"one user, one factor", 1, 90, 1, 3, 0, 40},
        {"more than there are", 5, 30, 3, DRPS_RECOMMEND_MOST, 1, 40},
        {"wide rows", 30, 40, 300, 10, 0, 10},
        {"more than a block of items", 30, 9000, 3, 5, 1, 40},
        {"more than a tile of queries", 600, 600, 3, 5, 0, 40},
    };
    struct random_source r = random_begin(__func__);
    struct scratch *s = *state;
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        const struct shape *h = &shapes[i];
        struct ratings_model m;
        ratings_model_init(&m, h->users, h->items, h->factors, h->mixed, h->levels, &r);
        char *want = expected(&m, h->most, NULL), name[32];
        for (size_t e = 0; drps_kv_engines()[e] && !drps_kv_engines()[e]->training_only; e++) {
            (void)snprintf(name, sizeof(name), "model-%zu-%zu", i, e);
            char model[SCRATCH_PATH_BYTES];
            (void)snprintf(model, sizeof(model), "%s", scratch_path(s, name));
            ratings_model_write(&m, model, drps_kv_engines()[e]->name);
            for (unsigned way = 0; way < 4; way++) {
                const struct drps_recommend_options o = {
                    .model = model,
                    .n = h->most,
                    .threads = 1 + way,
                    .memory_bytes = way % 2 ? SMALL_MEMORY : 512 << 20,
                    .products = way < 2 ? DRPS_PRODUCTS_OPENBLAS : DRPS_PRODUCTS_OWN};
                const struct drps_recommend_result got = run(s, o);
                assert_int_equal(got.queries, h->users);
                assert_int_equal(got.items, h->items);
                assert_int_equal(got.few, h->items < h->most ? h->users : 0);
                check_output(s, want, h->name);
            }
        }
        free(want);
        ratings_model_free(&m);
    }
}

/* The least memory: a dozen of users at a time, and items in several passes. */
static void test_the_least_memory_is_named_and_does(void **state)
{
    struct random_source r = random_begin(__func__);
    struct scratch *s = *state;
    struct ratings_model m;
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_recommend_result result;
    ratings_model_init(&m, 50, 20000, 30, 1, 60, &r);
    ratings_model_write(&m, scratch_path(s, "model"), drps_kv_engines()[0]->name);
    char *want = expected(&m, 1000, NULL);
    struct drps_recommend_options o = {.n = 1000,
                                       .model = scratch_path(s, "model"),
                                       .output = scratch_path(s, "out"),
                                       .memory_bytes = 1};
    assert_int_equal(drps_recommend_run(drps_io_os(), &o, &result, &err), DRPS_E_MEMORY_BUDGET);
    const char *least = strstr(err.text, "at least ");
    assert_non_null(least);
    o.memory_bytes = (uint64_t)(strtod(least + strlen("at least "), NULL) * (1 << 20)) + (1 << 17);
    const struct drps_recommend_result got = run(s, o);
    assert_true(got.item_passes > 1);
    assert_int_equal(got.item_bytes, got.item_passes * m.items * m.d * sizeof(float));
    check_output(s, want, "the least memory");
    free(want);
    ratings_model_free(&m);
}

/* ---- Lists of names, ratings ---- */

static int even_items_unseen(size_t user, size_t item)
{
    return item % 2 == 0 && item % 10 != 4 && (item + user) % 3 != 0 && user != 7;
}

static void write_lists(struct scratch *s, const struct ratings_model *m)
{
    FILE *candidates = fopen(scratch_path(s, "candidates"), "w"),
         *exclude = fopen(scratch_path(s, "exclude"), "w"),
         *seen = fopen(scratch_path(s, "seen"), "w");
    assert_true(candidates && exclude && seen);
    (void)fprintf(candidates, "\xef\xbb\xbf\n");
    for (size_t i = 0; i < m->items; i++) {
        if (i % 2 == 0) (void)fprintf(candidates, "  i%zu \r\n\n", i);
        if (i % 10 == 4) (void)fprintf(exclude, "i%zu%s", i, i + 10 < m->items ? "\n" : "");
        for (size_t u = 0; u < m->users; u++)
            if ((i + u) % 3 == 0 || u == 7) (void)fprintf(seen, "u%zu\ti%zu\t3\n", u, i);
    }
    (void)fprintf(seen, "stranger\ti1\t3\nu1\tunknown\t2\n");
    assert_int_equal(fclose(candidates) | fclose(exclude) | fclose(seen), 0);
}

static void test_lists_and_seen_items_are_heeded(void **state)
{
    struct random_source r = random_begin(__func__);
    struct scratch *s = *state;
    struct ratings_model m;
    ratings_model_init(&m, 40, 300, 5, 1, 9, &r);
    ratings_model_write(&m, scratch_path(s, "model"), drps_kv_engines()[0]->name);
    write_lists(s, &m);
    char *want = expected(&m, 60, even_items_unseen);
    const char *seen[] = {scratch_path(s, "seen"), scratch_path(s, "seen")};
    for (unsigned way = 0; way < 2; way++) {
        const struct drps_recommend_options o = {.n = 60,
                                                 .candidates = scratch_path(s, "candidates"),
                                                 .exclude = scratch_path(s, "exclude"),
                                                 .seen = seen,
                                                 .seen_n = 1 + way, /* twice is as good as once */
                                                 .memory_bytes = way ? 0 : SMALL_MEMORY};
        const struct drps_recommend_result got = run(s, o);
        assert_int_equal(got.items, 120);
        assert_int_equal(got.unknown_ratings, 2 * (1 + way));
        assert_int_equal(got.few, 1); /* user 7 has seen all */
        check_output(s, want, "lists");
    }
    free(want);
    ratings_model_free(&m);
}

/* Names are texts, also where they look like numbers: columns of a model's user and item. */
static void test_ratings_may_be_columns(void **state)
{
    static const struct {
        const char *format, *text, *label;
        uint64_t ratings, unknown;
    } cases[] = {
        {"csv", "item,when,user\ni2,3,u1\ni1,5,u1\nnone,4,u0\n", NULL, 3, 1},
        {"csv", "stars;item;user\n1;i2;u1\n2;i1;u1\n", "stars", 2, 0},
        {"jsonl",
         "{\"item\": \"i2\", \"user\": \"u1\"}\n{\"user\": \"u1\", \"item\": \"i1\", \"new\": 1}\n"
         "{\"user\": \"u1\"}\n{\"item\": [\"i0\", \"i1\"], \"user\": \"u1\"}\n",
         NULL, 4, 2},
    };
    struct random_source r = random_begin(__func__);
    struct scratch *s = *state;
    struct ratings_model m;
    static const char *const who[] = {"u1"};
    ratings_model_init(&m, 3, 3, 2, 0, 40, &r);
    ratings_model_write(&m, scratch_path(s, "model"), drps_kv_engines()[0]->name);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const char *seen = scratch_file(s, "columns", cases[i].text, SIZE_MAX);
        const struct drps_recommend_options o = {
            .names = who,
            .names_n = 1,
            .seen = &seen,
            .seen_n = 1,
            .reader = {.format = cases[i].format, .csv_label = cases[i].label}};
        const struct drps_recommend_result got = run(s, o);
        assert_int_equal(got.ratings, cases[i].ratings);
        assert_int_equal(got.unknown_ratings, cases[i].unknown);
        assert_int_equal(got.recommended, 1); /* i0 */
    }
    ratings_model_free(&m);
}

static void test_other_columns_are_refused(void **state)
{
    static const struct {
        const char *format, *text;
    } cases[] = {
        {"csv", "who,item,rating\nu1,i1,3\n"},
        {"csv", "1,2,3\n4,5,6\n"},
        {"jsonl", "{\"who\": \"u1\", \"item\": \"i1\"}\n"},
        {"vw", "1 |user u1 |item i1\n"},
    };
    struct random_source r = random_begin(__func__);
    struct scratch *s = *state;
    struct ratings_model m;
    ratings_model_init(&m, 3, 3, 2, 0, 40, &r);
    ratings_model_write(&m, scratch_path(s, "model"), drps_kv_engines()[0]->name);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const char *seen = scratch_file(s, "columns", cases[i].text, SIZE_MAX);
        const struct drps_recommend_options o = {
            .seen = &seen, .seen_n = 1, .reader = {.format = cases[i].format}};
        fails(s, o, DRPS_E_CONFIG, "name the columns, or the format ratings");
    }
    ratings_model_free(&m);
}

static void test_users_are_chosen_by_name(void **state)
{
    struct random_source r = random_begin(__func__);
    struct scratch *s = *state;
    struct ratings_model m;
    static const char *const names[] = {"u3", "u1", "u3"};
    ratings_model_init(&m, 8, 5, 2, 0, 40, &r);
    ratings_model_write(&m, scratch_path(s, "model"), drps_kv_engines()[0]->name);
    scratch_file(s, "users", "u5\nu1\n", SIZE_MAX);
    struct drps_recommend_options o = {
        .n = 1, .names = names, .names_n = 3, .names_file = scratch_path(s, "users")};
    assert_int_equal(run(s, o).queries, 3);
    size_t n;
    char *text = scratch_read(scratch_path(s, "out"), &n);
    const char *first = strstr(text, "u1\t"), *second = strstr(text, "u3\t"),
               *third = strstr(text, "u5\t");
    assert_true(first == text && second > first && third > second);
    free(text);

    static const char *const unknown[] = {"u1", "nobody", "i1"};
    o = (struct drps_recommend_options){.names = unknown, .names_n = 3};
    fails(s, o, DRPS_E_NOT_FOUND, "has no user 'nobody'; unknown names can be skipped");
    o.skip_unknown = 1;
    const struct drps_recommend_result got = run(s, o);
    assert_int_equal(got.queries, 1);
    assert_int_equal(got.unknown_names, 2); /* an item's name is no user's */
    scratch_file(s, "items", "i1\n\n u1\n", SIZE_MAX);
    o = (struct drps_recommend_options){.candidates = scratch_path(s, "items")};
    fails(s, o, DRPS_E_NOT_FOUND, "items:3: ");
    ratings_model_free(&m);
}

static void test_nothing_left_is_no_error(void **state)
{
    struct random_source r = random_begin(__func__);
    struct scratch *s = *state;
    struct ratings_model m;
    ratings_model_init(&m, 8, 5, 2, 0, 40, &r);
    ratings_model_write(&m, scratch_path(s, "model"), drps_kv_engines()[0]->name);
    scratch_file(s, "empty", "\n", SIZE_MAX);
    struct drps_recommend_options o = {.candidates = scratch_path(s, "empty")};
    assert_int_equal(run(s, o).few, 8);
    check_output(s, "", "no items");
    o = (struct drps_recommend_options){.names_file = scratch_path(s, "empty")};
    assert_int_equal(run(s, o).queries, 0);
    check_output(s, "", "no users");
    ratings_model_free(&m);
}

/* ---- Similar items ---- */

static void test_similar_items_are_those_of_the_largest_cosine(void **state)
{
    enum { USERS = 3, ITEMS = 400, FACTORS = 6, MOST = 5 };
    struct random_source r = random_begin(__func__);
    struct scratch *s = *state;
    struct ratings_model m;
    ratings_model_init(&m, USERS, ITEMS, FACTORS, 1, 50, &r);
    memset(m.params + m.item[9] * m.d, 0, m.d * sizeof(*m.params)); /* has no direction */
    ratings_model_write(&m, scratch_path(s, "model"), drps_kv_engines()[0]->name);
    const struct drps_recommend_options o = {.similar = 1, .n = MOST};
    assert_int_equal(run(s, o).queries, ITEMS);

    FILE *f = fopen(scratch_path(s, "out"), "r");
    size_t of, rank, item, lines = 0;
    double score, last = 0;
    assert_non_null(f);
    while (fscanf(f, "i%zu\t%zu\ti%zu\t%lf\n", &of, &rank, &item, &score) == 4) {
        double dot = 0, a2 = 0, b2 = 0, better = 0;
        const float *a = m.params + m.item[of] * m.d;
        assert_true(of != item && (rank == 1 || score <= last));
        for (size_t i = 0; i < ITEMS; i++) {
            const float *b = m.params + m.item[i] * m.d;
            dot = a2 = b2 = 0;
            for (size_t k = 1; k < m.d; k++) {
                dot += (double)a[k] * (double)b[k];
                a2 += (double)a[k] * (double)a[k];
                b2 += (double)b[k] * (double)b[k];
            }
            const double cosine = a2 > 0 && b2 > 0 ? dot / sqrt(a2 * b2) : 0;
            if (i == item) assert_true(fabs(cosine - score) < 1e-6);
            better += i != of && cosine > score + 1e-6;
        }
        assert_true(better < (double)rank);
        last = score;
        lines++;
    }
    (void)fclose(f);
    assert_int_equal(lines, ITEMS * MOST);
    ratings_model_free(&m);
}

/* ---- Folding in ---- */

/* A user who rates items as a vector says is found again, but for what a small l2 takes. */
static void test_a_user_who_is_folded_in_gets_the_factors_of_the_ratings(void **state)
{
    enum { USERS = 12, ITEMS = 200, FACTORS = 4, RATED = 60, MOST = 8 };
    struct random_source r = random_begin(__func__);
    struct scratch *s = *state;
    struct ratings_model m;
    ratings_model_init(&m, USERS, ITEMS, FACTORS, 1, 20, &r);
    ratings_model_write(&m, scratch_path(s, "model"), drps_kv_engines()[0]->name);
    FILE *f = fopen(scratch_path(s, "ratings"), "w");
    assert_non_null(f);
    for (size_t i = 0; i < RATED; i++) /* those of a user do not lie together */
        for (size_t u = USERS; u-- > 0;)
            (void)fprintf(f, "new%zu\ti%zu\t%.9g\n", u, i, score_of(&m, u, i));
    (void)fprintf(f, "late\tunknown\t3\n");
    assert_int_equal(fclose(f), 0);
    const char *ratings = scratch_path(s, "ratings");
    for (unsigned way = 0; way < 2; way++) {
        const struct drps_recommend_options o = {.fold_in = &ratings,
                                                 .fold_in_n = 1,
                                                 .fold_l2 = 1e-9,
                                                 .n = MOST,
                                                 .memory_bytes = way ? 0 : SMALL_MEMORY};
        const struct drps_recommend_result got = run(s, o);
        assert_int_equal(got.queries, USERS + 1);
        assert_int_equal(got.unknown_ratings, 1);
        f = fopen(scratch_path(s, "out"), "r");
        assert_non_null(f);
        size_t user, rank, item, lines = 0;
        double score;
        while (fscanf(f, "new%zu\t%zu\ti%zu\t%lf\n", &user, &rank, &item, &score) == 4) {
            size_t better = 0;
            assert_int_equal(user, USERS - 1 - lines / MOST); /* in the order of the file */
            assert_true(item >= RATED);                       /* what was rated is seen */
            assert_true(fabs(score - score_of(&m, user, item)) < 1e-4);
            for (size_t i = RATED; i < ITEMS; i++)
                better += score_of(&m, user, i) > score + 1e-4;
            assert_true(better < rank);
            lines++;
        }
        (void)fclose(f);
        assert_int_equal(lines, USERS * MOST);
    }
    ratings_model_free(&m);
}

/* Nothing is known of a user but the items' biases; with the one rating 5 and a large l2 hardly
 * more. Seen items of theirs are left out, too. */
static void test_users_of_few_ratings_are_folded_in(void **state)
{
    struct random_source r = random_begin(__func__);
    struct scratch *s = *state;
    struct ratings_model m;
    ratings_model_init(&m, 2, 3, 2, 0, 0, &r);
    for (size_t i = 0; i < 3; i++)
        m.params[m.item[i] * m.d] = (float)i;
    ratings_model_write(&m, scratch_path(s, "model"), drps_kv_engines()[0]->name);
    const char *ratings = scratch_file(s, "ratings", "a unknown 5\nb i0 5\n", SIZE_MAX);
    const char *seen = scratch_file(s, "seen", "b i2 1\nu1 i1 1\nc none 1\n", SIZE_MAX);
    const struct drps_recommend_options o = {
        .fold_in = &ratings, .fold_in_n = 1, .fold_l2 = 1e9, .seen = &seen, .seen_n = 1};
    const struct drps_recommend_result got = run(s, o);
    assert_int_equal(got.recommended, 4);
    assert_int_equal(got.unknown_ratings, 2); /* of items, not of new users */
    size_t n;
    char *text = scratch_read(scratch_path(s, "out"), &n);
    assert_non_null(strstr(text, "a\t1\ti2\t2\na\t2\ti1\t1\na\t3\ti0\t0\nb\t1\ti1\t1"));
    free(text);
    ratings_model_free(&m);
}

/* ---- Texts ---- */

static void test_json_is_an_object_a_line(void **state)
{
    struct random_source r = random_begin(__func__);
    struct scratch *s = *state;
    struct ratings_model m;
    ratings_model_init(&m, 1, 2, 1, 0, 0, &r);
    m.params[m.item[1] * m.d] = 0.1f;
    ratings_model_write(&m, scratch_path(s, "model"), drps_kv_engines()[0]->name);
    const char *ratings =
        scratch_file(s, "ratings", "a\"\\\x01\xc3\xa4\xff\ti0\t0\nb\xe2\x82\ti1\t0\n", SIZE_MAX);
    struct drps_recommend_options o = {.json = 1, .n = 2};
    run(s, o);
    check_output(s,
                 "{\"user\": \"u0\", \"items\": [{\"item\": \"i1\", \"score\": 0.100000001}, "
                 "{\"item\": \"i0\", \"score\": 0}]}\n",
                 "json");
    o.similar = 1;
    run(s, o);
    check_output(s,
                 "{\"item\": \"i0\", \"items\": [{\"item\": \"i1\", \"score\": 0}]}\n"
                 "{\"item\": \"i1\", \"items\": [{\"item\": \"i0\", \"score\": 0}]}\n",
                 "json of similar items");
    o = (struct drps_recommend_options){
        .json = 1, .n = 1, .fold_in = &ratings, .fold_in_n = 1, .fold_l2 = 1};
    run(s, o);
    size_t n;
    char *text = scratch_read(scratch_path(s, "out"), &n);
    assert_true(strncmp(text, "{\"user\": \"a\\\"\\\\\\u0001\xc3\xa4\\ufffd\", ", 29) == 0);
    assert_non_null(strstr(text, "{\"user\": \"b\\ufffd\\ufffd\", "));
    free(text);
    ratings_model_free(&m);
}

static void test_a_score_that_fits_no_float_is_a_double(void **state)
{
    struct random_source r = random_begin(__func__);
    struct scratch *s = *state;
    struct ratings_model m;
    char want[256];
    ratings_model_init(&m, 1, 2, 1, 0, 0, &r);
    m.params[m.user[0] * m.d + 1] = 3e25f;
    m.params[m.item[0] * m.d + 1] = -7e25f;
    m.params[m.item[1] * m.d + 1] = 1e13f; /* just fits */
    ratings_model_write(&m, scratch_path(s, "model"), drps_kv_engines()[0]->name);
    for (int json = 0; json < 2; json++) {
        run(s, (struct drps_recommend_options){.json = json});
        (void)snprintf(want, sizeof(want),
                       json ? "{\"user\": \"u0\", \"items\": [{\"item\": \"i1\", \"score\": %.9g}, "
                              "{\"item\": \"i0\", \"score\": %.17g}]}\n"
                            : "u0\t1\ti1\t%.9g\nu0\t2\ti0\t%.17g\n",
                       (double)(float)score_of(&m, 0, 1), score_of(&m, 0, 0));
        check_output(s, want, "large scores");
    }
    ratings_model_free(&m);
}

/* With -3e38 for an item without factors and 3e38 for one of 1 / 8 the factor is about 4.8e39; with
 * 3e38 for an item of bias -3e38 the user's bias is about 6e38. */
static void test_a_user_whose_factors_fit_no_floats_is_named(void **state)
{
    static const char *const texts[] = {"a i0 1\nbig i0 -3e38\nbig i1 3e38\n",
                                        "a i0 1\nbig i2 3e38\n"};
    struct random_source r = random_begin(__func__);
    struct scratch *s = *state;
    struct ratings_model m;
    ratings_model_init(&m, 1, 3, 1, 0, 0, &r);
    m.params[m.item[1] * m.d + 1] = 0.125f;
    m.params[m.item[2] * m.d] = -3e38f;
    ratings_model_write(&m, scratch_path(s, "model"), drps_kv_engines()[0]->name);
    for (size_t i = 0; i < 2; i++) {
        const char *ratings = scratch_file(s, "ratings", texts[i], SIZE_MAX);
        fails(s,
              (struct drps_recommend_options){.fold_in = &ratings, .fold_in_n = 1, .fold_l2 = 1e-9},
              DRPS_E_FORMAT, "user 'big' are too large");
    }
    ratings_model_free(&m);
}

/* Paths of a scratch folder last for some calls. */
static void keep(char *to, const char *path)
{
    (void)snprintf(to, SCRATCH_PATH_BYTES, "%s", path);
}

static void test_what_cannot_be_is_refused(void **state)
{
    struct random_source r = random_begin(__func__);
    struct scratch *s = *state;
    struct ratings_model m;
    ratings_model_init(&m, 4, 30, 2, 0, 40, &r);
    ratings_model_write(&m, scratch_path(s, "model"), drps_kv_engines()[0]->name);
    m.params[m.item[3] * m.d + 1] = NAN;
    ratings_model_write(&m, scratch_path(s, "nan"), drps_kv_engines()[0]->name);
    char bad_file[SCRATCH_PATH_BYTES], same_file[SCRATCH_PATH_BYTES], inside[SCRATCH_PATH_BYTES],
        nan_model[SCRATCH_PATH_BYTES], absent[SCRATCH_PATH_BYTES];
    const char *bad = bad_file, *same = same_file, *twice[] = {"-", "-"};
    keep(bad_file, scratch_file(s, "bad", "u1 i1 3\nu2 i2 x\n", SIZE_MAX));
    keep(same_file, scratch_file(s, "same", "u1 i1 1\n", SIZE_MAX));
    keep(inside, scratch_path(s, "model/out"));
    keep(nan_model, scratch_path(s, "nan"));
    keep(absent, scratch_path(s, "absent"));
    const struct {
        struct drps_recommend_options o;
        int rc;
        const char *text;
    } cases[] = {
        {{.model = absent}, DRPS_E_NOT_FOUND, "No such file or directory"},
        {{.model = nan_model}, DRPS_E_CORRUPT, "are no numbers"},
        {{.n = DRPS_RECOMMEND_MOST + 1}, DRPS_E_CONFIG, "at most"},
        {{.threads = 1000}, DRPS_E_CONFIG, "1000 threads: at most"},
        {{.seen = &bad, .seen_n = 1, .fold_in = &bad, .fold_in_n = 1}, DRPS_E_FORMAT, "bad:2:"},
        {{.similar = 1, .seen = &same, .seen_n = 1}, DRPS_E_CONFIG, "items have seen nothing"},
        {{.similar = 1, .fold_in = &same, .fold_in_n = 1}, DRPS_E_CONFIG, "name no others"},
        {{.fold_in = &same, .fold_in_n = 1, .fold_l2 = 0}, DRPS_E_CONFIG, "l2 0 is too small"},
        {{.seen = &same, .seen_n = 1, .output = same}, DRPS_E_CONFIG, "is the input"},
        {{.candidates = same, .output = same}, DRPS_E_CONFIG, "is the input"},
        {{.output = inside}, DRPS_E_CONFIG, "lies in the folder"},
        {{.candidates = absent}, -ENOENT, "absent"},
        {{.names_file = "-", .candidates = "-"}, DRPS_E_CONFIG, "is read once"},
        {{.exclude = "-", .seen = twice, .seen_n = 1}, DRPS_E_CONFIG, "is read once"},
        {{.seen = twice, .seen_n = 2}, DRPS_E_CONFIG, "is read once"},
        {{.fold_in = twice, .fold_in_n = 1, .seen = twice, .seen_n = 1},
         DRPS_E_CONFIG,
         "is read once"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        fails(s, cases[i].o, cases[i].rc, cases[i].text);
    scratch_file(s, "there", "old", SIZE_MAX);
    fails(s, (struct drps_recommend_options){.output = scratch_path(s, "there")}, -EEXIST, "there");
    ratings_model_free(&m);
}

static void test_who_stops_it_gets_nothing(void **state)
{
    static atomic_int stop = 1;
    struct random_source r = random_begin(__func__);
    struct scratch *s = *state;
    struct ratings_model m;
    ratings_model_init(&m, 4, 30, 2, 0, 40, &r);
    ratings_model_write(&m, scratch_path(s, "model"), drps_kv_engines()[0]->name);
    fails(s, (struct drps_recommend_options){.stop = &stop}, DRPS_E_INTERRUPTED, "interrupted");
    ratings_model_free(&m);
}

#define IN_SCRATCH(test) cmocka_unit_test_setup_teardown(test, scratch_setup, scratch_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_SCRATCH(test_the_best_are_those_of_all_pairs),
        IN_SCRATCH(test_the_least_memory_is_named_and_does),
        IN_SCRATCH(test_lists_and_seen_items_are_heeded),
        IN_SCRATCH(test_ratings_may_be_columns),
        IN_SCRATCH(test_other_columns_are_refused),
        IN_SCRATCH(test_users_are_chosen_by_name),
        IN_SCRATCH(test_nothing_left_is_no_error),
        IN_SCRATCH(test_similar_items_are_those_of_the_largest_cosine),
        IN_SCRATCH(test_a_user_who_is_folded_in_gets_the_factors_of_the_ratings),
        IN_SCRATCH(test_users_of_few_ratings_are_folded_in),
        IN_SCRATCH(test_json_is_an_object_a_line),
        IN_SCRATCH(test_a_score_that_fits_no_float_is_a_double),
        IN_SCRATCH(test_a_user_whose_factors_fit_no_floats_is_named),
        IN_SCRATCH(test_what_cannot_be_is_refused),
        IN_SCRATCH(test_who_stops_it_gets_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
