/* Wires a run of the compiler to the command line, and reports what it came to. */
#include "tools/index/drps_making.h"

#include <jansson.h>

#include "tools/index/report.h"

void drps_making_begin(struct drps_making *m, struct drps_cli *cli,
                       struct drps_index_options *options, int of_all)
{
    m->columns = (struct index_columns){.cli = cli};
    options->metrics.in_folder = 1;
    options->command = cli->command;
    options->log = &cli->log;
    options->reader.on_columns = index_columns_show;
    options->reader.columns_ctx = &m->columns;
    options->interrupt = drps_cli_stop();
    options->forecast_later = cli->log.level < DRPS_LOG_DEBUG; /* which prints it */
    options->progress = index_progress_tell;
    options->progress_ctx = &m->progress;
    index_progress_start(&m->progress, cli, options, of_all);
}

void drps_making_stop(struct drps_making *m)
{
    index_progress_stop(&m->progress);
}

int drps_making_report(const struct drps_making *m, const struct drps_index_options *options,
                       const struct drps_index_result *result, uint64_t link_bits, int json,
                       struct drps_err *err)
{
    const enum drps_log_level level = m->columns.cli->log.level;
    struct drps_index_report report = {.result = result,
                                       .options = options,
                                       .has_columns = m->columns.shown,
                                       .columns = m->columns.list,
                                       .network = {.link_bits = link_bits}};
    if (!json && level < DRPS_LOG_INFO) return 0;
    int rc = drps_index_report_needs(&report, err);
    if (rc < 0)
        return drps_err_context(err, "%s is made, but what it needs cannot be told", options->out);
    if (json) {
        json_t *j = drps_index_report_json(&report, err);
        return j || !err->code ? drps_cli_json_print(j, err) : err->code;
    }
    return index_report_text(&report, level >= DRPS_LOG_DEBUG, err);
}

void drps_making_end(struct drps_making *m)
{
    json_decref(m->columns.list);
    m->columns.list = NULL;
}
