/* Bars of a quarter octave each, over an axis of times that doubles. */
#include <math.h>
#include <stdio.h>

#include "storage/drps_iostat.h"
#include "tools/stat/html/chart.h"
#include "tools/stat/html/style.h"

enum { LEAST_BARS = 12, FEW_BARS = 28 /* up to these 2 and 5 have ticks, too */ };

/* What is drawn. */
struct bars {
    size_t first, n; /* buckets */
    double count[DRPS_LATENCY_BUCKETS];
    double all, most;
};

static int take(struct bars *b, const json_t *latency)
{
    const json_t *counts = json_object_get(latency, "counts");
    const json_int_t first = json_integer_value(json_object_get(latency, "first"));
    const size_t n = json_array_size(counts);
    *b = (struct bars){0};
    if (first < 0 || first >= DRPS_LATENCY_BUCKETS || !n) return 0;
    b->first = (size_t)first;
    for (size_t i = 0; i < n && b->first + i < DRPS_LATENCY_BUCKETS; i++) {
        const double v = json_number_value(json_array_get(counts, i));
        b->count[b->first + i] = v > 0 ? v : 0;
        b->all += b->count[b->first + i];
        if (v > b->most) b->most = v;
        b->n++;
    }
    while (b->n < LEAST_BARS && (b->first || b->first + b->n < DRPS_LATENCY_BUCKETS)) {
        if (b->first) b->first--, b->n++;
        if (b->n < LEAST_BARS && b->first + b->n < DRPS_LATENCY_BUCKETS) b->n++;
    }
    return b->all > 0;
}

/* A time as people say it: 20 us, 5 ms. */
static void time_text(double us, char out[HTML_TICK_BYTES])
{
    if (us < 999.5)
        (void)snprintf(out, HTML_TICK_BYTES, "%.3g \xc2\xb5s", us);
    else
        (void)snprintf(out, HTML_TICK_BYTES, "%.3g ms", us / 1e3);
}

static void time_axis(struct html_scale *x, const struct bars *b)
{
    static const double parts[] = {1, 2, 5};
    *x = (struct html_scale){.least = (double)b->first, .most = (double)(b->first + b->n)};
    for (double power = 1; power < 1e6; power *= 10)
        for (size_t i = 0; i < (b->n > FEW_BARS ? 1 : 3); i++) {
            const double at = 4 * log2(parts[i] * power);
            if (at < x->least || at > x->most || x->ticks == HTML_TICKS) continue;
            x->tick[x->ticks] = at;
            time_text(parts[i] * power, x->text[x->ticks++]);
        }
}

/* The upper end of the bucket in which the share q of all lies. */
static double quantile(const struct bars *b, double q)
{
    double below = 0;
    size_t i = b->first;
    for (; i < b->first + b->n; i++) {
        below += b->count[i];
        if (below >= q * b->all) break;
    }
    return exp2((double)(i + 1) / 4);
}

static void describe(struct html *h, const struct bars *b)
{
    char half[HTML_TICK_BYTES], most[HTML_TICK_BYTES];
    time_text(quantile(b, 0.5), half);
    time_text(quantile(b, 0.99), most);
    html_print(h, "%.0f calls. Half of them took at most %s, 99 of 100 at most %s.", b->all, half,
               most);
}

void html_histogram(struct html *h, const char *title, const json_t *latency, unsigned style)
{
    static const struct html_axis calls = {.name = "calls", .whole = 1, .from_zero = 1};
    struct bars b;
    struct html_scale x, y;
    if (!take(&b, latency)) return;
    time_axis(&x, &b);
    html_scale_make(&y, &calls, 0, b.most);
    html_figure_begin(h, title);
    describe(h, &b);
    html_figure_described(h);
    const double left = html_axes(h, &x, "time of a call", &y, calls.name);
    const double width = (HTML_CHART_RIGHT - left) / (double)b.n;
    for (size_t i = 0; i < b.n; i++) {
        const double top = html_chart_y(&y, b.count[b.first + i]);
        if (!(b.count[b.first + i] > 0)) continue;
        html_print(h,
                   "<rect class=\"f%u\" x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\"/>\n",
                   style % HTML_STYLES, left + (double)i * width + 0.5, top, width - 1,
                   HTML_CHART_BOTTOM - top);
    }
    html_raw(h, "</svg>\n<p class=\"dim\">");
    describe(h, &b);
    html_raw(h, "</p></figure>\n");
}
