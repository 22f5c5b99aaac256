/* What the files of a predictor share. Private to api/. */
#ifndef DRPS_API_PREDICTOR_H
#define DRPS_API_PREDICTOR_H

#include <pthread.h>

#include "api/drps.h"
#include "engine/predict/drps_serving.h"

/* A name and its item or user. */
struct predictor_name {
    const char *text; /* in the arena */
    uint32_t number;
};

/* Users and items of a model of ratings, in memory. */
struct predictor_items {
    int loaded;
    uint32_t items, users;
    size_t dim;
    float bias;                               /* the intercept */
    float *of_items, *of_users;               /* own: [items][dim], [users][dim] */
    const char **item_names;                  /* own: [items], in the arena */
    struct predictor_name *by_item, *by_user; /* own: sorted by name */
    char *arena;                              /* own: names, each with a zero */
};

void predictor_items_free(struct predictor_items *t); /* zeroed too */

struct drps_predictor {
    struct drps_serving *serving; /* own */
    char *json;                   /* own */
    pthread_mutex_t lock;         /* until items are loaded */
    int has_lock;
    struct predictor_items items;
};

#endif
