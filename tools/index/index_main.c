/* drps-index compiles data sets into plans. This file says what is run; the work is done by
 * index/run/compile.c, and of several machines by index/ranks/index_ranks.c. */
#include <jansson.h>

#include "net/drps_launch.h"
#include "tools/index/columns.h"
#include "tools/index/options.h"
#include "tools/index/progress.h"
#include "tools/index/report.h"

/* Which of several ranks this process is, as its launcher says. */
static int find_rank(struct drps_index_ranks_options *ranks, struct drps_err *err)
{
    struct drps_launch launch;
    if (ranks->peers) return drps_launch_rank(ranks->peers, "--peer-rank", &ranks->rank, err);
    const int rc = drps_launch_mpi(&launch, err);
    ranks->rank = launch.rank;
    ranks->count = launch.count;
    return rc;
}

static int run(const struct drps_cli *cli, struct index_options *o, const struct drps_io *io,
               struct drps_index_result *result, struct drps_err *err)
{
    int rc = 0;
    if (o->settings.index.from_plan) drps_cli_raise_files(cli); /* some of each rank */
    if (!index_has_ranks(o) && !o->ranks.local)
        return drps_index_run(io, &o->settings.index, result, err);
    o->ranks.index = &o->settings.index;
    o->ranks.io = io;
    drps_cli_raise_files(cli);
    if (!o->has_rank && index_has_ranks(o)) rc = find_rank(&o->ranks, err);
    return rc < 0 ? rc : drps_index_ranks_run(&o->ranks, result, err);
}

static int report(const struct drps_cli *cli, const struct index_options *o,
                  const struct drps_index_result *result, const struct index_columns *columns,
                  struct drps_err *err)
{
    struct drps_index_report report = {.result = result,
                                       .options = &o->settings.index,
                                       .has_columns = columns->shown,
                                       .columns = columns->list,
                                       .network = {.link_bits = o->link_bits}};
    if (!cli->json && cli->log.level < DRPS_LOG_INFO) return 0;
    if (!cli->json && index_together(o) && o->ranks.rank)
        return index_report_rank(&report, o->ranks.rank);
    int rc = drps_index_report_needs(&report, err);
    if (rc < 0)
        return drps_err_context(err, "%s is made, but what it needs cannot be told",
                                o->settings.index.out);
    if (cli->json) {
        json_t *j = drps_index_report_json(&report, err);
        return j || !err->code ? drps_cli_json_print(j, err) : err->code;
    }
    return index_report_text(&report, cli->log.level >= DRPS_LOG_DEBUG, err);
}

int main(int argc, char **argv)
{
    struct index_options o = {.link_bits = DRPS_LINK_USUAL_BITS};
    struct drps_index_result result;
    struct drps_cli cli;
    struct index_progress progress;
    struct index_columns columns = {.cli = &cli};
    struct drps_err err = DRPS_ERR_INIT;

    drps_index_settings_init(&o.settings);
    drps_cli_start(&cli, &index_tool, &o, argc, argv);
    o.settings.index.metrics.in_folder = 1;
    o.settings.index.command = cli.command;
    o.settings.index.log = &cli.log;
    o.settings.index.reader.on_columns = index_columns_show;
    o.settings.index.reader.columns_ctx = &columns;
    o.settings.index.interrupt = drps_cli_stop();
    o.settings.index.progress = index_progress_tell;
    o.settings.index.progress_ctx = &progress;
    index_progress_start(&progress, &cli, &o.settings.index, index_together(&o));
    int rc = run(&cli, &o, &progress.io, &result, &err);
    index_progress_stop(&progress);
    if (rc == 0 && !index_only_counts(&o)) rc = report(&cli, &o, &result, &columns, &err);
    json_decref(columns.list);
    drps_index_settings_free(&o.settings);
    return drps_cli_finish(&cli, rc, &err);
}
