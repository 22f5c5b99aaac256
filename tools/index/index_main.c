/* drps-index compiles data sets into plans. This file says what is run; the work is done by
 * index/run/compile.c, and of several machines by index/ranks/index_ranks.c. */
#include <jansson.h>

#include "net/drps_launch.h"
#include "tools/index/columns.h"
#include "tools/index/options.h"
#include "tools/index/progress.h"
#include "tools/index/report.h"

static int run(const struct drps_cli *cli, struct index_options *o, const struct drps_io *io,
               struct drps_index_result *result, struct drps_err *err)
{
    int rc = 0;
    if (o->index.from_plan) drps_cli_raise_files(cli); /* some of each rank */
    if (!o->ranks.peers) return drps_index_run(io, &o->index, result, err);
    o->ranks.index = &o->index;
    drps_cli_raise_files(cli);
    if (!o->has_rank) rc = drps_launch_rank(o->ranks.peers, "--peer-rank", &o->ranks.rank, err);
    return rc < 0 ? rc : drps_index_ranks_run(&o->ranks, result, err);
}

static int report(const struct drps_cli *cli, const struct index_options *o,
                  const struct drps_index_result *result, const struct index_columns *columns,
                  struct drps_err *err)
{
    struct index_report report = {.result = result,
                                  .options = &o->index,
                                  .columns = columns,
                                  .network = {.link_bits = o->link_bits}};
    if (!cli->json && cli->log.level < DRPS_LOG_INFO) return 0;
    int rc = index_report_needs(&report, err);
    if (rc < 0)
        return drps_err_context(err, "%s is made, but what it needs cannot be told", o->index.out);
    if (cli->json) return index_report_json(&report, err);
    return index_report_text(&report, cli->log.level >= DRPS_LOG_DEBUG, err);
}

int main(int argc, char **argv)
{
    struct index_options o = {.index = {.seed = 1, .metrics = {.in_folder = 1}},
                              .link_bits = LINK_USUAL_BITS};
    struct drps_index_result result;
    struct drps_cli cli;
    struct index_progress progress;
    struct index_columns columns = {.cli = &cli};
    struct drps_err err = DRPS_ERR_INIT;

    drps_cli_start(&cli, &index_tool, &o, argc, argv);
    o.index.inputs = o.inputs.list;
    o.index.inputs_n = o.inputs.n;
    o.index.tests = o.tests.list;
    o.index.tests_n = o.tests.n;
    o.index.weights = o.weights.list;
    o.index.weights_n = o.weights.n;
    o.index.test_weights = o.test_weights.list;
    o.index.test_weights_n = o.test_weights.n;
    o.index.command = cli.command;
    o.index.log = &cli.log;
    o.index.reader.on_columns = index_columns_show;
    o.index.reader.columns_ctx = &columns;
    o.index.interrupt = drps_cli_stop();
    o.index.progress = index_progress_tell;
    o.index.progress_ctx = &progress;
    index_progress_start(&progress, &cli, &o.index);
    int rc = run(&cli, &o, &progress.io, &result, &err);
    index_progress_stop(&progress);
    if (rc == 0 && !index_only_counts(&o)) rc = report(&cli, &o, &result, &columns, &err);
    json_decref(columns.list);
    index_options_free(&o);
    return drps_cli_finish(&cli, rc, &err);
}
