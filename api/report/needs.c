/* What training a plan takes, of memory and of the network: the most that any of its ranks needs.
 */
#include "api/report/drps_index_report.h"

static void raise_to(uint64_t *most, uint64_t value)
{
    if (value > *most) *most = value;
}

static int add_needs(struct drps_index_report *report, const struct drps_plan *plan,
                     const struct drps_train_options *options, int first, struct drps_err *err)
{
    struct drps_train_needs one, *sum = &report->needs;
    int rc = drps_train_needs(plan, options, &one, err);
    if (rc < 0) return rc;
    raise_to(&sum->least_bytes, one.least_bytes);
    raise_to(&sum->all_rows_bytes, one.all_rows_bytes);
    sum->fits = one.fits && (first || sum->fits);
    sum->keeps_all_rows = one.keeps_all_rows && (first || sum->keeps_all_rows);
    sum->held_rows_bytes += one.held_rows_bytes;
    if (!plan->info.rows) raise_to(&report->no_rows_bytes, one.least_bytes);
    return 0;
}

static void add_to_network(struct drps_index_network *network, const struct drps_plan_info *part)
{
    const struct drps_link_load load = drps_link_of_part(part);
    drps_link_raise(&network->busiest, &load);
    network->row_uses += part->row_uses;
    if (!drps_plan_circulates(network->info) && drps_rank_trains(&part->ranks, part->ranks.rank))
        network->rounds = part->batches + part->eval_batches;
}

/* A plan that several machines made together may have the folders of other ranks on their disks. */
static int is_elsewhere(const struct drps_index_result *r, uint32_t rank, int rc,
                        struct drps_err *err)
{
    if (rc != DRPS_E_NOT_FOUND || !r->ranks[rank].sent_bytes) return 0;
    drps_err_clear(err);
    return 1;
}

int drps_index_report_needs(struct drps_index_report *report, struct drps_err *err)
{
    const struct drps_plan_info *info = &report->result->info;
    const struct drps_train_options options = {.memory_bytes = info->memory_bytes,
                                               .log = report->options->log};
    const char *dir = report->options->out;
    int rc = 0;
    report->needs = (struct drps_train_needs){0};
    report->network =
        (struct drps_index_network){.info = info, .link_bits = report->network.link_bits};
    for (uint32_t r = 0; r < info->ranks.count && rc == 0; r++) {
        struct drps_plan *plan;
        rc = info->ranks.count > 1 ? drps_plan_open_rank(drps_io_os(), dir, r, &plan, err)
                                   : drps_plan_open(drps_io_os(), dir, &plan, err);
        if (is_elsewhere(report->result, r, rc, err)) {
            report->network.row_uses += report->result->ranks[r].row_uses;
            rc = 0;
            continue;
        }
        if (rc < 0) break;
        rc = add_needs(report, plan, &options, !report->needs.least_bytes, err);
        if (rc == 0) add_to_network(&report->network, &plan->info);
        drps_plan_close(plan);
    }
    return rc;
}
