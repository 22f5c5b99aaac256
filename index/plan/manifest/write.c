/* Writes plan.json. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/drps_checksum.h"
#include "base/folder/drps_command.h"
#include "base/folder/drps_manifest.h"
#include "index/plan/drps_plan.h"
#include "index/plan/manifest/files.h"
#include "index/plan/manifest/members.h"

/* What could not be counted is null. */
static json_t *json_loss(double loss)
{
    return isfinite(loss) ? json_real(loss) : json_null();
}

static json_t *json_u64(uint64_t v)
{
    return json_integer((json_int_t)v);
}

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
    if (rc == 0) rc = drps_plan_list_files(io, dir, info, list, &id, err);
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
