/*
 * The best items of users, from memory. Users, items and their names are read once. Scores are
 * those of drps-recommend: products in floats are a filter, what may be among the best is computed
 * in double (engine/recommend/math/).
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/predictor.h"
#include "api/watch.h"
#include "base/drps_alloc.h"
#include "engine/recommend/math/drps_norm.h"
#include "engine/recommend/math/drps_products.h"
#include "engine/recommend/math/drps_top.h"
#include "index/reader/matrix/drps_matrix_rows.h"

enum { TILE = 1024, NUMBER_BYTES = 24 };

/* ---- Loading ---- */

/* A list of rows that grows, with names in an arena that moves. */
struct list {
    float *params;
    size_t *names; /* offsets */
    size_t n, params_cap, names_cap;
};

struct loading {
    struct predictor_items *t;
    struct list users, items;
    char *arena;
    size_t used, arena_cap;
};

static int add(struct loading *l, struct list *list, const char *name, size_t bytes,
               const float *params)
{
    const size_t dim = l->t->dim;
    if (list->n >= UINT32_MAX - 1 ||
        drps_array_reserve(&list->params, &list->params_cap, (list->n + 1) * dim,
                           sizeof(*list->params)) ||
        drps_array_reserve(&list->names, &list->names_cap, list->n + 1, sizeof(*list->names)) ||
        drps_array_reserve(&l->arena, &l->arena_cap, l->used + bytes + 1, 1))
        return -ENOMEM;
    memcpy(list->params + list->n * dim, params, dim * sizeof(*params));
    memcpy(l->arena + l->used, name, bytes);
    l->arena[l->used + bytes] = '\0';
    list->names[list->n++] = l->used;
    l->used += bytes + 1;
    return 0;
}

static int load_row(void *ctx, const struct drps_readout_row *row, struct drps_err *err)
{
    static const char user[] = "user=", item[] = "item=";
    struct loading *l = ctx;
    const size_t n = sizeof(user) - 1; /* both are as long */
    const int is_user = row->name_bytes >= n && memcmp(row->name, user, n) == 0;
    const int is_item = row->name_bytes >= n && memcmp(row->name, item, n) == 0;
    for (size_t k = 0; k < l->t->dim; k++)
        if (!isfinite(row->params[k]))
            return drps_err_set(err, DRPS_E_CORRUPT, "parameters of row %u are no numbers",
                                row->row);
    if (!is_user && !is_item) {
        l->t->bias = row->params[0]; /* the intercept, the only other row */
        return 0;
    }
    if (add(l, is_user ? &l->users : &l->items, row->name + n, row->name_bytes - n, row->params))
        return drps_err_set(err, -ENOMEM, "no memory for users and items");
    return 0;
}

static int by_name(const void *a, const void *b)
{
    const struct predictor_name *x = a, *y = b;
    return strcmp(x->text, y->text);
}

static struct predictor_name *sorted(const struct list *list, const char *arena)
{
    struct predictor_name *names = drps_array_new(list->n + 1, sizeof(*names));
    for (size_t i = 0; names && i < list->n; i++)
        names[i] = (struct predictor_name){arena + list->names[i], (uint32_t)i};
    if (names) qsort(names, list->n, sizeof(*names), by_name);
    return names;
}

/* What was loaded becomes the predictor's. */
static int take(struct predictor_items *t, struct loading *l, struct drps_err *err)
{
    t->arena = l->arena; /* moved, as are the next two */
    t->of_items = l->items.params;
    t->of_users = l->users.params;
    t->items = (uint32_t)l->items.n;
    t->users = (uint32_t)l->users.n;
    l->arena = NULL;
    l->items.params = l->users.params = NULL;
    t->item_names = drps_array_new(t->items + 1, sizeof(*t->item_names));
    t->by_item = sorted(&l->items, t->arena);
    t->by_user = sorted(&l->users, t->arena);
    if (!t->item_names || !t->by_item || !t->by_user)
        return drps_err_set(err, -ENOMEM, "no memory for users and items");
    for (uint32_t i = 0; i < t->items; i++)
        t->item_names[i] = t->arena + l->items.names[i];
    t->loaded = 1;
    return 0;
}

void predictor_items_free(struct predictor_items *t)
{
    free(t->of_items);
    free(t->of_users);
    free(t->item_names);
    free(t->by_item);
    free(t->by_user);
    free(t->arena);
    *t = (struct predictor_items){.loaded = 0};
}

static int load(struct drps_predictor *p, struct drps_err *err)
{
    const struct drps_modeldir_info *info = drps_serving_info(p->serving);
    struct loading l = {.t = &p->items};
    if (!drps_algorithm_rates(drps_algorithm(info->model.algo)))
        return drps_err_set(err, DRPS_E_CONFIG,
                            "a model of users and items is needed, and this is one of %s",
                            drps_algo_name(info->model.algo));
    p->items.dim = info->model.dim;
    int rc = drps_serving_rows(p->serving, load_row, &l, err);
    if (rc == 0) rc = take(&p->items, &l, err);
    if (rc < 0) predictor_items_free(&p->items);
    free(l.arena);
    free(l.users.params);
    free(l.items.params);
    free(l.users.names);
    free(l.items.names);
    return rc;
}

/* Users and items; what is there once stays. */
static int loaded(struct drps_predictor *p, const struct predictor_items **out,
                  struct drps_err *err)
{
    (void)pthread_mutex_lock(&p->lock);
    const int rc = p->items.loaded ? 0 : load(p, err);
    (void)pthread_mutex_unlock(&p->lock);
    *out = &p->items;
    return rc;
}

uint32_t drps_predictor_items(struct drps_predictor *p)
{
    const struct predictor_items *t;
    return p && loaded(p, &t, NULL) == 0 ? t->items : 0;
}

const char *drps_predictor_item(struct drps_predictor *p, uint32_t item)
{
    const struct predictor_items *t;
    return p && loaded(p, &t, NULL) == 0 && item < t->items ? t->item_names[item] : NULL;
}

/* ---- Names ---- */

static int find(const struct predictor_name *names, uint32_t n, const char *text,
                uint32_t *number_out)
{
    const struct predictor_name wanted = {text, 0};
    const struct predictor_name *found = bsearch(&wanted, names, n, sizeof(*names), by_name);
    if (found) *number_out = found->number;
    return found != NULL;
}

static int by_number(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

/* Items of row i of `seen`, increasing; those that the model does not have are left out. */
static int take_seen(const struct predictor_items *t, const struct drps_matrix *seen, uint64_t i,
                     uint32_t **list, size_t *cap, size_t *n_out, struct drps_err *err)
{
    uint64_t first, n, column;
    float value;
    int rc = drps_matrix_row(seen, i, &first, &n, err);
    *n_out = 0;
    if (rc == 0 && drps_array_reserve(list, cap, (size_t)n, sizeof(**list)))
        return drps_err_set(err, -ENOMEM, "no memory for %llu items", (unsigned long long)n);
    for (uint64_t k = first; rc == 0 && k < first + n; k++) {
        char text[NUMBER_BYTES];
        rc = drps_matrix_entry(seen, i, k, &column, &value, err);
        (void)snprintf(text, sizeof(text), "%llu", (unsigned long long)column);
        if (rc == 0 && find(t->by_item, t->items, text, *list + *n_out)) ++*n_out;
    }
    qsort(*list, *n_out, sizeof(**list), by_number);
    return rc;
}

/* ---- Scores ---- */

/* One call. */
struct search {
    const struct predictor_items *t;
    int similar;
    float *vector; /* own: [dim] the query */

    float *products;        /* own: [TILE] */
    float *unit;            /* own: [TILE][dim] items of length 1; NULL: not similar */
    uint32_t *rows;         /* own: [TILE] */
    void *scratch;          /* own */
    struct drps_best *heap; /* own: [most] */
    uint32_t *seen;         /* own */
    size_t seen_cap, most;
};

static int search_open(struct search *s, const struct predictor_items *t, int similar, size_t n,
                       struct drps_err *err)
{
    *s = (struct search){.t = t, .similar = similar, .most = n < t->items ? n : t->items};
    s->vector = drps_array_new(t->dim, sizeof(*s->vector));
    s->products = drps_array_new(TILE, sizeof(*s->products));
    s->unit = drps_array_new(TILE, t->dim * sizeof(*s->unit));
    s->rows = drps_array_new(TILE, sizeof(*s->rows));
    s->scratch = drps_array_new(drps_product_scratch(t->dim), 1);
    s->heap = drps_array_new(s->most + 1, sizeof(*s->heap));
    if (s->vector && s->products && s->unit && s->rows && s->scratch && s->heap) return 0;
    return drps_err_set(err, -ENOMEM, "no memory to find the best of %u items", t->items);
}

static void search_close(struct search *s)
{
    free(s->vector);
    free(s->products);
    free(s->unit);
    free(s->rows);
    free(s->scratch);
    free(s->heap);
    free(s->seen);
}

static void look_at_tile(struct search *s, struct drps_top *top, uint32_t first, size_t n)
{
    const size_t dim = s->t->dim;
    const float *vectors = s->t->of_items + first * dim;
    double longest = 0;
    if (s->similar) {
        memcpy(s->unit, vectors, n * dim * sizeof(*vectors));
        for (size_t i = 0; i < n; i++) {
            s->unit[i * dim] = 0;
            drps_normalise(s->unit + i * dim + 1, dim - 1);
        }
        vectors = s->unit;
    }
    for (size_t i = 0; i < n; i++) {
        const double norm = drps_norm(vectors + i * dim, dim);
        s->rows[i] = first + (uint32_t)i;
        if (norm > longest) longest = norm;
    }
    drps_product_own(s->vector, 1, vectors, n, dim, s->products, s->scratch);
    const struct drps_top_items items = {
        .vectors = vectors, .rows = s->rows, .products = s->products, .n = n, .norm = longest};
    (void)drps_top_look(top, &items); /* how many it computed */
}

/* The best for what s->vector asks, without the first seen_n of s->seen. */
static void search_best(struct search *s, double base, size_t seen_n, size_t n, uint32_t *items,
                        double *scores)
{
    struct drps_top top = {.vector = s->vector,
                           .d = s->t->dim,
                           .error = drps_product_error(s->t->dim) * drps_norm(s->vector, s->t->dim),
                           .base = base,
                           .floor = -INFINITY,
                           .seen = s->seen,
                           .seen_n = seen_n,
                           .heap = s->heap,
                           .most = s->most};
    for (uint32_t first = 0; first < s->t->items && s->most; first += TILE)
        look_at_tile(s, &top, first,
                     s->t->items - first < TILE ? s->t->items - first : (size_t)TILE);
    drps_top_sort(&top);
    for (size_t i = 0; i < n; i++) {
        items[i] = i < top.n ? (uint32_t)top.heap[i].row : DRPS_NO_ITEM;
        if (scores) scores[i] = i < top.n ? top.heap[i].score : (double)NAN;
    }
}

static int for_user(struct search *s, const char *name, double *base_out, struct drps_err *err)
{
    uint32_t user;
    if (!name || !find(s->t->by_user, s->t->users, name, &user))
        return drps_err_set(err, DRPS_E_NOT_FOUND, "the model has no user '%.100s'",
                            name ? name : "");
    memcpy(s->vector, s->t->of_users + user * s->t->dim, s->t->dim * sizeof(*s->vector));
    *base_out = (double)s->t->bias + (double)s->vector[0];
    s->vector[0] = 1;
    return 0;
}

/* An item is not like itself. */
static int for_item(struct search *s, const char *name, size_t *seen_n, struct drps_err *err)
{
    uint32_t item;
    if (!name || !find(s->t->by_item, s->t->items, name, &item))
        return drps_err_set(err, DRPS_E_NOT_FOUND, "the model has no item '%.100s'",
                            name ? name : "");
    if (drps_array_reserve(&s->seen, &s->seen_cap, 1, sizeof(*s->seen)))
        return drps_err_set(err, -ENOMEM, "no memory for an item");
    s->seen[0] = item;
    *seen_n = 1;
    memcpy(s->vector, s->t->of_items + item * s->t->dim, s->t->dim * sizeof(*s->vector));
    s->vector[0] = 0;
    drps_normalise(s->vector + 1, s->t->dim - 1);
    return 0;
}

static int check(struct drps_predictor *p, const char *const *names, size_t names_n, size_t n,
                 const uint32_t *items, struct drps_err *err)
{
    if (p && n && (names || !names_n) && (items || !names_n)) return 0;
    return drps_err_set(err, DRPS_E_CONFIG,
                        "a predictor, names, at least one item for each, and a place for them are "
                        "needed");
}

int drps_predictor_recommend(struct drps_predictor *p, const char *const *users, size_t users_n,
                             const struct drps_matrix *seen, size_t n, uint32_t *items,
                             double *scores, struct drps_err *err)
{
    const struct predictor_items *t;
    struct search s = {.t = NULL};
    int rc = check(p, users, users_n, n, items, err);
    if (rc == 0) rc = loaded(p, &t, err);
    if (rc == 0 && seen) rc = drps_matrix_check(seen, err);
    if (rc == 0 && seen && seen->samples != users_n)
        rc = drps_err_set(err, DRPS_E_CONFIG, "%zu users, and what %llu have seen", users_n,
                          (unsigned long long)seen->samples);
    if (rc == 0) rc = search_open(&s, t, 0, n, err);
    for (size_t i = 0; i < users_n && rc == 0; i++) {
        size_t seen_n = 0;
        double base = 0;
        rc = for_user(&s, users[i], &base, err);
        if (rc == 0 && seen) rc = take_seen(t, seen, i, &s.seen, &s.seen_cap, &seen_n, err);
        if (rc == 0)
            search_best(&s, base, seen_n, n, items + i * n, scores ? scores + i * n : NULL);
    }
    search_close(&s);
    return rc;
}

int drps_predictor_similar(struct drps_predictor *p, const char *const *names, size_t names_n,
                           size_t n, uint32_t *items, double *scores, struct drps_err *err)
{
    const struct predictor_items *t;
    struct search s = {.t = NULL};
    int rc = check(p, names, names_n, n, items, err);
    if (rc == 0) rc = loaded(p, &t, err);
    if (rc == 0) rc = search_open(&s, t, 1, n, err);
    for (size_t i = 0; i < names_n && rc == 0; i++) {
        size_t seen_n = 0;
        rc = for_item(&s, names[i], &seen_n, err);
        if (rc == 0) search_best(&s, 0, seen_n, n, items + i * n, scores ? scores + i * n : NULL);
    }
    search_close(&s);
    return rc;
}
