/* Options of parameters on their way: bits of a value, and when a row counts as changed. */
#include "tools/train/pull_options.h"

#include <string.h>

#include "tools/train/option_table.h"

static uint32_t bits_of(struct drps_cli *cli, const char *arg)
{
    static const char *const names[] = {"8bit", "16bit", "32bit", NULL};
    static const uint32_t bits[] = {8, 16, 32};
    return bits[drps_cli_choice(cli, arg, names)];
}

/* Take "psi=0.01", "d=1" or "eps=0.001". */
static void parse_part(struct drps_cli *cli, struct drps_pull_options *o, const char *part)
{
    if (strncmp(part, "psi=", 4) == 0)
        o->psi = drps_cli_real(cli, part + 4, 0, 1e30);
    else if (strncmp(part, "d=", 2) == 0)
        o->decay = drps_cli_real(cli, part + 2, 0, 1e30);
    else if (strncmp(part, "eps=", 4) == 0)
        o->eps = drps_cli_real(cli, part + 4, 0, 1e30);
    else
        drps_cli_usage(cli, "'%s' is none of psi=X, d=X and eps=X", part);
}

static void parse_filter(struct drps_cli *cli, struct drps_pull_options *o, char *arg)
{
    char *rest = arg;
    o->psi = o->decay = 0;
    o->eps = DRPS_PULL_EPS;
    while (rest) {
        char *part = rest;
        rest = strchr(part, ',');
        if (rest) *rest++ = '\0';
        parse_part(cli, o, part);
    }
}

int train_pull_option(struct drps_cli *cli, struct drps_pull_options *o, int key, char *arg)
{
    switch (key) {
    case KEY_PULL_VALUES:
        o->bits = bits_of(cli, arg);
        break;
    case KEY_PULL_FILTER:
        parse_filter(cli, o, arg);
        break;
    default:
        return ARGP_ERR_UNKNOWN;
    }
    o->on = 1;
    return 0;
}
