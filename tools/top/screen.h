/* A view on the terminal, by ncurses. Private to tools/top/. */
#ifndef DRPS_TOOLS_TOP_SCREEN_H
#define DRPS_TOOLS_TOP_SCREEN_H

#include "tools/top/view.h"

/* DRPS_E_CONFIG: standard output is no terminal, or none that can be drawn on; or this build has no
 * ncurses. */
DRPS_MUST_CHECK
int screen_open(struct drps_err *err);
void screen_close(void);

void screen_size(size_t *lines_out, size_t *columns_out);
void screen_show(const struct view *v);

/* Waits for a key, at most so long. Returns 1: it was q, or the screen has got another size; 0:
 * there was none, or another one. */
enum screen_key { SCREEN_NONE, SCREEN_QUIT, SCREEN_RESIZED };
enum screen_key screen_wait(unsigned ms);

#endif
