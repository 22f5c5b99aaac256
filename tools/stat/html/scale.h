/* Axes: from the least to the most, with round numbers as ticks. Private to tools/stat/html/. */
#ifndef DRPS_TOOLS_STAT_HTML_SCALE_H
#define DRPS_TOOLS_STAT_HTML_SCALE_H

#include <stddef.h>

enum { HTML_TICKS = 12, HTML_TICK_BYTES = 32 };

enum html_unit { HTML_NUMBER, HTML_BYTES, HTML_SECONDS };

struct html_axis {
    const char *name;
    enum html_unit unit;
    int whole;     /* ticks are whole numbers */
    int from_zero; /* it begins with 0 */
    int doubles;   /* equal distances are equal factors; ticks are powers of 2, of values above 0 */
};

struct html_scale {
    double least, most; /* ends of the axis */
    int doubles;
    size_t ticks;
    double tick[HTML_TICKS];
    char text[HTML_TICKS][HTML_TICK_BYTES]; /* of each tick */
};

/* least <= most, both finite; equal ones are moved apart. */
void html_scale_make(struct html_scale *s, const struct html_axis *axis, double least, double most);

/* Where v lies: 0 (least) to 1 (most); less and more beyond the ends. */
double html_scale_at(const struct html_scale *s, double v);

/* A value of the axis, as a text: "1.5 MiB", "0.25". */
void html_axis_text(const struct html_axis *axis, double v, char out[HTML_TICK_BYTES]);

#endif
