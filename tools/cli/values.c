/* Values of options: text becomes numbers, and what is wrong ends the program with the option's
 * name. */
#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/drps_size.h"
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

/* Returns the decimal power of a count's suffix. *end moves past it. */
static uint64_t count_unit(const char **end)
{
    static const char letters[] = "kmgt";
    uint64_t unit = 1;
    for (const char *l = letters; *l; l++) {
        unit *= 1000;
        if (**end == *l || **end == *l - 'a' + 'A') {
            (*end)++;
            return unit;
        }
    }
    return 1;
}

int drps_cli_parse_count(const char *text, uint64_t *count_out, struct drps_err *err)
{
    const char *p = text;
    uint64_t whole = 0;
    uint64_t part = 0;  /* digits after the point, as a number */
    uint64_t scale = 1; /* 10 ^ their number */
    int digits = 0;

    *count_out = 0;
    for (; *p >= '0' && *p <= '9'; p++, digits++)
        if (__builtin_mul_overflow(whole, 10u, &whole) ||
            __builtin_add_overflow(whole, (uint64_t)(*p - '0'), &whole))
            goto too_large;
    if (*p == '.')
        for (p++; *p >= '0' && *p <= '9'; p++, digits++) {
            if (scale >= 1000000000000u) goto bad;
            part = part * 10 + (uint64_t)(*p - '0');
            scale *= 10;
        }
    if (!digits) goto bad;
    uint64_t unit = count_unit(&p);
    if (*p) goto bad;
    unsigned __int128 count =
        (unsigned __int128)whole * unit + (unsigned __int128)part * unit / scale;
    if ((unsigned __int128)part * unit % scale) goto bad; /* half a thing */
    if (count > UINT64_MAX) goto too_large;
    *count_out = (uint64_t)count;
    return 0;
bad:
    return drps_err_set(err, -EINVAL, "'%s' is not a count (examples: 1500, 4M, 1.5G; K is 1000)",
                        text);
too_large:
    return drps_err_set(err, -EINVAL, "'%s' is too large a count", text);
}

uint64_t drps_cli_count(struct drps_cli *cli, const char *arg, uint64_t min, uint64_t max)
{
    struct drps_err err = DRPS_ERR_INIT;
    uint64_t v;
    if (drps_cli_parse_count(arg, &v, &err) < 0) drps_cli_usage(cli, "%s", err.text);
    if (v < min || v > max) {
        if (max == UINT64_MAX)
            drps_cli_usage(cli, "'%s' is out of range: at least %ju", arg, (uintmax_t)min);
        drps_cli_usage(cli, "'%s' is out of range: from %ju to %ju", arg, (uintmax_t)min,
                       (uintmax_t)max);
    }
    return v;
}

uint64_t drps_cli_size(struct drps_cli *cli, const char *arg, uint64_t min, uint64_t max)
{
    struct drps_err err = DRPS_ERR_INIT;
    char lo[32], hi[32];
    uint64_t v;
    if (drps_size_parse(arg, &v, &err) < 0) drps_cli_usage(cli, "%s", err.text);
    if (v < min || v > max) {
        drps_size_format(min, lo, sizeof(lo));
        if (max >= INT64_MAX) drps_cli_usage(cli, "'%s' is out of range: at least %s", arg, lo);
        drps_cli_usage(cli, "'%s' is out of range: from %s to %s", arg, lo,
                       drps_size_format(max, hi, sizeof(hi)));
    }
    return v;
}

/* The text without an ending; 1: it had that. */
static int cut_ending(char *text, const char *ending)
{
    const size_t n = strlen(text), m = strlen(ending);
    if (n < m || strcasecmp(text + n - m, ending) != 0) return 0;
    text[n - m] = '\0';
    return 1;
}

uint64_t drps_cli_speed(struct drps_cli *cli, const char *arg)
{
    char text[64];
    uint64_t bits;
    if (snprintf(text, sizeof(text), "%s", arg) >= (int)sizeof(text))
        drps_cli_usage(cli, "'%s' is too long", arg);
    (void)cut_ending(text, "/s"); /* either may be left out */
    (void)cut_ending(text, "bit");
    if (drps_cli_parse_count(text, &bits, NULL) < 0 || !bits)
        drps_cli_usage(cli, "'%s' is not the speed of a link (examples: 1Gbit, 100Mbit)", arg);
    return bits;
}

double drps_cli_real(struct drps_cli *cli, const char *arg, double min, double max)
{
    char *end;
    double v = strtod(arg, &end);
    if (end == arg || *end || !isfinite(v))
        drps_cli_usage(cli, "'%s' is not a number (example: 0.05)", arg);
    if (v >= min && v <= max) return v;
    if (min > 0 && min <= DBL_MIN) {
        if (max >= DBL_MAX) drps_cli_usage(cli, "'%s' is out of range: above 0", arg);
        drps_cli_usage(cli, "'%s' is out of range: above 0, up to %g", arg, max);
    }
    if (max >= DBL_MAX) drps_cli_usage(cli, "'%s' is out of range: at least %g", arg, min);
    drps_cli_usage(cli, "'%s' is out of range: from %g to %g", arg, min, max);
}

double drps_cli_share(struct drps_cli *cli, const char *arg)
{
    char *end;
    double v = strtod(arg, &end);
    if (end != arg && *end == '%') {
        v /= 100;
        end++;
    }
    if (end == arg || *end || !isfinite(v))
        drps_cli_usage(cli, "'%s' is not a share (examples: 0.1, 10%%)", arg);
    if (v < 0 || v > 1)
        drps_cli_usage(cli, "'%s' is out of range: from 0 to 1, or 0%% to 100%%", arg);
    return v;
}

size_t drps_cli_choice(struct drps_cli *cli, const char *arg, const char *const *names)
{
    char list[600] = "";
    size_t used = 0;
    for (size_t i = 0; names[i]; i++) {
        if (!strcmp(arg, names[i])) return i;
        int n = snprintf(list + used, sizeof(list) - used, "%s%s", i ? ", " : "", names[i]);
        if (n > 0 && used + (size_t)n < sizeof(list)) used += (size_t)n;
    }
    drps_cli_usage(cli, "'%s' is not one of: %s", arg, list);
}

int drps_cli_take(struct drps_cli *cli, const struct drps_cli_plain *options, size_t n, int key,
                  const char *arg)
{
    for (size_t i = 0; i < n; i++) {
        const struct drps_cli_plain *o = &options[i];
        if (o->key != key) continue;
        if (o->flag)
            *o->flag = 1;
        else
            *o->text = o->names ? o->names[drps_cli_choice(cli, arg, o->names)] : arg;
        return 0;
    }
    return ARGP_ERR_UNKNOWN;
}
