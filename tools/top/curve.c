/* A curve of characters. */
#include "tools/top/curve.h"

#include <math.h>
#include <string.h>

/* Each two points become one, the later: what was seen last matters most. */
static void halve(struct curve *c)
{
    for (size_t i = 0; i < c->n / 2; i++) {
        c->loss[i] = c->loss[2 * i + 1];
        c->test[i] = c->test[2 * i + 1];
    }
    c->n /= 2;
    c->each *= 2;
}

void curve_add(struct curve *c, double loss, double test)
{
    if (!c->each) c->each = 1;
    if (isnan(loss) && isnan(test)) return;
    if (++c->waiting < c->each) return;
    c->waiting = 0;
    if (c->n == CURVE_POINTS) halve(c);
    c->loss[c->n] = loss;
    c->test[c->n] = test;
    c->n++;
}

static void widen(double *least, double *most, double value)
{
    if (!isfinite(value)) return;
    if (!(value >= *least)) *least = value;
    if (!(value <= *most)) *most = value;
}

static void put(char (*lines)[CURVE_WIDTH_MOST + 1], size_t height, size_t x, double share,
                char mark)
{
    if (!isfinite(share)) return;
    const size_t up = (size_t)(share * (double)(height - 1) + 0.5);
    lines[height - 1 - up][x] = mark;
}

int curve_draw(const struct curve *c, size_t width, size_t height,
               char (*lines)[CURVE_WIDTH_MOST + 1], double *least_out, double *most_out)
{
    double least = NAN, most = NAN;
    if (width > CURVE_WIDTH_MOST) width = CURVE_WIDTH_MOST;
    if (!width || !height) return 0;
    const size_t shown = c->n < width ? c->n : width, first = c->n - shown;
    for (size_t i = first; i < c->n; i++) {
        widen(&least, &most, c->loss[i]);
        widen(&least, &most, c->test[i]);
    }
    if (isnan(least)) return 0;
    for (size_t y = 0; y < height; y++) {
        memset(lines[y], ' ', width);
        lines[y][width] = '\0';
    }
    const double span = most > least ? most - least : 1;
    for (size_t i = first; i < c->n; i++) {
        put(lines, height, i - first, (c->test[i] - least) / span, 'o');
        put(lines, height, i - first, (c->loss[i] - least) / span, '*');
    }
    *least_out = least;
    *most_out = most;
    return 1;
}
