/* What drps-top reads and draws, of texts as jobs show them and of broken ones. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/scratch.h"
#include "tools/top/curve.h"
#include "tools/top/readings.h"
#include "tools/top/source.h"
#include "tools/top/view.h"

static struct readings parsed(const char *text, double at)
{
    struct drps_err err = DRPS_ERR_INIT;
    struct readings r;
    if (readings_parse(strdup(text), at, &r, &err)) fail_msg("%s", err.text);
    return r;
}

/* ---- Readings ---- */

static void test_readings_have_names_labels_and_ranks(void **state)
{
    (void)state;
    struct readings r = parsed("# HELP drps_a A.\n# TYPE drps_a gauge\ndrps_a{rank=\"7\"} 1.5\n"
                               "drps_b{rank=\"7\",part=\"all \\\"rows\\\"\\\\\"} 2\n"
                               "drps_c{part=\"x\",rank=\"7\"} +Inf\nplain 3\n",
                               1);
    assert_int_equal(r.rank, 7);
    assert_int_equal(r.n, 4);
    assert_true(readings_get(&r, "drps_a", "") == 1.5);
    assert_true(readings_get(&r, "drps_b", "all \"rows\"\\") == 2);
    assert_true(isinf(readings_get(&r, "drps_c", "x")));
    assert_true(readings_get(&r, "plain", "") == 3);
    assert_true(isnan(readings_get(&r, "drps_a", "x")));
    assert_true(isnan(readings_get(&r, "drps_none", "")));
    readings_free(&r);
}

static void test_readings_leave_broken_lines_out(void **state)
{
    (void)state;
    static const char *const lines[] = {"drps_x",
                                        "drps_x{",
                                        "drps_x{rank",
                                        "drps_x{rank=\"",
                                        "{} 1",
                                        "drps_x{rank=\"1\"",
                                        "drps_x{rank=\"1\"}",
                                        "drps_x{a=1} 2",
                                        "drps_x nothing",
                                        "dr\x1bps_x 1",
                                        ""};
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        char text[256];
        (void)snprintf(text, sizeof(text), "%s\ndrps_good 1\ndrps_cut 12", lines[i]);
        struct readings r = parsed(text, 1);
        if (r.n != 1 || !(readings_get(&r, "drps_good", "") > 0)) fail_msg("'%s'", lines[i]);
        readings_free(&r);
    }
}

static void test_readings_keep_the_terminal_safe(void **state)
{
    (void)state;
    struct readings r = parsed("drps_a{part=\"\x1b[2Jx\xff\"} 1\n", 1);
    assert_string_equal(r.list[0].label, "?[2Jx?");
    readings_free(&r);
}

static void test_readings_refuse_other_texts(void **state)
{
    (void)state;
    static const char *const texts[] = {"", "1 1:1\n", "node_load1 2\n", "# HELP drps_a A.\n"};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct drps_err err = DRPS_ERR_INIT;
        struct readings r;
        assert_int_equal(readings_parse(strdup(texts[i]), 1, &r, &err), DRPS_E_FORMAT);
        assert_null(r.text);
    }
}

static void test_readings_have_rates(void **state)
{
    (void)state;
    struct readings before = parsed("drps_n_total 10\ndrps_b_total 10\n", 1);
    struct readings now = parsed("drps_n_total 40\ndrps_b_total 4\ndrps_new_total 1\n", 3);
    assert_true(readings_rate(&before, &now, "drps_n_total", "") == 15);
    assert_true(isnan(readings_rate(&before, &now, "drps_b_total", "")));   /* began anew */
    assert_true(isnan(readings_rate(&before, &now, "drps_new_total", ""))); /* was not there */
    assert_true(isnan(readings_rate(&now, &now, "drps_n_total", "")));      /* no time */
    readings_free(&before);
    readings_free(&now);
}

static void test_readings_have_quantiles_of_what_came_between(void **state)
{
    (void)state;
    static const char form[] = "drps_s_bucket{op=\"read\",le=\"0.001\"} %d\n"
                               "drps_s_bucket{op=\"read\",le=\"0.01\"} %d\n"
                               "drps_s_bucket{op=\"read\",le=\"+Inf\"} %d\n";
    char text[2][512];
    (void)snprintf(text[0], sizeof(text[0]), form, 1000, 1000, 1000);
    (void)snprintf(text[1], sizeof(text[1]), form, 1010, 1099, 1100);
    struct readings before = parsed(text[0], 1), now = parsed(text[1], 2);
    assert_true(readings_quantile(&before, &now, "drps_s_bucket", "read", 0.1) == 0.001);
    assert_true(readings_quantile(&before, &now, "drps_s_bucket", "read", 0.99) == 0.01);
    assert_true(isinf(readings_quantile(&before, &now, "drps_s_bucket", "read", 1)));
    assert_true(isnan(readings_quantile(&now, &now, "drps_s_bucket", "read", 0.5)));
    readings_free(&before);
    readings_free(&now);
}

/* ---- The curve ---- */

static void test_curve_shows_the_last_points(void **state)
{
    (void)state;
    struct curve c = {0};
    char lines[3][CURVE_WIDTH_MOST + 1];
    double least, most;
    assert_int_equal(curve_draw(&c, 4, 3, lines, &least, &most), 0);
    const double losses[] = {9, 3, 2, 1};
    for (size_t i = 0; i < 4; i++)
        curve_add(&c, losses[i], i == 3 ? 3 : NAN);
    curve_add(&c, NAN, NAN); /* nothing is known */
    assert_int_equal(curve_draw(&c, 3, 3, lines, &least, &most), 1);
    assert_true(least == 1 && most == 3);
    assert_string_equal(lines[0], "* o");
    assert_string_equal(lines[1], " * ");
    assert_string_equal(lines[2], "  *");
}

static void test_curve_takes_any_number_of_points(void **state)
{
    (void)state;
    struct curve *c = calloc(1, sizeof(*c));
    assert_non_null(c);
    for (size_t i = 0; i < 10 * CURVE_POINTS; i++)
        curve_add(c, (double)i, NAN);
    assert_true(c->n > CURVE_POINTS / 2 && c->n <= CURVE_POINTS);
    for (size_t i = 1; i < c->n; i++)
        assert_true(c->loss[i] > c->loss[i - 1]);
    assert_true(c->loss[c->n - 1] > 9.9 * CURVE_POINTS);
    free(c);
}

/* ---- Sources ---- */

static void put_rank(struct scratch *s, const char *folder, unsigned rank, unsigned long samples)
{
    char name[96], text[256];
    (void)mkdir(scratch_path(s, folder), 0777); /* it may be there */
    (void)snprintf(name, sizeof(name), "%s/metrics.prom", folder);
    (void)snprintf(text, sizeof(text),
                   "drps_train_samples_total{rank=\"%u\"} %lu\n"
                   "drps_train_phase{rank=\"%u\",phase=\"train\"} 1\n"
                   "drps_train_loss{rank=\"%u\"} 0.5\n",
                   rank, samples, rank, rank);
    (void)scratch_file(s, name, text, SIZE_MAX);
}

static void test_sources_find_all_ranks_of_a_model(void **state)
{
    struct scratch *s = *state;
    const char *name = scratch_path(s, "a[b]");
    struct sources all = {.names = &name, .names_n = 1};
    struct drps_err err = DRPS_ERR_INIT;
    assert_int_equal(sources_read(&all, &err), 0);
    assert_int_equal(all.n, 0); /* it has not begun */
    put_rank(s, "a[b].rank-10.partial", 10, 3);
    put_rank(s, "a[b].rank-2.partial", 2, 2);
    put_rank(s, "a[b].partial", 0, 1);
    put_rank(s, "ab.partial", 0, 1); /* another model's */
    assert_int_equal(sources_read(&all, &err), 0);
    assert_int_equal(all.n, 3);
    assert_int_equal(sources_alive(&all), 3);
    assert_int_equal(source_now(&all.list[0])->rank, 0);
    assert_int_equal(source_now(&all.list[1])->rank, 2);
    assert_int_equal(source_now(&all.list[2])->rank, 10);
    assert_int_equal(unlink(scratch_path(s, "a[b].partial/metrics.prom")), 0);
    assert_int_equal(sources_read(&all, &err), 0);
    assert_int_equal(sources_alive(&all), 2);
    assert_true(all.list[0].is_gone);
    sources_free(&all);
}

static void test_sources_take_files_and_ports(void **state)
{
    struct scratch *s = *state;
    const char *names[] = {scratch_file(s, "run.prom", "drps_a{rank=\"3\"} 1\n", SIZE_MAX),
                           "127.0.0.1:1", "[::1]:1", "x:y"};
    struct sources all = {.names = names, .names_n = 4};
    struct drps_err err = DRPS_ERR_INIT;
    assert_int_equal(sources_read(&all, &err), 0);
    assert_int_equal(sources_read(&all, &err), 0); /* the same again */
    assert_int_equal(all.n, 3);                    /* nobody makes x:y */
    assert_int_equal(sources_alive(&all), 1);      /* nobody listens at port 1 */
    assert_string_equal(all.list[0].path, names[0]);
    sources_free(&all);
}

/* ---- The view ---- */

static int shows(const struct view *v, const char *text)
{
    for (size_t i = 0; i < v->n; i++)
        if (strstr(v->text[i], text)) return 1;
    return 0;
}

static void check_shows(const struct view *v, const char *text)
{
    if (shows(v, text)) return;
    for (size_t i = 0; i < v->n; i++)
        print_message("%s\n", v->text[i]);
    fail_msg("'%s' is not shown", text);
}

static void check_fits(const struct view *v)
{
    assert_true(v->n <= v->lines);
    for (size_t i = 0; i < v->n; i++)
        assert_true(strlen(v->text[i]) <= v->columns);
}

/* A job that is looked at again and again. */
struct look {
    struct sources all;
    struct curve curve;
    struct view view;
};

static struct look *look_new(const char *const *name)
{
    struct look *l = calloc(1, sizeof(*l));
    assert_non_null(l);
    l->all = (struct sources){.names = name, .names_n = 1};
    l->view.columns = 80;
    l->view.lines = 24;
    return l;
}

static void look_free(struct look *l)
{
    sources_free(&l->all);
    free(l);
}

/* What is shown now has the text. */
static void look_shows(struct look *l, const char *text)
{
    struct drps_err err = DRPS_ERR_INIT;
    assert_int_equal(sources_read(&l->all, &err), 0);
    view_draw(&l->view, &l->all, &l->curve, "model");
    check_shows(&l->view, text);
}

static void test_view_says_what_it_waits_for_and_that_it_has_ended(void **state)
{
    struct scratch *s = *state;
    const char *name = scratch_path(s, "model");
    struct look *l = look_new(&name);
    look_shows(l, "model: waiting for a job to begin");
    put_rank(s, "model.partial", 0, 1);
    look_shows(l, "train");
    assert_false(shows(&l->view, "waiting for a job"));
    check_shows(&l->view, "loss      0.5 now, - last epoch, - on test samples");
    assert_int_equal(unlink(scratch_path(s, "model.partial/metrics.prom")), 0);
    look_shows(l, "model: the job is about to end; below is what it showed before");
    assert_false(shows(&l->view, "has ended")); /* its folder has not got its name yet */
    assert_int_equal(rmdir(scratch_path(s, "model.partial")), 0);
    look_shows(l, "model: the job has ended; below is what it showed before");
    assert_int_equal(sources_ending(&l->all), 0);
    look_free(l);
}

/* The folder of a file that was asked for says nothing of the job. */
static void test_view_says_that_the_job_of_a_file_has_ended(void **state)
{
    struct scratch *s = *state;
    const char *name = scratch_path(s, "shown/metrics.prom");
    struct look *l = look_new(&name);
    put_rank(s, "shown", 0, 1);
    look_shows(l, "train");
    assert_int_equal(unlink(name), 0);
    look_shows(l, "model: the job has ended; below is what it showed before");
    assert_int_equal(sources_ending(&l->all), 0);
    look_free(l);
}

static void test_view_fits_any_screen(void **state)
{
    struct scratch *s = *state;
    char *name = strdup(scratch_path(s, "model")); /* beyond many paths */
    struct sources all = {.names = (const char *const *)&name, .names_n = 1};
    struct drps_err err = DRPS_ERR_INIT;
    struct curve c = {0};
    struct view *v = calloc(1, sizeof(*v));
    assert_non_null(v);
    for (unsigned r = 0; r < 40; r++) {
        char folder[64];
        (void)snprintf(folder, sizeof(folder), "model.rank-%u.partial", r);
        put_rank(s, folder, r, r);
    }
    for (int i = 0; i < 100; i++)
        curve_add(&c, 1.0 / (i + 1), 0.5);
    assert_int_equal(sources_read(&all, &err), 0);
    for (size_t lines = 0; lines < 80; lines++) {
        for (size_t columns = 0; columns <= 600; columns += columns < 100 ? 1 : 50) {
            v->lines = lines;
            v->columns = columns;
            view_draw(v, &all, &c, "model");
            check_fits(v);
        }
    }
    v->lines = 24;
    v->columns = 80;
    view_draw(v, &all, &c, "model");
    check_shows(v, "more ranks");
    free(name);
    free(v);
    sources_free(&all);
}

static void test_view_shows_an_index(void **state)
{
    struct scratch *s = *state;
    const char *name = scratch_file(s, "index.prom",
                                    "drps_index_phase{rank=\"0\",phase=\"parse\"} 1\n"
                                    "drps_index_phase_done{rank=\"0\"} 1234\n"
                                    "drps_index_input_bytes_total{rank=\"0\"} 1048576\n"
                                    "drps_index_input_size_bytes{rank=\"0\"} 4194304\n"
                                    "drps_index_samples_total{rank=\"0\"} 1234\n",
                                    SIZE_MAX);
    struct sources all = {.names = &name, .names_n = 1};
    struct drps_err err = DRPS_ERR_INIT;
    struct curve c = {0};
    struct view *v = calloc(1, sizeof(*v));
    assert_non_null(v);
    v->columns = 80;
    v->lines = 24;
    assert_int_equal(sources_read(&all, &err), 0);
    view_draw(v, &all, &c, "plan");
    check_shows(v, "phase     parse, 1,234");
    check_shows(v, "input     1.0 MiB of 4.0 MiB [#####...............]");
    check_shows(v, "samples   1,234");
    free(v);
    sources_free(&all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_readings_have_names_labels_and_ranks),
        cmocka_unit_test(test_readings_leave_broken_lines_out),
        cmocka_unit_test(test_readings_keep_the_terminal_safe),
        cmocka_unit_test(test_readings_refuse_other_texts),
        cmocka_unit_test(test_readings_have_rates),
        cmocka_unit_test(test_readings_have_quantiles_of_what_came_between),
        cmocka_unit_test(test_curve_shows_the_last_points),
        cmocka_unit_test(test_curve_takes_any_number_of_points),
        cmocka_unit_test_setup_teardown(test_sources_find_all_ranks_of_a_model, scratch_setup,
                                        scratch_teardown),
        cmocka_unit_test_setup_teardown(test_sources_take_files_and_ports, scratch_setup,
                                        scratch_teardown),
        cmocka_unit_test_setup_teardown(test_view_says_what_it_waits_for_and_that_it_has_ended,
                                        scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(test_view_says_that_the_job_of_a_file_has_ended,
                                        scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(test_view_fits_any_screen, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(test_view_shows_an_index, scratch_setup, scratch_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
