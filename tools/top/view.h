/* What drps-top shows, as lines of text. Private to tools/top/. */
#ifndef DRPS_TOOLS_TOP_VIEW_H
#define DRPS_TOOLS_TOP_VIEW_H

#include "tools/top/curve.h"
#include "tools/top/source.h"

enum { VIEW_LINES = 256, VIEW_COLUMNS = 512, VIEW_LEAST_COLUMNS = 40, VIEW_LEAST_LINES = 10 };

/* How a line looks where there are colours. */
enum view_style { VIEW_PLAIN, VIEW_TITLE, VIEW_HEAD, VIEW_CURVE, VIEW_DIM };

struct view {
    size_t columns, lines;                   /* of the screen */
    size_t n;                                /* lines used, at most `lines` and VIEW_LINES */
    char text[VIEW_LINES][VIEW_COLUMNS + 1]; /* cut at `columns` */
    enum view_style style[VIEW_LINES];
};

/* Draw all anew; `names` is what was asked for, as one text. */
void view_draw(struct view *v, const struct sources *s, const struct curve *c, const char *names);

/* The losses of a job, for its curve: those of the first rank that has any. */
void view_losses(const struct sources *s, double *loss_out, double *test_out);

#endif
