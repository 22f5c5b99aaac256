#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/drps_alloc.h"
#include "base/drps_checksum.h"
#include "base/folder/drps_command.h"
#include "base/folder/drps_manifest.h"
#include "index/plan/drps_batch.h"
#include "index/plan/drps_names.h"
#include "index/plan/drps_plan.h"
#include "index/plan/plan_numbers.h"

enum { CHUNK_BYTES = 1 << 20 };

/* Plans that have steps. */
enum { STEPS = DRPS_PLAN_ONE | DRPS_PLAN_PART | DRPS_PLAN_CIRCULATING };

const struct drps_plan_file_type drps_plan_files[DRPS_PLAN_FILES] = {
    {DRPS_FILE_DATA, DRPS_KIND_DATA, STEPS, 1},
    {DRPS_FILE_ROWS, DRPS_KIND_ROWS, STEPS, 1},
    {DRPS_FILE_NAMES, DRPS_KIND_NAMES, DRPS_PLAN_ONE | DRPS_PLAN_ALL, 0},
    {DRPS_FILE_BLOCKS, DRPS_KIND_BLOCKS, STEPS, 0},
    {DRPS_FILE_USES, DRPS_KIND_USES, STEPS, 1},
    {DRPS_FILE_WINDOWS, DRPS_KIND_WINDOWS, STEPS, 0},
    {DRPS_FILE_SLOTS, DRPS_KIND_SLOTS, STEPS, 1},
    {DRPS_FILE_SHARES, DRPS_KIND_SHARES, DRPS_PLAN_PART, 1},
    {DRPS_FILE_POSITIONS, DRPS_KIND_POSITIONS, DRPS_PLAN_PART, 1},
    {DRPS_FILE_RESIDUALS, DRPS_KIND_RESIDUALS, DRPS_PLAN_PART, 1},
    {DRPS_FILE_PUBLISHED, DRPS_KIND_PUBLISHED, DRPS_PLAN_PART, 1},
    {DRPS_FILE_HANDED, DRPS_KIND_HANDED, DRPS_PLAN_PART, 1},
    {DRPS_FILE_LENT, DRPS_KIND_LENT, DRPS_PLAN_PART, 1},
    {DRPS_FILE_NUMBERS, DRPS_KIND_NUMBERS, DRPS_PLAN_PART, 1},
};

int drps_plan_has_file(const struct drps_plan_info *info, size_t file)
{
    const struct drps_plan_file_type *type = &drps_plan_files[file];
    const int of_windows = type->kind == DRPS_KIND_WINDOWS || type->kind == DRPS_KIND_SLOTS;
    const int hands_on = type->kind == DRPS_KIND_HANDED || type->kind == DRPS_KIND_LENT;
    if (type->kind == DRPS_KIND_RESIDUALS && !info->ranks.residual_slots) return 0;
    if (type->kind == DRPS_KIND_PUBLISHED && !info->ranks.published_slots) return 0;
    if (type->kind == DRPS_KIND_NUMBERS && !drps_plan_is_matrix(info)) return 0;
    if (hands_on && !info->ranks.handed.slots) return 0;
    if (of_windows && info->windows_later) return 0;
    return (type->shapes & drps_plan_shape(info)) != 0;
}

/* Number fields of the manifest: one list for writing and reading. */
/* clang-format off */
#define PLAN_NUMBERS(X)                                                                            \
    X(factors) X(dim) X(samples) X(test_samples) X(rows) X(nnz) X(test_nnz) X(test_unseen)            \
    X(batch_size) X(batches) X(max_batch_samples) X(max_batch_rows)                                \
    X(max_batch_nnz) X(max_body_bytes) X(row_bytes) X(block_bytes) X(blocks) X(max_block_rows)     \
    X(max_step_blocks) X(windows) X(window_budget_bytes) X(working_set_rows) X(memory_bytes)
/* Numbers that may be missing, and are 0 then. */
#define PLAN_LATER_NUMBERS(X)                                                                      \
    X(max_step_block_rows) X(grid_users) X(grid_items) X(lanes)                                    \
    X(max_window_rows) X(window_rows) X(window_rows_kept) X(window_rows_moved) X(windows_later)    \
    X(seek_ns) X(transfer_bps) X(row_uses) X(block_uses) X(block_use_rows) X(runs) X(run_rows)
/* Numbers of a plan for several workers. */
#define PLAN_RANK_NUMBERS(X)                                                                       \
    X(workers) X(round_samples) X(first_row) X(max_round_rows) X(max_round_uses) X(pulled_rows)    \
    X(served_rows)
/* Numbers of rows that are handed on. */
#define PLAN_HANDED_NUMBERS(X)                                                                     \
    X(slots) X(states) X(used) X(taken) X(returned) X(handed) X(arrived) X(away) X(given) X(regained)
/* Numbers of negatives. */
#define PLAN_NEGATIVES_NUMBERS(X)                                                                  \
    X(each) X(test) X(draws) X(items) X(few) X(test_few) X(test_new) X(below)
/* Numbers whose member has another name than the field, of any plan and of one for several workers:
 * X(field, member). */
#define PLAN_TEST_NUMBERS(X) X(eval_batches, "test_batches")
#define PLAN_RANK_TEST_NUMBERS(X)                                                                  \
    X(eval_pulled_rows, "test_pulled_rows") X(eval_served_rows, "test_served_rows")
/* clang-format on */

/* ---- Checksums of whole files ---- */

/* The checksum of a file: of the checksums of its chunks, which `visit` (NULL: nobody) gets. */
static int file_checksum(const struct drps_io *io, const char *path, drps_plan_bytes visit,
                         void *ctx, uint64_t *bytes_out, uint64_t *sum_out, struct drps_err *err)
{
    int fd;
    char *buf = malloc(CHUNK_BYTES);
    uint64_t chain[2] = {0, 0};

    *bytes_out = *sum_out = 0;
    if (!buf) return drps_err_set(err, -ENOMEM, "no memory to read %s", path);
    int rc = drps_io_open(io, path, O_RDONLY, &fd, err);
    if (rc == 0) rc = drps_io_size(io, fd, path, bytes_out, err);
    for (uint64_t at = 0; rc == 0 && at < *bytes_out; at += CHUNK_BYTES) {
        size_t n = *bytes_out - at < CHUNK_BYTES ? (size_t)(*bytes_out - at) : CHUNK_BYTES;
        rc = drps_io_read_at(io, fd, buf, n, at, path, err);
        if (rc < 0) break;
        chain[1] = drps_checksum(buf, n);
        chain[0] = drps_checksum(chain, sizeof(chain));
        if (visit) rc = visit(ctx, buf, n, err);
    }
    *sum_out = chain[0];
    drps_io_close(io, fd);
    free(buf);
    return rc;
}

/* What could not be counted is null. */
static json_t *json_loss(double loss)
{
    return isfinite(loss) ? json_real(loss) : json_null();
}

static json_t *json_u64(uint64_t v)
{
    return json_integer((json_int_t)v);
}

/* ---- Writing ---- */

/* Returns NULL when memory is gone, as the next two do. */
static json_t *handed_to_json(const struct drps_plan_handed *handed)
{
    json_t *j = json_object();
#define PUT(name) drps_manifest_put(&j, #name, json_u64(handed->name));
    PLAN_HANDED_NUMBERS(PUT)
#undef PUT
    return j;
}

static json_t *ranks_to_json(const struct drps_plan_ranks *ranks)
{
    json_t *j = json_object();
#define PUT(name) drps_manifest_put(&j, #name, json_u64(ranks->name));
    PLAN_RANK_NUMBERS(PUT)
#undef PUT
#define PUT(name, member) drps_manifest_put(&j, member, json_u64(ranks->name));
    PLAN_RANK_TEST_NUMBERS(PUT)
#undef PUT
    if (!drps_ranks_are_alike(ranks)) {
        drps_manifest_put(&j, "servers", json_u64(ranks->servers));
        drps_manifest_put(&j, "first_worker", json_u64(ranks->first_worker));
    }
    if (ranks->rank != DRPS_PLAN_WHOLE) drps_manifest_put(&j, "rank", json_u64(ranks->rank));
    drps_manifest_put(&j, "whole", json_string(ranks->whole));
    if (ranks->residual_slots)
        drps_manifest_put(&j, "residual_slots", json_u64(ranks->residual_slots));
    if (ranks->own_slots) drps_manifest_put(&j, "own_slots", json_true());
    if (ranks->published_slots)
        drps_manifest_put(&j, "published_slots", json_u64(ranks->published_slots));
    if (ranks->handed.slots) drps_manifest_put(&j, "handed_on", handed_to_json(&ranks->handed));
    if (!ranks->held_n) return j;
    drps_manifest_put(&j, "max_range_rows", json_u64(ranks->max_range_rows));
    json_t *held = json_array();
    for (size_t i = 0; i < ranks->held_n; i++)
        drps_manifest_append(&held,
                             json_pack("{s:I, s:I}", "first", (json_int_t)ranks->held[i].first,
                                       "rows", (json_int_t)ranks->held[i].rows));
    drps_manifest_put(&j, "held", held);
    return j;
}

static json_t *weights_to_json(const struct drps_plan_weights *w)
{
    return json_pack("{s:f, s:f, s:f}", "sum", w->sum, "test_sum", w->test_sum, "most", w->most);
}

static json_t *negatives_to_json(const struct drps_plan_negatives *n)
{
    json_t *j = json_pack("{s:b, s:f, s:f}", "by_popularity", n->by_popularity, "alpha", n->alpha,
                          "weight", n->weight);
#define PUT(name) drps_manifest_put(&j, #name, json_u64(n->name));
    PLAN_NEGATIVES_NUMBERS(PUT)
#undef PUT
    return j;
}

static json_t *base_to_json(const struct drps_plan_info *info)
{
    return json_pack("{s:s, s:I}", "plan", info->base, "rows", (json_int_t)info->base_rows);
}

static json_t *info_to_json(const struct drps_plan_info *info, char *const *fields)
{
    json_t *j =
        json_pack("{s:s, s:i, s:s, s:s, s:s, s:s, s:s, s:b, s:f, s:f, s:f, s:b}", "kind",
                  "drps-plan", "version", DRPS_PLAN_VERSION, "algo", info->algo, "loss", info->loss,
                  "format", info->format, "order", info->order, "blocks_by", info->blocks_by,
                  "classification", info->classification, "label_negative",
                  (double)info->label_negative, "label_positive", (double)info->label_positive,
                  "label_mean", info->label_mean, "string_names", info->string_names);
    json_t *tables = json_array();
    json_t *names = json_array();
#define PUT(name) drps_manifest_put(&j, #name, json_u64(info->name));
    PLAN_NUMBERS(PUT)
    PLAN_LATER_NUMBERS(PUT)
#undef PUT
#define PUT(name, member) drps_manifest_put(&j, member, json_u64(info->name));
    PLAN_TEST_NUMBERS(PUT)
#undef PUT
    drps_manifest_put(&j, "constant_loss", json_loss(info->constant_loss));
    drps_manifest_put(&j, "test_constant_loss", json_loss(info->test_constant_loss));
    drps_manifest_put(&j, "seed", drps_manifest_hex(info->seed));
    drps_manifest_put(&j, "hash_seed", drps_manifest_hex(info->hash_seed));
    for (size_t i = 0; i < info->tables_n; i++)
        drps_manifest_append(&tables, json_pack("{s:s, s:I, s:I}", "name", info->tables[i].name,
                                                "first", (json_int_t)info->tables[i].first, "rows",
                                                (json_int_t)info->tables[i].rows));
    for (size_t i = 0; i < info->fields_n; i++)
        drps_manifest_append(&names, json_string(fields[i]));
    drps_manifest_put(&j, "tables", tables);
    drps_manifest_put(&j, "fields", names);
    if (info->ones > 0) drps_manifest_put(&j, "ones", json_real(info->ones));
    if (info->weights.most > 0) drps_manifest_put(&j, "weights", weights_to_json(&info->weights));
    if (drps_speeds_are_known(&info->speeds))
        drps_manifest_put(&j, "speeds", drps_speeds_to_json(&info->speeds));
    if (info->base[0]) drps_manifest_put(&j, "base", base_to_json(info));
    if (info->classes) drps_manifest_put(&j, "classes", drps_classes_to_json(info->classes));
    if (info->field_count) drps_manifest_put(&j, "field_count", json_u64(info->field_count));
    if (info->numbers) drps_manifest_put(&j, "numbers", json_true());
    if (info->normalized) drps_manifest_put(&j, "normalized", json_true());
    if (info->negatives.each)
        drps_manifest_put(&j, "negatives", negatives_to_json(&info->negatives));
    drps_hashing_put(&j, &info->hashing);
    drps_plan_put_expression(&j, info->expression, info->outputs);
    drps_plan_put_net(&j, info->net);
    drps_plan_put_sequences(&j, &info->sequences);
    if (info->label_column[0])
        drps_manifest_put(&j, "label_column", json_string(info->label_column));
    if (info->separator > 0) drps_manifest_put(&j, "separator", json_stringn(&info->separator, 1));
    if (info->headless) drps_manifest_put(&j, "headless", json_true());
    if (info->ranks.count > 1) drps_manifest_put(&j, "cluster", ranks_to_json(&info->ranks));
    drps_command_put(&j, "command", info->command);
    if (info->source) drps_manifest_put(&j, "source", drps_manifest_hex(info->source));
    return j;
}

/* Add a file to a hash over several; *sum_out is its own. */
static int hash_file(const struct drps_io *io, const char *dir, const char *name, uint64_t *hash,
                     uint64_t *bytes_out, uint64_t *sum_out, struct drps_err *err)
{
    char *path = drps_path_join(dir, name);
    if (!path) return drps_err_set(err, -ENOMEM, "no memory for the manifest");
    int rc = file_checksum(io, path, NULL, NULL, bytes_out, sum_out, err);
    const uint64_t chain[2] = {*hash, *sum_out};
    free(path);
    if (rc == 0) *hash = drps_checksum(chain, sizeof(chain));
    return rc;
}

int drps_plan_hash(const struct drps_io *io, const char *dir, const char *const *names, size_t n,
                   uint64_t *hash_out, struct drps_err *err)
{
    uint64_t bytes, sum;
    int rc = 0;
    *hash_out = 0;
    for (size_t i = 0; rc == 0 && i < n; i++)
        rc = hash_file(io, dir, names[i], hash_out, &bytes, &sum, err);
    return rc;
}

/* Describe the files of dir; *id_out becomes a hash of all of them. */
static int files_to_json(const struct drps_io *io, const char *dir,
                         const struct drps_plan_info *info, json_t *list, uint64_t *id_out,
                         struct drps_err *err)
{
    int rc = 0;
    *id_out = 0;
    for (size_t i = 0; rc == 0 && i < DRPS_PLAN_FILES; i++) {
        uint64_t bytes, sum;
        if (!drps_plan_has_file(info, i)) continue;
        rc = hash_file(io, dir, drps_plan_files[i].name, id_out, &bytes, &sum, err);
        if (rc < 0) break;
        json_t *entry = json_pack("{s:s, s:I, s:o}", "name", drps_plan_files[i].name, "bytes",
                                  (json_int_t)bytes, "checksum", drps_manifest_hex(sum));
        if (json_array_append_new(list, entry))
            return drps_err_set(err, -ENOMEM, "no memory for the manifest");
    }
    return rc;
}

uint64_t drps_plan_hash_text(const struct drps_plan_info *info, uint64_t hash)
{
    const char *text = info->net[0] ? info->net : info->expression; /* no plan has both */
    const uint64_t chain[2] = {hash, drps_checksum(text, strlen(text))};
    return text[0] ? drps_checksum(chain, sizeof(chain)) : hash;
}

/* Returns the plan's id. That of a whole plan for several workers is the one that its ranks name.
 */
static json_t *id_to_json(const struct drps_plan_info *info, uint64_t files_hash)
{
    return drps_plan_shape(info) == DRPS_PLAN_ALL
               ? json_string(info->ranks.whole)
               : drps_manifest_hex(drps_plan_hash_text(info, files_hash));
}

int drps_plan_save(const struct drps_io *io, const char *dir, const struct drps_plan_info *info,
                   char *const *fields, void *forecast, struct drps_err *err)
{
    uint64_t id = 0;
    json_t *j = info_to_json(info, fields);
    json_t *list = json_array();
    char *path = drps_path_join(dir, DRPS_FILE_MANIFEST);
    int rc = j && list && path ? 0 : drps_err_set(err, -ENOMEM, "no memory for the manifest");
    if (rc == 0) rc = files_to_json(io, dir, info, list, &id, err);
    if (rc == 0 &&
        (json_object_set(j, "files", list) || json_object_set_new(j, "id", id_to_json(info, id)) ||
         json_object_set_new(j, "made_by", json_string("drps-index " DRPS_VERSION)) ||
         (forecast && json_object_set(j, "forecast", forecast))))
        rc = drps_err_set(err, -ENOMEM, "no memory for the manifest");
    if (rc == 0) rc = drps_manifest_write(io, path, j, err);
    free(path);
    json_decref(list);
    json_decref(j);
    return rc;
}

int drps_blocks_write(const struct drps_io *io, const char *dir, const uint32_t *first,
                      size_t blocks, struct drps_err *err)
{
    enum { PART = 1 << 16 };
    struct drps_recwriter *w = NULL;
    uint32_t *sizes = drps_array_new(PART, sizeof(*sizes));
    unsigned char *packed = drps_array_new(drps_list_encode_bound(PART), 1);
    char *path = drps_path_join(dir, DRPS_FILE_BLOCKS);
    int rc =
        sizes && packed && path ? 0 : drps_err_set(err, -ENOMEM, "no memory for block boundaries");

    if (rc == 0) rc = drps_recwriter_open(io, path, DRPS_KIND_BLOCKS, &w, err);
    for (size_t i = 0; rc == 0 && i < blocks; i += PART) {
        size_t n = blocks - i < PART ? blocks - i : PART;
        for (size_t k = 0; k < n; k++)
            sizes[k] = first[i + k + 1] - first[i + k];
        struct drps_piece piece = {packed, drps_numbers_encode(sizes, n, packed)};
        rc = drps_recwriter_add(w, &piece, 1, err);
    }
    if (rc == 0) rc = drps_recwriter_finish(w, err);
    drps_recwriter_close(w);
    free(path);
    free(packed);
    free(sizes);
    return rc;
}

/* ---- Reading ---- */

static int get_tables(struct drps_plan *plan, const char *path, struct drps_err *err)
{
    const json_t *tables = json_object_get(plan->json, "tables");
    plan->info.tables_n = json_array_size(tables);
    if (plan->info.tables_n > DRPS_PLAN_TABLES)
        return drps_err_set(err, DRPS_E_CORRUPT, "%s/%s: %zu tables; at most %d are known",
                            plan->dir, DRPS_FILE_MANIFEST, plan->info.tables_n, DRPS_PLAN_TABLES);
    for (size_t i = 0; i < plan->info.tables_n; i++) {
        struct drps_table *t = &plan->info.tables[i];
        const json_t *entry = json_array_get(tables, i);
        int rc = drps_manifest_get_text(entry, "name", path, t->name, sizeof(t->name), err);
        if (rc < 0) return rc;
        rc = drps_manifest_get_count(entry, "first", path, &t->first, err);
        if (rc == 0) rc = drps_manifest_get_count(entry, "rows", path, &t->rows, err);
        if (rc < 0) return rc;
    }
    return 0;
}

void drps_plan_put_expression(void *manifest, const char *text, uint32_t outputs)
{
    json_t **j = manifest;
    if (text[0]) drps_manifest_put(j, "expression", json_string(text));
    if (outputs) drps_manifest_put(j, "outputs", json_u64(outputs));
}

void drps_plan_put_net(void *manifest, const char *text)
{
    if (text[0]) drps_manifest_put((json_t **)manifest, "net", json_string(text));
}

int drps_plan_get_net(const void *manifest, const char *path, char text_out[DRPS_LAYERS_TEXT],
                      struct drps_err *err)
{
    const json_t *j = manifest;
    text_out[0] = '\0';
    if (!json_object_get(j, "net")) return 0;
    return drps_manifest_get_text(j, "net", path, text_out, DRPS_LAYERS_TEXT, err);
}

void drps_plan_put_sequences(void *manifest, const struct drps_plan_sequences *s)
{
    if (s->most)
        drps_manifest_put((json_t **)manifest, "sequences",
                          json_pack("{s:I, s:b}", "most", (json_int_t)s->most, "lines", s->lines));
}

int drps_plan_get_sequences(const void *manifest, const char *path, struct drps_plan_sequences *out,
                            struct drps_err *err)
{
    const json_t *j = json_object_get(manifest, "sequences");
    *out = (struct drps_plan_sequences){0};
    if (!j) return 0;
    out->lines = json_is_true(json_object_get(j, "lines"));
    return drps_manifest_get_u32(j, "most", path, &out->most, err);
}

int drps_plan_get_expression(const void *manifest, const char *path, char text_out[DRPS_EXPR_TEXT],
                             uint32_t *outputs_out, struct drps_err *err)
{
    const json_t *j = manifest;
    int rc = 0;
    text_out[0] = '\0';
    *outputs_out = 0;
    if (json_object_get(j, "expression"))
        rc = drps_manifest_get_text(j, "expression", path, text_out, DRPS_EXPR_TEXT, err);
    if (rc == 0 && json_object_get(j, "outputs"))
        rc = drps_manifest_get_u32(j, "outputs", path, outputs_out, err);
    return rc;
}

int drps_plan_get_columns(const void *manifest, const char *path,
                          char label_out[DRPS_PLAN_COLUMN_BYTES], char *separator_out,
                          int *headless_out, struct drps_err *err)
{
    const json_t *j = manifest;
    char separator[2] = "";
    int rc = 0;
    label_out[0] = '\0';
    if (json_object_get(j, "label_column"))
        rc =
            drps_manifest_get_text(j, "label_column", path, label_out, DRPS_PLAN_COLUMN_BYTES, err);
    if (rc == 0 && json_object_get(j, "separator"))
        rc = drps_manifest_get_text(j, "separator", path, separator, sizeof(separator), err);
    *separator_out = separator[0];
    *headless_out = json_is_true(json_object_get(j, "headless"));
    return rc;
}

static int get_fields(struct drps_plan *plan, struct drps_err *err)
{
    const json_t *fields = json_object_get(plan->json, "fields");
    plan->info.fields_n = json_array_size(fields);
    plan->fields = calloc(plan->info.fields_n + 1, sizeof(*plan->fields));
    if (!plan->fields) return drps_err_set(err, -ENOMEM, "no memory for the plan");
    for (size_t i = 0; i < plan->info.fields_n; i++) {
        const char *text = json_string_value(json_array_get(fields, i));
        plan->fields[i] = strdup(text ? text : "");
        if (!plan->fields[i]) return drps_err_set(err, -ENOMEM, "no memory for the plan");
    }
    return 0;
}

static int get_name(const json_t *j, const char *key, const char *path, char *out,
                    struct drps_err *err)
{
    return drps_manifest_get_text(j, key, path, out, DRPS_PLAN_NAME_BYTES, err);
}

#define GET_NUMBER(field)                                                                          \
    _Generic((field), uint32_t : drps_manifest_get_u32, uint64_t : drps_manifest_get_count)

/* Members that older plans have under another name get the one of today. */
static int rename_members(json_t *j, const char *path, struct drps_err *err)
{
    static const struct {
        const char *older, *name;
    } members[] = {{"eval_batches", "test_batches"},
                   {"eval_pulled_rows", "test_pulled_rows"},
                   {"eval_served_rows", "test_served_rows"}};
    json_t *cluster = json_object_get(j, "cluster");
    int rc = drps_manifest_rename(j, "rank", "factors", path, err);
    for (size_t i = 0; rc == 0 && i < sizeof(members) / sizeof(members[0]); i++) {
        rc = drps_manifest_rename(j, members[i].older, members[i].name, path, err);
        if (rc == 0 && cluster)
            rc = drps_manifest_rename(cluster, members[i].older, members[i].name, path, err);
    }
    return rc;
}

static int get_held(const json_t *cluster, const char *path, struct drps_plan_ranks *ranks,
                    struct drps_err *err)
{
    const json_t *held = json_object_get(cluster, "held");
    int rc =
        held ? drps_manifest_get_count(cluster, "max_range_rows", path, &ranks->max_range_rows, err)
             : 0;
    if (rc == 0 && json_array_size(held) > DRPS_PLAN_RANGES)
        return drps_err_set(err, DRPS_E_CORRUPT, "%s: %zu ranges are held; at most %d are known",
                            path, json_array_size(held), DRPS_PLAN_RANGES);
    for (; ranks->held_n < json_array_size(held) && rc == 0; ranks->held_n++) {
        struct drps_row_range *range = &ranks->held[ranks->held_n];
        const json_t *entry = json_array_get(held, ranks->held_n);
        rc = drps_manifest_get_count(entry, "first", path, &range->first, err);
        if (rc == 0) rc = drps_manifest_get_count(entry, "rows", path, &range->rows, err);
    }
    return rc;
}

static int get_handed(const json_t *cluster, const char *path, struct drps_plan_handed *handed,
                      struct drps_err *err)
{
    const json_t *j = json_object_get(cluster, "handed_on");
    int rc = 0;
    if (!j) return 0;
#define GET(name)                                                                                  \
    if (rc == 0) rc = drps_manifest_get_count(j, #name, path, &handed->name, err);
    PLAN_HANDED_NUMBERS(GET)
#undef GET
    return rc;
}

/* How many workers and servers there are, and on which ranks: where it is not said, as many, on the
 * same. */
static int get_shape(const json_t *j, const char *path, struct drps_plan_ranks *ranks,
                     struct drps_err *err)
{
    const int said = json_object_get(j, "servers") != NULL;
    uint32_t servers = ranks->workers, first = 0;
    int rc = said ? drps_manifest_get_u32(j, "servers", path, &servers, err) : 0;
    if (rc == 0 && said) rc = drps_manifest_get_u32(j, "first_worker", path, &first, err);
    const struct drps_bound bounds[] = {
        {"workers", ranks->workers, said ? 1 : 2, DRPS_PLAN_WORKERS_MAX, "a cluster"},
        {"servers", servers, 1, DRPS_PLAN_WORKERS_MAX, "a cluster"},
        {"first_worker", first, first ? servers : 0, servers, "the servers"},
        {"first_worker", first, 0, DRPS_PLAN_WORKERS_MAX - (uint64_t)ranks->workers, "a cluster"},
    };
    if (rc == 0) rc = drps_manifest_check(bounds, said ? 4 : 1, path, err);
    if (rc < 0) return rc;
    const struct drps_plan_ranks shape = drps_plan_ranks_of(ranks->workers, servers, first > 0);
    ranks->count = shape.count;
    ranks->servers = shape.servers;
    ranks->first_worker = shape.first_worker;
    return 0;
}

static int get_ranks(struct drps_plan *plan, const char *path, struct drps_err *err)
{
    struct drps_plan_info *info = &plan->info;
    struct drps_plan_ranks *ranks = &info->ranks;
    const json_t *j = json_object_get(plan->json, "cluster");
    int rc = 0;

    *ranks = drps_plan_ranks_of(1, 1, 0);
    ranks->round_samples = info->max_batch_samples;
    ranks->max_round_rows = info->max_batch_rows;
    if (!j) return 0;
#define GET(name)                                                                                  \
    rc = GET_NUMBER(ranks->name)(j, #name, path, &ranks->name, err);                               \
    if (rc < 0) return rc;
    PLAN_RANK_NUMBERS(GET)
#undef GET
#define GET(name, member)                                                                          \
    rc = drps_manifest_get_count(j, member, path, &ranks->name, err);                              \
    if (rc < 0) return rc;
    PLAN_RANK_TEST_NUMBERS(GET)
#undef GET
    rc = drps_manifest_get_text(j, "whole", path, ranks->whole, sizeof(ranks->whole), err);
    if (rc == 0 && json_object_get(j, "rank"))
        rc = drps_manifest_get_u32(j, "rank", path, &ranks->rank, err);
    if (rc == 0 && json_object_get(j, "residual_slots"))
        rc = drps_manifest_get_count(j, "residual_slots", path, &ranks->residual_slots, err);
    ranks->own_slots = json_is_true(json_object_get(j, "own_slots"));
    if (rc == 0 && json_object_get(j, "published_slots"))
        rc = drps_manifest_get_count(j, "published_slots", path, &ranks->published_slots, err);
    if (rc == 0) rc = get_handed(j, path, &ranks->handed, err);
    if (rc == 0) rc = get_held(j, path, ranks, err);
    if (rc < 0) return rc;
    rc = get_shape(j, path, ranks, err);
    if (rc < 0 || !json_object_get(j, "rank")) return rc;
    const struct drps_bound rank = {"rank", ranks->rank, 0, ranks->count - (uint64_t)1,
                                    "the number of ranks"};
    return drps_manifest_check(&rank, 1, path, err);
}

/* A loss that may be missing, or null: NaN. */
static int get_loss(const json_t *j, const char *key, const char *path, double *out,
                    struct drps_err *err)
{
    const json_t *value = json_object_get(j, key);
    *out = NAN;
    if (!value || json_is_null(value)) return 0;
    int rc = drps_manifest_get_real(j, key, path, out, err);
    if (rc < 0 || *out >= 0) return rc;
    return drps_err_set(err, DRPS_E_CORRUPT, "%s: \"%s\" is negative", path, key);
}

static int get_labels(struct drps_plan *plan, const char *path, struct drps_err *err)
{
    struct drps_plan_info *info = &plan->info;
    const json_t *j = plan->json;
    float mean;
    int rc = drps_manifest_get_float(j, "label_negative", path, &info->label_negative, err);
    if (rc == 0)
        rc = drps_manifest_get_float(j, "label_positive", path, &info->label_positive, err);
    if (rc == 0) rc = drps_manifest_get_float(j, "label_mean", path, &mean, err);
    if (rc == 0) rc = drps_manifest_get_real(j, "label_mean", path, &info->label_mean, err);
    if (rc == 0) rc = get_loss(j, "constant_loss", path, &info->constant_loss, err);
    if (rc == 0) rc = get_loss(j, "test_constant_loss", path, &info->test_constant_loss, err);
    return rc;
}

static int get_ones(struct drps_plan *plan, const char *path, struct drps_err *err)
{
    struct drps_plan_info *info = &plan->info;
    if (!json_object_get(plan->json, "ones")) return 0;
    int rc = drps_manifest_get_real(plan->json, "ones", path, &info->ones, err);
    if (rc < 0 || (info->ones >= 0 && info->ones <= 1)) return rc;
    return drps_err_set(err, DRPS_E_CORRUPT, "%s: \"ones\" is no share", path);
}

static int get_speeds(struct drps_plan *plan, const char *path, struct drps_err *err)
{
    return drps_speeds_from_json(json_object_get(plan->json, "speeds"), path, &plan->info.speeds,
                                 err);
}

static int get_weights(struct drps_plan *plan, const char *path, struct drps_err *err)
{
    struct drps_plan_weights *w = &plan->info.weights;
    const json_t *j = json_object_get(plan->json, "weights");
    if (!j) return 0;
    int rc = drps_manifest_get_real(j, "sum", path, &w->sum, err);
    if (rc == 0) rc = drps_manifest_get_real(j, "test_sum", path, &w->test_sum, err);
    if (rc == 0) rc = drps_manifest_get_real(j, "most", path, &w->most, err);
    return rc;
}

static int get_negatives(struct drps_plan *plan, const char *path, struct drps_err *err)
{
    struct drps_plan_negatives *n = &plan->info.negatives;
    const json_t *j = json_object_get(plan->json, "negatives");
    int rc = 0;
    if (!j) return 0;
#define GET(name)                                                                                  \
    rc = GET_NUMBER(n->name)(j, #name, path, &n->name, err);                                       \
    if (rc < 0) return rc;
    PLAN_NEGATIVES_NUMBERS(GET)
#undef GET
    n->by_popularity = json_is_true(json_object_get(j, "by_popularity"));
    rc = drps_manifest_get_real(j, "alpha", path, &n->alpha, err);
    return rc == 0 ? drps_manifest_get_real(j, "weight", path, &n->weight, err) : rc;
}

static int get_base(struct drps_plan *plan, const char *path, struct drps_err *err)
{
    struct drps_plan_info *info = &plan->info;
    const json_t *j = json_object_get(plan->json, "base");
    if (!j) return 0;
    int rc = drps_manifest_get_text(j, "plan", path, info->base, sizeof(info->base), err);
    if (rc == 0 && !info->base[0])
        rc = drps_err_set(err, DRPS_E_CORRUPT, "%s: the base has no id", path);
    return rc == 0 ? drps_manifest_get_count(j, "rows", path, &info->base_rows, err) : rc;
}

static int get_info(struct drps_plan *plan, const char *path, struct drps_err *err)
{
    struct drps_plan_info *info = &plan->info;
    const json_t *j = plan->json;
    int rc;
#define GET(name)                                                                                  \
    rc = GET_NUMBER(info->name)(j, #name, path, &info->name, err);                                 \
    if (rc < 0) return rc;
    PLAN_NUMBERS(GET)
#undef GET
#define GET(name, member)                                                                          \
    rc = drps_manifest_get_count(j, member, path, &info->name, err);                               \
    if (rc < 0) return rc;
    PLAN_TEST_NUMBERS(GET)
#undef GET
#define GET(name)                                                                                  \
    if (json_object_get(j, #name)) {                                                               \
        rc = drps_manifest_get_count(j, #name, path, &info->name, err);                            \
        if (rc < 0) return rc;                                                                     \
    }
    PLAN_LATER_NUMBERS(GET)
#undef GET
    rc = get_name(j, "algo", path, info->algo, err);
    if (rc == 0 && json_object_get(j, "field_count"))
        rc = drps_manifest_get_u32(j, "field_count", path, &info->field_count, err);
    if (rc == 0) rc = get_name(j, "loss", path, info->loss, err);
    if (rc == 0) rc = drps_plan_get_expression(j, path, info->expression, &info->outputs, err);
    if (rc == 0) rc = drps_plan_get_net(j, path, info->net, err);
    if (rc == 0) rc = drps_plan_get_sequences(j, path, &info->sequences, err);
    if (rc == 0) rc = get_name(j, "format", path, info->format, err);
    if (rc == 0) rc = get_name(j, "order", path, info->order, err);
    if (rc == 0) rc = get_name(j, "blocks_by", path, info->blocks_by, err);
    if (rc == 0) rc = get_tables(plan, path, err);
    if (rc == 0) rc = get_fields(plan, err);
    if (rc == 0)
        rc = drps_plan_get_columns(j, path, info->label_column, &info->separator, &info->headless,
                                   err);
    if (rc < 0) return rc;
    rc = get_ranks(plan, path, err);
    if (rc == 0) rc = drps_manifest_get_text(j, "id", path, info->id, sizeof(info->id), err);
    if (rc == 0) rc = drps_manifest_get_hex(j, "seed", path, &info->seed, err);
    if (rc == 0) rc = drps_manifest_get_hex(j, "hash_seed", path, &info->hash_seed, err);
    if (rc < 0) return rc;
    info->classification = json_is_true(json_object_get(j, "classification"));
    info->numbers = json_is_true(json_object_get(j, "numbers"));
    info->normalized = json_is_true(json_object_get(j, "normalized"));
    info->string_names = json_is_true(json_object_get(j, "string_names"));
    rc = get_labels(plan, path, err);
    if (rc == 0) rc = get_weights(plan, path, err);
    if (rc == 0) rc = get_speeds(plan, path, err);
    if (rc == 0) rc = get_ones(plan, path, err);
    if (rc == 0) rc = get_negatives(plan, path, err);
    if (rc == 0) rc = drps_hashing_get(j, path, &info->hashing, err);
    if (rc == 0) rc = get_base(plan, path, err);
    if (rc == 0) rc = drps_command_get(j, "command", path, &info->command, err);
    if (rc == 0 && json_object_get(j, "source"))
        rc = drps_manifest_get_hex(j, "source", path, &info->source, err);
    if (rc == 0) rc = drps_classes_get(j, path, &plan->classes, err);
    info->classes = plan->classes;
    return rc == 0 ? drps_plan_check_numbers(info, path, err) : rc;
}

int drps_plan_open(const struct drps_io *io, const char *dir, struct drps_plan **plan_out,
                   struct drps_err *err)
{
    *plan_out = NULL;
    struct drps_plan *plan = calloc(1, sizeof(*plan));
    char *path = drps_path_join(dir, DRPS_FILE_MANIFEST);
    int rc = plan && path ? 0 : drps_err_set(err, -ENOMEM, "no memory for the plan");
    if (rc == 0) {
        plan->io = io;
        plan->dir = strdup(dir);
        if (!plan->dir) rc = drps_err_set(err, -ENOMEM, "no memory for the plan");
    }
    if (rc == 0) {
        json_t *j = NULL;
        rc = drps_manifest_read(io, path, drps_plan_kind.kind, drps_plan_kind.version, &j, err);
        plan->json = j;
        if (rc == -ENOENT || rc == -ENOTDIR)
            rc = drps_manifest_missing(io, dir, DRPS_FILE_MANIFEST, "plan", "drps-index", err);
    }
    if (rc == 0) rc = rename_members(plan->json, path, err);
    if (rc == 0) rc = get_info(plan, path, err);
    free(path);
    if (rc < 0) {
        drps_plan_close(plan);
        return rc;
    }
    *plan_out = plan;
    return 0;
}

int drps_plan_rank_dir(const char *dir, uint32_t rank, char out[DRPS_PLAN_PATH_BYTES],
                       struct drps_err *err)
{
    const int n = snprintf(out, DRPS_PLAN_PATH_BYTES, "%s/" DRPS_FILE_RANK "%" PRIu32, dir, rank);
    if (n > 0 && n < DRPS_PLAN_PATH_BYTES) return 0;
    return drps_err_set(err, DRPS_E_CONFIG, "the plan's path is too long");
}

int drps_plan_open_rank(const struct drps_io *io, const char *dir, uint32_t rank,
                        struct drps_plan **plan_out, struct drps_err *err)
{
    char path[DRPS_PLAN_PATH_BYTES];
    *plan_out = NULL;
    int rc = drps_plan_rank_dir(dir, rank, path, err);
    if (rc == 0) rc = drps_plan_open(io, path, plan_out, err);
    if (rc == DRPS_E_NOT_FOUND) {
        drps_err_clear(err);
        return drps_err_set(err, rc,
                            "%s is not there: rank %" PRIu32
                            " needs this folder of a plan for several workers",
                            path, rank);
    }
    if (rc < 0 || (*plan_out)->info.ranks.rank == rank) return rc;
    drps_plan_close(*plan_out);
    *plan_out = NULL;
    return drps_err_set(err, DRPS_E_CORRUPT, "%s is not the part of rank %" PRIu32, path, rank);
}

void drps_plan_close(struct drps_plan *plan)
{
    if (!plan) return;
    for (size_t i = 0; plan->fields && i < plan->info.fields_n; i++)
        free(plan->fields[i]);
    free(plan->fields);
    drps_classes_free(plan->classes);
    json_decref(plan->json);
    free(plan->dir);
    free(plan);
}

int drps_plan_file(const struct drps_plan *plan, const char *name, uint32_t kind,
                   struct drps_recfile **f_out, struct drps_err *err)
{
    char *path = drps_path_join(plan->dir, name);
    *f_out = NULL;
    if (!path) return drps_err_set(err, -ENOMEM, "no memory to open %s of the plan", name);
    int rc = drps_recfile_open(plan->io, path, kind, f_out, err);
    free(path);
    return rc;
}

int drps_plan_blocks(const struct drps_plan *plan, uint32_t **first_out, struct drps_err *err)
{
    struct drps_recfile *f = NULL;
    size_t blocks = plan->info.blocks;
    uint32_t *first = NULL;
    char *record = NULL;
    size_t cap = 0;
    size_t n = 0;

    *first_out = NULL;
    int rc = drps_plan_file(plan, DRPS_FILE_BLOCKS, DRPS_KIND_BLOCKS, &f, err);
    const int fits = rc == 0 && blocks <= drps_recfile_file_bytes(f); /* a size takes a byte */
    if (fits) first = drps_array_new(blocks + 1, sizeof(*first));
    if (fits && !first)
        rc = drps_err_set(err, -ENOMEM, "no memory for %zu block boundaries", blocks);
    if (rc == 0 && !fits) n = blocks + 1; /* reported below */
    for (uint64_t i = 0; rc == 0 && fits && i < drps_recfile_count(f); i++) {
        size_t bytes = (size_t)drps_recfile_run_bytes(f, i, 1);
        if (drps_array_reserve(&record, &cap, bytes, 1))
            rc = drps_err_set(err, -ENOMEM, "no memory for blocks");
        if (rc == 0) rc = drps_recfile_read(f, i, 1, record, err);
        if (rc < 0) break;
        uint32_t part = bytes >= 4 ? drps_list_count(record) : 0;
        if (part > blocks - n) {
            n = blocks + 1; /* reported below */
            break;
        }
        rc = drps_numbers_decode(record, (size_t)drps_recfile_bytes(f, i), first + n, NULL, err);
        n += part;
    }
    uint64_t sum = 0;
    for (size_t i = 0; rc == 0 && n == blocks && i < n; i++) {
        uint32_t size = first[i];
        first[i] = (uint32_t)sum;
        sum += size;
    }
    if (rc == 0 && (n != blocks || sum != plan->info.rows))
        rc = drps_err_set(err, DRPS_E_CORRUPT,
                          "%s/" DRPS_FILE_BLOCKS " does not hold %zu blocks of %" PRIu64 " rows",
                          plan->dir, blocks, plan->info.rows);
    drps_recfile_close(f);
    free(record);
    if (rc < 0) {
        free(first);
        return rc;
    }
    first[blocks] = (uint32_t)sum;
    *first_out = first;
    return 0;
}

/* ---- Whole files ---- */

int drps_plan_listed(const struct drps_plan *plan, const char *name, uint64_t *bytes_out,
                     uint64_t *sum_out, struct drps_err *err)
{
    size_t i;
    const json_t *entry;
    json_array_foreach((const json_t *)json_object_get(plan->json, "files"), i, entry)
    {
        const char *is = json_string_value(json_object_get(entry, "name"));
        if (!is || strcmp(is, name) != 0) continue;
        int rc = drps_manifest_get_count(entry, "bytes", name, bytes_out, err);
        if (rc == 0) rc = drps_manifest_get_hex(entry, "checksum", name, sum_out, err);
        if (rc < 0) (void)drps_err_context(err, "%s/%s", plan->dir, DRPS_FILE_MANIFEST);
        return rc;
    }
    return drps_err_set(err, DRPS_E_CORRUPT, "%s/%s does not list %s", plan->dir,
                        DRPS_FILE_MANIFEST, name);
}

int drps_plan_read_file(const struct drps_plan *plan, const char *name, drps_plan_bytes visit,
                        void *ctx, struct drps_err *err)
{
    uint64_t want_bytes, want_sum, bytes, sum;
    int rc = drps_plan_listed(plan, name, &want_bytes, &want_sum, err);
    if (rc < 0) return rc;
    char *path = drps_path_join(plan->dir, name);
    if (!path) return drps_err_set(err, -ENOMEM, "no memory to read %s", name);
    rc = file_checksum(plan->io, path, visit, ctx, &bytes, &sum, err);
    if (rc == 0 && (bytes != want_bytes || sum != want_sum))
        rc = drps_err_set(err, DRPS_E_CORRUPT,
                          "%s is not the file that drps-index wrote (size or checksum differ)",
                          path);
    free(path);
    return rc;
}
