/* Compiling data into a plan: the settings are taken, the compiler is run and watched, and what it
 * came to is told. */
#include "api/drps.h"

#include <errno.h>
#include <math.h>

#include "api/report/drps_index_report.h"
#include "api/report/drps_json.h"
#include "api/settings.h"
#include "api/watch.h"
#include "index/plan/drps_algorithm.h"
#include "index/reader/matrix/drps_matrix_rows.h"

/* One run. */
struct job {
    struct watch watch;
    struct drps_index_settings settings;
    int has_columns;
    json_t *columns; /* own */
};

static void keep_columns(void *ctx, const struct drps_reader_column *columns, size_t n)
{
    struct job *job = ctx;
    json_decref(job->columns);
    job->columns = drps_columns_json(columns, n);
    job->has_columns = 1;
}

static const char *unit_of(enum drps_index_phase phase)
{
    if (phase == DRPS_PHASE_PARSE || phase == DRPS_PHASE_BATCH) return "samples";
    return phase == DRPS_PHASE_SPLIT ? "ranks" : "steps";
}

static void tell(void *ctx, enum drps_index_phase phase, uint64_t done, uint64_t total)
{
    struct job *job = ctx;
    struct drps_watch_progress p = {.phase = drps_index_phase_name(phase),
                                    .unit = unit_of(phase),
                                    .done = done,
                                    .total = total,
                                    .samples_per_s = (double)NAN,
                                    .train_loss = (double)NAN};
    watch_progress(&job->watch, &p);
}

static int check(struct drps_index_settings *o, struct drps_err *err)
{
    struct drps_err bad = DRPS_ERR_INIT;
    struct drps_values v = drps_settings_values(&bad);
    drps_index_settings_check_model(o, &v);
    drps_index_settings_check_data(o, &v);
    drps_index_settings_complete(o);
    return bad.code ? drps_err_set(err, bad.code, "%s", bad.text) : 0;
}

static int report(const struct job *job, const struct drps_index_result *result, char **json_out,
                  struct drps_err *err)
{
    struct drps_index_report report = {.result = result,
                                       .options = &job->settings.index,
                                       .has_columns = job->has_columns,
                                       .columns = job->columns,
                                       .network = {.link_bits = DRPS_LINK_USUAL_BITS}};
    if (!json_out) return 0;
    int rc = drps_index_report_needs(&report, err);
    if (rc < 0)
        return drps_err_context(err, "%s is made, but what it needs cannot be told",
                                job->settings.index.out);
    json_t *j = drps_index_report_json(&report, err);
    if (!j) return err->code;
    return drps_json_text(j, json_out, err);
}

static int run(struct job *job, char **json_out, struct drps_err *err)
{
    struct drps_index_options *o = &job->settings.index;
    struct drps_index_result result;
    o->log = &job->watch.log;
    o->interrupt = job->watch.stop;
    o->progress = tell;
    o->progress_ctx = job;
    o->reader.on_columns = keep_columns;
    o->reader.columns_ctx = job;
    int rc = drps_index_run(drps_io_os(), o, &result, err);
    return rc < 0 ? rc : report(job, &result, json_out, err);
}

static int add_files(struct drps_index_settings *o, const char *const *files, size_t n,
                     struct drps_err *err)
{
    struct drps_err bad = DRPS_ERR_INIT;
    struct drps_values v = drps_settings_values(&bad);
    for (size_t i = 0; i < n; i++) {
        if (!files || !files[i])
            return drps_err_set(err, DRPS_E_CONFIG, "file %zu has no path", i + 1);
        drps_value_add(&v, &o->inputs, files[i]);
    }
    return bad.code ? drps_err_set(err, -ENOMEM, "%s", bad.text) : 0;
}

int drps_index_files(const struct drps_settings *s, const char *const *files, size_t n,
                     const char *plan, const struct drps_watch *watch, char **json_out,
                     struct drps_err *err)
{
    struct drps_err own = DRPS_ERR_INIT;
    struct job job = {.has_columns = 0};
    err = watch_err(err, &own);
    if (json_out) *json_out = NULL;
    if (!plan) return drps_err_set(err, DRPS_E_CONFIG, "a plan needs a folder to be made");
    watch_begin(&job.watch, watch);
    int rc = drps_settings_of_index(s, &job.settings, err);
    job.settings.index.out = plan;
    if (rc == 0) rc = add_files(&job.settings, files, n, err);
    if (rc == 0) rc = check(&job.settings, err);
    if (rc == 0) rc = run(&job, json_out, err);
    json_decref(job.columns);
    drps_index_settings_free(&job.settings);
    return rc;
}

/* ---- Samples in memory ---- */

/* What is said of files would be in vain. */
static int check_of_files(const struct drps_index_settings *o, struct drps_err *err)
{
    const struct drps_reader_options *r = &o->index.reader;
    const char *given = o->tests.n                          ? "test"
                        : o->weights.n                      ? "weights"
                        : o->test_weights.n                 ? "test-weights"
                        : o->labels.n                       ? "labels"
                        : o->test_labels.n                  ? "test-labels"
                        : r->format                         ? "format"
                        : r->skip_bad_lines                 ? "on-error"
                        : r->weight                         ? "weight"
                        : r->clicks || r->impressions       ? "clicks"
                        : r->csv_label                      ? "label"
                        : r->csv_kinds                      ? "columns"
                        : r->csv_separator || r->csv_header ? "separator"
                        : r->csv_scale || r->csv_cross      ? "scale"
                                                            : NULL;
    if (!given) return 0;
    return drps_err_set(err, DRPS_E_CONFIG,
                        "the setting '%s' is of files, and samples are in memory: leave it out",
                        given);
}

/* The text whose plan is made. */
static int set_format(struct drps_index_options *o, struct drps_err *err)
{
    const struct drps_algorithm *a = drps_algorithm_find(o->algo);
    const int has_fields = drps_algorithm_has_fields(a);
    const int may_have = has_fields || (a && drps_algorithm_is_net(a));
    o->reader.format = a && drps_algorithm_rates(a)         ? "ratings"
                       : may_have && o->matrix->fields.data ? "libffm"
                                                            : "libsvm";
    if (has_fields && !o->matrix->fields.data)
        return drps_err_set(err, DRPS_E_CONFIG,
                            "the algorithm %s needs the field of each column: the matrix has none",
                            o->algo);
    return 0;
}

/* With a base the plan says how its data are read. */
static int set_matrix(struct drps_index_settings *o, const struct drps_matrix *data,
                      const struct drps_matrix *test, struct drps_err *err)
{
    static const char *const names[] = {"the matrix"}, *const tests[] = {"the test matrix"};
    int rc = check_of_files(o, err);
    if (rc == 0) rc = drps_matrix_check(data, err);
    if (rc == 0 && test) rc = drps_matrix_check(test, err);
    if (rc < 0) return rc;
    o->in_memory = 1;
    o->index.matrix = data;
    o->index.test_matrix = test;
    if (!o->index.base) rc = set_format(&o->index, err);
    o->index.inputs = names;
    o->index.inputs_n = 1;
    o->index.tests = tests;
    o->index.tests_n = test ? 1 : 0;
    return rc;
}

int drps_index_matrix(const struct drps_settings *s, const struct drps_matrix *data,
                      const struct drps_matrix *test, const char *plan,
                      const struct drps_watch *watch, char **json_out, struct drps_err *err)
{
    struct drps_err own = DRPS_ERR_INIT;
    struct job job = {.has_columns = 0};
    err = watch_err(err, &own);
    if (json_out) *json_out = NULL;
    if (!plan) return drps_err_set(err, DRPS_E_CONFIG, "a plan needs a folder to be made");
    watch_begin(&job.watch, watch);
    int rc = drps_settings_of_index(s, &job.settings, err);
    job.settings.index.out = plan;
    job.settings.in_memory = 1;
    if (rc == 0) rc = check(&job.settings, err);
    if (rc == 0) rc = set_matrix(&job.settings, data, test, err);
    if (rc == 0) rc = run(&job, json_out, err);
    drps_index_settings_free(&job.settings);
    return rc;
}
