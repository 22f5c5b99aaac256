/* The program drps-stat; tool.c is what it does. */
#include "tools/stat/tool.h"

int main(int argc, char **argv)
{
    return stat_tool_main(argc, argv);
}
