#include "support/ratings_model.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>
#include <jansson.h>

#include "base/folder/drps_durable.h"
#include "engine/publish/drps_modeldir.h"
#include "index/plan/drps_names_writer.h"
#include "index/reader/drps_reader.h"

static void *array(size_t n, size_t size)
{
    void *a = calloc(n ? n : 1, size);
    assert_non_null(a);
    return a;
}

/* ---- Making ---- */

/* Each row but the intercept's is one user's or item's. */
static void number(struct ratings_model *m, struct random_source *r)
{
    const size_t n = m->users + m->items;
    uint32_t *rows = array(n, sizeof(*rows));
    for (size_t i = 0; i < n; i++)
        rows[i] = (uint32_t)i + 1;
    for (size_t i = n; m->mixed && i > 1; i--) {
        const size_t k = random_below(r, i);
        const uint32_t swap = rows[k];
        rows[k] = rows[i - 1];
        rows[i - 1] = swap;
    }
    memcpy(m->user, rows, m->users * sizeof(*rows));
    memcpy(m->item, rows + m->users, m->items * sizeof(*rows));
    free(rows);
}

void ratings_model_init(struct ratings_model *m, size_t users, size_t items, size_t factors,
                        int mixed, unsigned levels, struct random_source *r)
{
    *m = (struct ratings_model){.users = users,
                                .items = items,
                                .factors = factors,
                                .d = factors + 1,
                                .rows = users + items + 1,
                                .mixed = mixed};
    m->user = array(users, sizeof(*m->user));
    m->item = array(items, sizeof(*m->item));
    m->params = array(m->rows * m->d, sizeof(*m->params));
    number(m, r);
    for (size_t i = 0; i < m->rows * m->d; i++)
        m->params[i] = (float)random_below(r, 2 * levels + 1) / 8 - (float)levels / 8;
    memset(m->params + 1, 0, m->factors * sizeof(*m->params));
}

void ratings_model_free(struct ratings_model *m)
{
    free(m->user);
    free(m->item);
    free(m->params);
    memset(m, 0, sizeof(*m));
}

/* ---- Writing ---- */

struct entry {
    uint64_t key;
    uint32_t row, field;
    char name[RATINGS_NAME_BYTES];
};

static int by_key(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    return x->key < y->key ? -1 : x->key > y->key;
}

static void name_entry(struct entry *e, uint32_t field, size_t number, uint32_t row)
{
    uint32_t check;
    e->row = row;
    e->field = field;
    (void)snprintf(e->name, sizeof(e->name), "%c%zu", field ? 'i' : 'u', number);
    drps_name_hash(field, e->name, strlen(e->name), 0, &e->key, &check);
}

static void write_names(const struct ratings_model *m, const char *path)
{
    struct entry *entries = array(m->users + m->items, sizeof(*entries));
    struct names_writer *w;
    for (size_t u = 0; u < m->users; u++)
        name_entry(&entries[u], 0, u, m->user[u]);
    for (size_t i = 0; i < m->items; i++)
        name_entry(&entries[m->users + i], 1, i, m->item[i]);
    qsort(entries, m->users + m->items, sizeof(*entries), by_key);
    assert_int_equal(drps_names_writer_open(drps_io_os(), path, 1, &w, NULL), 0);
    for (size_t i = 0; i < m->users + m->items; i++)
        assert_int_equal(drps_names_writer_add(w, entries[i].key, entries[i].row, entries[i].field,
                                               entries[i].name, strlen(entries[i].name), NULL),
                         0);
    assert_int_equal(drps_names_writer_finish(w, NULL), 0);
    drps_names_writer_close(w);
    free(entries);
}

static void describe(const struct ratings_model *m, struct drps_modeldir_info *info)
{
    static char user[] = "user", item[] = "item";
    static char *fields[] = {user, item};
    struct drps_err err = DRPS_ERR_INIT;
    *info = (struct drps_modeldir_info){.rows = m->rows, .string_names = 1};
    if (drps_model_init(&info->model, "lmf", "squared", (uint32_t)m->factors, 0, &err) < 0)
        fail_msg("%s", err.text);
    info->model.has_bias = 1;
    info->block_rows = drps_modeldir_block_rows(info->model.dim);
    (void)snprintf(info->plan_id, sizeof(info->plan_id), "0123456789abcdef");
    (void)snprintf(info->format, sizeof(info->format), "ratings");
    info->fields = fields;
    info->fields_n = 2;
    info->tables[0] = (struct drps_table){.name = "bias", .rows = 1};
    info->tables[1] =
        (struct drps_table){.name = "user", .first = 1, .rows = m->mixed ? m->rows - 1 : m->users};
    info->tables[2] = (struct drps_table){.name = "item", .first = 1 + m->users, .rows = m->items};
    info->tables_n = m->mixed ? 2 : 3;
    if (m->mixed) (void)snprintf(info->tables[1].name, sizeof(info->tables[1].name), "rows");
}

void ratings_model_write(const struct ratings_model *m, const char *path, const char *engine)
{
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_modeldir_info info;
    struct drps_modelrows *w;
    char rows[SCRATCH_PATH_BYTES], names[SCRATCH_PATH_BYTES];
    uint64_t bytes, sum;
    (void)snprintf(rows, sizeof(rows), "%s/rows", path);
    (void)snprintf(names, sizeof(names), "%s/names.rec", path);
    assert_int_equal(mkdir(path, 0777), 0);
    describe(m, &info);
    if (drps_modelrows_open(drps_kv_find(engine), rows, m->rows, (uint32_t)m->d, 8 << 20, &w, &err))
        fail_msg("%s", err.text);
    if (drps_modelrows_add(w, 0, m->rows, m->params, &err) < 0) fail_msg("%s", err.text);
    if (drps_modelrows_finish(w, &info.content, &err) < 0) fail_msg("%s", err.text);
    drps_modelrows_close(w);
    write_names(m, path);
    assert_int_equal(drps_copy_file(drps_io_os(), names, NULL, &bytes, &sum, &err), 0);
    json_t *description = drps_modeldir_describe(&info, NULL);
    if (drps_modeldir_finish(drps_io_os(), path, engine, bytes, sum, description, &err) < 0)
        fail_msg("%s", err.text);
    json_decref(description);
}
