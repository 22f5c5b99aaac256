/* Takes the options of drps_metrics_options.h. */
#include "tools/drps_metrics_options.h"

#include <string.h>

/* PORT, ADDRESS:PORT or [ADDRESS]:PORT: an address of IPv6 has colons itself. */
static void take_port(struct drps_cli *cli, struct drps_monitor_options *o, char *arg)
{
    char *colon = strrchr(arg, ':');
    const char *port = colon ? colon + 1 : arg;
    o->address = NULL;
    if (colon == arg || !*port)
        drps_cli_usage(cli, "'%s': give PORT or ADDRESS:PORT, such as 9100 or 0.0.0.0:9100", arg);
    o->port = (uint32_t)drps_cli_count(cli, port, 1, UINT16_MAX);
    if (!colon) return;
    o->address = arg;
    *colon = '\0';
    if (*arg != '[' || colon[-1] != ']') return;
    colon[-1] = '\0';
    o->address = arg + 1;
}

int metrics_option(struct drps_cli *cli, struct drps_monitor_options *o, int key, char *arg)
{
    switch (key) {
    case METRICS_KEY_FILE:
        if (!*arg || strcmp(arg, "-") == 0)
            drps_cli_usage(cli, "'%s' is no file that can be written anew", arg);
        o->file = arg;
        return 0;
    case METRICS_KEY_PORT:
        take_port(cli, o, arg);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}
