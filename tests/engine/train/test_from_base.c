/* Training a plan that goes on from an earlier one, from a model of that: rows that are in none of
 * its batches come through training as they were, with every store, and through a stop. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/delta/drps_delta.h"
#include "engine/publish/drps_modeldir.h"
#include "index/plan/drps_names.h"
#include "support/index_case.h"
#include "support/train_runs.h"

enum { DIM = 5, EPOCHS = 4 };

struct job {
    struct scratch s;
    struct drps_plan *first, *later;
    char base[SCRATCH_PATH_BYTES]; /* folder of `first` */
    char old[SCRATCH_PATH_BYTES], model[SCRATCH_PATH_BYTES];
    struct drps_train_options o;
    struct drps_train_result want;
};

static void set_path(struct scratch *s, const char *name, char path[SCRATCH_PATH_BYTES])
{
    (void)snprintf(path, SCRATCH_PATH_BYTES, "%s", scratch_path(s, name));
}

static struct drps_plan *make_plan(struct job *j, const char *name, size_t features, uint64_t seed,
                                   const char *base)
{
    struct case_run c;
    const char *input = case_input(&j->s, "input", CASE_LIBSVM, 500, features, seed);
    case_begin(&c, &j->s, input, base ? NULL : "fm");
    set_path(&j->s, name, c.out);
    c.options.factors = base ? 0 : DIM - 1;
    c.options.base = base;
    c.options.batch_size = 20;
    c.options.test_fraction = 0.1;
    return case_plan(&c);
}

static struct job *begin(const char *store)
{
    struct job *j = calloc(1, sizeof(*j));
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_train_result r;
    assert_non_null(j);
    scratch_begin(&j->s);
    set_path(&j->s, "old", j->old);
    set_path(&j->s, "model", j->model);
    set_path(&j->s, "first", j->base);
    j->first = make_plan(j, "first", 900, 31, NULL);
    j->later = make_plan(j, "later", 1000, 32, j->base);
    j->o = (struct drps_train_options){.model_path = j->old,
                                       .epochs = EPOCHS,
                                       .seed = 5,
                                       .store = "resident",
                                       .log = &quiet,
                                       .replace = 1,
                                       .checkpoint_every = {DRPS_CHECKPOINT_NEVER, 0}};
    train_well(j->first, &j->o, &r, "the first day");
    drps_train_result_free(&r);
    j->o.model_path = j->model;
    j->o.from = j->old;
    train_well(j->later, &j->o, &j->want, "undisturbed");
    j->o.store = store;
    j->o.memory_bytes = 1; /* relay: as little as there may be, so that windows are many */
    if (strcmp(store, "resident") != 0) {
        assert_int_equal(drps_train_run(j->later, &j->o, &r, &err), DRPS_E_MEMORY_BUDGET);
        j->o.memory_bytes = r.memory.used_bytes;
        drps_train_result_free(&r);
    } else {
        j->o.memory_bytes = 0;
    }
    return j;
}

static void end(struct job *j)
{
    drps_train_result_free(&j->want);
    drps_plan_close(j->first);
    drps_plan_close(j->later);
    scratch_end(&j->s);
    free(j);
}

/* The parameters of all rows of a model; free() them. */
static float *params_of(const char *model, uint64_t rows)
{
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_modeldir *md = NULL;
    float *params = malloc(rows * DIM * sizeof(*params));
    uint32_t *ids = malloc(rows * sizeof(*ids));
    assert_true(params && ids);
    for (uint32_t i = 0; i < rows; i++)
        ids[i] = i;
    if (drps_modeldir_open(drps_io_os(), model, 0, &md, &err) ||
        drps_modeldir_open_rows(md, 64 << 20, &err) ||
        drps_modeldir_gather(md, ids, rows, params, &err))
        fail_msg("%s", err.text);
    drps_modeldir_close(md);
    free(ids);
    return params;
}

/* All rows of a model's checkpoint, with adagrad's state; free() them. */
static float *state_of(const char *model, uint64_t rows)
{
    uint64_t numbers[DRPS_CHECKPOINT_LIST_MOST];
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_checkpoints place;
    struct drps_checkpoint *cp = NULL;
    char root[SCRATCH_PATH_BYTES + 16];
    float *all = malloc(rows * 2 * DIM * sizeof(*all));
    assert_non_null(all);
    (void)snprintf(root, sizeof(root), "%s.checkpoint", model);
    assert_true(train_checkpoints(root, 0, numbers) > 0);
    if (drps_checkpoints_init(&place, drps_io_os(), root, 0, &err) ||
        drps_checkpoint_open(&place, numbers[0], &cp, &err) ||
        drps_checkpoint_read(cp, 0, rows, all, &err))
        fail_msg("%s", err.text);
    assert_int_equal(drps_checkpoint_row_bytes(cp), 2 * DIM * sizeof(*all));
    drps_checkpoint_close(cp);
    drps_checkpoints_destroy(&place);
    return all;
}

/* Rows that the later plan has a batch for; free() them. */
static unsigned char *used_rows(const struct drps_plan *plan)
{
    struct case_lines lines;
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_names *names;
    unsigned char *used = calloc(plan->info.rows, 1);
    assert_non_null(used);
    assert_int_equal(drps_names_open(drps_io_os(), plan->dir, &names, &err), 0);
    case_plan_lines(plan->dir, 0, 0, &lines);
    for (size_t i = 0; i < lines.n; i++)
        for (char *at = strchr(lines.line[i], ' '); at && at[1]; at = strchr(at + 1, ' ')) {
            const uint64_t key = strtoull(at + 1, NULL, 10);
            uint32_t row;
            assert_int_equal(drps_names_lookup(names, &key, 1, &row, &err), 0);
            used[row] = 1;
        }
    case_lines_free(&lines);
    drps_names_close(names);
    return used;
}

static void test_rows_of_no_batch_stay(void **state)
{
    static const char *const stores[] = {"resident", "relay", "file", "rocksdb"};
    (void)state;
    for (size_t s = 0; s < sizeof(stores) / sizeof(stores[0]); s++) {
        struct job *j = begin(stores[s]);
        struct drps_train_result r;
        const uint64_t old_rows = j->first->info.rows;
        train_well(j->later, &j->o, &r, stores[s]);
        train_check_same(&r, &j->want, stores[s], 0);
        assert_int_equal(r.from.rows, old_rows);
        drps_train_result_free(&r);
        float *before = params_of(j->old, old_rows), *after = params_of(j->model, old_rows);
        unsigned char *used = used_rows(j->later);
        size_t unused = 0;
        for (uint64_t i = 1; i < old_rows; i++) { /* but for the intercept */
            const int same = memcmp(before + i * DIM, after + i * DIM, DIM * sizeof(float)) == 0;
            if (same == used[i])
                fail_msg("%s: row %llu is %s batches, and %s changed", stores[s],
                         (unsigned long long)i, used[i] ? "in" : "in no", same ? "not" : "was");
            unused += !used[i];
        }
        assert_true(unused > 20);
        free(used);
        free(before);
        free(after);
        end(j);
    }
}

struct rows_of_names {
    struct drps_names *names;
    float *params; /* [rows][DIM] */
    unsigned char *told;
};

/* Put a delta's line over the row that it names. */
static void apply_line(struct rows_of_names *r, const char *line)
{
    struct drps_err err = DRPS_ERR_INIT;
    char *at;
    uint32_t row = 0;
    if (strncmp(line, "(intercept)", 11) == 0) {
        at = strchr(line, '\t');
    } else {
        const uint64_t key = strtoull(line, &at, 10);
        assert_int_equal(drps_names_lookup(r->names, &key, 1, &row, &err), 0);
        assert_true(row != DRPS_NO_ROW);
    }
    assert_true(!r->told[row]++);
    for (size_t i = 0; i < DIM; i++) {
        assert_int_equal(*at, '\t');
        r->params[row * DIM + i] = strtof(at + 1, &at);
    }
    assert_string_equal(at, "\n");
}

/* Apply the delta; returns its last line. */
static void apply(struct rows_of_names *r, const char *path, char last[128])
{
    char line[512];
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    while (fgets(line, sizeof(line), f))
        if (*line == '#')
            (void)snprintf(last, 128, "%.120s", line);
        else
            apply_line(r, line);
    assert_int_equal(fclose(f), 0);
}

/* The old rows and the delta are the new rows, bit for bit, and nothing is told that has stayed. */
static void test_old_rows_and_the_delta_are_the_new_rows(void **state)
{
    static const uint64_t memory[] = {0, 1};
    (void)state;
    for (size_t m = 0; m < sizeof(memory) / sizeof(memory[0]); m++) {
        struct job *j = begin(memory[m] ? "relay" : "resident");
        struct drps_err err = DRPS_ERR_INIT;
        struct drps_train_result r;
        const uint64_t rows = j->later->info.rows, old_rows = j->first->info.rows;
        char path[SCRATCH_PATH_BYTES], last[128] = "", want[128];
        set_path(&j->s, "delta.txt", path);
        j->o.delta = path;
        train_well(j->later, &j->o, &r, "with a delta");
        assert_int_equal(r.content, j->want.content);
        struct rows_of_names is = {.params = calloc(rows * DIM, sizeof(float)),
                                   .told = calloc(rows, 1)};
        float *old = params_of(j->old, old_rows), *now = params_of(j->model, rows);
        assert_true(is.params && is.told);
        memcpy(is.params, old, old_rows * DIM * sizeof(float));
        assert_int_equal(drps_names_open(drps_io_os(), j->model, &is.names, &err), 0);
        apply(&is, path, last);
        assert_memory_equal(is.params, now, rows * DIM * sizeof(float));
        uint64_t changed = 0;
        for (uint64_t i = 0; i < rows; i++) {
            const int differs =
                i >= old_rows || memcmp(old + i * DIM, now + i * DIM, DIM * sizeof(float)) != 0;
            if (is.told[i] != differs) fail_msg("row %llu", (unsigned long long)i);
            changed += i < old_rows && differs;
        }
        (void)snprintf(want, sizeof(want), "# end: changed %llu, new %llu\n",
                       (unsigned long long)changed, (unsigned long long)(rows - old_rows));
        assert_string_equal(last, want);
        assert_true(r.delta.rows == changed && r.delta.fresh == rows - old_rows && r.delta.bytes);
        drps_names_close(is.names);
        char twice[SCRATCH_PATH_BYTES]; /* with other memory */
        set_path(&j->s, "twice.txt", twice);
        const struct drps_delta_options o = {.io = drps_io_os(),
                                             .from = j->old,
                                             .model = j->model,
                                             .path = twice,
                                             .same_rows = old_rows};
        struct drps_delta delta;
        if (drps_delta_write(&o, &delta, &err)) fail_msg("%s", err.text);
        assert_true(files_equal(path, twice) && delta.bytes == r.delta.bytes);
        drps_train_result_free(&r);
        free(is.params);
        free(is.told);
        free(old);
        free(now);
        end(j);
    }
}

static void test_deltas_that_cannot_be_are_refused(void **state)
{
    struct job *j = begin("resident");
    char path[SCRATCH_PATH_BYTES], inside[SCRATCH_PATH_BYTES];
    (void)state;
    set_path(&j->s, "delta.txt", path);
    set_path(&j->s, "model/delta.txt", inside);
    struct drps_train_options o = j->o;
    o.delta = path;
    o.from = NULL;
    train_refused(j->later, &o, DRPS_E_CONFIG, "name one to begin with");
    o.from = o.model_path;
    train_refused(j->later, &o, DRPS_E_CONFIG, "would be replaced");
    o.from = j->base;
    train_refused(j->later, &o, DRPS_E_NOT_FOUND, "which");
    o.from = j->old;
    struct drps_plan *other = make_plan(j, "other", 900, 33, NULL);
    train_refused(other, &o, DRPS_E_CONFIG, "does not go on from it");
    drps_plan_close(other);
    o.delta = inside;
    train_refused(j->later, &o, DRPS_E_CONFIG, "model");
    o.delta = path;
    o.replace = 0;
    train_remove(j->model);
    fclose(fopen(path, "w"));
    train_refused(j->later, &o, -EEXIST, "exists already");
    assert_false(path_exists(j->model));
    end(j);
}

/* A run that was killed when its model was whole writes the delta when it is resumed. */
static void test_a_delta_comes_late(void **state)
{
    struct job *j = begin("resident");
    struct drps_train_result r;
    char path[SCRATCH_PATH_BYTES];
    (void)state;
    train_well(j->later, &j->o, &r, "whole");
    drps_train_result_free(&r);
    set_path(&j->s, "delta.txt", path);
    j->o.delta = path;
    j->o.resume = 1;
    j->o.replace = 0;
    train_well(j->later, &j->o, &r, "resumed");
    assert_true(r.already && r.delta.rows > 0 && path_exists(path));
    drps_train_result_free(&r);
    end(j);
}

/* With the optimizer's state, of which rows that are in no batch keep theirs, too. */
static void test_state_of_no_batch_stays(void **state)
{
    static const char *const stores[] = {"resident", "relay", "file"};
    (void)state;
    for (size_t s = 0; s < sizeof(stores) / sizeof(stores[0]); s++) {
        struct job *j = begin(stores[s]);
        struct drps_train_result r;
        const uint64_t rows = j->first->info.rows;
        j->o.keep_checkpoints = 1;
        struct drps_train_options first = j->o;
        first.model_path = j->old;
        first.from = NULL;
        first.store = "resident";
        first.memory_bytes = 0;
        train_well(j->first, &first, &r, "the first day");
        drps_train_result_free(&r);
        train_well(j->later, &j->o, &r, stores[s]);
        assert_true(r.from.state && r.from.rows == rows);
        drps_train_result_free(&r);
        float *before = state_of(j->old, rows), *after = state_of(j->model, rows);
        unsigned char *used = used_rows(j->later);
        for (uint64_t i = 1; i < rows; i++)
            if (used[i] ==
                (memcmp(before + i * 2 * DIM, after + i * 2 * DIM, 2 * DIM * sizeof(float)) == 0))
                fail_msg("%s: row %llu", stores[s], (unsigned long long)i);
        free(used);
        free(before);
        free(after);
        end(j);
    }
}

/* A run that is killed goes on from its checkpoint, which may be a store that has saved itself. */
static void test_rows_of_no_batch_stay_through_a_kill(void **state)
{
    static const char *const stores[] = {"resident", "relay", "rocksdb"};
    const long step = DRPS_TEST_ONE_IN > 1 ? 97 : 23;
    (void)state;
    for (size_t s = 0; s < sizeof(stores) / sizeof(stores[0]); s++) {
        struct job *j = begin(stores[s]);
        uint64_t late = 0;
        j->o.checkpoint_every = (struct drps_checkpoint_every){DRPS_CHECKPOINT_BATCHES, 10};
        for (long k = 20;; k += step) {
            struct drps_train_result r;
            train_remove(j->model);
            j->o.resume = 0;
            if (train_until(j->later, &j->o, k)) break;
            j->o.resume = 1;
            train_well(j->later, &j->o, &r, stores[s]);
            late += r.resumed_epoch > 2;
            if (r.already)
                assert_int_equal(r.content, j->want.content);
            else
                train_check_same(&r, &j->want, stores[s], k);
            drps_train_result_free(&r);
        }
        assert_true(late > 0); /* all rows that are used have been */
        end(j);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows_of_no_batch_stay),
        cmocka_unit_test(test_old_rows_and_the_delta_are_the_new_rows),
        cmocka_unit_test(test_deltas_that_cannot_be_are_refused),
        cmocka_unit_test(test_a_delta_comes_late),
        cmocka_unit_test(test_state_of_no_batch_stays),
        cmocka_unit_test(test_rows_of_no_batch_stay_through_a_kill),
    };
    return cmocka_run_group_tests_name("from_base", tests, NULL, NULL);
}
