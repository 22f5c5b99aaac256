/* Weights are found by engine/readout/; here they become a table, or JSON. */
#include "tools/stat/weights.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"
#include "base/folder/drps_manifest.h"
#include "engine/readout/drps_support.h"
#include "engine/readout/drps_top_weights.h"

enum { WEIGHT_BYTES = 192 }; /* of one in a list, and its name, about */

struct weights {
    const struct drps_modeldir_info *info;
    struct drps_top_choice choice;
    struct drps_top_weights found; /* own */
    struct drps_readout r;         /* own */
    struct drps_plan *plan;        /* own; NULL: none is looked at */
    struct drps_support support;   /* own: of the intercept, where there is a plan */
    float *like;                   /* own: [dim] of what others are to be like; NULL: nothing */
    float *intercept;              /* own: [dim]; NULL: there is none */
};

/* ---- What is shown ---- */

/* The classes that weights are of; NULL: they are of all, as those of a net. */
static const struct drps_classes *classes_of(const struct weights *w)
{
    return w->info->model.layers.n ? NULL : w->info->classes;
}

static int choose(struct weights *w, const char *path, const struct stat_weights *o,
                  struct drps_err *err)
{
    const struct drps_modeldir_info *info = w->info;
    w->choice = (struct drps_top_choice){.lists = info->model.layers.n ? 1 : info->model.outputs,
                                         .most = o->top ? o->top : STAT_WEIGHTS_USUAL,
                                         .either_sign = 1};
    if (w->choice.most > info->rows) w->choice.most = info->rows ? (size_t)info->rows : 1;
    if (info->gram)
        return drps_err_set(err, DRPS_E_CONFIG, "%s has topics, and no weights: ask for --topics",
                            path);
    if (!o->class_name) return 0;
    if (info->model.layers.n)
        return drps_err_set(err, DRPS_E_CONFIG,
                            "%s is a net, whose features have one weight each: leave out --class",
                            path);
    if (!info->classes)
        return drps_err_set(err, DRPS_E_CONFIG,
                            "%s has no named classes: leave out --class, and all its weights are "
                            "shown",
                            path);
    const int32_t c = drps_classes_find(info->classes, o->class_name, strlen(o->class_name));
    if (c < 0)
        return drps_err_set(err, DRPS_E_CONFIG, "%s has no class '%s': drps-stat %s shows which",
                            path, o->class_name, path);
    w->choice.column = (uint32_t)c;
    w->choice.lists = 1;
    return 0;
}

/* In a model of ratings, a name that no feature has is taken for an item's, as in drps-recommend
 * --similar. */
static int find_alike(struct weights *w, const char *name, struct drps_err *err)
{
    char *item = NULL;
    int rc = drps_readout_find(&w->r, name, &w->choice.like_row, w->like, err);
    if (rc != DRPS_E_NOT_FOUND || strcmp(w->info->format, "ratings") != 0) return rc;
    if (asprintf(&item, "item=%s", name) < 0) return drps_err_set(err, -ENOMEM, "no memory");
    drps_err_clear(err);
    rc = drps_readout_find(&w->r, item, &w->choice.like_row, w->like, err);
    free(item);
    return rc;
}

/* Chooses features whose factors point in the direction of those of this one. */
static int choose_alike(struct weights *w, const char *path, const struct stat_weights *o,
                        struct drps_err *err)
{
    if (!o->similar) return 0;
    if (!w->info->model.factors)
        return drps_err_set(err, DRPS_E_CONFIG,
                            "%s has no factors by which features are alike: algorithm %s", path,
                            drps_algo_name(w->info->model.algo));
    w->like = drps_array_new(w->info->model.dim, sizeof(*w->like));
    if (!w->like) return drps_err_set(err, -ENOMEM, "no memory for a row");
    w->choice.like = w->like;
    return find_alike(w, o->similar, err);
}

static int read_intercept(struct weights *w, struct drps_modeldir *md, struct drps_err *err)
{
    const uint32_t row = 0;
    const struct drps_model *m = &w->info->model;
    if (!m->has_bias || w->like || (m->layers.n && m->outputs > 1)) return 0;
    w->intercept = drps_array_new(w->info->model.dim, sizeof(*w->intercept));
    return w->intercept ? drps_modeldir_gather(md, &row, 1, w->intercept, err)
                        : drps_err_set(err, -ENOMEM, "no memory for the intercept");
}

/* Returns the name of the list's class; "": it has none. */
static const char *class_of(const struct weights *w, size_t list)
{
    return classes_of(w) ? drps_classes_name(w->info->classes, w->choice.column + list) : "";
}

static int has_units(const struct weights *w)
{
    return w->r.has_units && !w->like;
}

static int has_norms(const struct weights *w)
{
    return w->info->model.factors > 0;
}

/* ---- As text ---- */

/* Prints a name without line ends and tabs, which would break the table. */
static void print_name(const char *name, size_t n)
{
    for (size_t i = 0; i < n; i++)
        (void)putchar((unsigned char)name[i] < ' ' ? '?' : name[i]);
    (void)putchar('\n');
}

static void print_number(double v)
{
    if (isfinite(v))
        printf("  %12.6g", v);
    else
        printf("  %12s", "-");
}

static void print_row(const struct weights *w, const struct drps_top_weight *of)
{
    char samples[DRPS_CLI_COUNT_BYTES];
    print_number((double)of->value);
    if (w->plan) print_number(of->error);
    if (has_units(w)) print_number(of->per_unit);
    if (has_norms(w)) print_number((double)of->norm);
    if (w->plan) printf("  %12s", drps_cli_grouped(of->samples, samples));
    printf("  ");
    print_name(of->name, of->name_bytes);
}

/* Returns the intercept as a weight of list k. */
static struct drps_top_weight intercept_of(const struct weights *w, size_t k)
{
    static char name[] = DRPS_READOUT_INTERCEPT;
    return (struct drps_top_weight){.value = w->intercept[w->choice.column + k],
                                    .norm = NAN,
                                    .per_unit = (double)NAN,
                                    .name = name,
                                    .name_bytes = sizeof(name) - 1,
                                    .samples = w->support.samples,
                                    .error = w->plan ? w->support.errors[k] : (double)NAN};
}

static void print_head(const struct weights *w)
{
    printf("  %12s", w->like ? "similarity" : "weight");
    if (w->plan) printf("  %12s", "error");
    if (has_units(w)) printf("  %12s", "per unit");
    if (has_norms(w)) printf("  %12s", "factors");
    if (w->plan) printf("  %12s", "samples");
    printf("  feature\n");
}

static void print_text(const struct weights *w)
{
    for (size_t k = 0; k < w->found.lists; k++) {
        if (classes_of(w)) printf("%sclass %s\n", k ? "\n" : "", class_of(w, k));
        if (!classes_of(w) && w->found.lists > 1) printf("%sscore %zu\n", k ? "\n" : "", k + 1);
        print_head(w);
        if (w->intercept) {
            const struct drps_top_weight intercept = intercept_of(w, k);
            print_row(w, &intercept);
        }
        for (size_t i = 0; i < w->found.n[k]; i++)
            print_row(w, &w->found.of[k * w->found.most + i]);
        if (!w->found.n[k])
            printf("  %s\n", w->like ? "no other has factors that are not all 0"
                                     : "all weights of features are 0");
    }
}

/* ---- As JSON ---- */

/* JSON is UTF-8; of other names the bytes above 127 become question marks. */
static json_t *name_to_json(const char *name, size_t n)
{
    json_t *j = json_stringn(name, n);
    char *copy = j ? NULL : strndup(name, n);
    for (size_t i = 0; copy && copy[i]; i++)
        if ((unsigned char)copy[i] > 127) copy[i] = '?';
    if (copy) j = json_string(copy);
    free(copy);
    return j;
}

static json_t *weight_to_json(const struct weights *w, const struct drps_top_weight *of)
{
    json_t *j = json_object();
    drps_manifest_put(&j, "name", name_to_json(of->name, of->name_bytes));
    drps_manifest_put(&j, "table", json_string(of->table));
    drps_manifest_put(&j, w->like ? "similarity" : "weight", drps_json_real((double)of->value));
    if (w->plan) {
        drps_manifest_put(&j, "error", drps_json_real(of->error));
        drps_manifest_put(&j, "samples", drps_json_count(of->samples));
    }
    if (has_units(w)) drps_manifest_put(&j, "per_unit", drps_json_real(of->per_unit));
    if (has_norms(w)) drps_manifest_put(&j, "factors", drps_json_real((double)of->norm));
    return j;
}

static json_t *list_to_json(const struct weights *w, size_t k)
{
    json_t *j = json_object(), *list = json_array();
    for (size_t i = 0; i < w->found.n[k]; i++)
        drps_manifest_append(&list, weight_to_json(w, &w->found.of[k * w->found.most + i]));
    if (classes_of(w)) drps_manifest_put(&j, "class", json_string(class_of(w, k)));
    drps_manifest_put(&j, "intercept",
                      w->intercept ? drps_json_real((double)w->intercept[w->choice.column + k])
                                   : json_null());
    if (w->plan && w->intercept)
        drps_manifest_put(&j, "intercept_error", drps_json_real(w->support.errors[k]));
    drps_manifest_put(&j, "weights", list);
    return j;
}

static int print_json(const struct weights *w, struct drps_err *err)
{
    json_t *j = json_object(), *lists = json_array();
    for (size_t k = 0; k < w->found.lists; k++)
        drps_manifest_append(&lists, list_to_json(w, k));
    drps_manifest_put(&j, "lists", lists);
    return drps_cli_json_print(j, err);
}

int stat_print_weights(struct drps_cli *cli, const struct drps_io *io, const char *path,
                       struct drps_modeldir *md, const struct stat_weights *o, struct drps_err *err)
{
    struct weights w = {.info = drps_modeldir_info(md)};
    int rc = choose(&w, path, o, err);
    uint64_t bytes = drps_product(drps_product(w.choice.lists, w.choice.most), WEIGHT_BYTES);
    if (rc == 0 && o->plan) rc = drps_plan_open(io, o->plan, &w.plan, err);
    if (rc == 0 && o->plan)
        bytes = drps_sum(bytes, drps_support_memory(&w.plan->info, &w.info->model, &w.choice));
    if (rc == 0) rc = drps_readout_open_within(md, o->memory_bytes, bytes, &w.r, err);
    if (rc == 0) rc = choose_alike(&w, path, o, err);
    if (rc == 0) rc = read_intercept(&w, md, err);
    if (rc == 0) rc = drps_top_weights_find(&w.r, &w.choice, &w.found, err);
    if (rc == 0 && o->plan)
        rc = drps_support_measure(&w.r, w.plan, &w.choice, &w.found, &w.support, err);
    if (rc == 0 && cli->json)
        rc = print_json(&w, err);
    else if (rc == 0)
        print_text(&w);
    drps_top_weights_destroy(&w.found);
    drps_readout_close(&w.r);
    drps_plan_close(w.plan);
    free(w.support.errors);
    free(w.intercept);
    free(w.like);
    return rc;
}
