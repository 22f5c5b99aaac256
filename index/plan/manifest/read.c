/* What plan.json says of everything but ranks. */
#include "index/plan/manifest/read.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/folder/drps_command.h"
#include "base/folder/drps_manifest.h"
#include "index/plan/drps_plan_files.h"
#include "index/plan/manifest/members.h"
#include "index/plan/manifest/check.h"

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

int drps_plan_read_info(struct drps_plan *plan, const char *path, struct drps_err *err)
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
    rc = drps_plan_read_ranks(plan, path, err);
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
