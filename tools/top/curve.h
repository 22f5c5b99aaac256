/* The loss of a job over the time that it was looked at. Private to tools/top/. */
#ifndef DRPS_TOOLS_TOP_CURVE_H
#define DRPS_TOOLS_TOP_CURVE_H

#include <stddef.h>

enum { CURVE_POINTS = 1024, CURVE_WIDTH_MOST = 512 };

/* Losses at equal distances of looks; when there are too many, each two neighbours become one.
 * Zeros: none yet. */
struct curve {
    double loss[CURVE_POINTS], test[CURVE_POINTS]; /* NaN: not known */
    size_t n;
    size_t each, waiting; /* looks that a point stands for; looks since the last one */
};

void curve_add(struct curve *c, double loss, double test);

/*
 * Draw the last points as `height` lines of `width` characters, at most CURVE_WIDTH_MOST, the first
 * line at the top: '*' the training loss, 'o' the test loss. lines [height][CURVE_WIDTH_MOST + 1].
 * *least_out and *most_out are the losses of the last line and the first. Returns 0 if there is
 * nothing to draw.
 */
int curve_draw(const struct curve *c, size_t width, size_t height,
               char (*lines)[CURVE_WIDTH_MOST + 1], double *least_out, double *most_out);

#endif
