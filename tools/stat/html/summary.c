/* What a model or a plan is, in a table, and how it was asked for. */
#include <stdio.h>

#include "tools/drps_json_text.h"
#include "tools/stat/html/sections.h"
#include "tools/stat/html/table.h"

enum { LIST_BYTES = 400 /* of a list of names */, TEXT = 160 };

/* Some of the names, and how many there are. */
static void pair_list(struct html_table *t, const char *what, const json_t *names)
{
    char text[LIST_BYTES];
    size_t used = 0, i;
    const size_t n = json_array_size(names);
    if (!n) return;
    used += (size_t)snprintf(text, sizeof(text), "%zu:", n);
    for (i = 0; i < n; i++) {
        const char *name = json_string_value(json_array_get(names, i));
        const size_t length = json_string_length(json_array_get(names, i));
        if (!name || used + length + 8 > sizeof(text)) break;
        used += (size_t)snprintf(text + used, sizeof(text) - used, "%s %s", i ? "," : "", name);
    }
    if (i < n) (void)snprintf(text + used, sizeof(text) - used, ", ...");
    html_pair(t, what, text);
}

static void pair_optimizer(struct html_table *t, const json_t *training)
{
    const json_t *o = json_object_get(training, "optimizer");
    char text[TEXT];
    if (!json_is_object(o)) return;
    (void)snprintf(text, sizeof(text), "%.32s, learning rate %s, l1 %s, l2 %s", text_of(o, "name"),
                   number_of(o, "lr", "%g"), number_of(o, "l1", "%g"), number_of(o, "l2", "%g"));
    html_pair(t, "optimizer", text);
}

/* How the training ended. */
static void pair_end(struct html_table *t, const json_t *training)
{
    char text[TEXT];
    const size_t n = json_array_size(json_object_get(training, "epochs"));
    const json_t *unfinished = json_object_get(training, "unfinished");
    if (json_is_object(unfinished))
        (void)snprintf(text, sizeof(text),
                       "%zu; not finished: epoch %s is under way, %s batches of it are done", n,
                       count_of(unfinished, "epoch"), count_of(unfinished, "step"));
    else
        (void)snprintf(text, sizeof(text), "%zu; the model is of epoch %s%s%s", n,
                       count_of(training, "best_epoch"),
                       json_is_true(json_object_get(training, "stopped_early")) ? "; stopped early"
                                                                                : "",
                       json_is_true(json_object_get(training, "interrupted"))
                           ? "; interrupted before the last epoch ended"
                           : "");
    html_pair(t, "epochs", text);
    if (!number_at(training, "diverged_epoch")) return;
    (void)snprintf(text, sizeof(text), "in epoch %s", count_of(training, "diverged_epoch"));
    html_pair(t, "diverged", text);
}

static void pairs_of_training(struct html_table *t, const struct subject *s)
{
    const json_t *training = s->training;
    if (json_is_string(json_object_get(training, "imported"))) {
        html_pair(t, "imported from", text_of(training, "imported"));
        return;
    }
    html_pair_value(t, "parameters", json_object_get(training, "model_bytes"),
                    size_of(training, "model_bytes"));
    pair_optimizer(t, training);
    html_pair(t, "store of rows", text_of(training, "store"));
    html_pair_value(t, "threads", json_object_get(training, "threads"),
                    count_of(training, "threads"));
    if (json_array_size(json_object_get(training, "ranks")) > 1)
        html_pair(t, "rounds of ranks", text_of(training, "sync"));
    pair_end(t, training);
    html_pair_value(t, "seconds", json_object_get(training, "seconds"),
                    number_of(training, "seconds", "%.2f"));
}

static void write_warnings(struct html *h, const json_t *training)
{
    size_t i;
    json_t *text;
    json_array_foreach(json_object_get(training, "warnings"), i, text)
    {
        html_raw(h, "<p class=\"warn\"><strong>Warning:</strong> ");
        html_text(h, json_string_value(text));
        html_raw(h, "</p>\n");
    }
}

static void write_command(struct html *h, const char *command)
{
    if (!command) return;
    html_raw(h, "<pre><code>");
    html_text(h, command);
    html_raw(h, "</code></pre>\n");
}

static void write_commands(struct html *h, const struct subject *s)
{
    html_element(h, "h3", "Command lines");
    write_command(h, s->plan_command);
    write_command(h, s->command);
    if (s->plan_command || s->command) return;
    html_raw(h, "<p class=\"dim\">Not kept: by checkpoints, by programs that call the library, and "
                "by earlier versions.</p>\n");
}

void section_summary(struct html *h, const struct subject *s)
{
    static const char *const kinds[] = {[FOLDER_MODEL] = "model",
                                        [FOLDER_TRAINED] = "what was trained, and is no model yet",
                                        [FOLDER_CHECKPOINTS] = "checkpoints of a run",
                                        [FOLDER_PLAN] = "plan"};
    const json_t *j = s->json;
    struct html_table t;
    html_pairs_begin(&t, h, "Summary");
    html_pair(&t, "folder", s->path);
    html_pair(&t, "kind", kinds[s->kind]);
    html_pair(&t, "algorithm", text_of(j, "algo"));
    html_pair(&t, "loss", text_of(j, "loss"));
    html_pair(&t, "expression", text_of(j, "expression"));
    html_pair(&t, "net", text_of(j, "net"));
    if (number_at(j, "factors"))
        html_pair_value(&t, "factors", json_object_get(j, "factors"), count_of(j, "factors"));
    html_pair(&t, "format of the data", text_of(j, "format"));
    html_pair(&t, "label", text_of(j, "label_column"));
    pair_list(&t, "classes", json_object_get(j, "classes"));
    pair_list(&t, "fields", json_object_get(j, "fields"));
    html_pair_value(&t, "rows", json_object_get(j, "rows"), count_of(j, "rows"));
    html_pair_value(&t, "floats of a row", json_object_get(j, "dim"), count_of(j, "dim"));
    if (s->training) pairs_of_training(&t, s);
    html_pair(&t, s->kind == FOLDER_PLAN ? "id" : "plan",
              text_of(j, s->kind == FOLDER_PLAN ? "id" : "plan"));
    html_pair(&t, "content", text_of(j, "content"));
    html_pair(&t, "made by", text_of(j, "made_by"));
    html_table_end(&t);
    write_warnings(h, s->training);
    write_commands(h, s);
}
