#include "tools/stat/html/chart.h"

#include <math.h>
#include <string.h>

#include "tools/stat/html/markers.h"

enum { MARKED_POINTS = 40 /* a line with more has no shapes on them */, DIGIT_WIDTH = 8 };
#define LARGEST 1e100 /* what is larger is no measurement */

/* ---- Lines ---- */

static double number_or_nan(const json_t *v)
{
    const double d = json_is_number(v) ? json_number_value(v) : (double)NAN;
    return fabs(d) <= LARGEST ? d : (double)NAN;
}

void html_line_take(struct html_line *line, const json_t *list, const char *x_key,
                    const char *y_key)
{
    const size_t n = json_array_size(list);
    line->n = 0;
    for (size_t i = 0; i < n && i < HTML_POINTS; i++) {
        const size_t at = n > HTML_POINTS ? i * (n - 1) / (HTML_POINTS - 1) : i;
        const json_t *j = json_array_get(list, at);
        const double x = x_key ? number_or_nan(json_object_get(j, x_key)) : (double)at + 1;
        if (isnan(x)) continue;
        line->x[line->n] = x;
        line->y[line->n++] = number_or_nan(json_object_get(j, y_key));
    }
}

int html_line_is_known(const struct html_line *line)
{
    for (size_t i = 0; i < line->n; i++)
        if (!isnan(line->y[i])) return 1;
    return 0;
}

/* ---- Figures ---- */

void html_figure_begin(struct html *h, const char *title)
{
    const unsigned id = ++h->ids;
    html_raw(h, "<figure>");
    html_element(h, "figcaption", title);
    html_print(h,
               "<svg viewBox=\"0 0 %d %d\" role=\"img\" aria-labelledby=\"t%u d%u\"><title "
               "id=\"t%u\">",
               HTML_CHART_WIDTH, HTML_CHART_HEIGHT, id, id, id);
    html_text(h, title);
    html_print(h, "</title><desc id=\"d%u\">", id);
}

void html_figure_described(struct html *h)
{
    html_raw(h, "</desc>\n");
}

double html_chart_y(const struct html_scale *y, double v)
{
    return HTML_CHART_BOTTOM - html_scale_at(y, v) * (HTML_CHART_BOTTOM - HTML_CHART_TOP);
}

static double chart_x(const struct html_scale *x, double left, double v)
{
    return left + html_scale_at(x, v) * (HTML_CHART_RIGHT - left);
}

static void vertical_axis(struct html *h, const struct html_scale *y, double left)
{
    for (size_t i = 0; i < y->ticks; i++) {
        const double at = html_chart_y(y, y->tick[i]);
        html_print(h, "<path class=\"grid\" d=\"M%.1f %.1fH%d\"/>", left, at, HTML_CHART_RIGHT);
        html_print(h, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"end\">%s</text>\n", left - 5,
                   at + 4, y->text[i]);
    }
}

static void horizontal_axis(struct html *h, const struct html_scale *x, double left)
{
    html_print(h, "<path class=\"axis\" d=\"M%.1f %dH%d\"/>", left, HTML_CHART_BOTTOM,
               HTML_CHART_RIGHT);
    for (size_t i = 0; i < x->ticks; i++) {
        const double at = chart_x(x, left, x->tick[i]);
        html_print(h, "<path class=\"axis\" d=\"M%.1f %dv4\"/>", at, HTML_CHART_BOTTOM);
        html_print(h, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"%s\">%s</text>\n", at,
                   HTML_CHART_BOTTOM + 17, at > HTML_CHART_RIGHT - 20 ? "end" : "middle",
                   x->text[i]);
    }
}

double html_axes(struct html *h, const struct html_scale *x, const char *x_name,
                 const struct html_scale *y, const char *y_name)
{
    size_t longest = 2;
    for (size_t i = 0; i < y->ticks; i++)
        if (strlen(y->text[i]) > longest) longest = strlen(y->text[i]);
    const double left = 12 + DIGIT_WIDTH * (double)longest;
    vertical_axis(h, y, left);
    horizontal_axis(h, x, left);
    html_raw(h, "<text x=\"4\" y=\"13\">");
    html_text(h, y_name);
    html_print(h, "</text><text x=\"%d\" y=\"%d\" text-anchor=\"end\">", HTML_CHART_RIGHT,
               HTML_CHART_HEIGHT - 4);
    html_text(h, x_name);
    html_raw(h, "</text>\n");
    return left;
}

/* ---- A chart of lines ---- */

struct range {
    double least, most;
};

static void widen(struct range *r, double v)
{
    if (isnan(v)) return;
    if (!(r->least <= v)) r->least = v;
    if (!(r->most >= v)) r->most = v;
}

static void ranges_of(const struct html_chart *c, struct range *x, struct range *y)
{
    *x = *y = (struct range){INFINITY, -INFINITY};
    for (size_t i = 0; i < c->lines_n; i++)
        for (size_t k = 0; k < c->lines[i].n; k++) {
            if (isnan(c->lines[i].y[k])) continue;
            widen(x, c->lines[i].x[k]);
            widen(y, c->lines[i].y[k]);
        }
    for (size_t i = 0; i < c->levels_n; i++)
        widen(y, c->levels[i].y);
}

/* Says of a line where it begins and ends, and its least and most. */
static void describe_line(struct html *h, const struct html_chart *c, const struct html_line *line)
{
    struct range y = {INFINITY, -INFINITY};
    char from[HTML_TICK_BYTES], to[HTML_TICK_BYTES], least[HTML_TICK_BYTES], most[HTML_TICK_BYTES];
    double first = (double)NAN, last = (double)NAN;
    for (size_t k = 0; k < line->n; k++) {
        if (isnan(line->y[k])) continue;
        widen(&y, line->y[k]);
        if (isnan(first)) first = line->y[k];
        last = line->y[k];
    }
    if (isnan(first)) return;
    html_axis_text(&c->y, first, from);
    html_axis_text(&c->y, last, to);
    html_axis_text(&c->y, y.least, least);
    html_axis_text(&c->y, y.most, most);
    html_text(h, line->name);
    html_print(h, ": from %s to %s, at least %s, at most %s. ", from, to, least, most);
}

static void describe(struct html *h, const struct html_chart *c)
{
    html_text(h, c->y.name);
    html_raw(h, " by ");
    html_text(h, c->x.name);
    html_raw(h, ". ");
    for (size_t i = 0; i < c->lines_n; i++)
        describe_line(h, c, &c->lines[i]);
    for (size_t i = 0; i < c->levels_n; i++) {
        char text[HTML_TICK_BYTES];
        if (isnan(c->levels[i].y)) continue;
        html_axis_text(&c->y, c->levels[i].y, text);
        html_text(h, c->levels[i].name);
        html_print(h, ": %s. ", text);
    }
}

static void draw_line(struct html *h, const struct html_line *line, const struct html_scale *x,
                      const struct html_scale *y, double left)
{
    int drawn = 0;
    html_print(h, "<path class=\"line s%u\" d=\"", line->style);
    for (size_t k = 0; k < line->n; k++) {
        const double v = line->y[k];
        if (isnan(v))
            drawn = 0; /* a gap */
        else
            html_print(h, "%c%.2f %.2f", drawn++ ? 'L' : 'M', chart_x(x, left, line->x[k]),
                       html_chart_y(y, v));
    }
    html_raw(h, "\"/>\n");
    for (size_t k = 0; k < line->n && line->n <= MARKED_POINTS; k++)
        if (!isnan(line->y[k]))
            html_marker(h, line->style, chart_x(x, left, line->x[k]), html_chart_y(y, line->y[k]));
}

static void draw_legend(struct html *h, const struct html_chart *c, int marked)
{
    html_raw(h, "<ul class=\"legend\">\n");
    for (size_t i = 0; i < c->lines_n; i++)
        if (html_line_is_known(&c->lines[i]))
            html_legend_item(h, c->lines[i].name, c->lines[i].style,
                             c->lines[i].n <= MARKED_POINTS);
    for (size_t i = 0; i < c->levels_n; i++)
        if (!isnan(c->levels[i].y)) html_legend_item(h, c->levels[i].name, c->levels[i].style, 0);
    if (marked) {
        html_raw(h, "<li><svg viewBox=\"0 0 36 16\" aria-hidden=\"true\"><circle class=\"ring\" "
                    "cx=\"18\" cy=\"8\" r=\"6\"/></svg>");
        html_element(h, "span", c->mark);
        html_raw(h, "</li>\n");
    }
    html_raw(h, "</ul></figure>\n");
}

void html_chart(struct html *h, const struct html_chart *c)
{
    struct range in_x, in_y;
    struct html_scale x, y;
    const int marked = c->mark && !isnan(c->mark_x) && !isnan(c->mark_y);
    ranges_of(c, &in_x, &in_y);
    if (!(in_x.least <= in_x.most) || (c->x.doubles && !(in_x.least > 0))) return;
    html_scale_make(&x, &c->x, in_x.least, in_x.most);
    html_scale_make(&y, &c->y, in_y.least, in_y.most);
    html_figure_begin(h, c->title);
    describe(h, c);
    html_figure_described(h);
    const double left = html_axes(h, &x, c->x.name, &y, c->y.name);
    for (size_t i = 0; i < c->levels_n; i++)
        if (!isnan(c->levels[i].y))
            html_print(h, "<path class=\"line s%u\" d=\"M%.1f %.2fH%d\"/>\n", c->levels[i].style,
                       left, html_chart_y(&y, c->levels[i].y), HTML_CHART_RIGHT);
    for (size_t i = 0; i < c->lines_n; i++)
        draw_line(h, &c->lines[i], &x, &y, left);
    if (marked)
        html_print(h, "<circle class=\"ring\" cx=\"%.2f\" cy=\"%.2f\" r=\"7\"/>\n",
                   chart_x(&x, left, c->mark_x), html_chart_y(&y, c->mark_y));
    html_raw(h, "</svg>\n");
    draw_legend(h, c, marked);
}
