/* Values of options (api/settings/values.c): what is wrong ends the program with the option's name.
 */
#include <stdio.h>
#include <stdlib.h>

#include "tools/cli/cli_internal.h"

/* Returns the long name of the option that is being parsed, or NULL for plain arguments. */
static const char *current_option(const struct drps_cli *cli)
{
    for (const struct argp_option *o = cli->tool->options; o->name || o->key || o->doc; o++)
        if (o->key == cli->key && o->name) return o->name;
    return NULL;
}

/* Returns the configuration file's line of the option that is being parsed; 0: it comes from the
 * command line. */
static int current_line(const struct drps_cli *cli)
{
    size_t at = (size_t)cli->state->next; /* one past the word; those of the file stand first */
    return current_option(cli) && at >= 2 && at - 2 < cli->n_lines ? cli->lines[at - 2].number : 0;
}

_Noreturn void drps_cli_usage(struct drps_cli *cli, const char *fmt, ...)
{
    char text[1200];
    const char *option = current_option(cli);
    int line = current_line(cli);
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, ap); /* a cut message is still a message */
    va_end(ap);
    if (line)
        argp_error(cli->state, "%s:%d: %s: %s", cli->config_path, line, option, text);
    else if (option)
        argp_error(cli->state, "--%s: %s", option, text);
    else
        argp_error(cli->state, "%s", text);
    exit(DRPS_EXIT_USAGE); /* argp_error() has ended the program already */
}

struct drps_values drps_cli_values(struct drps_err *err)
{
    return (struct drps_values){.err = err, .before = "--", .behind = ""};
}

int drps_cli_taken(struct drps_cli *cli, int known, const struct drps_err *err)
{
    if (err->code) drps_cli_usage(cli, "%s", err->text);
    return known ? 0 : ARGP_ERR_UNKNOWN;
}

/* ---- Values of tools whose options are no settings ---- */

uint64_t drps_cli_count(struct drps_cli *cli, const char *arg, uint64_t min, uint64_t max)
{
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_values v = drps_cli_values(&err);
    const uint64_t value = drps_value_count(&v, arg, min, max);
    if (err.code) drps_cli_usage(cli, "%s", err.text);
    return value;
}

uint64_t drps_cli_size(struct drps_cli *cli, const char *arg, uint64_t min, uint64_t max)
{
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_values v = drps_cli_values(&err);
    const uint64_t value = drps_value_size(&v, arg, min, max);
    if (err.code) drps_cli_usage(cli, "%s", err.text);
    return value;
}

uint64_t drps_cli_speed(struct drps_cli *cli, const char *arg)
{
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_values v = drps_cli_values(&err);
    const uint64_t value = drps_value_speed(&v, arg);
    if (err.code) drps_cli_usage(cli, "%s", err.text);
    return value;
}

double drps_cli_real(struct drps_cli *cli, const char *arg, double min, double max)
{
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_values v = drps_cli_values(&err);
    const double value = drps_value_real(&v, arg, min, max);
    if (err.code) drps_cli_usage(cli, "%s", err.text);
    return value;
}

double drps_cli_share(struct drps_cli *cli, const char *arg)
{
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_values v = drps_cli_values(&err);
    const double value = drps_value_share(&v, arg);
    if (err.code) drps_cli_usage(cli, "%s", err.text);
    return value;
}

size_t drps_cli_choice(struct drps_cli *cli, const char *arg, const char *const *names)
{
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_values v = drps_cli_values(&err);
    const size_t value = drps_value_choice(&v, arg, names);
    if (err.code) drps_cli_usage(cli, "%s", err.text);
    return value;
}
