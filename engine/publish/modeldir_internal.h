/*
 * What the sources of an open model share: its struct, and model.json read into it. Private to
 * engine/publish/.
 */
#ifndef DRPS_ENGINE_PUBLISH_MODELDIR_INTERNAL_H
#define DRPS_ENGINE_PUBLISH_MODELDIR_INTERNAL_H

#include <jansson.h>

#include "engine/publish/blockcache.h"
#include "engine/publish/drps_modeldir.h"
#include "index/plan/drps_names.h"

struct drps_modeldir {
    const struct drps_io *io; /* borrowed */
    char *dir;                /* own */
    struct drps_modeldir_info info;
    struct drps_classes *classes; /* own: info.classes */
    double *gram;                 /* own: info.gram */
    json_t *json;                 /* own */
    struct drps_names *names;     /* own */
    const struct drps_kv_ops *ops;
    struct drps_kv *kv; /* own */
    struct drps_blockcache cache;
    uint64_t names_bytes; /* of names.rec */
};

/*
 * Read model.json of md->dir into md: json, info and names_bytes, whose numbers fit together.
 * DRPS_E_NOT_FOUND: the folder holds no model; DRPS_E_CORRUPT names what does not fit. What was
 * read before a failure stays with md, for drps_modeldir_close().
 */
DRPS_MUST_CHECK
int drps_modeldir_read_manifest(struct drps_modeldir *md, struct drps_err *err);

/* Number and bytes of the files in the folder of a model's rows, which an engine has written. */
DRPS_MUST_CHECK
int drps_modeldir_measure_rows(const char *path, uint64_t *files_out, uint64_t *bytes_out,
                               struct drps_err *err);

#endif
