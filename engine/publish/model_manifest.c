/* model.json, written and read: what a model is, how it was made, and its files' sizes and
 * checksums.
 */
#include "engine/publish/modeldir_internal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/folder/drps_command.h"
#include "base/folder/drps_manifest.h"
#include "engine/topic/drps_topic.h"

/* ---- Writing ---- */

static json_t *tables_to_json(const struct drps_modeldir_info *info)
{
    json_t *list = json_array();
    for (size_t i = 0; i < info->tables_n; i++)
        drps_manifest_append(&list, json_pack("{s:s, s:I, s:I}", "name", info->tables[i].name,
                                              "first", (json_int_t)info->tables[i].first, "rows",
                                              (json_int_t)info->tables[i].rows));
    return list;
}

static json_t *fields_to_json(const struct drps_modeldir_info *info)
{
    json_t *list = json_array();
    for (size_t i = 0; i < info->fields_n; i++)
        drps_manifest_append(&list, json_string(info->fields[i]));
    return list;
}

enum { GRAM_NUMBER_BYTES = 128 }; /* of a number in a list, and its text twice */

uint64_t drps_modeldir_gram_memory(const struct drps_model *model)
{
    if (!drps_algorithm_is_topic(drps_algorithm(model->algo))) return 0;
    return drps_topic_gram_n(model->factors) * (uint64_t)GRAM_NUMBER_BYTES;
}

static json_t *topics_to_json(const struct drps_modeldir_info *info)
{
    json_t *gram = json_array();
    for (size_t i = 0; i < drps_topic_gram_n(info->model.factors); i++)
        drps_manifest_append(&gram, json_real(info->gram[i]));
    return gram ? json_pack("{s:f, s:o}", "l1", info->topic_l1, "gram", gram) : NULL;
}

/* What model.json says of `info`; NULL when memory is gone. */
static json_t *info_to_json(const struct drps_modeldir_info *info)
{
    const struct drps_model *m = &info->model;
    const int imported = strcmp(info->plan_id, DRPS_MODEL_IMPORTED) == 0;
    json_t *j = json_pack(
        "{s:s, s:i, s:s, s:s, s:s, s:s, s:s, s:i, s:i, s:b, s:f, s:f, s:o, s:b, s:f, "
        "s:f, s:f, s:o, s:b, "
        "s:I, s:I, s:o, s:o, s:o}",
        "kind", drps_modeldir_kind.kind, "version", DRPS_MODELDIR_VERSION, "made_by",
        imported ? "drps-import " DRPS_VERSION : "drps-train " DRPS_VERSION, "plan", info->plan_id,
        "algo", drps_algo_name(m->algo), "loss", drps_loss_name(m->loss), "format", info->format,
        "factors", (int)m->factors, "dim", (int)m->dim, "has_bias", m->has_bias, "bias_start",
        (double)m->bias_start, "init_scale", (double)m->init_scale, "seed",
        drps_manifest_hex(m->seed), "classification", info->classification, "label_negative",
        (double)info->label_negative, "label_positive", (double)info->label_positive, "label_mean",
        info->label_mean, "hash_seed", drps_manifest_hex(info->hash_seed), "string_names",
        info->string_names, "rows", (json_int_t)info->rows, "block_rows",
        (json_int_t)info->block_rows, "content", drps_manifest_hex(info->content), "tables",
        tables_to_json(info), "fields", fields_to_json(info));
    if (m->fields) drps_manifest_put(&j, "field_count", json_integer(m->fields));
    if (m->normalized) drps_manifest_put(&j, "normalized", json_true());
    drps_hashing_put(&j, &info->hashing);
    if (info->classes) drps_manifest_put(&j, "classes", drps_classes_to_json(info->classes));
    drps_plan_put_expression(&j, m->expr.text,
                             m->expr.vector_scores && !m->expr.vector_y ? m->outputs : 0);
    drps_plan_put_net(&j, m->layers.text);
    drps_plan_put_sequences(&j, &info->sequences);
    if (info->gram) drps_manifest_put(&j, "topics", topics_to_json(info));
    if (info->label_column[0])
        drps_manifest_put(&j, "label_column", json_string(info->label_column));
    if (info->separator > 0) drps_manifest_put(&j, "separator", json_stringn(&info->separator, 1));
    if (info->headless) drps_manifest_put(&j, "headless", json_true());
    drps_command_put(&j, "plan_command", info->plan_command);
    return j;
}

int drps_modeldir_measure_rows(const char *path, uint64_t *files_out, uint64_t *bytes_out,
                               struct drps_err *err)
{
    DIR *dir = opendir(path);
    const struct dirent *entry;
    struct stat st;
    *files_out = *bytes_out = 0;
    if (!dir) return drps_err_set(err, -errno, "cannot list %s: %s", path, drps_err_name(-errno));
    while ((entry = readdir(dir)))
        if (fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
            S_ISREG(st.st_mode)) {
            (*files_out)++;
            *bytes_out += (uint64_t)st.st_size;
        }
    closedir(dir);
    return 0;
}

void *drps_modeldir_describe(const struct drps_modeldir_info *info, void *training)
{
    json_t *j = info_to_json(info);
    if (!j || !training || json_object_set(j, "training", training) == 0) return j;
    json_decref(j);
    return NULL;
}

int drps_modeldir_finish(const struct drps_io *io, const char *dir, const char *store,
                         uint64_t names_bytes, uint64_t names_sum, void *description,
                         struct drps_err *err)
{
    char *rows = drps_path_join(dir, DRPS_MODEL_ROWS);
    char *manifest = drps_path_join(dir, DRPS_MODEL_MANIFEST);
    uint64_t rows_files, rows_bytes;
    int rc = rows && manifest ? 0 : drps_err_set(err, -ENOMEM, "no memory to finish %s", dir);

    if (rc == 0) rc = drps_modeldir_measure_rows(rows, &rows_files, &rows_bytes, err);
    if (rc == 0) {
        json_t *files = json_pack("{s:{s:I, s:o}, s:{s:s, s:I, s:I}}", DRPS_MODEL_NAMES, "bytes",
                                  (json_int_t)names_bytes, "checksum", drps_manifest_hex(names_sum),
                                  DRPS_MODEL_ROWS, "store", store, "files", (json_int_t)rows_files,
                                  "bytes", (json_int_t)rows_bytes);
        rc = json_object_set(description, "files", files) == 0
                 ? drps_manifest_write(io, manifest, description, err)
                 : drps_err_set(err, -ENOMEM, "no memory for %s", manifest);
        json_decref(files);
    }
    free(rows);
    free(manifest);
    return rc;
}

/* ---- Reading ---- */

static int info_from_json(struct drps_modeldir_info *info, const json_t *j, const char *path,
                          struct drps_err *err)
{
    char algo[DRPS_PLAN_NAME_BYTES], loss[DRPS_PLAN_NAME_BYTES], expression[DRPS_EXPR_TEXT];
    char net[DRPS_LAYERS_TEXT];
    struct drps_model *m = &info->model;
    float mean, bias_start, init_scale;
    uint32_t factors, outputs, fields = 0;
    uint64_t seed;

    int rc = drps_manifest_get_text(j, "plan", path, info->plan_id, sizeof(info->plan_id), err);
    if (rc == 0) rc = drps_manifest_get_text(j, "algo", path, algo, sizeof(algo), err);
    if (rc == 0) rc = drps_manifest_get_text(j, "loss", path, loss, sizeof(loss), err);
    if (rc == 0) rc = drps_plan_get_expression(j, path, expression, &outputs, err);
    if (rc == 0) rc = drps_plan_get_net(j, path, net, err);
    if (rc == 0) rc = drps_plan_get_sequences(j, path, &info->sequences, err);
    if (rc == 0)
        rc = drps_manifest_get_text(j, "format", path, info->format, sizeof(info->format), err);
    if (rc == 0) rc = drps_manifest_get_u32(j, "factors", path, &factors, err);
    if (rc == 0 && json_object_get(j, "field_count"))
        rc = drps_manifest_get_u32(j, "field_count", path, &fields, err);
    if (rc == 0) rc = drps_manifest_get_float(j, "bias_start", path, &bias_start, err);
    if (rc == 0) rc = drps_manifest_get_float(j, "init_scale", path, &init_scale, err);
    if (rc == 0) rc = drps_manifest_get_hex(j, "seed", path, &seed, err);
    if (rc == 0)
        rc = drps_manifest_get_float(j, "label_negative", path, &info->label_negative, err);
    if (rc == 0)
        rc = drps_manifest_get_float(j, "label_positive", path, &info->label_positive, err);
    if (rc == 0) rc = drps_manifest_get_float(j, "label_mean", path, &mean, err);
    if (rc == 0) rc = drps_manifest_get_real(j, "label_mean", path, &info->label_mean, err);
    if (rc == 0) rc = drps_manifest_get_hex(j, "hash_seed", path, &info->hash_seed, err);
    if (rc == 0) rc = drps_manifest_get_hex(j, "content", path, &info->content, err);
    if (rc == 0)
        rc = drps_plan_get_columns(j, path, info->label_column, &info->separator, &info->headless,
                                   err);
    if (rc == 0) rc = drps_command_get(j, "plan_command", path, &info->plan_command, err);
    if (rc == 0)
        rc = drps_command_get(json_object_get(j, "training"), "command", path, &info->command, err);
    if (rc < 0) return rc;
    info->classification = json_is_true(json_object_get(j, "classification"));
    info->string_names = json_is_true(json_object_get(j, "string_names"));
    rc = drps_hashing_get(j, path, &info->hashing, err);
    if (rc == 0 && info->hashing.bits && info->string_names)
        rc = drps_err_set(err, DRPS_E_CORRUPT, "%s: features are hashed, and strings", path);
    if (rc < 0) return rc;
    struct drps_err inner = DRPS_ERR_INIT;
    const struct drps_model_terms terms = {
        .algo = algo,
        .loss = loss,
        .expression = expression,
        .net = net,
        .factors = factors,
        .outputs = outputs,
        .classes = info->classes ? (int)drps_classes_count(info->classes) : info->classification};
    if (drps_model_settle(m, &terms, &inner) < 0 ||
        drps_model_set_fields(m, fields, json_is_true(json_object_get(j, "normalized")), &inner) <
            0)
        return drps_err_set(err, DRPS_E_CORRUPT, "%s: %s", path, inner.text);
    m->has_bias = json_is_true(json_object_get(j, "has_bias"));
    m->bias_start = bias_start;
    m->init_scale = init_scale;
    m->seed = seed;
    return 0;
}

/* A net's parameters fill the first rows, which have no names. */
static int check_net(const struct drps_modeldir_info *info, const char *path, struct drps_err *err)
{
    const struct drps_model *m = &info->model;
    const uint32_t there = drps_tables_common_rows(info->tables, info->tables_n);
    const uint32_t due = drps_model_common_rows(m);
    if ((!m->layers.n && there <= 1) ||
        (there == due && m->has_bias && (m->fields > 0) == drps_layers_take_fields(&m->layers)))
        return drps_plan_check_sequences(&info->sequences, &m->layers, m->fields, info->format,
                                         path, err);
    return drps_err_set(err, DRPS_E_CORRUPT,
                        "%s: the first table has %u rows of no feature; the model has %u, and %u "
                        "fields",
                        path, there, due, m->fields);
}

/* Reads and checks every other number; those of "training" are only shown. A block of rows is not
 * larger than it is written, and rows are those of the tables. */
static int numbers_from_json(struct drps_modeldir *md, const json_t *j, const char *path,
                             struct drps_err *err)
{
    struct drps_modeldir_info *info = &md->info;
    const json_t *names = json_object_get(json_object_get(j, "files"), DRPS_MODEL_NAMES);
    const uint64_t dim = info->model.dim;
    uint64_t has_dim, rows = 0;
    int rc = drps_manifest_get_count(j, "dim", path, &has_dim, err);
    if (rc == 0) rc = drps_manifest_get_count(j, "rows", path, &info->rows, err);
    if (rc == 0) rc = drps_manifest_get_count(j, "block_rows", path, &info->block_rows, err);
    if (rc == 0) rc = drps_manifest_get_count(names, "bytes", path, &md->names_bytes, err);
    if (rc < 0) return rc;
    rc = drps_tables_check(info->tables, info->tables_n, path, &rows, err);
    if (rc == 0) rc = check_net(info, path, err);
    const struct drps_bound bounds[] = {
        {"dim", has_dim, dim, dim, "the classes, outputs or factors"},
        {"rows", info->rows, rows, rows, "the tables"},
        {"block_rows", info->block_rows, 1, drps_modeldir_block_rows(info->model.dim), "the dim"},
    };
    return rc == 0 ? drps_manifest_check(bounds, sizeof(bounds) / sizeof(bounds[0]), path, err)
                   : rc;
}

static int lists_from_json(struct drps_modeldir_info *info, const json_t *j, const char *path,
                           struct drps_err *err)
{
    const json_t *tables = json_object_get(j, "tables");
    const json_t *fields = json_object_get(j, "fields");
    const json_t *store = json_object_get(json_object_get(j, "files"), DRPS_MODEL_ROWS);
    int rc = drps_manifest_get_text(store, "store", path, info->store, sizeof(info->store), err);
    info->tables_n = json_array_size(tables);
    if (info->tables_n > DRPS_PLAN_TABLES)
        return drps_err_set(err, DRPS_E_CORRUPT, "%s: %zu tables; at most %d are known", path,
                            info->tables_n, DRPS_PLAN_TABLES);
    for (size_t i = 0; rc == 0 && i < info->tables_n; i++) {
        struct drps_table *t = &info->tables[i];
        const json_t *entry = json_array_get(tables, i);
        rc = drps_manifest_get_text(entry, "name", path, t->name, sizeof(t->name), err);
        if (rc == 0) rc = drps_manifest_get_count(entry, "first", path, &t->first, err);
        if (rc == 0) rc = drps_manifest_get_count(entry, "rows", path, &t->rows, err);
    }
    info->fields_n = 0;
    info->fields = calloc(json_array_size(fields) + 1, sizeof(*info->fields));
    if (!info->fields) return drps_err_set(err, -ENOMEM, "no memory for %s", path);
    for (; info->fields_n < json_array_size(fields); info->fields_n++) {
        const char *text = json_string_value(json_array_get(fields, info->fields_n));
        info->fields[info->fields_n] = strdup(text ? text : "");
        if (!info->fields[info->fields_n])
            return drps_err_set(err, -ENOMEM, "no memory for %s", path);
    }
    return rc;
}

/* What documents are coded with: numbers, as many as two topics can be paired. */
static int topics_from_json(struct drps_modeldir *md, const char *path, struct drps_err *err)
{
    const json_t *topics = json_object_get(md->json, "topics");
    const json_t *gram = json_object_get(topics, "gram");
    const struct drps_model *model = &md->info.model;
    const size_t n = drps_topic_gram_n(model->factors);
    if (!drps_algorithm_is_topic(drps_algorithm(model->algo))) return 0;
    int rc = drps_manifest_get_real(topics, "l1", path, &md->info.topic_l1, err);
    if (rc == 0 && (!(md->info.topic_l1 >= 0) || json_array_size(gram) != n))
        rc = drps_err_set(err, DRPS_E_CORRUPT,
                          "%s: %zu products of topics with l1 %g; %zu are due, and l1 is not "
                          "negative",
                          path, json_array_size(gram), md->info.topic_l1, n);
    if (rc < 0) return rc;
    md->gram = calloc(n, sizeof(*md->gram));
    if (!md->gram) return drps_err_set(err, -ENOMEM, "no memory for %s", path);
    for (size_t i = 0; i < n; i++) {
        const json_t *number = json_array_get(gram, i);
        if (!json_is_number(number))
            return drps_err_set(err, DRPS_E_CORRUPT, "%s: \"gram\" holds else than numbers", path);
        md->gram[i] = json_number_value(number);
    }
    md->info.gram = md->gram;
    return 0;
}

int drps_modeldir_read_manifest(struct drps_modeldir *md, struct drps_err *err)
{
    char *path = drps_path_join(md->dir, DRPS_MODEL_MANIFEST);
    if (!path) return drps_err_set(err, -ENOMEM, "no memory to open %s", md->dir);
    int rc = drps_manifest_read(md->io, path, drps_modeldir_kind.kind, DRPS_MODELDIR_VERSION,
                                &md->json, err);
    if (rc == -ENOENT || rc == -ENOTDIR)
        rc =
            drps_manifest_missing(md->io, md->dir, DRPS_MODEL_MANIFEST, "model", "drps-train", err);
    if (rc == 0) rc = drps_manifest_rename(md->json, "rank", "factors", path, err);
    if (rc == 0) rc = drps_classes_get(md->json, path, &md->classes, err);
    md->info.classes = md->classes;
    if (rc == 0) rc = info_from_json(&md->info, md->json, path, err);
    if (rc == 0) rc = lists_from_json(&md->info, md->json, path, err);
    if (rc == 0) rc = numbers_from_json(md, md->json, path, err);
    if (rc == 0) rc = topics_from_json(md, path, err);
    if (rc == 0) rc = drps_calibration_get(md->json, path, &md->info.calibration, err);
    free(path);
    return rc;
}
