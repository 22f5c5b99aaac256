/* drps-stat shows what a plan or a model is, how training went, and where the disk time went. It
 * only prints; what needs words of the stores' own is printed with --verbose. */
#include <dirent.h>
#include <inttypes.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/drps_size.h"
#include "base/folder/drps_manifest.h"
#include "engine/checkpoint/drps_checkpoint_files.h"
#include "engine/publish/drps_modeldir.h"
#include "index/plan/drps_plan.h"
#include "tools/drps_cli.h"
#include "tools/forecast_text.h"
#include "tools/stat_verify.h"

enum { KEY_VERIFY = DRPS_CLI_KEY, KEY_EPOCH, KEY_WINDOWS };
enum { MODEL_MEMORY_BYTES = 64 << 20 };

struct options {
    const char *path;
    int verify;
    uint64_t epoch; /* 0 for all */
    int windows;
};

static const struct argp_option option_table[] = {
    {"verify", KEY_VERIFY, NULL, 0,
     "Instead: read every file whole, and check every checksum and what files say of each other",
     1},
    {"epoch", KEY_EPOCH, "E", 0, "Only this epoch of a model's training", 1},
    {"windows", KEY_WINDOWS, NULL, 0,
     "Also every window (run of batches whose rows are in memory together) of a model's training "
     "with store relay",
     1},
    {0},
};

static int parse(struct drps_cli *cli, int key, char *arg)
{
    struct options *o = cli->input;
    switch (key) {
    case KEY_VERIFY:
        o->verify = 1;
        return 0;
    case KEY_EPOCH:
        o->epoch = drps_cli_count(cli, arg, 1, UINT32_MAX);
        return 0;
    case KEY_WINDOWS:
        o->windows = 1;
        return 0;
    case ARGP_KEY_ARG:
        if (o->path) drps_cli_usage(cli, "one plan or model at a time: '%s' is too much", arg);
        o->path = arg;
        return 0;
    case ARGP_KEY_END:
        if (!o->path) drps_cli_usage(cli, "name a plan or a model");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

/* ---- Values of a manifest, as text ---- */

enum { TEXTS = 24, TEXT_BYTES = 48 };

static char *text_room(void)
{
    static char texts[TEXTS][TEXT_BYTES];
    static unsigned at;
    at = (at + 1) % TEXTS;
    return texts[at];
}

static const char *text_of(const json_t *j, const char *key)
{
    const char *text = json_string_value(json_object_get(j, key));
    return text ? text : "-";
}

static const char *number_of(const json_t *j, const char *key, const char *format)
{
    const json_t *v = json_object_get(j, key);
    if (!json_is_number(v)) return "-";
    char *room = text_room();
    (void)snprintf(room, TEXT_BYTES, format, json_number_value(v));
    return room;
}

/* Numbers that are only shown are not checked before: one below 0 is shown as unknown. */
static const char *count_of(const json_t *j, const char *key)
{
    const json_t *v = json_object_get(j, key);
    if (!json_is_integer(v) || json_integer_value(v) < 0) return "-";
    char *room = text_room();
    (void)snprintf(room, TEXT_BYTES, "%lld", (long long)json_integer_value(v));
    return room;
}

static const char *size_of(const json_t *j, const char *key)
{
    const json_t *v = json_object_get(j, key);
    if (!json_is_integer(v) || json_integer_value(v) < 0) return "-";
    return drps_size_format((uint64_t)json_integer_value(v), text_room(), TEXT_BYTES);
}

/* The text of a size that was computed. */
static const char *size_text(double bytes)
{
    if (!(bytes >= 0 && bytes < 0x1p64)) return "-";
    return drps_size_format((uint64_t)bytes, text_room(), TEXT_BYTES);
}

/* The text of the bytes of n + m rows. */
static const char *rows_text(uint64_t n, uint64_t m, uint64_t row_bytes)
{
    return size_text((double)drps_sum(n, m) * (double)row_bytes);
}

static const char *share_of(const json_t *j, const char *part, const char *whole)
{
    double p = json_number_value(json_object_get(j, part));
    double w = json_number_value(json_object_get(j, whole));
    if (!(w > 0)) return "-";
    char *room = text_room();
    (void)snprintf(room, TEXT_BYTES, "%.1f %%", 100 * p / w);
    return room;
}

/* The text of a share (0 to 1) in per cent. */
static const char *percent_of(const json_t *j, const char *key)
{
    const json_t *v = json_object_get(j, key);
    if (!json_is_number(v)) return "-";
    char *room = text_room();
    (void)snprintf(room, TEXT_BYTES, "%.1f %%", 100 * json_number_value(v));
    return room;
}

/* The text of a latency in microseconds; in older models it has another name and this unit. */
static const char *micros_of(const json_t *j, const char *key, const char *older)
{
    const json_t *v = json_object_get(j, key);
    if (!v) return number_of(j, older, "%.0f");
    if (!json_is_number(v)) return "-";
    char *room = text_room();
    (void)snprintf(room, TEXT_BYTES, "%.0f", 1e6 * json_number_value(v));
    return room;
}

/* The text of bytes a second, in MB. */
static const char *rate_of(const json_t *j, const char *key)
{
    const json_t *v = json_object_get(j, key);
    if (!json_is_number(v)) return "-";
    char *room = text_room();
    (void)snprintf(room, TEXT_BYTES, "%.1f", json_number_value(v) / 1e6);
    return room;
}

/* ---- Plans ---- */

/* What a row of a table is learned for; tables of other names are not known. */
static const char *rows_are(const char *table)
{
    static const char *const known[][2] = {{"bias", "the intercept"},
                                           {"w", "a feature's weight each"},
                                           {"wv", "a feature's weight and factors each"},
                                           {"user", "a user's bias and factors each"},
                                           {"item", "an item's bias and factors each"},
                                           {"rows", "a user's or item's bias and factors each"}};
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if (strcmp(table, known[i][0]) == 0) return known[i][1];
    return "unknown";
}

static void print_tables(const json_t *tables)
{
    size_t i;
    json_t *t;
    json_array_foreach(tables, i, t)
        printf("  table    %-6s %s rows, from row %s on: %s\n", text_of(t, "name"),
               count_of(t, "rows"), count_of(t, "first"), rows_are(text_of(t, "name")));
}

static void print_files(const json_t *files)
{
    size_t i;
    json_t *f;
    json_array_foreach(files, i, f)
        printf("  file     %-12s %10s\n", text_of(f, "name"), size_of(f, "bytes"));
}

/* Some rows that a window uses are kept for the next window; the others leave it. Training holds as
 * many of those as it has memory for, and sends the rest to disk. */
static void print_plan_windows(const json_t *j)
{
    printf("  windows  %s runs of batches whose rows are in memory together, cut for %s\n          "
           " two of them have at most %s rows",
           count_of(j, "windows"), size_of(j, "window_budget_bytes"),
           count_of(j, "working_set_rows"));
    if (!json_object_get(j, "window_rows")) { /* made by an older drps-index */
        printf("\n");
        return;
    }
    printf(
        ", one %s\n           an epoch: %s rows kept from window to window (%s), %s leave (%s)\n",
        count_of(j, "max_window_rows"), count_of(j, "window_rows_kept"),
        share_of(j, "window_rows_kept", "window_rows"), count_of(j, "window_rows_moved"),
        share_of(j, "window_rows_moved", "window_rows"));
}

/* The text of the samples' order: "shuffled", "grid (16 x 16, 4 lanes)". */
static const char *order_of(const struct drps_plan_info *info)
{
    char *room = text_room();
    char lanes[32] = "";
    if (!info->grid_users) return info->order;
    if (info->lanes) (void)snprintf(lanes, sizeof(lanes), ", %" PRIu64 " lanes", info->lanes);
    (void)snprintf(room, TEXT_BYTES, "grid (%" PRIu64 " x %" PRIu64 "%s)", info->grid_users,
                   info->grid_items, lanes);
    return room;
}

/* Prints what reading every batch's rows would cost in an epoch (Eq. 1 of the paper). */
static void print_block_cost(const char *how, double requests, double rows, double alone,
                             const struct drps_plan_info *i)
{
    const double bytes = rows * (double)i->row_bytes;
    const double seconds = requests * (double)i->seek_ns / 1e9 + bytes / (double)i->transfer_bps;
    printf("    %-24s %13.0f %11s %10.2f s", how, requests, size_text(bytes), seconds);
    if (alone > 0) printf(" %6.1f %%", 100 * seconds / alone);
    printf("\n");
}

static void print_block_costs(const struct drps_plan_info *i)
{
    if (!i->block_uses || !i->transfer_bps) return; /* an older plan does not have them */
    const double uses = (double)i->row_uses;
    const double alone =
        uses * (double)i->seek_ns / 1e9 + uses * (double)i->row_bytes / (double)i->transfer_bps;
    const double steps = (double)(i->batches + i->eval_batches);
    printf("  reading all rows of every batch, nothing in memory (a request %.1f us, %.0f MB/s)\n",
           (double)i->seek_ns / 1e3, (double)i->transfer_bps / 1e6);
    printf("    %-24s %13s %11s %12s\n", "", "requests", "bytes", "time");
    print_block_cost("one row a block", uses, uses, 0, i);
    print_block_cost("these blocks", (double)i->block_uses, (double)i->block_use_rows, alone, i);
    print_block_cost("these blocks, in runs", (double)i->runs, (double)i->run_rows, alone, i);
    print_block_cost("scans of all rows", steps, steps * (double)i->rows, alone, i);
}

/* What an epoch moves between ranks: parameters, or in training whole rows where they circulate. */
static const char *link_text(const struct drps_plan_info *i, uint64_t rows, uint64_t eval_rows)
{
    const double row = (double)i->dim * sizeof(float);
    const double full = drps_plan_circulates(i) ? (double)i->row_bytes : row;
    return size_text((double)rows * full + (double)eval_rows * row);
}

static void print_ranks(const struct drps_plan *plan)
{
    const struct drps_plan_ranks *k = &plan->info.ranks;
    const int circulates = drps_plan_circulates(&plan->info);
    if (k->workers < 2) return;
    printf("  workers  %u, %s", k->workers,
           circulates ? "between which ranges of rows circulate"
                      : "each with a batch a round and a server");
    if (k->rank != DRPS_PLAN_WHOLE)
        printf("; this is the part of rank %u, with the rows from %llu on", k->rank,
               (unsigned long long)k->first_row);
    if (circulates)
        printf("\n           an epoch hands %s on with adagrad's state, and %s without for test "
               "samples\n",
               link_text(&plan->info, k->served_rows, 0),
               link_text(&plan->info, 0, k->eval_served_rows));
    else
        printf(
            "\n           an epoch's parameters between ranks: %s pulled, %s served; gradients of "
            "training go back\n",
            link_text(&plan->info, k->pulled_rows, k->eval_pulled_rows),
            link_text(&plan->info, k->served_rows, k->eval_served_rows));
}

/* Prints what an epoch asks of each machine whose part is here, without the gradients, which go
 * back. */
static void print_machines(const struct drps_plan *plan)
{
    if (plan->info.ranks.rank != DRPS_PLAN_WHOLE || plan->info.ranks.workers < 2) return;
    printf("\n  %4s %10s %11s %11s %11s %15s %9s\n", "rank", "rows", "row uses", "pulled", "served",
           "relay, most", "windows");
    for (uint32_t r = 0; r < plan->info.ranks.workers; r++) {
        struct drps_plan *part;
        struct drps_err err = DRPS_ERR_INIT;
        if (drps_plan_open_rank(drps_io_os(), plan->dir, r, &part, &err) < 0) {
            printf("  %4u %s\n", r, err.text);
            continue;
        }
        const struct drps_plan_info *i = &part->info;
        printf("  %4u %10llu %11llu %11s %11s %15s %9llu\n", r, (unsigned long long)i->rows,
               (unsigned long long)i->row_uses,
               link_text(i, i->ranks.pulled_rows, i->ranks.eval_pulled_rows),
               link_text(i, i->ranks.served_rows, i->ranks.eval_served_rows),
               rows_text(i->window_rows_moved, i->window_rows_moved, i->row_bytes),
               (unsigned long long)i->windows);
        drps_plan_close(part);
    }
}

static void print_plan(const struct drps_plan *plan, int details)
{
    const json_t *j = plan->json;
    printf("plan %s: %s, %s loss, %s input, %s order\n", plan->dir, text_of(j, "algo"),
           text_of(j, "loss"), text_of(j, "format"), order_of(&plan->info));
    printf("  id       %s, made by %s\n", text_of(j, "id"), text_of(j, "made_by"));
    printf("  samples  %s training, %s test\n", count_of(j, "samples"),
           count_of(j, "test_samples"));
    printf("  entries  %s training, %s test (features of samples that are not 0); %s more are left "
           "out, as training never saw these features\n",
           count_of(j, "nnz"), count_of(j, "test_nnz"), count_of(j, "test_unseen"));
    printf("  rows     %s of %s floats, one for each feature, user or item\n", count_of(j, "rows"),
           count_of(j, "dim"));
    print_tables(json_object_get(j, "tables"));
    printf("  batches  %s training, %s test, of %s samples; the largest uses %s rows\n",
           count_of(j, "batches"), count_of(j, "test_batches"), count_of(j, "batch_size"),
           count_of(j, "max_batch_rows"));
    print_ranks(plan);
    print_machines(plan);
    if (details) {
        printf("  blocks   %s of rows that are read and written together (%s), of at most %s rows; "
               "at most %s a batch\n",
               count_of(j, "blocks"), text_of(j, "blocks_by"), count_of(j, "max_block_rows"),
               count_of(j, "max_step_blocks"));
        print_block_costs(&plan->info);
        print_plan_windows(j);
        print_files(json_object_get(j, "files"));
    }
    forecast_print(stdout, json_object_get(j, "forecast"));
}

static int stat_plan(struct drps_cli *cli, const struct drps_io *io, const struct options *o,
                     struct drps_err *err)
{
    struct drps_plan *plan;
    int rc = drps_plan_open(io, o->path, &plan, err);
    if (rc == 0 && (o->epoch || o->windows))
        rc = drps_err_set(err, DRPS_E_CONFIG,
                          "--epoch and --windows are for models, and %s is a plan", o->path);
    if (rc == 0) {
        if (o->verify)
            rc = stat_verify_plan(cli, plan, err);
        else if (cli->json)
            rc = drps_cli_json_print(json_incref(plan->json), err);
        else
            print_plan(plan, cli->log.level >= DRPS_LOG_DEBUG);
    }
    drps_plan_close(plan);
    return rc;
}

/* ---- Models ---- */

static void print_epochs(const json_t *training, uint64_t only)
{
    size_t i;
    json_t *e;
    printf("\n  %5s %9s %12s %10s %10s %9s %9s %9s %10s %10s %7s\n", "epoch", "seconds",
           "samples/s", "train loss", "test loss", "AUC", "accuracy", "RMSE", "rows read",
           "written", "waited");
    json_array_foreach(json_object_get(training, "epochs"), i, e)
    {
        if (only && (uint64_t)json_integer_value(json_object_get(e, "epoch")) != only) continue;
        printf("  %5s %9s %12s %10s %10s %9s %9s %9s %10s %10s %7s\n", count_of(e, "epoch"),
               number_of(e, "seconds", "%.2f"), number_of(e, "samples_per_s", "%.0f"),
               number_of(e, "train_loss", "%.5f"), number_of(e, "test_loss", "%.5f"),
               number_of(e, "test_auc", "%.4f"), number_of(e, "test_accuracy", "%.4f"),
               number_of(e, "test_rmse", "%.4f"), size_of(e, "read_bytes"),
               size_of(e, "written_bytes"), percent_of(e, "stall_share"));
    }
}

static void print_phases(const json_t *training)
{
    static const char *const meanings[][2] = {
        {"plan", "waiting for the plan's files, and decoding them"},
        {"wait_store", "waiting for rows"},
        {"gather", "collecting a batch's rows"},
        {"compute", "scores, losses and gradients"},
        {"step", "the optimizer"},
        {"evaluate", "scores of test samples"},
        {"hand_over", "handing rows over to other ranks, and waiting for theirs"},
        {"export", "writing the model"},
    };
    const json_t *phases = json_object_get(training, "phase_seconds");
    const double all = json_number_value(json_object_get(training, "seconds"));
    printf("\ntime by phase, of %.2f s\n", all);
    for (size_t i = 0; i < sizeof(meanings) / sizeof(meanings[0]); i++) {
        const json_t *v = json_object_get(phases, meanings[i][0]);
        if (!v) continue;
        printf("  %-11s %9.2f s %6.1f %%  %s\n", meanings[i][0], json_number_value(v),
               all > 0 ? 100 * json_number_value(v) / all : 0.0, meanings[i][1]);
    }
}

static uint64_t number_at(const json_t *j, const char *key)
{
    const json_int_t v = json_integer_value(json_object_get(j, key));
    return v > 0 ? (uint64_t)v : 0;
}

/* What checkpoints cost, and where the run went on from one. */
static void print_checkpoints(const json_t *training)
{
    const json_t *c = json_object_get(training, "checkpoints");
    const double all = json_number_value(json_object_get(training, "seconds"));
    const double seconds = json_number_value(json_object_get(c, "seconds"));
    if (number_at(training, "resumed_epoch"))
        printf(
            "\nresumed in epoch %s, after %s batches of it, with the first step done after %s s\n",
            count_of(training, "resumed_epoch"), count_of(training, "resumed_step"),
            number_of(training, "first_step_seconds", "%.2f"));
    if (!number_at(c, "written") && !number_at(c, "failed")) return;
    printf("\ncheckpoints: %s written, %s, %.2f s (%.1f %% of the time)", count_of(c, "written"),
           size_of(c, "bytes"), seconds, all > 0 ? 100 * seconds / all : 0.0);
    if (number_at(c, "failed")) printf("; %s could not be written", count_of(c, "failed"));
    printf("\n");
}

static void print_io(const json_t *training)
{
    const json_t *io = json_object_get(training, "io");
    printf("  %-8s %12s %12s %10s %12s %10s %10s\n", "", "operations", "bytes", "MB/s", "calls",
           "50 %, us", "99 %, us");
    printf("  %-8s %12s %12s %10s %12s %10s %10s\n", "reads", count_of(io, "reads"),
           size_of(io, "read_bytes"), rate_of(io, "read_bytes_per_s"), count_of(io, "read_calls"),
           micros_of(io, "read_p50_seconds", "read_p50_us"),
           micros_of(io, "read_p99_seconds", "read_p99_us"));
    printf("  %-8s %12s %12s %10s %12s %10s %10s\n", "writes", count_of(io, "writes"),
           size_of(io, "written_bytes"), rate_of(io, "written_bytes_per_s"),
           count_of(io, "write_calls"), micros_of(io, "write_p50_seconds", "write_p50_us"),
           micros_of(io, "write_p99_seconds", "write_p99_us"));
    printf("  seeks %s, %s reads at a time; the process moved %s from disk and %s to it\n",
           count_of(io, "seeks"), number_of(io, "queue_depth", "%.1f"),
           size_of(training, "process_read_bytes"), size_of(training, "process_written_bytes"));
    printf("  plan files: %s read, waited %s s\n", size_of(training, "plan_read_bytes"),
           number_of(training, "plan_wait_seconds", "%.2f"));
}

static void print_device(const json_t *d)
{
    if (!json_is_object(d)) return; /* a store that does not say */
    const char *remark = text_of(d, "remark");
    printf("  device: %s requests to read (%s, p50 %s us), %s to write (%s, p50 %s us), depth %s\n",
           count_of(d, "reads"), size_of(d, "read_bytes"),
           micros_of(d, "read_p50_seconds", "read_p50_us"), count_of(d, "writes"),
           size_of(d, "written_bytes"), micros_of(d, "write_p50_seconds", "write_p50_us"),
           number_of(d, "queue_depth", "%.1f"));
    printf("  through gaps of %s, in sectors of %s, by %s%s%s%s\n", size_of(d, "gap_bytes"),
           size_of(d, json_object_get(d, "sector_bytes") ? "sector_bytes" : "sector"),
           text_of(d, "io_engine"),
           json_is_true(json_object_get(d, "direct")) ? ", direct" : ", through the page cache",
           *remark ? "; " : "", remark);
}

static void print_blocks(const json_t *blocks)
{
    if (!json_is_object(blocks)) return; /* a store without a pool */
    printf("  blocks: %s needed, %s in memory, %s created, %s evicted (%s); pool of %s rows, %s\n",
           count_of(blocks, "needed"), share_of(blocks, "hit", "needed"),
           count_of(blocks, "created"), count_of(blocks, "evicted"), text_of(blocks, "evict"),
           count_of(blocks, "pool_rows"), size_of(blocks, "pool_bytes"));
}

static void print_windows(const json_t *windows)
{
    if (!json_is_object(windows)) return; /* a store without windows */
    const char *remark = text_of(windows, "remark");
    printf("  windows: %s an epoch (runs of batches whose rows are in memory together), %s groups; "
           "%s rows (%s) in memory\n",
           count_of(windows, "windows"), count_of(windows, "groups"),
           count_of(windows, "pool_rows"), size_of(windows, "pool_bytes"));
    printf("  rows of windows: %s kept (%s), %s arrived (%s), %s created (%s)\n",
           count_of(windows, "rows_kept"), percent_of(windows, "kept_share"),
           count_of(windows, "rows_arrived"), percent_of(windows, "arrived_share"),
           count_of(windows, "rows_created"), percent_of(windows, "created_share"));
    printf("  chunks of %s, moved by %s%s%s%s\n", size_of(windows, "chunk_bytes"),
           text_of(windows, "io_engine"),
           json_is_true(json_object_get(windows, "direct")) ? ", direct"
                                                            : ", through the page cache",
           *remark ? "; " : "", remark);
}

static void print_window(size_t number, const json_t *w, double epochs)
{
    static const char *const counts[] = {"rows", "rows_kept", "rows_arrived", "rows_created"};
    static const char *const older[] = {"rows", "kept", "arrived", "created"};
    static const char *const sizes[] = {"read_bytes", "written_bytes"};
    static const char *const times[] = {"open_seconds", "close_seconds", "stall_seconds"};
    printf("  %6zu", number);
    for (size_t i = 0; i < 4; i++) {
        const json_t *v = json_object_get(w, counts[i]);
        if (!v) v = json_object_get(w, older[i]);
        printf(" %10.0f", json_number_value(v) / epochs);
    }
    for (size_t i = 0; i < 2; i++) {
        const double bytes = json_number_value(json_object_get(w, sizes[i])) / epochs;
        printf(" %10s", size_text(bytes));
    }
    for (size_t i = 0; i < 3; i++)
        printf(" %9.2f", 1e3 * json_number_value(json_object_get(w, times[i])) / epochs);
    printf("\n");
}

static void print_each_window(const json_t *training)
{
    const size_t n = json_array_size(json_object_get(training, "epochs"));
    size_t i;
    json_t *w;
    printf("\n  %6s %10s %10s %10s %10s %10s %10s %9s %9s %9s\n", "window", "rows", "kept",
           "arrived", "created", "read", "written", "open ms", "close ms", "stall ms");
    json_array_foreach(json_object_get(json_object_get(training, "windows"), "list"), i, w)
        print_window(i, w, n ? (double)n : 1);
    printf("  (means of an epoch, over %zu)\n", n);
}

static void print_forecast(const json_t *training)
{
    const json_t *f = json_object_get(training, "forecast");
    const json_t *windows = json_object_get(training, "windows");
    const json_t *epochs = json_object_get(training, "epochs");
    const size_t n = json_array_size(epochs);
    if (!n || !json_is_true(json_object_get(f, "feasible"))) return;
    const json_t *last = json_array_get(epochs, n - 1);
    const int device = json_is_object(json_object_get(training, "device"));
    const struct forecast_relay relay = {.windows = number_at(windows, "windows"),
                                         .groups = number_at(windows, "groups"),
                                         .tails = number_at(windows, "tails")};
    char why[FORECAST_REASON];
    printf("  one epoch   %12s %12s %12s %12s %12s %9s\n", "read", "written", "I/Os", "requests",
           "moved", "seconds");
    printf("    forecast  %12s %12s %12s %12s %12s %9s\n", size_of(f, "read_bytes"),
           size_of(f, "written_bytes"), count_of(f, "ios"), device ? count_of(f, "requests") : "-",
           device ? size_of(f, "moved_bytes") : "-",
           device ? number_of(f, "disk_seconds", "%.2f") : "-");
    printf("    epoch %-3zu %12s %12s %12.0f %12s %12s %9s%s\n", n, size_of(last, "read_bytes"),
           size_of(last, "written_bytes"),
           json_number_value(json_object_get(last, "reads")) +
               json_number_value(json_object_get(last, "writes")),
           device ? count_of(last, "requests") : "-", device ? size_of(last, "moved_bytes") : "-",
           number_of(last, "seconds", "%.2f"),
           forecast_reason(&relay, number_at(f, "written_bytes"), number_at(last, "written_bytes"),
                           why));
}

/* Prints what went between memory and disk, if anything did. */
static void print_disk(const json_t *training, int details)
{
    const json_t *io = json_object_get(training, "io");
    const json_t *stalls = json_object_get(training, "stalls");
    const int moved = number_at(io, "reads") || number_at(io, "writes");
    if (!moved && !details) return;
    printf("\ndisk: rows in all epochs, store %s\n", text_of(training, "store"));
    printf("  %s read, %s written; training waited for rows %s s (%s), in %s of %s steps\n",
           size_of(io, "read_bytes"), size_of(io, "written_bytes"),
           number_of(stalls, "seconds", "%.2f"), percent_of(stalls, "share"),
           count_of(stalls, "stalled_steps"), count_of(stalls, "steps"));
    print_forecast(training);
    if (!details) return;
    print_io(training);
    print_blocks(json_object_get(training, "blocks"));
    print_device(json_object_get(training, "device"));
    print_windows(json_object_get(training, "windows"));
}

/* Prints how stale the gradients of asynchronous rounds were, of all ranks together. Bin 0 counts
 * those of staleness 0, bin b those from 2^(b - 1) on. */
static void print_staleness(const json_t *ranks)
{
    double bins[65] = {0}, all = 0;
    size_t used = 0, i, b;
    json_t *r, *n;
    json_array_foreach(ranks, i, r)
    {
        json_array_foreach(json_object_get(r, "stale"), b, n)
        {
            if (b >= sizeof(bins) / sizeof(bins[0])) break;
            bins[b] += json_number_value(n);
            all += json_number_value(n);
            if (b >= used) used = b + 1;
        }
    }
    if (!(all > 0)) return;
    printf("\nbatches, by how many of other ranks were done meanwhile\n");
    for (b = 0; b < used; b++)
        printf("  %s%-6" PRIu64 " %7.1f %%\n", b > 1 ? "from " : "     ",
               b ? UINT64_C(1) << (b - 1) : 0, 100 * bins[b] / all);
}

/* Prints how each rank of several fared. */
static void print_workers(const json_t *training)
{
    const json_t *ranks = json_object_get(training, "ranks");
    const int claims = json_integer_value(json_object_get(training, "claim_window_steps")) > 0;
    size_t i;
    json_t *r;
    if (!json_array_size(ranks)) return;
    printf("\nranks, --sync %s", text_of(training, "sync"));
    if (claims)
        printf(", batches of %s steps at a time may be taken over",
               count_of(training, "claim_window_steps"));
    printf("\n  %4s %10s %10s %9s", "rank", "sent", "received", "waited");
    if (claims)
        printf(" %10s %9s %9s %10s %9s %10s %9s", "batches", "taken", "held s", "mean ahead",
               "at most", "mean stale", "at most");
    printf("\n");
    json_array_foreach(ranks, i, r)
    {
        printf("  %4zu %10s %10s %9s", i, size_of(r, "sent_bytes"), size_of(r, "received_bytes"),
               percent_of(r, "waiting_share"));
        if (claims)
            printf(" %10s %9s %9s %10s %9s %10s %9s", count_of(r, "iterations"),
                   count_of(r, "claimed"), number_of(r, "held_seconds", "%.2f"),
                   number_of(r, "lag_mean", "%.2f"), count_of(r, "lag_max"),
                   number_of(r, "stale_mean", "%.2f"), count_of(r, "stale_max"));
        printf("\n");
    }
    if (claims) print_staleness(ranks);
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

/* Prints the forecast and the measured load of each machine. */
static void print_loads(const json_t *ranks)
{
    size_t i;
    json_t *r;
    if (!json_array_size(ranks)) return;
    printf("\n  %4s %10s %10s %10s %10s %10s %10s %10s %8s %10s\n", "rank", "sent", "forecast",
           "received", "forecast", "disk read", "written", "waited, s", "share", "memory");
    json_array_foreach(ranks, i, r)
    {
        printf("  %4s %10s %10s %10s %10s %10s %10s %10s %8s %10s\n", count_of(r, "rank"),
               size_of(r, "sent_bytes"), size_of(r, "forecast_sent_bytes"),
               size_of(r, "received_bytes"), size_of(r, "forecast_received_bytes"),
               size_of(r, "read_bytes"), size_of(r, "written_bytes"),
               number_of(r, "waiting_seconds", "%.2f"), percent_of(r, "waiting_share"),
               size_of(r, "peak_rss_bytes"));
    }
}

static void print_model(const struct options *o, const struct drps_modeldir *md, int details)
{
    const json_t *j = drps_modeldir_json(md);
    const json_t *training = json_object_get(j, "training");
    const struct drps_modeldir_info *info = drps_modeldir_info(md);
    const json_t *optimizer = json_object_get(training, "optimizer");
    printf("model %s: %s, %s loss, %llu rows of %u floats\n", o->path,
           drps_algo_name(info->model.algo), drps_loss_name(info->model.loss),
           (unsigned long long)info->rows, info->model.dim);
    printf("  content  %016llx, from plan %s, kept in %s\n", (unsigned long long)info->content,
           info->plan_id, info->store);
    printf("  trained  %s, learning rate %s, l1 %s, l2 %s; store %s, threads: %s%s\n",
           text_of(optimizer, "name"), number_of(optimizer, "lr", "%g"),
           number_of(optimizer, "l1", "%g"), number_of(optimizer, "l2", "%g"),
           text_of(training, "store"), count_of(training, "threads"),
           json_is_true(json_object_get(training, "interrupted"))
               ? "; INTERRUPTED before the last epoch ended"
               : "");
    print_tables(json_object_get(j, "tables"));
    print_epochs(training, o->epoch);
    print_loads(json_object_get(training, "ranks"));
    print_phases(training);
    print_checkpoints(training);
    print_disk(training, details || o->windows);
    print_workers(training);
    print_memory(training);
    if (o->windows) print_each_window(training);
}

static int check_parts(const struct options *o, const json_t *j, struct drps_err *err)
{
    const json_t *training = json_object_get(j, "training");
    const size_t n = json_array_size(json_object_get(training, "epochs"));
    if (o->epoch > n)
        return drps_err_set(err, DRPS_E_CONFIG, "--epoch %llu: %s was trained for %zu epochs",
                            (unsigned long long)o->epoch, o->path, n);
    if (o->windows && !json_is_object(json_object_get(training, "windows")))
        return drps_err_set(err, DRPS_E_CONFIG,
                            "--windows: %s was trained with store %s, not relay", o->path,
                            text_of(training, "store"));
    return 0;
}

static int stat_model(struct drps_cli *cli, const struct drps_io *io, const struct options *o,
                      struct drps_err *err)
{
    struct drps_modeldir *md;
    int rc = drps_modeldir_open(io, o->path, MODEL_MEMORY_BYTES, &md, err);
    if (rc == 0) rc = check_parts(o, drps_modeldir_json(md), err);
    if (rc == 0) {
        if (o->verify)
            rc = stat_verify_model(cli, md, o->path, err);
        else if (cli->json)
            rc = drps_cli_json_print(json_deep_copy(drps_modeldir_json(md)), err);
        else
            print_model(o, md, cli->log.level >= DRPS_LOG_DEBUG);
    }
    drps_modeldir_close(md);
    return rc;
}

/* 1: the folder is no plan, and holds checkpoints of some rank. */
static int has_checkpoints(const char *path)
{
    struct stat st;
    const struct dirent *entry;
    char *plan = drps_path_join(path, DRPS_FILE_MANIFEST);
    DIR *dir = plan && stat(plan, &st) ? opendir(path) : NULL;
    int has = 0;
    while (dir && !has && (entry = readdir(dir)))
        has = !strncmp(entry->d_name, DRPS_CHECKPOINT_RANK, strlen(DRPS_CHECKPOINT_RANK));
    if (dir) (void)closedir(dir);
    free(plan);
    return has;
}

static int stat_checkpoints(struct drps_cli *cli, const struct drps_io *io, const struct options *o,
                            struct drps_err *err)
{
    if (o->verify) return stat_verify_checkpoints(cli, io, o->path, err);
    return drps_err_set(err, DRPS_E_CONFIG,
                        "%s holds checkpoints: --verify checks them, and drps-train --resume goes "
                        "on from them",
                        o->path);
}

/* The folder is a model if it has model.json, or checkpoints, or a plan. */
static int run(struct drps_cli *cli, const struct options *o, struct drps_err *err)
{
    const struct drps_io *os = drps_io_os();
    const struct drps_io io = {.ops = os->ops, .ctx = os->ctx, .stop = drps_cli_stop()};
    char *path = drps_path_join(o->path, DRPS_MODEL_MANIFEST);
    if (!path) return drps_err_set(err, -ENOMEM, "no memory");
    int fd;
    int rc = drps_io_open(&io, path, O_RDONLY, &fd, err);
    drps_io_close(&io, fd);
    free(path);
    if (rc == 0) return stat_model(cli, &io, o, err);
    if (rc != -ENOENT && rc != -ENOTDIR) return rc;
    drps_err_clear(err);
    if (has_checkpoints(o->path)) return stat_checkpoints(cli, &io, o, err);
    rc = stat_plan(cli, &io, o, err);
    if (rc == DRPS_E_NOT_FOUND) {
        drps_err_clear(err);
        rc = drps_err_set(err, rc,
                          "%s is neither a plan nor a model (no plan.json, no model.json in it)",
                          o->path);
    }
    return rc;
}

int main(int argc, char **argv)
{
    static const struct drps_cli_tool tool = {
        .name = "drps-stat",
        .args_doc = "PLAN|MODEL",
        .doc = "Show what a plan or a model is: counts, blocks and windows, the forecast of disk "
               "I/O, the loss of every "
               "epoch, and where time, memory and disk I/O of training went.",
        .options = option_table,
        .parse = parse,
    };
    struct options o = {0};
    struct drps_cli cli;
    struct drps_err err = DRPS_ERR_INIT;
    drps_cli_start(&cli, &tool, &o, argc, argv);
    return drps_cli_finish(&cli, run(&cli, &o, &err), &err);
}
