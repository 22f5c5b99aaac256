/*
 * Settings that a program makes, by name and as text.
 *
 * They are kept as they were given, and taken anew for each run: so a setting that is taken back
 * leaves nothing behind. Each is tried when it is set.
 */
#include "api/settings.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "api/settings/drps_table.h"
#include "base/drps_alloc.h"

struct setting {
    const struct argp_option *option; /* static */
    char *text;                       /* own; NULL: a flag, or its value was left out */
};

struct drps_settings {
    enum drps_task task;
    struct setting *list; /* own: [n] */
    size_t n, cap;
};

/* ---- Tasks ---- */

/* What one of the tasks takes. */
union taken {
    struct drps_index_settings index;
    struct drps_train_settings train;
    struct drps_predict_settings predict;
    struct drps_recommend_settings recommend;
};

static void index_init(union taken *o)
{
    drps_index_settings_init(&o->index);
}
static void train_init(union taken *o)
{
    drps_train_settings_init(&o->train);
}
static void predict_init(union taken *o)
{
    o->predict = (struct drps_predict_settings){.has_shape = 0};
}
static void recommend_init(union taken *o)
{
    drps_recommend_settings_init(&o->recommend);
}

static int index_take(union taken *o, struct drps_values *v, int key, const char *text)
{
    return drps_index_setting(&o->index, v, key, text);
}
static int train_take(union taken *o, struct drps_values *v, int key, const char *text)
{
    return drps_train_setting(&o->train, v, key, text);
}
static int predict_take(union taken *o, struct drps_values *v, int key, const char *text)
{
    return drps_predict_setting(&o->predict, v, key, text);
}
static int recommend_take(union taken *o, struct drps_values *v, int key, const char *text)
{
    return drps_recommend_setting(&o->recommend, v, key, text);
}

static void index_free(union taken *o)
{
    drps_index_settings_free(&o->index);
}
static void train_free(union taken *o)
{
    (void)o; /* it owns nothing */
}
static void predict_free(union taken *o)
{
    drps_predict_settings_free(&o->predict);
}
static void recommend_free(union taken *o)
{
    drps_recommend_settings_free(&o->recommend);
}

struct task {
    const char *tool;
    const struct argp_option *table;
    const char *lists[6]; /* what may be given several times, NULL-terminated */
    void (*init)(union taken *o);
    int (*take)(union taken *o, struct drps_values *v, int key, const char *text);
    void (*free)(union taken *o);
};

static const struct task tasks[] = {
    [DRPS_TASK_INDEX] = {"drps-index",
                         drps_index_table,
                         {"test", "weights", "test-weights", "labels", "test-labels", NULL},
                         index_init,
                         index_take,
                         index_free},
    [DRPS_TASK_TRAIN] =
        {"drps-train", drps_train_table, {NULL}, train_init, train_take, train_free},
    [DRPS_TASK_PREDICT] = {"drps-predict",
                           drps_predict_table,
                           {"weights", "labels", NULL},
                           predict_init,
                           predict_take,
                           predict_free},
    [DRPS_TASK_RECOMMEND] = {"drps-recommend",
                             drps_recommend_table,
                             {"user", "similar", "fold-in", "seen", "test", NULL},
                             recommend_init,
                             recommend_take,
                             recommend_free},
};

struct drps_values drps_settings_values(struct drps_err *err)
{
    return (struct drps_values){.err = err, .before = "'", .behind = "'"};
}

/* Try a setting; returns 1 if it is one. */
static int try_one(const struct task *task, int key, const char *text, struct drps_err *err)
{
    union taken o;
    struct drps_values v = drps_settings_values(err);
    task->init(&o);
    const int known = task->take(&o, &v, key, text);
    task->free(&o);
    return known;
}

static int is_list(const struct task *task, const char *name)
{
    for (const char *const *l = task->lists; *l; l++)
        if (strcmp(*l, name) == 0) return 1;
    return 0;
}

/* ---- Names ---- */

static int is_end(const struct argp_option *o)
{
    return !o->name && !o->key && !o->doc;
}

/* A program's process is not divided: counting by several is of the command line. */
static int forks(const struct task *task, const struct argp_option *o)
{
    return task == &tasks[DRPS_TASK_INDEX] && strcmp(o->name, "shards") == 0;
}

static int is_setting(const struct task *task, const struct argp_option *o)
{
    struct drps_err err = DRPS_ERR_INIT; /* "1" may be no value of it: that does not matter */
    return o->name && !forks(task, o) && try_one(task, o->key, "1", &err);
}

const char *drps_settings_name(enum drps_task task, size_t i, const char **help_out)
{
    if (help_out) *help_out = NULL;
    if ((unsigned)task >= sizeof(tasks) / sizeof(tasks[0])) return NULL;
    for (const struct argp_option *o = tasks[task].table; !is_end(o); o++) {
        if ((o->flags & OPTION_HIDDEN) || !is_setting(&tasks[task], o) || i--) continue;
        if (help_out) *help_out = o->doc;
        return o->name;
    }
    return NULL;
}

enum { NAME_BYTES = 48 };

/* How many letters are to be changed, added or left out until a is b (Levenshtein). */
static size_t letters_between(const char *a, const char *b)
{
    const size_t n = strlen(b);
    size_t row[NAME_BYTES];
    if (n >= NAME_BYTES) return NAME_BYTES;
    for (size_t k = 0; k <= n; k++)
        row[k] = k;
    for (; *a; a++) {
        size_t diagonal = row[0]++;
        for (size_t k = 1; k <= n; k++) {
            size_t least = diagonal + (*a != b[k - 1]);
            diagonal = row[k];
            if (row[k] + 1 < least) least = row[k] + 1;
            if (row[k - 1] + 1 < least) least = row[k - 1] + 1;
            row[k] = least;
        }
    }
    return row[n];
}

static int refuse_name(const struct drps_settings *s, const char *name, struct drps_err *err)
{
    const struct task *task = &tasks[s->task];
    const char *nearest = NULL, *other;
    size_t least = NAME_BYTES;
    for (size_t i = 0; strlen(name) < NAME_BYTES && (other = drps_settings_name(s->task, i, NULL));
         i++) {
        const size_t n = letters_between(name, other);
        if (n < least) nearest = other;
        if (n < least) least = n;
    }
    if (nearest && least <= 1 + strlen(nearest) / 3)
        return drps_err_set(err, DRPS_E_CONFIG,
                            "there is no setting '%.40s' of %s; did you mean '%s'?", name,
                            task->tool, nearest);
    return drps_err_set(err, DRPS_E_CONFIG,
                        "there is no setting '%.40s' of %s; they are the long options in its "
                        "manual page, without dashes",
                        name, task->tool);
}

static const struct argp_option *find(const struct task *task, const char *name)
{
    for (const struct argp_option *o = task->table; !is_end(o); o++)
        if (o->name && strcmp(o->name, name) == 0) return o;
    return NULL;
}

/* ---- Setting ---- */

static void forget(struct drps_settings *s, const struct argp_option *option)
{
    size_t kept = 0;
    for (size_t i = 0; i < s->n; i++) {
        if (s->list[i].option == option)
            free(s->list[i].text);
        else
            s->list[kept++] = s->list[i];
    }
    s->n = kept;
}

static int keep(struct drps_settings *s, const struct argp_option *option, const char *text,
                struct drps_err *err)
{
    char *copy = text ? strdup(text) : NULL;
    if ((text && !copy) || drps_array_reserve(&s->list, &s->cap, s->n + 1, sizeof(*s->list))) {
        free(copy);
        return drps_err_set(err, -ENOMEM, "no memory for the setting %s", option->name);
    }
    if (!is_list(&tasks[s->task], option->name)) forget(s, option);
    s->list[s->n++] = (struct setting){option, copy};
    return 0;
}

static int set_flag(struct drps_settings *s, const struct argp_option *option, const char *value,
                    struct drps_err *err)
{
    const int on = value && *value ? drps_truth(value) : 1;
    if (on < 0)
        return drps_err_set(err, DRPS_E_CONFIG, "%s: '%s' is neither 1 (on) nor 0 (off)",
                            option->name, value);
    if (on) return keep(s, option, NULL, err);
    forget(s, option);
    return 0;
}

int drps_settings_set(struct drps_settings *s, const char *name, const char *value,
                      struct drps_err *err)
{
    struct drps_err bad = DRPS_ERR_INIT;
    if (!s || !name)
        return drps_err_set(err, DRPS_E_CONFIG,
                            "a setting needs a name, and settings that it is of");
    const struct argp_option *option = find(&tasks[s->task], name);
    if (!option || !is_setting(&tasks[s->task], option)) return refuse_name(s, name, err);
    if (!option->arg) return set_flag(s, option, value, err);
    if (option->flags & OPTION_ARG_OPTIONAL && value && !*value) value = NULL;
    if (!value && !(option->flags & OPTION_ARG_OPTIONAL))
        return drps_err_set(err, DRPS_E_CONFIG, "%s needs a value: %s", name, option->arg);
    (void)try_one(&tasks[s->task], option->key, value, &bad); /* it is one */
    if (bad.code) return drps_err_set(err, bad.code, "%s: %s", name, bad.text);
    return keep(s, option, value, err);
}

int drps_settings_new(enum drps_task task, struct drps_settings **out, struct drps_err *err)
{
    *out = NULL;
    if ((unsigned)task >= sizeof(tasks) / sizeof(tasks[0]))
        return drps_err_set(err, DRPS_E_CONFIG, "there is no task %d", (int)task);
    *out = calloc(1, sizeof(**out));
    if (!*out) return drps_err_set(err, -ENOMEM, "no memory for settings");
    (*out)->task = task;
    return 0;
}

void drps_settings_free(struct drps_settings *s)
{
    if (!s) return;
    for (size_t i = 0; i < s->n; i++)
        free(s->list[i].text);
    free(s->list);
    free(s);
}

/* ---- Taking ---- */

static int take_all(const struct drps_settings *s, enum drps_task task, union taken *o,
                    struct drps_err *err)
{
    struct drps_err bad = DRPS_ERR_INIT;
    struct drps_values v = drps_settings_values(&bad);
    tasks[task].init(o);
    if (!s) return 0;
    if (s->task != task)
        return drps_err_set(err, DRPS_E_CONFIG, "settings of %s were given, not of %s",
                            tasks[s->task].tool, tasks[task].tool);
    for (size_t i = 0; i < s->n; i++)
        (void)tasks[task].take(o, &v, s->list[i].option->key, s->list[i].text); /* it is one */
    return bad.code ? drps_err_set(err, bad.code, "%s", bad.text) : 0;
}

int drps_settings_of_index(const struct drps_settings *s, struct drps_index_settings *o,
                           struct drps_err *err)
{
    union taken taken;
    const int rc = take_all(s, DRPS_TASK_INDEX, &taken, err);
    *o = taken.index;
    return rc;
}

int drps_settings_of_train(const struct drps_settings *s, struct drps_train_settings *o,
                           struct drps_err *err)
{
    union taken taken;
    const int rc = take_all(s, DRPS_TASK_TRAIN, &taken, err);
    *o = taken.train;
    return rc;
}

int drps_settings_of_predict(const struct drps_settings *s, struct drps_predict_settings *o,
                             struct drps_err *err)
{
    union taken taken;
    const int rc = take_all(s, DRPS_TASK_PREDICT, &taken, err);
    *o = taken.predict;
    return rc;
}

/* The test's threshold lies in the settings, and is pointed to. */
int drps_settings_of_recommend(const struct drps_settings *s, struct drps_recommend_settings *o,
                               struct drps_err *err)
{
    union taken taken;
    const int rc = take_all(s, DRPS_TASK_RECOMMEND, &taken, err);
    *o = taken.recommend;
    if (o->recommend.test_from) o->recommend.test_from = &o->test_from;
    return rc;
}
