/* Format and columns of the input, from rank 0 to all (shape.h), as JSON. */
#include "index/samples/read/shape.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

enum { WAIT_MS = 3600000 }; /* for rank 0, which reads the first lines of its input */
enum { SHAPE_MOST = 64 << 20 };

/* Bytes of rank 0, in as many pieces as they take. */
static int broadcast(const struct swap_ranks *ranks, char *text, uint64_t bytes,
                     struct drps_err *err)
{
    int rc = 0;
    for (uint64_t at = 0; at < bytes && rc == 0; at += DRPS_NET_GROUP_BYTES) {
        const uint64_t left = bytes - at;
        const size_t n = left < DRPS_NET_GROUP_BYTES ? (size_t)left : DRPS_NET_GROUP_BYTES;
        rc = drps_net_broadcast(ranks->net, 0, text + at, n, WAIT_MS, err);
    }
    return rc;
}

static json_t *to_json(const struct read_samples *p)
{
    json_t *fields = json_array();
    for (size_t i = 0; i < p->fields_n; i++)
        (void)json_array_append_new(fields, json_string(p->fields[i]));
    return json_pack("{s:s, s:b, s:b, s:b, s:s, s:o}", "format", p->format, "string_names",
                     p->string_names, "headless", p->headless, "classes", p->classes != NULL,
                     "label_column", p->label_column, "fields", fields);
}

int drps_shape_tell(const struct swap_ranks *ranks, const struct read_samples *p,
                    struct drps_err *err)
{
    json_t *j = to_json(p);
    char *text = j ? json_dumps(j, JSON_COMPACT) : NULL;
    uint64_t bytes = text ? strlen(text) : 0;
    int rc = text ? 0 : drps_err_set(err, -ENOMEM, "no memory for the columns");
    if (rc == 0 && bytes > SHAPE_MOST)
        rc = drps_err_set(err, DRPS_E_CONFIG,
                          "the names of the columns take %llu bytes: on several machines at most "
                          "%d",
                          (unsigned long long)bytes, (int)SHAPE_MOST);
    if (rc == 0) rc = drps_net_broadcast(ranks->net, 0, &bytes, sizeof(bytes), WAIT_MS, err);
    if (rc == 0) rc = broadcast(ranks, text, bytes, err);
    json_decref(j);
    free(text);
    return rc;
}

static int take_fields(const json_t *fields, struct read_samples *p, struct drps_err *err)
{
    const size_t n = json_array_size(fields);
    if (!json_is_array(fields)) return drps_swap_fault(0, "no columns", err);
    p->fields = calloc(n + 1, sizeof(*p->fields));
    if (!p->fields) return drps_err_set(err, -ENOMEM, "no memory for %zu columns", n);
    for (; p->fields_n < n; p->fields_n++) {
        const char *name = json_string_value(json_array_get(fields, p->fields_n));
        if (!name) return drps_swap_fault(0, "a column without a name", err);
        p->fields[p->fields_n] = strdup(name);
        if (!p->fields[p->fields_n])
            return drps_err_set(err, -ENOMEM, "no memory for %zu columns", n);
    }
    return 0;
}

static int from_json(json_t *j, struct read_samples *p, int *classes_out, struct drps_err *err)
{
    const char *format, *label;
    json_t *fields;
    if (json_unpack(j, "{s:s, s:b, s:b, s:b, s:s, s:o}", "format", &format, "string_names",
                    &p->string_names, "headless", &p->headless, "classes", classes_out,
                    "label_column", &label, "fields", &fields) ||
        strlen(format) >= sizeof(p->format) || strlen(label) >= sizeof(p->label_column) ||
        (*classes_out && !p->classes))
        return drps_swap_fault(0, "a format that is none", err);
    (void)snprintf(p->format, sizeof(p->format), "%s", format);
    (void)snprintf(p->label_column, sizeof(p->label_column), "%s", label);
    return p->string_names ? take_fields(fields, p, err) : 0;
}

int drps_shape_take(const struct swap_ranks *ranks, struct read_samples *p, int *classes_out,
                    struct drps_err *err)
{
    uint64_t bytes = 0;
    int rc = drps_net_broadcast(ranks->net, 0, &bytes, sizeof(bytes), WAIT_MS, err);
    if (rc == 0 && bytes > SHAPE_MOST) rc = drps_swap_fault(0, "too many columns", err);
    if (rc < 0) return rc;
    char *text = malloc((size_t)bytes + 1);
    if (!text) return drps_err_set(err, -ENOMEM, "no memory for the columns");
    rc = broadcast(ranks, text, bytes, err);
    json_t *j = rc == 0 ? json_loadb(text, (size_t)bytes, 0, NULL) : NULL;
    if (rc == 0) rc = from_json(j, p, classes_out, err);
    json_decref(j);
    free(text);
    return rc;
}
