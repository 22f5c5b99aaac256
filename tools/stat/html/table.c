/* Roles are written out because a table that is shown in blocks is no table for browsers. */
#include "tools/stat/html/table.h"

#include <string.h>

#include "tools/stat/html/style.h"

static const struct html_column pair_columns[] = {{"what", 0}, {"value", 0}};

void html_table_begin(struct html_table *t, struct html *h, const char *caption,
                      const struct html_column *columns, size_t n)
{
    *t = (struct html_table){.h = h, .columns = columns, .n = n};
    html_print(h, "<table role=\"table\"%s><caption>", n > HTML_NARROW ? " class=\"wide\"" : "");
    html_text(h, caption);
    html_raw(h, "</caption>\n<thead role=\"rowgroup\"><tr role=\"row\">");
    for (size_t i = 0; i < n; i++) {
        html_print(h, "<th role=\"columnheader\" scope=\"col\"%s>",
                   columns[i].number ? " class=\"n\"" : "");
        html_text(h, columns[i].name);
        html_raw(h, "</th>");
    }
    html_raw(h, "</tr></thead>\n<tbody role=\"rowgroup\">\n");
}

void html_table_end(struct html_table *t)
{
    html_raw(t->h, "</tbody></table>\n");
}

/* Opens a cell of the next column, which it names for narrow screens. */
static void begin_cell(struct html_table *t, const char *tag, const char *role, const char *class)
{
    const struct html_column *column = &t->columns[t->at < t->n ? t->at : t->n - 1];
    t->at++;
    html_print(t->h, "<%s role=\"%s\"", tag, role);
    if (column->number || class[0])
        html_print(t->h, " class=\"%s%s\"", class, column->number ? "n" : "");
    html_raw(t->h, " data-name=\"");
    html_text(t->h, column->name);
    html_raw(t->h, "\"");
}

void html_row_begin(struct html_table *t, const char *head, int best)
{
    t->at = 0;
    html_print(t->h, "<tr role=\"row\"%s>", best ? " class=\"best\"" : "");
    begin_cell(t, "th", "rowheader", "");
    html_raw(t->h, " scope=\"row\">");
    html_text(t->h, head);
    html_raw(t->h, "</th>");
}

void html_row_end(struct html_table *t)
{
    html_raw(t->h, "</tr>\n");
}

void html_cell(struct html_table *t, const char *text)
{
    begin_cell(t, "td", "cell", "");
    html_raw(t->h, text && strcmp(text, "-") == 0 ? " data-value=\"-\">" : ">");
    html_text(t->h, text);
    html_raw(t->h, "</td>");
}

void html_cell_value(struct html_table *t, const json_t *value, const char *text)
{
    if (!json_is_number(value)) {
        html_cell(t, "-");
        return;
    }
    begin_cell(t, "td", "cell", "");
    if (json_is_integer(value))
        html_print(t->h, "><data value=\"%lld\">", (long long)json_integer_value(value));
    else
        html_print(t->h, "><data value=\"%.17g\">", json_real_value(value));
    html_text(t->h, text);
    html_raw(t->h, "</data></td>");
}

void html_cell_bar(struct html_table *t, double share, unsigned style)
{
    const double width = share > 0 ? (share < 1 ? 100 * share : 100) : 0; /* NaN: 0 */
    begin_cell(t, "td", "cell", "b");
    html_print(t->h,
               " aria-hidden=\"true\"><svg class=\"bar\" viewBox=\"0 0 100 10\" "
               "preserveAspectRatio=\"none\"><rect class=\"back\" width=\"100\" height=\"10\"/>"
               "<rect class=\"f%u\" width=\"%.2f\" height=\"10\"/></svg></td>",
               style % HTML_STYLES, width);
}

void html_pairs_begin(struct html_table *t, struct html *h, const char *caption)
{
    html_table_begin(t, h, caption, pair_columns, 2);
}

void html_pair(struct html_table *t, const char *what, const char *text)
{
    if (!text || !text[0] || strcmp(text, "-") == 0) return; /* not known */
    html_row_begin(t, what, 0);
    html_cell(t, text);
    html_row_end(t);
}

void html_pair_value(struct html_table *t, const char *what, const json_t *value, const char *text)
{
    if (!json_is_number(value)) return;
    html_row_begin(t, what, 0);
    html_cell_value(t, value, text);
    html_row_end(t);
}
