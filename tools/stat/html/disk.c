/* The disk: each epoch beside the forecast, what the store did, how long calls took, and the
 * windows of store relay. */
#include <math.h>
#include <stdio.h>

#include "tools/drps_cli.h"
#include "tools/drps_forecast_text.h"
#include "tools/drps_json_text.h"
#include "tools/stat/html/chart.h"
#include "tools/stat/html/sections.h"
#include "tools/stat/html/table.h"

/* ---- Forecast and epochs ---- */

static double bytes_at(const json_t *j, const char *key)
{
    return json_is_integer(json_object_get(j, key)) ? (double)number_at(j, key) : (double)NAN;
}

/* The forecast, or NULL where it says nothing. */
static const json_t *forecast_of(const json_t *training)
{
    const json_t *f = json_object_get(training, "forecast");
    return json_is_true(json_object_get(f, "feasible")) ? f : NULL;
}

static void draw_epochs(struct html *h, const struct subject *s)
{
    struct html_line lines[] = {{.name = "read", .style = 0}, {.name = "written", .style = 1}};
    const json_t *f = forecast_of(s->training);
    const struct html_level levels[] = {{"forecast, read", 2, bytes_at(f, "read_bytes")},
                                        {"forecast, written", 3, bytes_at(f, "written_bytes")}};
    const struct html_chart c = {.title = "Rows between memory and disk, by epoch",
                                 .x = {.name = "epoch", .whole = 1},
                                 .y = {.name = "bytes", .unit = HTML_BYTES, .from_zero = 1},
                                 .lines = lines,
                                 .lines_n = 2,
                                 .levels = levels,
                                 .levels_n = 2};
    html_line_take(&lines[0], subject_epochs(s), "epoch", "read_bytes");
    html_line_take(&lines[1], subject_epochs(s), "epoch", "written_bytes");
    html_chart(h, &c);
}

static void draw_stalls(struct html *h, const struct subject *s)
{
    struct html_line line = {.name = "waited for rows", .style = 4};
    const struct html_chart c = {.title = "Share of an epoch in which training waited for rows",
                                 .x = {.name = "epoch", .whole = 1},
                                 .y = {.name = "share", .from_zero = 1},
                                 .lines = &line,
                                 .lines_n = 1};
    html_line_take(&line, subject_epochs(s), "epoch", "stall_share");
    html_chart(h, &c);
}

/* A number of the forecast, and that of the last epoch. */
struct compared {
    const char *what;
    const json_t *forecast, *actual;
    int is_size;
};

static const char *number_text(const json_t *v, int is_size)
{
    char *room = text_room();
    if (!json_is_integer(v) || json_integer_value(v) < 0) return "-";
    if (is_size) return size_text((double)json_integer_value(v));
    (void)snprintf(room, TEXT_BYTES, "%lld", (long long)json_integer_value(v));
    return room;
}

static void compared_row(struct html_table *t, const struct compared *c)
{
    char share[32] = "-";
    const double forecast = json_number_value(c->forecast), actual = json_number_value(c->actual);
    if (!json_is_integer(c->forecast) || !json_is_integer(c->actual)) return;
    if (forecast > 0) (void)snprintf(share, sizeof(share), "%.0f %%", 100 * actual / forecast);
    html_row_begin(t, c->what, 0);
    html_cell_value(t, c->forecast, number_text(c->forecast, c->is_size));
    html_cell_value(t, c->actual, number_text(c->actual, c->is_size));
    html_cell(t, share);
    html_row_end(t);
}

/* Why more was written than was to be. */
static void write_reason(struct html *h, const json_t *training, const json_t *f,
                         const json_t *last)
{
    const json_t *windows = json_object_get(training, "windows");
    char why[FORECAST_REASON];
    (void)forecast_reason(number_at(windows, "merged_bytes"), number_at(f, "written_bytes"),
                          number_at(last, "written_bytes"), why);
    if (!why[0]) return;
    html_raw(h, "<p>More was written than the forecast says");
    html_text(h, why);
    html_raw(h, ".</p>\n");
}

static void write_forecast(struct html *h, const struct subject *s)
{
    static const struct html_column columns[] = {
        {"one epoch", 0}, {"forecast", 1}, {"last epoch", 1}, {"of the forecast", 1}};
    const json_t *f = forecast_of(s->training), *epochs = subject_epochs(s);
    const size_t n = json_array_size(epochs);
    const json_t *last = n ? json_array_get(epochs, n - 1) : NULL;
    if (!f || !last) return;
    json_t *ios = drps_json_count(number_at(last, "reads") + number_at(last, "writes"));
    const struct compared rows[] = {
        {"bytes read", json_object_get(f, "read_bytes"), json_object_get(last, "read_bytes"), 1},
        {"bytes written", json_object_get(f, "written_bytes"),
         json_object_get(last, "written_bytes"), 1},
        {"reads and writes", json_object_get(f, "ios"), ios, 0},
        {"requests of the device", json_object_get(f, "requests"),
         json_object_get(last, "requests"), 0},
        {"bytes that they move", json_object_get(f, "moved_bytes"),
         json_object_get(last, "moved_bytes"), 1},
    };
    struct html_table t;
    html_table_begin(&t, h, "Forecast beside actual", columns, 4);
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
        compared_row(&t, &rows[i]);
    html_table_end(&t);
    json_decref(ios);
    write_reason(h, s->training, f, last);
}

/* ---- What the store did ---- */

static void draw_latencies(struct html *h, const json_t *training)
{
    const json_t *io = json_object_get(training, "io"), *d = json_object_get(training, "device");
    html_histogram(h, "Time of a read of the store", json_object_get(io, "read_latency"), 0);
    html_histogram(h, "Time of a write of the store", json_object_get(io, "write_latency"), 1);
    html_histogram(h, "Time of a read of the device", json_object_get(d, "read_latency"), 2);
    html_histogram(h, "Time of a write of the device", json_object_get(d, "write_latency"), 3);
}

/* One direction of one layer. */
static void io_row(struct html_table *t, const char *head, const json_t *io, int reads)
{
    const char *n = reads ? "reads" : "writes", *bytes = reads ? "read_bytes" : "written_bytes";
    const char *half = reads ? "read_p50_seconds" : "write_p50_seconds";
    const char *most = reads ? "read_p99_seconds" : "write_p99_seconds";
    html_row_begin(t, head, 0);
    html_cell_value(t, json_object_get(io, n), count_of(io, n));
    html_cell_value(t, json_object_get(io, bytes), size_of(io, bytes));
    html_cell_value(t, json_object_get(io, half), micros_of(io, half, half));
    html_cell_value(t, json_object_get(io, most), micros_of(io, most, most));
    html_row_end(t);
}

static void write_io(struct html *h, const json_t *training)
{
    static const struct html_column columns[] = {{"all epochs", 0},
                                                 {"operations", 1},
                                                 {"bytes", 1},
                                                 {"50 % take at most, \xc2\xb5s", 1},
                                                 {"99 %, \xc2\xb5s", 1}};
    const json_t *io = json_object_get(training, "io"), *d = json_object_get(training, "device");
    struct html_table t;
    html_table_begin(&t, h, "Disk I/O", columns, 5);
    io_row(&t, "reads of the store", io, 1);
    io_row(&t, "writes of the store", io, 0);
    if (json_is_object(d)) io_row(&t, "reads of the device", d, 1);
    if (json_is_object(d)) io_row(&t, "writes of the device", d, 0);
    html_table_end(&t);
}

static void write_store(struct html *h, const json_t *training)
{
    const json_t *io = json_object_get(training, "io"), *b = json_object_get(training, "blocks");
    const json_t *w = json_object_get(training, "windows");
    const json_t *stalls = json_object_get(training, "stalls");
    const json_t *moves = json_is_object(w) ? w : json_object_get(training, "device");
    struct html_table t;
    html_pairs_begin(&t, h, "The store");
    html_pair(&t, "store", text_of(training, "store"));
    html_pair(&t, "waited for rows, s", number_of(stalls, "seconds", "%.2f"));
    html_pair(&t, "share of the steps' time", percent_of(stalls, "share"));
    html_pair(&t, "steps that waited", share_of(stalls, "stalled_steps", "steps"));
    html_pair(&t, "reads at a time", number_of(io, "queue_depth", "%.1f"));
    html_pair(&t, "seeks", count_of(io, "seeks"));
    html_pair(&t, "I/O by", text_of(moves, "io_engine"));
    html_pair(&t, "remark", text_of(moves, "remark"));
    html_pair(&t, "blocks needed", count_of(b, "needed"));
    html_pair(&t, "blocks that were in memory", share_of(b, "hit", "needed"));
    html_pair(&t, "blocks evicted", count_of(b, "evicted"));
    html_pair(&t, "pool of blocks", size_of(b, "pool_bytes"));
    html_pair(&t, "windows of an epoch", count_of(w, "windows"));
    html_pair(&t, "runs on disk, at most", count_of(w, "runs"));
    html_pair(&t, "rows of runs that were merged", size_of(w, "merged_bytes"));
    html_pair(&t, "rows in memory", size_of(w, "pool_bytes"));
    html_pair(&t, "rows kept from window to window", percent_of(w, "kept_share"));
    html_pair(&t, "rows that arrived from disk", percent_of(w, "arrived_share"));
    html_pair(&t, "rows created", percent_of(w, "created_share"));
    html_pair(&t, "from disk, the whole process", size_of(training, "process_read_bytes"));
    html_pair(&t, "to disk, the whole process", size_of(training, "process_written_bytes"));
    html_pair(&t, "of the plan's files", size_of(training, "plan_read_bytes"));
    html_table_end(&t);
}

/* ---- Windows ---- */

static void draw_windows(struct html *h, const struct subject *s)
{
    const json_t *list = json_object_get(json_object_get(s->training, "windows"), "list");
    struct html_line rows[] = {{.name = "kept", .style = 0},
                               {.name = "arrived from disk", .style = 1},
                               {.name = "created", .style = 2}};
    struct html_line stall = {.name = "waited for the window", .style = 4};
    struct html_chart c = {.title = "Rows of each window, all epochs together",
                           .x = {.name = "window", .whole = 1},
                           .y = {.name = "rows", .from_zero = 1, .whole = 1},
                           .lines = rows,
                           .lines_n = 3};
    html_line_take(&rows[0], list, NULL, "rows_kept");
    html_line_take(&rows[1], list, NULL, "rows_arrived");
    html_line_take(&rows[2], list, NULL, "rows_created");
    html_chart(h, &c);
    c.title = "Seconds for which training waited, by window";
    c.y = (struct html_axis){.name = "seconds", .unit = HTML_SECONDS, .from_zero = 1};
    c.lines = &stall;
    c.lines_n = 1;
    html_line_take(&stall, list, NULL, "stall_seconds");
    html_chart(h, &c);
}

void section_disk(struct html *h, const struct subject *s)
{
    const json_t *io = json_object_get(s->training, "io");
    if (!json_is_object(io)) return;
    html_element(h, "h3", "Disk");
    if (!number_at(io, "reads") && !number_at(io, "writes")) {
        html_raw(h, "<p>All rows stayed in memory: the store moved nothing.</p>\n");
        return;
    }
    if (json_array_size(json_object_get(s->training, "ranks")) > 1)
        html_raw(h, "<p class=\"dim\">Of the store of rank 0.</p>\n");
    write_forecast(h, s);
    html_raw(h, "<div class=\"charts\">\n");
    draw_epochs(h, s);
    draw_stalls(h, s);
    draw_latencies(h, s->training);
    draw_windows(h, s);
    html_raw(h, "</div>\n");
    write_io(h, s->training);
    write_store(h, s->training);
}
