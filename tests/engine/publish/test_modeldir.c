/* Models on disk: what is written is read, damage is named, nothing half-written looks like a
 * model. */
#include "support/plan_maker.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <sys/wait.h>

#include <jansson.h>

#include "base/drps_checksum.h"
#include "base/folder/drps_durable.h"
#include "base/folder/drps_manifest.h"
#include "engine/drps_engine.h"
#include "engine/publish/drps_modeldir.h"
#include "engine/publish/drps_publish.h"
#include "engine/publish/drps_trained.h"
#include "index/plan/drps_names.h"
#include "storage/kv/drps_kv.h"
#include "support/fault_io.h"

enum { FEATURES = 9000, MEMORY = 8 << 20 };

struct fixture {
    char *dir;
    struct maker m;
    struct drps_plan *plan;
};

static void setup(struct fixture *f, uint32_t features, uint32_t rank)
{
    memset(f, 0, sizeof(*f));
    f->dir = temp_make();
    maker_init(&f->m, rank ? "fm" : "lor", "logistic", features, 50);
    f->m.rank = rank;
    maker_random(&f->m, 500, 4, 0, 5);
    f->plan = maker_write(&f->m, f->dir, "plan");
}

static void teardown(struct fixture *f)
{
    drps_plan_close(f->plan);
    maker_free(&f->m);
    temp_remove(f->dir);
}

/* Rows of 2 parameters: parameter k of row i is i + k / 2. */
static void fill_rows(float *rows, uint64_t first, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        rows[2 * i] = (float)(first + i);
        rows[2 * i + 1] = (float)(first + i) + 0.5f;
    }
}

static void write_rows(const struct drps_kv_ops *kv, const char *path, uint64_t rows, size_t run,
                       uint64_t *content)
{
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_modelrows *w;
    float *buf = calloc(run, 2 * sizeof(*buf));
    if (drps_modelrows_open(kv, path, rows, 2, 8 << 20, &w, &err) < 0) fail_msg("%s", err.text);
    for (uint64_t first = 0; first < rows; first += run) {
        const size_t n = rows - first < run ? (size_t)(rows - first) : run;
        fill_rows(buf, first, n);
        if (drps_modelrows_add(w, first, n, buf, &err) < 0) fail_msg("%s", err.text);
    }
    if (drps_modelrows_finish(w, content, &err) < 0) fail_msg("%s", err.text);
    drps_modelrows_close(w);
    free(buf);
}

static struct drps_modeldir *open_model(const char *path, uint64_t memory)
{
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_modeldir *md;
    if (drps_modeldir_open(drps_io_os(), path, memory, &md, &err) < 0) fail_msg("%s", err.text);
    return md;
}

/* A name for each of so many rows. */
static void write_names(const char *path, uint64_t rows)
{
    struct names_writer *w;
    assert_int_equal(drps_names_writer_open(drps_io_os(), path, 0, &w, NULL), 0);
    for (uint32_t r = 0; r < rows; r++)
        assert_int_equal(drps_names_writer_add(w, maker_key(r), r, 0, NULL, 0, NULL), 0);
    assert_int_equal(drps_names_writer_finish(w, NULL), 0);
    drps_names_writer_close(w);
}

/* A whole model of `rows` rows of 2 floats, by hand. */
static char *write_model(struct fixture *f, const struct drps_kv_ops *kv, const char *name,
                         uint64_t rows, size_t run)
{
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_modeldir_info info = {
        .rows = rows, .block_rows = drps_modeldir_block_rows(2), .label_positive = 1};
    char *path = drps_path_join(f->dir, name);
    char *rows_path = drps_path_join(path, "rows");
    assert_int_equal(mkdir(path, 0777), 0);
    assert_int_equal(drps_model_init(&info.model, "fm", "squared", 1, 0, &err), 0);
    (void)snprintf(info.plan_id, sizeof(info.plan_id), "%s", f->plan->info.id);
    (void)snprintf(info.format, sizeof(info.format), "libsvm");
    info.hash_seed = UINT64_MAX - 3;
    info.model.seed = UINT64_MAX;
    info.model.bias_start = 0.1f;
    info.tables_n = 1;
    info.tables[0] = (struct drps_table){.name = "wv", .rows = rows};
    write_rows(kv, rows_path, rows, run, &info.content);
    char *names = drps_path_join(path, "names.rec");
    uint64_t bytes, sum;
    write_names(path, rows);
    assert_int_equal(drps_copy_file(drps_io_os(), names, NULL, &bytes, &sum, &err), 0);
    json_t *description = drps_modeldir_describe(&info, NULL);
    if (drps_modeldir_finish(drps_io_os(), path, kv->name, bytes, sum, description, &err) < 0)
        fail_msg("%s", err.text);
    json_decref(description);
    free(names);
    free(rows_path);
    return path;
}

/* Before --factors had its name, model.json called it "rank". */
static void test_modeldir_of_before_says_rank(void **state)
{
    struct fixture f;
    struct drps_err err = DRPS_ERR_INIT;
    json_t *j;
    (void)state;
    setup(&f, 60, 0);
    char *path = write_model(&f, *drps_kv_engines(), "model", 100, 777);
    char *manifest = drps_path_join(path, "model.json");
    if (drps_manifest_read(drps_io_os(), manifest, "drps-model", DRPS_MODELDIR_VERSION, &j, &err))
        fail_msg("%s", err.text);
    assert_null(json_object_get(j, "rank"));
    assert_int_equal(json_object_set(j, "rank", json_object_get(j, "factors")), 0);
    assert_int_equal(json_object_del(j, "factors"), 0);
    if (drps_manifest_write(drps_io_os(), manifest, j, &err) < 0) fail_msg("%s", err.text);
    json_decref(j);
    struct drps_modeldir *md = open_model(path, MEMORY);
    assert_int_equal(drps_modeldir_info(md)->model.factors, 1);
    drps_modeldir_close(md);
    free(manifest);
    free(path);
    teardown(&f);
}

static void test_modeldir_round_trip(void **state)
{
    static const uint64_t sizes[] = {1, 2047, 2048, 2049, 300000}; /* around a block of 2048 rows */
    (void)state;
    for (const struct drps_kv_ops *const *kv = drps_kv_engines(); *kv; kv++)
        if (!(*kv)->training_only)
            for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
                struct fixture f;
                struct drps_err err = DRPS_ERR_INIT;
                const uint64_t rows = sizes[i];
                setup(&f, 60, 0);
                char *path = write_model(&f, *kv, "model", rows, 777);
                char *again =
                    write_model(&f, *kv, "again", rows, 100000); /* other runs, same content */
                struct drps_modeldir *md = open_model(path, MEMORY);
                struct drps_modeldir *same = open_model(again, MEMORY);
                const struct drps_modeldir_info *info = drps_modeldir_info(md);
                assert_true(info->content == drps_modeldir_info(same)->content);
                assert_string_equal(info->plan_id, f.plan->info.id);
                assert_string_equal(info->store, (*kv)->name);
                assert_int_equal(info->model.algo, DRPS_ALGO_FM);
                assert_int_equal(info->model.loss, DRPS_LOSS_SQUARED);
                assert_int_equal(info->model.dim, 2);
                assert_true(info->model.bias_start == 0.1f);
                assert_true(info->hash_seed == UINT64_MAX - 3 && info->model.seed == UINT64_MAX);
                assert_int_equal(info->rows, rows);
                assert_string_equal(info->tables[0].name, "wv");
                if (drps_modeldir_verify(md, NULL, &err) < 0) fail_msg("%s", err.text);

                uint32_t *ids = calloc(rows, sizeof(*ids));
                float *params = calloc(rows, 2 * sizeof(*params));
                size_t n = 0;
                for (uint64_t r = 0; r < rows; r += 1 + r % 5)
                    ids[n++] = (uint32_t)r;
                for (int pass = 0; pass < 2; pass++) { /* the second finds blocks in memory */
                    assert_int_equal(drps_modeldir_gather(md, ids, n, params, &err), 0);
                    for (size_t k = 0; k < n; k++)
                        assert_true(params[2 * k] == (float)ids[k] &&
                                    params[2 * k + 1] == (float)ids[k] + 0.5f);
                }
                ids[0] = (uint32_t)rows;
                assert_int_equal(drps_modeldir_gather(md, ids, 1, params, &err), DRPS_E_CORRUPT);
                free(ids);
                free(params);
                drps_modeldir_close(md);
                drps_modeldir_close(same);
                free(path);
                free(again);
                teardown(&f);
            }
}

static void test_modeldir_gather_with_little_memory(void **state)
{
    enum { ROWS = 400000, PICKED = 4000 };
    (void)state;
    struct fixture f;
    struct drps_err err = DRPS_ERR_INIT;
    static uint32_t ids[PICKED];
    static float params[2 * PICKED];
    setup(&f, 60, 0);
    char *path = write_model(&f, drps_kv_engines()[0], "model", ROWS, 5000);
    struct drps_modeldir *md;
    assert_int_equal(drps_modeldir_open(drps_io_os(), path, 1 << 20, &md, &err),
                     DRPS_E_MEMORY_BUDGET);
    assert_null(md);
    drps_err_clear(&err);
    md = open_model(path,
                    7 << 19); /* fewer frames than the 196 blocks, which come round and round */
    for (uint64_t round = 0; round < 30; round++) {
        uint32_t at = (uint32_t)(drps_rng_at(1, round) % 50);
        for (size_t k = 0; k < PICKED; k++) {
            at += 1 + (uint32_t)(drps_rng_at(2, round * PICKED + k) % 98);
            ids[k] = at;
        }
        assert_int_equal(drps_modeldir_gather(md, ids, PICKED, params, &err), 0);
        for (size_t k = 0; k < PICKED; k++)
            if (params[2 * k] != (float)ids[k])
                fail_msg("round %u: row %u is %g", (unsigned)round, ids[k], (double)params[2 * k]);
    }
    drps_modeldir_close(md);
    free(path);
    teardown(&f);
}

static void test_modelrows_refuse_rows_out_of_order_or_missing(void **state)
{
    (void)state;
    struct fixture f;
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_modelrows *w;
    float rows[20];
    uint64_t content;
    setup(&f, 60, 0);
    char *path = drps_path_join(f.dir, "rows");
    fill_rows(rows, 0, 10);
    assert_int_equal(drps_modelrows_open(drps_kv_engines()[0], path, 20, 2, 8 << 20, &w, &err), 0);
    assert_int_equal(drps_modelrows_add(w, 0, 10, rows, &err), 0);
    assert_int_equal(drps_modelrows_add(w, 11, 5, rows, &err), -EINVAL);
    assert_int_equal(drps_modelrows_add(w, 10, 11, rows, NULL), -EINVAL);
    assert_int_equal(drps_modelrows_finish(w, &content, NULL), -EINVAL);
    drps_modelrows_close(w);
    free(path);
    teardown(&f);
}

/* ---- Damage ---- */

/* Flip a byte of dir/name at `at`, or, if negative, so far from its end. */
static void flip(const char *dir, const char *name, long at)
{
    char *path = drps_path_join(dir, name);
    FILE *f = fopen(path, "r+b");
    assert_non_null(f);
    assert_int_equal(fseek(f, at, at < 0 ? SEEK_END : SEEK_SET), 0);
    const long where = ftell(f);
    const int c = fgetc(f);
    assert_int_equal(fseek(f, where, SEEK_SET), 0);
    (void)fputc(c ^ 4, f);
    assert_int_equal(fclose(f), 0);
    free(path);
}

/* Open, verify and read everything; the first error. */
static int read_all(const char *path, struct drps_err *err)
{
    struct drps_modeldir *md;
    *err = (struct drps_err)DRPS_ERR_INIT;
    int rc = drps_modeldir_open(drps_io_os(), path, MEMORY, &md, err);
    if (rc == 0) rc = drps_modeldir_verify(md, NULL, err);
    drps_modeldir_close(md);
    return rc;
}

static void train_model(struct fixture *f, const char *store, char *path)
{
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_train_result r;
    const struct drps_train_options o = {.model_path = path, .epochs = 1, .model_store = store};
    if (drps_train_run(f->plan, &o, &r, &err) < 0) fail_msg("%s", err.text);
    drps_train_result_free(&r);
}

static void test_modeldir_damage_is_named(void **state)
{
    static const struct {
        const char *file;
        long at;
    } cases[] = {{"model.json", 40}, {"model.json", -3}, {"model.json", -300}, {"names.rec", 70},
                 {"names.rec", 20},  {"names.rec", -4},  {"names.rec", -40}};
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct fixture f;
        struct drps_err err;
        setup(&f, 100, 0);
        char *path = drps_path_join(f.dir, "model");
        train_model(&f, NULL, path);
        if (read_all(path, &err) != 0) fail_msg("%s", err.text);
        flip(path, cases[i].file, cases[i].at);
        const int rc = read_all(path, &err);
        if ((rc != DRPS_E_CORRUPT && rc != DRPS_E_VERSION) || !strstr(err.text, cases[i].file))
            fail_msg("%s at %ld: %d, %s", cases[i].file, cases[i].at, rc, err.text);
        free(path);
        teardown(&f);
    }
}

/* A byte is flipped in the middle of every file of the database that holds values. */
static void test_modeldir_damaged_rows_are_found(void **state)
{
    (void)state;
    for (const struct drps_kv_ops *const *kv = drps_kv_engines(); *kv; kv++) {
        if ((*kv)->training_only) continue;
        struct fixture f;
        struct drps_err err;
        int found = 0;
        setup(&f, FEATURES, 3);
        char *path = drps_path_join(f.dir, "model");
        train_model(&f, (*kv)->name, path);
        if (read_all(path, &err) != 0) fail_msg("%s", err.text);
        char *rows = drps_path_join(path, "rows");
        DIR *d = opendir(rows);
        const struct dirent *e;
        assert_non_null(d);
        while ((e = readdir(d))) {
            const char *dot = strrchr(e->d_name, '.');
            if (!dot || (strcmp(dot, ".sst") != 0 && strcmp(dot, ".ldb") != 0)) continue;
            flip(rows, e->d_name, 5000);
            found++;
        }
        closedir(d);
        assert_true(found > 0);
        const int rc = read_all(path, &err);
        if (rc != DRPS_E_CORRUPT || !strstr(err.text, "rows"))
            fail_msg("%s: %d, %s", (*kv)->name, rc, err.text);
        free(rows);
        free(path);
        teardown(&f);
    }
}

/* ---- Consistent damage: every checksum is right, and something is wrong ---- */

/* What is wrong with a model that is made by hand. */
struct wrong {
    const char *name, *wants;
    uint64_t rows_stored, rows_named; /* more or fewer than there are */
    uint32_t twice;                   /* this name has the row of the one before; 0: none has */
    float value;                      /* of a parameter */
    uint64_t content;                 /* is changed by */
};

enum { HAND_ROWS = 4096, HAND_ROW = 2500 }; /* two whole blocks */

static void write_wrong_names(const char *path, const struct wrong *w)
{
    struct names_writer *out;
    assert_int_equal(drps_names_writer_open(drps_io_os(), path, 0, &out, NULL), 0);
    for (uint32_t r = 0; r < HAND_ROWS + w->rows_named; r++) {
        const uint32_t row = w->twice && r == w->twice ? r - 1 : r;
        assert_int_equal(drps_names_writer_add(out, maker_key(r), row, 0, NULL, 0, NULL), 0);
    }
    assert_int_equal(drps_names_writer_finish(out, NULL), 0);
    drps_names_writer_close(out);
}

static void write_wrong_rows(const struct drps_kv_ops *kv, const char *path, const struct wrong *w,
                             uint64_t *content)
{
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_modelrows *out;
    const size_t n = HAND_ROWS + (size_t)w->rows_stored;
    float *rows = calloc(n, 2 * sizeof(*rows));
    fill_rows(rows, 0, n);
    if (w->value != 0) rows[2 * HAND_ROW + 1] = w->value;
    if (drps_modelrows_open(kv, path, n, 2, 8 << 20, &out, &err) < 0) fail_msg("%s", err.text);
    assert_int_equal(drps_modelrows_add(out, 0, n, rows, &err), 0);
    assert_int_equal(drps_modelrows_finish(out, content, &err), 0);
    *content = drps_checksum(rows, HAND_ROWS * 2 * sizeof(*rows)) + w->content;
    drps_modelrows_close(out);
    free(rows);
}

static char *write_wrong_model(struct fixture *f, const struct drps_kv_ops *kv,
                               const struct wrong *w)
{
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_modeldir_info info = {
        .rows = HAND_ROWS, .block_rows = drps_modeldir_block_rows(2), .label_positive = 1};
    char *path = drps_path_join(f->dir, "model"), *rows = drps_path_join(path, "rows");
    char *names = drps_path_join(path, "names.rec");
    uint64_t bytes, sum;
    assert_int_equal(mkdir(path, 0777), 0);
    assert_int_equal(drps_model_init(&info.model, "fm", "squared", 1, 0, &err), 0);
    (void)snprintf(info.plan_id, sizeof(info.plan_id), "%s", f->plan->info.id);
    (void)snprintf(info.format, sizeof(info.format), "libsvm");
    info.tables_n = 1;
    info.tables[0] = (struct drps_table){.name = "wv", .rows = HAND_ROWS};
    write_wrong_rows(kv, rows, w, &info.content);
    write_wrong_names(path, w);
    assert_int_equal(drps_copy_file(drps_io_os(), names, NULL, &bytes, &sum, &err), 0);
    json_t *j = drps_modeldir_describe(&info, NULL);
    if (drps_modeldir_finish(drps_io_os(), path, kv->name, bytes, sum, j, &err) < 0)
        fail_msg("%s", err.text);
    json_decref(j);
    free(names);
    free(rows);
    return path;
}

static void test_modeldir_verify_finds_what_does_not_agree(void **state)
{
    static const struct wrong cases[] = {
        {.name = "nothing", .wants = ""},
        {.name = "a parameter is no number",
         .wants = "rows: parameter 1 of row 2500 is no number",
         .value = NAN},
        {.name = "one is infinite",
         .wants = "rows: parameter 1 of row 2500 is no number",
         .value = -INFINITY},
        {.name = "content",
         .wants = "rows: the parameters are not those that were written",
         .content = 1},
        {.name = "rows behind the last block",
         .wants = "has rows behind the 4096",
         .rows_stored = 5000},
        {.name = "two names, one row",
         .wants = "names.rec: name 7 (key 000000000000001a, row 6) has the row of another name",
         .twice = 7},
        {.name = "fewer names",
         .wants = "names.rec has 4086 names; the tables have 4096 rows",
         .rows_named = UINT64_MAX - 9},
        {.name = "more names",
         .wants = "names.rec: name 4096 (key 0000000000003005, row 4096) has a row outside",
         .rows_named = 10},
    };
    (void)state;
    for (const struct drps_kv_ops *const *kv = drps_kv_engines(); *kv; kv++) {
        for (size_t i = 0; !(*kv)->training_only && i < sizeof(cases) / sizeof(*cases); i++) {
            struct fixture f;
            struct drps_err err = DRPS_ERR_INIT;
            setup(&f, 60, 0);
            char *path = write_wrong_model(&f, *kv, &cases[i]);
            const int rc = read_all(path, &err);
            if (rc != (*cases[i].wants ? DRPS_E_CORRUPT : 0) || !strstr(err.text, cases[i].wants))
                fail_msg("%s, %s: %d, %s", (*kv)->name, cases[i].name, rc, err.text);
            free(path);
            teardown(&f);
        }
    }
}

/* ---- Nets ---- */

struct net_case {
    const char *name, *net, *wants;
    uint64_t rows; /* of the table of the net */
    uint32_t fields;
    int no_bias;
    const char *format; /* NULL: libsvm */
    uint32_t most;      /* samples of a sequence; 0: there are none */
};

/* A model of two floats a row that has this net, and tables that say so, or not. */
static char *write_net_model(struct fixture *f, const struct drps_kv_ops *kv,
                             const struct net_case *c)
{
    const struct wrong nothing = {.name = ""};
    const struct drps_model_terms terms = {.algo = "net", .loss = "squared", .net = c->net};
    struct drps_modeldir_info info = {
        .rows = HAND_ROWS, .block_rows = drps_modeldir_block_rows(2), .label_positive = 1};
    struct drps_err err = DRPS_ERR_INIT;
    char *path = drps_path_join(f->dir, "model"), *rows = drps_path_join(path, "rows");
    char *names = drps_path_join(path, "names.rec");
    uint64_t bytes, sum;
    assert_int_equal(mkdir(path, 0777), 0);
    if (drps_model_settle(&info.model, &terms, &err) < 0 ||
        drps_model_set_fields(&info.model, 0, 0, &err) < 0)
        fail_msg("%s: %s", c->name, err.text);
    info.model.has_bias = !c->no_bias;
    info.model.fields = c->fields;
    (void)snprintf(info.plan_id, sizeof(info.plan_id), "%s", f->plan->info.id);
    info.sequences.most = c->most;
    (void)snprintf(info.format, sizeof(info.format), "%s", c->format ? c->format : "libsvm");
    info.tables_n = 2;
    info.tables[0] = (struct drps_table){.name = "net", .rows = c->rows};
    info.tables[1] =
        (struct drps_table){.name = "wv", .first = c->rows, .rows = HAND_ROWS - c->rows};
    write_wrong_rows(kv, rows, &nothing, &info.content);
    write_wrong_names(path, &nothing);
    assert_int_equal(drps_copy_file(drps_io_os(), names, NULL, &bytes, &sum, &err), 0);
    json_t *j = drps_modeldir_describe(&info, NULL);
    if (drps_modeldir_finish(drps_io_os(), path, kv->name, bytes, sum, j, &err) < 0)
        fail_msg("%s", err.text);
    json_decref(j);
    free(names);
    free(rows);
    return path;
}

static void check_nets(const struct net_case *cases, size_t n)
{
    const struct drps_kv_ops *const *kv = drps_kv_engines();
    while ((*kv)->training_only)
        kv++;
    for (size_t i = 0; i < n; i++) {
        struct fixture f;
        struct drps_modeldir *md = NULL;
        struct drps_err err = DRPS_ERR_INIT;
        setup(&f, 60, 0);
        char *path = write_net_model(&f, *kv, &cases[i]);
        const int rc = drps_modeldir_open(drps_io_os(), path, MEMORY, &md, &err);
        if (rc != (*cases[i].wants ? DRPS_E_CORRUPT : 0) || !strstr(err.text, cases[i].wants))
            fail_msg("%s: %d, %s", cases[i].name, rc, err.text);
        drps_modeldir_close(md);
        free(path);
        teardown(&f);
    }
}

/* The net has 1 intercept, b of the bag, and W and b of the full layer: two rows of two floats. */
static void test_modeldir_refuses_a_net_that_is_not_in_its_rows(void **state)
{
    static const char small[] = "x = bag 1\nscore = full 1 x\n";
    static const char larger[] = "x = bag 1\nh = full 4 x\nscore = full 1 h\n";
    static const struct net_case cases[] = {
        {.name = "whole", .net = small, .wants = "", .rows = 2},
        {.name = "fewer rows", .net = small, .wants = "rows of no feature", .rows = 1},
        {.name = "more rows", .net = small, .wants = "rows of no feature", .rows = 3},
        {.name = "a larger net", .net = larger, .wants = "rows of no feature", .rows = 2},
        {.name = "no intercept",
         .net = small,
         .wants = "rows of no feature",
         .rows = 2,
         .no_bias = 1},
        {.name = "fields", .net = small, .wants = "and 5 fields", .rows = 2, .fields = 5},
    };
    (void)state;
    check_nets(cases, sizeof(cases) / sizeof(*cases));
}

/* The net has 16 parameters: the intercept, b of the bag, 12 of the lstm, and 2 of the full layer.
 */
static void test_modeldir_refuses_sequences_that_are_not_the_nets(void **state)
{
    static const char net[] = "x = bag 1\nh = lstm 1 x\nscore = full 1 h\n";
    static const char other[] = "x = bag 1\nscore = full 1 x\n";
    static const struct net_case cases[] = {
        {.name = "whole",
         .net = net,
         .wants = "",
         .rows = 8,
         .fields = 2,
         .format = "tokens",
         .most = 9},
        {.name = "none",
         .net = net,
         .wants = "sequences of 0",
         .rows = 8,
         .fields = 2,
         .format = "tokens"},
        {.name = "too long",
         .net = net,
         .wants = "sequences of 1025",
         .rows = 8,
         .fields = 2,
         .format = "tokens",
         .most = 1025},
        {.name = "another format",
         .net = net,
         .wants = "in format libsvm",
         .rows = 8,
         .fields = 2,
         .most = 9},
        {.name = "a field more",
         .net = net,
         .wants = "with 3 fields",
         .rows = 8,
         .fields = 3,
         .format = "tokens",
         .most = 9},
        {.name = "no fields",
         .net = net,
         .wants = "and 0 fields",
         .rows = 8,
         .format = "tokens",
         .most = 9},
        {.name = "a net that reads none",
         .net = other,
         .wants = "a net that reads none",
         .rows = 2,
         .most = 9},
        {.name = "a format of sequences",
         .net = other,
         .wants = "a net that reads none",
         .rows = 2,
         .format = "tokens"},
    };
    (void)state;
    check_nets(cases, sizeof(cases) / sizeof(*cases));
}

static void test_modeldir_missing_parts(void **state)
{
    (void)state;
    struct fixture f;
    struct drps_err err;
    setup(&f, 100, 0);
    char *path = drps_path_join(f.dir, "model");
    assert_int_equal(read_all(path, &err), DRPS_E_NOT_FOUND);
    assert_non_null(strstr(err.text, "No such file or directory"));
    assert_int_equal(read_all(f.m.dir, &err), DRPS_E_NOT_FOUND); /* a plan is no model */
    train_model(&f, NULL, path);
    char *names = drps_path_join(path, "names.rec");
    assert_int_equal(unlink(names), 0);
    assert_int_equal(read_all(path, &err), -ENOENT);
    assert_non_null(strstr(err.text, "names.rec"));
    free(names);
    free(path);
    teardown(&f);
}

/* ---- The dictionary ---- */

/* Put a dictionary in the place of the plan's that is whole, and has another row for a name. */
static void exchange_names(const struct fixture *f)
{
    struct names_writer *w;
    assert_int_equal(drps_names_writer_open(drps_io_os(), f->m.dir, 0, &w, NULL), 0);
    for (uint32_t i = 0; i < f->m.features; i++) {
        const uint32_t row = i < 2 ? 2 - i : i + 1;
        assert_int_equal(drps_names_writer_add(w, maker_key(i), row, 0, NULL, 0, NULL), 0);
    }
    assert_int_equal(drps_names_writer_finish(w, NULL), 0);
    drps_names_writer_close(w);
}

static void check_names_refused(int rc, const struct drps_err *err)
{
    if (rc != DRPS_E_CORRUPT || !strstr(err->text, "plan/names.rec is not the file"))
        fail_msg("%d '%s'", rc, err->text);
}

static void count_epoch(void *ctx, const struct drps_epoch *epoch)
{
    (void)epoch;
    ++*(int *)ctx;
}

static void test_modeldir_names_of_another_plan_are_not_trained_with(void **state)
{
    (void)state;
    struct fixture f;
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_train_result r;
    struct stat st;
    int epochs = 0;
    setup(&f, 100, 0);
    exchange_names(&f);
    char *path = drps_path_join(f.dir, "model");
    const struct drps_train_options o = {
        .model_path = path, .epochs = 1, .on_epoch = count_epoch, .ctx = &epochs};
    check_names_refused(drps_train_run(f.plan, &o, &r, &err), &err);
    assert_int_equal(epochs, 0);
    assert_int_not_equal(stat(path, &st), 0);
    drps_train_result_free(&r);
    free(path);
    teardown(&f);
}

static void exchange_names_meanwhile(void *fixture, const struct drps_epoch *epoch)
{
    (void)epoch;
    exchange_names(fixture);
}

/* The model's dictionary is the one that training began with. */
static void test_modeldir_names_that_changed_meanwhile_are_not_copied(void **state)
{
    (void)state;
    struct fixture f;
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_train_result r;
    struct drps_modeldir *md;
    const uint64_t keys[] = {maker_key(0), maker_key(1)};
    uint32_t rows[2];
    setup(&f, 100, 0);
    char *path = drps_path_join(f.dir, "model");
    const struct drps_train_options o = {
        .model_path = path, .epochs = 1, .on_epoch = exchange_names_meanwhile, .ctx = &f};
    assert_int_equal(drps_train_run(f.plan, &o, &r, &err), 0);
    assert_int_equal(drps_modeldir_open(drps_io_os(), path, MEMORY, &md, &err), 0);
    assert_int_equal(drps_modeldir_lookup(md, keys, 2, rows, &err), 0);
    assert_int_equal(rows[0], 1); /* 2 in the exchanged one */
    assert_int_equal(rows[1], 2);
    drps_modeldir_close(md);
    drps_train_result_free(&r);
    free(path);
    teardown(&f);
}

/* ---- Every byte ---- */

enum { FLIPS = 100, TAIL = 600, TAIL_STEP = 3 * DRPS_TEST_ONE_IN };

struct reading {
    const char *model;
    uint32_t *rows; /* [features] of names */
    float *params;  /* [rows][dim] */
};

/* What prediction reads, names and rows. */
static int read_as_prediction(const struct fixture *f, struct reading *r, struct drps_err *err)
{
    struct drps_modeldir *md;
    int rc = drps_modeldir_open(drps_io_os(), r->model, MEMORY, &md, err);
    for (uint32_t i = 0; i < f->m.features && rc == 0; i++) {
        const uint64_t key = maker_key(i);
        rc = drps_modeldir_lookup(md, &key, 1, &r->rows[i], err);
        if (rc == 0 && r->rows[i] == DRPS_NO_ROW) continue;
        if (rc == 0) rc = drps_modeldir_gather(md, &r->rows[i], 1, &r->params[4 * i], err);
    }
    drps_modeldir_close(md);
    return rc;
}

/* Engines write to what they open: damage is done to a copy of the model. */
static void copy_model(const char *from, const char *to)
{
    char *command;
    if (asprintf(&command, "rm -rf '%s' && cp -r '%s' '%s'", to, from, to) < 0) fail();
    assert_int_equal(system(command), 0);
    free(command);
}

/* One flip: found when the model is verified, or of no consequence. */
static void check_flip(const struct fixture *f, const char *model, const char *copy,
                       const char *file, long at, const struct reading *want)
{
    struct drps_err err = DRPS_ERR_INIT;
    const size_t n = f->m.features;
    struct reading got = {.model = copy, .rows = calloc(n, 4), .params = calloc(4 * n, 4)};
    copy_model(model, copy);
    flip(copy, file, at);
    if (read_all(copy, &err) == 0) {
        drps_err_clear(&err);
        copy_model(model, copy); /* opening may have mended it */
        flip(copy, file, at);
        if (read_as_prediction(f, &got, &err) < 0)
            fail_msg("%s at %ld: verified, but: %s", file, at, err.text);
        assert_memory_equal(got.rows, want->rows, n * sizeof(*got.rows));
        assert_memory_equal(got.params, want->params, 4 * n * sizeof(*got.params));
    }
    free(got.rows);
    free(got.params);
}

static void check_flips(const struct fixture *f, const char *model, const char *copy,
                        const char *file, const struct reading *want)
{
    struct stat st;
    char *path = drps_path_join(model, file);
    assert_int_equal(stat(path, &st), 0);
    const long flips = FLIPS / DRPS_TEST_ONE_IN;
    const long step = st.st_size / flips + 1;
    for (long at = 0; at < st.st_size; at += step)
        check_flip(f, model, copy, file, at, want);
    /* A table ends with indexes and filters, which only a look for a key reads. */
    const int table = strstr(file, ".ldb") || strstr(file, ".sst");
    const long tail = st.st_size > TAIL ? st.st_size - TAIL : 0;
    for (long at = tail; table && at < st.st_size; at += TAIL_STEP)
        check_flip(f, model, copy, file, at, want);
    free(path);
}

static void test_modeldir_flipped_bytes_are_found_or_do_not_matter(void **state)
{
    (void)state;
    for (const struct drps_kv_ops *const *kv = drps_kv_engines(); *kv; kv++) {
        if ((*kv)->training_only) continue;
        struct fixture f;
        struct drps_err err = DRPS_ERR_INIT;
        setup(&f, 2000, 3);
        const size_t n = f.m.features;
        char *model = drps_path_join(f.dir, "model"), *copy = drps_path_join(f.dir, "copy");
        struct reading want = {.model = copy, .rows = calloc(n, 4), .params = calloc(4 * n, 4)};
        train_model(&f, (*kv)->name, model);
        copy_model(model, copy);
        if (read_as_prediction(&f, &want, &err) < 0) fail_msg("%s", err.text);
        check_flips(&f, model, copy, "model.json", &want);
        check_flips(&f, model, copy, "names.rec", &want);
        char *rows = drps_path_join(model, "rows");
        DIR *d = opendir(rows);
        const struct dirent *e;
        assert_non_null(d);
        while ((e = readdir(d))) {
            char file[300];
            if (e->d_name[0] == '.') continue;
            (void)snprintf(file, sizeof(file), "rows/%s", e->d_name);
            check_flips(&f, model, copy, file, &want);
        }
        closedir(d);
        free(rows);
        free(want.rows);
        free(want.params);
        free(model);
        free(copy);
        teardown(&f);
    }
}

/* ---- Interrupted writing ---- */

static const char train_forever[] =
    "--train-forever"; /* PLAN MODEL: this program as the one that is killed */

static void told_step(void *ctx, const struct drps_train_progress *p)
{
    (void)ctx;
    (void)p;
    if (write(STDOUT_FILENO, "x", 1) != 1) _exit(3);
}

static int train_until_killed(const char *plan_path, const char *model_path)
{
    struct drps_plan *plan;
    struct drps_train_result r;
    const struct drps_train_options o = {
        .model_path = model_path, .epochs = 1000000000, .on_progress = told_step};
    if (drps_plan_open(drps_io_os(), plan_path, &plan, NULL) < 0) return 2;
    return drps_train_run(plan, &o, &r, NULL) < 0 ? 2 : 0;
}

/* Asks for the end with the first read after `armed`: that of names.rec, which is small. */
struct stopping {
    atomic_int stop;
    int armed;
};

static ssize_t stopping_pread(void *ctx, int fd, void *buf, size_t n, uint64_t offset)
{
    struct stopping *s = ctx;
    if (s->armed) atomic_store(&s->stop, 1);
    return drps_io_os()->ops->pread(NULL, fd, buf, n, offset);
}

/* The engine reads by itself: the stop flag ends that, too. */
static void test_modeldir_verify_is_interrupted(void **state)
{
    (void)state;
    struct fixture f;
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_modeldir *md;
    struct stopping s = {0, 0};
    struct drps_io_ops ops = *drps_io_os()->ops;
    const struct drps_io io = {.ops = &ops, .ctx = &s, .stop = &s.stop};
    ops.pread = stopping_pread;
    setup(&f, 400, 0);
    char *path = drps_path_join(f.dir, "model");
    train_model(&f, NULL, path);
    if (drps_modeldir_open(&io, path, MEMORY, &md, &err) < 0) fail_msg("%s", err.text);
    if (drps_modeldir_verify(md, NULL, &err) < 0) fail_msg("%s", err.text);
    s.armed = 1;
    assert_int_equal(drps_modeldir_verify(md, NULL, &err), DRPS_E_INTERRUPTED);
    drps_modeldir_close(md);
    free(path);
    teardown(&f);
}

/* A pipe among the engine's files would keep it waiting. */
static void test_modeldir_pipes_are_refused(void **state)
{
    (void)state;
    struct fixture f;
    struct drps_err err = DRPS_ERR_INIT;
    setup(&f, 400, 0);
    char *path = drps_path_join(f.dir, "model");
    char *pipe_path = drps_path_join(path, "rows/CURRENT");
    train_model(&f, NULL, path);
    assert_int_equal(unlink(pipe_path), 0);
    assert_int_equal(mkfifo(pipe_path, 0600), 0);
    assert_int_equal(read_all(path, &err), DRPS_E_CORRUPT);
    assert_non_null(strstr(err.text, "rows/CURRENT is a pipe"));
    free(pipe_path);
    free(path);
    teardown(&f);
}

/* A process killed in the middle leaves nothing under the model's name, and does not keep the next
 * one from it. */
static void test_modeldir_killed_training_leaves_no_model(void **state)
{
    (void)state;
    struct fixture f;
    struct drps_err err = DRPS_ERR_INIT;
    struct stat st;
    int ends[2];
    char byte;
    setup(&f, 400, 0);
    char *path = drps_path_join(f.dir, "model");
    char *partial = drps_path_join(f.dir, "model.partial");
    assert_int_equal(pipe(ends), 0);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        char *const argv[] = {(char *)"test_modeldir", (char *)train_forever, f.m.dir, path, NULL};
        if (dup2(ends[1], STDOUT_FILENO) >= 0) (void)execv("/proc/self/exe", argv);
        _exit(127);
    }
    (void)close(ends[1]);
    assert_int_equal(read(ends[0], &byte, 1), 1); /* it trains */
    assert_int_equal(stat(partial, &st), 0);
    struct drps_train_result r;
    const struct drps_train_options o = {.model_path = path, .epochs = 1};
    assert_int_equal(drps_train_run(f.plan, &o, &r, &err), -EBUSY); /* two at a time do not mix */
    drps_train_result_free(&r);
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_int_not_equal(stat(path, &st), 0);
    assert_int_equal(read_all(partial, &err), DRPS_E_NOT_FOUND);
    train_model(&f, NULL, path);
    if (read_all(path, &err) != 0) fail_msg("%s", err.text);
    assert_int_not_equal(stat(partial, &st), 0);
    (void)close(ends[0]);
    free(path);
    free(partial);
    teardown(&f);
}

/* ---- Failing calls ---- */

/* What a failed run has kept becomes the model that it would have made. */
static void publish_kept(const char *kept, const char *path, uint64_t content)
{
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_publish_result done;
    struct stat st;
    const struct drps_publish_options o = {.folder = kept, .model_path = path, .replace = 1};
    if (drps_publish_run(drps_io_os(), &o, &done, &err) < 0) fail_msg("%s: %s", kept, err.text);
    assert_true(done.content == content);
    assert_int_not_equal(lstat(kept, &st), 0);
    if (read_all(path, &err) != 0) fail_msg("%s", err.text);
}

/* Whatever call fails, once or from then on: an error, and either no model or a whole one; and what
 * was trained, once it is whole on disk, can be published. */
static void test_modeldir_failing_calls_leave_no_half_model(void **state)
{
    static const unsigned ops = FAULT_OPEN | FAULT_READ | FAULT_PREAD | FAULT_PWRITE | FAULT_FSYNC |
                                FAULT_SIZE | FAULT_RENAME | FAULT_MKDIR | FAULT_FALLOCATE |
                                FAULT_FTRUNCATE;
    static const struct {
        const char *name;
        int persistent;
        enum fault_effect effect;
    } cases[] = {
        {"once", 0, FAULT_ERROR}, {"from then on", 1, FAULT_ERROR}, {"torn", 0, FAULT_TORN}};
    (void)state;
    struct fixture f;
    setup(&f, 100, 0);
    char *path = drps_path_join(f.dir, "model");
    char *left = drps_path_join(f.dir, "model.partial");
    struct drps_train_result whole;
    const struct drps_train_options undisturbed = {.model_path = path, .epochs = 2};
    assert_int_equal(drps_train_run(f.plan, &undisturbed, &whole, NULL), 0);
    const uint64_t content = whole.content;
    drps_train_result_free(&whole);
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        int rc = -1, kept = 0, fired = 1;
        for (long count = 1; fired; count++) { /* until the fault comes too late */
            struct drps_err err = DRPS_ERR_INIT;
            struct drps_plan *plan;
            struct drps_train_result r = {.epochs_n = 0};
            struct stat st;
            struct fault_io *io = fault_io_new(drps_io_os());
            fault_io_arm(io, ops, count, cases[i].persistent, cases[i].effect, -EIO);
            const struct drps_train_options o = {.model_path = path, .epochs = 2, .replace = 1};
            rc = drps_plan_open(&io->io, f.m.dir, &plan, &err);
            if (rc == 0) {
                rc = drps_train_run(plan, &o, &r, &err);
                drps_plan_close(plan);
            }
            if (rc < 0 && (err.code != rc || !err.text[0]))
                fail_msg("%s %ld: no text", cases[i].name, count);
            /* a fault that nobody noticed would be a silent loss, unless it left the old model, or
             * was a sync of a folder that goes */
            const int goes = !strcmp(io->struck, left) || strstr(io->struck, DRPS_TRAINED_SUFFIX);
            if (rc == 0 && io->fired && !goes && stat(left, &st))
                fail_msg("%s %ld: the fault was ignored", cases[i].name, count);
            assert_int_equal(io->unsynced_at_rename, 0);
            fired = io->fired;
            fault_io_free(io);
            struct drps_err damage;
            if (stat(path, &st) == 0 && read_all(path, &damage) != 0)
                fail_msg("%s %ld: %s", cases[i].name, count, damage.text);
            if (r.kept) {
                if (!strstr(err.text, "what was trained is kept in "))
                    fail_msg("%s %ld: %d, %s", cases[i].name, count, rc, err.text);
                publish_kept(r.kept, path, content);
                kept++;
            }
            drps_train_result_free(&r);
            assert_true(count < 500);
        }
        assert_true(kept > 10); /* each of the calls that publish */
    }
    free(left);
    free(path);
    teardown(&f);
}

int main(int argc, char **argv)
{
    if (argc == 4 && strcmp(argv[1], train_forever) == 0)
        return train_until_killed(argv[2], argv[3]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_modeldir_round_trip),
        cmocka_unit_test(test_modeldir_of_before_says_rank),
        cmocka_unit_test(test_modeldir_gather_with_little_memory),
        cmocka_unit_test(test_modelrows_refuse_rows_out_of_order_or_missing),
        cmocka_unit_test(test_modeldir_damage_is_named),
        cmocka_unit_test(test_modeldir_damaged_rows_are_found),
        cmocka_unit_test(test_modeldir_verify_finds_what_does_not_agree),
        cmocka_unit_test(test_modeldir_refuses_a_net_that_is_not_in_its_rows),
        cmocka_unit_test(test_modeldir_refuses_sequences_that_are_not_the_nets),
        cmocka_unit_test(test_modeldir_missing_parts),
        cmocka_unit_test(test_modeldir_verify_is_interrupted),
        cmocka_unit_test(test_modeldir_pipes_are_refused),
        cmocka_unit_test(test_modeldir_names_of_another_plan_are_not_trained_with),
        cmocka_unit_test(test_modeldir_names_that_changed_meanwhile_are_not_copied),
        cmocka_unit_test(test_modeldir_flipped_bytes_are_found_or_do_not_matter),
        cmocka_unit_test(test_modeldir_killed_training_leaves_no_model),
        cmocka_unit_test(test_modeldir_failing_calls_leave_no_half_model),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
