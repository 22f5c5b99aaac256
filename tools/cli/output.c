/* Messages and the progress line on stderr, JSON on stdout. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/drps_clock.h"
#include "base/drps_size.h"
#include "tools/cli/cli_internal.h"
#include "tools/cli/hints.h"

enum { PROGRESS_INTERVAL_NS = 100000000 };

static void erase_progress_locked(struct drps_cli *cli)
{
    if (!cli->progress_shown) return;
    (void)fputs("\r\033[K", stderr);
    cli->progress_shown = 0;
}

void cli_log_sink(void *ctx, enum drps_log_level level, const char *text)
{
    struct drps_cli *cli = ctx;
    const char *kind = level == DRPS_LOG_ERROR  ? "error: "
                       : level == DRPS_LOG_WARN ? "warning: "
                                                : "";
    char hints[HINTS_BYTES];
    (void)hints_for(cli->tool, cli->input, text, hints);
    flockfile(stderr);
    erase_progress_locked(cli);
    /* stderr is where a failure would be told: nothing to do when it is gone */
    const int first_line = (int)strcspn(text, "\n"); /* what follows shows a place */
    (void)fprintf(stderr, "%s: %s%.*s%s%s\n", cli->tool->name, kind, first_line, text, hints,
                  text + first_line);
    funlockfile(stderr);
}

static int terminal_columns(void)
{
    struct winsize size;
    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) < 0 || size.ws_col < 2) return 80;
    return size.ws_col;
}

void drps_cli_progress(struct drps_cli *cli, const char *fmt, ...)
{
    if (cli->log.level < DRPS_LOG_INFO || !isatty(STDERR_FILENO)) return;
    flockfile(stderr);
    uint64_t now = drps_clock_ns();
    if (now - cli->progress_ns >= PROGRESS_INTERVAL_NS) {
        char text[512];
        va_list ap;
        va_start(ap, fmt);
        (void)vsnprintf(text, sizeof(text), fmt, ap); /* cut to the terminal's width below anyway */
        va_end(ap);
        cli->progress_ns = now;
        cli->progress_shown = 1;
        (void)fprintf(stderr, "\r%.*s\033[K", terminal_columns() - 1, text);
        (void)fflush(stderr);
    }
    funlockfile(stderr);
}

void drps_cli_progress_end(struct drps_cli *cli)
{
    flockfile(stderr);
    erase_progress_locked(cli);
    funlockfile(stderr);
}

char *drps_cli_grouped(uint64_t count, char *buf)
{
    return drps_count_format(count, buf);
}

const char *drps_cli_plural(uint64_t count, const char *one)
{
    const size_t n = strlen(one);
    const int takes_es = n > 1 && (one[n - 1] == 's' || (one[n - 1] == 'h' && one[n - 2] == 'c'));
    return count == 1 ? "" : takes_es ? "es" : "s";
}

const char *drps_cli_counted(uint64_t count, const char *one)
{
    static char texts[8][80];
    static unsigned at;
    char number[DRPS_CLI_COUNT_BYTES];
    at = (at + 1) % 8;
    (void)snprintf(texts[at], sizeof(texts[at]), "%s %s%s", drps_cli_grouped(count, number), one,
                   drps_cli_plural(count, one));
    return texts[at];
}

/* ---- JSON ---- */

int drps_cli_json_print(json_t *root, struct drps_err *err)
{
    int rc = 0;
    if (!root) return drps_err_set(err, -ENOMEM, "no memory for the JSON output");
    errno = 0;
    if (json_dumpf(root, stdout, DRPS_JSON_FLAGS) < 0 || putchar('\n') == EOF || fflush(stdout))
        rc = drps_err_set(err, errno ? -errno : -EIO, "standard output: %s",
                          errno ? strerror(errno) : "write failed");
    json_decref(root);
    return rc;
}
