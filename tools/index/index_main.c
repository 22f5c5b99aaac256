/* drps-index compiles data sets into plans. This file says what is run; the work is done by
 * index/run/compile.c, and of several machines by index/ranks/index_ranks.c. */
#include "net/drps_launch.h"
#include "tools/index/drps_making.h"
#include "tools/index/options.h"
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

/* Where several machines make the plan, ranks above 0 have little to say. */
static int report(const struct drps_cli *cli, const struct index_options *o,
                  const struct drps_making *making, const struct drps_index_result *result,
                  struct drps_err *err)
{
    const struct drps_index_report rank = {.result = result, .options = &o->settings.index};
    if (cli->json || !index_together(o) || !o->ranks.rank)
        return drps_making_report(making, &o->settings.index, result, o->link_bits, cli->json, err);
    return cli->log.level < DRPS_LOG_INFO ? 0 : index_report_rank(&rank, o->ranks.rank);
}

int main(int argc, char **argv)
{
    struct index_options o = {.link_bits = DRPS_LINK_USUAL_BITS};
    struct drps_index_result result;
    struct drps_cli cli;
    struct drps_making making;
    struct drps_err err = DRPS_ERR_INIT;

    drps_index_settings_init(&o.settings);
    drps_cli_start(&cli, &index_tool, &o, argc, argv);
    drps_making_begin(&making, &cli, &o.settings.index, index_together(&o));
    if (cli.json) o.settings.index.forecast_later = 0; /* it is printed */
    int rc = run(&cli, &o, &making.progress.io, &result, &err);
    drps_making_stop(&making);
    if (rc == 0 && !index_only_counts(&o)) rc = report(&cli, &o, &making, &result, &err);
    drps_making_end(&making);
    drps_index_settings_free(&o.settings);
    return drps_cli_finish(&cli, rc, &err);
}
