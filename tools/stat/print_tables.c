/* The tables of rows, and the classes, that a plan, or a model, has. */
#include <stdio.h>
#include <string.h>

#include "tools/stat/print.h"
#include "tools/stat/values.h"

/* What a row of a table is learned for; tables of other names are not known. */
static const char *rows_are(const char *table)
{
    static const char *const known[][2] = {
        {"bias", "the intercept"},
        {"w", "a feature's weight each, or its weights, one a class or output"},
        {"wv", "a feature's weight and factors each"},
        {"user", "a user's bias and factors each"},
        {"own", "a training sample's own numbers each"},
        {"doc", "a training document's code each"},
        {"word", "a word's weights, one a topic"},
        {"item", "an item's bias and factors each"},
        {"rows", "a user's or item's bias and factors each"}};
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if (strcmp(table, known[i][0]) == 0) return known[i][1];
    return "unknown";
}

void stat_print_expression(const char *text, uint32_t outputs)
{
    if (text[0]) printf("  loss     %s", text);
    if (text[0] && outputs > 1) printf(", of %u outputs", outputs);
    if (text[0]) printf("\n");
}

void stat_print_classes(const struct drps_classes *classes)
{
    char names[1000];
    if (!classes) return;
    printf("  classes  %zu: %s\n", drps_classes_count(classes),
           drps_classes_text(classes, names, sizeof(names)));
}

void stat_print_tables(const json_t *tables)
{
    size_t i;
    json_t *t;
    json_array_foreach(tables, i, t)
        printf("  table    %-6s %s rows, from row %s on: %s\n", text_of(t, "name"),
               count_of(t, "rows"), count_of(t, "first"), rows_are(text_of(t, "name")));
}
