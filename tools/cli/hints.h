/*
 * Which options set what a message of the libraries speaks of. The libraries know of no command
 * line: they say "the memory limit is too small", and a tool that has --memory adds that.
 */
#ifndef DRPS_TOOLS_CLI_HINTS_H
#define DRPS_TOOLS_CLI_HINTS_H

#include "tools/drps_cli.h"

enum { HINTS_BYTES = 200 };

/*
 * Writes " (--memory, ...)" to `out`, or nothing: the options of `tool`, and other commands, that
 * help with `text`; none that it names itself, and none that the tool refuses beside those of
 * `input`, its options. Returns `out`.
 */
const char *hints_for(const struct drps_cli_tool *tool, const void *input, const char *text,
                      char out[HINTS_BYTES]);

#endif
