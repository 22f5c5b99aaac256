/*
 * The search for a step along a direction, one pass a step. A step is accepted where value and
 * slope meet the weak Wolfe conditions: the value is smaller by a part of what the slope has
 * promised, and the slope is no longer steep. Near the optimum, where the sum of losses has no
 * digits left to tell two values apart, the slope alone decides (the approximate conditions of
 * Hager and Zhang 2005).
 */
#include <math.h>

#include "engine/newton/newton_internal.h"

enum { TRIALS_MOST = 20, BY_SLOPE_MOST = 3 };

static const double ENOUGH = 1e-4, FLATTER = 0.9; /* the conditions' constants */
static const double SAME = 1e-7;                  /* values that differ by less are as good */
static const double LEAST = 0.01, LONGER = 2, LONGEST = 10;
static const double TENTH = 0.1; /* of a step, where slopes have not led to a short one */

void newton_search_begin(struct drps_newton_search *s, double value, double slope, double step)
{
    *s = (struct drps_newton_search){
        .value = value, .slope = slope, .step = step, .low_slope = slope, .high = INFINITY};
}

static int is_lower(const struct drps_newton_search *s, double value, double slope)
{
    if (value <= s->value + ENOUGH * s->step * s->slope) return 1;
    return value <= s->value + SAME * fabs(s->value) && slope <= (2 * ENOUGH - 1) * s->slope;
}

/* Where the slope would be 0 if it changed evenly; NaN: nowhere. */
static double flat_at(const struct drps_newton_search *s, double slope)
{
    const double change = slope - s->low_slope;
    return change > 0 ? s->low - s->low_slope * (s->step - s->low) / change : NAN;
}

/* A step between low and high: `guess`, if it is not too near to either; else the middle. */
static double between(const struct drps_newton_search *s, double guess)
{
    const double margin = LEAST * (s->high - s->low);
    if (!isfinite(guess)) return (s->low + s->high) / 2;
    return fmin(fmax(guess, s->low + margin), s->high - margin);
}

/* What is no finite number says that the step was much too long. Where losses are linear far out,
 * slopes hardly change there and say little of what is near: after some trials that were all too
 * long, each is a tenth of the one before, or a search from large features would not end. */
static void shorten(struct drps_newton_search *s, double value, double slope)
{
    const double guess = isfinite(value) && isfinite(slope) ? flat_at(s, slope) : s->low;
    s->high = s->step;
    s->step = between(s, guess);
    if (s->low == 0 && s->trials > BY_SLOPE_MOST) s->step = fmin(s->step, TENTH * s->high);
}

static void lengthen(struct drps_newton_search *s, double slope)
{
    const double guess = flat_at(s, slope), step = s->step;
    s->low = step;
    s->low_slope = slope;
    if (isfinite(s->high))
        s->step = between(s, guess);
    else
        s->step = fmin(fmax(isfinite(guess) ? guess : 0, LONGER * step), LONGEST * step);
}

enum newton_verdict newton_search_judge(struct drps_newton_search *s, double value, double slope)
{
    const int lower = is_lower(s, value, slope);
    if (lower && slope >= FLATTER * s->slope) return NEWTON_ACCEPTED;
    if (++s->trials == TRIALS_MOST) return NEWTON_STUCK;
    if (lower)
        lengthen(s, slope);
    else
        shorten(s, value, slope);
    return NEWTON_AGAIN;
}
