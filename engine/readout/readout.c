/* Makes names, and visits rows slice by slice (names.c). Needs an open model. */
#include "engine/readout/drps_readout.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"
#include "base/drps_budget.h"
#include "base/drps_size.h"
#include "engine/readout/names.h"

enum {
    MIB = 1 << 20,
    PROGRAM_BYTES = 16 * MIB,
    RUN_BYTES = MIB,
    RUN_ROWS = 4096,
    NUMBER_CHARS = 24,
};
#define MEMORY_USUAL (UINT64_C(1) << 30)

/* ---- Opening ---- */

static int has_samples(const struct drps_modeldir_info *info)
{
    const struct drps_model *m = &info->model;
    return drps_algorithm_has_sample_rows(drps_algorithm_of(drps_algorithm(m->algo), &m->expr));
}

static size_t samples_bytes(const struct drps_modeldir_info *info)
{
    return has_samples(info) ? (size_t)(info->rows / 8 + 1) : 0;
}

static int note_sample(void *ctx, uint64_t key, uint32_t row, unsigned field, const char *text,
                       size_t bytes, struct drps_err *err)
{
    struct drps_readout *r = ctx;
    (void)field, (void)bytes;
    if (text || key < DRPS_SAMPLE_KEYS) return 0;
    if (row >= r->info->rows || drps_readout_is_sample(r, row))
        return drps_err_set(err, DRPS_E_CORRUPT, DRPS_MODEL_NAMES " has row %u twice, or too many",
                            row);
    r->samples[row / 8] |= (unsigned char)(1u << row % 8);
    r->samples_n++;
    return 0;
}

/* Finds the rows of training samples by name: placement may have mixed them with rows of features,
 * so that no table tells them apart. */
static int find_samples(struct drps_readout *r, struct drps_err *err)
{
    if (!has_samples(r->info)) return 0;
    r->samples = calloc(samples_bytes(r->info), 1);
    if (!r->samples) return drps_err_set(err, -ENOMEM, "no memory for rows of samples");
    return drps_modeldir_scan_names(r->md, note_sample, r, err);
}

int drps_readout_open(struct drps_modeldir *md, uint64_t names_bytes, struct drps_readout *r,
                      struct drps_err *err)
{
    const struct drps_modeldir_info *info = drps_modeldir_info(md);
    const int columns = drps_reader_has_columns(info->format);
    *r = (struct drps_readout){.md = md, .info = info, .names_bytes = names_bytes};
    if (r->names_bytes < DRPS_READOUT_NAMES_LEAST) r->names_bytes = DRPS_READOUT_NAMES_LEAST;
    r->fields = calloc(info->fields_n + 1, sizeof(*r->fields));
    if (!r->fields) return drps_err_set(err, -ENOMEM, "no memory for %zu fields", info->fields_n);
    for (size_t i = 0; i < info->fields_n; i++) {
        if (columns)
            drps_reader_field(info->fields[i], &r->fields[i]);
        else
            r->fields[i] =
                (struct drps_reader_field){.name_bytes = strlen(info->fields[i]), .unit = 1};
        r->has_units |= r->fields[i].is_linear;
    }
    return find_samples(r, err);
}

static uint64_t usual_memory(void)
{
    const uint64_t half = drps_memory_available() / 2;
    return half < MEMORY_USUAL ? half : MEMORY_USUAL;
}

/* Gives the model's blocks a quarter of what is left, and names the rest. */
int drps_readout_open_within(struct drps_modeldir *md, uint64_t memory_bytes, uint64_t other_bytes,
                             struct drps_readout *r, struct drps_err *err)
{
    const uint64_t least = drps_modeldir_memory_least(md);
    const uint64_t row_bytes = drps_modeldir_info(md)->model.dim * sizeof(float);
    struct drps_budget b;
    memset(r, 0, sizeof(*r));
    drps_budget_init(&b, memory_bytes ? memory_bytes : usual_memory());
    drps_budget_note(&b, "program", PROGRAM_BYTES);
    if (other_bytes) drps_budget_note(&b, "what is asked for", other_bytes);
    drps_budget_note(&b, "rows on their way", RUN_BYTES + row_bytes);
    drps_budget_note(&b, "names", DRPS_READOUT_NAMES_LEAST + samples_bytes(drps_modeldir_info(md)));
    int rc = drps_budget_take(&b, "reading the model", least, err);
    if (rc < 0) return rc;
    const uint64_t left = drps_budget_left(&b), model = least + left / 4;
    const uint64_t used = drps_modeldir_memory_used(md, model);
    rc = drps_modeldir_open_rows(md, model, err);
    if (rc < 0) return rc;
    return drps_readout_open(md, DRPS_READOUT_NAMES_LEAST + left - (used - least), r, err);
}

void drps_readout_close(struct drps_readout *r)
{
    free(r->fields);
    free(r->samples);
    free(r->text);
    memset(r, 0, sizeof(*r));
}

/* ---- Names ---- */

/* Vowpal Wabbit's features are of one field, whose name the data does not have. */
static int is_plain(const struct drps_readout *r)
{
    return strcmp(r->info->format, "vw") == 0;
}

int drps_readout_name(struct drps_readout *r, uint64_t key, unsigned field, const char *text,
                      size_t bytes, const char **name_out, size_t *n_out, struct drps_err *err)
{
    const int named = text && !is_plain(r) && field < r->info->fields_n;
    const struct drps_reader_field *f = named ? &r->fields[field] : NULL;
    const size_t front = named ? f->name_bytes : 0;
    const size_t equals = named && !(f->is_number && !bytes);
    if (drps_array_reserve(&r->text, &r->text_cap, front + bytes + NUMBER_CHARS, 1))
        return drps_err_set(err, -ENOMEM, "no memory for a name of %zu bytes", front + bytes);
    *name_out = r->text;
    if (!text) {
        *n_out = (size_t)snprintf(r->text, NUMBER_CHARS, "%llu", (unsigned long long)key);
        return 0;
    }
    if (front) memcpy(r->text, r->info->fields[field], front);
    if (equals) r->text[front] = '=';
    memcpy(r->text + front + equals, text, bytes);
    *n_out = front + equals + bytes;
    return 0;
}

/* What is looked for, and where it was found. */
struct sought {
    struct drps_readout *r;
    const char *name;
    size_t n;
    uint32_t row;
};

static int compare_name(void *ctx, uint64_t key, uint32_t row, unsigned field, const char *text,
                        size_t bytes, struct drps_err *err)
{
    struct sought *s = ctx;
    const char *name = NULL;
    size_t n = 0;
    const int rc = drps_readout_name(s->r, key, field, text, bytes, &name, &n, err);
    if (rc < 0 || n != s->n || memcmp(name, s->name, n) != 0) return rc;
    s->row = row;
    return 1;
}

int drps_readout_find(struct drps_readout *r, const char *name, uint32_t *row_out, float *params,
                      struct drps_err *err)
{
    struct sought s = {.r = r, .name = name, .n = strlen(name), .row = DRPS_NO_ROW};
    const int rc = drps_modeldir_scan_names(r->md, compare_name, &s, err);
    *row_out = s.row;
    if (rc < 0) return rc;
    if (!rc || s.row >= r->info->rows)
        return drps_err_set(err, DRPS_E_NOT_FOUND, "the model has no feature '%.200s'", name);
    return drps_modeldir_gather(r->md, row_out, 1, params, err);
}

/* ---- Parameters ---- */

static size_t run_rows(const struct drps_readout *r)
{
    const size_t n = RUN_BYTES / (r->info->model.dim * sizeof(float));
    return n > RUN_ROWS ? RUN_ROWS : n ? n : 1;
}

/* Room for a run of rows: their numbers and parameters. */
struct run {
    uint32_t ids[RUN_ROWS];
    float *params; /* own */
};

static int run_open(const struct drps_readout *r, struct run **run_out, struct drps_err *err)
{
    struct run *run = malloc(sizeof(*run));
    if (run) run->params = drps_array_new(run_rows(r) * r->info->model.dim, sizeof(float));
    *run_out = run;
    return run && run->params ? 0 : drps_err_set(err, -ENOMEM, "no memory for rows of a model");
}

static void run_close(struct run *run)
{
    if (run) free(run->params);
    free(run);
}

int drps_readout_params(struct drps_readout *r, drps_readout_params_visit visit, void *ctx,
                        struct drps_err *err)
{
    const uint64_t rows = r->info->rows;
    const size_t most = run_rows(r);
    struct run *run;
    int rc = run_open(r, &run, err);
    for (uint64_t first = 0; rc == 0 && first < rows; first += most) {
        const size_t n = rows - first < most ? (size_t)(rows - first) : most;
        for (size_t i = 0; i < n; i++)
            run->ids[i] = (uint32_t)(first + i);
        rc = drps_modeldir_gather(r->md, run->ids, n, run->params, err);
        if (rc == 0) rc = visit(ctx, first, n, run->params, err);
    }
    run_close(run);
    return rc;
}

/* ---- Rows with names ---- */

static const struct drps_table *table_of(const struct drps_readout *r, uint32_t row)
{
    const struct drps_table *t = r->info->tables;
    for (size_t i = 1; i < r->info->tables_n; i++)
        if (row >= r->info->tables[i].first) t = &r->info->tables[i];
    return t;
}

/* The first is called the intercept, the others of a net have numbers. */
static int name_common(struct drps_readout *r, struct drps_readout_row *out, struct drps_err *err)
{
    out->name = DRPS_READOUT_INTERCEPT;
    out->name_bytes = strlen(out->name);
    if (!out->row) return 0;
    if (drps_array_reserve(&r->text, &r->text_cap, NUMBER_CHARS + sizeof("(net )"), 1))
        return drps_err_set(err, -ENOMEM, "no memory for a name");
    out->name = r->text;
    out->name_bytes = (size_t)snprintf(r->text, r->text_cap, "(net %" PRIu32 ")", out->row);
    return 0;
}

static int name_row(struct drps_readout *r, const struct readout_names *names, size_t position,
                    struct drps_readout_row *out, struct drps_err *err)
{
    struct readout_name n;
    if (out->row < drps_model_common_rows(&r->info->model)) return name_common(r, out, err);
    if (!readout_names_get(names, position, &n))
        return drps_err_set(err, DRPS_E_CORRUPT, "row %u has no name in " DRPS_MODEL_NAMES,
                            out->row);
    if (n.text && n.field < r->info->fields_n) out->field = &r->fields[n.field];
    return drps_readout_name(r, n.key, n.field, n.text, n.bytes, &out->name, &out->name_bytes, err);
}

static int visit_slice(struct drps_readout *r, const struct readout_names *names, struct run *run,
                       drps_readout_visit visit, void *ctx, struct drps_err *err)
{
    const size_t most = run_rows(r), dim = r->info->model.dim;
    int rc = 0;
    for (size_t first = 0; rc == 0 && first < names->n; first += most) {
        const size_t n = names->n - first < most ? names->n - first : most;
        for (size_t i = 0; i < n; i++)
            run->ids[i] = readout_names_row(names, first + i);
        rc = drps_modeldir_gather(r->md, run->ids, n, run->params, err);
        for (size_t i = 0; rc == 0 && i < n; i++) {
            struct drps_readout_row row = {.row = run->ids[i], .params = run->params + i * dim};
            if (drps_readout_is_sample(r, row.row)) continue;
            row.table = table_of(r, row.row);
            rc = name_row(r, names, first + i, &row, err);
            if (rc == 0) rc = visit(ctx, &row, err);
        }
    }
    return rc;
}

int drps_readout_rows(struct drps_readout *r, const uint32_t *rows, size_t n,
                      drps_readout_visit visit, void *ctx, struct drps_err *err)
{
    const uint64_t all = rows ? n : r->info->rows;
    struct readout_names names;
    struct run *run;
    int rc = run_open(r, &run, err);
    if (rc == 0) rc = readout_names_init(&names, r->md, rows, all, r->names_bytes, err);
    if (rc < 0) {
        run_close(run);
        return rc;
    }
    names.drops_samples = r->samples != NULL;
    for (uint64_t first = 0; rc == 0 && first < all; first += names.n) {
        rc = readout_names_load(&names, first, err);
        if (rc == 0) rc = visit_slice(r, &names, run, visit, ctx, err);
    }
    readout_names_destroy(&names);
    run_close(run);
    return rc;
}
