#include "index/verify/drps_verify.h"
#include "support/index_case.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/drps_alloc.h"
#include "index/plan/drps_batch.h"
#include "index/plan/drps_names.h"
#include "support/batch_body.h"

/* --- inputs
 * --------------------------------------------------------------------------------------------- */

static void put_libsvm(FILE *f, struct random_source *r, size_t features)
{
    size_t n = (size_t)random_below(r, 8);
    uint64_t id = random_below(r, features / 4 + 1);
    (void)fprintf(f, "%d", (int)random_below(r, 2));
    for (size_t j = 0; j < n && id < features; j++) {
        if (random_below(r, 3))
            (void)fprintf(f, " %" PRIu64 ":1", id);
        else
            (void)fprintf(f, " %" PRIu64 ":%.3g", id, 0.25 + (double)random_below(r, 40) / 8);
        id += 1 + random_below(r, features / 6 + 1);
    }
    (void)fputc('\n', f);
}

const char *case_input(struct scratch *s, const char *name, enum case_format format, size_t n,
                       size_t features, uint64_t seed)
{
    struct random_source r = {.seed = seed};
    const char *path = scratch_path(s, name);
    FILE *f = fopen(path, "w");
    if (!f) fail_msg("cannot make %s", path);
    if (format == CASE_CSV) (void)fputs("click,site,size,age\n", f);
    for (size_t i = 0; i < n; i++) {
        unsigned a = (unsigned)random_below(&r, features);
        unsigned b = (unsigned)random_below(&r, features);
        if (format == CASE_LIBSVM)
            put_libsvm(f, &r, features);
        else if (format == CASE_RATINGS)
            (void)fprintf(f, "u%u\ti%u\t%u\n", a, b, 1 + (unsigned)random_below(&r, 5));
        else
            (void)fprintf(f, "%u,site%u.example,\"s,%u\",%u\n", (unsigned)random_below(&r, 2), a,
                          b % 7, 1 + (unsigned)random_below(&r, 90));
    }
    if (fclose(f)) fail_msg("cannot write %s", path);
    return path;
}

static void quiet(void *ctx, enum drps_log_level level, const char *text)
{
    (void)ctx;
    (void)level;
    (void)text;
}

void case_begin(struct case_run *c, struct scratch *s, const char *input_path, const char *algo)
{
    static const struct drps_log log = {.level = DRPS_LOG_ERROR, .sink = quiet};
    memset(c, 0, sizeof(*c));
    (void)snprintf(c->input, sizeof(c->input), "%s", input_path);
    (void)snprintf(c->out, sizeof(c->out), "%s", scratch_path(s, "plan"));
    c->inputs[0] = c->input;
    c->tests[0] = c->test;
    c->options = (struct drps_index_options){.inputs = c->inputs,
                                             .inputs_n = 1,
                                             .tests = c->tests,
                                             .algo = algo,
                                             .batch_size = 64,
                                             .seed = 1,
                                             .memory_bytes = 64 << 20,
                                             .out = c->out,
                                             .log = &log};
}

void case_compile(struct case_run *c)
{
    struct drps_err err = DRPS_ERR_INIT;
    if (drps_index_run(drps_io_os(), &c->options, &c->result, &err) < 0) fail_msg("%s", err.text);
}

struct drps_plan *case_plan(struct case_run *c)
{
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_plan *plan;
    case_compile(c);
    if (drps_plan_open(drps_io_os(), c->out, &plan, &err) < 0) fail_msg("%s", err.text);
    return plan;
}

/* --- samples as lines
 * ----------------------------------------------------------------------------------- */

void case_lines_free(struct case_lines *l)
{
    for (size_t i = 0; i < l->n; i++)
        free(l->line[i]);
    free(l->line);
    memset(l, 0, sizeof(*l));
}

int case_lines_equal(const struct case_lines *a, const struct case_lines *b)
{
    if (a->n != b->n) print_error("%zu lines, %zu lines\n", a->n, b->n);
    for (size_t i = 0; i < a->n && i < b->n; i++) {
        if (strcmp(a->line[i], b->line[i]) == 0) continue;
        print_error("line %zu:\n  %s\n  %s\n", i, a->line[i], b->line[i]);
        return 0;
    }
    return a->n == b->n;
}

struct entry {
    uint64_t key;
    float value;
};

static int by_key(const void *x, const void *y)
{
    const struct entry *a = x;
    const struct entry *b = y;
    return a->key < b->key ? -1 : a->key > b->key;
}

static int by_text(const void *x, const void *y)
{
    char *const *a = x;
    char *const *b = y;
    return strcmp(*a, *b);
}

/* A weight that is not 1 is written behind the label, as "1*2.5". */
static void add_line(struct case_lines *l, float label, float weight, struct entry *entries,
                     size_t n)
{
    size_t room = 60 + 60 * n;
    char *line = malloc(room);
    size_t at;
    assert_non_null(line);
    assert_int_equal(drps_array_reserve(&l->line, &l->cap, l->n + 1, sizeof(*l->line)), 0);
    qsort(entries, n, sizeof(*entries), by_key);
    at = (size_t)snprintf(line, room, "%.9g", (double)label);
    if (weight != 1) at += (size_t)snprintf(line + at, room - at, "*%.9g", (double)weight);
    for (size_t j = 0; j < n; j++)
        at += (size_t)snprintf(line + at, room - at, " %" PRIu64 ":%.9g", entries[j].key,
                               (double)entries[j].value);
    l->line[l->n++] = line;
}

struct key_map {
    uint64_t *key; /* [rows] by placed id */
    uint64_t rows;
    size_t n;
};

static int keep_key(void *ctx, uint64_t key, uint32_t row, unsigned field, const char *text,
                    size_t bytes, struct drps_err *err)
{
    struct key_map *m = ctx;
    (void)field;
    (void)text;
    (void)bytes;
    (void)err;
    assert_true(row < m->rows);
    m->key[row] = key;
    m->n++;
    return 0;
}

static void *record_of(struct drps_recfile *f, uint64_t i)
{
    struct drps_err err = DRPS_ERR_INIT;
    void *data = malloc((size_t)drps_recfile_run_bytes(f, i, 1));
    assert_non_null(data);
    if (drps_recfile_read(f, i, 1, data, &err)) fail_msg("%s", err.text);
    return data;
}

static void step_lines(const struct key_map *m, struct drps_recfile *data,
                       struct drps_recfile *rows, uint64_t step, struct case_lines *out)
{
    struct drps_batch b;
    struct drps_err err = DRPS_ERR_INIT;
    void *body = record_of(data, step);
    void *list = record_of(rows, step);
    uint32_t n = drps_list_count(list);
    uint32_t *row = malloc((n + 1) * sizeof(*row));
    size_t bytes = (size_t)drps_recfile_bytes(data, step);
    body = body_unpack(body, &bytes);
    if (drps_batch_decode(body, bytes, &b, &err)) fail_msg("%s", err.text);
    struct entry *entries = malloc((b.nnz + 1) * sizeof(*entries));
    assert_true(row && entries);
    if (drps_list_decode(list, (size_t)drps_recfile_bytes(rows, step), row, NULL, &err))
        fail_msg("%s", err.text);
    assert_int_equal(n, b.rows);
    for (size_t i = 0; i < b.samples; i++) {
        size_t first = drps_batch_start(&b, i);
        size_t last = drps_batch_start(&b, i + 1);
        for (size_t j = first; j < last; j++) {
            uint32_t placed = row[b.local32 ? b.local32[j] : b.local16[j]];
            assert_true(placed < m->rows);
            entries[j - first] = (struct entry){m->key[placed], b.values ? b.values[j] : 1.0f};
        }
        add_line(out, b.labels[i], b.weights ? b.weights[i] : 1, entries, last - first);
    }
    free(entries);
    free(row);
    free(list);
    free(body);
}

void case_plan_lines(const char *plan_dir, int evaluation, int sort, struct case_lines *out)
{
    struct drps_plan *plan;
    struct drps_recfile *data, *rows;
    struct drps_names *names;
    struct drps_err err = DRPS_ERR_INIT;

    memset(out, 0, sizeof(*out));
    if (drps_plan_open(drps_io_os(), plan_dir, &plan, &err)) fail_msg("%s", err.text);
    if (drps_plan_file(plan, "data.rec", DRPS_KIND_DATA, &data, &err)) fail_msg("%s", err.text);
    if (drps_plan_file(plan, "rows.rec", DRPS_KIND_ROWS, &rows, &err)) fail_msg("%s", err.text);
    struct key_map m = {.key = malloc((size_t)plan->info.rows * sizeof(uint64_t) + 1),
                        .rows = plan->info.rows};
    assert_non_null(m.key);
    if (drps_names_open(drps_io_os(), plan_dir, &names, &err)) fail_msg("%s", err.text);
    if (drps_names_scan(names, keep_key, &m, &err)) fail_msg("%s", err.text);
    drps_names_close(names);
    uint64_t first = evaluation ? plan->info.batches : 0;
    uint64_t last = evaluation ? plan->info.batches + plan->info.eval_batches : plan->info.batches;
    for (uint64_t step = first; step < last; step++)
        step_lines(&m, data, rows, step, out);
    free(m.key);
    drps_recfile_close(data);
    drps_recfile_close(rows);
    drps_plan_close(plan);
    if (sort && out->n) qsort(out->line, out->n, sizeof(*out->line), by_text);
}

void case_input_lines(const char *path, float negative, float positive, int sort,
                      struct case_lines *out)
{
    const struct drps_reader_options o = {0};
    struct drps_reader *r;
    struct drps_samples s = {0};
    struct drps_err err = DRPS_ERR_INIT;
    int rc;

    memset(out, 0, sizeof(*out));
    if (drps_reader_open(drps_io_os(), &path, 1, &o, &r, &err)) fail_msg("%s", err.text);
    while ((rc = drps_reader_next(r, &s, &err)) > 0) {
        for (size_t i = 0; i < s.n; i++) {
            size_t n = s.starts[i + 1] - s.starts[i];
            struct entry *entries = malloc((n + 1) * sizeof(*entries));
            float label = s.labels[i];
            assert_non_null(entries);
            for (size_t j = 0; j < n; j++)
                entries[j] = (struct entry){s.keys[s.starts[i] + j], s.values[s.starts[i] + j]};
            if (negative != positive) label = label == positive ? 1.0f : -1.0f;
            add_line(out, label, 1, entries, n);
            free(entries);
        }
    }
    if (rc < 0) fail_msg("%s", err.text);
    drps_samples_free(&s);
    drps_reader_close(r);
    if (sort && out->n) qsort(out->line, out->n, sizeof(*out->line), by_text);
}

int case_same_records(const char *plan_a, const char *plan_b)
{
    static const char *const names[] = {"data.rec", "rows.rec", "names.rec", "blocks.rec",
                                        "uses.rec"};
    int same = 1;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        char *a = drps_path_join(plan_a, names[i]);
        char *b = drps_path_join(plan_b, names[i]);
        assert_true(a && b);
        same &= files_equal(a, b);
        free(a);
        free(b);
    }
    return same;
}

void case_verify(const char *plan_dir)
{
    struct drps_plan *plan;
    struct drps_err err = DRPS_ERR_INIT;
    if (drps_plan_open(drps_io_os(), plan_dir, &plan, &err) || drps_plan_verify(plan, NULL, &err))
        fail_msg("%s", err.text);
    drps_plan_close(plan);
}
