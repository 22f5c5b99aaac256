/* How the losses and the metrics on test samples went, epoch by epoch. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tools/drps_json_text.h"
#include "tools/stat/html/chart.h"
#include "tools/stat/html/sections.h"
#include "tools/stat/html/table.h"

enum { ROWS_MOST = 60 /* of the table of epochs */ };

const struct section_metric *section_metrics(void)
{
    static const struct section_metric metrics[] = {{"test_auc", "AUC", 0},
                                                    {"test_accuracy", "accuracy", 0},
                                                    {"test_rmse", "RMSE", 1},
                                                    {"test_recall_at_10", "recall@10", 0},
                                                    {"test_ndcg_at_10", "NDCG@10", 0},
                                                    {NULL, NULL, 0}};
    return metrics;
}

static double loss_of(const json_t *epoch)
{
    const json_t *v = json_object_get(epoch, "test_loss");
    return json_is_number(v) ? json_number_value(v) : (double)NAN;
}

const json_t *section_best_epoch(const struct subject *s)
{
    const json_t *best = NULL;
    const uint64_t number = number_at(s->training, "best_epoch");
    size_t i;
    json_t *e;
    json_array_foreach(subject_epochs(s), i, e)
    {
        if (number ? number_at(e, "epoch") == number : !best || loss_of(e) < loss_of(best))
            best = e;
    }
    return best;
}

static double real_at(const json_t *j, const char *key)
{
    const json_t *v = json_object_get(j, key);
    return json_is_number(v) && fabs(json_number_value(v)) < 1e100 ? json_number_value(v)
                                                                   : (double)NAN;
}

static void draw_losses(struct html *h, const struct subject *s)
{
    struct html_line lines[] = {{.name = "training", .style = 0}, {.name = "test", .style = 1}};
    const json_t *best = section_best_epoch(s);
    const struct html_level levels[] = {
        {"best constant, training", 5, real_at(s->training, "constant_loss")},
        {"best constant, test", 3, real_at(s->training, "test_constant_loss")}};
    struct html_chart c = {.title = "Loss by epoch",
                           .x = {.name = "epoch", .whole = 1},
                           .y = {.name = "mean loss"},
                           .lines = lines,
                           .lines_n = 2,
                           .levels = levels,
                           .levels_n = 2,
                           .mark = "the model's epoch",
                           .mark_x = real_at(best, "epoch"),
                           .mark_y = real_at(best, "test_loss")};
    html_line_take(&lines[0], subject_epochs(s), "epoch", "train_loss");
    html_line_take(&lines[1], subject_epochs(s), "epoch", "test_loss");
    if (isnan(c.mark_y)) c.mark_y = real_at(best, "train_loss");
    if (!number_at(s->training, "best_epoch")) c.mark = "the least test loss";
    html_chart(h, &c);
}

static void draw_metrics(struct html *h, const struct subject *s)
{
    for (const struct section_metric *m = section_metrics(); m->key; m++) {
        char title[64];
        struct html_line line = {.name = m->name, .style = 1};
        const struct html_chart c = {.title = title,
                                     .x = {.name = "epoch", .whole = 1},
                                     .y = {.name = m->name},
                                     .lines = &line,
                                     .lines_n = 1};
        (void)snprintf(title, sizeof(title), "Test %s by epoch", m->name);
        html_line_take(&line, subject_epochs(s), "epoch", m->key);
        html_chart(h, &c);
    }
}

/* ---- The table ---- */

enum { COLUMNS_MOST = 12 };

struct table_column {
    struct html_column head;
    const char *key, *format; /* NULL: bytes */
};

/* The columns of which some epoch has a number. */
static size_t choose_columns(const json_t *epochs, struct table_column out[COLUMNS_MOST])
{
    static const struct table_column all[] = {
        {{"seconds", 1}, "seconds", "%.2f"},
        {{"samples/s", 1}, "samples_per_s", "%.0f"},
        {{"train loss", 1}, "train_loss", "%.6f"},
        {{"test loss", 1}, "test_loss", "%.6f"},
        {{"AUC", 1}, "test_auc", "%.5f"},
        {{"accuracy", 1}, "test_accuracy", "%.5f"},
        {{"RMSE", 1}, "test_rmse", "%.5f"},
        {{"recall@10", 1}, "test_recall_at_10", "%.5f"},
        {{"NDCG@10", 1}, "test_ndcg_at_10", "%.5f"},
        {{"rows read", 1}, "read_bytes", NULL},
        {{"rows written", 1}, "written_bytes", NULL},
    };
    size_t n = 1, i;
    json_t *e;
    out[0] = (struct table_column){{"epoch", 1}, "epoch", "%.0f"};
    for (size_t c = 0; c < sizeof(all) / sizeof(*all); c++) {
        int known = 0;
        json_array_foreach(epochs, i, e)
        {
            known = json_is_number(json_object_get(e, all[c].key));
            if (known) break;
        }
        if (known) out[n++] = all[c];
    }
    return n;
}

static void write_row(struct html_table *t, const struct table_column *columns, size_t n,
                      const json_t *e, const json_t *best)
{
    html_row_begin(t, count_of(e, "epoch"), e == best);
    for (size_t c = 1; c < n; c++)
        html_cell_value(t, json_object_get(e, columns[c].key),
                        columns[c].format ? number_of(e, columns[c].key, columns[c].format)
                                          : size_of(e, columns[c].key));
    html_row_end(t);
}

static void write_table(struct html *h, const struct subject *s)
{
    struct table_column columns[COLUMNS_MOST];
    struct html_column heads[COLUMNS_MOST];
    struct html_table t;
    char caption[96] = "Epochs";
    const json_t *epochs = subject_epochs(s), *best = section_best_epoch(s);
    const size_t n = choose_columns(epochs, columns), rows = json_array_size(epochs);
    const size_t each = rows > ROWS_MOST ? (rows + ROWS_MOST - 1) / ROWS_MOST : 1;
    for (size_t c = 0; c < n; c++)
        heads[c] = columns[c].head;
    if (each > 1)
        (void)snprintf(caption, sizeof(caption), "Epochs: one of %zu, the last and the model's",
                       each);
    html_table_begin(&t, h, caption, heads, n);
    for (size_t i = 0; i < rows; i++) {
        const json_t *e = json_array_get(epochs, i);
        if (i % each == 0 || i + 1 == rows || e == best) write_row(&t, columns, n, e, best);
    }
    html_table_end(&t);
}

void section_learning(struct html *h, const struct subject *s)
{
    if (!json_array_size(subject_epochs(s))) return;
    html_element(h, "h3", "Learning");
    html_raw(h, "<div class=\"charts\">\n");
    draw_losses(h, s);
    draw_metrics(h, s);
    html_raw(h, "</div>\n");
    write_table(h, s);
}
