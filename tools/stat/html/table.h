/* Tables, with what a screen reader needs: a caption, and headers of columns and rows. A number
 * stands in a data element with all its digits. Private to tools/stat/html/. */
#ifndef DRPS_TOOLS_STAT_HTML_TABLE_H
#define DRPS_TOOLS_STAT_HTML_TABLE_H

#include <jansson.h>

#include "tools/stat/html/writer.h"

struct html_column {
    const char *name;
    int number; /* its cells end at the right */
};

/* A table that is being written. */
struct html_table {
    struct html *h;
    const struct html_column *columns; /* borrowed, [n]; the first is that of the rows' heads */
    size_t n, at;
};

/* With more columns than that a narrow screen shows a row as a block of lines. */
enum { HTML_NARROW = 2 };

void html_table_begin(struct html_table *t, struct html *h, const char *caption,
                      const struct html_column *columns, size_t n);
void html_table_end(struct html_table *t);

/* `best`: the row is set off from the others. */
void html_row_begin(struct html_table *t, const char *head, int best);
void html_row_end(struct html_table *t);

/* The next cell. A value's text is shown, "-" where there is none; the number beside it is for
 * programs. */
void html_cell(struct html_table *t, const char *text);
void html_cell_value(struct html_table *t, const json_t *value, const char *text);

/* A bar of `share` (0 to 1) of the cell's width; for eyes alone, as its number stands beside it. */
void html_cell_bar(struct html_table *t, double share, unsigned style);

/* A table of two columns, what and value: its rows. */
void html_pairs_begin(struct html_table *t, struct html *h, const char *caption);
void html_pair(struct html_table *t, const char *what, const char *text);
void html_pair_value(struct html_table *t, const char *what, const json_t *value, const char *text);

#endif
