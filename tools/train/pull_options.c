/* Options of parameters on their way: bits of a value. */
#include "tools/train/pull_options.h"

#include "tools/train/option_table.h"

int train_pull_option(struct drps_cli *cli, struct drps_pull_options *o, int key, char *arg)
{
    static const char *const names[] = {"16bit", "32bit", NULL};
    static const uint32_t bits[] = {16, 32};
    if (key != KEY_PULL_VALUES) return ARGP_ERR_UNKNOWN;
    o->bits = bits[drps_cli_choice(cli, arg, names)];
    return 0;
}
