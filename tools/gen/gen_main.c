/* The program drps-gen; tool.c is what it does. */
#include "tools/gen/tool.h"

int main(int argc, char **argv)
{
    return gen_tool_main(argc, argv);
}
