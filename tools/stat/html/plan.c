/* A plan: its data, the tables of rows, blocks, windows, and the forecast by store and memory. */
#include <math.h>
#include <stdio.h>
#include <string.h>

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

static void write_forecast(struct html *h, const json_t *j)
{
    static const struct html_column columns[] = {
        {"store", 0}, {"memory for rows", 1}, {"read", 1}, {"written", 1}, {"reads and writes", 1}};
    const json_t *list = json_object_get(j, "forecast");
    struct html_table t;
    size_t i;
    json_t *f;
    if (!json_array_size(list)) return;
    html_element(h, "h3", "Forecast");
    html_raw(h, "<div class=\"charts\">\n");
    draw_forecast(h, list);
    html_raw(h, "</div>\n");
    html_table_begin(&t, h, "What an epoch would move (blocks: --store file, rocksdb, leveldb)",
                     columns, 5);
    json_array_foreach(list, i, f)
    {
        const int fits = json_is_true(json_object_get(f, "feasible"));
        html_row_begin(&t, forecast_store(f), 0);
        html_cell_value(&t, json_object_get(f, "memory_bytes"), size_of(f, "memory_bytes"));
        html_cell(&t, fits ? size_of(f, "read_bytes") : "one batch does not fit");
        html_cell(&t, fits ? size_of(f, "written_bytes") : "-");
        html_cell(&t, fits ? count_of(f, "ios") : "-");
        html_row_end(&t);
    }
    html_table_end(&t);
}

void section_plan(struct html *h, const struct subject *s)
{
    if (s->kind != FOLDER_PLAN) return;
    write_data(h, s->json);
    write_forecast(h, s->json);
    write_windows(h, s->json);
    write_blocks(h, s->json);
}
