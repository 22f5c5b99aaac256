/*
 * libdrps: sparse models that need not fit the memory. A program compiles data into a plan, trains
 * it, and uses the model.
 *
 *     struct drps_err err = DRPS_ERR_INIT;
 *     struct drps_settings *s = NULL;
 *     struct drps_predictor *p = NULL;
 *     const char *files[] = {"clicks.libsvm"};
 *     if (drps_settings_new(DRPS_TASK_INDEX, &s, &err) < 0 ||
 *         drps_settings_set(s, "algo", "lor", &err) < 0 ||
 *         drps_index_files(s, files, 1, "clicks.plan", NULL, NULL, &err) < 0 ||
 *         drps_train(NULL, "clicks.plan", "clicks.model", NULL, NULL, &err) < 0 ||
 *         drps_predictor_open("clicks.model", 0, &p, &err) < 0)
 *         fprintf(stderr, "%s\n", err.text);
 *     ... drps_predictor_score(p, &samples, scores, &err) ...
 *     drps_predictor_close(p);
 *     drps_settings_free(s);
 *
 * Manners: the library prints nothing, ends no process, and installs no signal handler.
 *
 * Errors: functions return 0 (or what they say) or a negative code: -errno of the system, or one of
 * enum drps_err_code. err->text says what failed, where, and what to do. `err` may be NULL. Zero
 * it (DRPS_ERR_INIT, drps_err_clear()) before it is used again: the first failure stays. A result
 * (..._out) is empty after a failure, unless a function says otherwise.
 *
 * Threads: any thread may call any function; a handle is used by one at a time, unless it says
 * otherwise. Callbacks return to the library: they do not throw or longjmp.
 *
 * Stable: programs that are linked with libdrps.so.0 go on working with later ones of that number.
 * Functions, settings and members of JSON results may be added. Structs that a program fills are
 * zeroed first; zero means default.
 */
#ifndef DRPS_H
#define DRPS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#include "base/drps_err.h"
#include "engine/model/drps_callbacks.h"

/* Returns the version of the library, as "1.2.3". */
const char *drps_version(void);

/* Frees a text that the library returned as own. NULL-safe. */
void drps_free(char *text);

/* ---- Settings: the options of the tools, by their long names, as text ---- */

/* Whose options: those of drps-index, drps-train, drps-predict, drps-recommend. */
enum drps_task { DRPS_TASK_INDEX, DRPS_TASK_TRAIN, DRPS_TASK_PREDICT, DRPS_TASK_RECOMMEND };

struct drps_settings; /* opaque: own; one thread at a time */

/* -ENOMEM; DRPS_E_CONFIG: there is no such task. */
DRPS_MUST_CHECK
int drps_settings_new(enum drps_task task, struct drps_settings **out, struct drps_err *err);
void drps_settings_free(struct drps_settings *s); /* NULL-safe */

/*
 * name    "epochs", "lr", "memory" ...: as the tool's manual page lists it, without dashes
 * value   as there: "3", ".1", "512M"; of a flag NULL, "" or "1" (on) or "0" (off). Copied
 *
 * A later value takes the place of an earlier one, but for what may be given several times
 * ("test"). What a function has as a parameter is no setting (the output), nor is what is of a
 * command line or of several processes ("json", "quiet", "peers", "local"). "force" is one: what
 * exists at the place of the result is replaced at the end.
 *
 * DRPS_E_CONFIG: there is no such setting (the text names the nearest one), or the value is bad
 * (the text says what it may be); the settings are as they were. Values that do not go together, or
 * do not fit the data, are refused by the function that the settings are given to.
 */
DRPS_MUST_CHECK
int drps_settings_set(struct drps_settings *s, const char *name, const char *value,
                      struct drps_err *err);

/* Returns the name of setting i of a task, from 0, and what it does, in a line, in *help_out (may
 * be NULL); or NULL: there are no more. Static. */
const char *drps_settings_name(enum drps_task task, size_t i, const char **help_out);

/* ---- Watching a run ---- */

enum drps_level { DRPS_LEVEL_ERROR, DRPS_LEVEL_WARNING, DRPS_LEVEL_INFO, DRPS_LEVEL_DETAIL };

/* Where a run is. Borrowed until the callback returns. Later versions may add members. */
struct drps_watch_progress {
    const char *phase; /* of compiling: "parse", "place", "batch" ...; of training: "train",
                          "evaluate", "write"; of files: "predict"; "names", "seen", "scores" */
    const char *unit;  /* of done and total: "samples", "steps", "bytes", "ranks", "scores"; "" */
    uint64_t done, total;   /* total 0: not known */
    uint64_t epoch, epochs; /* of training, from 1; else 0 */
    double seconds;         /* since the run began */
    double samples_per_s;   /* of training, in this epoch; else NaN */
    double train_loss;      /* of training: the mean so far in this epoch; else NaN */
};

/*
 * All members may be zero. Callbacks but for `message` come one at a time, on the thread that
 * called the library, or of several ranks on that of rank 0. A callback that returns non-zero stops
 * the run, as does *stop.
 *
 * A run that is stopped returns DRPS_E_INTERRUPTED and leaves nothing, but for training: it writes
 * the model of the steps that are done, and fills *json_out.
 */
struct drps_watch {
    void *ctx;
    /* A message: information, or a warning about the data or the model. Any thread, several at a
     * time. NULL: they are dropped. */
    void (*message)(void *ctx, enum drps_level level, const char *text);
    int (*progress)(void *ctx,
                    const struct drps_watch_progress *progress); /* some times a second */
    /* An epoch of training has ended: `json` is its element of "epochs" in the result. */
    int (*epoch)(void *ctx, const char *json);
    /* Polled; a signal handler or another thread sets it to 1. A callback's wish to stop sets it,
     * too. NULL: nobody else stops the run. */
    volatile int *stop;
    void *reserved[4]; /* zero */
};

/* ---- Data in memory: compressed sparse rows (CSR) ---- */

#include "index/reader/matrix/drps_matrix.h"

/*
 * ---- Compiling and training ----
 *
 * `s` has settings of the function's task; NULL: all are default. `watch` may be NULL. *json_out is
 * what the tool prints with --json, own (drps_free()); json_out may be NULL. What is borrowed is so
 * until return. Results are whole or not there.
 */

/* Compile files [n] into the folder `plan`. Errors are many: DRPS_E_FORMAT names file, line and
 * column; DRPS_E_CONFIG, DRPS_E_MEMORY_BUDGET, -EEXIST (without "force"), -ENOSPC ... */
DRPS_MUST_CHECK
int drps_index_files(const struct drps_settings *s, const char *const *files, size_t n,
                     const char *plan, const struct drps_watch *watch, char **json_out,
                     struct drps_err *err);

/* Compile samples in memory. They are read as they are, some at a time, never copied as a whole.
 * test: samples that are evaluated and not trained on; NULL: none. */
DRPS_MUST_CHECK
int drps_index_matrix(const struct drps_settings *s, const struct drps_matrix *data,
                      const struct drps_matrix *test, const char *plan,
                      const struct drps_watch *watch, char **json_out, struct drps_err *err);

/* Train a plan; a plan for several workers by as many ranks, threads of this process. *json_out is
 * there also after DRPS_E_INTERRUPTED. */
DRPS_MUST_CHECK
int drps_train(const struct drps_settings *s, const char *plan, const char *model,
               const struct drps_watch *watch, char **json_out, struct drps_err *err);

/* The same with a loss of the program's own in place of the plan's. `loss` is used by several
 * threads at a time. */
DRPS_MUST_CHECK
int drps_train_with_loss(const struct drps_settings *s, const char *plan, const char *model,
                         const struct drps_callbacks *loss, const struct drps_watch *watch,
                         char **json_out, struct drps_err *err);

/* Score the samples of files [n] into the file `output`, as drps-predict does; NULL: no file, where
 * the settings ask for metrics or a calibration. */
DRPS_MUST_CHECK
int drps_predict_files(const struct drps_settings *s, const char *model, const char *const *files,
                       size_t n, const char *output, const struct drps_watch *watch,
                       char **json_out, struct drps_err *err);

/* Write recommendations into the file `output`, as drps-recommend does. */
DRPS_MUST_CHECK
int drps_recommend_files(const struct drps_settings *s, const char *model, const char *output,
                         const struct drps_watch *watch, char **json_out, struct drps_err *err);

/* What a plan or a model is, as drps-stat --json says it: the forecast of a plan; of a model how it
 * was trained, epoch by epoch. */
DRPS_MUST_CHECK
int drps_describe(const char *plan_or_model, char **json_out, struct drps_err *err);

/*
 * ---- A model in use ----
 *
 * Any number of threads may use a predictor at a time, but for drps_predictor_close().
 */
struct drps_predictor; /* opaque: own */

/*
 * memory_bytes   for rows and names; 0: all of them are in memory. Rows that do not fit are read
 * from disk by block, through a cache, and names by page where they do not fit either; then threads
 * take turns
 *
 * DRPS_E_NOT_FOUND: no model there; DRPS_E_CORRUPT: a damaged one; DRPS_E_MEMORY_BUDGET: it takes
 * more (some MiB); -ENOMEM.
 */
DRPS_MUST_CHECK
int drps_predictor_open(const char *model, uint64_t memory_bytes, struct drps_predictor **out,
                        struct drps_err *err);
void drps_predictor_close(struct drps_predictor *p); /* NULL-safe */

/* Returns what the model is: the content of model.json. Borrowed until the predictor is closed. */
const char *drps_predictor_json(const struct drps_predictor *p);

/* Returns the scores of a sample: 1, or of classes one each, or of topics one each. */
size_t drps_predictor_outputs(const struct drps_predictor *p);

/* Returns the name of class i, borrowed; NULL: labels are numbers, or there is no such class. */
const char *drps_predictor_class(const struct drps_predictor *p, size_t i);

/* What a score is. */
enum drps_score {
    DRPS_SCORE_USUAL, /* as drps-predict has it: the probability of the positive class (calibrated
                         where the model is), the margin of hinge losses, or a value; of classes the
                         probability of each; of topics the code */
    DRPS_SCORE_RAW,   /* what the loss is computed of: W*x and its like, before any of that */
};

/*
 * Score samples in memory.
 *
 * m        labels and weights are not looked at. Columns that training has not seen count as
 * absent. Of models of users and items each sample has two entries: the user's number, then the
 *          item's (its values do not count)
 * scores   [m->samples][outputs] to fill in
 *
 * DRPS_E_FORMAT: the matrix is damaged, or a sample has more features than the model takes;
 * DRPS_E_CONFIG: the model's data have columns with names: score text.
 */
DRPS_MUST_CHECK
int drps_predictor_score(struct drps_predictor *p, const struct drps_matrix *m,
                         enum drps_score what, double *scores, struct drps_err *err);

/*
 * Score lines of text [bytes] in the format of the training data; csv begins with its header line,
 * unless the training data had none. Labels are as drps-predict needs them: those of csv, and the
 * ratings of users and items, may be left out.
 *
 * scores   [most][outputs] to fill in, for at most so many samples
 * n_out    how many samples there were
 *
 * DRPS_E_FORMAT names the line; -ERANGE: there are more than `most`.
 */
DRPS_MUST_CHECK
int drps_predictor_score_text(struct drps_predictor *p, const char *text, size_t bytes,
                              enum drps_score what, double *scores, size_t most, size_t *n_out,
                              struct drps_err *err);

/*
 * What adds up to the raw score of each sample: *json_out is JSON lines, one a sample, as
 * drps-predict --explain --json writes them, with at most `most` features each (0: 10). The matrix
 * is as above.
 */
DRPS_MUST_CHECK
int drps_predictor_explain(struct drps_predictor *p, const struct drps_matrix *m, size_t most,
                           char **json_out, struct drps_err *err);
DRPS_MUST_CHECK
int drps_predictor_explain_text(struct drps_predictor *p, const char *text, size_t bytes,
                                size_t most, char **json_out, struct drps_err *err);

/* Returns how many requests have read rows and names since the predictor was opened, and how many
 * bytes in *bytes_out (may be NULL). 0 while all is in memory. */
uint64_t drps_predictor_reads(const struct drps_predictor *p, uint64_t *bytes_out);

/* ---- Rows and names ---- */

/* A row of a model. Borrowed until the callback returns. Later versions may add members. */
struct drps_row {
    const char *table; /* "bias", "w", "wv", "user", "item", "word" */
    const char *name;  /* [name_bytes] any bytes: "17", "colour=red", "user=17", "(intercept)" */
    size_t name_bytes;
    const float *params; /* [dim] weights, then factors, as docs/formats.md has them */
    size_t dim;
};

/* Visit all rows with their names. A non-zero result of `visit` ends the visit, and is returned.
 * The predictor is held meanwhile: `visit` does not use it, it would wait for itself. */
typedef int (*drps_row_visitor)(void *ctx, const struct drps_row *row);
DRPS_MUST_CHECK
int drps_predictor_rows(struct drps_predictor *p, drps_row_visitor visit, void *ctx,
                        struct drps_err *err);

/* The parameters of the row of that name into params [most], as many as there are in *dim_out. With
 * most 0 nothing is written: *dim_out says how many there would be. DRPS_E_NOT_FOUND; -ERANGE:
 * there are more than `most`. */
DRPS_MUST_CHECK
int drps_predictor_row(struct drps_predictor *p, const char *name, float *params, size_t most,
                       size_t *dim_out, struct drps_err *err);

/* ---- Recommendation: models of users and items ---- */

/* Items are numbered from 0, in the order of the model's rows. */
uint32_t drps_predictor_items(struct drps_predictor *p); /* how many; 0: the model has none */
/* Returns the name of an item, a text that ends with a zero, borrowed; NULL: there is no such item.
 * Like the two functions below it reads all items into memory when it is called first. */
const char *drps_predictor_item(struct drps_predictor *p, uint32_t item);

#define DRPS_NO_ITEM UINT32_MAX

/*
 * The n best items of each user.
 *
 * users    [users_n] names as in the data: of a matrix decimal numbers
 * seen     [users_n samples] items that user i does not get, by number as in drps_index_matrix()
 *          (values do not count); NULL: all items are allowed
 * items    [users_n][n] to fill in, best first; DRPS_NO_ITEM where there are no more
 * scores   [users_n][n] to fill in, of these; NULL: not wanted
 *
 * Results are those of drps-recommend. DRPS_E_NOT_FOUND names a user that the model does not have;
 * DRPS_E_CONFIG: a model without users and items, or n is 0.
 */
DRPS_MUST_CHECK
int drps_predictor_recommend(struct drps_predictor *p, const char *const *users, size_t users_n,
                             const struct drps_matrix *seen, size_t n, uint32_t *items,
                             double *scores, struct drps_err *err);

/* The n items most like each of these [names_n], by the cosine of their factors. The rest is as
 * above. */
DRPS_MUST_CHECK
int drps_predictor_similar(struct drps_predictor *p, const char *const *names, size_t names_n,
                           size_t n, uint32_t *items, double *scores, struct drps_err *err);

#ifdef __cplusplus
}
#endif

#endif
