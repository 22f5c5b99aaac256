/* What a plan, a model or a checkpoint says of its rows: what must be alike for the rows of one to
 * be those of another, and how their names are written. Private to engine/warm/. */
#ifndef DRPS_ENGINE_WARM_ABOUT_H
#define DRPS_ENGINE_WARM_ABOUT_H

#include <jansson.h>

#include "engine/publish/drps_modeldir.h"
#include "engine/warm/drps_warm.h"
#include "index/plan/drps_plan.h"

struct warm_about {
    char algo[DRPS_PLAN_NAME_BYTES], loss[DRPS_PLAN_NAME_BYTES];
    char expression[DRPS_EXPR_TEXT]; /* the loss as a text; "": it is none */
    uint32_t factors, dim, field_count;
    int normalized;
    char net[DRPS_LAYERS_TEXT]; /* "": it is none */
    uint32_t common;            /* the first rows, of the intercept or a net, have no names */
    int string_names;
    struct drps_hashing hashing;
    uint64_t hash_seed;           /* of string names */
    uint64_t rows;                /* of all ranks */
    struct drps_classes *classes; /* own: of labels; NULL: they are no names */
    size_t fields_n;
    char **fields; /* own: [fields_n] */
};

/* *out is the caller's to destroy, also after a failure. -ENOMEM. */
DRPS_MUST_CHECK
int drps_warm_about_plan(const struct drps_plan *whole, struct warm_about *out,
                         struct drps_err *err);
DRPS_MUST_CHECK
int drps_warm_about_model(const struct drps_modeldir_info *info, struct warm_about *out,
                          struct drps_err *err);
void drps_warm_about_destroy(struct warm_about *a);

/* Read it from the member of a checkpoint's manifest that drps_warm_describe() has made; `path` is
 * the manifest's. DRPS_E_CORRUPT. */
DRPS_MUST_CHECK
int drps_warm_about_read(const json_t *of, const char *path, struct warm_about *out,
                         struct drps_err *err);

/* DRPS_E_CONFIG: the rows of `old`, which lie in `path`, cannot be those of a plan like `now`. */
DRPS_MUST_CHECK
int drps_warm_check(const struct warm_about *old, const char *path, const struct warm_about *now,
                    struct drps_err *err);

/* Whether the same name has the same key in both. */
int drps_warm_same_keys(const struct warm_about *old, const struct warm_about *now);

#endif
