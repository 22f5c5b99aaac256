/* Colours where there are some; bold and dim on any terminal that has them. */
#include "tools/top/screen.h"

#ifdef DRPS_WITH_NCURSES
#include <errno.h>
#include <ncurses.h>
#include <stdlib.h>
#include <unistd.h>

/* Numbers of pairs of colours. */
enum { PAIR_TITLE = 1, PAIR_CURVE };

static const char *terminal(void)
{
    const char *name = getenv("TERM");
    return name && *name ? name : "unknown";
}

int screen_open(struct drps_err *err)
{
    if (!isatty(STDOUT_FILENO) || !isatty(STDIN_FILENO))
        return drps_err_set(err, DRPS_E_CONFIG,
                            "there is no terminal to draw on: --once prints one screen as text");
    SCREEN *screen = newterm(NULL, stdout, stdin);
    if (!screen)
        return drps_err_set(err, DRPS_E_CONFIG,
                            "the terminal '%s' is not known here: --once prints one screen as text",
                            terminal());
    (void)set_term(screen);
    (void)cbreak(); /* Ctrl-C stays a signal */
    (void)noecho();
    (void)keypad(stdscr, TRUE);
    (void)curs_set(0);
    if (has_colors()) {
        (void)start_color();
        (void)use_default_colors();
        (void)init_pair(PAIR_TITLE, COLOR_CYAN, -1);
        (void)init_pair(PAIR_CURVE, COLOR_GREEN, -1);
    }
    return 0;
}

void screen_close(void)
{
    (void)endwin();
}

void screen_size(size_t *lines_out, size_t *columns_out)
{
    *lines_out = LINES > 0 ? (size_t)LINES : 0;
    *columns_out = COLS > 0 ? (size_t)COLS : 0;
}

static attr_t look(enum view_style style)
{
    const int colours = has_colors();
    switch (style) {
    case VIEW_TITLE:
        return A_BOLD | (colours ? COLOR_PAIR(PAIR_TITLE) : 0);
    case VIEW_HEAD:
        return A_REVERSE;
    case VIEW_CURVE:
        return colours ? COLOR_PAIR(PAIR_CURVE) : A_NORMAL;
    case VIEW_DIM:
        return A_DIM;
    default:
        return A_NORMAL;
    }
}

void screen_show(const struct view *v)
{
    (void)erase();
    for (size_t i = 0; i < v->n; i++) {
        (void)attrset((int)look(v->style[i]));
        (void)mvaddstr((int)i, 0, v->text[i]);
    }
    (void)attrset(A_NORMAL);
    (void)refresh();
}

enum screen_key screen_wait(unsigned ms)
{
    timeout((int)ms);
    const int key = getch();
    return key == 'q' || key == 'Q' ? SCREEN_QUIT
           : key == KEY_RESIZE      ? SCREEN_RESIZED
                                    : SCREEN_NONE;
}

#else

int screen_open(struct drps_err *err)
{
    return drps_err_set(
        err, DRPS_E_CONFIG,
        "this build has no ncurses, and draws no screen: --once prints one as text");
}

void screen_close(void)
{
}

void screen_size(size_t *lines_out, size_t *columns_out)
{
    *lines_out = *columns_out = 0;
}

void screen_show(const struct view *v)
{
    (void)v;
}

enum screen_key screen_wait(unsigned ms)
{
    (void)ms;
    return SCREEN_QUIT;
}

#endif
