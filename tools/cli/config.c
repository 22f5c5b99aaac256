/*
 * The configuration file: lines NAME = VALUE become options as the command line has them. inih
 * takes the lines apart.
 */
#include <errno.h>
#include <ini.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_io.h"
#include "tools/cli/cli_internal.h"

enum { CONFIG_MAX = 1 << 20 };

/* State of one reading; inih of Debian hands its handler no line numbers, so the reader counts. */
struct config {
    struct drps_cli *cli;
    const char *at, *end; /* what is left of the text */
    int line;
    struct drps_err err; /* the first problem */
};

/* Stands for fgets in inih. Counts lines and drops indentation, which inih would take for a
 * continued value. */
static char *config_line(char *buf, int cap, void *stream)
{
    struct config *c = stream;
    if (c->err.code || c->at == c->end) return NULL;
    const char *feed = memchr(c->at, '\n', (size_t)(c->end - c->at));
    const char *line = c->at;
    size_t n = (size_t)((feed ? feed : c->end) - line);
    c->line++;
    c->at = feed ? feed + 1 : c->end;
    const size_t indent = strspn(line, " \t"); /* of n at most: what ends the line is neither */
    line += indent;
    n -= indent;
    if (n + 2 > (size_t)cap) {
        drps_err_set(&c->err, -EINVAL, "%s:%d: the line is too long: at most %d bytes",
                     c->cli->config_path, c->line, cap - 2);
        return NULL;
    }
    memcpy(buf, line, n);
    memcpy(buf + n, "\n", 2);
    return buf;
}

static const struct argp_option *find_option(const struct argp_option *options, const char *name)
{
    for (const struct argp_option *o = options; o->name || o->key || o->doc; o++)
        if (o->name && !(o->flags & OPTION_DOC) && !strcmp(o->name, name)) return o;
    return NULL;
}

static int keep_line(struct config *c, const char *name, const char *value, int takes_value)
{
    struct drps_cli *cli = c->cli;
    if (cli->n_lines == cli->cap_lines) {
        size_t cap = cli->cap_lines ? 2 * cli->cap_lines : 16;
        struct drps_cli_line *lines = reallocarray(cli->lines, cap, sizeof(*lines));
        if (!lines) return drps_err_set(&c->err, -ENOMEM, "%s: no memory", cli->config_path);
        cli->lines = lines;
        cli->cap_lines = cap;
    }
    struct drps_cli_line *l = &cli->lines[cli->n_lines];
    if (asprintf(&l->option, "--%s%s%s", name, takes_value ? "=" : "", takes_value ? value : "") <
        0)
        return drps_err_set(&c->err, -ENOMEM, "%s: no memory", cli->config_path);
    l->number = c->line;
    cli->n_lines++;
    return 0;
}

/* inih's handler: 1 goes on, 0 marks the line as wrong. */
static int config_pair(void *user, const char *section, const char *name, const char *value)
{
    struct config *c = user;
    const char *path = c->cli->config_path;
    const char *tool = c->cli->tool->name;

    if (c->err.code) return 0;
    if (*section && strcmp(section, tool)) {
        if (!strncmp(section, "drps-", 5)) return 1; /* another tool's; one file may serve all */
        drps_err_set(&c->err, -EINVAL,
                     "%s:%d: unknown section [%s]; sections are the tools' names, here [%s]", path,
                     c->line, section, tool);
        return 0;
    }
    const struct argp_option *o = find_option(c->cli->tool->options, name);
    if (!o) o = find_option(cli_common_options, name);
    if (!o || o->key == CLI_KEY_CONFIG) {
        drps_err_set(&c->err, -EINVAL,
                     "%s:%d: unknown option '%s' (names are the long options of %s --help)", path,
                     c->line, name, tool);
        return 0;
    }
    int yes = o->arg ? 1 : drps_truth(value);
    if (yes < 0) {
        drps_err_set(&c->err, -EINVAL, "%s:%d: %s: '%s' is neither yes nor no", path, c->line, name,
                     value);
        return 0;
    }
    return yes == 0 || keep_line(c, name, value, o->arg != NULL) == 0;
}

int cli_config_read(struct drps_cli *cli, struct drps_err *err)
{
    struct config c = {.cli = cli, .err = DRPS_ERR_INIT};
    char *text;
    size_t n;
    int rc = drps_io_read_text(drps_io_os(), cli->config_path, CONFIG_MAX, &text, &n, err);
    if (rc < 0) {
        (void)drps_err_context(err, "--config"); /* its result is the code, which rc has */
        return rc;
    }
    c.at = text;
    c.end = text + n;
    int bad_line = ini_parse_stream(config_line, &c, config_pair, &c);
    free(text);
    if (bad_line > 0 && !c.err.code)
        drps_err_set(&c.err, -EINVAL, "%s:%d: expected NAME = VALUE or [SECTION]", cli->config_path,
                     bad_line);
    else if (bad_line < 0)
        drps_err_set(&c.err, -ENOMEM, "%s: no memory", cli->config_path);
    return c.err.code ? drps_err_set(err, c.err.code, "%s", c.err.text) : 0;
}

void cli_config_free(struct drps_cli *cli)
{
    for (size_t i = 0; i < cli->n_lines; i++)
        free(cli->lines[i].option);
    free(cli->lines);
    cli->lines = NULL;
    cli->n_lines = cli->cap_lines = 0;
}
