/*
 * hold_output LINES GO COMMAND...: run a command, copy what it prints, and stop reading it after so
 * many lines until somebody opens the FIFO GO for writing. The pipe between holds one write of the
 * command at a time, so a command that prints on can get no further than two writes. Exits with the
 * command's status, 128 + its signal, or 127 if it could not be run.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

/* Reads and copies until the command has closed its output; each read takes one whole write. */
static int copy(int from, long lines, const char *go)
{
    char text[PIPE_BUF];
    for (ssize_t got; (got = read(from, text, sizeof(text))) != 0;) {
        if (got < 0) return -1;
        if (write(STDOUT_FILENO, text, (size_t)got) != got) return -1;
        const int held = lines > 0;
        for (ssize_t i = 0; i < got; i++)
            lines -= text[i] == '\n';
        if (!held || lines > 0) continue;
        const int fd = open(go, O_RDONLY | O_CLOEXEC); /* waits for a writer */
        if (fd < 0) return -1;
        (void)close(fd);
    }
    return 0;
}

int main(int argc, char **argv)
{
    int ends[2], status;
    if (argc < 4 || pipe2(ends, O_DIRECT | O_CLOEXEC) < 0) return 127;
    if (fcntl(ends[1], F_SETPIPE_SZ, PIPE_BUF) < 0) return 127;
    const pid_t pid = fork();
    if (pid < 0) return 127;
    if (pid == 0) {
        if (dup2(ends[1], STDOUT_FILENO) >= 0) (void)execvp(argv[3], argv + 3);
        perror(argv[3]);
        _exit(127);
    }
    (void)close(ends[1]);
    const int copied = copy(ends[0], strtol(argv[1], NULL, 10), argv[2]);
    if (copied < 0) perror("hold_output");
    (void)close(ends[0]);
    if (waitpid(pid, &status, 0) < 0 || copied < 0) return 127;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
