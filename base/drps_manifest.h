/* Manifests: JSON files that end with a checksum of themselves (plan.json, model.json). */
#ifndef DRPS_MANIFEST_H
#define DRPS_MANIFEST_H

#include <jansson.h>
#include <stdint.h>

#include "base/drps_io.h"

/* Write `j` as path, with a key "checksum" added. */
DRPS_MUST_CHECK
int drps_manifest_write(const struct drps_io *io, const char *path, json_t *j,
                        struct drps_err *err);

/*
 * Read and check path. `kind` ("drps-plan", "drps-model") and `version` must be its own. *j_out is
 * owned by the caller (json_decref). -ENOENT, DRPS_E_CORRUPT, DRPS_E_VERSION.
 */
DRPS_MUST_CHECK
int drps_manifest_read(const struct drps_io *io, const char *path, const char *kind, int version,
                       json_t **j_out, struct drps_err *err);

/*
 * Whether path is a manifest of `kind` that this program may replace: of `version`, with its
 * checksum, or of an older one, whose checksum may have been made another way. -ENOENT,
 * DRPS_E_CORRUPT; DRPS_E_VERSION: a newer one.
 */
DRPS_MUST_CHECK
int drps_manifest_check(const struct drps_io *io, const char *path, const char *kind, int version,
                        struct drps_err *err);

/* 64 bits as 16 hex digits, since JSON integers are signed and JSON numbers often doubles. */
json_t *drps_manifest_hex(uint64_t v);

/* Members of `j`, or DRPS_E_CORRUPT naming path and key. */
DRPS_MUST_CHECK
int drps_manifest_get_hex(const json_t *j, const char *key, const char *path, uint64_t *out,
                          struct drps_err *err);
DRPS_MUST_CHECK
int drps_manifest_get_count(const json_t *j, const char *key, const char *path, uint64_t *out,
                            struct drps_err *err);
DRPS_MUST_CHECK
int drps_manifest_get_real(const json_t *j, const char *key, const char *path, double *out,
                           struct drps_err *err);
DRPS_MUST_CHECK
int drps_manifest_get_text(const json_t *j, const char *key, const char *path, char *out,
                           size_t cap, struct drps_err *err);

#endif
