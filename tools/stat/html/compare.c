/* Several trainings side by side: on the same axes, what they came to, and which options differ. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tools/drps_json_text.h"
#include "tools/stat/html/chart.h"
#include "tools/stat/html/drps_html_report.h"
#include "tools/stat/html/sections.h"
#include "tools/stat/html/table.h"

enum { SUBJECTS = HTML_REPORT_MOST, VALUE_BYTES = 96 };

struct group {
    const struct subject *s[SUBJECTS];
    size_t n;
    struct html_column columns[SUBJECTS + 1];
};

/* ---- Charts ---- */

static void draw(struct html *h, const struct group *g, const char *title, const char *name,
                 const char *key)
{
    struct html_line lines[SUBJECTS];
    const struct html_chart c = {.title = title,
                                 .x = {.name = "epoch", .whole = 1},
                                 .y = {.name = name},
                                 .lines = lines,
                                 .lines_n = g->n};
    for (size_t i = 0; i < g->n; i++) {
        lines[i] = (struct html_line){.name = g->s[i]->name, .style = g->s[i]->style};
        html_line_take(&lines[i], subject_epochs(g->s[i]), "epoch", key);
    }
    html_chart(h, &c);
}

/* Loss by the time that epochs took, which tells a faster run from one with fewer epochs. */
static void draw_over_time(struct html *h, const struct group *g)
{
    struct html_line lines[SUBJECTS];
    const struct html_chart c = {.title = "Test loss by time",
                                 .x = {.name = "seconds of epochs", .from_zero = 1},
                                 .y = {.name = "mean loss"},
                                 .lines = lines,
                                 .lines_n = g->n};
    for (size_t i = 0; i < g->n; i++) {
        double sum = 0;
        lines[i] = (struct html_line){.name = g->s[i]->name, .style = g->s[i]->style};
        html_line_take(&lines[i], subject_epochs(g->s[i]), "epoch", "test_loss");
        struct html_line seconds = {.n = 0};
        html_line_take(&seconds, subject_epochs(g->s[i]), "epoch", "seconds");
        if (json_array_size(subject_epochs(g->s[i])) > HTML_POINTS) return; /* some are left out */
        for (size_t k = 0; k < lines[i].n; k++) {
            if (seconds.y[k] > 0) sum += seconds.y[k];
            lines[i].x[k] = sum;
        }
    }
    html_chart(h, &c);
}

static void draw_all(struct html *h, const struct group *g)
{
    html_raw(h, "<div class=\"charts\">\n");
    draw(h, g, "Test loss by epoch", "mean loss", "test_loss");
    draw(h, g, "Training loss by epoch", "mean loss", "train_loss");
    draw_over_time(h, g);
    for (const struct section_metric *m = section_metrics(); m->key; m++) {
        char title[64];
        (void)snprintf(title, sizeof(title), "Test %s by epoch", m->name);
        draw(h, g, title, m->name, m->key);
    }
    html_raw(h, "</div>\n");
}

/* ---- Results ---- */

/* Where a number of a training is. */
struct result {
    const char *what, *in,
        *key;           /* of the training, or of its object `in`; "best": the best epoch */
    const char *format; /* NULL: bytes */
};

static const json_t *object_of(const struct subject *s, const char *in)
{
    if (!in) return s->training;
    return strcmp(in, "best") == 0 ? section_best_epoch(s) : json_object_get(s->training, in);
}

static void write_result(struct html_table *t, const struct group *g, const struct result *r)
{
    int known = 0;
    for (size_t i = 0; i < g->n; i++)
        known |= json_is_number(json_object_get(object_of(g->s[i], r->in), r->key));
    if (!known) return;
    html_row_begin(t, r->what, 0);
    for (size_t i = 0; i < g->n; i++) {
        const json_t *in = object_of(g->s[i], r->in);
        html_cell_value(t, json_object_get(in, r->key),
                        r->format ? number_of(in, r->key, r->format) : size_of(in, r->key));
    }
    html_row_end(t);
}

static void write_results(struct html *h, const struct group *g)
{
    static const struct result results[] = {
        {"epoch: the model's, or the best", "best", "epoch", "%.0f"},
        {"test loss", "best", "test_loss", "%.6f"},
        {"training loss", "best", "train_loss", "%.6f"},
        {"AUC", "best", "test_auc", "%.5f"},
        {"accuracy", "best", "test_accuracy", "%.5f"},
        {"RMSE", "best", "test_rmse", "%.5f"},
        {"recall@10", "best", "test_recall_at_10", "%.5f"},
        {"NDCG@10", "best", "test_ndcg_at_10", "%.5f"},
        {"samples/s", "best", "samples_per_s", "%.0f"},
        {"seconds in all", NULL, "seconds", "%.2f"},
        {"largest resident set", NULL, "peak_rss_bytes", NULL},
        {"parameters", NULL, "model_bytes", NULL},
        {"rows read", "io", "read_bytes", NULL},
        {"rows written", "io", "written_bytes", NULL},
        {"waited for rows, s", "stalls", "seconds", "%.2f"},
    };
    struct html_table t;
    html_table_begin(&t, h, "Results", g->columns, g->n + 1);
    for (size_t i = 0; i < sizeof(results) / sizeof(*results); i++)
        write_result(&t, g, &results[i]);
    html_table_end(&t);
}

/* ---- Options ---- */

/* Where an option is: in the manifest, its training, or an object of that. */
struct option {
    const char *what, *in, *key; /* in: NULL the manifest, "" the training */
};

static const char *value_of(const struct subject *s, const struct option *o, char out[VALUE_BYTES])
{
    const json_t *in = !o->in     ? s->json
                       : o->in[0] ? json_object_get(s->training, o->in)
                                  : s->training;
    const json_t *v = json_object_get(in, o->key);
    if (json_is_string(v))
        (void)snprintf(out, VALUE_BYTES, "%s", json_string_value(v));
    else if (json_is_integer(v) && strstr(o->key, "bytes"))
        (void)snprintf(out, VALUE_BYTES, "%s", size_of(in, o->key));
    else if (json_is_number(v))
        (void)snprintf(out, VALUE_BYTES, "%.7g", json_number_value(v));
    else
        (void)snprintf(out, VALUE_BYTES, "%s",
                       json_is_true(v)    ? "yes"
                       : json_is_false(v) ? "no"
                                          : "-");
    return out;
}

static int differs(const struct group *g, const struct option *o)
{
    char first[VALUE_BYTES], other[VALUE_BYTES];
    (void)value_of(g->s[0], o, first);
    for (size_t i = 1; i < g->n; i++)
        if (strcmp(first, value_of(g->s[i], o, other)) != 0) return 1;
    return 0;
}

static void write_options(struct html *h, const struct group *g)
{
    static const struct option options[] = {
        {"algorithm", NULL, "algo"},
        {"loss", NULL, "loss"},
        {"expression", NULL, "expression"},
        {"factors", NULL, "factors"},
        {"plan", NULL, "plan"},
        {"rows", NULL, "rows"},
        {"seed", NULL, "seed"},
        {"init scale", NULL, "init_scale"},
        {"optimizer", "optimizer", "name"},
        {"learning rate", "optimizer", "lr"},
        {"l1", "optimizer", "l1"},
        {"l2", "optimizer", "l2"},
        {"eps", "optimizer", "eps"},
        {"beta", "optimizer", "beta"},
        {"beta1", "optimizer", "beta1"},
        {"beta2", "optimizer", "beta2"},
        {"decay of the rate", "", "lr_decay"},
        {"mean of a batch", "", "batch_mean"},
        {"steps sample by sample", "", "local_steps"},
        {"patience", "", "patience"},
        {"metric", "", "metric"},
        {"store", "", "store"},
        {"store of the model", "", "model_store"},
        {"memory", "memory", "limit_bytes"},
        {"threads", "", "threads"},
        {"rounds of ranks", "", "sync"},
        {"staleness", "", "staleness"},
        {"rate for stale gradients", "", "lr_stale"},
        {"lambda of wsp", "wsp", "lambda"},
        {"ema of wsp", "wsp", "ema"},
        {"patience of wsp", "wsp", "patience"},
        {"content of the model", NULL, "content"},
    };
    struct html_table t;
    char text[VALUE_BYTES];
    size_t rows = 0;
    html_table_begin(&t, h, "What differs", g->columns, g->n + 1);
    for (size_t k = 0; k < sizeof(options) / sizeof(*options); k++) {
        if (!differs(g, &options[k])) continue;
        html_row_begin(&t, options[k].what, 0);
        for (size_t i = 0; i < g->n; i++)
            html_cell(&t, value_of(g->s[i], &options[k], text));
        html_row_end(&t);
        rows++;
    }
    if (!rows) {
        html_row_begin(&t, "nothing: options and parameters are the same", 0);
        html_row_end(&t);
    }
    html_table_end(&t);
}

void section_comparison(struct html *h, const struct subject *subjects, size_t n)
{
    struct group g = {.columns = {{"", 0}}};
    for (size_t i = 0; i < n && g.n < SUBJECTS; i++) {
        if (!subjects[i].training) continue;
        g.columns[g.n + 1] = (struct html_column){subjects[i].name, 1};
        g.s[g.n++] = &subjects[i];
    }
    if (g.n < 2) return;
    html_raw(h, "<section><h2 class=\"first\" id=\"compare\">Side by side</h2>\n");
    draw_all(h, &g);
    write_results(h, &g);
    for (size_t i = 0; i <= g.n; i++)
        g.columns[i].number = 0; /* options are texts */
    write_options(h, &g);
    html_raw(h, "</section>\n");
}
