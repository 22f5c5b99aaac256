/* Classes in manifests, as JSON, and in messages. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <jansson.h>

#include "index/classes/classes_internal.h"

void *drps_classes_to_json(const struct drps_classes *c)
{
    json_t *list = json_array();
    for (size_t i = 0; list && i < drps_classes_count(c); i++)
        if (json_array_append_new(list, json_string(drps_classes_name(c, i)))) {
            json_decref(list);
            list = NULL;
        }
    return list;
}

/* 1: taken; 0: an entry is no class that is new, and named as drps_classes_add() would; -ENOMEM. */
static int take_names(struct drps_classes *c, const json_t *list)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *name = json_string_value(json_array_get(list, i));
        const int32_t number = name ? drps_classes_add(c, name, strlen(name)) : DRPS_CLASS_TEXT;
        if (number == DRPS_CLASS_MEMORY) return -ENOMEM;
        if (number != (int32_t)i || strcmp(drps_classes_name(c, i), name) != 0) return 0;
    }
    return json_is_array(list) && drps_classes_count(c) >= DRPS_CLASSES_LEAST &&
           classes_in_order(c);
}

int drps_classes_get(const void *manifest, const char *path, struct drps_classes **c_out,
                     struct drps_err *err)
{
    const json_t *list = json_object_get((const json_t *)manifest, "classes");
    *c_out = NULL;
    if (!list) return 0;
    struct drps_classes *c = drps_classes_new();
    const int taken = c ? take_names(c, list) : -ENOMEM;
    if (taken > 0) {
        *c_out = c;
        return 0;
    }
    drps_classes_free(c);
    if (taken < 0) return drps_err_set(err, -ENOMEM, "no memory for the classes of %s", path);
    return drps_err_set(err, DRPS_E_CORRUPT,
                        "%s: \"classes\" are not 2 to %d different names in order", path,
                        DRPS_CLASSES_MOST);
}

const char *drps_classes_text(const struct drps_classes *c, char *text, size_t bytes)
{
    enum { END = 24 }; /* room for ", ... (65535 in all)" */
    size_t used = 0, i = 0;
    text[0] = '\0';
    for (; i < drps_classes_count(c); i++) {
        const size_t n = strlen(drps_classes_name(c, i)) + 2;
        if (used + n + END > bytes) break;
        used += (size_t)snprintf(text + used, bytes - used, "%s%s", i ? ", " : "",
                                 drps_classes_name(c, i));
    }
    if (i < drps_classes_count(c))
        (void)snprintf(text + used, bytes - used, "%s... (%zu in all)", i ? ", " : "",
                       drps_classes_count(c));
    return text;
}
