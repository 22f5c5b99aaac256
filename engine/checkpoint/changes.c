/* Says in which options a run that goes on from a checkpoint differs from the run that wrote it.
 * The two states are compared as JSON, so that no option that a checkpoint has is forgotten. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "engine/checkpoint/drps_state.h"

/* Members that do not say how steps are made and epochs judged. Epochs may follow on those that
 * were asked for, as if all had been asked for at once. */
static int is_learning(const char *key)
{
    static const char *const others[] = {"plan", "rows",       "row_bytes", "epochs",
                                         "seed", "init_scale", "progress",  "intercept",
                                         "best", "done",       "newton",    "changed"};
    for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
        if (strcmp(key, others[i]) == 0) return 0;
    return 1;
}

static void say_value(FILE *out, const json_t *v)
{
    if (json_is_string(v))
        fprintf(out, "%s", json_string_value(v));
    else if (json_is_number(v))
        fprintf(out, "%g", json_number_value(v));
    else
        fprintf(out, "%s",
                !v                ? "default"
                : json_is_true(v) ? "on"
                : json_is_null(v) ? "any"
                                  : "off");
}

/* Says a member that differs; of an object, those of its members that do. */
static void say_changes(FILE *out, const char *prefix, const char *key, const json_t *before,
                        const json_t *now, size_t *n)
{
    const json_t *either = json_is_object(now) ? now : before;
    const char *member;
    json_t *unused;
    if (json_equal(before, now)) return;
    if (!json_is_object(either)) {
        fprintf(out, "%s%s%s%s=", (*n)++ ? ", " : "", prefix, *prefix ? "." : "", key);
        say_value(out, now);
        fprintf(out, " (before ");
        say_value(out, before);
        fprintf(out, ")");
        return;
    }
    json_object_foreach((json_t *)either, member, unused)
        say_changes(out, strcmp(key, "optimizer") == 0 ? "" : key, member,
                    json_object_get(before, member), json_object_get(now, member), n);
}

/* Members of both, and those that one of them has alone. */
static void say_all(FILE *out, const json_t *before, const json_t *now, size_t *n)
{
    const char *key;
    json_t *v;
    json_object_foreach((json_t *)now, key, v)
    {
        if (is_learning(key)) say_changes(out, "", key, json_object_get(before, key), v, n);
    }
    json_object_foreach((json_t *)before, key, v)
    {
        if (is_learning(key) && !json_object_get(now, key)) say_changes(out, "", key, v, NULL, n);
    }
}

/* Returns the state as JSON, but for the epochs that are done. */
static json_t *options_to_json(const struct drps_state *s)
{
    struct drps_state options = *s;
    options.epoch = 1;
    options.done = NULL;
    return drps_state_to_json(&options);
}

int drps_state_changes(const struct drps_state *before, const struct drps_state *now, char **out,
                       struct drps_err *err)
{
    json_t *a = options_to_json(before), *b = options_to_json(now);
    size_t n = 0, bytes;
    *out = NULL;
    FILE *text = open_memstream(out, &bytes);
    if (a && b && text) say_all(text, a, b, &n);
    int rc = a && b && text ? 0 : -ENOMEM;
    if (text && fclose(text) != 0) rc = -ENOMEM;
    json_decref(a);
    json_decref(b);
    return rc < 0 ? drps_err_set(err, rc, "no memory to compare options with a checkpoint's") : 0;
}
