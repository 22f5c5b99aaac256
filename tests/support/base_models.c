#include "support/base_models.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "engine/cluster/drps_ranks.h"
#include "storage/kv/drps_kv.h"
#include "support/fuzz_check.h"

enum { ENGINES = 2, VALUES = 64, EDITS_MOST = 8, VALUE_MOST = 1 << 18 };

struct value {
    uint32_t key;
    uint8_t *data; /* own */
    size_t bytes;
};

struct base_model {
    const struct base *base;
    const struct drps_kv_ops *ops;
    char rows[SCRATCH_PATH_BYTES]; /* the database as it was trained */
    struct edited *folder;
    struct value values[VALUES];
    size_t n;
};

const char *base_model_input(const struct base_model *m)
{
    return m->base->input;
}

/* ---- Training ---- */

static void train(const struct base *b, const char *path, const char *engine)
{
    struct drps_train_options o = {
        .model_path = path, .epochs = 2, .model_store = engine, .memory_bytes = 512 << 20};
    const struct drps_ranks_options ranks = {
        .plan = b->plan, .train = &o, .transport = DRPS_RANKS_INPROC};
    struct drps_train_result result = {0};
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_plan *plan;
    if (b->ranks > 1) {
        CHECK_OK(drps_ranks_run_local(&ranks, b->ranks, &result, &err));
    } else {
        CHECK_OK(drps_plan_open(drps_io_os(), b->plan, &plan, &err));
        CHECK_OK(drps_train_run(plan, &o, &result, &err));
        drps_plan_close(plan);
    }
    drps_train_result_free(&result);
}

static int keep_value(void *ctx, uint32_t key, const void *data, size_t bytes, struct drps_err *err)
{
    struct base_model *m = ctx;
    struct value *v = &m->values[m->n++];
    (void)err;
    CHECK(m->n <= VALUES);
    *v = (struct value){key, malloc(bytes + 1), bytes};
    CHECK(v->data);
    memcpy(v->data, data, bytes);
    return 0;
}

static void read_values(struct base_model *m)
{
    const struct drps_kv_options o = {.read_only = 1, .bulk = 1};
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_kv *kv;
    CHECK_OK(m->ops->open(m->rows, &o, &kv, &err));
    CHECK_OK(m->ops->scan(kv, 0, UINT32_MAX, keep_value, m, &err));
    m->ops->close(kv);
}

static void make(struct base_model *m, unsigned plan, unsigned engine)
{
    char name[32], path[SCRATCH_PATH_BYTES];
    (void)snprintf(name, sizeof(name), "base-%u-model-%u", plan, engine);
    (void)snprintf(path, sizeof(path), "%s", scratch_path(base_scratch(), name));
    m->base = base_plan((enum base_plan)plan);
    m->ops = drps_kv_engines()[engine];
    (void)snprintf(name, sizeof(name), "base-%u-model-%u/rows", plan, engine);
    (void)snprintf(m->rows, sizeof(m->rows), "%s", scratch_path(base_scratch(), name));
    train(m->base, path, m->ops->name);
    read_values(m);
    m->folder = edited_read(path, "rows");
}

const struct base_model *base_model(unsigned plan, unsigned engine)
{
    static struct base_model models[BASE_PLANS][ENGINES];
    unsigned engines = 0;
    while (engines < ENGINES && drps_kv_engines()[engines] &&
           !drps_kv_engines()[engines]->training_only)
        engines++;
    plan %= BASE_PLANS;
    engine %= engines; /* a build has one at least */
    struct base_model *m = &models[plan][engine];
    if (!m->folder) make(m, plan, engine);
    return m;
}

/* ---- Writing ---- */

static void copy_file(const char *from, const char *to)
{
    size_t n;
    char *data = scratch_read(from, &n);
    scratch_write(to, data, n);
    free(data);
}

static void copy_folder(const char *from, const char *to)
{
    DIR *dir = opendir(from);
    CHECK(dir && mkdir(to, 0777) == 0);
    for (const struct dirent *e; (e = readdir(dir));) {
        if (e->d_name[0] == '.') continue;
        char *a = drps_path_join(from, e->d_name), *b = drps_path_join(to, e->d_name);
        CHECK(a && b);
        copy_file(a, b);
        free(a);
        free(b);
    }
    (void)closedir(dir); /* only read */
}

static void resize(struct value *v, size_t bytes)
{
    uint8_t *data = realloc(v->data, bytes + 1);
    CHECK(data);
    if (bytes > v->bytes) memset(data + v->bytes, 0, bytes - v->bytes);
    v->data = data;
    v->bytes = bytes;
}

/* Operands: the value, and what the edit takes. */
static void edit_value(struct base_model *m, struct script *s)
{
    const unsigned what = script_byte(s) % 5;
    struct value *v = &m->values[script_byte(s) % m->n];
    const size_t at = v->bytes ? (size_t)script_number(s, 2) % v->bytes / 4 * 4 : 0;
    const uint32_t word = (uint32_t)script_number(s, 4);
    switch (what) {
    case 0: /* a number */
        if (v->bytes >= 4) memcpy(v->data + at, &word, sizeof(word));
        break;
    case 1: /* shorter */
        resize(v, at);
        break;
    case 2: /* longer */
        if (v->bytes + (word & 0xffff) <= VALUE_MOST) resize(v, v->bytes + (word & 0xffff));
        break;
    case 3: /* gone */
        if (m->n == 1) break;
        free(v->data);
        *v = m->values[--m->n];
        break;
    default: /* another key */
        v->key = word;
    }
}

static int by_key(const void *a, const void *b)
{
    const struct value *x = a, *y = b;
    return x->key < y->key ? -1 : x->key > y->key;
}

static void write_values(struct base_model *m, const char *path)
{
    const struct drps_kv_options o = {.create = 1, .bulk = 1};
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_kv *kv;
    CHECK_OK(m->ops->open(path, &o, &kv, &err));
    qsort(m->values, m->n, sizeof(*m->values), by_key);
    for (size_t i = 0; i < m->n; i++) {
        const struct value *v = &m->values[i];
        const void *data = v->data;
        CHECK_OK(m->ops->put_many(kv, &v->key, 1, &data, &v->bytes, &err));
    }
    CHECK_OK(m->ops->sync(kv, &err));
    m->ops->close(kv);
}

static void write_edited(const struct base_model *m, unsigned edits, struct script *s,
                         const char *path)
{
    struct base_model *c = malloc(sizeof(*c));
    CHECK(c);
    memcpy(c, m, sizeof(*c));
    for (size_t i = 0; i < c->n; i++) {
        c->values[i].data = malloc(c->values[i].bytes + 1);
        CHECK(c->values[i].data);
        memcpy(c->values[i].data, m->values[i].data, m->values[i].bytes);
    }
    for (unsigned i = 0; i < edits; i++)
        edit_value(c, s);
    write_values(c, path);
    for (size_t i = 0; i < c->n; i++)
        free(c->values[i].data);
    free(c);
}

void base_model_write(const struct base_model *m, struct script *s, const char *dir)
{
    const unsigned edits = script_byte(s) % EDITS_MOST;
    struct script values = *s;
    enum { EDIT_BYTES = 8 };
    for (unsigned i = 0; i < edits * EDIT_BYTES; i++)
        (void)script_byte(s);
    if (values.left > edits * EDIT_BYTES) values.left = edits * EDIT_BYTES;
    edited_write(m->folder, s, dir);
    char *rows = drps_path_join(dir, "rows");
    CHECK(rows);
    if (edits)
        write_edited(m, edits, &values, rows);
    else
        copy_folder(m->rows, rows);
    free(rows);
}
