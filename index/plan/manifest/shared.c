/* Members that plan.json and the manifest of a model have alike. */
#include <jansson.h>

#include "base/folder/drps_manifest.h"
#include "index/plan/drps_plan.h"

void drps_plan_put_expression(void *manifest, const char *text, uint32_t outputs)
{
    json_t **j = manifest;
    if (text[0]) drps_manifest_put(j, "expression", json_string(text));
    if (outputs) drps_manifest_put(j, "outputs", json_integer((json_int_t)outputs));
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
