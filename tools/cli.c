/*
 * The shared parts of the command line tools; drps_cli.h says what they are for. Needs argp, inih
 * and jansson. Options pass through argp twice: a silent pass finds --config; then the file's
 * options, written as
 * "--name=value", are put before those of the command line, so that one parse function serves both
 * and later words win.
 */
#include "tools/drps_cli.h"

#include <errno.h>
#include <malloc.h>
#include <float.h>
#include <ini.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/drps_clock.h"
#include "base/drps_io.h"
#include "base/drps_size.h"
#include "tools/hints.h"

enum { PROGRESS_INTERVAL_NS = 100000000, CONFIG_MAX = 1 << 20 };

enum common_key { KEY_CONFIG = 0x1000, KEY_JSON };

/* One option of the configuration file, written as on the command line. */
struct drps_cli_line {
    char *option; /* own: "--name=value" or "--name" */
    int number;   /* of the line */
};

static const struct argp_option common_options[] = {
    {"config", KEY_CONFIG, "FILE", 0,
     "Take options from FILE too (lines NAME = VALUE); the command line wins", -2},
    {"json", KEY_JSON, NULL, 0, "Print results as JSON on standard output", -2},
    {"quiet", 'q', NULL, 0, "Print nothing but warnings, errors and what --json asks for", -2},
    {"verbose", 'v', NULL, 0, "Say more", -2},
    {0},
};

/* ---- Signals ---- */

/* Process-wide, as signals are. */
static atomic_int own_stop, signalled;
static atomic_int *stop_flag = &own_stop;

static void on_signal(int number)
{
    (void)number;
    if (atomic_exchange(&signalled, 1)) _exit(DRPS_EXIT_INTERRUPTED);
    atomic_store(stop_flag, 1);
}

const atomic_int *drps_cli_stop(void)
{
    return stop_flag;
}

int drps_cli_share_stop(struct drps_err *err)
{
    void *page =
        mmap(NULL, sizeof(*stop_flag), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) return drps_err_set(err, -errno, "no memory for a flag");
    atomic_int *shared = page;
    atomic_init(shared, 0);
    stop_flag = shared;
    if (atomic_load(&own_stop)) atomic_store(shared, 1); /* a signal came meanwhile */
    return 0;
}

static void install_handlers(void)
{
    struct sigaction stop = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    sigemptyset(&stop.sa_mask);
    sigemptyset(&ignore.sa_mask);
    /* These fail only for wrong numbers. */
    (void)sigaction(SIGINT, &stop, NULL);
    (void)sigaction(SIGTERM, &stop, NULL);
    (void)sigaction(SIGPIPE, &ignore, NULL);
}

/* ---- Messages and progress ---- */

static void erase_progress_locked(struct drps_cli *cli)
{
    if (!cli->progress_shown) return;
    (void)fputs("\r\033[K", stderr);
    cli->progress_shown = 0;
}

static void log_sink(void *ctx, enum drps_log_level level, const char *text)
{
    struct drps_cli *cli = ctx;
    const char *kind = level == DRPS_LOG_ERROR  ? "error: "
                       : level == DRPS_LOG_WARN ? "warning: "
                                                : "";
    char hints[HINTS_BYTES];
    (void)hints_for(cli->tool->name, cli->tool->options, text, hints);
    flockfile(stderr);
    erase_progress_locked(cli);
    /* stderr is where a failure would be told: nothing to do when it is gone */
    (void)fprintf(stderr, "%s: %s%s%s\n", cli->tool->name, kind, text, hints);
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

/* ---- Values ---- */

/* Returns the long name of the option that is being parsed, or NULL for plain arguments. */
static const char *current_option(const struct drps_cli *cli)
{
    for (const struct argp_option *o = cli->tool->options; o->name || o->key || o->doc; o++)
        if (o->key == cli->key && o->name) return o->name;
    return NULL;
}

/* Returns the configuration file's line of the option that is being parsed; 0: it comes from the
 * command line. */
static int current_line(const struct drps_cli *cli)
{
    size_t at = (size_t)cli->state->next; /* one past the word; those of the file stand first */
    return current_option(cli) && at >= 2 && at - 2 < cli->n_lines ? cli->lines[at - 2].number : 0;
}

_Noreturn void drps_cli_usage(struct drps_cli *cli, const char *fmt, ...)
{
    char text[1200];
    const char *option = current_option(cli);
    int line = current_line(cli);
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, ap); /* a cut message is still a message */
    va_end(ap);
    if (line)
        argp_error(cli->state, "%s:%d: %s: %s", cli->config_path, line, option, text);
    else if (option)
        argp_error(cli->state, "--%s: %s", option, text);
    else
        argp_error(cli->state, "%s", text);
    exit(DRPS_EXIT_USAGE); /* argp_error() has ended the program already */
}

/* Returns the decimal power of a count's suffix. *end moves past it. */
static uint64_t count_unit(const char **end)
{
    static const char letters[] = "kmgt";
    uint64_t unit = 1;
    for (const char *l = letters; *l; l++) {
        unit *= 1000;
        if (**end == *l || **end == *l - 'a' + 'A') {
            (*end)++;
            return unit;
        }
    }
    return 1;
}

int drps_cli_parse_count(const char *text, uint64_t *count_out, struct drps_err *err)
{
    const char *p = text;
    uint64_t whole = 0;
    uint64_t part = 0;  /* digits after the point, as a number */
    uint64_t scale = 1; /* 10 ^ their number */
    int digits = 0;

    *count_out = 0;
    for (; *p >= '0' && *p <= '9'; p++, digits++)
        if (__builtin_mul_overflow(whole, 10u, &whole) ||
            __builtin_add_overflow(whole, (uint64_t)(*p - '0'), &whole))
            goto too_large;
    if (*p == '.')
        for (p++; *p >= '0' && *p <= '9'; p++, digits++) {
            if (scale >= 1000000000000u) goto bad;
            part = part * 10 + (uint64_t)(*p - '0');
            scale *= 10;
        }
    if (!digits) goto bad;
    uint64_t unit = count_unit(&p);
    if (*p) goto bad;
    unsigned __int128 count =
        (unsigned __int128)whole * unit + (unsigned __int128)part * unit / scale;
    if ((unsigned __int128)part * unit % scale) goto bad; /* half a thing */
    if (count > UINT64_MAX) goto too_large;
    *count_out = (uint64_t)count;
    return 0;
bad:
    return drps_err_set(err, -EINVAL, "'%s' is not a count (examples: 1500, 4M, 1.5G; K is 1000)",
                        text);
too_large:
    return drps_err_set(err, -EINVAL, "'%s' is too large a count", text);
}

uint64_t drps_cli_count(struct drps_cli *cli, const char *arg, uint64_t min, uint64_t max)
{
    struct drps_err err = DRPS_ERR_INIT;
    uint64_t v;
    if (drps_cli_parse_count(arg, &v, &err) < 0) drps_cli_usage(cli, "%s", err.text);
    if (v < min || v > max) {
        if (max == UINT64_MAX)
            drps_cli_usage(cli, "'%s' is out of range: at least %ju", arg, (uintmax_t)min);
        drps_cli_usage(cli, "'%s' is out of range: from %ju to %ju", arg, (uintmax_t)min,
                       (uintmax_t)max);
    }
    return v;
}

uint64_t drps_cli_size(struct drps_cli *cli, const char *arg, uint64_t min, uint64_t max)
{
    struct drps_err err = DRPS_ERR_INIT;
    char lo[32], hi[32];
    uint64_t v;
    if (drps_size_parse(arg, &v, &err) < 0) drps_cli_usage(cli, "%s", err.text);
    if (v < min || v > max) {
        drps_size_format(min, lo, sizeof(lo));
        if (max == UINT64_MAX) drps_cli_usage(cli, "'%s' is out of range: at least %s", arg, lo);
        drps_cli_usage(cli, "'%s' is out of range: from %s to %s", arg, lo,
                       drps_size_format(max, hi, sizeof(hi)));
    }
    return v;
}

double drps_cli_real(struct drps_cli *cli, const char *arg, double min, double max)
{
    char *end;
    double v = strtod(arg, &end);
    if (end == arg || *end || !isfinite(v))
        drps_cli_usage(cli, "'%s' is not a number (example: 0.05)", arg);
    if (v >= min && v <= max) return v;
    if (min > 0 && min <= DBL_MIN) {
        if (max >= DBL_MAX) drps_cli_usage(cli, "'%s' is out of range: above 0", arg);
        drps_cli_usage(cli, "'%s' is out of range: above 0, up to %g", arg, max);
    }
    if (max >= DBL_MAX) drps_cli_usage(cli, "'%s' is out of range: at least %g", arg, min);
    drps_cli_usage(cli, "'%s' is out of range: from %g to %g", arg, min, max);
}

double drps_cli_share(struct drps_cli *cli, const char *arg)
{
    char *end;
    double v = strtod(arg, &end);
    if (end != arg && *end == '%') {
        v /= 100;
        end++;
    }
    if (end == arg || *end || !isfinite(v))
        drps_cli_usage(cli, "'%s' is not a share (examples: 0.1, 10%%)", arg);
    if (v < 0 || v > 1)
        drps_cli_usage(cli, "'%s' is out of range: from 0 to 1, or 0%% to 100%%", arg);
    return v;
}

size_t drps_cli_choice(struct drps_cli *cli, const char *arg, const char *const *names)
{
    char list[600] = "";
    size_t used = 0;
    for (size_t i = 0; names[i]; i++) {
        if (!strcmp(arg, names[i])) return i;
        int n = snprintf(list + used, sizeof(list) - used, "%s%s", i ? ", " : "", names[i]);
        if (n > 0 && used + (size_t)n < sizeof(list)) used += (size_t)n;
    }
    drps_cli_usage(cli, "'%s' is not one of: %s", arg, list);
}

/* ---- The configuration file ---- */

/* State of one reading; inih of Debian hands its handler no line numbers, so the reader counts. */
struct config {
    struct drps_cli *cli;
    const char *at, *end; /* what is left of the text */
    int line;
    struct drps_err err; /* the first problem */
};

/* Stands for fgets in inih. Counts lines and drops indentation, which inih would take for a
 * continued value. */
static char *config_line(char *buf, int cap, void *stream)
{
    struct config *c = stream;
    if (c->err.code || c->at == c->end) return NULL;
    const char *feed = memchr(c->at, '\n', (size_t)(c->end - c->at));
    const char *line = c->at;
    size_t n = (size_t)((feed ? feed : c->end) - line);
    c->line++;
    c->at = feed ? feed + 1 : c->end;
    const size_t indent = strspn(line, " \t"); /* of n at most: what ends the line is neither */
    line += indent;
    n -= indent;
    if (n + 2 > (size_t)cap) {
        drps_err_set(&c->err, -EINVAL, "%s:%d: the line is too long: at most %d bytes",
                     c->cli->config_path, c->line, cap - 2);
        return NULL;
    }
    memcpy(buf, line, n);
    memcpy(buf + n, "\n", 2);
    return buf;
}

static const struct argp_option *find_option(const struct argp_option *options, const char *name)
{
    for (const struct argp_option *o = options; o->name || o->key || o->doc; o++)
        if (o->name && !(o->flags & OPTION_DOC) && !strcmp(o->name, name)) return o;
    return NULL;
}

/* Returns 1 for yes, 0 for no, -1 for anything else. */
static int truth(const char *text)
{
    static const char *const words[][2] = {
        {"no", "yes"}, {"false", "true"}, {"off", "on"}, {"0", "1"}};
    for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
        for (int v = 0; v < 2; v++)
            if (!strcasecmp(text, words[i][v])) return v;
    return -1;
}

static int keep_line(struct config *c, const char *name, const char *value, int takes_value)
{
    struct drps_cli *cli = c->cli;
    if (cli->n_lines == cli->cap_lines) {
        size_t cap = cli->cap_lines ? 2 * cli->cap_lines : 16;
        struct drps_cli_line *lines = reallocarray(cli->lines, cap, sizeof(*lines));
        if (!lines) return drps_err_set(&c->err, -ENOMEM, "%s: no memory", cli->config_path);
        cli->lines = lines;
        cli->cap_lines = cap;
    }
    struct drps_cli_line *l = &cli->lines[cli->n_lines];
    if (asprintf(&l->option, "--%s%s%s", name, takes_value ? "=" : "", takes_value ? value : "") <
        0)
        return drps_err_set(&c->err, -ENOMEM, "%s: no memory", cli->config_path);
    l->number = c->line;
    cli->n_lines++;
    return 0;
}

/* inih's handler: 1 goes on, 0 marks the line as wrong. */
static int config_pair(void *user, const char *section, const char *name, const char *value)
{
    struct config *c = user;
    const char *path = c->cli->config_path;
    const char *tool = c->cli->tool->name;

    if (c->err.code) return 0;
    if (*section && strcmp(section, tool)) {
        if (!strncmp(section, "drps-", 5)) return 1; /* another tool's; one file may serve all */
        drps_err_set(&c->err, -EINVAL,
                     "%s:%d: unknown section [%s]; sections are the tools' names, here [%s]", path,
                     c->line, section, tool);
        return 0;
    }
    const struct argp_option *o = find_option(c->cli->tool->options, name);
    if (!o) o = find_option(common_options, name);
    if (!o || o->key == KEY_CONFIG) {
        drps_err_set(&c->err, -EINVAL,
                     "%s:%d: unknown option '%s' (names are the long options of %s --help)", path,
                     c->line, name, tool);
        return 0;
    }
    int yes = o->arg ? 1 : truth(value);
    if (yes < 0) {
        drps_err_set(&c->err, -EINVAL, "%s:%d: %s: '%s' is neither yes nor no", path, c->line, name,
                     value);
        return 0;
    }
    return yes == 0 || keep_line(c, name, value, o->arg != NULL) == 0;
}

static int config_read(struct drps_cli *cli, struct drps_err *err)
{
    struct config c = {.cli = cli, .err = DRPS_ERR_INIT};
    char *text;
    size_t n;
    int rc = drps_io_read_text(drps_io_os(), cli->config_path, CONFIG_MAX, &text, &n, err);
    if (rc < 0) {
        (void)drps_err_context(err, "--config"); /* its result is the code, which rc has */
        return rc;
    }
    c.at = text;
    c.end = text + n;
    int bad_line = ini_parse_stream(config_line, &c, config_pair, &c);
    free(text);
    if (bad_line > 0 && !c.err.code)
        drps_err_set(&c.err, -EINVAL, "%s:%d: expected NAME = VALUE or [SECTION]", cli->config_path,
                     bad_line);
    else if (bad_line < 0)
        drps_err_set(&c.err, -ENOMEM, "%s: no memory", cli->config_path);
    return c.err.code ? drps_err_set(err, c.err.code, "%s", c.err.text) : 0;
}

/* ---- Options ---- */

static error_t parse_common(int key, char *arg, struct argp_state *state)
{
    struct drps_cli *cli = state->input;
    (void)arg; /* --config was read before */
    switch (key) {
    case KEY_CONFIG:
        return 0;
    case KEY_JSON:
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
    if (key == KEY_CONFIG) cli->config_path = arg;
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
    static const struct argp common = {.options = common_options, .parser = parse_config_only};
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
    struct argp_option options[sizeof(common_options) / sizeof(common_options[0])];
    const struct argp common = {.options = options, .parser = parse_common};
    const struct argp_child children[] = {{&common, 0, "Common options:", -2}, {0}};
    const struct argp argp = {.options = cli->tool->options,
                              .parser = parse_tool,
                              .args_doc = cli->tool->args_doc,
                              .doc = cli->tool->doc,
                              .children = children};

    /* argp sets two empty lines between groups of other numbers where the second has a header. */
    memcpy(options, common_options, sizeof(options));
    for (struct argp_option *o = options; o->name; o++)
        o->group = last_group(cli->tool->options);
    char **words = words_new(argc, argv, cli->lines, cli->n_lines);
    if (!words) return drps_err_set(err, -ENOMEM, "no memory for the options");
    error_t failed = argp_parse(&argp, argc + (int)cli->n_lines, words, 0, NULL, cli);
    free(words);
    cli->state = NULL;
    return failed ? drps_err_set(err, -failed, "options: %s", strerror(failed)) : 0;
}

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
    cli->log = (struct drps_log){.level = DRPS_LOG_INFO, .sink = log_sink, .ctx = cli};
    (void)snprintf(version, sizeof(version), "%s %s", tool->name, DRPS_VERSION);
    argp_program_version = version;
    argp_err_exit_status = DRPS_EXIT_USAGE;
    install_handlers();
    int rc = find_config(cli, argc, argv, &err);
    if (rc == 0 && cli->config_path) rc = config_read(cli, &err);
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

int drps_cli_finish(struct drps_cli *cli, int rc, const struct drps_err *err)
{
    int code = DRPS_EXIT_DONE;

    drps_cli_progress_end(cli);
    if (rc == DRPS_E_INTERRUPTED)
        code = DRPS_EXIT_INTERRUPTED;
    else if (rc == DRPS_E_CONFIG)
        code = DRPS_EXIT_USAGE;
    else if (rc < 0)
        code = cli->again ? DRPS_EXIT_AGAIN : DRPS_EXIT_FAILED;
    if (rc < 0)
        drps_log(&cli->log, DRPS_LOG_ERROR, "%s", err && err->code ? err->text : drps_err_name(rc));
    if ((fflush(stdout) || ferror(stdout)) && code == DRPS_EXIT_DONE) {
        drps_log(&cli->log, DRPS_LOG_ERROR, "standard output: %s", strerror(errno));
        code = DRPS_EXIT_FAILED;
    }
    for (size_t i = 0; i < cli->n_lines; i++)
        free(cli->lines[i].option);
    free(cli->lines);
    cli->lines = NULL;
    cli->n_lines = cli->cap_lines = 0;
    return code;
}

/* ---- JSON ---- */

json_t *drps_cli_json_real(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

json_t *drps_cli_json_count(uint64_t value)
{
    return json_integer(value > INT64_MAX ? INT64_MAX : (json_int_t)value);
}

int drps_cli_json_print(json_t *root, struct drps_err *err)
{
    int rc = 0;
    if (!root) return drps_err_set(err, -ENOMEM, "no memory for the JSON output");
    /* 17 digits: every double reads back as itself */
    errno = 0;
    if (json_dumpf(root, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(17)) < 0 ||
        putchar('\n') == EOF || fflush(stdout))
        rc = drps_err_set(err, errno ? -errno : -EIO, "standard output: %s",
                          errno ? strerror(errno) : "write failed");
    json_decref(root);
    return rc;
}
