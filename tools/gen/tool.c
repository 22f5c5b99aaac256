/* drps-gen makes synthetic data sets. This file has its options, output files and progress; the
 * data sets themselves are in ctr.c, classification.c and matrix.c. */
#include "tools/gen/tool.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/drps_clock.h"
#include "base/drps_size.h"
#include "tools/drps_cli.h"
#include "tools/drps_progress.h"
#include "tools/gen/gen.h"

enum { BUFFER_BYTES = 1 << 20 };

#define ID_LIMIT (UINT64_C(1) << 48)

static const struct gen_kind *const kinds[] = {&gen_ctr, &gen_classification, &gen_matrix};
enum { N_KINDS = sizeof(kinds) / sizeof(*kinds), CTR = 1, CLASSIFICATION = 2, MATRIX = 4 };

struct options {
    struct gen_options gen;
    size_t kind; /* N_KINDS: not given */
    uint64_t test_samples;
    const char *output, *test_output;
    int force;
    unsigned given; /* bit i: an option of shapes[i] */
};

/* ---- Options ---- */

enum key {
    KEY_SAMPLES = DRPS_CLI_KEY,
    KEY_SEED,
    KEY_TEST_SAMPLES,
    KEY_TEST_OUTPUT,
    KEY_ROWS,
    KEY_ZIPF,
    KEY_FIELDS,
    KEY_INTERACTIONS,
    KEY_FORMAT,
    KEY_NNZ,
    KEY_USERS,
    KEY_ITEMS,
    KEY_RATINGS,
    KEY_FACTORS,
    KEY_RANK, /* of drps-train; here a mistake that is told */
    KEY_NOISE,
    KEY_FORCE,
};

static const struct argp_option option_table[] = {
    {"samples", KEY_SAMPLES, "N", 0, "Samples in all (default 1M)", 1},
    {"seed", KEY_SEED, "N", 0, "Another seed gives another set (default 1)", 1},
    {"output", 'o', "FILE", 0, "Write here instead of standard output", 1},
    {"force", KEY_FORCE, NULL, 0, "Replace files that exist", 1},
    {"test-samples", KEY_TEST_SAMPLES, "N", 0, "The last N samples go to --test-output (default 0)",
     1},
    {"test-output", KEY_TEST_OUTPUT, "FILE", 0, "File for the last samples", 1},
    {NULL, 0, NULL, 0, "ctr and classification:", 2},
    {"rows", KEY_ROWS, "N", 0, "Feature ids run from 1 to N (default 1M)", 2},
    {"zipf", KEY_ZIPF, "S", 0, "Frequencies fall as 1 / rank^S (default 1.05; 0: uniform)", 2},
    {NULL, 0, NULL, 0, "ctr:", 3},
    {"fields", KEY_FIELDS, "N", 0, "Fields, one feature of each in every sample (default 39)", 3},
    {"interactions", KEY_INTERACTIONS, "K", 0,
     "Labels also follow K hidden factors of each feature (default 0: they do not)", 3},
    {"format", KEY_FORMAT, "F", 0, "libsvm (default) or libffm", 3},
    {NULL, 0, NULL, 0, "classification:", 4},
    {"nnz", KEY_NNZ, "N", 0, "Features of a sample: 1 to 2 N - 1 (default 100)", 4},
    {NULL, 0, NULL, 0, "matrix:", 5},
    {"users", KEY_USERS, "N", 0, "Users (default 100K)", 5},
    {"items", KEY_ITEMS, "N", 0, "Items (default 10K)", 5},
    {"ratings", KEY_RATINGS, "N", 0, "Another name of --samples", 5},
    {"factors", KEY_FACTORS, "K", 0, "Hidden factors of each user and item (default 8)", 5},
    {"rank", KEY_RANK, "N", OPTION_HIDDEN, NULL, 5},
    {"noise", KEY_NOISE, "SD", 0, "Standard deviation of the noise (default 0.3)", 5},
    {0},
};

/* Options that only some kinds know. */
static const struct {
    int key;
    const char *name;
    unsigned kinds;
} shapes[] = {
    {KEY_ROWS, "rows", CTR | CLASSIFICATION},
    {KEY_ZIPF, "zipf", CTR | CLASSIFICATION},
    {KEY_FIELDS, "fields", CTR},
    {KEY_INTERACTIONS, "interactions", CTR},
    {KEY_FORMAT, "format", CTR},
    {KEY_NNZ, "nnz", CLASSIFICATION},
    {KEY_USERS, "users", MATRIX},
    {KEY_ITEMS, "items", MATRIX},
    {KEY_FACTORS, "factors", MATRIX},
    {KEY_NOISE, "noise", MATRIX},
};
enum { N_SHAPES = sizeof(shapes) / sizeof(*shapes) };

static void take_kind(struct drps_cli *cli, struct options *o, const char *arg)
{
    if (o->kind < N_KINDS) drps_cli_usage(cli, "one data set at a time: '%s' is too much", arg);
    for (o->kind = 0; o->kind < N_KINDS; o->kind++)
        if (!strcmp(arg, kinds[o->kind]->name)) return;
    drps_cli_usage(cli, "'%s' is not one of: ctr, classification, matrix", arg);
}

static void check(struct drps_cli *cli, const struct options *o)
{
    if (o->kind == N_KINDS)
        drps_cli_usage(cli, "say which data set: ctr, classification or matrix");
    for (size_t i = 0; i < N_SHAPES; i++)
        if (o->given >> i & 1 && !(shapes[i].kinds >> o->kind & 1))
            drps_cli_usage(cli, "--%s does not apply to %s", shapes[i].name, kinds[o->kind]->name);
    if (o->test_samples > o->gen.samples)
        drps_cli_usage(cli, "--test-samples %ju is more than the %ju samples in all",
                       (uintmax_t)o->test_samples, (uintmax_t)o->gen.samples);
    if (o->test_samples && !o->test_output)
        drps_cli_usage(cli, "--test-samples needs --test-output FILE");
    if (!o->test_samples && o->test_output)
        drps_cli_usage(cli, "--test-output needs --test-samples N");
    if (o->output && o->test_output && !strcmp(o->output, o->test_output))
        drps_cli_usage(cli, "--output and --test-output are the same file");
    if (cli->json && !o->output)
        drps_cli_usage(cli, "--json writes to standard output: give the data set a file with -o");
}

static int parse(struct drps_cli *cli, int key, char *arg)
{
    static const char *const formats[] = {"libsvm", "libffm", NULL};
    struct options *o = cli->input;
    struct gen_options *g = &o->gen;

    for (size_t i = 0; i < N_SHAPES; i++)
        if (shapes[i].key == key) o->given |= 1u << i;
    switch (key) {
    case KEY_SAMPLES:
    case KEY_RATINGS:
        g->samples = drps_cli_count(cli, arg, 1, UINT64_MAX / 2);
        return 0;
    case KEY_SEED:
        g->seed = drps_cli_count(cli, arg, 0, UINT64_MAX);
        return 0;
    case 'o':
        o->output = strcmp(arg, "-") ? arg : NULL;
        return 0;
    case KEY_FORCE:
        o->force = 1;
        return 0;
    case KEY_TEST_SAMPLES:
        o->test_samples = drps_cli_count(cli, arg, 0, UINT64_MAX / 2);
        return 0;
    case KEY_TEST_OUTPUT:
        o->test_output = arg;
        return 0;
    case KEY_ROWS:
        g->rows = drps_cli_count(cli, arg, 1, ID_LIMIT);
        return 0;
    case KEY_ZIPF:
        g->zipf = drps_cli_real(cli, arg, 0, 10);
        return 0;
    case KEY_FIELDS:
        g->fields = drps_cli_count(cli, arg, 1, GEN_MAX_FIELDS);
        return 0;
    case KEY_INTERACTIONS:
        g->interactions = drps_cli_count(cli, arg, 0, GEN_MAX_FACTORS);
        return 0;
    case KEY_FORMAT:
        g->format = (enum gen_format)drps_cli_choice(cli, arg, formats);
        return 0;
    case KEY_NNZ:
        g->nnz = drps_cli_count(cli, arg, 1, GEN_MAX_NNZ);
        return 0;
    case KEY_USERS:
        g->users = drps_cli_count(cli, arg, 1, ID_LIMIT);
        return 0;
    case KEY_ITEMS:
        g->items = drps_cli_count(cli, arg, 1, ID_LIMIT);
        return 0;
    case KEY_FACTORS:
        g->factors = drps_cli_count(cli, arg, 1, GEN_MAX_FACTORS);
        return 0;
    case KEY_RANK:
        drps_cli_usage(cli,
                       "a rank is a process of several, in drps-train; say --factors %s for "
                       "the length of the factors",
                       arg);
    case KEY_NOISE:
        g->noise = drps_cli_real(cli, arg, 0, 1000);
        return 0;
    case ARGP_KEY_ARG:
        take_kind(cli, o, arg);
        return 0;
    case ARGP_KEY_END:
        check(cli, o);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct drps_cli_tool tool = {
    .name = "drps-gen",
    .args_doc = "ctr|classification|matrix",
    .doc = "Make a synthetic data set: text on standard output, one sample a line."
           "\vCounts take K, M, G and T for powers of 1000. The same options give the same bytes.",
    .options = option_table,
    .parse = parse,
};

/* ---- Output ---- */

/* A text file being written. */
struct sink {
    const char *path; /* borrowed; NULL: standard output */
    int fd;           /* -1: closed */
    int is_file;      /* regular: always ready */
    char *buf;        /* own */
    size_t used, cap;
    uint64_t bytes; /* written, without what is in buf */
};

static const char *sink_name(const struct sink *s)
{
    return s->path ? s->path : "standard output";
}

/* Open the file to write. Pipes and devices are written to as they are, a file that exists only
 * with --force. Returns a descriptor, or a negative code. */
static int open_output(const char *path, int force, struct drps_err *err)
{
    struct stat st;
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0 && errno == EEXIST) {
        if (!force && stat(path, &st) == 0 && S_ISREG(st.st_mode))
            return drps_err_set(
                err, -EEXIST,
                "%s exists already: choose another name, or pass --force to replace it", path);
        fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    }
    return fd >= 0 ? fd : drps_err_set(err, -errno, "cannot write %s: %s", path, strerror(errno));
}

static int sink_open(struct sink *s, const char *path, int force, size_t line_bytes,
                     struct drps_err *err)
{
    s->path = path;
    s->cap = BUFFER_BYTES + line_bytes;
    s->buf = malloc(s->cap);
    if (!s->buf) return drps_err_set(err, -ENOMEM, "no memory for lines of %zu bytes", line_bytes);
    s->fd = path ? open_output(path, force, err) : STDOUT_FILENO;
    if (s->fd < 0) return s->fd;
    struct stat st;
    s->is_file = fstat(s->fd, &st) == 0 && S_ISREG(st.st_mode);
    return 0;
}

/* Returns how much may be written now; 0: the run is interrupted. Who reads from a pipe may keep us
 * waiting, so look at the stop flag now and then. A pipe that is ready takes PIPE_BUF bytes at
 * once. */
static size_t sink_room(const struct sink *s, size_t n)
{
    enum { LOOK_MS = 100 };
    struct pollfd fd = {.fd = s->fd, .events = POLLOUT};
    if (s->is_file) return n;
    while (!atomic_load_explicit(drps_cli_stop(), memory_order_relaxed)) {
        const int ready = poll(&fd, 1, LOOK_MS);
        if (ready > 0 || (ready < 0 && errno != EINTR)) /* write() reports faults */
            return n < PIPE_BUF ? n : PIPE_BUF;
    }
    return 0;
}

static int sink_flush(struct sink *s, struct drps_err *err)
{
    for (size_t done = 0; done < s->used;) {
        const size_t room = sink_room(s, s->used - done);
        if (!room)
            return drps_err_set(err, DRPS_E_INTERRUPTED, "interrupted while writing %s",
                                sink_name(s));
        ssize_t n = write(s->fd, s->buf + done, room);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0)
            return drps_err_set(err, -errno, "cannot write %s at byte %ju: %s", sink_name(s),
                                (uintmax_t)(s->bytes + done), strerror(errno));
        done += (size_t)n;
    }
    s->bytes += s->used;
    s->used = 0;
    return 0;
}

/* Flush and close; some file systems report a full disk only here. */
static int sink_finish(struct sink *s, struct drps_err *err)
{
    int rc = sink_flush(s, err);
    if (rc < 0 || !s->path) return rc;
    int failed = close(s->fd);
    s->fd = -1;
    return failed ? drps_err_set(err, -errno, "cannot write %s: %s", s->path, strerror(errno)) : 0;
}

/* Give up what is still open: an unfinished file would pass for a whole one, so it is removed. */
static void sink_abort(struct sink *s)
{
    struct stat st;
    if (s->path && s->fd >= 0) {
        if (fstat(s->fd, &st) == 0 && S_ISREG(st.st_mode))
            (void)unlink(s->path); /* a failure is told already */
        (void)close(s->fd);
    }
    free(s->buf);
}

/* ---- The run ---- */

struct totals {
    uint64_t start_ns;
    uint64_t nnz;
    double labels; /* sum */
    uint64_t positive;
};

/* Write the samples begin .. end - 1 to s. */
static int write_samples(struct drps_cli *cli, const struct options *o, struct gen *g,
                         uint64_t begin, uint64_t end, struct sink *s, struct totals *t,
                         struct drps_err *err)
{
    const struct gen_kind *kind = kinds[o->kind];
    for (uint64_t i = begin; i < end; i++) {
        double label;
        size_t nnz;
        s->used = (size_t)(kind->line(g, i, s->buf + s->used, &label, &nnz) - s->buf);
        t->nnz += nnz;
        t->labels += label;
        t->positive += label > 0;
        if (s->used < BUFFER_BYTES) continue;
        int rc = sink_flush(s, err);
        if (rc < 0) return rc;
        if (atomic_load_explicit(drps_cli_stop(), memory_order_relaxed))
            return drps_err_set(err, DRPS_E_INTERRUPTED, "interrupted after %ju of %ju samples",
                                (uintmax_t)i + 1, (uintmax_t)o->gen.samples);
        drps_progress_show(cli,
                           &(struct drps_progress){.what = kind->name,
                                                   .unit = "samples",
                                                   .done = i + 1,
                                                   .total = o->gen.samples,
                                                   .seconds = drps_seconds_since(t->start_ns)});
    }
    return sink_finish(s, err);
}

static int report(struct drps_cli *cli, const struct options *o, const struct totals *t,
                  uint64_t bytes, struct drps_err *err)
{
    char size[32];
    double n = (double)o->gen.samples, seconds = drps_seconds_since(t->start_ns);
    int matrix = kinds[o->kind] == &gen_matrix;
    if (!cli->json) {
        char samples[DRPS_CLI_COUNT_BYTES];
        drps_log(&cli->log, DRPS_LOG_INFO, "%s samples, %.1f features each, %s %.3g, %s in %.1f s",
                 drps_cli_grouped(o->gen.samples, samples), (double)t->nnz / n,
                 matrix ? "mean rating" : "positive share",
                 matrix ? t->labels / n : (double)t->positive / n,
                 drps_size_format(bytes, size, sizeof(size)), seconds);
        return 0;
    }
    json_t *root =
        json_pack("{s:s, s:o, s:o, s:o, s:o, s:o, s:o}", "kind", kinds[o->kind]->name, "samples",
                  drps_cli_json_count(o->gen.samples), "test_samples",
                  drps_cli_json_count(o->test_samples), "nnz", drps_cli_json_count(t->nnz), "bytes",
                  drps_cli_json_count(bytes), matrix ? "mean_rating" : "positive_share",
                  drps_cli_json_real(matrix ? t->labels / n : (double)t->positive / n), "seconds",
                  drps_cli_json_real(seconds));
    return drps_cli_json_print(root, err);
}

static int run(struct drps_cli *cli, struct options *o, struct drps_err *err)
{
    const struct gen_kind *kind = kinds[o->kind];
    struct sink train = {.fd = -1}, test = {.fd = -1};
    struct totals totals = {.start_ns = drps_clock_ns()};
    struct gen *g = NULL;
    uint64_t n_train = o->gen.samples - o->test_samples;

    int rc = kind->new (&o->gen, &g, err);
    if (rc == 0) rc = sink_open(&train, o->output, o->force, kind->line_bytes(g), err);
    if (rc == 0 && o->test_output)
        rc = sink_open(&test, o->test_output, o->force, kind->line_bytes(g), err);
    if (rc == 0) rc = write_samples(cli, o, g, 0, n_train, &train, &totals, err);
    if (rc == 0 && o->test_output)
        rc = write_samples(cli, o, g, n_train, o->gen.samples, &test, &totals, err);
    if (rc == 0) rc = report(cli, o, &totals, train.bytes + test.bytes, err);
    sink_abort(&train);
    sink_abort(&test);
    kind->free(g);
    return rc;
}

int gen_tool_main(int argc, char **argv)
{
    struct options o = {
        .gen = {.samples = 1000000,
                .seed = 1,
                .rows = 1000000,
                .zipf = 1.05,
                .fields = 39,
                .nnz = 100,
                .users = 100000,
                .items = 10000,
                .factors = 8,
                .noise = 0.3},
        .kind = N_KINDS,
    };
    struct drps_cli cli;
    struct drps_err err = DRPS_ERR_INIT;
    drps_cli_start(&cli, &tool, &o, argc, argv);
    return drps_cli_finish(&cli, run(&cli, &o, &err), &err);
}
