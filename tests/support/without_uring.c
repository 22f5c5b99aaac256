/* without_uring COMMAND...: run a command to which io_uring is forbidden; 77: cannot be done here.
 */
#include <stdio.h>
#include <unistd.h>

#include "support/no_uring.h"

int main(int argc, char **argv)
{
    if (argc < 2 || no_uring() < 0) return 77;
    (void)execvp(argv[1], argv + 1);
    perror(argv[1]);
    return 127;
}
