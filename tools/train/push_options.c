/* Options of gradients on their way: bits of a value, the paper's filters, the largest values. */
#include "tools/train/push_options.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "tools/train/option_table.h"

static uint32_t bits_of(struct drps_cli *cli, const char *arg)
{
    static const char *const names[] = {"8bit", "16bit", "32bit", NULL};
    static const uint32_t bits[] = {8, 16, 32};
    return bits[drps_cli_choice(cli, arg, names)];
}

/* Take "phi=0.01", "d=1" or "p=0.5". */
static void parse_part(struct drps_cli *cli, struct drps_push_options *o, const char *part)
{
    if (strncmp(part, "phi=", 4) == 0)
        o->phi = drps_cli_real(cli, part + 4, 0, 1e30);
    else if (strncmp(part, "d=", 2) == 0)
        o->decay = drps_cli_real(cli, part + 2, 0, 1e30);
    else if (strncmp(part, "p=", 2) == 0)
        o->chance = drps_cli_real(cli, part + 2, DBL_MIN, 1);
    else
        drps_cli_usage(cli, "'%s' is none of phi=X, d=X and p=X", part);
}

/* Without phi any value may be held back. */
static void parse_filter(struct drps_cli *cli, struct drps_push_options *o, char *arg)
{
    char *rest = arg;
    o->phi = INFINITY;
    o->decay = 0;
    o->chance = 1;
    while (rest) {
        char *part = rest;
        rest = strchr(part, ',');
        if (rest) *rest++ = '\0';
        parse_part(cli, o, part);
    }
    if (isinf(o->phi) && o->chance >= 1)
        drps_cli_usage(cli, "say which values are held back: those below phi=X, or a share p=X, "
                            "or a share p=X of those below phi=X");
}

static double top_of(struct drps_cli *cli, const char *arg)
{
    const double top = drps_cli_share(cli, arg);
    if (!(top > 0)) drps_cli_usage(cli, "'%s' sends nothing", arg);
    return top;
}

/* Take "3", "last" or, with bits of a value, "last,16bit". */
static void parse_flush(struct drps_cli *cli, struct drps_push_options *o, char *arg)
{
    char *bits = strchr(arg, ',');
    if (bits) *bits++ = '\0';
    o->whole_bits = bits ? bits_of(cli, bits) : 0;
    o->flush = strcmp(arg, "last") == 0 ? UINT32_MAX
                                        : (uint32_t)drps_cli_count(cli, arg, 1, UINT32_MAX - 1);
}

int train_push_option(struct drps_cli *cli, struct drps_push_options *o, int key, char *arg)
{
    switch (key) {
    case KEY_PUSH_VALUES:
        o->bits = bits_of(cli, arg);
        break;
    case KEY_PUSH_FILTER:
        parse_filter(cli, o, arg);
        break;
    case KEY_PUSH_TOP:
        o->top = top_of(cli, arg);
        break;
    case KEY_PUSH_FLUSH:
        parse_flush(cli, o, arg);
        break;
    default:
        return ARGP_ERR_UNKNOWN;
    }
    o->on = 1;
    return 0;
}
