/* tools/cli: the tests run a small tool that prints the values it took as JSON. */
#include "tools/drps_cli.h"

#include <errno.h>
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "support/run_self.h"
#include "tools/cli/hints.h"
#include "tools/drps_json_text.h"

/* ---- The tool ---- */

struct tool_options {
    uint64_t epochs, memory, speed;
    double lr, share;
    size_t sync;
    int flag, fail;
    const char *output, *order, *plan;
};

enum tool_key {
    KEY_EPOCHS = DRPS_CLI_KEY,
    KEY_MEMORY,
    KEY_LR,
    KEY_SHARE,
    KEY_SYNC,
    KEY_FLAG,
    KEY_ORDER,
    KEY_FAIL,
    KEY_SPEED
};

static const struct argp_option tool_table[] = {
    {"epochs", KEY_EPOCHS, "N", 0, "Epochs", 0},
    {"memory", KEY_MEMORY, "SIZE", 0, "Memory", 0},
    {"lr", KEY_LR, "X", 0, "Step size", 0},
    {"share", KEY_SHARE, "P", 0, "Share", 0},
    {"speed", KEY_SPEED, "SPEED", 0, "Of a link", 0},
    {"sync", KEY_SYNC, "S", 0, "bsp or asp", 0},
    {"flag", KEY_FLAG, NULL, 0, "A flag", 0},
    {"order", KEY_ORDER, "NAME", 0, "given or grid", 0},
    {"fail", KEY_FAIL, "CODE", 0, "Fail so", 0},
    {"output", 'o', "FILE", 0, "Output", 0},
    {0},
};

static int tool_parse(struct drps_cli *cli, int key, char *arg)
{
    static const char *const modes[] = {"bsp", "asp", NULL};
    static const char *const orders[] = {"given", "grid", NULL};
    struct tool_options *o = cli->input;
    const struct drps_value_plain plain[] = {
        {.key = KEY_FLAG, .flag = &o->flag},
        {.key = 'o', .text = &o->output},
        {.key = KEY_ORDER, .text = &o->order, .names = orders},
    };
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_values v = drps_cli_values(&err);
    switch (key) {
    case KEY_EPOCHS:
        o->epochs = drps_cli_count(cli, arg, 1, 1000);
        return 0;
    case KEY_MEMORY:
        o->memory = drps_cli_size(cli, arg, 1 << 20, UINT64_MAX);
        return 0;
    case KEY_LR:
        o->lr = drps_cli_real(cli, arg, DBL_MIN, DBL_MAX);
        return 0;
    case KEY_SHARE:
        o->share = drps_cli_share(cli, arg);
        return 0;
    case KEY_SPEED:
        o->speed = drps_cli_speed(cli, arg);
        return 0;
    case KEY_SYNC:
        o->sync = drps_cli_choice(cli, arg, modes);
        return 0;
    case KEY_FAIL:
        o->fail = atoi(arg);
        return 0;
    case ARGP_KEY_ARG:
        if (o->plan) return ARGP_ERR_UNKNOWN;
        o->plan = arg;
        return 0;
    case ARGP_KEY_END:
        if (!o->plan) drps_cli_usage(cli, "say which plan");
        return 0;
    default:
        return drps_cli_taken(
            cli, drps_value_take(&v, plain, sizeof(plain) / sizeof(*plain), key, arg), &err);
    }
}

static const struct drps_cli_tool tool = {
    .name = "drps-test",
    .args_doc = "PLAN",
    .doc = "A tool for tests.",
    .options = tool_table,
    .parse = tool_parse,
};

static int tool_run(struct drps_cli *cli, const struct tool_options *o, struct drps_err *err)
{
    drps_log(&cli->log, DRPS_LOG_WARN, "a warning");
    drps_log(&cli->log, DRPS_LOG_INFO, "a message");
    drps_log(&cli->log, DRPS_LOG_DEBUG, "a detail");
    drps_cli_progress(cli, "half done");
    if (o->fail > 0) {
        (void)raise(o->fail);
        if (atomic_load_explicit(drps_cli_stop(), memory_order_relaxed)) {
            do
                (void)raise(
                    o->fail); /* of the first second it is ignored; later it does not return */
            while (o->flag);
            return drps_err_set(err, DRPS_E_INTERRUPTED, "stopped");
        }
    }
    if (o->fail < 0) return drps_err_set(err, o->fail, "it failed");
    return drps_cli_json_print(
        json_pack("{s:o, s:o, s:o, s:o, s:o, s:i, s:i, s:s, s:s, s:s, s:b, s:o}", "epochs",
                  drps_json_count(o->epochs), "memory", drps_json_count(o->memory), "lr",
                  drps_json_real(o->lr), "share", drps_json_real(o->share), "speed",
                  drps_json_count(o->speed), "sync", (int)o->sync, "flag", o->flag, "output",
                  o->output ? o->output : "", "order", o->order ? o->order : "", "plan", o->plan,
                  "json", cli->json, "nan", drps_json_real(NAN)),
        err);
}

static int tool_main(int argc, char **argv)
{
    struct tool_options o = {.epochs = 7};
    struct drps_cli cli;
    struct drps_err err = DRPS_ERR_INIT;
    drps_cli_start(&cli, &tool, &o, argc, argv);
    return drps_cli_finish(&cli, tool_run(&cli, &o, &err), &err);
}

/* ---- Tools of the tests ---- */

#define RUN(r, ...) run_self((r), (const char *const[]){__VA_ARGS__, NULL}, NULL)

static void assert_in(const char *text, const char *part)
{
    if (!strstr(text, part)) fail_msg("expected \"%s\" in:\n%s", part, text);
}

/* Write a configuration file; returns its name, valid until the next call. */
static const char *config_bytes(const char *text, size_t n)
{
    static char path[512];
    const char *root = getenv("TMPDIR");
    (void)snprintf(path, sizeof(path), "%s/drps_test_cli.%d.ini", root ? root : "/tmp",
                   (int)getpid());
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_int_equal(fwrite(text, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
    return path;
}

static const char *config(const char *text)
{
    return config_bytes(text, strlen(text));
}

static int config_remove(void **state)
{
    (void)state;
    (void)unlink(config(""));
    return 0;
}

static json_t *values(const struct run_self *r)
{
    json_error_t e;
    if (r->code) fail_msg("exit code %d: %s", r->code, r->err);
    json_t *root = json_loads(r->out, 0, &e);
    if (!root) fail_msg("not JSON (%s): %s", e.text, r->out);
    return root;
}

static json_int_t integer_of(const json_t *root, const char *key)
{
    return json_integer_value(json_object_get(root, key));
}

/* ---- Tests ---- */

static void test_cli_parse_count_reads_decimal_suffixes(void **state)
{
    static const struct {
        const char *text;
        uint64_t value;
    } good[] = {{"0", 0},
                {"1500", 1500},
                {"4M", 4000000},
                {"4m", 4000000},
                {"1.5G", 1500000000},
                {"0.25k", 250},
                {"2T", 2000000000000},
                {"18446744073709551615", UINT64_MAX}};
    static const char *const bad[] = {"",        "x",           "-1",  "4X",
                                      "1.5",     "4MB",         "1e3", " 4",
                                      "4 M",     ".",           "K",   "18446744073709551616",
                                      "0.0001K", "20000000000T"};
    (void)state;
    for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++) {
        uint64_t v;
        struct drps_err err = DRPS_ERR_INIT;
        if (drps_count_parse(good[i].text, &v, &err) != 0 || v != good[i].value)
            fail_msg("'%s': found %ju, expected %ju %s", good[i].text, (uintmax_t)v,
                     (uintmax_t)good[i].value, err.text);
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        uint64_t v;
        struct drps_err err = DRPS_ERR_INIT;
        if (drps_count_parse(bad[i], &v, &err) != -EINVAL)
            fail_msg("'%s' was taken as %ju", bad[i], (uintmax_t)v);
        assert_in(err.text, bad[i]);
    }
}

static void test_cli_takes_plain_options(void **state)
{
    struct run_self r;
    (void)state;
    RUN(&r, "p", "--flag", "-o", "any text", "--order", "given", "--order", "grid");
    json_t *root = values(&r);
    assert_int_equal(integer_of(root, "flag"), 1);
    assert_string_equal(json_string_value(json_object_get(root, "output")), "any text");
    assert_string_equal(json_string_value(json_object_get(root, "order")), "grid");
    json_decref(root);
    RUN(&r, "p", "--order", "sorted");
    assert_int_equal(r.code, 2);
    assert_in(r.err, "--order: 'sorted' is not one of: given, grid");
    RUN(&r, "p", "--order", "given");
    root = values(&r);
    assert_int_equal(integer_of(root, "flag"), 0);
    assert_string_equal(json_string_value(json_object_get(root, "output")), "");
    json_decref(root);
}

static void test_cli_options_reach_the_tool(void **state)
{
    struct run_self r;
    (void)state;
    RUN(&r, "plan/", "--epochs=3", "--memory", "1.5G", "--lr", "0.05", "--share=10%", "--sync",
        "asp", "--flag", "-o", "model", "--json");
    json_t *v = values(&r);
    assert_int_equal(integer_of(v, "epochs"), 3);
    assert_int_equal(integer_of(v, "memory"), 3 << 29);
    assert_true(json_real_value(json_object_get(v, "lr")) == 0.05); /* 17 digits: exact */
    assert_true(json_real_value(json_object_get(v, "share")) == 0.1);
    assert_int_equal(integer_of(v, "sync"), 1);
    assert_int_equal(integer_of(v, "flag"), 1);
    assert_string_equal(json_string_value(json_object_get(v, "output")), "model");
    assert_string_equal(json_string_value(json_object_get(v, "plan")), "plan/");
    assert_true(json_is_true(json_object_get(v, "json")));
    assert_true(json_is_null(json_object_get(v, "nan")));
    json_decref(v);
}

static void test_cli_command_line_wins_over_the_file(void **state)
{
    const char *path = config("# shared by all tools\n"
                              "epochs = 4\n"
                              "[drps-index]\n"
                              "blocks = auto\n"
                              "[drps-test]\n"
                              "  memory = 2M ; indented, with a comment\n"
                              "sync: asp\n"
                              "flag = yes\n"
                              "json = no\n"
                              "output = a file\n");
    struct run_self r;
    (void)state;
    RUN(&r, "--epochs", "9", "plan", "--config", path, "--memory=3M");
    json_t *v = values(&r);
    assert_int_equal(integer_of(v, "epochs"), 9);
    assert_int_equal(integer_of(v, "memory"), 3 << 20);
    assert_int_equal(integer_of(v, "sync"), 1);
    assert_int_equal(integer_of(v, "flag"), 1);
    assert_true(json_is_false(json_object_get(v, "json")));
    assert_string_equal(json_string_value(json_object_get(v, "output")), "a file");
    json_decref(v);
}

static void test_cli_file_problems_name_file_and_line(void **state)
{
    char long_line[400];
    static const struct {
        const char *name, *text, *says;
    } cases[] = {
        {"unknown key", "epochs = 1\nepoch = 2\n", ":2: unknown option 'epoch'"},
        {"unknown section", "[drps-test]\n[other]\nlr = 1\n", ":3: unknown section [other]"},
        {"wrong value", "\n\nepochs = many\n", ":3: epochs: 'many' is not a count"},
        {"range", "epochs = 0\n", ":1: epochs: '0' is out of range: from 1 to 1000"},
        {"flag", "flag = perhaps\n", ":1: flag: 'perhaps' is neither yes nor no"},
        {"no value", "epochs = 1\nlr\n", ":2: expected NAME = VALUE"},
        {"nested", "config = x\n", ":1: unknown option 'config'"},
    };
    struct run_self r;
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        const char *path = config(cases[i].text);
        RUN(&r, "plan", "--config", path);
        if (r.code != DRPS_EXIT_USAGE)
            fail_msg("%s: exit code %d: %s", cases[i].name, r.code, r.err);
        assert_in(r.err, path);
        assert_in(r.err, cases[i].says);
        assert_string_equal(r.out, "");
    }
    memset(long_line, 'x', sizeof(long_line) - 1);
    long_line[sizeof(long_line) - 1] = '\0';
    RUN(&r, "plan", "--config", config(long_line));
    assert_int_equal(r.code, DRPS_EXIT_USAGE);
    assert_in(r.err, ":1: the line is too long");
    RUN(&r, "plan", "--config", "/nonexistent/file.ini");
    assert_int_equal(r.code, DRPS_EXIT_USAGE);
    assert_in(r.err, "/nonexistent/file.ini: No such file or directory");
}

/* What an editor does not show must not take part in a value. */
static void test_cli_file_is_text(void **state)
{
#define BYTES(text) text, sizeof(text) - 1
    static const struct {
        const char *name, *text;
        size_t n;
        const char *says; /* NULL: it is read */
    } cases[] = {
        {"nul", BYTES("epochs = 1\n  lr = 0\0.5\n"), ":2:9: a control character (byte 0x00)"},
        {"nul at the end", BYTES("epochs = 1\0"), ":1:11: a control character (byte 0x00)"},
        {"escape in a comment", BYTES("# \033[31m\n"), ":1:3: a control character (byte 0x1b)"},
        {"delete", BYTES("output = a\177b\n"), ":1:11: a control character (byte 0x7f)"},
        {"a carriage return within", BYTES("output = a\rb\n"), ":1:11: a control character"},
        {"in another tool's section", BYTES("[drps-index]\nx = \001\n"), ":2:5: a control"},
        {"ends of lines", BYTES("epochs\t= 7\r\noutput = caf\303\251"), NULL},
    };
#undef BYTES
    struct run_self r;
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        const char *path = config_bytes(cases[i].text, cases[i].n);
        RUN(&r, "plan", "--config", path);
        if (r.code != (cases[i].says ? DRPS_EXIT_USAGE : DRPS_EXIT_DONE))
            fail_msg("%s: exit code %d: %s", cases[i].name, r.code, r.err);
        if (cases[i].says) assert_in(r.err, cases[i].says);
    }
    const char *path = config("epochs = 7\n");
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkfifo(path, 0600), 0);
    RUN(&r, "plan", "--config", path);
    assert_int_equal(r.code, DRPS_EXIT_USAGE);
    assert_in(r.err, "is a pipe, where a regular file is expected");
    assert_int_equal(unlink(path), 0);
}

static void test_cli_speeds_of_links(void **state)
{
    static const struct {
        const char *text;
        json_int_t bits;
    } cases[] = {
        {"1Gbit", 1000000000}, {"100Mbit/s", 100000000}, {"2.5g", 2500000000}, {"9600bit", 9600}};
    struct run_self r;
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        RUN(&r, "plan", "--json", "--speed", cases[i].text);
        json_t *v = values(&r);
        if (integer_of(v, "speed") != cases[i].bits)
            fail_msg("%s: %lld", cases[i].text, (long long)integer_of(v, "speed"));
        json_decref(v);
    }
}

static void test_cli_wrong_usage_exits_with_2(void **state)
{
    static const struct {
        const char *args[4], *says;
    } cases[] = {
        {{"plan", "--nonsense"}, "unrecognized option"},
        {{"plan", "--epochs"}, "requires an argument"},
        {{"plan", "--epochs", "1001"}, "--epochs: '1001' is out of range: from 1 to 1000"},
        {{"plan", "--memory", "64Q"}, "--memory: '64Q' is not a size"},
        {{"plan", "--memory", "1K"}, "--memory: '1K' is out of range: at least 1.0 MiB"},
        {{"plan", "--lr", "0"}, "--lr: '0' is out of range: above 0"},
        {{"plan", "--lr", "nan"}, "--lr: 'nan' is not a number"},
        {{"plan", "--lr", "1,5"}, "--lr: '1,5' is not a number"},
        {{"plan", "--share", "120%"}, "--share: '120%' is out of range"},
        {{"plan", "--speed", "fast"}, "--speed: 'fast' is not the speed of a link"},
        {{"plan", "--speed", "0"}, "--speed: '0' is not the speed of a link"},
        {{"plan", "--speed", "1GB"}, "--speed: '1GB' is not the speed of a link"},
        {{"plan", "--sync", "csp"}, "--sync: 'csp' is not one of: bsp, asp"},
        {{"plan", "another"}, "Too many arguments"},
        {{NULL}, "say which plan"},
    };
    struct run_self r;
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        run_self(&r, cases[i].args, NULL);
        if (r.code != DRPS_EXIT_USAGE)
            fail_msg("%s: exit code %d: %s", cases[i].says, r.code, r.err);
        assert_in(r.err, cases[i].says);
        assert_string_equal(r.out, "");
    }
}

static void test_cli_help_and_version_go_to_stdout(void **state)
{
    struct run_self r;
    (void)state;
    RUN(&r, "--help");
    assert_int_equal(r.code, DRPS_EXIT_DONE);
    assert_in(r.out, "--epochs=N");
    assert_in(r.out, "--config=FILE");
    assert_string_equal(r.err, "");
    RUN(&r, "--version");
    assert_int_equal(r.code, DRPS_EXIT_DONE);
    assert_in(r.out, "drps-test " DRPS_VERSION);
}

static void test_cli_levels_choose_the_messages(void **state)
{
    struct run_self r;
    (void)state;
    RUN(&r, "plan", "--quiet");
    assert_string_equal(r.err, "drps-test: warning: a warning\n");
    RUN(&r, "plan"); /* no progress line: stderr is no terminal */
    assert_string_equal(r.err, "drps-test: warning: a warning\ndrps-test: a message\n");
    RUN(&r, "plan", "-v");
    assert_in(r.err, "drps-test: a detail\n");
}

static void test_cli_failures_choose_the_exit_code(void **state)
{
    static const struct {
        int code, exit_code;
    } cases[] = {{-EIO, DRPS_EXIT_FAILED},
                 {DRPS_E_CORRUPT, DRPS_EXIT_FAILED},
                 {DRPS_E_CONFIG, DRPS_EXIT_USAGE},
                 {DRPS_E_INTERRUPTED, DRPS_EXIT_INTERRUPTED}};
    struct run_self r;
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        char option[32];
        (void)snprintf(option, sizeof(option), "--fail=%d", cases[i].code);
        RUN(&r, "plan", option, "-q");
        assert_int_equal(r.code, cases[i].exit_code);
        assert_in(r.err, "drps-test: error: it failed\n");
    }
}

static void test_cli_first_signal_asks_later_one_ends(void **state)
{
    static const int signals[] = {SIGINT, SIGTERM};
    struct run_self r;
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        char option[32];
        (void)snprintf(option, sizeof(option), "--fail=%d", signals[i]);
        RUN(&r, "plan", option);
        assert_int_equal(r.code, DRPS_EXIT_INTERRUPTED);
        assert_in(r.err, "stopped");
        RUN(&r, "plan", option, "--flag");
        assert_int_equal(r.code, DRPS_EXIT_INTERRUPTED);
        assert_null(strstr(r.err, "stopped"));
    }
}

static void test_cli_full_disk_fails(void **state)
{
    struct run_self r;
    (void)state;
    if (access("/dev/full", W_OK) != 0) skip();
    run_self(&r, (const char *const[]){"plan", NULL}, "/dev/full");
    assert_int_equal(r.code, DRPS_EXIT_FAILED);
    assert_in(r.err, "standard output: No space left on device");
}

/* ---- Hints ---- */

static int refuses_memory(const void *input, int key)
{
    return input && key == KEY_MEMORY;
}

static void test_cli_hints_leave_out_what_the_tool_refuses(void **state)
{
    struct drps_cli_tool refusing = tool;
    const char *text = "try a smaller learning rate, or raise the memory limit";
    char out[HINTS_BYTES];
    (void)state;
    refusing.refuses = refuses_memory;
    assert_string_equal(hints_for(&refusing, "given", text, out), " (--lr)");
    assert_string_equal(hints_for(&refusing, NULL, text, out), " (--memory, --lr)");
}

static void test_cli_hints_name_options_of_the_tool(void **state)
{
    static const struct {
        const char *name, *text, *hints;
    } cases[] = {
        {"one", "a memory limit of 1.0 MiB is too small", " (--memory)"},
        {"two", "try a smaller learning rate, or raise the memory limit", " (--memory, --lr)"},
        {"none", "stored bytes are damaged", ""},
        {"an option that the tool has not", "choose another name, or have it replaced", ""},
        {"another tool's words", "the algorithm lor has no factors", ""},
        {"another command", "make each rank keys of its own", " (drps-train --make-keys DIR)"},
        {"named already", "--memory: the memory limit is too small", ""},
        {"named in the beginning of another", "--memory-of: the memory limit", " (--memory)"},
    };
    char out[HINTS_BYTES];
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        if (strcmp(hints_for(&tool, NULL, cases[i].text, out), cases[i].hints) != 0)
            fail_msg("%s: expected '%s', found '%s'", cases[i].name, cases[i].hints, out);
}

static void test_cli_counts_one_and_many(void **state)
{
    (void)state;
    assert_string_equal(drps_cli_counted(0, "row"), "0 rows");
    assert_string_equal(drps_cli_counted(1, "row"), "1 row");
    assert_string_equal(drps_cli_counted(1234, "bad line"), "1,234 bad lines");
    assert_string_equal(drps_cli_counted(1, "batch"), "1 batch");
    assert_string_equal(drps_cli_counted(2, "batch"), "2 batches");
    assert_string_equal(drps_cli_counted(2, "pass"), "2 passes");
    json_t *j = json_pack("{s:i, s:i}", "one", 1, "two", 2);
    assert_string_equal(counted_of(j, "one", "batch"), "1 batch");
    assert_string_equal(counted_of(j, "two", "batch"), "2 batches");
    assert_string_equal(counted_of(j, "two", "row"), "2 rows");
    assert_string_equal(counted_of(j, "none", "row"), "- rows");
    json_decref(j);
}

int main(int argc, char **argv)
{
    if (argc > 1 && !strcmp(argv[1], RUN_SELF_TOOL)) {
        argv[1] = argv[0];
        return tool_main(argc - 1, argv + 1);
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cli_parse_count_reads_decimal_suffixes),
        cmocka_unit_test(test_cli_takes_plain_options),
        cmocka_unit_test(test_cli_options_reach_the_tool),
        cmocka_unit_test(test_cli_command_line_wins_over_the_file),
        cmocka_unit_test(test_cli_file_problems_name_file_and_line),
        cmocka_unit_test(test_cli_file_is_text),
        cmocka_unit_test(test_cli_speeds_of_links),
        cmocka_unit_test(test_cli_wrong_usage_exits_with_2),
        cmocka_unit_test(test_cli_help_and_version_go_to_stdout),
        cmocka_unit_test(test_cli_levels_choose_the_messages),
        cmocka_unit_test(test_cli_failures_choose_the_exit_code),
        cmocka_unit_test(test_cli_first_signal_asks_later_one_ends),
        cmocka_unit_test(test_cli_hints_name_options_of_the_tool),
        cmocka_unit_test(test_cli_hints_leave_out_what_the_tool_refuses),
        cmocka_unit_test(test_cli_counts_one_and_many),
        cmocka_unit_test(test_cli_full_disk_fails),
    };
    return cmocka_run_group_tests_name("cli", tests, NULL, config_remove);
}
