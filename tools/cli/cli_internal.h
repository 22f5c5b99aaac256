/* What the files of tools/cli/ share. Private to it. */
#ifndef DRPS_TOOLS_CLI_CLI_INTERNAL_H
#define DRPS_TOOLS_CLI_CLI_INTERNAL_H

#include "tools/drps_cli.h"

/* ---- Options that every tool has ---- */

enum { CLI_KEY_CONFIG = 0x1000, CLI_KEY_JSON };
enum { CLI_COMMON_OPTIONS = 5 }; /* with the {0} at the end */

extern const struct argp_option cli_common_options[CLI_COMMON_OPTIONS];

/* ---- The configuration file ---- */

/* One option of the configuration file, written as on the command line. */
struct drps_cli_line {
    char *option; /* own: "--name=value" or "--name" */
    int number;   /* of the line */
};

/* Read the options of the file cli->config_path into cli->lines, until cli_config_free(). Errors
 * name the line. */
DRPS_MUST_CHECK
int cli_config_read(struct drps_cli *cli, struct drps_err *err);
void cli_config_free(struct drps_cli *cli);

/* ---- The process ---- */

void cli_handle_signals(void);

/* For struct drps_log; ctx is the struct drps_cli. */
void cli_log_sink(void *ctx, enum drps_log_level level, const char *text);

#endif
