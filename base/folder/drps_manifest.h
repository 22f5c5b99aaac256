/* Manifests: JSON files that end with a checksum of themselves (plan.json, model.json). */
#ifndef DRPS_BASE_FOLDER_MANIFEST_H
#define DRPS_BASE_FOLDER_MANIFEST_H

#include <jansson.h>
#include <stdint.h>

#include "base/drps_io.h"
#include "base/drps_remarks.h"

/* Write `j` (borrowed) as path, with a key "checksum" added. */
DRPS_MUST_CHECK
int drps_manifest_write(const struct drps_io *io, const char *path, json_t *j,
                        struct drps_err *err);

/*
 * Read and check path. `kind` ("drps-plan", "drps-model") and `version` must be the manifest's.
 * *j_out is owned by the caller (json_decref). -ENOENT, DRPS_E_CORRUPT, DRPS_E_VERSION.
 */
DRPS_MUST_CHECK
int drps_manifest_read(const struct drps_io *io, const char *path, const char *kind, int version,
                       json_t **j_out, struct drps_err *err);

/* Set the error for a folder whose manifest `file` is not there, in place of err's text, and return
 * DRPS_E_NOT_FOUND: there is no such folder, or it is no plan, model, ... (`what`), which `tool`
 * makes. */
int drps_manifest_missing(const struct drps_io *io, const char *dir, const char *file,
                          const char *what, const char *tool, struct drps_err *err);

/*
 * A number of a manifest, and between which others it must lie. The bounds of one may be sums and
 * products of others that were checked before it: drps_sum() and drps_product() stay at UINT64_MAX
 * where 64 bits end.
 */
struct drps_bound {
    const char *key;
    uint64_t value, least, most;
    const char *by; /* what bounds it, for the message */
};

/* DRPS_E_CORRUPT names path, key, value and bounds of the first number that is outside its bounds.
 */
DRPS_MUST_CHECK
int drps_manifest_check(const struct drps_bound *bounds, size_t n, const char *path,
                        struct drps_err *err);

static inline uint64_t drps_sum(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

static inline uint64_t drps_product(uint64_t a, uint64_t b)
{
    uint64_t product;
    return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

/*
 * Returns 0 when path is a manifest of `kind` that this program may replace: one of `version`, with
 * its checksum, or an older one, whose checksum may have been made in another manner. -ENOENT,
 * DRPS_E_CORRUPT; DRPS_E_VERSION: it is newer.
 */
DRPS_MUST_CHECK
int drps_manifest_ours(const struct drps_io *io, const char *path, const char *kind, int version,
                       struct drps_err *err);

/* ---- Making one ----
 *
 * Put a value (moved, NULL when there was no memory for it) into an object, or at the end of a
 * list. Once memory is gone *j is NULL and stays so: it is enough to look at the end. */
void drps_manifest_put(json_t **j, const char *key, json_t *value);
void drps_manifest_append(json_t **list, json_t *value);

/* 64 bits as 16 hex digits, since JSON integers are signed and JSON numbers often doubles. */
json_t *drps_manifest_hex(uint64_t v);

/* The texts, as a list. */
json_t *drps_manifest_remarks(const struct drps_remarks *r);

/* Let a member that older files call `before` be called `now`. -ENOMEM. */
DRPS_MUST_CHECK
int drps_manifest_rename(json_t *j, const char *before, const char *now, const char *path,
                         struct drps_err *err);

/* ---- Members of `j`; DRPS_E_CORRUPT names path and key ---- */

DRPS_MUST_CHECK
int drps_manifest_get_hex(const json_t *j, const char *key, const char *path, uint64_t *out,
                          struct drps_err *err);
DRPS_MUST_CHECK
int drps_manifest_get_count(const json_t *j, const char *key, const char *path, uint64_t *out,
                            struct drps_err *err);
/* A count that has 32 bits. */
DRPS_MUST_CHECK
int drps_manifest_get_u32(const json_t *j, const char *key, const char *path, uint32_t *out,
                          struct drps_err *err);
DRPS_MUST_CHECK
int drps_manifest_get_real(const json_t *j, const char *key, const char *path, double *out,
                           struct drps_err *err);
/* A number that a float can hold. */
DRPS_MUST_CHECK
int drps_manifest_get_float(const json_t *j, const char *key, const char *path, float *out,
                            struct drps_err *err);
DRPS_MUST_CHECK
int drps_manifest_get_text(const json_t *j, const char *key, const char *path, char *out,
                           size_t cap, struct drps_err *err);

#endif
