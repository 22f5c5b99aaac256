/* Reading and writing JSON with a checksum of itself, and members with their bounds. It needs
 * jansson. */
#include "base/folder/drps_manifest.h"

#include <errno.h>
#include <fcntl.h>
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_checksum.h"

enum { LIMIT_BYTES = 64 << 20 };

/* Returns the text of `j`, own; NULL when memory is gone. Its room is made first: where a buffer of
 * jansson's cannot grow, a text may come out that lacks a key. */
static char *text_of(const json_t *j, size_t flags)
{
    const size_t n = json_dumpb(j, NULL, 0, flags);
    char *text = n ? malloc(n + 1) : NULL;
    if (!text) return NULL;
    text[n] = '\0';
    if (json_dumpb(j, text, n, flags) == n) return text;
    free(text);
    return NULL;
}

/* The checksum is that of the text with sorted keys and without the key "checksum", so that the
 * layout of the file does not matter. */
static int sum_of(const json_t *j, uint64_t *sum_out)
{
    char *text = text_of(j, JSON_COMPACT | JSON_SORT_KEYS | JSON_REAL_PRECISION(17));
    if (!text) return -ENOMEM;
    *sum_out = drps_checksum(text, strlen(text));
    free(text);
    return 0;
}

static void drop_unless(int done, json_t **j)
{
    if (done) return;
    json_decref(*j);
    *j = NULL;
}

void drps_manifest_put(json_t **j, const char *key, json_t *value)
{
    drop_unless(json_object_set_new(*j, key, value) == 0, j);
}

void drps_manifest_append(json_t **list, json_t *value)
{
    drop_unless(json_array_append_new(*list, value) == 0, list);
}

json_t *drps_manifest_remarks(const struct drps_remarks *r)
{
    json_t *list = json_array();
    for (size_t i = 0; i < r->n; i++)
        drps_manifest_append(&list, json_string(r->text[i]));
    return list;
}

json_t *drps_manifest_hex(uint64_t v)
{
    return json_sprintf("%016" PRIx64, v);
}

int drps_manifest_write(const struct drps_io *io, const char *path, json_t *j, struct drps_err *err)
{
    uint64_t sum;
    char *text = NULL;
    if (j && sum_of(j, &sum) == 0 &&
        json_object_set_new(j, "checksum", drps_manifest_hex(sum)) == 0)
        text = text_of(j, JSON_INDENT(1) | JSON_REAL_PRECISION(17));
    if (!text) return drps_err_set(err, -ENOMEM, "no memory to write %s", path);
    int rc = drps_io_write_file(io, path, text, strlen(text), err);
    free(text);
    return rc;
}

static int check_sum(json_t *j, const char *path, struct drps_err *err)
{
    uint64_t saved, sum;
    int rc = drps_manifest_get_hex(j, "checksum", path, &saved, err);
    if (rc < 0) return rc;
    (void)json_object_del(j, "checksum"); /* it was there */
    if (sum_of(j, &sum) < 0) return drps_err_set(err, -ENOMEM, "no memory to check %s", path);
    if (sum == saved) return 0;
    return drps_err_set(err, DRPS_E_CORRUPT, "%s fails its checksum: it is not as it was written",
                        path);
}

static int load(const struct drps_io *io, const char *path, json_t **j_out, struct drps_err *err)
{
    json_error_t at;
    char *text;
    size_t n;

    *j_out = NULL;
    int rc = drps_io_read_file(io, path, LIMIT_BYTES, &text, &n, err);
    if (rc < 0) return rc;
    *j_out = json_loadb(text, n, JSON_REJECT_DUPLICATES, &at);
    free(text);
    if (*j_out) return 0;
    if (json_error_code(&at) == json_error_out_of_memory || !at.text[0]) /* jansson has not said */
        return drps_err_set(err, -ENOMEM, "no memory to read %s", path);
    return drps_err_set(err, DRPS_E_CORRUPT, "%s:%d:%d: %s", path, at.line, at.column, at.text);
}

/* Kind and version are checked before the checksum, as another version may sum in another manner.
 */
static int check_kind(const json_t *j, const char *path, const char *kind, json_int_t *version_out,
                      struct drps_err *err)
{
    const char *is = json_string_value(json_object_get(j, "kind"));
    *version_out = json_integer_value(json_object_get(j, "version"));
    if (is && !strcmp(is, kind)) return 0;
    return drps_err_set(err, DRPS_E_CORRUPT, "%s does not describe a drps %s", path, kind + 5);
}

int drps_manifest_read(const struct drps_io *io, const char *path, const char *kind, int version,
                       json_t **j_out, struct drps_err *err)
{
    json_t *j;
    json_int_t has = 0;

    *j_out = NULL;
    int rc = load(io, path, &j, err);
    if (rc == 0) rc = check_kind(j, path, kind, &has, err);
    if (rc == 0 && has != version)
        rc = drps_err_set(err, DRPS_E_VERSION,
                          "%s has version %lld; this program reads %d: make the %s anew", path,
                          (long long)has, version, kind + 5);
    if (rc == 0) rc = check_sum(j, path, err);
    if (rc < 0) {
        json_decref(j);
        return rc;
    }
    *j_out = j;
    return 0;
}

int drps_manifest_missing(const struct drps_io *io, const char *dir, const char *file,
                          const char *what, const char *tool, struct drps_err *err)
{
    const int fd = io->ops->open(io->ctx, dir, O_PATH | O_CLOEXEC, 0);
    drps_err_clear(err);
    if (fd < 0) return drps_err_set(err, DRPS_E_NOT_FOUND, "%s: %s", dir, drps_err_name(fd));
    drps_io_close(io, fd);
    return drps_err_set(err, DRPS_E_NOT_FOUND, "%s is no drps %s (no %s in it): make one with %s",
                        dir, what, file, tool);
}

int drps_manifest_check(const struct drps_bound *bounds, size_t n, const char *path,
                        struct drps_err *err)
{
    for (size_t i = 0; i < n; i++) {
        const struct drps_bound *b = &bounds[i];
        if (b->value >= b->least && b->value <= b->most) continue;
        return drps_err_set(err, DRPS_E_CORRUPT,
                            "%s: \"%s\" is %" PRIu64 ", but %s allows %" PRIu64 " to %" PRIu64,
                            path, b->key, b->value, b->by, b->least, b->most);
    }
    return 0;
}

int drps_manifest_ours(const struct drps_io *io, const char *path, const char *kind, int version,
                       struct drps_err *err)
{
    json_t *j;
    json_int_t has = 0;

    int rc = load(io, path, &j, err);
    if (rc == 0) rc = check_kind(j, path, kind, &has, err);
    if (rc == 0 && has < 1)
        rc = drps_err_set(err, DRPS_E_CORRUPT, "%s does not say its version", path);
    if (rc == 0 && has > version)
        rc = drps_err_set(err, DRPS_E_VERSION,
                          "%s has version %lld, of a newer drps; this program knows %d", path,
                          (long long)has, version);
    if (rc == 0 && has == version) rc = check_sum(j, path, err);
    json_decref(j);
    return rc;
}

static int no_member(const char *path, const char *key, const char *what, struct drps_err *err)
{
    return drps_err_set(err, DRPS_E_CORRUPT, "%s: \"%s\" is %s", path, key, what);
}

int drps_manifest_get_hex(const json_t *j, const char *key, const char *path, uint64_t *out,
                          struct drps_err *err)
{
    const char *text = json_string_value(json_object_get(j, key));
    char *end;
    *out = 0;
    if (!text || strlen(text) != 16) return no_member(path, key, "no number of 16 hex digits", err);
    *out = strtoull(text, &end, 16);
    return *end ? no_member(path, key, "no number of 16 hex digits", err) : 0;
}

int drps_manifest_get_count(const json_t *j, const char *key, const char *path, uint64_t *out,
                            struct drps_err *err)
{
    const json_t *v = json_object_get(j, key);
    *out = 0;
    if (!json_is_integer(v) || json_integer_value(v) < 0)
        return no_member(path, key, "no count", err);
    *out = (uint64_t)json_integer_value(v);
    return 0;
}

int drps_manifest_rename(json_t *j, const char *before, const char *now, const char *path,
                         struct drps_err *err)
{
    json_t *value = json_object_get(j, before);
    if (!value || json_object_get(j, now)) return 0;
    if (json_object_set(j, now, value) || json_object_del(j, before))
        return drps_err_set(err, -ENOMEM, "%s: no memory for the manifest", path);
    return 0;
}

int drps_manifest_get_u32(const json_t *j, const char *key, const char *path, uint32_t *out,
                          struct drps_err *err)
{
    uint64_t value;
    int rc = drps_manifest_get_count(j, key, path, &value, err);
    const struct drps_bound bound = {key, value, 0, UINT32_MAX, "32 bits"};
    if (rc == 0) rc = drps_manifest_check(&bound, 1, path, err);
    *out = rc == 0 ? (uint32_t)value : 0;
    return rc;
}

int drps_manifest_get_real(const json_t *j, const char *key, const char *path, double *out,
                           struct drps_err *err)
{
    const json_t *v = json_object_get(j, key);
    *out = json_number_value(v);
    return json_is_number(v) ? 0 : no_member(path, key, "no number", err);
}

int drps_manifest_get_float(const json_t *j, const char *key, const char *path, float *out,
                            struct drps_err *err)
{
    double value;
    *out = 0;
    int rc = drps_manifest_get_real(j, key, path, &value, err);
    if (rc < 0) return rc;
    if (!(fabs(value) <= (double)FLT_MAX)) return no_member(path, key, "too large", err);
    *out = (float)value;
    return 0;
}

int drps_manifest_get_text(const json_t *j, const char *key, const char *path, char *out,
                           size_t cap, struct drps_err *err)
{
    const char *text = json_string_value(json_object_get(j, key));
    *out = '\0';
    if (!text || strlen(text) >= cap) return no_member(path, key, "no short text", err);
    memcpy(out, text, strlen(text) + 1);
    return 0;
}
