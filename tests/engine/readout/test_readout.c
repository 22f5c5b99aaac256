/* Rows are visited in order with their names, however few names fit; the largest weights are those
 * that a search through all finds. */
#include "support/plan_maker.h"

#include "engine/drps_engine.h"
#include "engine/readout/drps_top_weights.h"
#include "support/scratch.h"

enum { FEATURES = 900, MEMORY = 32 << 20 };

struct fixture {
    char *dir, *model;
    struct drps_modeldir *md;
    struct drps_readout r;
};

static void setup(struct fixture *f, const char *algo, const char *loss, uint32_t factors)
{
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_train_result trained;
    struct maker m;
    f->dir = temp_make();
    maker_init(&m, algo, loss, FEATURES, 50);
    m.rank = factors;
    maker_random(&m, 2000, 3, 0, 7);
    struct drps_plan *plan = maker_write(&m, f->dir, "plan");
    f->model = drps_path_join(f->dir, "model");
    const struct drps_train_options o = {.model_path = f->model, .epochs = 1, .seed = 3};
    if (drps_train_run(plan, &o, &trained, &err) < 0) fail_msg("%s", err.text);
    drps_train_result_free(&trained);
    drps_plan_close(plan);
    maker_free(&m);
    if (drps_modeldir_open(drps_io_os(), f->model, MEMORY, &f->md, &err) < 0 ||
        drps_readout_open(f->md, 0, &f->r, &err) < 0)
        fail_msg("%s", err.text);
}

static void teardown(struct fixture *f)
{
    drps_readout_close(&f->r);
    drps_modeldir_close(f->md);
    free(f->model);
    temp_remove(f->dir);
}

struct seen {
    const uint32_t *rows; /* that are due; NULL: all */
    size_t n;
    float first[FEATURES + 1]; /* the first float of each row */
};

static int check_row(void *ctx, const struct drps_readout_row *row, struct drps_err *err)
{
    struct seen *s = ctx;
    char name[32];
    const uint32_t due = s->rows ? s->rows[s->n] : (uint32_t)s->n;
    (void)err;
    assert_int_equal(row->row, due);
    (void)snprintf(name, sizeof(name), "%llu", (unsigned long long)maker_key(due - 1));
    if (due == 0) (void)snprintf(name, sizeof(name), DRPS_READOUT_INTERCEPT);
    assert_int_equal(row->name_bytes, strlen(name));
    assert_memory_equal(row->name, name, row->name_bytes);
    assert_string_equal(row->table->name, due ? "w" : DRPS_PLAN_BIAS);
    s->first[due] = row->params[0];
    s->n++;
    return 0;
}

static void test_readout_visits_all_rows_whatever_the_memory(void **state)
{
    static const uint64_t memory[] = {64, 1000, 1 << 20};
    struct seen first = {.n = 0};
    struct fixture f;
    (void)state;
    setup(&f, "lor", "logistic", 0);
    for (size_t i = 0; i < sizeof(memory) / sizeof(memory[0]); i++) {
        struct drps_err err = DRPS_ERR_INIT;
        struct seen s = {.n = 0};
        f.r.names_bytes = memory[i];
        if (drps_readout_rows(&f.r, NULL, 0, check_row, &s, &err) < 0) fail_msg("%s", err.text);
        assert_int_equal(s.n, FEATURES + 1);
        if (!i) first = s;
        assert_memory_equal(s.first, first.first, sizeof(s.first));
    }
    teardown(&f);
}

static void test_readout_visits_a_list(void **state)
{
    static const uint32_t rows[] = {0, 3, 4, 17, 600, FEATURES};
    static const uint64_t memory[] = {64, 1 << 20};
    struct fixture f;
    (void)state;
    setup(&f, "lor", "logistic", 0);
    for (size_t i = 0; i < sizeof(memory) / sizeof(memory[0]); i++) {
        struct drps_err err = DRPS_ERR_INIT;
        struct seen s = {.rows = rows};
        f.r.names_bytes = memory[i];
        if (drps_readout_rows(&f.r, rows, 6, check_row, &s, &err) < 0) fail_msg("%s", err.text);
        assert_int_equal(s.n, 6);
    }
    teardown(&f);
}

/* Whether row a comes before row b in a list. */
static int is_first(const float *w, uint32_t a, uint32_t b)
{
    return fabsf(w[a]) > fabsf(w[b]) || (fabsf(w[a]) >= fabsf(w[b]) && a < b);
}

static void test_readout_finds_the_largest_weights(void **state)
{
    enum { MOST = 40 };
    const struct drps_top_choice choice = {.lists = 1, .most = MOST, .either_sign = 1};
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_top_weights found;
    struct seen s = {.n = 0};
    struct fixture f;
    (void)state;
    setup(&f, "lor", "logistic", 0);
    if (drps_readout_rows(&f.r, NULL, 0, check_row, &s, &err) < 0 ||
        drps_top_weights_find(&f.r, &choice, &found, &err) < 0)
        fail_msg("%s", err.text);
    assert_int_equal(found.n[0], MOST);
    for (size_t i = 0; i < MOST; i++) {
        const struct drps_top_weight *w = &found.of[i];
        size_t before = 0;
        for (uint32_t row = 1; row <= FEATURES; row++)
            before += (size_t)is_first(s.first, row, w->row);
        assert_int_equal(before, i);
        assert_int_equal(strtoull(w->name, NULL, 10), maker_key(w->row - 1));
        assert_true(w->value == s.first[w->row] && w->norm == 0);
    }
    drps_top_weights_destroy(&found);
    teardown(&f);
}

static void test_readout_tells_the_length_of_factors(void **state)
{
    const struct drps_top_choice choice = {.lists = 1, .most = 1, .either_sign = 1};
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_top_weights found;
    struct fixture f;
    float row[4];
    (void)state;
    setup(&f, "fm", "logistic", 3);
    if (drps_top_weights_find(&f.r, &choice, &found, &err) < 0 ||
        drps_modeldir_gather(f.md, &found.of[0].row, 1, row, &err) < 0)
        fail_msg("%s", err.text);
    const float length = sqrtf(row[1] * row[1] + row[2] * row[2] + row[3] * row[3]);
    assert_true(fabsf(found.of[0].norm - length) <= 1e-6f * length);
    drps_top_weights_destroy(&found);
    teardown(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_readout_visits_all_rows_whatever_the_memory),
        cmocka_unit_test(test_readout_visits_a_list),
        cmocka_unit_test(test_readout_finds_the_largest_weights),
        cmocka_unit_test(test_readout_tells_the_length_of_factors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
