/* Several ranks: what each sent and received beside the forecast, what it waited for, and what went
 * from rank to rank. */
#include <stdio.h>

#include "base/folder/drps_manifest.h"
#include "tools/drps_json_text.h"
#include "tools/stat/html/sections.h"
#include "tools/stat/html/table.h"

enum { RANKS_MOST = 64 /* of the tables */, LINKS_MOST = 12 /* ranks of the matrix */ };

static void write_traffic(struct html *h, const json_t *ranks)
{
    static const struct html_column columns[] = {
        {"rank", 1}, {"sent", 1}, {"forecast", 1}, {"received", 1}, {"forecast", 1}};
    static const char *const keys[] = {"sent_bytes", "forecast_sent_bytes", "received_bytes",
                                       "forecast_received_bytes"};
    struct html_table t;
    size_t i;
    json_t *r;
    html_table_begin(&t, h, "What each rank sent and received, in all epochs", columns, 5);
    json_array_foreach(ranks, i, r)
    {
        if (i == RANKS_MOST) break;
        html_row_begin(&t, count_of(r, "rank"), 0);
        for (size_t k = 0; k < sizeof(keys) / sizeof(*keys); k++)
            html_cell_value(&t, json_object_get(r, keys[k]),
                            k & 1 ? forecast_size_of(r, keys[k]) : size_of(r, keys[k]));
        html_row_end(&t);
    }
    html_table_end(&t);
}

static void write_loads(struct html *h, const json_t *ranks)
{
    static const struct html_column columns[] = {
        {"rank", 1},         {"disk read", 1}, {"disk written", 1}, {"waited, s", 1},
        {"of all steps", 1}, {"waited", 0},    {"memory", 1}};
    struct html_table t;
    size_t i;
    json_t *r;
    html_table_begin(&t, h, "What each rank read, and how long it waited for others", columns, 7);
    json_array_foreach(ranks, i, r)
    {
        if (i == RANKS_MOST) break;
        html_row_begin(&t, count_of(r, "rank"), 0);
        html_cell_value(&t, json_object_get(r, "read_bytes"), size_of(r, "read_bytes"));
        html_cell_value(&t, json_object_get(r, "written_bytes"), size_of(r, "written_bytes"));
        html_cell_value(&t, json_object_get(r, "waiting_seconds"),
                        number_of(r, "waiting_seconds", "%.2f"));
        html_cell_value(&t, json_object_get(r, "waiting_share"), percent_of(r, "waiting_share"));
        html_cell_bar(&t, json_number_value(json_object_get(r, "waiting_share")), 1);
        html_cell_value(&t, json_object_get(r, "peak_rss_bytes"), size_of(r, "peak_rss_bytes"));
        html_row_end(&t);
    }
    html_table_end(&t);
}

static void write_times(struct html *h, const json_t *ranks)
{
    static const struct html_column columns[] = {
        {"rank", 1},    {"gradients", 1}, {"sums stepped", 1}, {"parameters back", 1},
        {"network", 1}, {"disk", 1},      {"scheduler", 1}};
    static const char *const keys[] = {"compute_seconds", "reduce_seconds", "broadcast_seconds",
                                       "network_seconds", "store_seconds",  "held_seconds"};
    struct html_table t;
    size_t i;
    json_t *r;
    html_table_begin(&t, h, "Seconds of each rank: the parts of its rounds, and what it waited for",
                     columns, 7);
    json_array_foreach(ranks, i, r)
    {
        if (i == RANKS_MOST) break;
        html_row_begin(&t, count_of(r, "rank"), 0);
        for (size_t k = 0; k < sizeof(keys) / sizeof(*keys); k++)
            html_cell_value(&t, json_object_get(r, keys[k]), number_of(r, keys[k], "%.2f"));
        html_row_end(&t);
    }
    html_table_end(&t);
}

/* ---- From rank to rank ---- */

static const json_t *link_at(const json_t *table, size_t from, size_t to)
{
    return json_array_get(json_array_get(table, from), to);
}

static double most_of(const json_t *table, size_t n)
{
    double most = 0;
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < n; k++) {
            const double v = json_number_value(link_at(table, i, k));
            if (v > most) most = v;
        }
    return most;
}

/* Each link a row, so that all fit a narrow screen: bytes beside the forecast. */
static void write_links(struct html *h, const json_t *links, size_t n)
{
    static const struct html_column columns[] = {
        {"link", 0}, {"bytes", 1}, {"forecast", 1}, {"", 0}};
    const json_t *sent = json_object_get(links, "sent");
    const json_t *forecast = json_object_get(links, "forecast");
    const double most = most_of(sent, n);
    struct html_table t;
    char name[48];
    if (!json_is_array(sent) || n > LINKS_MOST) return;
    html_table_begin(&t, h, "From rank to rank, in all epochs", columns, 4);
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < n; k++) {
            const json_t *v = link_at(sent, i, k), *f = link_at(forecast, i, k);
            if (i == k || !json_is_integer(v)) continue;
            (void)snprintf(name, sizeof(name), "%zu to %zu", i, k);
            html_row_begin(&t, name, 0);
            html_cell_value(&t, v, size_text(json_number_value(v)));
            html_cell_value(&t, f, size_text(json_number_value(f)));
            html_cell_bar(&t, most > 0 ? json_number_value(v) / most : 0, 0);
            html_row_end(&t);
        }
    html_table_end(&t);
}

void section_ranks(struct html *h, const struct subject *s)
{
    const json_t *ranks = json_object_get(s->training, "ranks");
    const size_t n = json_array_size(ranks);
    if (n < 2) return;
    html_element(h, "h3", "Network and ranks");
    if (n > RANKS_MOST)
        html_print(h, "<p class=\"dim\">The first %d of %zu ranks.</p>\n", RANKS_MOST, n);
    write_traffic(h, ranks);
    write_loads(h, ranks);
    write_times(h, ranks);
    write_links(h, json_object_get(s->training, "links"), n);
}
