/* What drps-train prints of its ranks: a line each, or for many of them the ends of every number.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tools/train/ranks.h"

enum { MANY = 200 };

/* Rank i sends i MiB and waits for less, the more it sends; perhaps of asynchronous rounds. */
static struct drps_train_rank *make(size_t n, int asynchronous)
{
    struct drps_train_rank *ranks = calloc(n + 1, sizeof(*ranks));
    assert_non_null(ranks);
    for (size_t i = 0; i < n; i++)
        ranks[i] = (struct drps_train_rank){
            .sent_bytes = i << 20,
            .received_bytes = 1 << 20,
            .forecast_sent_bytes = 2 << 20,
            .forecast_received_bytes = 1 << 20,
            .peak_rss_bytes = (i == 7 ? 90U : 80U) << 20,
            .waiting_share = 0.5 - 0.001 * (double)i,
            .iterations = asynchronous ? 100 + i : 0,
            .claimed = asynchronous ? 1 : 0,
            .ahead_used = asynchronous ? 60 : 0,
            .ahead_there = asynchronous ? 50 : 0,
            .held_seconds = asynchronous && i == 5 ? 3.25 : 0,
            .lag_mean = asynchronous ? 0.5 : 0,
            .lag_max = i == 9 ? 4 : 1,
        };
    return ranks;
}

static char *print(size_t n, int asynchronous, int details)
{
    char *text = NULL;
    size_t bytes;
    struct drps_train_rank *ranks = make(n, asynchronous);
    FILE *out = open_memstream(&text, &bytes);
    assert_non_null(out);
    train_ranks_print(out, ranks, n, details);
    assert_int_equal(fclose(out), 0);
    free(ranks);
    return text;
}

static size_t lines_of(const char *text)
{
    size_t n = 0;
    for (; *text; text++)
        n += *text == '\n';
    return n;
}

static void test_few_ranks_have_a_line_each(void **state)
{
    (void)state;
    for (size_t n = 0; n <= TRAIN_RANKS_LISTED; n++)
        for (int how = 0; how < 4; how++) {
            char *text = print(n, how & 1, how >> 1);
            assert_int_equal(lines_of(text), n << (how == 3));
            free(text);
        }
    char *text = print(2, 1, 1);
    assert_string_equal(
        text,
        "  rank 0    0 B sent, 1.0 MiB received (forecast 2.0 MiB, 1.0 MiB); its worker waited "
        "50.0 % of the time; "
        "80.0 MiB of memory at most\n"
        "  rank 1    1.0 MiB sent, 1.0 MiB received (forecast 2.0 MiB, 1.0 MiB); its worker waited "
        "49.9 % of the time; 80.0 MiB of memory at most\n"
        "  rank 0    100 batches, 1 of them taken over from slower workers; parameters of 60 were "
        "asked "
        "for ahead, of 50 there in time; held back 0.00 s; ahead of the "
        "slowest worker by 0.50 batches on average, 1 at most\n"
        "  rank 1    101 batches, 1 of them taken over from slower workers; parameters of 60 were "
        "asked "
        "for ahead, of 50 there in time; held back 0.00 s; ahead of the "
        "slowest worker by 0.50 batches on average, 1 at most\n");
    free(text);
}

/* A run that was interrupted in its first epoch has no forecast. */
static void test_no_forecast_is_not_shown(void **state)
{
    (void)state;
    for (size_t n = 2; n <= MANY; n += MANY - 2) {
        char *text = NULL;
        size_t bytes;
        struct drps_train_rank *ranks = make(n, 0);
        FILE *out = open_memstream(&text, &bytes);
        assert_non_null(out);
        for (size_t i = 0; i < n; i++)
            ranks[i].forecast_sent_bytes = ranks[i].forecast_received_bytes = 0;
        train_ranks_print(out, ranks, n, 1);
        assert_int_equal(fclose(out), 0);
        assert_non_null(strstr(text, n == 2 ? "0 B sent, 1.0 MiB received; its worker waited"
                                            : "19.4 GiB in all\n"));
        assert_null(strstr(text, "forecast"));
        free(text);
        free(ranks);
    }
}

static void test_many_ranks_have_the_ends(void **state)
{
    static const char loads[] =
        "  ranks     200, from the least to the most\n"
        "    sent       0 B (rank 0) to 199.0 MiB (rank 199), 19.4 GiB in all (forecast 400.0 "
        "MiB)\n"
        "    received   1.0 MiB (rank 0) to 1.0 MiB (rank 0), 200.0 MiB in all (forecast 200.0 "
        "MiB)\n"
        "    waiting    30.1 % (rank 199, the busiest) to 50.0 % (rank 0)\n"
        "    memory     80.0 MiB (rank 0) to 90.0 MiB (rank 7)\n";
    static const char batches[] =
        "    batches    100 (rank 0) to 299 (rank 199), 39900 in all, 200 of them taken over from "
        "slower workers\n"
        "    parameters 12000 were asked for ahead, 10000 there in time\n"
        "    held back  0.00 s (rank 0) to 3.25 s (rank 5)\n"
        "    ahead      0.50 (rank 0) to 0.50 (rank 0) batches of the slowest worker, 4 at most\n";
    (void)state;
    char *text = print(MANY, 0, 1);
    assert_string_equal(text, loads);
    free(text);
    text = print(MANY, 1, 0);
    assert_string_equal(text, loads);
    free(text);
    text = print(MANY, 1, 1);
    assert_memory_equal(text, loads, sizeof(loads) - 1);
    assert_string_equal(text + sizeof(loads) - 1, batches);
    free(text);
}

static void test_filtered_gradients_have_a_line(void **state)
{
    char *text = NULL;
    size_t bytes;
    struct drps_train_rank *ranks = make(2, 0);
    FILE *out = open_memstream(&text, &bytes);
    (void)state;
    ranks[0].push = (struct drps_push_counts){.plain_bytes = 3 << 20,
                                              .sent_bytes = 1 << 20,
                                              .whole_bytes = 512 << 10,
                                              .values = 1000,
                                              .zero = 100,
                                              .below = 400,
                                              .beyond = 200};
    ranks[1].push = (struct drps_push_counts){
        .plain_bytes = 1 << 20, .values = 1000, .left_rows = 7, .left_sum = .5};
    train_ranks_print(out, ranks, 2, 0);
    assert_int_equal(fclose(out), 0);
    assert_int_equal(lines_of(text), 4);
    assert_non_null(strstr(text, "            at the end workers still held some of the gradients "
                                 "of 7 rows, 0.5 in all by size, which the model does not have\n"));
    assert_non_null(strstr(text,
                           "  gradients 1.0 MiB sent in place of 4.0 MiB (25.0 %), 512.0 KiB "
                           "of it as rows that could not wait; of the values of the others "
                           "5.0 % were 0, 20.0 % too small and 10.0 % not among the largest\n"));
    free(text);
    free(ranks);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_filtered_gradients_have_a_line),
        cmocka_unit_test(test_few_ranks_have_a_line_each),
        cmocka_unit_test(test_many_ranks_have_the_ends),
        cmocka_unit_test(test_no_forecast_is_not_shown),
    };
    return cmocka_run_group_tests_name("train_ranks", tests, NULL, NULL);
}
