/* drps-top follows a running job: it looks where the job shows its numbers, again and again, and
 * never touches the job. */
#include <errno.h>
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_clock.h"
#include "tools/drps_cli.h"
#include "tools/top/screen.h"

enum { KEY_ONCE = DRPS_CLI_KEY, NAMES_BYTES = 256, TICK_MS = 100 };
#define DELAY_LEAST 0.1
#define DELAY_MOST 3600.0

static const struct argp_option option_table[] = {
    {"delay", 'd', "SECONDS", 0, "Look so often (default 1)", 1},
    {"once", KEY_ONCE, NULL, 0, "Look twice, print one screen as text, and end", 1},
    {0},
};

struct options {
    const char **names; /* own [n]; borrowed from the command line */
    size_t n, cap;
    double delay;
    int once;
};

static int parse(struct drps_cli *cli, int key, char *arg)
{
    struct options *o = cli->input;
    switch (key) {
    case ARGP_KEY_ARG: {
        const char **grown = realloc(o->names, (o->n + 1) * sizeof(*grown));
        if (!grown) drps_cli_usage(cli, "no memory for '%s'", arg);
        o->names = grown;
        o->names[o->n++] = arg;
        return 0;
    }
    case ARGP_KEY_END:
        if (!o->n)
            drps_cli_usage(cli, "name a model or a plan that is being made, a file of metrics, or "
                                "HOST:PORT");
        return 0;
    case 'd':
        o->delay = drps_cli_real(cli, arg, DELAY_LEAST, DELAY_MOST);
        return 0;
    case KEY_ONCE:
        o->once = 1;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct drps_cli_tool top_tool = {
    .name = "drps-top",
    .args_doc = "MODEL|PLAN|FILE|HOST:PORT...",
    .doc = "Follow a running job of drps-train or drps-index, of one or more ranks.\v"
           "MODEL and PLAN are the folders that the job makes, on this machine; it shows its "
           "numbers beside them without being asked. FILE is what --metrics-file names there, "
           "HOST:PORT what --metrics-port does. Waits for a job that has not begun. q and Ctrl-C "
           "end drps-top, not the job.",
    .options = option_table,
    .parse = parse,
};

/* ---- Looking ---- */

struct top {
    struct options *options;
    struct sources sources;
    struct curve curve;
    struct view view;
    char names[NAMES_BYTES];
};

static int look(struct top *t, struct drps_err *err)
{
    double loss, test;
    int rc = sources_read(&t->sources, err);
    if (rc < 0) return rc;
    view_losses(&t->sources, &loss, &test);
    curve_add(&t->curve, loss, test);
    return 0;
}

static int is_stopped(void)
{
    return atomic_load_explicit(drps_cli_stop(), memory_order_relaxed) != 0;
}

/* ---- Once ---- */

static void print_view(const struct view *v)
{
    for (size_t i = 0; i < v->n; i++) {
        size_t n = strlen(v->text[i]);
        while (n && v->text[i][n - 1] == ' ')
            n--;
        printf("%.*s\n", (int)n, v->text[i]);
    }
}

static json_t *readings_json(const struct readings *r)
{
    json_t *list = json_array();
    for (size_t i = 0; i < r->n; i++) {
        const struct reading *one = &r->list[i];
        json_t *j = json_object();
        (void)json_object_set_new(j, "name", json_string(one->name));
        (void)json_object_set_new(j, "rank", json_integer((json_int_t)r->rank));
        if (*one->label) (void)json_object_set_new(j, "label", json_string(one->label));
        if (!isnan(one->le))
            (void)json_object_set_new(j, "le",
                                      isinf(one->le) ? json_string("+Inf") : json_real(one->le));
        (void)json_object_set_new(j, "value", drps_json_real(one->value));
        (void)json_array_append_new(list, j);
    }
    return list;
}

static int print_json(const struct top *t, struct drps_err *err)
{
    json_t *all = json_array();
    for (size_t i = 0; i < t->sources.n; i++) {
        const struct readings *now = source_now(&t->sources.list[i]);
        json_t *list = now ? readings_json(now) : NULL;
        if (list) (void)json_array_extend(all, list);
        json_decref(list);
    }
    return drps_cli_json_print(all, err);
}

/* Rates need a second look, which also shows who is gone. */
static int run_once(struct top *t, int json, struct drps_err *err)
{
    int rc = look(t, err);
    if (rc == 0 && !sources_alive(&t->sources))
        return drps_err_set(err, DRPS_E_NOT_FOUND,
                            "no job that makes %s shows its numbers here: it has not begun, or has "
                            "ended, and drps-stat shows what it made",
                            t->names);
    const uint64_t until = drps_clock_ns() + (uint64_t)(t->options->delay * 1e9);
    while (rc == 0 && !is_stopped() && drps_clock_ns() < until)
        (void)poll(NULL, 0, TICK_MS);
    if (rc == 0) rc = look(t, err);
    if (rc < 0) return rc;
    if (json) return print_json(t, err);
    t->view.columns = 80;
    t->view.lines = VIEW_LINES;
    view_draw(&t->view, &t->sources, &t->curve, t->names);
    print_view(&t->view);
    return 0;
}

/* ---- On the screen ---- */

static void show(struct top *t)
{
    screen_size(&t->view.lines, &t->view.columns);
    view_draw(&t->view, &t->sources, &t->curve, t->names);
    screen_show(&t->view);
}

/* Waits until the next look is due. Returns 1 when the user has had enough. A signal is seen within
 * a tenth of a second. */
static int wait_for_next(struct top *t)
{
    const uint64_t until = drps_clock_ns() + (uint64_t)(t->options->delay * 1e9);
    while (!is_stopped() && drps_clock_ns() < until) {
        const enum screen_key key = screen_wait(TICK_MS);
        if (key == SCREEN_QUIT) return 1;
        if (key == SCREEN_RESIZED) show(t);
    }
    return is_stopped();
}

static int run_screen(struct top *t, struct drps_err *err)
{
    int rc = screen_open(err);
    if (rc < 0) return rc;
    do {
        rc = look(t, err);
        if (rc == 0) show(t);
    } while (rc == 0 && !wait_for_next(t));
    screen_close();
    return rc;
}

static void join_names(const struct options *o, char names[NAMES_BYTES])
{
    size_t used = 0;
    for (size_t i = 0; i < o->n && used < NAMES_BYTES; i++)
        used +=
            (size_t)snprintf(names + used, NAMES_BYTES - used, "%s%s", i ? " " : "", o->names[i]);
}

int main(int argc, char **argv)
{
    struct options o = {.delay = 1};
    struct drps_cli cli;
    struct drps_err err = DRPS_ERR_INIT;
    int rc = 0;

    drps_cli_start(&cli, &top_tool, &o, argc, argv);
    struct top *t = calloc(1, sizeof(*t));
    if (!t) {
        rc = drps_err_set(&err, -ENOMEM, "no memory");
    } else {
        t->options = &o;
        t->sources = (struct sources){.names = o.names, .names_n = o.n};
        join_names(&o, t->names);
        rc = o.once || cli.json ? run_once(t, cli.json, &err) : run_screen(t, &err);
        sources_free(&t->sources);
    }
    free(t);
    free(o.names);
    return drps_cli_finish(&cli, rc, &err);
}
