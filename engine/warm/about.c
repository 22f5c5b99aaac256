/* Descriptions of rows: taken from plans, models and checkpoints, compared, and written into a
 * checkpoint's manifest. */
#include "engine/warm/about.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/folder/drps_manifest.h"

/* ---- Taking ---- */

static int copy_fields(struct warm_about *a, char *const *fields, size_t n, struct drps_err *err)
{
    a->fields = calloc(n + 1, sizeof(*a->fields));
    if (!a->fields) return drps_err_set(err, -ENOMEM, "no memory for %zu fields", n);
    for (; a->fields_n < n; a->fields_n++) {
        a->fields[a->fields_n] = strdup(fields[a->fields_n]);
        if (!a->fields[a->fields_n])
            return drps_err_set(err, -ENOMEM, "no memory for %zu fields", n);
    }
    return 0;
}

static int copy_classes(struct warm_about *a, const struct drps_classes *classes,
                        struct drps_err *err)
{
    if (!classes) return 0;
    a->classes = drps_classes_copy(classes);
    return a->classes ? 0 : drps_err_set(err, -ENOMEM, "no memory for classes");
}

int drps_warm_about_plan(const struct drps_plan *whole, struct warm_about *out,
                         struct drps_err *err)
{
    const struct drps_plan_info *info = &whole->info;
    *out = (struct warm_about){.factors = info->factors,
                               .dim = info->dim,
                               .field_count = drps_plan_row_fields(info),
                               .normalized = info->normalized,
                               .common = drps_plan_common_rows(info),
                               .string_names = info->string_names,
                               .hash_seed = info->hash_seed,
                               .hashing = info->hashing,
                               .rows = info->rows};
    memcpy(out->algo, info->algo, sizeof(out->algo));
    memcpy(out->loss, info->loss, sizeof(out->loss));
    memcpy(out->expression, info->expression, sizeof(out->expression));
    memcpy(out->net, info->net, sizeof(out->net));
    int rc = copy_classes(out, info->classes, err);
    return rc < 0 ? rc : copy_fields(out, whole->fields, info->fields_n, err);
}

int drps_warm_about_model(const struct drps_modeldir_info *info, struct warm_about *out,
                          struct drps_err *err)
{
    const struct drps_model *m = &info->model;
    *out = (struct warm_about){.factors = m->factors,
                               .dim = m->dim,
                               .field_count = m->fields,
                               .normalized = m->normalized,
                               .common = drps_model_common_rows(m),
                               .string_names = info->string_names,
                               .hash_seed = info->hash_seed,
                               .hashing = info->hashing,
                               .rows = info->rows};
    strncpy(out->algo, drps_algo_name(m->algo), sizeof(out->algo) - 1);
    strncpy(out->loss, drps_loss_name(m->loss), sizeof(out->loss) - 1);
    memcpy(out->expression, m->expr.text, sizeof(out->expression));
    memcpy(out->net, m->layers.text, sizeof(out->net));
    int rc = copy_classes(out, info->classes, err);
    return rc < 0 ? rc : copy_fields(out, info->fields, info->fields_n, err);
}

void drps_warm_about_destroy(struct warm_about *a)
{
    for (size_t i = 0; i < a->fields_n; i++)
        free(a->fields[i]);
    free(a->fields);
    drps_classes_free(a->classes);
    memset(a, 0, sizeof(*a));
}

/* ---- A checkpoint's manifest ---- */

static json_t *fields_to_json(const struct drps_plan *plan)
{
    json_t *list = json_array();
    for (size_t i = 0; i < plan->info.fields_n; i++)
        (void)json_array_append_new(list, json_string(plan->fields[i]));
    return list;
}

void *drps_warm_describe(const struct drps_plan *part, const struct drps_plan *whole)
{
    const struct drps_plan_info *info = &part->info;
    const struct drps_plan_ranks *ranks = &info->ranks;
    const struct drps_plan *all = whole ? whole : part;
    const int several = ranks->count > 1;
    json_t *j =
        json_pack("{s:s, s:I, s:I, s:I, s:I, s:s, s:s, s:I, s:I, s:b, s:b, s:b, s:o, s:o}", "plan",
                  several ? ranks->whole : info->id, "workers", (json_int_t)ranks->count, "rank",
                  (json_int_t)(several ? ranks->rank : 0), "first_row",
                  (json_int_t)ranks->first_row, "rows", (json_int_t)all->info.rows, "algo",
                  info->algo, "loss", info->loss, "factors", (json_int_t)info->factors, "dim",
                  (json_int_t)info->dim, "classification", info->classification, "has_bias",
                  drps_plan_common_rows(&all->info) > 0, "string_names", info->string_names,
                  "hash_seed", drps_manifest_hex(info->hash_seed), "fields", fields_to_json(all));
    if (drps_plan_row_fields(info))
        drps_manifest_put(&j, "field_count", json_integer(info->field_count));
    if (info->normalized) drps_manifest_put(&j, "normalized", json_true());
    drps_hashing_put(&j, &info->hashing);
    if (info->classes) drps_manifest_put(&j, "classes", drps_classes_to_json(info->classes));
    drps_plan_put_expression(&j, info->expression, info->outputs);
    drps_plan_put_net(&j, info->net);
    return j;
}

static int read_fields(const json_t *list, const char *path, struct warm_about *out,
                       struct drps_err *err)
{
    const size_t n = json_array_size(list);
    char **fields = calloc(n + 1, sizeof(*fields));
    int rc = fields ? 0 : drps_err_set(err, -ENOMEM, "no memory for %zu fields", n);
    for (size_t i = 0; i < n && rc == 0; i++) {
        fields[i] = (char *)json_string_value(json_array_get(list, i)); /* only read */
        if (!fields[i]) rc = drps_err_set(err, DRPS_E_CORRUPT, "%s: a field has no name", path);
    }
    if (rc == 0) rc = copy_fields(out, fields, n, err);
    free(fields);
    return rc;
}

/* Returns how many classes labels have, as the member `classes` of struct drps_model_terms says. */
static int label_classes(const json_t *of, const struct warm_about *a)
{
    if (a->classes) return (int)drps_classes_count(a->classes);
    return json_is_true(json_object_get(of, "classification"));
}

/* A row has as many floats as the rest says. */
static int check_dim(const json_t *of, const char *path, struct warm_about *a, struct drps_err *err)
{
    struct drps_err why = DRPS_ERR_INIT;
    struct drps_model model;
    struct drps_model_terms terms = {.algo = a->algo,
                                     .loss = a->loss,
                                     .expression = a->expression,
                                     .net = a->net,
                                     .factors = a->factors,
                                     .classes = label_classes(of, a)};
    int rc = drps_plan_get_expression(of, path, a->expression, &terms.outputs, err);
    if (rc == 0) rc = drps_plan_get_net(of, path, a->net, err);
    if (rc < 0) return rc;
    if (drps_model_settle(&model, &terms, &why) == 0 &&
        drps_model_set_fields(&model, a->field_count, a->normalized, &why) == 0 &&
        model.dim == a->dim) {
        model.has_bias = json_is_true(json_object_get(of, "has_bias"));
        a->common = drps_model_common_rows(&model);
        return 0;
    }
    return drps_err_set(err, DRPS_E_CORRUPT, "%s: rows of %u floats do not fit algorithm %s", path,
                        a->dim, a->algo);
}

int drps_warm_about_read(const json_t *of, const char *path, struct warm_about *out,
                         struct drps_err *err)
{
    memset(out, 0, sizeof(*out));
    int rc = drps_manifest_get_text(of, "algo", path, out->algo, sizeof(out->algo), err);
    if (rc == 0) rc = drps_manifest_get_text(of, "loss", path, out->loss, sizeof(out->loss), err);
    if (rc == 0) rc = drps_manifest_get_u32(of, "factors", path, &out->factors, err);
    if (rc == 0) rc = drps_manifest_get_u32(of, "dim", path, &out->dim, err);
    if (rc == 0 && json_object_get(of, "field_count"))
        rc = drps_manifest_get_u32(of, "field_count", path, &out->field_count, err);
    if (rc == 0) rc = drps_manifest_get_count(of, "rows", path, &out->rows, err);
    if (rc == 0) rc = drps_manifest_get_hex(of, "hash_seed", path, &out->hash_seed, err);
    if (rc == 0) rc = drps_hashing_get(of, path, &out->hashing, err);
    if (rc < 0) return rc;
    out->normalized = json_is_true(json_object_get(of, "normalized"));
    out->string_names = json_is_true(json_object_get(of, "string_names"));
    const struct drps_bound bounds[] = {{"rows", out->rows, 1, UINT32_MAX, "32 bits"}};
    rc = drps_manifest_check(bounds, 1, path, err);
    if (rc == 0) rc = drps_classes_get(of, path, &out->classes, err);
    if (rc == 0) rc = check_dim(of, path, out, err);
    return rc == 0 ? read_fields(json_object_get(of, "fields"), path, out, err) : rc;
}

/* ---- Comparing ---- */

static const char *kind_of_names(const struct warm_about *a)
{
    return a->string_names ? "strings" : "numbers";
}

static int same_columns(const struct warm_about *a, const struct warm_about *b)
{
    int same = a->fields_n == b->fields_n;
    for (size_t i = 0; i < a->fields_n && same; i++)
        same = strcmp(a->fields[i], b->fields[i]) == 0;
    return same;
}

/* A row of a field-aware model has its numbers in the order of the fields. */
static int check_fields(const struct warm_about *old, const char *path,
                        const struct warm_about *now, struct drps_err *err)
{
    if (!now->field_count) return 0;
    if (old->normalized != now->normalized)
        return drps_err_set(err, DRPS_E_CONFIG,
                            "samples of %s are %s, those of the plan are %s: make the plan like it",
                            path, old->normalized ? "normalised" : "not normalised",
                            now->normalized ? "normalised" : "not");
    if (old->field_count == now->field_count && same_columns(old, now)) return 0;
    if (old->field_count != now->field_count)
        return drps_err_set(err, DRPS_E_CONFIG,
                            "%s has %u fields, and the plan %u: a row has numbers for each, so "
                            "training cannot begin with it",
                            path, old->field_count, now->field_count);
    return drps_err_set(err, DRPS_E_CONFIG,
                        "%s has other fields than the plan, or the same in another order: a row "
                        "has numbers for each, so training cannot begin with it",
                        path);
}

/* Bins have no names by which they could be found again: they must be the same. */
static int check_hashing(const struct warm_about *old, const char *path,
                         const struct warm_about *now, struct drps_err *err)
{
    char a[DRPS_HASHING_TEXT_BYTES], b[DRPS_HASHING_TEXT_BYTES];
    const struct drps_hashing *was = &old->hashing, *is = &now->hashing;
    if (!drps_hashing_same(was, is))
        return drps_err_set(err, DRPS_E_CONFIG,
                            "features of %s are hashed (%s), those of the plan (%s): a bin's row "
                            "means the same only where all are hashed alike",
                            path, was->bits ? drps_hashing_text(was, a) : "not",
                            is->bits ? drps_hashing_text(is, b) : "not");
    if (!is->bits || (old->hash_seed == now->hash_seed && same_columns(old, now))) return 0;
    return drps_err_set(err, DRPS_E_CONFIG,
                        "features of %s are hashed with %s than those of the plan: a bin's row "
                        "means the same only where all are hashed alike",
                        path, old->hash_seed != now->hash_seed ? "another seed" : "other columns");
}

static const char *loss_of(const struct warm_about *a)
{
    return a->expression[0] ? a->expression : a->loss;
}

int drps_warm_check(const struct warm_about *old, const char *path, const struct warm_about *now,
                    struct drps_err *err)
{
    static const char todo[] = "training can only begin with rows of the same kind";
    if (strcmp(old->algo, now->algo) != 0)
        return drps_err_set(err, DRPS_E_CONFIG, "%s is of algorithm %s, the plan of %s: %s", path,
                            old->algo, now->algo, todo);
    if (!drps_classes_same(old->classes, now->classes))
        return drps_err_set(
            err, DRPS_E_CONFIG,
            "%s has other classes than the plan: a row has a number for each, so %s", path, todo);
    if (old->factors == now->factors && check_fields(old, path, now, err) < 0) return DRPS_E_CONFIG;
    if (old->factors != now->factors || old->dim != now->dim)
        return drps_err_set(err, DRPS_E_CONFIG, "%s has %u factors a row, the plan %u: %s", path,
                            old->factors, now->factors, todo);
    if (strcmp(old->loss, now->loss) != 0 || strcmp(old->expression, now->expression) != 0)
        return drps_err_set(err, DRPS_E_CONFIG,
                            "%s was trained for loss %s, the plan is for %s: %s; make the plan "
                            "for the loss %s",
                            path, loss_of(old), loss_of(now), todo, loss_of(old));
    if (strcmp(old->net, now->net) != 0)
        return drps_err_set(err, DRPS_E_CONFIG, "%s has another net than the plan: %s", path, todo);
    if (check_hashing(old, path, now, err) < 0) return DRPS_E_CONFIG;
    if (old->string_names != now->string_names)
        return drps_err_set(err, DRPS_E_CONFIG,
                            "features of %s are called by %s, those of the plan by %s: no name "
                            "could be found again",
                            path, kind_of_names(old), kind_of_names(now));
    return 0;
}

int drps_warm_same_keys(const struct warm_about *old, const struct warm_about *now)
{
    if (!old->string_names) return 1; /* the numbers are the keys */
    return old->hash_seed == now->hash_seed && same_columns(old, now);
}
