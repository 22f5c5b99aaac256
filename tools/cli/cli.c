/*
 * How a tool begins and ends. Options pass through argp twice: a silent pass finds --config; then
 * the file's options, written as "--name=value", are put before those of the command line, so that
 * one parse function serves both and later words win.
 */
#include <errno.h>
#include <malloc.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/kernel/drps_level.h"
#include "tools/cli/cli_internal.h"

/* ---- Options ---- */

const struct argp_option cli_common_options[CLI_COMMON_OPTIONS] = {
    {"config", CLI_KEY_CONFIG, "FILE", 0,
     "Take options from FILE too (lines NAME = VALUE); the command line wins", -2},
    {"json", CLI_KEY_JSON, NULL, 0, "Print results as JSON on standard output", -2},
    {"quiet", 'q', NULL, 0, "Print nothing but warnings, errors and what --json asks for", -2},
    {"verbose", 'v', NULL, 0, "Say more", -2},
    {0},
};

static error_t parse_common(int key, char *arg, struct argp_state *state)
{
    struct drps_cli *cli = state->input;
    (void)arg; /* --config was read before */
    switch (key) {
    case CLI_KEY_CONFIG:
        return 0;
    case CLI_KEY_JSON:
        cli->json = 1;
        return 0;
    case 'q':
        cli->log.level = DRPS_LOG_WARN;
        return 0;
    case 'v':
        cli->log.level = DRPS_LOG_DEBUG;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static error_t parse_tool(int key, char *arg, struct argp_state *state)
{
    struct drps_cli *cli = state->input;
    cli->state = state;
    cli->key = key;
    if (key == ARGP_KEY_INIT) {
        state->child_inputs[0] = cli;
        return 0;
    }
    return cli->tool->parse(cli, key, arg);
}

/* The silent pass: parent and child use it; only the parent has inputs to hand on. */
static error_t parse_config_only(int key, char *arg, struct argp_state *state)
{
    struct drps_cli *cli = state->input;
    if (key == ARGP_KEY_INIT && state->child_inputs) state->child_inputs[0] = cli;
    if (key == CLI_KEY_CONFIG) cli->config_path = arg;
    return 0;
}

/* Make the words for argp: argv with `extra` put behind the program's name. free() the array; NULL:
 * no memory. */
static char **words_new(int argc, char **argv, const struct drps_cli_line *extra, size_t n_extra)
{
    size_t given = (size_t)argc;
    char **words = calloc(given + n_extra + 1, sizeof(*words));
    if (!words || !given) return words;
    words[0] = argv[0];
    for (size_t i = 0; i < n_extra; i++)
        words[1 + i] = extra[i].option;
    memcpy(words + 1 + n_extra, argv + 1, (given - 1) * sizeof(*words));
    return words;
}

/* Set cli->config_path. */
static int find_config(struct drps_cli *cli, int argc, char **argv, struct drps_err *err)
{
    static const struct argp common = {.options = cli_common_options, .parser = parse_config_only};
    const struct argp_child children[] = {{&common, 0, NULL, 0}, {0}};
    const struct argp argp = {
        .options = cli->tool->options, .parser = parse_config_only, .children = children};

    char **words = words_new(argc, argv, NULL, 0); /* argp reorders them */
    if (!words) return drps_err_set(err, -ENOMEM, "no memory for the options");
    (void)argp_parse(&argp, argc, words, ARGP_SILENT, NULL,
                     cli); /* parse_options() tells what is wrong */
    free(words);
    return 0;
}

static int last_group(const struct argp_option *options)
{
    int last = 0;
    for (const struct argp_option *o = options; o->name || o->key || o->doc; o++)
        if (o->group > last) last = o->group;
    return last;
}

/* Parse the file's options and the command line's; ends the program where they are wrong. */
static int parse_options(struct drps_cli *cli, int argc, char **argv, struct drps_err *err)
{
    struct argp_option options[CLI_COMMON_OPTIONS];
    const struct argp common = {.options = options, .parser = parse_common};
    const struct argp_child children[] = {{&common, 0, "Common options:", -2}, {0}};
    const struct argp argp = {.options = cli->tool->options,
                              .parser = parse_tool,
                              .args_doc = cli->tool->args_doc,
                              .doc = cli->tool->doc,
                              .children = children};

    /* argp sets two empty lines between groups of other numbers where the second has a header. */
    memcpy(options, cli_common_options, sizeof(options));
    for (struct argp_option *o = options; o->name; o++)
        o->group = last_group(cli->tool->options);
    char **words = words_new(argc, argv, cli->lines, cli->n_lines);
    if (!words) return drps_err_set(err, -ENOMEM, "no memory for the options");
    error_t failed = argp_parse(&argp, argc + (int)cli->n_lines, words, 0, NULL, cli);
    free(words);
    cli->state = NULL;
    return failed ? drps_err_set(err, -failed, "options: %s", strerror(failed)) : 0;
}

/* ---- The program ---- */

void drps_cli_start(struct drps_cli *cli, const struct drps_cli_tool *tool, void *input, int argc,
                    char **argv)
{
    static char version[64]; /* argp wants it to live as long as the program */
    struct drps_err err = DRPS_ERR_INIT;

    /* --memory bounds the process: few heaps, and large blocks go back to the kernel when they are
     * freed. */
    (void)mallopt(M_ARENA_MAX, 2);
    (void)mallopt(M_MMAP_THRESHOLD, 256 << 10);
    *cli = (struct drps_cli){.tool = tool, .input = input};
    cli->log = (struct drps_log){.level = DRPS_LOG_INFO, .sink = cli_log_sink, .ctx = cli};
    (void)snprintf(version, sizeof(version), "%s %s", tool->name, DRPS_VERSION);
    argp_program_version = version;
    argp_err_exit_status = DRPS_EXIT_USAGE;
    (void)drps_command_text(tool->name, argc, argv, cli->command);
    cli_handle_signals();
    int rc = drps_level_set(getenv("DRPS_INSTRUCTIONS"), &err);
    if (rc == 0) rc = find_config(cli, argc, argv, &err);
    if (rc == 0 && cli->config_path) rc = cli_config_read(cli, &err);
    if (rc == 0) rc = parse_options(cli, argc, argv, &err);
    if (rc < 0) exit(drps_cli_finish(cli, DRPS_E_CONFIG, &err));
}

void drps_cli_raise_files(const struct drps_cli *cli)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur == limit.rlim_max) return;
    limit.rlim_cur = limit.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &limit)) return; /* whoever needs more than there are says so */
    drps_log(&cli->log, DRPS_LOG_DEBUG, "at most %llu open files",
             (unsigned long long)limit.rlim_cur);
}

/* 1: standard output is a pipe that nobody reads any more, as head does when it has enough. */
static int reader_is_gone(void)
{
    struct pollfd out = {.fd = STDOUT_FILENO, .events = POLLOUT};
    return poll(&out, 1, 0) == 1 && (out.revents & (POLLERR | POLLHUP));
}

int drps_cli_finish(struct drps_cli *cli, int rc, const struct drps_err *err)
{
    int code = DRPS_EXIT_DONE;
    const int failed = fflush(stdout) || ferror(stdout), why = errno;
    const int unread = failed && reader_is_gone();

    drps_cli_progress_end(cli);
    if (rc == DRPS_E_INTERRUPTED)
        code = DRPS_EXIT_INTERRUPTED;
    else if (rc == DRPS_E_CONFIG)
        code = DRPS_EXIT_USAGE;
    else if (rc < 0)
        code = cli->again ? DRPS_EXIT_AGAIN : DRPS_EXIT_FAILED;
    if (rc < 0 && !(rc == -EPIPE && unread))
        drps_log(&cli->log, DRPS_LOG_ERROR, "%s", err && err->code ? err->text : drps_err_name(rc));
    if (failed && !unread && code == DRPS_EXIT_DONE) {
        drps_log(&cli->log, DRPS_LOG_ERROR, "standard output: %s", strerror(why));
        code = DRPS_EXIT_FAILED;
    }
    cli_config_free(cli);
    return code;
}
