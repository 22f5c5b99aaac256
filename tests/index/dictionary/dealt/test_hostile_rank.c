/* Ranks that send what cannot be, or whose disks fail: all others end, with an error that says who
 * and what. What the library records into streams, and gathers, goes through this file (linked with
 * --wrap), which harms that of one rank. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/drps_endian.h"
#include "index/dictionary/dealt/dealt_job.h"
#include "support/fault_io.h"

enum { RANKS = 3, VICTIM = 0, HOSTILE = 1, MOST_BYTES = 64 };

enum how {
    TWICE,   /* a record comes twice */
    SKIP,    /* or not at all */
    MORE,    /* a byte behind all records */
    U32,     /* `value` at byte `at` of the record */
    ZERO,    /* a number at byte `at` that is 0 becomes 1, another one 0 */
    ANOTHER, /* the key at byte `at` becomes the next one that another rank owns */
    GATHER,  /* number `at` of the n-th gathering is `value` */
    RANDOM,  /* `at` byte of the record gets another value */
};

struct harm {
    const char *step;
    long n; /* of what goes to the victim in this step, from 0 on */
    enum how how;
    size_t at;
    uint64_t value;
    const char *text; /* that the victim has then; NULL: it may take it */
    int strings;
};

static _Thread_local const struct harm *harm; /* NULL: this rank is no hostile one */
static _Thread_local const char *step;        /* the stream that is written now */
static _Thread_local long records, gathers, opened;

/* Streams in the order in which they are opened. */
enum { STEPS = 5 };
static const char *const steps[STEPS] = {"keys", "places", "numbers", "rows", "names"};

int __real_drps_swap_open(struct swap_ranks *ranks, struct swap **s_out, struct drps_err *err);
int __real_drps_swap_put(struct swap *s, uint32_t to, const void *bytes, size_t n,
                         struct drps_err *err);
int __real_drps_swap_end(struct swap *s, struct drps_err *err);
int __real_drps_swap_gather(const struct swap_ranks *ranks, const uint64_t *mine, size_t n,
                            uint64_t **all_out, struct drps_err *err);
int __wrap_drps_swap_open(struct swap_ranks *ranks, struct swap **s_out, struct drps_err *err);
int __wrap_drps_swap_put(struct swap *s, uint32_t to, const void *bytes, size_t n,
                         struct drps_err *err);
int __wrap_drps_swap_end(struct swap *s, struct drps_err *err);
int __wrap_drps_swap_gather(const struct swap_ranks *ranks, const uint64_t *mine, size_t n,
                            uint64_t **all_out, struct drps_err *err);

int __wrap_drps_swap_open(struct swap_ranks *ranks, struct swap **s_out, struct drps_err *err)
{
    step = steps[opened++ % STEPS];
    records = 0;
    return __real_drps_swap_open(ranks, s_out, err);
}

static void harm_bytes(unsigned char *bytes, size_t n)
{
    uint64_t key;
    switch (harm->how) {
    case U32:
        NET_CHECK(harm->at + 4 <= n);
        drps_put_u32(bytes + harm->at, (uint32_t)harm->value);
        break;
    case ANOTHER:
        key = drps_get_u64(bytes + harm->at);
        for (const uint32_t owner = drps_dict_owner(key, RANKS);
             drps_dict_owner(key, RANKS) == owner;)
            key++;
        drps_put_u64(bytes + harm->at, key);
        break;
    case ZERO:
        drps_put_u32(bytes + harm->at, !drps_get_u32(bytes + harm->at));
        break;
    case RANDOM:
        bytes[harm->at % n] = (unsigned char)harm->value;
        break;
    default:
        break;
    }
}

int __wrap_drps_swap_put(struct swap *s, uint32_t to, const void *bytes, size_t n,
                         struct drps_err *err)
{
    unsigned char copy[MOST_BYTES];
    if (!harm || harm->how == GATHER || strcmp(step, harm->step) != 0 || to != VICTIM ||
        records++ != harm->n || !n)
        return __real_drps_swap_put(s, to, bytes, n, err);
    NET_CHECK(n <= sizeof(copy));
    memcpy(copy, bytes, n);
    harm_bytes(copy, n);
    int rc = harm->how == SKIP ? 0 : __real_drps_swap_put(s, to, copy, n, err);
    return rc == 0 && harm->how == TWICE ? __real_drps_swap_put(s, to, copy, n, err) : rc;
}

int __wrap_drps_swap_end(struct swap *s, struct drps_err *err)
{
    int rc = 0;
    if (harm && harm->how == MORE && strcmp(step, harm->step) == 0)
        rc = __real_drps_swap_put(s, VICTIM, "!", 1, err);
    return rc == 0 ? __real_drps_swap_end(s, err) : rc;
}

int __wrap_drps_swap_gather(const struct swap_ranks *ranks, const uint64_t *mine, size_t n,
                            uint64_t **all_out, struct drps_err *err)
{
    uint64_t *copy = (uint64_t *)mine;
    if (harm && harm->how == GATHER && gathers++ == harm->n) copy[harm->at] = harm->value;
    return __real_drps_swap_gather(ranks, mine, n, all_out, err);
}

static void begin(uint32_t rank, void *ctx)
{
    harm = rank == HOSTILE ? ctx : NULL;
    gathers = 0;
}

static struct dealt_job *run_harmed(struct scratch *s, const struct data *data,
                                    const struct harm *h)
{
    struct dealt_job *job = dealt_job_new(s, data, RANKS);
    job->begin = begin;
    job->ctx = (void *)h;
    dealt_job_run(job, NET_INPROC);
    return job;
}

#define ONE "rank 1 sent "
static const struct harm harms[] = {
    {"keys", 3, TWICE, 0, 0, ONE "keys that are not in order", 0},
    {"keys", 3, ANOTHER, 0, 0, ONE "a key of another rank", 0},
    {"keys", 3, ZERO, 8, 0, ONE "a key without uses", 0},
    {"keys", 0, MORE, 0, 0, ONE "15 bytes too few", 0},
    {"keys", 2, U32, 22, 1 << 25, ONE "a name that is too long", 1},
    {"keys", 2, U32, 22, 1 << 23, ONE "8", 1}, /* 8 M less what there is */
    {NULL, 0, GATHER, 0, UINT64_C(1) << 40, "more than 4,294,967,294 rows", 0},
    {NULL, 0, GATHER, 0, UINT64_MAX, "more than 4,294,967,294 rows", 0},
    {NULL, 0, GATHER, 0, 1000000, "the ranks have numbered ", 0},
    {NULL, 0, GATHER, 0, 1, ONE "more rows than it has", 0},
    {NULL, 0, GATHER, 2, UINT64_C(1) << 32, ONE "too many samples", 0},
    {NULL, 0, GATHER, 3, 1025, ONE "too many samples", 0},
    {NULL, 1, GATHER, 0, UINT64_MAX, ONE "a number of rows that is too large", 0},
    {NULL, 1, GATHER, 0, 0, "the ranks have numbered ", 0},
    {"places", 3, TWICE, 0, 0, ONE "a row that is not in its place", 0},
    {"places", 3, U32, 4, UINT32_MAX, ONE "a row that is not in its place", 0},
    {"places", 3, ANOTHER, 8, 0, ONE "a row that is not in its place", 0},
    {"places", 0, MORE, 0, 0, ONE "15 bytes too few", 0},
    {"places", 3, SKIP, 0, 0, "the ranks have numbered ", 0},
    {"numbers", 3, U32, 0, UINT32_MAX - 1, ONE "a row of another range", 0},
    {"numbers", 3, U32, 0, 0, ONE "a row of another range", 0},
    {"numbers", 3, SKIP, 0, 0, ONE, 0},
    {"numbers", 0, MORE, 0, 0, ONE "1 bytes too many", 0},
    {"rows", 3, U32, 0, UINT32_MAX - 1, ONE "a row that is not there", 0},
    {"rows", 3, U32, 0, 0, ONE "a row that is not there", 0},
    {"rows", 3, SKIP, 0, 0, ONE "4 bytes too few", 0},
    {"rows", 0, MORE, 0, 0, ONE "1 bytes too many", 0},
    {"names", 3, TWICE, 0, 0, ONE "keys that are not in order", 0},
    {"names", 3, U32, 8, UINT32_MAX - 1, ONE "a name with a row that is not there", 0},
    {"names", 3, SKIP, 0, 0, ONE "names of ", 0},
    {"names", 0, MORE, 0, 0, ONE "11 bytes too few", 0},
    {"names", 2, U32, 18, 1 << 25, ONE "a name that is too long", 1},
};

static void test_hostile_rank_is_named(void **state)
{
    struct random_source r = random_begin("hostile");
    for (int strings = 0; strings < 2; strings++) {
        struct data data = data_make(&r, 500, 6, 2000, strings ? DATA_NAMES : DATA_ANY);
        for (size_t i = 0; i < sizeof(harms) / sizeof(*harms); i++) {
            const struct harm *h = &harms[i];
            if (h->strings != strings) continue;
            struct dealt_job *job = run_harmed(*state, &data, h);
            const char *text = job->err[VICTIM].text;
            if (job->rc[VICTIM] >= 0 || !strstr(text, h->text))
                fail_msg("harm %zu, %s: %d (%s) in place of '%s'", i, h->step ? h->step : "gather",
                         job->rc[VICTIM], text, h->text);
            dealt_job_free(job);
        }
        data_free(&data);
    }
}

static void test_hostile_rank_at_random(void **state)
{
    struct random_source r = random_begin("hostile at random");
    for (int strings = 0; strings < 2; strings++) {
        struct data data = data_make(&r, 100, 6, 500, strings ? DATA_NAMES : DATA_ANY);
        for (int round = 0; round < 200; round++) {
            const struct harm h = {
                .step = steps[random_below(&r, STEPS)],
                .n = (long)random_below(&r, 100),
                .how = (enum how[]){TWICE, SKIP, MORE, RANDOM, RANDOM, RANDOM}[random_below(&r, 6)],
                .at = (size_t)random_below(&r, 32),
                .value = random_u64(&r)};
            struct dealt_job *job = run_harmed(*state, &data, &h);
            for (uint32_t rank = 0; rank < RANKS; rank++)
                assert_true(job->rc[rank] == 0 || job->err[rank].text[0]);
            dealt_job_free(job);
        }
        data_free(&data);
    }
}

/* One rank's files fail: it says so, and so do the others. */
static void test_faults_of_a_rank_are_told(void **state)
{
    static const unsigned ops[] = {FAULT_OPEN, FAULT_PWRITE, FAULT_PREAD};
    struct random_source r = random_begin("dealt faults");
    struct data data = data_make(&r, 2500, 6, 20000, DATA_NAMES);
    for (uint32_t rank = 0; rank < 2; rank++)
        for (size_t i = 0; i < 3; i++)
            for (long k = 1, fired = 1; fired; k += 1 + k / 8) {
                struct fault_io *f = fault_io_new(drps_io_os());
                struct dealt_job *job = dealt_job_new(*state, &data, 2);
                assert_non_null(f);
                job->memory[0] = job->memory[1] = 0;
                job->io[rank] = &f->io;
                fault_io_arm(f, ops[i], k, 0, FAULT_ERROR, -EIO);
                dealt_job_run(job, NET_INPROC);
                fired = atomic_load(&f->fired);
                if (job->rc[rank] != (fired ? -EIO : 0) || (!fired && job->rc[!rank]))
                    fail_msg("rank %u: %s %ld: %d (%s), %d (%s)", rank, fault_op_name(ops[i]), k,
                             job->rc[rank], job->err[rank].text, job->rc[!rank],
                             job->err[!rank].text);
                assert_true(job->rc[!rank] == 0 || job->err[!rank].text[0]);
                fault_io_free(f);
                dealt_job_free(job);
            }
    data_free(&data);
}

#define SCRATCH_TEST(test) cmocka_unit_test_setup_teardown(test, scratch_setup, scratch_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCRATCH_TEST(test_hostile_rank_is_named),
        SCRATCH_TEST(test_hostile_rank_at_random),
        SCRATCH_TEST(test_faults_of_a_rank_are_told),
    };
    return cmocka_run_group_tests_name("hostile_rank", tests, NULL, NULL);
}
