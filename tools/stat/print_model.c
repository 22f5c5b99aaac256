/* What drps-stat prints of a model: how it was trained, and where the time went. */
#include <stdio.h>

#include "base/drps_size.h"
#include "tools/stat/print.h"
#include "tools/drps_cli.h"
#include "tools/drps_json_text.h"
#include "tools/drps_training_text.h"

/* Prints the epochs. `places` is 1 for implicit feedback, whose items are placed among drawn
 * ones. */
static void print_epochs(const json_t *training, uint64_t only, int places)
{
    size_t i;
    json_t *e;
    printf("\n  %5s %9s %12s %10s %10s %9s %9s %9s %10s %10s %7s\n", "epoch", "seconds",
           "samples/s", "train loss", "test loss", "AUC", places ? "recall@10" : "accuracy",
           places ? "ndcg@10" : "RMSE", "rows read", "written", "waited");
    if (json_is_number(json_object_get(training, "constant_loss")))
        printf("  %5s %9s %12s %10s %10s\n", "const", "", "",
               number_of(training, "constant_loss", "%.5f"),
               number_of(training, "test_constant_loss", "%.5f"));
    json_array_foreach(json_object_get(training, "epochs"), i, e)
    {
        if (only && (uint64_t)json_integer_value(json_object_get(e, "epoch")) != only) continue;
        printf("  %5s %9s %12s %10s %10s %9s %9s %9s %10s %10s %7s\n", count_of(e, "epoch"),
               number_of(e, "seconds", "%.2f"), number_of(e, "samples_per_s", "%.0f"),
               number_of(e, "train_loss", "%.5f"), number_of(e, "test_loss", "%.5f"),
               number_of(e, "test_auc", "%.4f"),
               number_of(e, places ? "test_recall_at_10" : "test_accuracy", "%.4f"),
               number_of(e, places ? "test_ndcg_at_10" : "test_rmse", "%.4f"),
               size_of(e, "read_bytes"), size_of(e, "written_bytes"), percent_of(e, "stall_share"));
    }
}

/* What was said of the run when it ended. */
static void print_warnings(const json_t *training)
{
    size_t i;
    json_t *text;
    json_array_foreach(json_object_get(training, "warnings"), i, text)
        printf("%swarning: %s\n", i ? "" : "\n", json_string_value(text));
}

static void print_phases(const json_t *training)
{
    const json_t *phases = json_object_get(training, "phase_seconds");
    const double all = json_number_value(json_object_get(training, "seconds"));
    printf("\ntime by phase, of %.2f s\n", all);
    for (const struct training_text *t = training_phases(); t->key; t++) {
        const json_t *v = json_object_get(phases, t->key);
        if (!v) continue;
        printf("  %-11s %9.2f s %6.1f %%  %s\n", t->key, json_number_value(v),
               all > 0 ? 100 * json_number_value(v) / all : 0.0, t->meaning);
    }
}

/* Prints the time of the last epoch beside its forecast, where the plan has speeds of a machine. */
static void print_forecast_time(const json_t *training)
{
    const json_t *f = json_object_get(training, "forecast_seconds");
    if (!json_is_object(f)) return;
    const int alone = json_array_size(json_object_get(training, "ranks")) < 2;
    printf(
        "  forecast    %s s an epoch (arithmetic %s, the disk %s beside it%s); the last took %s s, "
        "%s of that\n",
        number_of(f, "epoch", "%.3g"), number_of(f, "compute", "%.3g"),
        number_of(f, "disk", "%.3g"), alone ? "" : ", without messages",
        number_of(f, "measured", "%.3g"), percent_of(f, "of_forecast"));
}

/* Prints how near an epoch came to the least time that its disk and arithmetic allow. */
static void print_limit(const json_t *training)
{
    const json_t *l = json_object_get(training, "limit_seconds");
    if (!json_is_object(l)) return;
    printf(
        "  limit       an epoch takes %s s at least (arithmetic %s, the disk %s beside it%s); %s "
        "took %s s: %s of the possible speed%s\n",
        number_of(l, "epoch", "%.3g"), number_of(l, "compute", "%.3g"),
        number_of(l, "disk", "%.3g"),
        json_is_true(json_object_get(l, "by_plan")) ? ", by the plan's speeds" : "",
        number_at(l, "epochs") > 1 ? "those after the first" : "the last",
        number_of(l, "measured", "%.3g"), percent_of(l, "reached"),
        number_at(l, "epoch") > number_at(l, "measured") ? "; the disk was faster than measured"
                                                         : "");
}

/* Says where the run went on from a checkpoint. A checkpoint of the last epoch's end leaves no step
 * to do. */
static void print_resumed(const json_t *training)
{
    if (!number_at(training, "resumed_epoch")) return;
    printf("\nresumed in epoch %s, after %s of it", count_of(training, "resumed_epoch"),
           counted_of(training, "resumed_step", "batch"));
    if (json_is_number(json_object_get(training, "first_step_seconds")))
        printf(", with the first step done after %s s",
               number_of(training, "first_step_seconds", "%.2f"));
    printf("\n");
    const char *changed = json_string_value(json_object_get(training, "changed"));
    if (changed) printf("other options than the run began with:\n%s\n", changed);
}

/* Says what checkpoints cost. */
static void print_checkpoints(const json_t *training)
{
    const json_t *c = json_object_get(training, "checkpoints");
    const double all = json_number_value(json_object_get(training, "seconds"));
    const double seconds = json_number_value(json_object_get(c, "seconds"));
    if (!number_at(c, "written") && !number_at(c, "failed")) return;
    printf("\ncheckpoints: %s written, %s, %.2f s (%.1f %% of the time)", count_of(c, "written"),
           size_of(c, "bytes"), seconds, all > 0 ? 100 * seconds / all : 0.0);
    if (number_at(c, "failed")) printf("; %s could not be written", count_of(c, "failed"));
    printf("\n");
}

static void print_memory(const json_t *training)
{
    const json_t *memory = json_object_get(training, "memory");
    size_t i;
    json_t *part;
    printf("\nmemory: %s allowed, %s at the peak\n", size_of(memory, "limit_bytes"),
           size_of(training, "peak_rss_bytes"));
    json_array_foreach(json_object_get(memory, "parts"), i, part)
        printf("  %-43s %10s\n", text_of(part, "what"), size_of(part, "bytes"));
}

static void print_calibration(const struct drps_calibration *c)
{
    if (!c->kind) return;
    printf("  calibrated %s, of %s\n", drps_calibration_names()[c->kind],
           drps_cli_counted((uint64_t)(c->samples + 0.5), "sample"));
}

static int is_imported(const json_t *training)
{
    return json_is_string(json_object_get(training, "imported"));
}

/* Prints how the model was trained, or where it was imported from. */
static void print_origin(const json_t *training)
{
    const json_t *optimizer = json_object_get(training, "optimizer");
    if (is_imported(training)) {
        printf("  imported from a model of %s\n", text_of(training, "imported"));
        return;
    }
    printf("  trained  %s, learning rate %s, l1 %s, l2 %s; store %s, threads: %s%s\n",
           text_of(optimizer, "name"), number_of(optimizer, "lr", "%g"),
           number_of(optimizer, "l1", "%g"), number_of(optimizer, "l2", "%g"),
           text_of(training, "store"), count_of(training, "threads"),
           json_is_true(json_object_get(training, "interrupted"))
               ? "; INTERRUPTED before the last epoch ended"
               : "");
}

void stat_print_model(const char *path, const struct drps_modeldir *md,
                      const struct stat_shown *shown)
{
    const json_t *j = drps_modeldir_json(md);
    const json_t *training = json_object_get(j, "training");
    const struct drps_modeldir_info *info = drps_modeldir_info(md);
    printf("model %s: %s, %s loss, %llu row%s of %u %s\n", path, drps_algo_name(info->model.algo),
           drps_loss_name(info->model.loss), (unsigned long long)info->rows,
           info->rows == 1 ? "" : "s", info->model.dim, info->model.dim == 1 ? "float" : "floats");
    stat_print_expression(info->model.expr.text, info->classes ? 0 : info->model.outputs);
    stat_print_net(info->model.layers.text);
    stat_print_classes(info->classes);
    printf("  content  %016llx, ", (unsigned long long)info->content);
    if (!is_imported(training)) printf("from plan %s, ", info->plan_id);
    printf("kept in %s\n", info->store);
    print_origin(training);
    print_calibration(&info->calibration);
    stat_print_hashing(&info->hashing);
    stat_print_sequences(&info->sequences);
    stat_print_tables(json_object_get(j, "tables"));
    if (is_imported(training)) return;
    print_epochs(training, shown->epoch, drps_algorithm_draws(drps_algorithm(info->model.algo)));
    print_warnings(training);
    stat_print_loads(json_object_get(training, "ranks"));
    stat_print_traffic(training, shown->link_bits);
    print_phases(training);
    print_forecast_time(training);
    print_limit(training);
    print_resumed(training);
    print_checkpoints(training);
    stat_print_tiers(training);
    stat_print_disk(training, shown->details || shown->windows);
    stat_print_workers(training);
    print_memory(training);
    if (shown->windows) stat_print_each_window(training);
}
