/* The tables of rows, and the classes, that a plan, or a model, has. */
#include <stdio.h>
#include <string.h>

#include "tools/stat/print.h"
#include "tools/drps_json_text.h"
#include "tools/drps_training_text.h"

void stat_print_expression(const char *text, uint32_t outputs)
{
    if (text[0]) printf("  loss     %s", text);
    if (text[0] && outputs > 1) printf(", of %u outputs", outputs);
    if (text[0]) printf("\n");
}

void stat_print_net(const char *text)
{
    for (const char *at = text, *end; *at; at = *end ? end + 1 : end) {
        end = strchrnul(at, '\n');
        printf("  %-8s %.*s\n", at == text ? "net" : "", (int)(end - at), at);
    }
}

void stat_print_classes(const struct drps_classes *classes)
{
    char names[1000];
    if (!classes) return;
    printf("  classes  %zu: %s\n", drps_classes_count(classes),
           drps_classes_text(classes, names, sizeof(names)));
}

void stat_print_hashing(const struct drps_hashing *hashing)
{
    char text[DRPS_HASHING_TEXT_BYTES];
    if (hashing->bits)
        printf("  hashing  %s; features are called by the numbers of their bins\n",
               drps_hashing_text(hashing, text));
}

void stat_print_sequences(const struct drps_plan_sequences *s)
{
    if (s->most)
        printf("  sequence %s, at most %u sample%s\n",
               s->lines ? "each line is one" : "text runs on over line ends", s->most,
               s->most == 1 ? "" : "s");
}

void stat_print_tables(const json_t *tables)
{
    size_t i;
    json_t *t;
    json_array_foreach(tables, i, t) printf(
        "  table    %-6s %s, from row %s on: %s\n", text_of(t, "name"),
        counted_of(t, "rows", "row"), count_of(t, "first"), training_rows_are(text_of(t, "name")));
}
