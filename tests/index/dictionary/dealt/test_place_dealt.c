/* A dictionary dealt between ranks gives the rows and the bytes of one that has all samples. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "index/dictionary/dealt/dealt_job.h"
#include "index/plan/drps_names.h"

/* What all ranks found is what one finds; files in between are gone. */
static void expect_whole(struct scratch *s, const struct dealt_job *job, const char *what)
{
    const size_t nnz = job->data->n * job->data->per_sample;
    uint32_t *row = malloc((nnz + 1) * sizeof(*row));
    uint64_t rows[2];
    assert_non_null(row);
    dealt_job_whole(s, job, rows, row);
    for (uint32_t r = 0; r < job->count; r++) {
        if (job->rc[r]) fail_msg("%s: rank %u of %u: %s", what, r, job->count, job->err[r].text);
        if (job->rows[r][0] != rows[0] || job->rows[r][1] != rows[1])
            fail_msg("%s: rank %u of %u has other numbers of rows", what, r, job->count);
        const size_t own = (size_t)(r == 0) + (job->generations[r] > 1) * (job->generations[r] + 1);
        if (folder_entries(job->dir[r]) != own)
            fail_msg("%s: rank %u of %u leaves files", what, r, job->count);
    }
    for (size_t k = 0; k < nnz; k++)
        if (row[k] != job->row[k])
            fail_msg("%s: %u ranks: entry %zu has row %u, with one rank %u", what, job->count, k,
                     job->row[k], row[k]);
    char path[2 * SCRATCH_PATH_BYTES];
    (void)snprintf(path, sizeof(path), "%s/names.rec", job->dir[0]);
    if (!files_equal(path, scratch_path(s, "whole/names.rec")))
        fail_msg("%s: %u ranks: names.rec differs", what, job->count);
    free(row);
}

static const uint32_t counts[] = {1, 2, 3, 4, 7, NET_RANKS};
enum { COUNTS = sizeof(counts) / sizeof(*counts) };

struct way {
    const char *name;
    enum data_keys keys;
    int by_field, by_key, by_hash, generations;
};
static const struct way ways[] = {
    {.name = "numbers"},
    {.name = "small numbers", .keys = DATA_NUMBERS},
    {.name = "names", .keys = DATA_NAMES},
    {.name = "two tables by field", .keys = DATA_NAMES, .by_field = 1},
    {.name = "two tables by key", .by_key = 1},
    {.name = "by hash", .by_hash = 1},
    {.name = "two tables by hash", .keys = DATA_NAMES, .by_field = 1, .by_hash = 1},
    {.name = "generations of numbers", .generations = 1},
    {.name = "generations of names", .keys = DATA_NAMES, .generations = 1},
};

static void test_dealt_is_as_one(void **state)
{
    struct scratch *s = *state;
    struct random_source r = random_begin("dealt");
    for (size_t w = 0; w < sizeof(ways) / sizeof(*ways); w++) {
        const struct way *way = &ways[w];
        const size_t scale = way->generations ? 10 : 1;
        struct data data = data_make(&r, 2000 * scale, 7, 6000 * scale, way->keys);
        for (size_t c = 0; c < COUNTS; c++) {
            if (counts[c] == NET_RANKS && w > 1) continue; /* many threads take long */
            struct dealt_job *job = dealt_job_new(s, &data, counts[c]);
            job->options.table_by_field = way->by_field;
            job->options.table_by_key = way->by_key;
            job->options.by_hash = way->by_hash;
            job->options.order_seed = 9;
            job->first_row = (uint32_t)c;
            for (uint32_t rank = 0; way->generations && rank < job->count; rank += 2)
                job->memory[rank] = 0; /* the others have one generation */
            dealt_job_run(job, NET_INPROC);
            expect_whole(s, job, way->name);
            if (way->generations && counts[c] < 4 && job->generations[0] < 3)
                fail_msg("%s: %zu generations: too few keys", way->name, job->generations[0]);
            dealt_job_free(job);
        }
        data_free(&data);
    }
}

static void test_dealt_over_every_transport(void **state)
{
    struct scratch *s = *state;
    struct random_source r = random_begin("dealt transports");
    struct data data = data_make(&r, 3000, 6, 9000, DATA_NAMES);
    for (int kind = 0; kind < NET_KINDS; kind++) {
        if (!net_kind_there((enum net_kind)kind)) continue;
        struct dealt_job *job = dealt_job_new(s, &data, 3);
        dealt_job_run(job, (enum net_kind)kind);
        expect_whole(s, job, net_kind_names[kind]);
        dealt_job_free(job);
    }
    data_free(&data);
}

/* Ranks without samples, or without any that trains. */
static void test_dealt_ranks_without_rows(void **state)
{
    struct scratch *s = *state;
    struct random_source r = random_begin("dealt empty");
    struct data data = data_make(&r, 300, 5, 400, DATA_NAMES);
    for (int alone = 0; alone < 3; alone++) {
        struct dealt_job *job = dealt_job_new(s, &data, 4);
        for (uint32_t rank = 0; rank <= 4; rank++) /* all samples to one */
            job->first[rank] = rank > (uint32_t)alone ? data.n : 0;
        dealt_job_run(job, NET_INPROC);
        expect_whole(s, job, "samples on one rank");
        dealt_job_free(job);
    }
    for (size_t i = 0; i < data.n; i++)
        if (i < 150) data.time[i] = DICT_TEST; /* all of the first two ranks */
    struct dealt_job *job = dealt_job_new(s, &data, 4);
    dealt_job_run(job, NET_INPROC);
    expect_whole(s, job, "ranks that do not train");
    size_t without = 0, shared = 0;
    for (size_t k = 0; k < 150 * data.per_sample; k++) {
        without += job->row[k] == DRPS_NO_ROW;
        shared += job->row[k] != DRPS_NO_ROW;
    }
    assert_true(without && shared);
    dealt_job_free(job);
    for (size_t i = 0; i < data.n; i++)
        data.time[i] = DICT_TEST;
    job = dealt_job_new(s, &data, 3);
    dealt_job_run(job, NET_INPROC);
    expect_whole(s, job, "no rank trains");
    assert_int_equal(job->rows[0][0] + job->rows[0][1], 0);
    dealt_job_free(job);
    const size_t n = data.n;
    data.n = 0;
    job = dealt_job_new(s, &data, 2);
    dealt_job_run(job, NET_INPROC);
    expect_whole(s, job, "no samples");
    dealt_job_free(job);
    data.n = n;
    data_free(&data);
}

/* All rows stand alike in the order, and keys alone decide. */
static void test_dealt_rows_that_are_alike(void **state)
{
    struct scratch *s = *state;
    struct random_source r = random_begin("dealt alike");
    struct data data = data_make(&r, 5000, 1, 100000, DATA_ANY);
    for (size_t i = 0; i < data.n; i++) {
        data.key[i] = i * 3;
        data.time[i] = 77;
    }
    struct dealt_job *job = dealt_job_new(s, &data, 4);
    dealt_job_run(job, NET_INPROC);
    expect_whole(s, job, "rows that are alike");
    for (uint32_t rank = 0; rank < 4; rank++) { /* numbers of a range go to all others */
        const uint64_t numbered = job->sent[rank].numbers / DEALT_NUMBER_BYTES;
        if (numbered < 5000 / 4 * 3 / 4 * 9 / 10 || numbered > 5000 / 4 * 3 / 4 * 11 / 10)
            fail_msg("rank %u numbered %u rows of others", rank, (unsigned)numbered);
    }
    dealt_job_free(job);
    data_free(&data);
}

/* The bytes that the header promises. */
static void test_dealt_bytes_are_as_documented(void **state)
{
    struct scratch *s = *state;
    struct random_source r = random_begin("dealt bytes");
    for (int strings = 0; strings < 2; strings++) {
        struct data data = data_make(&r, 2000, 6, 5000, strings ? DATA_NAMES : DATA_ANY);
        struct dealt_job *job = dealt_job_new(s, &data, 3);
        dealt_job_run(job, NET_INPROC);
        expect_whole(s, job, "bytes");
        char *has = calloc(data.keys, 4); /* bit r: rank r; and whether it has a row */
        uint64_t keys[3] = {0}, asked[3] = {0}, rows[3] = {0}, names[3] = {0};
        assert_non_null(has);
        for (size_t k = 0; k < data.n * data.per_sample; k++) {
            uint32_t rank = 0;
            while (k / data.per_sample >= job->first[rank + 1])
                rank++;
            char *at = has + 4 * (size_t)data.number[k];
            const uint32_t owner = drps_dict_owner(data.key[k], 3);
            const uint64_t text = strings ? DEALT_STRING_BYTES + data.names[k].bytes : 0;
            if (!at[rank] && owner != rank) {
                keys[rank] += DEALT_KEY_BYTES + text;
                asked[owner] += DEALT_ROW_BYTES;
            }
            at[rank] = 1;
            if (at[3] || job->row[k] == DRPS_NO_ROW) continue;
            at[3] = 1;
            rows[owner]++;
            if (owner) names[owner] += DEALT_NAMED_BYTES + text;
        }
        uint64_t places = 0, numbers = 0, all = 0;
        for (uint32_t rank = 0; rank < 3; rank++) {
            assert_int_equal(job->sent[rank].keys, keys[rank]);
            assert_int_equal(job->sent[rank].rows, asked[rank]);
            assert_int_equal(job->sent[rank].names, names[rank]);
            places += job->sent[rank].places;
            numbers += job->sent[rank].numbers;
            all += rows[rank];
        }
        assert_int_equal(places / DEALT_PLACE_BYTES, numbers / DEALT_NUMBER_BYTES);
        const uint64_t went = numbers / DEALT_NUMBER_BYTES; /* two of three ranges are elsewhere */
        if (went < all * 6 / 10 || went > all * 73 / 100)
            fail_msg("%u of %u rows went to another rank", (unsigned)went, (unsigned)all);
        free(has);
        dealt_job_free(job);
        data_free(&data);
    }
}

/* Two names with one key, on two ranks: all ranks say so. */
static void test_dealt_collision_is_told(void **state)
{
    struct scratch *s = *state;
    struct random_source r = random_begin("dealt collision");
    struct data data = data_make(&r, 400, 5, 2000, DATA_NAMES);
    const size_t last = data.n * data.per_sample - 1;
    data.names[0] = (struct drps_name){.text = "first", .bytes = 5, .check = 1};
    data.names[last] = (struct drps_name){.text = "second", .bytes = 6, .check = 2};
    data.key[0] = data.key[last] = 4711;
    struct dealt_job *job = dealt_job_new(s, &data, 3);
    dealt_job_run(job, NET_INPROC);
    for (uint32_t rank = 0; rank < 3; rank++) {
        const int owner = drps_dict_owner(4711, 3) == rank;
        assert_true(owner ? job->rc[rank] == DRPS_E_CONFIG : job->rc[rank] < 0);
        if (!strstr(job->err[rank].text, "'first' and 'second'") ||
            !strstr(job->err[rank].text, "than 5"))
            fail_msg("rank %u: %s", rank, job->err[rank].text);
    }
    dealt_job_free(job);
    data_free(&data);
}

static void test_dealt_too_many_rows(void **state)
{
    struct scratch *s = *state;
    struct random_source r = random_begin("dealt too many");
    struct data data = data_make(&r, 400, 5, 2000, DATA_ANY);
    struct dealt_job *job = dealt_job_new(s, &data, 3);
    dealt_job_run(job, NET_INPROC);
    const uint32_t rows = (uint32_t)job->rows[0][0];
    for (uint32_t fits = 0; fits < 2; fits++) { /* the last row has the last number, or none */
        struct dealt_job *again = dealt_job_new(s, &data, 3);
        again->first_row = DRPS_NO_ROW - rows + 1 - fits;
        dealt_job_run(again, NET_INPROC);
        for (uint32_t rank = 0; rank < 3; rank++) {
            assert_true(fits ? !again->rc[rank] : again->rc[rank] < 0);
            if (!fits) assert_non_null(strstr(again->err[rank].text, "more than 4,294,967,294"));
        }
        dealt_job_free(again);
    }
    dealt_job_free(job);
    data_free(&data);
}

static void test_dealt_earlier_plan_is_refused(void **state)
{
    struct scratch *s = *state;
    struct random_source r = random_begin("dealt earlier");
    struct data data = data_make(&r, 40, 5, 200, DATA_ANY);
    struct dealt_job *job = dealt_job_new(s, &data, 1);
    job->options.base_dir = s->dir;
    dealt_job_run(job, NET_INPROC);
    assert_int_equal(job->rc[0], DRPS_E_CONFIG);
    dealt_job_free(job);
    data_free(&data);
}

#define SCRATCH_TEST(test) cmocka_unit_test_setup_teardown(test, scratch_setup, scratch_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCRATCH_TEST(test_dealt_is_as_one),
        SCRATCH_TEST(test_dealt_over_every_transport),
        SCRATCH_TEST(test_dealt_ranks_without_rows),
        SCRATCH_TEST(test_dealt_rows_that_are_alike),
        SCRATCH_TEST(test_dealt_bytes_are_as_documented),
        SCRATCH_TEST(test_dealt_collision_is_told),
        SCRATCH_TEST(test_dealt_too_many_rows),
        SCRATCH_TEST(test_dealt_earlier_plan_is_refused),
    };
    return cmocka_run_group_tests_name("place_dealt", tests, NULL, NULL);
}
