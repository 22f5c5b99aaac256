/* The shapes of points, one for each style of lines. Private to tools/stat/html/. */
#ifndef DRPS_TOOLS_STAT_HTML_MARKERS_H
#define DRPS_TOOLS_STAT_HTML_MARKERS_H

#include "tools/stat/html/writer.h"

void html_marker(struct html *h, unsigned style, double x, double y);

/* A list item: a piece of the line with its point, and the name. */
void html_legend_item(struct html *h, const char *name, unsigned style, int with_marker);

#endif
