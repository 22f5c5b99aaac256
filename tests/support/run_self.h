/*
 * Run the test program itself as the tool under test: main() of the test calls the tool when its
 * first argument is RUN_SELF_TOOL. So the tests of tools need no path of a built program.
 */
#ifndef DRPS_TESTS_SUPPORT_RUN_SELF_H
#define DRPS_TESTS_SUPPORT_RUN_SELF_H

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define RUN_SELF_TOOL "--run-as-tool"

struct run_self {
    int code;          /* exit code, or 128 + signal */
    char out[1 << 16]; /* the beginning of standard output, zero-terminated */
    char err[1 << 12]; /* the same of standard error */
};

static inline void run_self_take(int fd, char *text, size_t cap)
{
    ssize_t n = pread(fd, text, cap - 1, 0);
    text[n > 0 ? n : 0] = '\0';
    (void)close(fd); /* a memory file */
}

/* Run with NULL-terminated `args`; standard output goes to `stdout_path`, if not NULL, else to
 * r->out. */
static inline void run_self(struct run_self *r, const char *const *args, const char *stdout_path)
{
    char *argv[40] = {(char *)"tool", (char *)RUN_SELF_TOOL};
    for (size_t i = 0; args[i] && i < 37; i++)
        argv[i + 2] = (char *)args[i];
    int out = memfd_create("out", 0), err = memfd_create("err", 0), status = 0;
    pid_t child = fork();
    if (child == 0) {
        int to = stdout_path ? open(stdout_path, O_WRONLY | O_CREAT | O_TRUNC, 0666) : out;
        if (to < 0 || dup2(to, STDOUT_FILENO) < 0 || dup2(err, STDERR_FILENO) < 0) _exit(126);
        execv("/proc/self/exe", argv);
        _exit(127);
    }
    if (child < 0 || waitpid(child, &status, 0) < 0) status = 126 << 8;
    r->code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    run_self_take(out, r->out, sizeof(r->out));
    run_self_take(err, r->err, sizeof(r->err));
}

#endif
