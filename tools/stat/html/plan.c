/* A plan: its data, the tables of rows, blocks, windows, and the forecast by store and memory. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/record/drps_recfile.h"
#include "index/plan/drps_plan_files.h"
#include "index/plan/drps_window.h"

#include "tools/drps_forecast_text.h"
#include "tools/drps_json_text.h"
#include "tools/drps_training_text.h"
#include "tools/stat/html/chart.h"
#include "tools/stat/html/sections.h"
#include "tools/stat/html/table.h"

/* A member that is a count or a size. */
struct member {
    const char *what, *key;
    int is_size;
};

static void write_members(struct html *h, const json_t *j, const char *caption,
                          const struct member *members, size_t n)
{
    struct html_table t;
    html_pairs_begin(&t, h, caption);
    for (size_t i = 0; i < n; i++)
        html_pair_value(&t, members[i].what, json_object_get(j, members[i].key),
                        members[i].is_size ? size_of(j, members[i].key)
                                           : count_of(j, members[i].key));
    html_table_end(&t);
}

static void write_data(struct html *h, const json_t *j)
{
    static const struct member members[] = {
        {"training samples", "samples", 0},
        {"test samples", "test_samples", 0},
        {"entries of training (features that are not 0)", "nnz", 0},
        {"entries of test samples", "test_nnz", 0},
        {"entries that training never saw, left out", "test_unseen", 0},
        {"training batches", "batches", 0},
        {"test batches", "test_batches", 0},
        {"samples of a batch", "batch_size", 0},
        {"rows of the largest batch", "max_batch_rows", 0},
    };
    static const struct html_column columns[] = {
        {"table", 0}, {"rows", 1}, {"first row", 1}, {"each row", 0}};
    struct html_table t;
    size_t i;
    json_t *table;
    html_element(h, "h3", "Data");
    write_members(h, j, "Samples and batches", members, sizeof(members) / sizeof(*members));
    html_table_begin(&t, h, "Tables of rows", columns, 4);
    json_array_foreach(json_object_get(j, "tables"), i, table)
    {
        html_row_begin(&t, text_of(table, "name"), 0);
        html_cell_value(&t, json_object_get(table, "rows"), count_of(table, "rows"));
        html_cell_value(&t, json_object_get(table, "first"), count_of(table, "first"));
        html_cell(&t, training_rows_are(text_of(table, "name")));
        html_row_end(&t);
    }
    html_table_end(&t);
}

/* ---- Blocks ---- */

/* What reading all rows of every batch would cost, with nothing in memory. */
struct cost {
    const char *how;
    double requests, rows;
};

static double seconds_of(const json_t *j, const struct cost *c)
{
    const double bytes = c->rows * (double)number_at(j, "row_bytes");
    return c->requests * (double)number_at(j, "seek_ns") / 1e9 +
           bytes / (double)number_at(j, "transfer_bps");
}

static void write_costs(struct html *h, const json_t *j)
{
    static const struct html_column columns[] = {
        {"read", 0}, {"requests", 1}, {"bytes", 1}, {"seconds", 1}, {"", 0}};
    const double steps = (double)number_at(j, "batches") + (double)number_at(j, "test_batches");
    const double uses = (double)number_at(j, "row_uses");
    const struct cost costs[] = {
        {"one row a block", uses, uses},
        {"these blocks", (double)number_at(j, "block_uses"),
         (double)number_at(j, "block_use_rows")},
        {"these blocks, in runs", (double)number_at(j, "runs"), (double)number_at(j, "run_rows")},
        {"scans of all rows", steps, steps * (double)number_at(j, "rows")},
    };
    double most = 0;
    struct html_table t;
    if (!number_at(j, "block_uses") || !number_at(j, "transfer_bps")) return; /* an older plan */
    for (size_t i = 0; i < 4; i++)
        most = fmax(most, seconds_of(j, &costs[i]));
    html_table_begin(&t, h, "Reading all rows of every batch of an epoch, nothing in memory",
                     columns, 5);
    for (size_t i = 0; i < 4; i++) {
        char requests[32], seconds[32];
        const double s = seconds_of(j, &costs[i]);
        (void)snprintf(requests, sizeof(requests), "%.0f", costs[i].requests);
        (void)snprintf(seconds, sizeof(seconds), "%.2f", s);
        html_row_begin(&t, costs[i].how, 0);
        html_cell(&t, requests);
        html_cell(&t, size_text(costs[i].rows * (double)number_at(j, "row_bytes")));
        html_cell(&t, seconds);
        html_cell_bar(&t, most > 0 ? s / most : 0, 0);
        html_row_end(&t);
    }
    html_table_end(&t);
}

enum { SIZES = 17, BLOCKS_MOST = 1 << 24 /* whose sizes are counted, 4 bytes each in memory */ };

/* A table of blocks by their rows: 1, 2, 3 to 4, 5 to 8, ... */
static void write_sizes(struct html *h, const uint32_t *first, size_t blocks)
{
    static const struct html_column columns[] = {
        {"rows of a block", 0}, {"blocks", 1}, {"share", 1}, {"", 0}};
    size_t counts[SIZES] = {0};
    struct html_table t;
    for (size_t b = 0; b < blocks; b++) {
        size_t size = 0;
        while (size + 1 < SIZES && (UINT32_C(1) << size) < first[b + 1] - first[b])
            size++;
        counts[size]++;
    }
    html_table_begin(&t, h, "Sizes of blocks", columns, 4);
    for (size_t size = 0; size < SIZES; size++) {
        char name[32], count[32];
        if (!counts[size]) continue;
        if (size < 2)
            (void)snprintf(name, sizeof(name), "%zu", size + 1);
        else
            (void)snprintf(name, sizeof(name), "%u to %u", (1U << (size - 1)) + 1, 1U << size);
        (void)snprintf(count, sizeof(count), "%zu", counts[size]);
        html_row_begin(&t, name, 0);
        html_cell(&t, count);
        html_cell(&t, share_text((double)counts[size], (double)blocks));
        html_cell_bar(&t, (double)counts[size] / (double)blocks, 2);
        html_row_end(&t);
    }
    html_table_end(&t);
}

static int write_block_sizes(struct html *h, const struct drps_plan *plan, struct drps_err *err)
{
    uint32_t *first = NULL;
    if (!plan->info.blocks || plan->info.blocks > BLOCKS_MOST) return 0;
    const int rc = drps_plan_blocks(plan, &first, err);
    if (rc == 0) write_sizes(h, first, (size_t)plan->info.blocks);
    free(first);
    return rc;
}

static void write_blocks(struct html *h, const json_t *j)
{
    static const struct member members[] = {
        {"blocks", "blocks", 0},
        {"rows of the largest block", "max_block_rows", 0},
        {"blocks that the largest batch uses", "max_step_blocks", 0},
        {"bytes of a block, aimed at", "block_bytes", 1},
        {"uses of rows in an epoch", "row_uses", 0},
        {"uses of blocks in an epoch", "block_uses", 0},
    };
    html_element(h, "h3", "Blocks");
    html_raw(h, "<p>Rows that are read and written together.</p>\n");
    write_members(h, j, "Blocks", members, sizeof(members) / sizeof(*members));
    write_costs(h, j);
}

/* ---- Windows ---- */

enum { HEAD_BYTES = 72 /* of a window's record */ };

/* Reads what the first bytes of record `at` say of the window. */
static int read_window(struct drps_recfile *file, uint64_t at, void *mem, struct drps_window *w,
                       struct drps_err *err)
{
    const uint64_t bytes = drps_recfile_bytes(file, at);
    const void *record;
    if (bytes < HEAD_BYTES)
        return drps_err_set(err, DRPS_E_CORRUPT, "%s: a record is too short", DRPS_FILE_WINDOWS);
    int rc = drps_recfile_read_front(file, at, HEAD_BYTES, mem, &record, err);
    return rc == 0 ? drps_window_head(record, bytes, w, err) : rc;
}

/* Takes the rows of at most HTML_POINTS windows, and how many of them arrive and leave. */
static int take_windows(struct drps_recfile *file, void *mem, struct html_line lines[3],
                        struct drps_err *err)
{
    const uint64_t n = drps_recfile_count(file);
    int rc = 0;
    for (uint64_t i = 0; rc == 0 && i < n && i < HTML_POINTS; i++) {
        const uint64_t at = n > HTML_POINTS ? i * (n - 1) / (HTML_POINTS - 1) : i;
        struct drps_window w = {0};
        rc = read_window(file, at, mem, &w, err);
        const double rows[] = {(double)w.n, (double)w.arriving, (double)w.leaving};
        for (int k = 0; rc == 0 && k < 3; k++) {
            lines[k].x[lines[k].n] = (double)at + 1;
            lines[k].y[lines[k].n++] = rows[k];
        }
    }
    return rc;
}

static int draw_windows(struct html *h, const struct drps_plan *plan, struct drps_err *err)
{
    struct html_line lines[] = {{.name = "all", .style = 0},
                                {.name = "not in the window before", .style = 1},
                                {.name = "not in the next one", .style = 2}};
    const struct html_chart c = {.title = "Rows of each window",
                                 .x = {.name = "window", .whole = 1},
                                 .y = {.name = "rows", .whole = 1, .from_zero = 1},
                                 .lines = lines,
                                 .lines_n = 3};
    struct drps_recfile *file = NULL;
    char *path = drps_path_join(plan->dir, DRPS_FILE_WINDOWS);
    void *mem = aligned_alloc(DRPS_RECFILE_ALIGN, 3 * DRPS_RECFILE_ALIGN); /* enough for a head */
    int rc = path && mem ? 0 : drps_err_set(err, -ENOMEM, "no memory for the windows");
    if (rc == 0) rc = drps_recfile_open(plan->io, path, DRPS_KIND_WINDOWS, &file, err);
    if (rc == 0) rc = take_windows(file, mem, lines, err);
    if (rc == 0) html_chart(h, &c);
    drps_recfile_close(file);
    free(mem);
    free(path);
    return rc;
}

static void write_windows(struct html *h, const json_t *j)
{
    static const struct member members[] = {
        {"windows of an epoch", "windows", 0},
        {"memory that they were cut for", "window_budget_bytes", 1},
        {"rows of the largest window", "max_window_rows", 0},
        {"rows of the largest two neighbours", "working_set_rows", 0},
    };
    static const struct html_column columns[] = {
        {"rows of all windows", 0}, {"rows", 1}, {"share", 1}, {"", 0}};
    static const char *const moves[][2] = {{"kept for the next window", "window_rows_kept"},
                                           {"leave for a later one", "window_rows_moved"}};
    const double all = (double)number_at(j, "window_rows");
    struct html_table t;
    html_element(h, "h3", "Windows");
    html_raw(h, "<p>Runs of batches whose rows are in memory together.</p>\n");
    if (number_at(j, "windows_later")) {
        html_raw(h, "<p>None: all rows fit in the memory of <code>drps-index</code>.</p>\n");
        return;
    }
    write_members(h, j, "Windows", members, sizeof(members) / sizeof(*members));
    if (!(all > 0)) return;
    html_table_begin(&t, h, "From window to window, in an epoch", columns, 4);
    for (size_t i = 0; i < 2; i++) {
        html_row_begin(&t, moves[i][0], 0);
        html_cell_value(&t, json_object_get(j, moves[i][1]), count_of(j, moves[i][1]));
        html_cell(&t, share_of(j, moves[i][1], "window_rows"));
        html_cell_bar(&t, (double)number_at(j, moves[i][1]) / all, (unsigned)i);
        html_row_end(&t);
    }
    html_table_end(&t);
}

/* ---- Forecast ---- */

/* The feasible forecasts of a store that need memory: bytes that are read and written. */
static void take_forecasts(struct html_line *line, const json_t *list)
{
    size_t i;
    json_t *f;
    line->n = 0;
    json_array_foreach(list, i, f)
    {
        const double memory = (double)number_at(f, "memory_bytes");
        if (strcmp(forecast_store(f), line->name) != 0 || !(memory > 0)) continue;
        if (!json_is_true(json_object_get(f, "feasible")) || line->n == HTML_POINTS) continue;
        line->x[line->n] = memory;
        line->y[line->n++] =
            (double)number_at(f, "read_bytes") + (double)number_at(f, "written_bytes");
    }
}

static void draw_forecast(struct html *h, const json_t *list)
{
    struct html_line lines[] = {{.name = "relay", .style = 0}, {.name = "blocks", .style = 1}};
    const struct html_chart c = {
        .title = "Forecast: bytes an epoch, by memory for rows",
        .x = {.name = "memory for rows", .unit = HTML_BYTES, .doubles = 1},
        .y = {.name = "read and written", .unit = HTML_BYTES, .from_zero = 1},
        .lines = lines,
        .lines_n = 2};
    take_forecasts(&lines[0], list);
    take_forecasts(&lines[1], list);
    html_chart(h, &c);
}

/* Of an epoch: all, arithmetic, and the disk; "-" where it does not fit. */
static void write_seconds(struct html_table *t, const json_t *seconds)
{
    static const char *const keys[] = {"epoch", "compute", "disk"};
    for (size_t i = 0; i < 3; i++)
        html_cell_value(t, json_object_get(seconds, keys[i]), number_of(seconds, keys[i], "%.2f"));
}

static void write_forecast(struct html *h, const json_t *j)
{
    static const struct html_column columns[] = {
        {"store", 0},      {"memory for rows", 1},  {"read", 1},
        {"written", 1},    {"reads and writes", 1}, {"seconds", 1},
        {"arithmetic", 1}, {"the disk", 1}};
    const json_t *list = json_object_get(j, "forecast");
    const int timed = forecast_has_time(list);
    struct html_table t;
    size_t i;
    json_t *f;
    if (!json_array_size(list)) return;
    html_element(h, "h3", "Forecast");
    html_raw(h, "<div class=\"charts\">\n");
    draw_forecast(h, list);
    html_raw(h, "</div>\n");
    html_table_begin(&t, h, "What an epoch would move (blocks: --store file, rocksdb, leveldb)",
                     columns, timed ? 8 : 5);
    json_array_foreach(list, i, f)
    {
        const int fits = json_is_true(json_object_get(f, "feasible"));
        html_row_begin(&t, forecast_store(f), 0);
        html_cell_value(&t, json_object_get(f, "memory_bytes"), size_of(f, "memory_bytes"));
        html_cell(&t, fits ? size_of(f, "read_bytes") : "one batch does not fit");
        html_cell(&t, fits ? size_of(f, "written_bytes") : "-");
        html_cell(&t, fits ? count_of(f, "ios") : "-");
        if (timed) write_seconds(&t, json_object_get(f, "seconds"));
        html_row_end(&t);
    }
    html_table_end(&t);
}

/* What the plan's files say, where it is for one worker or one rank. A file that cannot be read is
 * told in the page. */
static void write_files(struct html *h, const struct subject *s)
{
    struct drps_plan *plan = NULL;
    struct drps_err err = DRPS_ERR_INIT;
    const struct drps_io *io = h->file.io;
    int rc = drps_plan_open(io, s->path, &plan, &err);
    if (rc == 0 && drps_plan_shape(&plan->info) != DRPS_PLAN_ALL) {
        html_raw(h, "<div class=\"charts\">\n");
        if (!plan->info.windows_later) rc = draw_windows(h, plan, &err);
        html_raw(h, "</div>\n");
        if (rc == 0) rc = write_block_sizes(h, plan, &err);
    }
    drps_plan_close(plan);
    if (rc == 0) return;
    html_raw(h, "<p class=\"warn\"><strong>Not shown:</strong> ");
    html_text(h, err.text);
    html_raw(h, "</p>\n");
}

void section_plan(struct html *h, const struct subject *s)
{
    if (s->kind != FOLDER_PLAN) return;
    write_data(h, s->json);
    write_forecast(h, s->json);
    write_windows(h, s->json);
    write_blocks(h, s->json);
    write_files(h, s);
}
