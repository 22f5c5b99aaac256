/* Which options of drps-index drps-train takes, and whether its arguments are data. */
#include "tools/train/data.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "api/settings/drps_index_keys.h"
#include "base/drps_checksum.h"
#include "index/plan/drps_algorithm.h"

/* Groups of drps_index_table: the model, the input, batches and implicit feedback. Those behind are
 * of several machines and of block stores, whose users have the two commands. */
enum { GROUPS = 4 };

/* Added to the keys of drps-index, which would be those of other options here. */
enum { DATA_KEY = 0x10000 };

/* ---- The table ---- */

static int is_end(const struct argp_option *o)
{
    return !o->name && !o->key && !o->doc;
}

static int trains(const char *name)
{
    for (const struct argp_option *o = drps_train_table; !is_end(o); o++)
        if (o->name && strcmp(o->name, name) == 0) return 1;
    return 0;
}

/* A base is a plan, and what goes on from one is a plan of its own. */
static int is_taken(const struct argp_option *o)
{
    if (o->group > GROUPS) return 0;
    return !o->name || (!trains(o->name) && o->key != KEY_BASE && o->key != KEY_REPLAY);
}

void train_data_table(struct argp_option table[TRAIN_OPTIONS_MOST])
{
    size_t n = 0;
    int last = 0;
    for (const struct argp_option *o = drps_train_table; !is_end(o); o++) {
        assert(n < TRAIN_OPTIONS_MOST - 1);
        table[n++] = *o;
        if (o->group > last) last = o->group;
    }
    for (const struct argp_option *o = drps_index_table; !is_end(o); o++) {
        if (!is_taken(o)) continue;
        assert(n < TRAIN_OPTIONS_MOST - 1);
        table[n] = *o;
        table[n].group += last;
        if (o->name) table[n].key += DATA_KEY;
        if (!o->name && o->group == 1) table[n].doc = "DATA in place of PLAN (see drps-index):";
        n++;
    }
    table[n] = (struct argp_option){0};
}

/* ---- Options ---- */

void train_data_init(struct train_data *d)
{
    *d = (struct train_data){.option = NULL};
    drps_index_settings_init(&d->settings);
}

void train_data_free(struct train_data *d)
{
    drps_index_settings_free(&d->settings);
    free(d->plan);
    d->plan = NULL;
}

int train_data_has(int key)
{
    return key >= DATA_KEY;
}

static const char *name_of(int key)
{
    const struct argp_option *o = drps_index_table;
    while (!o->name || o->key != key)
        o++;
    return o->name;
}

int train_data_option(struct train_data *d, struct drps_values *v, int key, const char *text)
{
    if (!train_data_has(key)) return 0;
    const int taken = drps_index_setting(&d->settings, v, key - DATA_KEY, text);
    if (!taken) return 0;
    d->option = name_of(key - DATA_KEY);
    const uint64_t chain[3] = {d->words, drps_checksum(d->option, strlen(d->option)),
                               text ? drps_checksum(text, strlen(text)) : 0};
    d->words = drps_checksum(chain, sizeof(chain));
    return 1;
}

/* ---- Data or a plan ---- */

static int is_folder(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* What is not there may be a plan with another name: who opens it says so. */
static int are_data(const struct train_data *d)
{
    const struct drps_value_list *given = &d->settings.inputs;
    struct stat st;
    if (d->option || given->n > 1) return 1;
    return given->n && (strcmp(given->texts[0], "-") == 0 ||
                        (stat(given->texts[0], &st) == 0 && !S_ISDIR(st.st_mode)));
}

static void check(struct train_data *d, struct drps_values *v)
{
    const struct drps_value_list *given = &d->settings.inputs;
    char names[DRPS_ALGORITHM_NAMES_BYTES];
    for (size_t i = 0; i < given->n; i++) {
        if (!is_folder(given->texts[i])) continue;
        if (d->option)
            drps_value_bad(v,
                           "'%s' is a folder, and {%s} says how data become a plan: name files of "
                           "data, or leave it out",
                           given->texts[i], d->option);
        drps_value_bad(v, "'%s' is a folder: name one plan alone, or files of data",
                       given->texts[i]);
    }
    if (given->n && !d->settings.index.algo)
        drps_value_bad(
            v,
            "'%s' is no plan, which is a folder that drps-index makes; of data {algo} is "
            "missing: %s",
            given->texts[0], drps_algo_names(names));
    drps_index_settings_check_model(&d->settings, v);
    drps_index_settings_check_data(&d->settings, v);
}

/* The name of the folder beside the model. */
static void name_plan(struct train_data *d, const char *model, struct drps_values *v)
{
    int n = (int)strnlen(model, INT32_MAX);
    while (n > 1 && model[n - 1] == '/')
        n--;
    if (asprintf(&d->plan, "%.*s" TRAIN_PLAN_SUFFIX, n, model) >= 0) return;
    d->plan = NULL;
    drps_value_bad(v, "no memory for the plan's name");
}

void train_data_settle(struct train_data *d, const char *model, struct drps_values *v)
{
    if (!are_data(d)) return;
    check(d, v);
    drps_index_settings_complete(&d->settings);
    if (model) name_plan(d, model, v);
}
