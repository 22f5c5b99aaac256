#include "support/stat_tool.h"

#define main stat_main
#include "tools/stat_main.c"
