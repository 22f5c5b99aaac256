#include "tools/stat/html/scale.h"

#include <math.h>
#include <stdio.h>

static const char *const byte_names[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
enum { BYTE_NAMES = sizeof(byte_names) / sizeof(byte_names[0]), PARTS = 4 /* of an axis */ };

/* The largest unit of bytes of which `v` has at least one. */
static size_t byte_unit(double v)
{
    size_t u = 0;
    while (u + 1 < BYTE_NAMES && v >= ldexp(1, 10 * ((int)u + 1)))
        u++;
    return u;
}

/* The least of 1, 2, 2.5 and 5 times a power of ten that cuts `width` into PARTS at most. */
static double round_step(double width, int whole)
{
    static const double steps[] = {1, 2, 2.5, 5, 10};
    const double power = pow(10, floor(log10(width / PARTS)));
    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        const double step = steps[i] * power;
        if (width / step > PARTS + 0.5 || (whole && step != floor(step))) continue;
        return step;
    }
    return whole ? fmax(1, ceil(width / PARTS)) : 10 * power;
}

/* As many digits behind the point as the step has. */
static void number_text(double v, double step, char out[HTML_TICK_BYTES])
{
    int digits = 0;
    while (digits < 6 && fabs(step * pow(10, digits) - round(step * pow(10, digits))) > 1e-6)
        digits++;
    if (fabs(v) >= 1e6 || (digits == 6 && fabs(v) < 1e-3))
        (void)snprintf(out, HTML_TICK_BYTES, "%.4g", v);
    else
        (void)snprintf(out, HTML_TICK_BYTES, "%.*f", digits, v);
}

void html_axis_text(const struct html_axis *axis, double v, char out[HTML_TICK_BYTES])
{
    const size_t u = axis->unit == HTML_BYTES ? byte_unit(v) : 0;
    if (axis->unit == HTML_BYTES)
        (void)snprintf(out, HTML_TICK_BYTES, "%.3g %s", v / ldexp(1, 10 * (int)u), byte_names[u]);
    else
        (void)snprintf(out, HTML_TICK_BYTES, axis->unit == HTML_SECONDS ? "%.4g s" : "%.6g", v);
}

static void tick_text(const struct html_axis *axis, double v, double step, size_t unit,
                      char out[HTML_TICK_BYTES])
{
    char number[HTML_TICK_BYTES];
    const double size = ldexp(1, 10 * (int)unit);
    number_text(v / size, step / size, number);
    if (axis->unit == HTML_BYTES)
        (void)snprintf(out, HTML_TICK_BYTES, "%.20s %s", number, byte_names[unit]);
    else
        (void)snprintf(out, HTML_TICK_BYTES, "%s", number);
}

static void even_ticks(struct html_scale *s, const struct html_axis *axis)
{
    const size_t unit = axis->unit == HTML_BYTES ? byte_unit(s->most) : 0;
    const double size = ldexp(1, 10 * (int)unit);
    const double step = size * round_step((s->most - s->least) / size, axis->whole && !unit);
    const double first = ceil(s->least / step - 1e-9);
    for (s->ticks = 0; s->ticks < HTML_TICKS; s->ticks++) {
        const double v = (first + (double)s->ticks) * step;
        if (v > s->most + 1e-9 * step) break;
        s->tick[s->ticks] = v;
        tick_text(axis, v, step, unit, s->text[s->ticks]);
    }
}

static void doubling_ticks(struct html_scale *s, const struct html_axis *axis)
{
    const double low = ceil(log2(s->least) - 1e-9), high = floor(log2(s->most) + 1e-9);
    const double step = fmax(1, ceil((high - low + 1) / (PARTS + 1)));
    for (s->ticks = 0; s->ticks < HTML_TICKS; s->ticks++) {
        const double power = low + (double)s->ticks * step;
        if (power > high) break;
        s->tick[s->ticks] = exp2(power);
        html_axis_text(axis, s->tick[s->ticks], s->text[s->ticks]);
    }
}

void html_scale_make(struct html_scale *s, const struct html_axis *axis, double least, double most)
{
    if (axis->from_zero && least > 0) least = 0;
    if (axis->from_zero && most < 0) most = 0;
    const double room = axis->whole || axis->doubles ? 0 : 0.04 * (most - least);
    *s = (struct html_scale){.least = least, .most = most, .doubles = axis->doubles};
    if (!(most - least > 1e-12 * fmax(fabs(least), fabs(most)))) {
        const double apart = axis->whole ? 1 : fmax(0.05 * fabs(most), 1e-9);
        s->least = axis->doubles ? least / 2 : axis->from_zero ? 0 : least - apart;
        s->most = axis->doubles ? most * 2 : most + (axis->from_zero && most == 0 ? 1 : apart);
    } else {
        s->least -= axis->from_zero && least == 0 ? 0 : room;
        s->most += room;
    }
    if (axis->doubles)
        doubling_ticks(s, axis);
    else
        even_ticks(s, axis);
}

double html_scale_at(const struct html_scale *s, double v)
{
    if (s->doubles) return log2(v / s->least) / log2(s->most / s->least);
    return (v - s->least) / (s->most - s->least);
}
