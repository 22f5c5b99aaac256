/* drps-stat as a function, so that tests can run it without knowing where the program lies. */
#ifndef DRPS_TOOLS_STAT_TOOL_H
#define DRPS_TOOLS_STAT_TOOL_H

/* Run the whole tool. Returns the exit code, or ends the program for --help and wrong usage. */
int stat_tool_main(int argc, char **argv);

#endif
