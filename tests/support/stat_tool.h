/* drps-stat as a function, once a process: what main() of it returns. */
#ifndef DRPS_TESTS_STAT_TOOL_H
#define DRPS_TESTS_STAT_TOOL_H

int stat_main(int argc, char **argv);

#endif
