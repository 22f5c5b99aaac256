/* Numbers to watch as text, in a file, and at a port. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/monitor/drps_monitor.h"
#include "base/monitor/drps_monitor_out.h"
#include "support/scratch.h"

static const struct drps_monitor_metric samples = {"drps_samples_total", "Samples.", NULL,
                                                   DRPS_MONITOR_COUNTER};
static const struct drps_monitor_metric memory = {"drps_memory_bytes", "By\\part\nnow.", "part",
                                                  DRPS_MONITOR_GAUGE};
static const struct drps_monitor_metric latency = {"drps_io_seconds", "One call.", "op",
                                                   DRPS_MONITOR_HISTOGRAM};

static struct drps_monitor *new_monitor(uint32_t rank)
{
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_monitor *m;
    assert_int_equal(drps_monitor_open(rank, &m, &err), 0);
    return m;
}

/* What is rendered, but for what the system says of the process. */
static void check_text(struct drps_monitor *m, const char *expected)
{
    size_t n;
    char *text = drps_monitor_render(m, &n);
    assert_non_null(text);
    assert_int_equal(strlen(text), n);
    char *rest = strstr(text, "# HELP process_");
    assert_non_null(rest);
    *rest = '\0';
    assert_string_equal(text, expected);
    free(text);
}

/* ---- Text ---- */

static void test_monitor_renders_counters_and_gauges(void **state)
{
    (void)state;
    struct drps_monitor *m = new_monitor(3);
    struct drps_monitor_number *n = drps_monitor_add(m, &samples, NULL);
    struct drps_monitor_number *rows = drps_monitor_add(m, &memory, "all \"rows\"\\");
    struct drps_monitor_number *other = drps_monitor_add(m, &memory, "other");
    check_text(m, "# HELP drps_samples_total Samples.\n# TYPE drps_samples_total counter\n"
                  "drps_samples_total{rank=\"3\"} 0\n");
    drps_monitor_set(n, 9007199254740991);
    drps_monitor_set(rows, 0.5);
    drps_monitor_set(other, INFINITY);
    check_text(m, "# HELP drps_samples_total Samples.\n# TYPE drps_samples_total counter\n"
                  "drps_samples_total{rank=\"3\"} 9007199254740991\n"
                  "# HELP drps_memory_bytes By\\\\part\\nnow.\n# TYPE drps_memory_bytes gauge\n"
                  "drps_memory_bytes{rank=\"3\",part=\"all \\\"rows\\\"\\\\\"} 0.5\n"
                  "drps_memory_bytes{rank=\"3\",part=\"other\"} +Inf\n");
    drps_monitor_set(other, NAN);
    drps_monitor_set(rows, NAN);
    check_text(m, "# HELP drps_samples_total Samples.\n# TYPE drps_samples_total counter\n"
                  "drps_samples_total{rank=\"3\"} 9007199254740991\n");
    drps_monitor_close(m);
}

static void test_monitor_renders_histograms_cumulatively(void **state)
{
    (void)state;
    static const double bounds[] = {1e-6, 0.5};
    struct drps_monitor *m = new_monitor(0);
    struct drps_monitor_number *n = drps_monitor_add_histogram(m, &latency, "read", bounds, 2);
    drps_monitor_set_histogram(n, (const uint64_t[]){2, 0, 5}, 7.25);
    check_text(m, "# HELP drps_io_seconds One call.\n# TYPE drps_io_seconds histogram\n"
                  "drps_io_seconds_bucket{rank=\"0\",op=\"read\",le=\"1e-06\"} 2\n"
                  "drps_io_seconds_bucket{rank=\"0\",op=\"read\",le=\"0.5\"} 2\n"
                  "drps_io_seconds_bucket{rank=\"0\",op=\"read\",le=\"+Inf\"} 7\n"
                  "drps_io_seconds_sum{rank=\"0\",op=\"read\"} 7.25\n"
                  "drps_io_seconds_count{rank=\"0\",op=\"read\"} 7\n");
    drps_monitor_close(m);
}

static void test_monitor_tells_of_the_process(void **state)
{
    (void)state;
    struct drps_monitor *m = new_monitor(0);
    double resident = 0, processor = -1, start = 0;
    size_t n;
    char *text = drps_monitor_render(m, &n);
    const char *at = strstr(text, "\nprocess_resident_memory_bytes{rank=\"0\"} ");
    assert_non_null(at);
    assert_int_equal(sscanf(at, "\nprocess_resident_memory_bytes{rank=\"0\"} %lf", &resident), 1);
    at = strstr(text, "\nprocess_cpu_seconds_total{rank=\"0\"} ");
    assert_non_null(at);
    assert_int_equal(sscanf(at, "\nprocess_cpu_seconds_total{rank=\"0\"} %lf", &processor), 1);
    at = strstr(text, "\nprocess_start_time_seconds{rank=\"0\"} ");
    assert_non_null(at);
    assert_int_equal(sscanf(at, "\nprocess_start_time_seconds{rank=\"0\"} %lf", &start), 1);
    assert_true(resident > 100000);
    assert_true(processor >= 0);
    assert_true(start > 1.6e9);
    free(text);
    drps_monitor_close(m);
}

static void test_monitor_takes_no_number_that_was_not_added(void **state)
{
    (void)state;
    drps_monitor_set(NULL, 1);
    drps_monitor_set_histogram(NULL, NULL, 1);
}

/* ---- A file ---- */

static void test_monitor_file_has_the_last_state(void **state)
{
    struct scratch *s = *state;
    const char *path = scratch_path(s, "run.prom");
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_monitor *m = new_monitor(0);
    struct drps_monitor_number *n = drps_monitor_add(m, &samples, NULL);
    struct drps_monitor_file *f;
    size_t bytes;
    for (int round = 1; round <= 2; round++) { /* the second run finds the file of the first */
        assert_int_equal(drps_monitor_file_open(m, path, &f, &err), 0);
        assert_true(path_exists(path));
        drps_monitor_set(n, round * 100);
        drps_monitor_file_close(f, 0);
        char expected[64];
        (void)snprintf(expected, sizeof(expected), "\ndrps_samples_total{rank=\"0\"} %d\n",
                       round * 100);
        char *text = scratch_read(path, &bytes);
        assert_non_null(strstr(text, expected));
        free(text);
        assert_int_equal(folder_entries(s->dir), 1);
    }
    assert_int_equal(drps_monitor_file_open(m, path, &f, &err), 0);
    drps_monitor_file_close(f, 1);
    assert_int_equal(folder_entries(s->dir), 0);
    drps_monitor_close(m);
}

static void test_monitor_file_overwrites_nothing_else(void **state)
{
    struct scratch *s = *state;
    struct drps_monitor *m = new_monitor(0);
    struct drps_monitor_file *f;
    const char *data = scratch_file(s, "data.libsvm", "1 1:1 2:1 3:1 4:1\n", SIZE_MAX);
    const char *few = scratch_file(s, "few", "# HELP", SIZE_MAX);
    const char *link = scratch_path(s, "link");
    const char *notes = scratch_file(s, "notes.prom.next", "notes\n", SIZE_MAX);
    assert_int_equal(symlink(data, link), 0);
    assert_int_equal(mkfifo(scratch_path(s, "pipe.prom.next"), 0600), 0);
    struct {
        const char *name, *path;
        int code;
        const char *text;
    } cases[] = {
        {"data", data, -EEXIST, "no file of metrics"},
        {"the beginning of such a file", few, -EEXIST, "no file of metrics"},
        {"a link", link, -EEXIST, "no file of metrics"},
        {"a folder", s->dir, -EEXIST, "no file of metrics"},
        {"notes beside it", scratch_path(s, "notes.prom"), -EEXIST, notes},
        {"a pipe beside it", scratch_path(s, "pipe.prom"), -EEXIST, "pipe.prom.next is there"},
        {"no folder", scratch_path(s, "none/run.prom"), -ENOENT, "none/run.prom cannot be written"},
    };
    (void)drps_monitor_add(m, &samples, NULL);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct drps_err err = DRPS_ERR_INIT;
        const int rc = drps_monitor_file_open(m, cases[i].path, &f, &err);
        if (rc != cases[i].code || !strstr(err.text, cases[i].text))
            fail_msg("%s: %d, %s", cases[i].name, rc, err.text);
        assert_null(f);
    }
    assert_int_equal(folder_entries(s->dir), 5);
    size_t bytes;
    char *text = scratch_read(data, &bytes);
    assert_string_equal(text, "1 1:1 2:1 3:1 4:1\n");
    free(text);
    drps_monitor_close(m);
}

/* Of what has come to the name of the next file, only the name goes. */
static void test_monitor_file_next_is_always_new(void **state)
{
    struct scratch *s = *state;
    struct drps_monitor *m = new_monitor(0);
    struct drps_monitor_file *f;
    const char *path = scratch_path(s, "run.prom"), *next = scratch_path(s, "run.prom.next");
    const char *notes = scratch_file(s, "notes", "# HELP drps_ is what I look for\n", SIZE_MAX);
    size_t bytes;
    (void)drps_monitor_add(m, &samples, NULL);
    assert_int_equal(link(notes, next), 0);
    assert_int_equal(drps_monitor_file_open(m, path, &f, NULL), 0);
    drps_monitor_file_close(f, 0);
    char *text = scratch_read(notes, &bytes);
    assert_string_equal(text, "# HELP drps_ is what I look for\n");
    free(text);
    assert_int_equal(folder_entries(s->dir), 2);
    drps_monitor_close(m);
}

static void test_monitor_out_names_files_by_rank(void **state)
{
    struct scratch *s = *state;
    static const struct {
        const char *file, *expected;
        uint32_t rank, ranks;
    } cases[] = {{"a.prom", "a.prom", 0, 1},
                 {"b.prom", "b.rank-0.prom", 0, 2},
                 {"c.d/e.prom", "c.d/e.rank-12.prom", 12, 13},
                 {"c.d/f", "c.d/f.rank-1", 1, 2},
                 {".g", ".g.rank-1", 1, 2}};
    assert_int_equal(mkdir(scratch_path(s, "c.d"), 0777), 0);
    struct drps_monitor *m = new_monitor(0);
    (void)drps_monitor_add(m, &samples, NULL);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct drps_err err = DRPS_ERR_INIT;
        struct drps_monitor_out out;
        const struct drps_monitor_options o = {.file = scratch_path(s, cases[i].file)};
        assert_int_equal(drps_monitor_out_open(m, &o, cases[i].rank, cases[i].ranks, 1, &out, &err),
                         0);
        if (!path_exists(scratch_path(s, cases[i].expected))) fail_msg("%s", cases[i].file);
        drps_monitor_out_close(&out);
        drps_monitor_out_close(&out);
    }
    drps_monitor_close(m);
}

/* ---- A port ---- */

#ifdef DRPS_WITH_MICROHTTPD
static int connect_to(uint32_t port)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&at, sizeof(at)), 0);
    return fd;
}

/* Sends a request and reads all of the answer. */
static void ask(uint32_t port, const char *request, char *answer, size_t cap)
{
    const int fd = connect_to(port);
    ssize_t n = send(fd, request, strlen(request), MSG_NOSIGNAL);
    assert_int_equal(n, (ssize_t)strlen(request));
    size_t used = 0;
    while (used + 1 < cap && (n = recv(fd, answer + used, cap - 1 - used, 0)) > 0)
        used += (size_t)n;
    answer[used] = '\0';
    (void)close(fd);
}

/* A port that is free, as far as one can know. */
static struct drps_monitor_port *open_port(struct drps_monitor *m, uint32_t *port)
{
    struct drps_monitor_port *p;
    for (uint32_t i = 0; i < 100; i++) {
        struct drps_err err = DRPS_ERR_INIT;
        *port = 20000 + ((uint32_t)getpid() * 7 + i * 131) % 12000;
        const int rc = drps_monitor_port_open(m, NULL, *port, &p, &err);
        if (rc == 0) return p;
        assert_int_equal(rc, -EADDRINUSE);
    }
    fail_msg("no port of 100 is free");
    return NULL;
}

static void test_monitor_port_answers(void **state)
{
    (void)state;
    struct drps_monitor *m = new_monitor(1);
    drps_monitor_set(drps_monitor_add(m, &samples, NULL), 7);
    uint32_t port;
    struct drps_monitor_port *p = open_port(m, &port);
    static const struct {
        const char *name, *request, *status, *has;
    } cases[] = {
        {"numbers", "GET /metrics HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", "HTTP/1.1 200",
         "\ndrps_samples_total{rank=\"1\"} 7\n"},
        {"type", "GET /metrics HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", "HTTP/1.1 200",
         "Content-Type: text/plain; version=0.0.4; charset=utf-8"},
        {"head", "HEAD /metrics HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", "HTTP/1.1 200",
         "Content-Length"},
        {"old", "GET /metrics HTTP/1.0\r\n\r\n", "HTTP/1.", "\ndrps_samples_total{rank=\"1\"} 7\n"},
        {"rubbish", "\x01\x02rubbish\r\n\r\n", "", ""}, /* and those after it are served */
        {"elsewhere", "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", "HTTP/1.1 404",
         "GET /metrics"},
        {"post",
         "POST /metrics HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nConnection: close\r\n\r\nab",
         "HTTP/1.1 405", ""},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char answer[8192];
        ask(port, cases[i].request, answer, sizeof(answer));
        if (strncmp(answer, cases[i].status, strlen(cases[i].status)) != 0 ||
            !strstr(answer, cases[i].has))
            fail_msg("%s: %s", cases[i].name, answer);
    }
    drps_monitor_port_close(p);
    drps_monitor_close(m);
}

/* Clients that say nothing, or half of a request, keep nobody waiting, nor the end. */
static void test_monitor_port_waits_for_nobody(void **state)
{
    (void)state;
    struct drps_monitor *m = new_monitor(0);
    drps_monitor_set(drps_monitor_add(m, &samples, NULL), 7);
    uint32_t port;
    int silent[8];
    char answer[8192];
    struct drps_monitor_port *p = open_port(m, &port);
    for (size_t i = 0; i < sizeof(silent) / sizeof(silent[0]); i++) {
        silent[i] = connect_to(port);
        if (i % 2) assert_int_equal(send(silent[i], "GET /met", 8, MSG_NOSIGNAL), 8);
    }
    ask(port, "GET /metrics HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", answer,
        sizeof(answer));
    assert_non_null(strstr(answer, "drps_samples_total{rank=\"0\"} 7"));
    drps_monitor_port_close(p);
    for (size_t i = 0; i < sizeof(silent) / sizeof(silent[0]); i++)
        (void)close(silent[i]);
    drps_monitor_close(m);
}

/* A job may have more files open than select() takes. */
static void test_monitor_port_answers_where_many_files_are_open(void **state)
{
    (void)state;
    enum { FILES = FD_SETSIZE + 100 };
    struct rlimit limit;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    const struct rlimit before = limit;
    if (limit.rlim_cur < FILES + 100) limit.rlim_cur = FILES + 100;
    if (setrlimit(RLIMIT_NOFILE, &limit)) skip();
    struct drps_monitor *m = new_monitor(0);
    drps_monitor_set(drps_monitor_add(m, &samples, NULL), 7);
    uint32_t port;
    struct drps_monitor_port *p = open_port(m, &port);
    static int files[FILES];
    char answer[8192];
    for (size_t i = 0; i < FILES; i++)
        files[i] = dup(STDERR_FILENO);
    assert_true(files[FILES - 1] > FD_SETSIZE);
    ask(port, "GET /metrics HTTP/1.0\r\n\r\n", answer, sizeof(answer));
    for (size_t i = 0; i < FILES; i++)
        (void)close(files[i]);
    assert_non_null(strstr(answer, "drps_samples_total{rank=\"0\"} 7"));
    drps_monitor_port_close(p);
    drps_monitor_close(m);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
}

static void test_monitor_port_is_refused(void **state)
{
    (void)state;
    struct drps_monitor *m = new_monitor(0);
    uint32_t port;
    struct drps_monitor_port *first = open_port(m, &port), *p;
    struct {
        const char *name, *address;
        uint32_t port;
        int code;
        const char *text;
    } cases[] = {
        {"in use", NULL, port, -EADDRINUSE, "Address already in use"},
        {"a name", "localhost", port, DRPS_E_CONFIG, "give numbers"},
        {"not ours", "192.0.2.1", port, -EADDRNOTAVAIL, "of 192.0.2.1"},
        {"too large", NULL, 65536, DRPS_E_CONFIG, "the largest is 65535"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct drps_err err = DRPS_ERR_INIT;
        const int rc = drps_monitor_port_open(m, cases[i].address, cases[i].port, &p, &err);
        if (rc != cases[i].code || !strstr(err.text, cases[i].text))
            fail_msg("%s: %d, %s", cases[i].name, rc, err.text);
        assert_null(p);
    }
    drps_monitor_port_close(first);
    drps_monitor_close(m);
}

static void test_monitor_out_has_a_port_for_each_rank_of_a_machine(void **state)
{
    struct scratch *s = *state;
    struct drps_monitor *m = new_monitor(0);
    uint32_t port;
    drps_monitor_port_close(open_port(m, &port));
    const struct drps_monitor_options o = {.port = port, .file = scratch_path(s, "no/run.prom")};
    struct drps_monitor_out out;
    struct drps_err err = DRPS_ERR_INIT;
    assert_int_equal(drps_monitor_out_open(m, &o, 1, 2, 1, &out, &err), -ENOENT);
    assert_null(out.port); /* what was open is closed: the port is free again */
    const struct drps_monitor_options port_only = {.port = port};
    struct drps_monitor_out outs[2];
    drps_err_clear(&err);
    for (uint32_t r = 0; r < 2; r++) {
        char answer[8192];
        if (drps_monitor_out_open(m, &port_only, r, 2, 1, &outs[r], &err))
            fail_msg("rank %u: %s", r, err.text);
        ask(port + r, "GET /metrics HTTP/1.0\r\n\r\n", answer, sizeof(answer));
        assert_non_null(strstr(answer, "process_"));
    }
    drps_monitor_out_close(&outs[0]);
    drps_monitor_out_close(&outs[1]);
    drps_monitor_close(m);
}
#else
static void test_monitor_port_needs_the_library(void **state)
{
    (void)state;
    struct drps_monitor *m = new_monitor(0);
    struct drps_monitor_port *p;
    struct drps_err err = DRPS_ERR_INIT;
    assert_int_equal(drps_monitor_port_open(m, NULL, 9100, &p, &err), DRPS_E_CONFIG);
    assert_non_null(strstr(err.text, "libmicrohttpd"));
    drps_monitor_port_close(p);
    drps_monitor_close(m);
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_monitor_renders_counters_and_gauges),
        cmocka_unit_test(test_monitor_renders_histograms_cumulatively),
        cmocka_unit_test(test_monitor_tells_of_the_process),
        cmocka_unit_test(test_monitor_takes_no_number_that_was_not_added),
        cmocka_unit_test_setup_teardown(test_monitor_file_has_the_last_state, scratch_setup,
                                        scratch_teardown),
        cmocka_unit_test_setup_teardown(test_monitor_file_overwrites_nothing_else, scratch_setup,
                                        scratch_teardown),
        cmocka_unit_test_setup_teardown(test_monitor_file_next_is_always_new, scratch_setup,
                                        scratch_teardown),
        cmocka_unit_test_setup_teardown(test_monitor_out_names_files_by_rank, scratch_setup,
                                        scratch_teardown),
#ifdef DRPS_WITH_MICROHTTPD
        cmocka_unit_test(test_monitor_port_answers),
        cmocka_unit_test(test_monitor_port_waits_for_nobody),
        cmocka_unit_test(test_monitor_port_answers_where_many_files_are_open),
        cmocka_unit_test(test_monitor_port_is_refused),
        cmocka_unit_test_setup_teardown(test_monitor_out_has_a_port_for_each_rank_of_a_machine,
                                        scratch_setup, scratch_teardown),
#else
        cmocka_unit_test(test_monitor_port_needs_the_library),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
