/* Charts as SVG in the page: lines over an axis, and histograms. Each has a title and a description
 * in words. Lines differ in colour, dashes and the shape of their points, and a legend names them.
 * Private to tools/stat/html/. */
#ifndef DRPS_TOOLS_STAT_HTML_CHART_H
#define DRPS_TOOLS_STAT_HTML_CHART_H

#include <jansson.h>

#include "tools/stat/html/scale.h"
#include "tools/stat/html/writer.h"

enum { HTML_POINTS = 256 };

/* A line. Points whose y is NaN are not known, and left out. */
struct html_line {
    const char *name;
    unsigned style;
    size_t n;
    double x[HTML_POINTS], y[HTML_POINTS];
};

/* A straight line at y, from end to end. NaN: not known. */
struct html_level {
    const char *name;
    unsigned style;
    double y;
};

struct html_chart {
    const char *title;
    struct html_axis x, y;
    const struct html_line *lines; /* borrowed, [lines_n] */
    size_t lines_n;
    const struct html_level *levels; /* borrowed, [levels_n] */
    size_t levels_n;
    const char *mark; /* what a ring round a point is; NULL: none */
    double mark_x, mark_y;
};

/* Nothing is drawn where no point is known. */
void html_chart(struct html *h, const struct html_chart *c);

/* Fill the line with members of the objects in `list`: x of `x_key` (NULL: 1, 2, ...), y of
 * `y_key`. Of more than HTML_POINTS some are left out, but not the first and the last. Other
 * members than numbers are not known. */
void html_line_take(struct html_line *line, const json_t *list, const char *x_key,
                    const char *y_key);
int html_line_is_known(const struct html_line *line); /* 1: it has a point */

/* Latencies: the member `counts` of `latency`, buckets of drps_iostat.h from number `first` on.
 * Nothing where there are none. */
void html_histogram(struct html *h, const char *title, const json_t *latency, unsigned style);

/* ---- Parts, for both ---- */

enum {
    HTML_CHART_WIDTH = 360, /* user units, which a narrow screen shows about as pixels */
    HTML_CHART_HEIGHT = 230,
    HTML_CHART_TOP = 24,
    HTML_CHART_BOTTOM = 192, /* y of the lower axis */
    HTML_CHART_RIGHT = 350
};

/* <figure> up to the description, which the caller writes as text and then ends. */
void html_figure_begin(struct html *h, const char *title);
void html_figure_described(struct html *h);
/* The axes with ticks and names; returns the x where the vertical one is. */
double html_axes(struct html *h, const struct html_scale *x, const char *x_name,
                 const struct html_scale *y, const char *y_name);
double html_chart_y(const struct html_scale *y, double v);

#endif
