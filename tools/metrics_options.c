/* Takes the options that say where numbers to watch are shown. */
#include "tools/drps_metrics_options.h"

#include <string.h>

/* PORT, ADDRESS:PORT or [ADDRESS]:PORT: an address of IPv6 has colons itself. */
static void take_port(struct drps_values *v, struct drps_monitor_options *o, char *arg)
{
    char *colon = strrchr(arg, ':');
    const char *port = colon ? colon + 1 : arg;
    o->address = NULL;
    if (colon == arg || !*port) {
        drps_value_bad(v, "'%s': give PORT or ADDRESS:PORT, such as 9100 or 0.0.0.0:9100", arg);
        return;
    }
    o->port = (uint32_t)drps_value_count(v, port, 1, UINT16_MAX);
    if (!colon) return;
    o->address = arg;
    *colon = '\0';
    if (*arg != '[' || colon[-1] != ']') return;
    colon[-1] = '\0';
    o->address = arg + 1;
}

int metrics_option(struct drps_values *v, struct drps_monitor_options *o, int key, char *arg)
{
    switch (key) {
    case METRICS_KEY_FILE:
        if (!*arg || strcmp(arg, "-") == 0)
            drps_value_bad(v, "'%s' is no file that can be written anew", arg);
        o->file = arg;
        return 1;
    case METRICS_KEY_PORT:
        take_port(v, o, arg);
        return 1;
    default:
        return 0;
    }
}
