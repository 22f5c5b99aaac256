/* Where time and memory went: a table each, with bars. */
#include <stdio.h>

#include "tools/drps_json_text.h"
#include "tools/drps_training_text.h"
#include "tools/stat/html/sections.h"
#include "tools/stat/html/style.h"
#include "tools/stat/html/table.h"

/* How long the last epoch took beside what the plan's speeds say. */
static void write_forecast(struct html *h, const json_t *training)
{
    const json_t *f = json_object_get(training, "forecast_seconds");
    struct html_table t;
    if (!json_is_object(f)) return;
    html_pairs_begin(&t, h, "Seconds of an epoch");
    html_pair_value(&t, "forecast", json_object_get(f, "epoch"), number_of(f, "epoch", "%.3g"));
    html_pair_value(&t, "of that arithmetic", json_object_get(f, "compute"),
                    number_of(f, "compute", "%.3g"));
    html_pair_value(&t, "the disk, beside arithmetic", json_object_get(f, "disk"),
                    number_of(f, "disk", "%.3g"));
    html_pair_value(&t, "the last epoch took", json_object_get(f, "measured"),
                    number_of(f, "measured", "%.3g"));
    html_pair_value(&t, "share of the forecast", json_object_get(f, "of_forecast"),
                    percent_of(f, "of_forecast"));
    html_table_end(&t);
}

/* How near an epoch came to the least time that its disk and arithmetic allow. */
static void write_limit(struct html *h, const json_t *training)
{
    static const struct {
        const char *what, *key, *form;
    } rows[] = {{"arithmetic, s", "compute", "%.3g"},
                {"the disk, s", "disk", "%.3g"},
                {"the limit, the longer of both, s", "epoch", "%.3g"},
                {"an epoch took, s", "measured", "%.3g"},
                {"of the limit's speed", "reached", "%.2f"}};
    const json_t *l = json_object_get(training, "limit_seconds");
    struct html_table t;
    if (!json_is_object(l)) return;
    html_pairs_begin(&t, h, "The limit of an epoch");
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
        html_pair_value(&t, rows[i].what, json_object_get(l, rows[i].key),
                        number_of(l, rows[i].key, rows[i].form));
    html_table_end(&t);
}

void section_time(struct html *h, const struct subject *s)
{
    static const struct html_column columns[] = {
        {"phase", 0}, {"seconds", 1}, {"share", 1}, {"", 0}, {"what it is", 0}};
    const json_t *phases = json_object_get(s->training, "phase_seconds");
    const double all = json_number_value(json_object_get(s->training, "seconds"));
    struct html_table t;
    unsigned i = 0;
    if (!json_is_object(phases)) return;
    html_element(h, "h3", "Time");
    html_table_begin(&t, h, "Seconds by phase", columns, 5);
    for (const struct training_text *p = training_phases(); p->key; p++, i++) {
        const json_t *v = json_object_get(phases, p->key);
        if (!json_is_number(v)) continue;
        html_row_begin(&t, p->key, 0);
        html_cell_value(&t, v, number_of(phases, p->key, "%.2f"));
        html_cell(&t, share_text(json_number_value(v), all));
        html_cell_bar(&t, all > 0 ? json_number_value(v) / all : 0, 0);
        html_cell(&t, p->meaning);
        html_row_end(&t);
    }
    html_table_end(&t);
    write_forecast(h, s->training);
    write_limit(h, s->training);
}

static void write_checkpoints(struct html_table *t, const json_t *training)
{
    const json_t *c = json_object_get(training, "checkpoints");
    char text[160];
    if (!number_at(c, "written") && !number_at(c, "failed")) return;
    (void)snprintf(text, sizeof(text), "%s, %s, %s s; %s failed", count_of(c, "written"),
                   size_of(c, "bytes"), number_of(c, "seconds", "%.2f"), count_of(c, "failed"));
    html_pair(t, "checkpoints written", text);
}

void section_memory(struct html *h, const struct subject *s)
{
    static const struct html_column columns[] = {
        {"part", 0}, {"bytes", 1}, {"of the limit", 1}, {"", 0}};
    const json_t *memory = json_object_get(s->training, "memory");
    const double limit = (double)number_at(memory, "limit_bytes");
    struct html_table t;
    size_t i;
    json_t *part;
    if (!json_is_object(memory)) return;
    html_element(h, "h3", "Memory");
    html_pairs_begin(&t, h, "The process");
    html_pair_value(&t, "limit (--memory)", json_object_get(memory, "limit_bytes"),
                    size_of(memory, "limit_bytes"));
    html_pair_value(&t, "largest resident set", json_object_get(s->training, "peak_rss_bytes"),
                    size_of(s->training, "peak_rss_bytes"));
    write_checkpoints(&t, s->training);
    html_table_end(&t);
    html_table_begin(&t, h, "Memory that was set aside, by part", columns, 4);
    json_array_foreach(json_object_get(memory, "parts"), i, part)
    {
        const double bytes = (double)number_at(part, "bytes");
        html_row_begin(&t, text_of(part, "what"), 0);
        html_cell_value(&t, json_object_get(part, "bytes"), size_of(part, "bytes"));
        html_cell(&t, share_text(bytes, limit));
        html_cell_bar(&t, limit > 0 ? bytes / limit : 0, 2);
        html_row_end(&t);
    }
    html_table_end(&t);
}
