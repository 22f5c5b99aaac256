#include "tools/stat/html/markers.h"

#include "tools/stat/html/style.h"

/* Around 0,0. */
static const char *const shapes[HTML_STYLES] = {
    "M-3.2 0a3.2 3.2 0 1 0 6.4 0a3.2 3.2 0 1 0 -6.4 0z",          /* a disc */
    "M-3 -3h6v6h-6z",                                             /* a square */
    "M0 -4L3.8 3H-3.8z",                                          /* a triangle */
    "M0 -4.2L4.2 0L0 4.2L-4.2 0z",                                /* a diamond */
    "M-1.2 -4h2.4v2.8h2.8v2.4h-2.8v2.8h-2.4v-2.8h-2.8v-2.4h2.8z", /* a cross */
    "M0 4L3.8 -3H-3.8z",                                          /* a triangle, head down */
};

void html_marker(struct html *h, unsigned style, double x, double y)
{
    style %= HTML_STYLES;
    html_print(h, "<path class=\"f%u\" transform=\"translate(%.2f %.2f)\" d=\"%s\"/>", style, x, y,
               shapes[style]);
}

void html_legend_item(struct html *h, const char *name, unsigned style, int with_marker)
{
    html_print(h,
               "<li><svg viewBox=\"0 0 36 16\" aria-hidden=\"true\"><path class=\"line s%u\" "
               "d=\"M2 8H34\"/>",
               style % HTML_STYLES);
    if (with_marker) html_marker(h, style, 18, 8);
    html_raw(h, "</svg>");
    html_element(h, "span", name);
    html_raw(h, "</li>\n");
}
