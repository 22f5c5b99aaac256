/*
 * What the command line tools share: options (glibc argp), the same options from a configuration
 * file, messages and progress on stderr, JSON on stdout, interruption by signals, exit codes.
 *
 * A tool is a table of options, a parse function, and
 *
 *   int main(int argc, char **argv)
 *   {
 *       struct options o = {.epochs = 1};
 *       struct drps_cli cli;
 *       struct drps_err err = DRPS_ERR_INIT;
 *       drps_cli_start(&cli, &tool, &o, argc, argv);
 *       return drps_cli_finish(&cli, run(&cli, &o, &err), &err);
 *   }
 *
 * Every tool gets --help, --usage, --version, --config FILE, --json, -q/--quiet and -v/--verbose.
 * Exit codes: 0 done, 1 failed, 2 wrong usage, 75 failed and worth another start, 130 interrupted.
 */
#ifndef DRPS_TOOLS_CLI_H
#define DRPS_TOOLS_CLI_H

#include <argp.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "api/report/drps_json.h"
#include "api/settings/drps_values.h"
#include "base/drps_size.h"
#include "base/drps_err.h"
#include "base/drps_log.h"
#include "base/folder/drps_command.h"

enum drps_cli_exit {
    DRPS_EXIT_DONE = 0,
    DRPS_EXIT_FAILED = 1,
    DRPS_EXIT_USAGE = 2,
    DRPS_EXIT_AGAIN = 75, /* EX_TEMPFAIL of sysexits.h */
    DRPS_EXIT_INTERRUPTED = 130,
};

/* Keys of a tool's options that have no short form begin here. */
enum { DRPS_CLI_KEY = 0x100 };

struct drps_cli;

/* What a tool says about itself. Everything is borrowed for the life of the program. */
struct drps_cli_tool {
    const char *name;     /* "drps-train": also the tool's section in a configuration file */
    const char *args_doc; /* "PLAN -o MODEL"; NULL when there are no arguments */
    const char *doc;      /* what --help says above and, after "\v", below the options */
    const struct argp_option *options; /* {0}-terminated */

    /*
     * Take one option (its key and value) or ARGP_KEY_ARG (a plain argument), or check everything
     * at ARGP_KEY_END. Returns 0, or ARGP_ERR_UNKNOWN for keys it does not know. Wrong values end
     * the program through drps_cli_usage(). `arg` stays valid until drps_cli_finish(). A later
     * option replaces an earlier one: that is how the command line wins over the configuration
     * file.
     */
    int (*parse)(struct drps_cli *cli, int key, char *arg);

    /* Whether the option of this key may not be given beside those of `input`: then no message
     * advises it. NULL: any may be. */
    int (*refuses)(const void *input, int key);
};

/* One run of a tool. Caller's storage, usually in main(). */
struct drps_cli {
    const struct drps_cli_tool *tool;
    void *input; /* borrowed: the tool's own options, for its parse function */

    int again; /* the tool's: a failure is one after which the same may succeed, which ends with 75
                */
    int json;  /* --json: results on stdout as JSON */
    struct drps_log log; /* pass &cli->log on. Info; --quiet: warnings; --verbose: debug */

    char command[DRPS_COMMAND_BYTES]; /* the words of the command line, as a shell reads them */

    /* Private to tools/cli/. */
    struct argp_state *state;    /* while options are parsed */
    int key;                     /* the option being parsed */
    char *config_path;           /* --config */
    struct drps_cli_line *lines; /* own: options taken from the configuration file */
    size_t n_lines, cap_lines;
    int progress_shown; /* a progress line stands on the terminal; guarded by flockfile(stderr) */
    uint64_t progress_ns;
};

/*
 * Fill *cli, parse the options, ignore SIGPIPE (training goes on though nobody reads its lines) and
 * install the handlers of SIGINT and SIGTERM. Ends the program for --help and --version (0) and for
 * wrong usage (2).
 */
void drps_cli_start(struct drps_cli *cli, const struct drps_cli_tool *tool, void *input, int argc,
                    char **argv);

/*
 * The end of main: erase the progress line, flush stdout, print `err` when rc < 0, free what *cli
 * owns. Returns the exit code; DRPS_E_CONFIG is wrong usage, DRPS_E_INTERRUPTED interrupted. Where
 * nobody reads standard output any more, that is not told: work that was done is done (0), and what
 * could not be written, rc -EPIPE, is a failure.
 */
int drps_cli_finish(struct drps_cli *cli, int rc, const struct drps_err *err);

/*
 * Becomes non-zero at the first SIGINT or SIGTERM; one that comes a second later, or after that,
 * ends the program at once with 130. Static; poll it with relaxed loads, from any thread. Work that
 * stops for it returns DRPS_E_INTERRUPTED.
 */
const atomic_int *drps_cli_stop(void);

/* From now on the processes that this one forks, and it, have that flag in common: a signal to any
 * of them stops all. A later signal still ends the process that gets it. Once, before anybody
 * has asked for drps_cli_stop(). */
DRPS_MUST_CHECK
int drps_cli_share_stop(struct drps_err *err);

/* Raise this process's limit of open files as far as it may: for ranks, which hold several a peer,
 * and whom strangers may cost some. */
void drps_cli_raise_files(const struct drps_cli *cli);

/* ---- Within a parse function ---- */

/*
 * End the program with 2 and this message, which gets the option's name in front (and file and
 * line, where the option comes from the configuration file).
 */
_Noreturn void drps_cli_usage(struct drps_cli *cli, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/*
 * Values of the option being parsed. Limits are inclusive; a wrong value ends the program with 2.
 * size: bytes, "256M" is 2^28. count: "4M" is 4,000,000. real: a min of DBL_MIN means above 0.
 * speed: bits a second, "1Gbit" or "100M" with decimal units, at least 1. share: "0.1" or "10%",
 * from 0 to 1. choice: the index of `arg` in NULL-terminated `names`.
 */
uint64_t drps_cli_size(struct drps_cli *cli, const char *arg, uint64_t min, uint64_t max);
uint64_t drps_cli_count(struct drps_cli *cli, const char *arg, uint64_t min, uint64_t max);
uint64_t drps_cli_speed(struct drps_cli *cli, const char *arg);
double drps_cli_real(struct drps_cli *cli, const char *arg, double min, double max);
double drps_cli_share(struct drps_cli *cli, const char *arg);
size_t drps_cli_choice(struct drps_cli *cli, const char *arg, const char *const *names);

/* Settings taken in a parse function show their names as options; *err is clean. */
struct drps_values drps_cli_values(struct drps_err *err);

/* The end of a parse function: what is wrong ends the program; else returns 0, or ARGP_ERR_UNKNOWN
 * if the option is not known. */
int drps_cli_taken(struct drps_cli *cli, int known, const struct drps_err *err);

/* ---- While running ---- */

/*
 * Show a progress line on stderr, if that is a terminal and --quiet was not given; at most ten
 * times a second. Log messages erase it first. Threads: any. (drps_progress.h has the texts.)
 */
void drps_cli_progress(struct drps_cli *cli, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
void drps_cli_progress_end(struct drps_cli *cli);

/* "1,234,567" into buf, which has room for DRPS_CLI_COUNT_BYTES. Returns buf. */
enum { DRPS_CLI_COUNT_BYTES = DRPS_COUNT_BYTES };
char *drps_cli_grouped(uint64_t count, char *buf);

/* Returns the ending of the plural of `one`, "s" or "es"; for a count of 1, "". */
const char *drps_cli_plural(uint64_t count, const char *one);
/* "1 batch", "1,234 batches": `one` in the plural that it has by rule, unless there is one. In one
 * of eight buffers, in turn; texts that are too long for it are cut. Threads: one. */
const char *drps_cli_counted(uint64_t count, const char *one);

/* Print `root` (moved; NULL when memory was gone while it was built) on stdout and flush. */
DRPS_MUST_CHECK
int drps_cli_json_print(json_t *root, struct drps_err *err);

#endif
