/* How the page looks: one style sheet in the page, for wide and narrow screens, light and dark, and
 * paper. Private to tools/stat/html/. */
#ifndef DRPS_TOOLS_STAT_HTML_STYLE_H
#define DRPS_TOOLS_STAT_HTML_STYLE_H

/* Colours and dashes of lines, which markers.c has shapes for. The colours differ in lightness,
 * too, so that all who see colours otherwise tell them apart. */
enum { HTML_STYLES = 6 };

/* The text of the style element. It has no character that XML escapes. */
extern const char html_style[];

#endif
