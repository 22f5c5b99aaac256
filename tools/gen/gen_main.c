#include "tools/gen/tool.h"

int main(int argc, char **argv)
{
    return gen_tool_main(argc, argv);
}
