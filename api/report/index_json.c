/* The summary of drps-index as JSON: the plan's own manifest, and what the run came to. */
#include "api/report/drps_index_report.h"

#include <errno.h>

#include "api/report/drps_json.h"
#include "base/drps_size.h"
#include "base/folder/drps_manifest.h"
#include "index/forecast/drps_plan_forecast.h"

const char *drps_column_kind_name(enum drps_column_kind kind)
{
    static const char *const names[] = {
        [DRPS_COLUMN_IGNORE] = "ignore", [DRPS_COLUMN_LABEL] = "label",
        [DRPS_COLUMN_NUMBER] = "number", [DRPS_COLUMN_CATEGORY] = "category",
        [DRPS_COLUMN_BINS] = "bins",     [DRPS_COLUMN_DATE] = "date",
        [DRPS_COLUMN_CROSS] = "cross",   [DRPS_COLUMN_WEIGHT] = "weight",
        [DRPS_COLUMN_CLICKS] = "clicks", [DRPS_COLUMN_IMPRESSIONS] = "impressions",
    };
    return names[kind];
}

json_t *drps_columns_json(const struct drps_reader_column *columns, size_t n)
{
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++)
        drps_manifest_append(&list, json_pack("{s:s, s:s, s:s}", "name", columns[i].name, "kind",
                                              drps_column_kind_name(columns[i].kind), "why",
                                              columns[i].why));
    return list;
}

uint64_t drps_index_report_link_bytes(const struct drps_plan_info *i)
{
    return drps_plan_circulates(i) ? i->row_bytes : i->dim * sizeof(float);
}

uint64_t drps_index_report_handed_rows(const struct drps_plan_info *i)
{
    return drps_plan_circulates(i) ? i->ranks.served_rows + i->ranks.eval_served_rows : 0;
}

static json_t *rank_json(const struct drps_index_result *r, uint32_t k)
{
    const struct drps_index_rank *rank = &r->ranks[k];
    const struct {
        const char *key;
        uint64_t value;
    } counts[] = {
        {"rank", k},
        {"rows", rank->rows},
        {"row_uses", rank->row_uses},
        {"blocks", rank->blocks},
        {"windows", rank->windows},
        {"working_set_bytes", rank->working_set_rows * r->info.row_bytes},
        {"pulled_bytes", rank->pulled_rows * drps_index_report_link_bytes(&r->info)},
        {"served_bytes", rank->served_rows * drps_index_report_link_bytes(&r->info)},
        {"plan_bytes", rank->plan_bytes},
        {"sent_bytes", rank->sent_bytes},
        {"sent_forecast_bytes", rank->sent_forecast},
    };
    json_t *j = json_object();
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
        drps_manifest_put(&j, counts[i].key, drps_json_count(counts[i].value));
    return j;
}

double drps_index_report_moved(const struct drps_index_result *r)
{
    return (double)r->links.moved_rows / (double)r->links.hashed_rows;
}

/* Each row is pulled by one rank and served by another. */
double drps_index_report_busiest(const struct drps_index_result *r)
{
    const double average = 2 * (double)r->links.moved_rows / r->info.ranks.count;
    return (double)r->links.busiest_rows / average;
}

double drps_index_report_fresh(const struct drps_index_result *r)
{
    return (double)r->links.fresh_rows / (double)r->links.moved_rows;
}

double drps_index_report_handed_on(const struct drps_plan_info *i)
{
    const double plain = (double)drps_plan_moved_values(i, 0, 0);
    return (double)drps_plan_moved_values(i, 1, i->ranks.handed.states) / plain;
}

/* The members of plan.json, under their names there, without what describes the file itself and
 * others. */
static json_t *plan_json(const char *dir, struct drps_err *err)
{
    static const char *const private_members[] = {"kind",  "version",  "made_by",
                                                  "files", "forecast", "checksum"};
    struct drps_plan *plan;
    if (drps_plan_open(drps_io_os(), dir, &plan, err) < 0) return NULL;
    json_t *j = json_deep_copy(plan->json);
    drps_plan_close(plan);
    if (!j) {
        (void)drps_err_set(err, -ENOMEM, "no memory for the JSON output"); /* NULL says that */
        return NULL;
    }
    for (size_t i = 0; i < sizeof(private_members) / sizeof(private_members[0]); i++)
        (void)json_object_del(j, private_members[i]); /* one may be missing */
    return j;
}

static json_t *phases_json(const struct drps_index_result *r)
{
    json_t *phases = json_object();
    for (unsigned k = 0; k < DRPS_INDEX_PHASES; k++)
        drps_manifest_put(&phases, drps_index_phase_name((enum drps_index_phase)k),
                          drps_json_real(r->phase_seconds[k]));
    return phases;
}

json_t *drps_index_report_json(const struct drps_index_report *report, struct drps_err *err)
{
    const struct drps_index_result *r = report->result;
    const struct drps_plan_info *i = &r->info;
    const struct {
        const char *key;
        uint64_t value;
    } counts[] = {
        {"workers", i->ranks.workers},
        {"servers", i->ranks.servers},
        {"working_set_bytes", i->working_set_rows * i->row_bytes},
        {"model_bytes", i->rows * i->dim * 4},
        {"train_least_bytes", report->needs.least_bytes},
        {"train_all_rows_bytes", report->needs.all_rows_bytes},
        {"train_no_rows_bytes", report->no_rows_bytes},
        {"input_bytes", r->input_bytes},
        {"skipped_lines", r->skipped_lines},
        {"weightless_samples", r->weightless},
        {"replayed_samples", r->replayed},
        {"plan_bytes", r->plan_bytes},
        {"handed_rows", drps_index_report_handed_rows(i)},
        {"plain_rows", r->plain_rows},
        {"peak_rss_bytes", drps_memory_peak()},
    };
    json_t *j = plan_json(report->options->out, err);
    if (!j) return NULL;
    for (size_t k = 0; k < sizeof(counts) / sizeof(counts[0]); k++)
        drps_manifest_put(&j, counts[k].key, drps_json_count(counts[k].value));
    if (report->has_columns) drps_manifest_put(&j, "columns", json_deep_copy(report->columns));
    drps_manifest_put(&j, "forecast", drps_forecast_to_json(r->forecast, r->forecasts));
    if (i->ranks.count > 1) {
        json_t *ranks = json_array();
        for (uint32_t k = 0; k < i->ranks.count; k++)
            drps_manifest_append(&ranks, rank_json(r, k));
        drps_manifest_put(&j, "ranks", ranks);
        drps_manifest_put(&j, "link_bits_per_s", drps_json_count(report->network.link_bits));
        drps_manifest_put(
            &j, "link_least_seconds",
            drps_json_real(drps_link_seconds(&report->network.busiest, report->network.link_bits)));
        drps_manifest_put(&j, "messages_seconds",
                          drps_json_real(drps_index_messages_seconds(&report->network)));
        drps_manifest_put(&j, "one_thread_seconds",
                          drps_json_real(drps_index_thread_seconds(&report->network)));
        if (r->links.hashed_rows)
            drps_manifest_put(&j, "moved_of_hashed", drps_json_real(drps_index_report_moved(r)));
        if (r->links.largest > 0) {
            drps_manifest_put(&j, "largest_of_round", drps_json_real(r->links.largest));
            drps_manifest_put(&j, "largest_before", drps_json_real(r->links.largest_before));
        }
        if (r->links.set_rows) {
            drps_manifest_put(&j, "set_rows", json_integer((json_int_t)r->links.set_rows));
            drps_manifest_put(&j, "busiest_set_rows",
                              json_integer((json_int_t)r->links.busiest_set_rows));
        }
        if (i->ranks.handed.used)
            drps_manifest_put(&j, "handed_on_of_plain",
                              drps_json_real(drps_index_report_handed_on(i)));
        if (r->links.moved_rows) {
            drps_manifest_put(&j, "busiest_of_average",
                              drps_json_real(drps_index_report_busiest(r)));
            drps_manifest_put(&j, "fresh_of_pulled", drps_json_real(drps_index_report_fresh(r)));
        }
    }
    drps_manifest_put(&j, "warnings", drps_manifest_remarks(&r->remarks));
    drps_manifest_put(&j, "phase_seconds", phases_json(r));
    drps_manifest_put(&j, "seconds", drps_json_real(r->seconds));
    if (!j) (void)drps_err_set(err, -ENOMEM, "no memory for the JSON output"); /* NULL says that */
    return j;
}
